//! Signals: the first SIGINT or SIGTERM asks a run to stop, the second ends the process as by default.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use tidetable_runner::Stop;

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
