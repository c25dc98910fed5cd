//! What a check returns, before it is put at its line.

use std::ops::Range;

use super::severity::Severity;
use crate::facts::shown;

/// Something that a rule found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found {
    pub(crate) severity: Severity,
    /// What is wrong here, a clause without a full stop.
    pub(crate) message: String,
    /// Byte range in the job file.
    pub(crate) at: Range<usize>,
    /// Table it is about; `None` for the job as a whole.
    pub(crate) table: Option<String>,
    /// Real row keys or values of the data.
    pub(crate) keys: Vec<String>,
    pub(crate) measure: Option<Measure>,
    pub(crate) edit: Option<Edit>,
}

/// A number against its limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measure {
    /// What was counted or estimated, in `unit`.
    pub measured: f64,
    /// The limit it passes.
    pub limit: f64,
    /// The unit of both in words, such as `bytes` or `of the writes` for a share.
    pub unit: &'static str,
}

/// A replacement of text of the job file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    /// Byte range of the job file that is replaced.
    pub(crate) at: Range<usize>,
    /// What is written in its place.
    pub(crate) text: String,
}

impl Found {
    pub(crate) fn new(severity: Severity, at: Range<usize>, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { severity, message, at, table: None, keys: Vec::new(), measure: None, edit: None }
    }

    pub(crate) fn measure(self, measured: f64, limit: f64, unit: &'static str) -> Self {
        Self { measure: Some(Measure { measured, limit, unit }), ..self }
    }

    pub(crate) fn edit(self, edit: Option<Edit>) -> Self {
        Self { edit, ..self }
    }

    /// Adds examples, the first few.
    pub(crate) fn keys(self, keys: impl IntoIterator<Item = String>) -> Self {
        Self { keys: keys.into_iter().take(EXAMPLES).map(|key| shortened(&key)).collect(), ..self }
    }
}

/// The beginning of an example. Control characters of the data could steer a terminal, so they are escaped.
fn shortened(key: &str) -> String {
    let key = shown(key.as_bytes());
    match key.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", key.get(..end).unwrap_or_default()),
        None => key,
    }
}

/// Most examples of a finding.
const EXAMPLES: usize = 3;
/// Most characters of an example.
const LONGEST: usize = 100;
