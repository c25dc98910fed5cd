//! A sign of life of commands that work for long without stages: a spinner on a terminal, else a line now and then.
//! Always on standard error.

use std::io::IsTerminal;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::args::{Global, Log};
use crate::log;

/// Work that ends sooner shows nothing.
const PATIENCE: Duration = Duration::from_millis(700);
/// Interval of lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// Interval in which the spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// Work in progress. Dropped before results are written.
pub struct Activity {
    shown: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Activity {
    /// Begins to show `what` is done, such as `reading readings.parquet`.
    pub fn begin(global: &Global, what: &str) -> Self {
        let (ended, end) = mpsc::channel();
        let (what, log, quiet) = (what.to_owned(), global.log, global.quiet);
        let on_terminal = log == Log::Text && std::io::stderr().is_terminal();
        let show = move || match on_terminal {
            true => spin(&what, &end),
            false => say(&what, LINE_EVERY, &end, |line| log::print_message(log, false, line)),
        };
        let thread = if quiet { None } else { std::thread::Builder::new().spawn(show).ok() };
        Self { shown: thread.map(|thread| (ended, thread)) }
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        if let Some((ended, thread)) = self.shown.take() {
            drop(ended);
            let _ = thread.join();
        }
    }
}

/// Shows a spinner with the time until the work ends.
fn spin(what: &str, end: &Receiver<()>) {
    if end.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}");
    let bar = ProgressBar::new_spinner().with_elapsed(PATIENCE);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.set_message(what.to_owned());
    while end.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
        bar.tick();
    }
    bar.finish_and_clear();
}

/// Prints a line in each interval until the work ends.
fn say(what: &str, interval: Duration, end: &Receiver<()>, mut print: impl FnMut(&str)) {
    let begun = Instant::now();
    while end.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
        print(&format!("{what}: {} s", begun.elapsed().as_secs()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_goes_on_is_said_until_it_ends() {
        let (ended, end) = mpsc::channel();
        let mut ended = Some(ended);
        let mut lines = Vec::new();
        say("reading a.csv", Duration::from_millis(1), &end, |line| {
            lines.push(line.to_owned());
            if lines.len() == 3 {
                ended.take();
            }
        });
        assert_eq!(lines, ["reading a.csv: 0 s"; 3]);
    }

    #[test]
    fn work_that_ends_soon_says_nothing() {
        let (ended, end) = mpsc::channel();
        drop(ended);
        say("reading a.csv", LINE_EVERY, &end, |line| panic!("{line}"));
        spin("reading a.csv", &end);
    }
}
