//! What a server is started with.

use std::time::Duration;

use crate::clock::Clock;
use crate::faults::Faults;

/// Options of a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Port on loopback; 0 for any that is free.
    pub port: u16,
    /// Names of the buckets that exist from the start; `PUT /NAME` creates another.
    pub buckets: Vec<String>,
    /// Time added before each reply.
    pub delay: Duration,
    /// Time added to a slow reply ([`crate::Fault::Slow`]).
    pub slow: Duration,
    /// How often each fault of replies happens.
    pub faults: Faults,
    /// Seed of the faults.
    pub seed: u64,
    /// Most entries of one list reply, at most 1000.
    pub page: usize,
    /// Least bytes of a part of an upload that is not the last; 5 MiB in S3.
    pub part: u64,
    /// Whether requests without `Authorization` are refused (403). Signatures are not checked.
    pub authorization: bool,
    /// Whether what is received is kept, to be searched.
    pub log: bool,
    /// The clock of `Date` and `Last-Modified`.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: 0,
            buckets: vec!["tidetable".to_owned()],
            delay: Duration::ZERO,
            slow: Duration::from_millis(300),
            faults: Faults::default(),
            seed: 1,
            page: 1000,
            part: 5 << 20,
            authorization: false,
            log: false,
            clock: Clock::Wall(0),
        }
    }
}

/// Reads a duration such as `30ms` or `2s`; `0` needs no unit.
pub fn duration(text: &str) -> Option<Duration> {
    match text.strip_suffix("ms").map(str::parse) {
        Some(millis) => millis.ok().map(Duration::from_millis),
        None if text == "0" => Some(Duration::ZERO),
        None => text.strip_suffix('s')?.parse().ok().map(Duration::from_secs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        assert_eq!(duration("30ms"), Some(Duration::from_millis(30)));
        assert_eq!((duration("2s"), duration("0")), (Some(Duration::from_secs(2)), Some(Duration::ZERO)));
        assert_eq!((duration("30"), duration("ms"), duration("-1s")), (None, None, None));
    }
}
