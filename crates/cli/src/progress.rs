//! Progress of a run: a bar on a terminal, plain lines otherwise. Always on standard error.

use std::io::IsTerminal;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use tidetable_runner::observe::{Event, Unit};
use tidetable_runner::{Observer, Stop};

use crate::args::{Global, Log};
use crate::log;
use crate::output::values::count;
use crate::terminal::hints;
use crate::terminal::printable::printable;

/// Interval of plain lines of one stage.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// Poll interval for a request to stop.
const PAUSE: Duration = Duration::from_millis(50);
/// Parts that were not published for one cause and have a line each.
const EACH: u64 = 3;
/// Steps of the bar, finer than its columns.
const PARTS: u64 = 1000;
/// Columns for the name of a stage.
const NAME: usize = 24;
/// Fits 80 columns: the message takes the remaining width, and is truncated.
const BAR: &str = "{prefix} [{bar:20}] {percent:>3} % {elapsed:>4} {wide_msg}";
const SPINNER: &str = "{prefix} {spinner} {elapsed} {wide_msg}";

/// Shows the events of a run.
pub struct Watcher {
    shown: Arc<Shown>,
    stage: Mutex<Stage>,
    missed: Mutex<Missed>,
    verbose: bool,
    /// Reports a request to stop at once, as stopping may take a while. Ends when the sender is dropped.
    stopping: Option<(Sender<()>, JoinHandle<()>)>,
}

struct Shown {
    bar: Option<ProgressBar>,
    log: Log,
    quiet: bool,
}

/// The progress of a stage.
#[derive(Debug)]
struct Stage {
    name: String,
    unit: Unit,
    /// Bytes or parts, by the unit; 0 if the stage has none.
    total: u64,
    done: u64,
    /// Rows read so far, before they are filtered or rejected.
    rows: u64,
    /// Rows encoded for tables, and those sorted and written since.
    laid: u64,
    written: u64,
    begun: Instant,
    told: Instant,
}

impl Watcher {
    /// A watcher for the kind of standard error and the options.
    pub fn new(global: &Global, stop: &Stop) -> Self {
        let on_terminal = global.log == Log::Text && !global.quiet && std::io::stderr().is_terminal();
        let shown =
            Arc::new(Shown { bar: on_terminal.then(ProgressBar::new_spinner), log: global.log, quiet: global.quiet });
        let (ended, when) = mpsc::channel();
        let (watched, stop) = (Arc::clone(&shown), stop.clone());
        let stopping = std::thread::Builder::new().spawn(move || watched.tell_stop(&stop, &when)).ok();
        let stage = Mutex::new(Stage::new(String::new(), Unit::None, 0));
        let missed = Mutex::default();
        Self { shown, stage, missed, verbose: global.verbose, stopping: stopping.map(|thread| (ended, thread)) }
    }

    /// Ends the watcher, and removes the bar from the terminal.
    pub fn finish(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some((ended, thread)) = self.stopping.take() {
            drop(ended);
            let _ = thread.join();
        }
        self.tell_missed();
        if let Some(bar) = &self.shown.bar {
            bar.finish_and_clear();
        }
    }

    /// Tells how many parts were not published besides those that have a line each.
    fn tell_missed(&self) {
        let missed = std::mem::take(&mut *self.missed.lock().unwrap_or_else(PoisonError::into_inner));
        missed.more().iter().for_each(|text| self.shown.line(text));
    }

    fn begin(&self, name: String, unit: Unit, total: u64) {
        self.tell_missed();
        let known = unit != Unit::None && total > 0;
        if let Some(bar) = &self.shown.bar {
            bar.set_style(style(if known { BAR } else { SPINNER }));
            bar.set_prefix(cut(&printable(&name)));
            bar.set_message("");
            bar.set_length(PARTS);
            bar.reset();
            bar.enable_steady_tick(Duration::from_millis(100));
        } else if known {
            self.shown.line(&name);
        }
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = Stage::new(name, unit, total);
    }

    fn advance(&self, how: impl FnOnce(&mut Stage)) {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        how(&mut stage);
        if let Some(bar) = &self.shown.bar {
            bar.set_position((stage.fraction() * PARTS as f64) as u64);
            bar.set_message(stage.figures(stage.begun.elapsed()).0);
        } else if stage.told.elapsed() >= LINE_EVERY {
            stage.told = Instant::now();
            let text = stage.line(stage.begun.elapsed());
            drop(stage);
            self.shown.line(&text);
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shown {
    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| log::print_message(self.log, self.quiet, text)),
            None => log::print_message(self.log, self.quiet, text),
        }
    }

    /// Waits for the end of the run, and reports a request to stop before it.
    fn tell_stop(&self, stop: &Stop, ended: &Receiver<()>) {
        while ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
            if stop.asked().is_some() {
                self.line("stopping: what is committed stays; once more ends it without cleaning up");
                return;
            }
        }
    }
}

/// Parts that were not published, by cause: a full disk or a lost lease stops many of them.
#[derive(Debug, Default)]
struct Missed {
    causes: Vec<(String, u64)>,
}

impl Missed {
    /// Adds a part; whether it is one of the first with this cause, which have a line each.
    fn add(&mut self, name: &str, reason: &str) -> bool {
        let cause = reason.replace(name, "..");
        let at = self.causes.iter().position(|(known, _)| *known == cause).unwrap_or_else(|| {
            self.causes.push((cause, 0));
            self.causes.len() - 1
        });
        let number = &mut self.causes[at].1;
        *number += 1;
        *number <= EACH
    }

    /// A line for each cause with more parts.
    fn more(&self) -> Vec<String> {
        let more = self.causes.iter().filter_map(|(cause, number)| Some((cause, number.checked_sub(EACH)?)));
        let line =
            |(cause, more): (&String, u64)| format!("{} not published either: {cause}", count(more, "more part"));
        more.filter(|(_, more)| *more > 0).map(line).collect()
    }
}

impl Stage {
    fn new(name: String, unit: Unit, total: u64) -> Self {
        let now = Instant::now();
        Self { name, unit, total, done: 0, rows: 0, laid: 0, written: 0, begun: now, told: now }
    }

    /// The progress from 0 to 1. Reading bytes is half of a load, sorting and writing the other half.
    fn fraction(&self) -> f64 {
        let done = (self.done as f64 / self.total.max(1) as f64).min(1.0);
        match self.unit {
            Unit::Bytes if self.laid > 0 => done * (0.5 + 0.5 * (self.written as f64 / self.laid as f64).min(1.0)),
            Unit::Bytes => done * 0.5,
            Unit::Parts | Unit::None => done,
        }
    }

    /// The rate for the bar, and the totals for a line.
    fn figures(&self, elapsed: Duration) -> (String, String) {
        let seconds = elapsed.as_secs_f64().max(0.001);
        match self.unit {
            Unit::Bytes if self.rows > 0 => {
                let rate = format!("{}/s", count((self.rows as f64 / seconds) as u64, "row"));
                (rate.clone(), format!(", {}, {rate}", count(self.rows, "row")))
            }
            Unit::Parts => {
                let (done, total, rate) = (self.done, count(self.total, "part"), self.done as f64 / seconds);
                (format!("{done}/{}, {rate:.1}/s", self.total), format!(", {done} of {total}, {rate:.1}/s"))
            }
            Unit::Bytes | Unit::None => Default::default(),
        }
    }

    fn line(&self, elapsed: Duration) -> String {
        format!("{}: {:.0} %{}", self.name, self.fraction() * 100.0, self.figures(elapsed).1)
    }
}

impl Observer for Watcher {
    fn completed(&self, text: &str) -> String {
        hints::completed(text).into_owned()
    }

    fn event(&self, event: Event) {
        match event {
            Event::Stage { name, unit, total } => self.begin(name, unit, total),
            Event::Read { bytes, rows } => self.advance(|stage| {
                stage.done += bytes;
                stage.rows += rows;
            }),
            Event::Laid { rows } => self.advance(|stage| stage.laid += rows),
            Event::Wrote { rows } => self.advance(|stage| stage.written += rows),
            Event::Plan(plan) => plan.lines().iter().for_each(|text| self.shown.line(&format!("plan: {text}"))),
            Event::Published { .. } => self.advance(|stage| stage.done += 1),
            Event::Missed { name, reason } => {
                let is_new = self.missed.lock().unwrap_or_else(PoisonError::into_inner).add(&name, &reason);
                if is_new || self.verbose {
                    self.shown.line(&format!("{name} is not published: {reason}"));
                }
                self.advance(|stage| stage.done += 1);
            }
            Event::ReadTogether { export, parts, reads } if self.verbose => {
                let times = if reads == 1 { "once".to_owned() } else { format!("{reads} times") };
                self.shown.line(&format!("{export}: files that {parts} parts share were read {times}"));
            }
            Event::Note(text) => self.shown.line(&text),
            _ => {}
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
}

/// The name of a stage, shortened; of several tables the others are counted, as in `load SENSOR and 2 more`.
fn cut(name: &str) -> String {
    if name.chars().count() <= NAME {
        return name.to_owned();
    }
    let (first, rest) = name.split_once(", ").map_or((name, ""), |(first, rest)| (first, rest));
    let more = match rest {
        "" => String::new(),
        rest => format!(" and {} more", rest.split(", ").count()),
    };
    let room = NAME.saturating_sub(more.chars().count());
    if first.chars().count() <= room {
        return format!("{first}{more}");
    }
    let start: String = first.chars().take(room.saturating_sub(2)).collect();
    format!("{start}..{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_done_when_its_rows_are_written() {
        let mut stage = Stage::new("load T".to_owned(), Unit::Bytes, 1000);
        let second = Duration::from_secs(1);
        assert_eq!((stage.fraction(), stage.line(second)), (0.0, "load T: 0 %".to_owned()));
        stage.done = 800;
        assert_eq!(stage.line(second), "load T: 40 %", "read ahead, and no row yet");
        (stage.rows, stage.laid) = (4000, 8000);
        assert_eq!(stage.line(2 * second), "load T: 40 %, 4,000 rows, 2,000 rows/s");
        // Sorting and writing go on while reading rests.
        stage.written = 4000;
        assert!((stage.fraction() - 0.6).abs() < 1e-9);
        (stage.done, stage.laid, stage.written) = (1200, 10_000, 10_000);
        assert_eq!(stage.fraction(), 1.0);
    }

    #[test]
    fn many_parts_with_one_cause_have_one_line() {
        let mut missed = Missed::default();
        let full = |day: u32| (format!("E_{day}"), format!("cannot write exports/E_{day}/part-0: no space"));
        let told: Vec<bool> = (1..=25).map(full).map(|(name, why)| missed.add(&name, &why)).collect();
        assert_eq!(told.iter().filter(|told| **told).count(), 3);
        assert!(missed.add("E_26", "its checks failed"));
        assert_eq!(missed.more(), ["22 more parts not published either: cannot write exports/../part-0: no space"]);
    }

    #[test]
    fn what_is_published_has_no_rows_to_count() {
        let mut stage = Stage::new("publish DAY".to_owned(), Unit::Parts, 1000);
        stage.done = 790;
        let line = stage.line(Duration::from_secs(10));
        assert_eq!(line, "publish DAY: 79 %, 790 of 1,000 parts, 79.0/s");
    }

    #[test]
    fn the_bar_fits_80_columns() {
        let name = cut("load CURRENT_METRIC, SENSOR_BY_METER, SENSOR_BY_DAY");
        assert_eq!(name, "load CURREN.. and 2 more");
        assert_eq!(name.chars().count(), NAME);
        assert_eq!(cut("load SENSOR, SENSOR_BY_METER"), "load SENSOR and 1 more");
        assert_eq!(cut("load A_TABLE_OF_A_VERY_LONG_NAME"), "load A_TABLE_OF_A_VERY..");
        let fixed = BAR.replace("{prefix}", &name).replace("{bar:20}", &"=".repeat(20)).replace("{percent:>3}", "100");
        let fixed = fixed.replace("{elapsed:>4}", " 59s").replace("{wide_msg}", "");
        let mut load = Stage::new(String::new(), Unit::Bytes, 1);
        load.rows = 99_999_999;
        let mut publish = Stage::new(String::new(), Unit::Parts, 10_000);
        publish.done = 9_999;
        for stage in [load, publish] {
            let (figure, _) = stage.figures(Duration::from_secs(10));
            assert!(format!("{fixed}{figure}").chars().count() <= 80, "{fixed}{figure}");
        }
    }
}
