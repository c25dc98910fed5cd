//! Counts repeated local times and cut digits while an expression is evaluated.

use std::cell::Cell;

use tidetable_source::TimeCounts;

thread_local! {
    /// Counts of this thread since [`counting_times`] began: an expression is evaluated on one thread.
    static COUNTS: Cell<TimeCounts> = const { Cell::new(TimeCounts { repeated: 0, cut: 0, nan: 0 }) };
}

/// The result of `work`, with the repeated local times and cut digits that were met in it on this thread.
pub fn counting_times<R>(work: impl FnOnce() -> R) -> (R, TimeCounts) {
    let before = COUNTS.replace(TimeCounts::default());
    let result = work();
    (result, COUNTS.replace(before))
}

/// Adds to the counts of the call of [`counting_times`] around it.
pub(crate) fn count_times(met: TimeCounts) {
    let mut counts = COUNTS.get();
    counts += met;
    COUNTS.set(counts);
}
