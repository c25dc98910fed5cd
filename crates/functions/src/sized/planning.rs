//! Tells functions that constants are computed while a query is planned.

use std::cell::Cell;

thread_local! {
    static IS_PLANNING: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread as one that plans queries, until it ends.
pub fn mark_planning_thread() {
    IS_PLANNING.set(true);
}

/// Whether this thread plans queries.
pub(crate) fn is_planning() -> bool {
    IS_PLANNING.get()
}
