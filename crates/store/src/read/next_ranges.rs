//! The order in which announced scan ranges are read.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::read::scan_range::ScanRange;

/// Files and first key of a scan range.
type Place = (Vec<String>, Vec<u8>);

/// The ranges that a task reads after another.
#[derive(Debug, Default)]
pub(super) struct NextRanges {
    after: Mutex<HashMap<Place, Next>>,
}

#[derive(Debug)]
struct Next {
    range: ScanRange,
    is_told: bool,
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
                after.insert(place(range), Next { range: next.clone(), is_told: false });
            }
        }
    }

    /// Of the `count` ranges that follow `range`, those that were not told before.
    pub(super) fn after(&self, range: &ScanRange, count: usize) -> Vec<ScanRange> {
        let mut after = self.after.lock().unwrap_or_else(PoisonError::into_inner);
        let mut told = Vec::new();
        let Some(mut next) = after.remove(&place(range)) else { return told };
        for _ in 1..count {
            if !next.is_told {
                told.push(next.range.clone());
            }
            let Some(later) = after.get_mut(&place(&next.range)) else { return told };
            next = Next { range: later.range.clone(), is_told: std::mem::replace(&mut later.is_told, true) };
        }
        if !next.is_told {
            told.push(next.range);
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use tidetable_layout::KeyRange;

    use super::*;

    #[test]
    fn each_range_is_told_once() {
        let range =
            |number: u32| ScanRange { keys: KeyRange::all(), ssts: vec![number.to_string()], time: 0..1, bytes: 1 };
        let next = NextRanges::default();
        next.note(&(0..6).map(range).collect::<Vec<_>>());
        let after = |number, count| -> Vec<String> {
            next.after(&range(number), count).into_iter().flat_map(|range| range.ssts).collect()
        };
        assert_eq!(after(0, 3), ["1", "2", "3"]);
        assert_eq!(after(1, 3), ["4"]);
        assert_eq!(after(2, 1), Vec::<String>::new());
        assert_eq!(after(3, 3), ["5"]);
        assert_eq!(after(3, 3), Vec::<String>::new());
        assert_eq!(after(5, 3), Vec::<String>::new());
    }
}
