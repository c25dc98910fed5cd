//! The commands that follow a run. Their failures are reported and do not change its result.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use chrono::{DateTime, SecondsFormat};
use tidetable_job::{HookKind, Hooks, several};
use tidetable_record::{CheckRecord, Outcome, RunRecord, Severity};

use crate::fault::stop::Stop;
use crate::observe::{Event, Observer};

/// Poll interval while a hook is silent.
const PAUSE: Duration = Duration::from_millis(20);
/// How long to read on after a hook has ended: a child process may still hold its output open.
const GRACE: Duration = Duration::from_secs(3);
/// Most lines of a hook that are shown.
const LINES: usize = 100;
/// Most warnings that a hook is told.
const WARNINGS: usize = 5;
/// Most bytes of a line.
const LINE: u64 = 4096;

/// The environment of the hooks of a run.
pub(crate) struct HookRun<'a> {
    pub(crate) hooks: &'a Hooks,
    pub(crate) project: &'a Path,
    pub(crate) root: &'a str,
    pub(crate) exit_code: u8,
    /// Whether the run has a final record; otherwise hooks get values from memory.
    pub(crate) is_recorded: bool,
    pub(crate) stop: &'a Stop,
    pub(crate) observer: &'a dyn Observer,
}

impl HookRun<'_> {
    /// Runs the hooks of this run, one after the other. Returns their failures.
    pub(crate) fn run(&self, record: &RunRecord) -> Vec<String> {
        self.run_those(&[kind(record), HookKind::Finish], record)
    }

    /// Runs the hook of a run that did not begin.
    pub(crate) fn run_error(&self, record: &RunRecord) -> Vec<String> {
        self.run_those(&[HookKind::Error], record)
    }

    fn run_those(&self, kinds: &[HookKind], record: &RunRecord) -> Vec<String> {
        let mut wrong = Vec::new();
        for (when, words) in self.hooks.commands.iter().filter(|(when, _)| kinds.contains(when)) {
            if let Err(reason) = self.run_one(*when, words, record) {
                wrong.push(format!("warning: the hook `{}` {reason}; the result of the run stays", when.name()));
            }
        }
        wrong
    }

    fn run_one(&self, when: HookKind, words: &[String], record: &RunRecord) -> Result<(), String> {
        let Some((program, arguments)) = words.split_first() else { return Ok(()) };
        // A relative path starts at the project directory, as all paths of a job file do.
        let path = if program.contains('/') { self.project.join(program) } else { PathBuf::from(program) };
        let now = DateTime::from_timestamp_micros(record.now);
        let now = now.map(|now| now.to_rfc3339_opts(SecondsFormat::AutoSi, true)).unwrap_or_default();

        let mut command = Command::new(path);
        command
            .args(arguments)
            .current_dir(self.project)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .env("TIDETABLE_HOOK", when.name())
            .env("TIDETABLE_JOB", &record.job)
            .env("TIDETABLE_RUN", &record.run)
            .env("TIDETABLE_OUTCOME", record.outcome.name())
            .env("TIDETABLE_EXIT_CODE", self.exit_code.to_string())
            .env("TIDETABLE_NOW", now)
            .env("TIDETABLE_ERROR", self.observer.completed(&what_went_wrong(record)).replace('\0', " "))
            .env("TIDETABLE_ROOT", self.root)
            .env_remove("TIDETABLE_RECORD")
            // Ctrl-C stops the run, and must not stop the hook that reports it.
            .process_group(0);
        if self.is_recorded {
            // In a bucket it is a URL.
            command.env("TIDETABLE_RECORD", Path::new(self.root).join(record.path()));
        }

        let mut child = command.spawn().map_err(|error| format!("cannot be started: {program}: {error}"))?;
        let (sender, lines) = sync_channel(LINES);
        read_lines(child.stdout.take(), sender.clone());
        read_lines(child.stderr.take(), sender);
        self.watch(&mut child, when, &lines)
    }

    /// Shows the output of the hook until it has ended.
    fn watch(&self, child: &mut Child, when: HookKind, lines: &Receiver<String>) -> Result<(), String> {
        let mut output = HookOutput { observer: self.observer, when, lines: 0 };
        let status = self.wait(child, lines, &mut output)?;

        let ended = Instant::now();
        while let Ok(line) = lines.recv_timeout(GRACE.saturating_sub(ended.elapsed())) {
            output.show(&line);
        }
        if status.success() { Ok(()) } else { Err(exit_text(status)) }
    }

    /// Shows the output of the hook while it runs. Ends it after its time limit, or when the run is asked to stop meanwhile.
    fn wait(
        &self,
        child: &mut Child,
        lines: &Receiver<String>,
        output: &mut HookOutput<'_>,
    ) -> Result<ExitStatus, String> {
        let begun = Instant::now();
        let asked_before = self.stop.asked().is_some();
        loop {
            match lines.recv_timeout(PAUSE) {
                Ok(line) => output.show(&line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(PAUSE),
            }

            match child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) => {}
                Err(error) => {
                    kill(child);
                    return Err(format!("is lost: {error}"));
                }
            }

            if begun.elapsed() >= self.hooks.timeout {
                kill(child);
                return Err(format!("took longer than {} s and was ended", self.hooks.timeout.as_secs()));
            }
            if !asked_before && self.stop.asked().is_some() {
                kill(child);
                return Err("was ended by a signal to this run".to_owned());
            }
        }
    }
}

/// The output of a hook, of which [`LINES`] are shown.
struct HookOutput<'a> {
    observer: &'a dyn Observer,
    when: HookKind,
    /// Lines that were shown or left out so far.
    lines: usize,
}

impl HookOutput<'_> {
    fn show(&mut self, line: &str) {
        self.lines += 1;
        if self.lines <= LINES {
            self.observer.event(Event::Note(format!("hook {}: {line}", self.when.name())));
        } else if self.lines == LINES + 1 {
            self.observer.event(Event::Note(format!("hook {}: its other lines are left out", self.when.name())));
        }
    }
}

/// The kind of hook for the outcome.
fn kind(record: &RunRecord) -> HookKind {
    match record.outcome {
        Outcome::Ok if has_warnings(record) => HookKind::Warning,
        Outcome::Ok => HookKind::Success,
        Outcome::Interrupted => HookKind::Interrupt,
        Outcome::Running | Outcome::Partial | Outcome::Checks | Outcome::Failed => HookKind::Failure,
    }
}

/// Whether the run warned, rows were rejected, or a check of severity `warn` failed.
fn has_warnings(record: &RunRecord) -> bool {
    let warned = record.checks.iter().any(|check| !check.passed && check.severity == Severity::Warn);
    warned || record.warnings().next().is_some() || record.all_rejected() > 0
}

/// Why a run failed, or what it warned of: rejected rows, checks that warn, and the first other warnings.
fn what_went_wrong(record: &RunRecord) -> String {
    if let Some(failure) = record.failure() {
        return failure;
    }

    let mut warnings = Vec::new();
    let rejected = record.all_rejected();
    if rejected > 0 {
        let (rows, were) = (several(rejected, "row"), if rejected == 1 { "was" } else { "were" });
        warnings.push(format!("{rows} {were} rejected: tidetable rejects {} --run {}", record.job, record.run));
    }
    for check in record.checks.iter().filter(|check| !check.passed && check.severity == Severity::Warn) {
        let CheckRecord { check, on, label, rule, measured, .. } = check;
        warnings.push(format!("check {check} warns of {label} of {on}: {rule}: {measured}"));
    }
    warnings.truncate(WARNINGS);
    warnings.extend(record.warnings().take(WARNINGS).map(str::to_owned));
    warnings.join("; ")
}

/// How a hook ended that failed, in words.
fn exit_text(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("ended with exit code {code}"),
        None => format!("was ended: {status}"),
    }
}

/// Ends a hook and its child processes.
fn kill(child: &mut Child) {
    // Signalling a process group needs a program, since `unsafe` is denied.
    let group = format!("-{}", child.id());
    let all = Command::new("kill").args(["-KILL", "--", &group]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !all.is_ok_and(|status| status.success()) {
        let _ = child.kill();
    }
    let _ = child.wait();
}

/// Sends the lines of an output. The thread ends with the output, or when the receiver is dropped.
fn read_lines(from: Option<impl Read + Send + 'static>, sender: SyncSender<String>) {
    let Some(from) = from else { return };
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        loop {
            line.clear();
            match from.by_ref().take(LINE).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }

            let text = String::from_utf8_lossy(&line);
            if sender.send(text.trim_end_matches(['\r', '\n']).to_owned()).is_err() {
                return;
            }
        }
    });
}
