//! What breaks a rule.

use crate::figures::visible;
use crate::view::{Finding, Severity};

/// A finding as text.
pub(super) struct FindingText<'a> {
    pub(super) of: &'a Finding,
    pub(super) severity: &'static str,
    pub(super) class: &'static str,
    pub(super) keys: Vec<String>,
}

impl<'a> FindingText<'a> {
    /// The text of a finding.
    pub(super) fn of(finding: &'a Finding) -> Self {
        let (severity, class) = match finding.severity {
            Severity::Error => ("error", "error"),
            Severity::Warn => ("warning", "warn"),
            Severity::Info => ("note", "info"),
        };
        Self { of: finding, severity, class, keys: finding.keys.iter().map(|key| visible(key)).collect() }
    }
}
