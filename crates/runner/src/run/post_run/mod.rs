//! What follows a run once its record is saved: metrics, heartbeat, hooks. None of it changes the
//! result.

pub(crate) mod heartbeat;
pub(crate) mod hooks;
pub(crate) mod metrics;

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tidetable_blobs::{Blobs, LocalBlobs};
use tidetable_job::{Hooks, Job, Per, Period, Project, Reporting};
use tidetable_layout::time::SECOND;
use tidetable_record::{Outcome, RunRecord, Runs};
use tidetable_store::StoreError;
use tidetable_store::published::Published;

use crate::fault::stop::Stop;
use crate::observe::{Event, Observer};
use crate::options::run_options::RunOptions;
use crate::report::days::begun;
use crate::run::open_lineage::OpenLineage;
use crate::run::post_run::hooks::HookRun;
use crate::run::post_run::metrics::{Figures, NewestDay, last_success_in, refused, text};

/// Exit code if another run holds the lock.
const LOCKED: u8 = 75;
/// Allocation unit of a file on disk.
const BLOCK: u64 = 4096;

/// A run that has ended, or that did not begin.
pub(crate) struct PostRun<'a> {
    pub(crate) project: &'a Project,
    pub(crate) job: &'a Job,
    pub(crate) options: &'a RunOptions,
    pub(crate) observer: &'a dyn Observer,
    pub(crate) blobs: &'a dyn Blobs,
    pub(crate) exit_code: u8,
    /// Whether the final record was written. On a full disk it may not be, and the values in memory
    /// are used instead.
    pub(crate) is_recorded: bool,
}

/// What a lineage server is still to be told.
pub(crate) struct RunLineage<'a> {
    pub(crate) events: OpenLineage<'a>,
    /// The tables that the run read and other jobs make.
    pub(crate) read: BTreeSet<String>,
}

impl PostRun<'_> {
    /// Writes the metrics, tells of what was read and written, sends the heartbeat, runs the hooks, and adds their failures to
    /// the record.
    pub(crate) fn follow(&self, record: &mut RunRecord, lineage: Option<RunLineage<'_>>) {
        let mut notes = Vec::new();
        if let Some(file) = &self.job.metrics
            && let Err(error) = self.write_metrics(&MetricsFile::of(self.project, file), record)
        {
            notes.push(not_written(&error));
        }

        if let Some(RunLineage { events, read }) = lineage
            && let Err(error) = events.end(record, &read)
        {
            notes.push(format!("warning: lineage was not told of this run: {error}; the result of the run stays"));
        }

        notes.extend(send_heartbeat(self.project, &self.job.hooks, record.outcome == Outcome::Ok));
        if !self.job.hooks.commands.is_empty() {
            notes.extend(self.run_hooks(record));
        }

        if notes.is_empty() {
            return;
        }
        for note in &notes {
            self.observer.event(Event::Note(note.clone()));
        }
        record.notes.extend(notes);

        if !self.is_recorded {
            return;
        }
        if let Err(error) = record.save(self.blobs) {
            self.observer.event(Event::Note(format!("warning: these warnings are not in the run's record: {error}")));
        }
    }

    fn run_hooks(&self, record: &RunRecord) -> Vec<String> {
        let before = self.blobs.read(&record.path());

        let hooks = HookRun {
            hooks: &self.job.hooks,
            project: &self.project.dir,
            root: &self.project.root,
            exit_code: self.exit_code,
            is_recorded: self.is_recorded,
            stop: &self.options.stop,
            observer: self.observer,
        };

        let mut notes = hooks.run(record);
        let path = record.path();
        // Without a record on disk, as on a full disk, there is nothing to compare with.
        if self.is_recorded
            && let (Ok(Some(before)), after) = (before, self.blobs.read(&path))
            && !after.is_ok_and(|after| after.is_some_and(|after| after == before))
        {
            notes.push(format!("warning: a hook changed {path}, the record of the run; it was restored"));
        }
        notes
    }

    fn write_metrics(&self, file: &MetricsFile, record: &RunRecord) -> Result<(), StoreError> {
        file.write(|before| {
            text(&Figures {
                record,
                exit_code: self.exit_code,
                last_success: self.last_success(record, before),
                newest: self.newest(),
            })
        })
    }

    /// The end of the last successful run: this one, or from the records, or from the former metrics if those
    /// records are gone.
    fn last_success(&self, record: &RunRecord, before: &str) -> Option<i64> {
        if let Some(finished) = ended_well(record) {
            return Some(finished);
        }

        let records = Runs::of(self.blobs).readable(Some(&record.job)).ok();
        let recorded = records.and_then(|mut records| records.find_map(|record| ended_well(&record)));
        recorded.or_else(|| last_success_in(before, &record.job))
    }

    /// The newest published day of each export with days, as its start in seconds. Days that have not begun count only if there
    /// are no others.
    fn newest(&self) -> Vec<NewestDay> {
        let (zone, clock) = (self.job.timezone, (self.options.clock)());
        let mut newest = Vec::new();
        for export in self.job.exports.iter().filter(|export| export.per == Per::Day) {
            // An unreadable list gives no metric; the others are written all the same.
            let Ok(Published { parts, .. }) = Published::load(self.blobs, &export.name) else { continue };
            let days = parts.keys().filter_map(|label| Period::of_label(Per::Day, label)).collect();
            if let Some(day) = begun(zone, days, clock).last() {
                let start = day.bounds(zone).start.div_euclid(SECOND);
                newest.push(NewestDay { export: export.name.clone(), start });
            }
        }
        newest
    }
}

/// When a run ended, if it ended well; microseconds since the epoch.
fn ended_well(record: &RunRecord) -> Option<i64> {
    record.finished.filter(|_| record.outcome == Outcome::Ok)
}

/// The file of a job's metrics.
struct MetricsFile {
    folder: LocalBlobs,
    name: String,
    path: PathBuf,
}

impl MetricsFile {
    /// The file `file` of `project`.
    fn of(project: &Project, file: &Path) -> Self {
        let path = project.dir.join(file);
        let folder = LocalBlobs::new(path.parent().map_or_else(PathBuf::new, Path::to_owned));
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self { folder, name, path }
    }

    /// Writes the text that `text` makes of the former one, which is empty if there is none.
    fn write(&self, text: impl FnOnce(&str) -> String) -> Result<(), StoreError> {
        let folder: &dyn Blobs = &self.folder;
        let before = folder.read(&self.name).ok().flatten().unwrap_or_default();
        let text = text(&String::from_utf8_lossy(&before));

        match folder.replace(&self.name, text.as_bytes()) {
            // A full disk may still have room in the existing file.
            Err(error) => write_over(&self.path, &text).or(Err(error.into())),
            Ok(()) => Ok(()),
        }
    }
}

/// The warning for metrics that could not be written.
fn not_written(error: &StoreError) -> String {
    format!("warning: the metrics are not written: {error}; the result of the run stays")
}

/// Reports a refused run: by the hook `error`, a failing heartbeat and in the metrics. If another run holds the lock, by the
/// hook alone: that run reports itself.
pub(crate) fn report_refusal(
    project: &Project,
    reporting: &Reporting,
    record: &RunRecord,
    exit_code: u8,
    observer: &dyn Observer,
) {
    let Reporting { hooks, metrics, .. } = reporting;
    let mut notes = Vec::new();
    if exit_code != LOCKED {
        if let Some(file) = metrics {
            let written = MetricsFile::of(project, file).write(|before| refused(before, record, exit_code));
            notes.extend(written.err().map(|error| not_written(&error)));
        }
        notes.extend(send_heartbeat(project, hooks, false));
    }

    let run = HookRun {
        hooks,
        project: &project.dir,
        root: &project.root,
        exit_code,
        is_recorded: false,
        stop: &Stop::default(),
        observer,
    };
    notes.extend(run.run_error(record));
    for note in notes {
        observer.event(Event::Note(note));
    }
}

fn send_heartbeat(project: &Project, hooks: &Hooks, is_well: bool) -> Option<String> {
    let error = heartbeat::send(project, hooks, is_well).err()?;
    Some(format!("warning: the heartbeat was not sent: {error}; the result of the run stays"))
}

/// Overwrites the file at `path`, if that needs no new block of the disk.
fn write_over(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    if text.len() as u64 > file.metadata()?.len().next_multiple_of(BLOCK) {
        return Err(io::ErrorKind::StorageFull.into());
    }
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}
