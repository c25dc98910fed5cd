//! How far a run is: a bar on a terminal, plain lines otherwise. Always on standard error.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use tidetable_runner::{Event, Observer};

use crate::args::Log;

/// Between two plain lines of one stage.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows the events of a run.
pub struct Watcher {
    bar: Option<ProgressBar>,
    log: Log,
    verbose: bool,
    rows: AtomicU64,
    stage: Mutex<Stage>,
}

struct Stage {
    name: String,
    total: u64,
    done: u64,
    begun: Instant,
    told: Instant,
}

impl Watcher {
    /// A watcher that suits standard error; a verbose one tells more.
    pub fn new(log: Log, verbose: bool) -> Self {
        let bar = (log == Log::Text && std::io::stderr().is_terminal()).then(ProgressBar::new_spinner);
        let now = Instant::now();
        let stage = Stage { name: String::new(), total: 0, done: 0, begun: now, told: now };
        Self { bar, log, verbose, rows: AtomicU64::new(0), stage: Mutex::new(stage) }
    }

    /// Takes the bar off the screen.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.print(text)),
            None => self.print(text),
        }
    }

    /// A closed standard error leaves nobody to tell.
    fn print(&self, text: &str) {
        let mut stderr = std::io::stderr().lock();
        let _ = match self.log {
            Log::Text => writeln!(stderr, "{text}"),
            Log::Json => writeln!(stderr, "{}", serde_json::json!({ "level": "info", "message": text })),
        };
    }

    fn begin(&self, name: String, total: u64) {
        if total == 0 {
            return;
        }
        self.rows.store(0, Ordering::Relaxed);
        if let Some(bar) = &self.bar {
            bar.set_style(style(&name));
            bar.reset();
            bar.set_length(total);
            bar.set_position(0);
            bar.set_prefix(name.clone());
            bar.enable_steady_tick(Duration::from_millis(100));
        } else {
            self.line(&name);
        }
        let now = Instant::now();
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) =
            Stage { name, total, done: 0, begun: now, told: now };
    }

    fn advance(&self, done: u64, rows: u64) {
        let rows = self.rows.fetch_add(rows, Ordering::Relaxed) + rows;
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        stage.done += done;
        let rate = rows as f64 / stage.begun.elapsed().as_secs_f64().max(0.001);
        if let Some(bar) = &self.bar {
            bar.set_position(stage.done);
            if rows > 0 {
                bar.set_message(format!("{}/s", count(rate as u64, "row")));
            }
        } else if stage.told.elapsed() >= LINE_EVERY {
            stage.told = Instant::now();
            let percent = stage.done as f64 * 100.0 / stage.total.max(1) as f64;
            let text =
                format!("{}: {percent:.0} %, {}, {}/s", stage.name, count(rows, "row"), count(rate as u64, "row"));
            drop(stage);
            self.line(&text);
        }
    }
}

impl Observer for Watcher {
    fn event(&self, event: Event) {
        match event {
            Event::Stage { name, total } => self.begin(name, total),
            Event::Read { bytes, rows } => self.advance(bytes, rows),
            Event::Plan(plan) => plan.lines().iter().for_each(|line| self.line(&format!("plan: {line}"))),
            Event::Published { .. } => self.advance(1, 0),
            Event::Missed { name, reason } => {
                self.line(&format!("{name} is not published: {reason}"));
                self.advance(1, 0);
            }
            Event::ReadTogether { export, parts, reads } if self.verbose => {
                let times = if reads == 1 { "once".to_owned() } else { format!("{reads} times") };
                self.line(&format!("{export}: files that {parts} parts share were read {times}"));
            }
            Event::Note(text) => self.line(&text),
            _ => {}
        }
    }
}

fn style(name: &str) -> ProgressStyle {
    let bytes = name.starts_with("load");
    let amount = if bytes { "{bytes}/{total_bytes}" } else { "{pos}/{len}" };
    ProgressStyle::with_template(&format!("{{prefix}} [{{bar:30}}] {amount} {{msg}} {{elapsed}}"))
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

/// `1 row`, `7,200 rows`.
pub fn count(number: u64, noun: &str) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    let plural = if number == 1 { "" } else { "s" };
    format!("{text} {noun}{plural}")
}

/// Bytes with a unit: `1.4 KiB`.
pub fn bytes(number: u64) -> String {
    indicatif::HumanBytes(number).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_commas() {
        assert_eq!(count(1, "row"), "1 row");
        assert_eq!(count(999, "row"), "999 rows");
        assert_eq!(count(7200, "row"), "7,200 rows");
        assert_eq!(count(19_200_000, "cell"), "19,200,000 cells");
    }
}
