//! Threads of one step. A panic in one of them is a panic of the step, and ends at the boundary of the run.

use std::thread::ScopedJoinHandle;

/// Waits for a thread and gives its result, or goes on with its panic.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
