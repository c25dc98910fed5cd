//! Threads that plan queries: functions learn that a constant is computed while a query is planned, and long rules that
//! nobody waits for their plan.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::error::{DataFusionError, Result};

thread_local! {
    /// On a planning thread: whether its caller no longer waits.
    static ABANDONED: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// The caller of a query no longer waits for its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("planning was given up")]
pub struct Abandoned;

/// Marks this thread as one that plans queries, until it ends. `abandoned` is set when its caller no longer waits.
pub fn mark_planning_thread(abandoned: Arc<AtomicBool>) {
    ABANDONED.set(Some(abandoned));
}

/// Whether this thread plans queries.
pub fn is_planning_thread() -> bool {
    ABANDONED.with_borrow(Option::is_some)
}

/// Fails on a planning thread whose caller no longer waits.
///
/// # Errors
/// [`Abandoned`], as an external error of DataFusion.
pub fn check_abandoned() -> Result<()> {
    let is_abandoned = ABANDONED.with_borrow(|flag| flag.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)));
    if is_abandoned { Err(DataFusionError::External(Box::new(Abandoned))) } else { Ok(()) }
}
