//! Plans queries on threads of their own.
//!
//! The parser's tree, DataFusion's rules and the creation of a plan recurse as deep as an expression or a plan is, and a
//! thread of a runtime has two megabytes of stack. Planning also takes no pauses, so that a future that plans cannot be
//! dropped meanwhile. Here it has a thread with a large stack, of which the system provides what is used; a caller that
//! no longer waits is answered at once, and the thread ends at the next rule of the optimizer.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;

use datafusion::error::DataFusionError;
use futures::channel::oneshot;
use tidetable_functions::{is_planning_thread, mark_planning_thread};
use tokio::runtime::Handle;

use crate::error::{Result, SqlError, external};

/// Stack of a planning thread, bytes: address space, of which the system provides the pages that are used.
const STACK_BYTES: usize = 1 << 29;
/// Bytes of text up to which statements are parsed on the stack of the caller.
const MAX_SHALLOW_TEXT: usize = 512;

/// Runs `work` on a planning thread, in the tokio runtime of the caller if there is one. Dropping the future abandons the
/// thread.
///
/// # Errors
/// Those of `work`, and if the thread cannot be started or panics.
pub(crate) async fn plan_on_thread<T, F>(work: impl FnOnce() -> F + Send + 'static) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T>>,
{
    let (sender, receiver) = oneshot::channel();
    let abandoned = Arc::new(AtomicBool::new(false));
    let waiting = Waiting(Arc::clone(&abandoned));
    let runtime = Handle::try_current();

    let plan = move || {
        mark_planning_thread(abandoned);
        let planned = match runtime {
            Ok(runtime) => runtime.block_on(work()),
            Err(_) => futures::executor::block_on(work()),
        };
        // Nobody may wait any longer.
        let _ = sender.send(planned);
    };
    let thread = Builder::new().name("planning".to_owned()).stack_size(STACK_BYTES).spawn(plan);
    thread.map_err(DataFusionError::from)?;

    let planned = receiver.await;
    drop(waiting);
    planned.unwrap_or(Err(SqlError::PlannerPanicked)).map_err(SqlError::of_planning)
}

/// Runs `work`, which parses `text`, on a thread with a large stack if the text is long.
///
/// # Errors
/// Those of `work`, and if the thread cannot be started or panics.
pub(crate) fn with_deep_stack<T, E>(text: &str, work: impl FnOnce() -> Result<T, E> + Send) -> Result<T, E>
where
    T: Send,
    E: From<DataFusionError> + Send,
{
    if text.len() <= MAX_SHALLOW_TEXT || is_planning_thread() {
        return work();
    }
    std::thread::scope(|scope| {
        let thread = Builder::new().name("parsing".to_owned()).stack_size(STACK_BYTES).spawn_scoped(scope, work);
        let thread = thread.map_err(DataFusionError::from)?;
        thread.join().unwrap_or_else(|_| Err(external(SqlError::PlannerPanicked).into()))
    })
}

/// A caller that waits for a planning thread; dropped, it marks the plan as abandoned.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures::FutureExt;
    use tidetable_functions::check_abandoned;

    use super::*;

    #[test]
    fn a_plan_that_nobody_waits_for_is_given_up() {
        let (told, ended) = mpsc::channel();
        let planning = plan_on_thread(move || async move {
            // As rules of an optimizer that have no end.
            let error = loop {
                if let Err(error) = check_abandoned() {
                    break error;
                }
                std::thread::yield_now();
            };
            told.send(SqlError::from(error).to_string()).unwrap();
            Ok(())
        });
        assert!(planning.now_or_never().is_none());
        assert_eq!(ended.recv().unwrap(), "planning was given up");
    }

    #[test]
    fn a_planner_that_panics_is_an_error() {
        let planned = futures::executor::block_on(plan_on_thread(|| async { panic!("a fault") as Result<()> }));
        assert!(matches!(planned.unwrap_err(), SqlError::PlannerPanicked));
        let long = "1 + ".repeat(200);
        let parsed = with_deep_stack::<(), SqlError>(&long, || panic!("a fault"));
        assert!(matches!(parsed.unwrap_err(), SqlError::PlannerPanicked));
    }

    #[test]
    fn planning_recurses_deeply() {
        fn depth(levels: usize) -> usize {
            let block = std::hint::black_box([levels; 64]);
            if block[63] == 0 { 0 } else { 1 + depth(block[0] - 1) }
        }
        let planned = futures::executor::block_on(plan_on_thread(|| async { Ok(depth(100_000)) }));
        assert_eq!(planned.unwrap(), 100_000);
        let parsed = with_deep_stack::<_, SqlError>(&"1 + ".repeat(200), || Ok(depth(100_000)));
        assert_eq!(parsed.unwrap(), 100_000);
    }
}
