//! Rows that a layout cannot encode, counted by reason.

use std::collections::BTreeMap;
use std::sync::Mutex;

use tidetable_ingest::RejectedRow;

/// Rows that were rejected for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialReject {
    /// The layout; `None` if parsing or a derived column rejected them, for all layouts.
    pub layout: Option<String>,
    /// The column at fault, if known.
    pub column: Option<String>,
    /// What is wrong with them, as a run would report it.
    pub reason: String,
    /// The number of source rows.
    pub rows: u64,
    /// Raw text of one of them: the first by file and line.
    pub raw: String,
}

/// Layout, column and reason.
type Key = (Option<String>, Option<String>, String);
/// Number of rows; file, line and raw text of the first.
type Counted = (u64, (String, u64, String));

/// Counts rows as they are rejected, by several threads.
#[derive(Debug, Default)]
pub(super) struct Rejects {
    counts: Mutex<BTreeMap<Key, Counted>>,
}

impl Rejects {
    /// Counts a rejected row, and keeps its raw text if it is the first of its reason by file and line.
    pub(super) fn count(&self, row: &RejectedRow) {
        // Rejected rows do not unwind, so a poisoned list is complete.
        let mut counts = self.counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let key = (row.table.clone(), row.column.clone(), row.reason.clone());
        let place = (row.file.clone(), row.line, row.raw.clone());
        let (rows, first) = counts.entry(key).or_insert_with(|| (0, place.clone()));
        *rows += 1;
        if (&place.0, place.1) < (&first.0, first.1) {
            *first = place;
        }
    }

    /// What was counted, in the order of layouts, columns and reasons.
    pub(super) fn into_list(self) -> Vec<TrialReject> {
        let counts = self.counts.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut rejects = Vec::with_capacity(counts.len());
        for ((layout, column, reason), (rows, (_, _, raw))) in counts {
            rejects.push(TrialReject { layout, column, reason, rows, raw });
        }
        rejects
    }
}
