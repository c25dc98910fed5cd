//! What follows a run once its record is saved: metrics, heartbeat, hooks. None of it changes the
//! result.

pub(crate) mod heartbeat;
pub(crate) mod hooks;
pub(crate) mod metrics;

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chrono::NaiveDate;
use tidetable_blobs::{Blobs, LocalBlobs};
use tidetable_job::day::day_bounds;
use tidetable_job::{Hooks, Job, Per, Project};
use tidetable_layout::time::SECOND;
use tidetable_record::{Outcome, RunRecord, Runs};
use tidetable_store::StoreError;
use tidetable_store::published::Published;

use crate::fault::stop::Stop;
use crate::observe::{Event, Observer};
use crate::options::run_options::RunOptions;
use crate::run::post_run::hooks::HookRun;
use crate::run::post_run::metrics::{Figures, NewestDay, last_success_in, text};

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

impl PostRun<'_> {
    /// Writes the metrics, sends the heartbeat, runs the hooks, and adds their failures to the record.
    pub(crate) fn follow(&self, record: &mut RunRecord) {
        let mut notes = Vec::new();
        if let Some(file) = &self.job.metrics
            && let Err(error) = self.write_metrics(&self.project.dir.join(file), record)
        {
            notes.push(format!("warning: the metrics are not written: {error}; the result of the run stays"));
        }
        notes.extend(send_heartbeat(self.project, &self.job.hooks, record.outcome == Outcome::Ok));
        if !self.job.hooks.commands.is_empty() {
            notes.extend(self.run_hooks(record));
        }
        if notes.is_empty() {
            return;
        }
        notes.iter().for_each(|note| self.observer.event(Event::Note(note.clone())));
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

    fn write_metrics(&self, path: &Path, record: &RunRecord) -> Result<(), StoreError> {
        let folder = path.parent().map_or_else(PathBuf::new, Path::to_owned);
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let files = LocalBlobs::new(folder);
        let figures = Figures {
            record,
            exit_code: self.exit_code,
            last_success: self.last_success(record, &files, &name),
            newest: self.newest(),
        };
        let text = text(&figures);
        match files.replace(&name, text.as_bytes()) {
            // A full disk may still have room in the existing file.
            Err(error) => write_over(path, &text).or(Err(error.into())),
            Ok(()) => Ok(()),
        }
    }

    /// The end of the last successful run: this one, or from the records, or from the former metrics if those
    /// records are gone.
    fn last_success(&self, record: &RunRecord, files: &dyn Blobs, name: &str) -> Option<i64> {
        let ended_well = |record: &RunRecord| record.finished.filter(|_| record.outcome == Outcome::Ok);
        let recorded = || {
            let mut records = Runs::of(self.blobs).readable(Some(&record.job)).ok()?;
            records.find_map(|record| ended_well(&record))
        };
        let told = || last_success_in(&String::from_utf8_lossy(&files.read(name).ok()??), &record.job);
        ended_well(record).or_else(recorded).or_else(told)
    }

    /// The newest published day of each export with days, as its start in seconds.
    fn newest(&self) -> Vec<NewestDay> {
        let mut newest = Vec::new();
        for export in self.job.exports.iter().filter(|export| export.per == Per::Day) {
            // An unreadable list gives no metric; the others are written all the same.
            let Ok(Published { parts, .. }) = Published::load(self.blobs, &export.name) else { continue };
            let day = parts.keys().filter_map(|label| label.parse::<NaiveDate>().ok()).max();
            if let Some(day) = day {
                let start = day_bounds(self.job.timezone, day).start.div_euclid(SECOND);
                newest.push(NewestDay { export: export.name.clone(), start });
            }
        }
        newest
    }
}

/// Reports a refused run: by the hook `error` and a failing heartbeat. Not if another run holds the lock, which
/// reports itself.
pub(crate) fn report_refusal(
    project: &Project,
    hooks: &Hooks,
    record: &RunRecord,
    exit_code: u8,
    observer: &dyn Observer,
) {
    let mut notes = Vec::new();
    if exit_code != LOCKED {
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
    notes.into_iter().for_each(|note| observer.event(Event::Note(note)));
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
