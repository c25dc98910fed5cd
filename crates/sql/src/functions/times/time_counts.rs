//! Counts times that are not quite what was written, while an expression is evaluated.

use std::cell::Cell;

use tidetable_source::TimeCounts;

thread_local! {
    /// Those of this thread, since [`counting_times`] began: an expression is evaluated on one.
    static COUNTS: Cell<TimeCounts> = const { Cell::new(TimeCounts { repeated: 0, cut: 0 }) };
}

/// What `work` gives, and the times that it met.
pub(crate) fn counting_times<R>(work: impl FnOnce() -> R) -> (R, TimeCounts) {
    let before = COUNTS.replace(TimeCounts::default());
    let result = work();
    (result, COUNTS.replace(before))
}

/// Counts times that were met.
pub(crate) fn count_times(met: TimeCounts) {
    let mut counts = COUNTS.get();
    counts += met;
    COUNTS.set(counts);
}
