//! Warnings about damaged files that are left out, so that damage affects only their content.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;

use crate::error::StoreError;

/// Warns, once per file, that an unreadable file is left out.
pub fn leave_out(error: &StoreError) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let text = error.to_string();
    if TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(text.clone()) {
        tracing::warn!("{text}; it is left out");
    }
}

/// The error for a file that is not a valid `what`; [`StoreError::Newer`] if it states a newer format, which is not
/// damage.
pub fn unreadable(path: &str, what: &'static str, known: u32, bytes: &[u8], reason: String) -> StoreError {
    match stated_format(bytes).filter(|format| *format > known) {
        Some(format) => StoreError::Newer { path: path.to_owned(), format, known },
        None => StoreError::Unreadable { path: path.to_owned(), what, reason },
    }
}

/// The `format` of a JSON object, whatever else it contains.
pub fn stated_format(bytes: &[u8]) -> Option<u32> {
    #[derive(Deserialize)]
    struct Stated {
        format: u32,
    }
    serde_json::from_slice::<Stated>(bytes).ok().map(|stated| stated.format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_newer_build_wrote_is_not_damaged() {
        let error = |bytes: &[u8]| unreadable("runs/a.json", "the record of a run", 2, bytes, "why".to_owned());
        assert!(matches!(error(b"{\"format\": 3, \"other\": []}"), StoreError::Newer { format: 3, known: 2, .. }));
        for damaged in [&b"{\"format\": 3, \"other\""[..], b"{\"format\": 2}", b"", b"{\"format\": \"x\"}"] {
            assert!(matches!(error(damaged), StoreError::Unreadable { .. }));
        }
    }
}
