//! The order in which announced scan ranges are read.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::read::scan_range::ScanRange;

/// Files and first key of a scan range.
type Place = (Vec<String>, Vec<u8>);

/// The range that a task reads after another.
#[derive(Debug, Default)]
pub(super) struct NextRanges {
    after: Mutex<HashMap<Place, ScanRange>>,
}

fn place(range: &ScanRange) -> Place {
    (range.ssts.clone(), range.keys.start.clone())
}

impl NextRanges {
    /// Notes ranges that are read one after the other.
    pub(super) fn note(&self, ranges: &[ScanRange]) {
        let mut after = self.after.lock().unwrap_or_else(PoisonError::into_inner);
        for pair in ranges.windows(2) {
            if let [range, next] = pair {
                after.insert(place(range), next.clone());
            }
        }
    }

    /// The range that follows `range`; it is told once.
    pub(super) fn after(&self, range: &ScanRange) -> Option<ScanRange> {
        self.after.lock().unwrap_or_else(PoisonError::into_inner).remove(&place(range))
    }
}
