//! Tasks of a server. A panic in one, of a library or by a fault of ours, is an error of it, and the server goes on.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use tidetable_source::panics::{Panicked, catch};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::error::{Result, ServingError};

/// Does `work`, and returns a panic in it as an error, which is logged, too. What `work` changes must be sound if it ends anywhere.
///
/// # Errors
/// If `work` panics.
pub async fn caught<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut work = pin!(work);
    let done = poll_fn(|context| match catch(|| work.as_mut().poll(context)) {
        Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(panicked) => Poll::Ready(Err(panicked)),
    })
    .await;
    done.inspect_err(log)
}

/// Tells the operator of a panic: the client that is told has no way to mend it.
pub(crate) fn log(panicked: &Panicked) {
    tracing::error!("{panicked}");
}

/// A task that ends when nobody waits for it any longer.
#[derive(Debug)]
pub struct Task<T>(JoinHandle<Result<T, Panicked>>);

impl<T: Send + 'static> Task<T> {
    /// Begins `work` in a runtime.
    pub fn spawn(runtime: &Handle, work: impl Future<Output = T> + Send + 'static) -> Self {
        Self(runtime.spawn(caught(work)))
    }

    /// Waits for what the task returns. Dropping this ends the task when it next waits.
    ///
    /// # Errors
    /// If it panics, or its runtime ends before.
    pub async fn result(mut self) -> Result<T> {
        match (&mut self.0).await {
            Ok(done) => Ok(done?),
            Err(_) => Err(ServingError::Ended),
        }
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::runtime::{Builder, Runtime};
    use tokio::sync::oneshot;

    use super::*;

    fn runtime() -> Runtime {
        Builder::new_multi_thread().worker_threads(1).build().unwrap()
    }

    #[test]
    fn a_panic_is_an_error_of_its_task_only() {
        let runtime = runtime();
        let task = Task::spawn(runtime.handle(), async {
            tokio::task::yield_now().await;
            panic!("no way")
        });
        let error = runtime.block_on(task.result()).map(|()| "done").unwrap_err();
        assert!(matches!(&error, ServingError::Panicked(panicked) if panicked.message == "no way"), "{error}");
        assert!(error.to_string().contains("please report this line"), "{error}");
        assert_eq!(runtime.block_on(Task::spawn(runtime.handle(), async { 7 }).result()).unwrap(), 7);
    }

    #[test]
    fn a_task_ends_when_nobody_waits() {
        let runtime = runtime();
        let (held, released) = oneshot::channel::<()>();
        let task = Task::spawn(runtime.handle(), async move {
            let _held = held;
            pending::<()>().await;
        });
        drop(task);
        assert!(runtime.block_on(released).is_err());
    }
}
