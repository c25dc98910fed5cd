//! Stripes of an SST that a scan did not read, counted by reason and told to the log once the scan ends.

use std::sync::Arc;

use crate::log::SstPlace;

/// Counts of the stripes of one SST that a scan skipped. When it is dropped it logs an event for each reason, also if the
/// scan ended early.
#[derive(Debug, Default)]
pub(super) struct SkippedStripes {
    /// Stripes that tombstones hide.
    pub(super) hidden: usize,
    /// Stripes whose statistics exclude the filter of the query.
    pub(super) pruned: usize,
    /// Stripes whose statistics answer the query.
    pub(super) answered: usize,
    /// Where the SST lies; `None` if the log does not ask.
    place: Option<Arc<SstPlace>>,
}

impl SkippedStripes {
    /// No stripes yet, of the SST at `place`.
    pub(super) fn of(place: Option<Arc<SstPlace>>) -> Self {
        Self { place, ..Self::default() }
    }
}

impl Drop for SkippedStripes {
    fn drop(&mut self) {
        let Some(place) = &self.place else { return };

        for (reason, stripes) in [
            ("tombstones hide all rows", self.hidden),
            ("statistics exclude the filter", self.pruned),
            ("statistics answer the query", self.answered),
        ] {
            if stripes > 0 {
                place.log_skipped_stripes(stripes, reason);
            }
        }
    }
}
