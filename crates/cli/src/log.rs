//! Lines on standard error. If it is no terminal, lines of commands that run jobs start with the time and the run, for
//! log files; lines of servers start with the time and the level everywhere. JSON objects always have all of it.
//!
//! A closed standard error is no failure.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Map, Value, json};
use tidetable_runner::without_passwords;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;
use unicode_width::UnicodeWidthStr;

use crate::args::Log;
use crate::terminal::hints;
use crate::terminal::printable::message;
use crate::terminal::wrap::sentence_lines;

/// The prefix of warnings.
const WARNING: &str = "warning: ";

static STAMP: Mutex<Stamp> = Mutex::new(Stamp { lines: false, time: false, level: false, run: None });

/// The prefix of lines.
#[derive(Debug, Clone)]
struct Stamp {
    /// Whether lines of text have a prefix.
    lines: bool,
    /// Whether the prefix has the time, besides the run.
    time: bool,
    /// Whether messages have a level, as logs of libraries do.
    level: bool,
    /// The run that lines are about, once it has a name.
    run: Option<String>,
}

/// From now on, prefixes lines of text with the time and the run, if standard error is no terminal. Without the time if
/// it is the journal of systemd, which adds it.
pub fn stamp_lines() {
    change(|stamp| (stamp.lines, stamp.time) = (!io::stderr().is_terminal(), !is_journal()));
}

/// What Ballista says of errors, and of its end by a signal, that a command or another line tells in a sentence.
const TOLD: [&str; 7] = [
    "Executor registration failed due to",
    "Fail to update heartbeat to its registration scheduler",
    "executor received terminate signal",
    "executor received ctrl-c event",
    "setting executor to TERMINATING status",
    "error sending heartbeat with fenced status",
    "ExecutorStopped grpc failed",
];

/// Characters of a log of a library that a server shows.
const LONGEST: usize = 300;

/// For how long a server, or a warning on a terminal, does not say the same again.
const AGAIN: Duration = Duration::from_secs(60);

static LATELY: Mutex<Lately> = Mutex::new(Lately(Vec::new()));

/// What a server has said lately, and when.
#[derive(Debug)]
struct Lately(Vec<(String, Instant)>);

impl Lately {
    /// Whether `text` was said within [`AGAIN`]; from now on it was.
    fn has(&mut self, text: &str, now: Instant) -> bool {
        self.0.retain(|(_, then)| now.duration_since(*then) < AGAIN);
        if self.0.iter().any(|(said, _)| said == text) {
            return true;
        }
        self.0.push((text.to_owned(), now));
        false
    }
}

/// Whether a log of a library tells what is told already. One that waits for another process says so twice a second.
fn is_told(text: &str) -> bool {
    if !stamp().level {
        return false;
    }
    TOLD.iter().any(|told| text.contains(told))
        || LATELY.lock().unwrap_or_else(PoisonError::into_inner).has(text, Instant::now())
}

/// From now on, prefixes lines of text with the time and the level, as for a process that stays. Without the time in the
/// journal of systemd.
pub fn stamp_lines_of_server() {
    change(|stamp| (stamp.lines, stamp.time, stamp.level) = (true, !is_journal(), true));
}

/// Sets the current run.
pub fn about_run(run: &str) {
    change(|stamp| stamp.run = Some(run.to_owned()));
}

/// Writes a message; if `quiet`, only a warning.
pub fn print_message(log: Log, quiet: bool, text: &str) {
    let warning = text.strip_prefix(WARNING);
    match (log, warning) {
        (_, None) if quiet => {}
        (Log::Json, None) => write_object(json!({ "level": "info", "message": text })),
        (Log::Json, Some(text)) => write_object(json!({ "level": "warn", "message": text })),
        (Log::Text, _) if stamp().level => {
            let level = if warning.is_some() { "WARN" } else { "INFO" };
            write_text(&format!("{level:>5} {}", warning.unwrap_or(text)));
        }
        (Log::Text, _) => write_text(text),
    }
}

/// Writes text of one or more lines, with the place of this command in the commands that it names. On a terminal, sentences are
/// wrapped.
pub fn write_text(text: &str) {
    let stamp = stamp().prefix();
    let completed = hints::completed(text);
    let safe = without_passwords(&completed);
    let text = message(&safe, io::stderr().is_terminal());

    let width = screen_width().filter(|_| stamp.is_empty());
    let lines = text.lines().flat_map(|line| match width {
        Some(width) => sentence_lines(line, width),
        None => vec![line.to_owned()],
    });
    let stamped: String = lines.map(|line| format!("{stamp}{line}\n")).collect();
    let _ = io::stderr().lock().write_all(stamped.as_bytes());
}

/// Whether a line of a text is wider than the terminal of standard error.
pub fn is_wider_than_screen(text: &str) -> bool {
    screen_width().is_some_and(|width| text.lines().any(|line| line.width() > width))
}

/// The width of standard error, if it is a terminal.
fn screen_width() -> Option<usize> {
    let stderr = io::stderr();
    let size = terminal_size::terminal_size_of(&stderr).filter(|_| stderr.is_terminal());
    size.map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0)
}

/// Writes an object with the time and the run, and with the place of this command in the commands that it names.
pub fn write_object(object: Value) {
    let Value::Object(mut fields) = object else { return };
    for key in ["message", "help"] {
        if let Some(Value::String(text)) = fields.get_mut(key) {
            *text = without_passwords(&hints::completed(text)).into_owned();
        }
    }
    fields.insert("ts".to_owned(), now().into());
    if let Some(run) = stamp().run {
        fields.insert("run".to_owned(), run.into());
    }
    let _ = writeln!(io::stderr().lock(), "{}", Value::Object(fields));
}

impl Stamp {
    fn prefix(&self) -> String {
        if !self.lines {
            return String::new();
        }
        let time = self.time.then(now);
        let words = [time.as_deref(), self.run.as_deref()];
        words.into_iter().flatten().map(|word| format!("{word} ")).collect()
    }
}

fn change(how: impl FnOnce(&mut Stamp)) {
    how(&mut STAMP.lock().unwrap_or_else(PoisonError::into_inner));
}

fn stamp() -> Stamp {
    STAMP.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn now() -> String {
    // Unlike `Utc::now`, this does not panic for a clock before 1970.
    DateTime::<Utc>::from(SystemTime::now()).to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Whether standard error is the journal: the variable has the device and inode of the stream, and is inherited by
/// programs that write elsewhere.
#[cfg(unix)]
fn is_journal() -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;

    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    let Ok(stderr) = io::stderr().as_fd().try_clone_to_owned() else { return false };
    let found = std::fs::File::from(stderr).metadata();
    found.is_ok_and(|found| stream == format!("{}:{}", found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn is_journal() -> bool {
    false
}

/// The writer for logs of libraries.
#[derive(Debug, Clone, Copy)]
pub struct Lines;

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        *self
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        if is_told(&text) {
            return Ok(bytes.len());
        }
        // Ballista prints whole structures.
        match stamp().level && std::env::var_os("RUST_LOG").is_none() {
            true => write_text(&cut(text.trim_end())),
            false => write_text(&text),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The beginning of a log of a library, as a server shows it.
fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} .. (RUST_LOG=info shows all)", text.get(..end).unwrap_or(text)).into(),
        None => text.into(),
    }
}

/// Formats logs of libraries as JSON objects.
#[derive(Debug, Clone, Copy)]
pub struct Objects;

impl<S, N> FormatEvent<S, N> for Objects
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, _: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut fields = Fields(Map::new());
        event.record(&mut fields);
        if fields.0.get("message").and_then(Value::as_str).is_some_and(is_told) {
            return Ok(());
        }
        let meta = event.metadata();
        fields.0.insert("level".to_owned(), meta.level().as_str().to_ascii_lowercase().into());
        fields.0.insert("target".to_owned(), meta.target().into());
        write_object(Value::Object(fields.0));
        Ok(())
    }
}

/// Formats logs of libraries where no server writes them: a warning is a sentence, with its cause if it has one; what is asked for with
/// `--verbose` or `RUST_LOG` keeps its level and target.
#[derive(Debug)]
pub struct Warnings;

impl<S, N> FormatEvent<S, N> for Warnings
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        if *event.metadata().level() > Level::WARN {
            return Format::<Full>::default().without_time().format_event(context, out, event);
        }

        let mut fields = Fields(Map::new());
        event.record(&mut fields);
        let [message, cause] =
            ["message", "error"].map(|name| fields.0.get(name).and_then(Value::as_str).unwrap_or_default());
        let sentence = warning(message, cause);
        if LATELY.lock().unwrap_or_else(PoisonError::into_inner).has(&sentence, Instant::now()) {
            return Ok(());
        }
        writeln!(out, "{sentence}")
    }
}

/// The sentence of a warning, with its cause before what follows from it.
fn warning(message: &str, cause: &str) -> String {
    match (cause.is_empty(), message.split_once("; ")) {
        (true, _) => format!("{WARNING}{message}"),
        (false, Some((what, then))) => format!("{WARNING}{what}: {cause}; {then}"),
        (false, None) => format!("{WARNING}{message}: {cause}"),
    }
}

struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_says_the_same_once_a_minute() {
        let mut lately = Lately(Vec::new());
        let begun = Instant::now();
        let said = |lately: &mut Lately, text: &str, second| lately.has(text, begun + Duration::from_secs(second));
        assert!(!said(&mut lately, "one", 0) && !said(&mut lately, "two", 1));
        assert!(said(&mut lately, "one", 1) && said(&mut lately, "one", 59) && said(&mut lately, "two", 59));
        assert!(!said(&mut lately, "one", 60) && said(&mut lately, "two", 60) && said(&mut lately, "one", 61));
    }

    #[test]
    fn a_long_log_of_a_library_is_cut() {
        assert_eq!(cut("short"), "short");
        let long = "ü".repeat(LONGEST + 1);
        assert_eq!(cut(&long), format!("{} .. (RUST_LOG=info shows all)", "ü".repeat(LONGEST)));
    }

    #[test]
    fn a_warning_of_a_library_is_a_sentence() {
        let lease = "the lease of a job cannot be renewed; the next renewal tries again";
        assert_eq!(
            warning(lease, "timed out"),
            "warning: the lease of a job cannot be renewed: timed out; the next renewal tries again"
        );
        assert_eq!(warning("cannot copy a damaged SST", "no room"), "warning: cannot copy a damaged SST: no room");
        assert_eq!(warning("runs/a.json is left out", ""), "warning: runs/a.json is left out");
    }

    #[test]
    fn lines_begin_with_the_time_and_the_run() {
        let run = Some("01R".to_owned());
        let prefix = |lines, time, run| Stamp { lines, time, level: false, run }.prefix();
        assert_eq!(prefix(false, true, run.clone()), "");
        assert_eq!(prefix(true, false, run.clone()), "01R ");
        let both = prefix(true, true, run);
        assert!(both.starts_with("20") && both.ends_with("Z 01R "), "{both}");
        assert_eq!(prefix(true, true, None).len(), "2026-01-01T00:00:00.000Z ".len());
    }
}
