//! How grave findings are.

use std::fmt;

/// How grave a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing, and not wrong by itself.
    Info,
    /// Against the advice of the guides, and costs something.
    Warn,
    /// Breaks a limit, loses readings, or makes a hotspot.
    Error,
}

impl Severity {
    /// Its name in output.
    pub fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
