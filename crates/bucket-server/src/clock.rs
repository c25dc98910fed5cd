//! The clock of the server.

use chrono::{DateTime, TimeDelta, Utc};

/// Source of `Date` and `Last-Modified`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// This machine's, so many seconds ahead (or behind).
    Wall(i64),
    /// A second later with each object written, from 2020 on: no two objects have one time, in any header.
    Steps,
}

/// Formats of a time.
pub(crate) trait TimeText {
    /// As in HTTP headers, whole seconds (RFC 9110, 5.6.7).
    fn header(&self) -> String;
    /// As in XML replies, milliseconds.
    fn xml(&self) -> String;
}

impl TimeText for DateTime<Utc> {
    fn header(&self) -> String {
        self.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
    }

    fn xml(&self) -> String {
        self.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
    }
}

impl Clock {
    /// The time after `written` writes.
    pub(crate) fn now(self, written: u64) -> DateTime<Utc> {
        match self {
            Self::Wall(ahead) => Utc::now() + TimeDelta::seconds(ahead),
            Self::Steps => DateTime::UNIX_EPOCH + TimeDelta::seconds(1_577_836_800 + written as i64),
        }
    }
}
