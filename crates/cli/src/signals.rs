//! Signals: the first SIGINT or SIGTERM asks a run to stop, the second ends the process as by default. SIGINT ends a statement.

use std::future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use futures::channel::oneshot::{self, Receiver};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use tidetable_runner::Stop;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// Installs the handlers. Returns the stop flag.
pub fn stop_on_signals() -> io::Result<Stop> {
    let stop = Stop::default();
    let again = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag unset and sets it for the second.
        flag::register_conditional_default(signal, Arc::clone(&again))?;
        flag::register(signal, Arc::clone(&again))?;
        flag::register_usize(signal, Arc::clone(stop.signal()), signal.unsigned_abs() as usize)?;
    }
    Ok(stop)
}

/// A thread that waits for SIGINT until this is dropped. The threads of a runtime look for signals when they have nothing to
/// do: while queries keep all of them busy, seconds late.
pub struct Interrupt(Receiver<()>);

impl Interrupt {
    /// Waits from now on.
    ///
    /// # Errors
    /// If the handler cannot be installed or the thread cannot be started.
    pub fn watch() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let mut interrupt = {
            let _entered = runtime.enter();
            signal(SignalKind::interrupt())?
        };
        let (mut sender, receiver) = oneshot::channel();
        thread::Builder::new().name("interrupt".to_owned()).spawn(move || {
            let received = runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => true,
                    () = sender.cancellation() => false,
                }
            });
            if received {
                // The statement may have ended just now.
                let _ = sender.send(());
            }
        })?;
        Ok(Self(receiver))
    }

    /// Returns when SIGINT is received.
    pub async fn received(&mut self) {
        if (&mut self.0).await.is_err() {
            future::pending().await
        }
    }
}
