//! Allowed names: those that Bigtable allows for tables and families.

/// What is named; it decides which letters and how many of them a name may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Id {
    Job,
    Source,
    Table,
    Family,
    Export,
    Check,
    /// A part of an export, whose name may hold a time.
    Published,
}

impl Id {
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Source => "source",
            Self::Table => "table",
            Self::Family => "family",
            Self::Export => "export",
            Self::Check => "check",
            Self::Published => "published table",
        }
    }

    pub(crate) fn longest(self) -> usize {
        match self {
            Self::Table | Self::Export | Self::Published => 50,
            Self::Job | Self::Source | Self::Family | Self::Check => 64,
        }
    }

    /// Whether `name` is allowed. Only a family may start with `-` or `.`.
    pub(crate) fn allows(self, name: &str) -> bool {
        let first = matches!(self, Self::Family) || !name.starts_with(['-', '.']);
        let rest = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
        !name.is_empty() && name.len() <= self.longest() && first && rest
    }
}

#[cfg(test)]
mod tests {
    use super::Id;

    #[test]
    fn ids() {
        assert!(Id::Table.allows("SENSOR_20170726"));
        assert!(Id::Table.allows(&"x".repeat(50)));
        assert!(!Id::Table.allows(&"x".repeat(51)));
        assert!(!Id::Table.allows("-x"));
        assert!(!Id::Table.allows(""));
        assert!(!Id::Table.allows("a b"));
        assert!(Id::Family.allows("-x"));
        assert!(!Id::Family.allows("é"));
    }
}
