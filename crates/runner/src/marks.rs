//! Marks of a project, outside the root, that name the stores its runs wrote to. A root whose disk is not mounted looks like a new
//! one: only something beside it can tell them apart. See `docs/decisions/0046-marks-of-roots.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidetable_job::{Job, Project};
use tidetable_record::{RunRecord, Runs};
use tidetable_store::Store;
use xxhash_rust::xxh3::xxh3_64;

use crate::drop::was_dropped;
use crate::fault::error::RunError;
use crate::fault::lost_store::{LostStore, LostTable};
use crate::options::run_options::RunOptions;

/// The directory of a project for what it remembers. It hides itself from git.
const STATE: &str = ".tidetable";
/// Roots that are remembered; those that no run used for longest are forgotten first.
const ROOTS: usize = 64;
/// Directories of a root, beside that of tables, that hold something after the first run. Locks are not among them: they are
/// made before.
const FOLDERS: [&str; 2] = ["runs", "exports"];

/// The marks of one root. Each job has its own file, written under the lock of the job.
#[derive(Debug)]
pub struct Marks {
    /// The directory `.tidetable` of the project.
    state: PathBuf,
    /// The directory of the marks of this root.
    folder: PathBuf,
    root: String,
}

/// What a job last wrote to a root.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Mark {
    /// The job, which is the name of the file.
    #[serde(skip)]
    job: String,
    root: String,
    run: String,
    /// Day of the run's end, `YYYY-MM-DD`.
    date: String,
    /// The tables of the job with their UUIDs.
    tables: BTreeMap<String, String>,
    /// Tables that `doctor` moved to quarantine since: a run asks for `--rebuild`, and nothing else misses them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    set_aside: BTreeSet<String>,
}

impl Marks {
    /// The marks of the root of `project`. Nothing is read. A root below the project is named relative to it, so that a moved
    /// project keeps its marks.
    pub fn of(project: &Project) -> Self {
        let root = if project.root_is_url() {
            project.root.trim_end_matches('/').to_owned()
        } else {
            let parts = Path::new(&project.root).components().filter(|part| *part != Component::CurDir);
            let path: PathBuf = parts.collect();
            path.strip_prefix(&project.dir).unwrap_or(&path).to_string_lossy().into_owned()
        };
        let state = project.dir.join(STATE);
        let folder = state.join("roots").join(format!("{:016x}", xxh3_64(root.as_bytes())));
        Self { state, folder, root: project.root.clone() }
    }

    /// The loss of the whole store, if the marks name a run; for a root that was found missing or empty.
    pub fn gone(&self) -> Option<LostStore> {
        let marks = self.read();
        let Mark { run, date, .. } = marks.into_iter().max_by(|left, right| left.run.cmp(&right.run))?;
        Some(LostStore::Gone { root: self.root.clone(), run, date })
    }

    /// Forgets this root: what is there next is taken as it is.
    ///
    /// # Errors
    /// If the marks cannot be removed.
    pub fn forget(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Compares the root with its marks, for a run of `job`.
    ///
    /// # Errors
    /// [`LostStore`], unless `options` say that a new store, or a table loaded anew, is meant; if the root cannot be listed.
    pub(crate) fn check(&self, store: &Store, job: &Job, options: &RunOptions) -> Result<(), RunError> {
        match self.lost(store, job, &|table| options.rebuilds(table))? {
            Some(lost) if !options.new_root => Err(lost.into()),
            Some(_) if !options.plan_only => self.forget().map_err(RunError::Marks),
            _ => Ok(()),
        }
    }

    fn lost(&self, store: &Store, job: &Job, is_rebuilt: &dyn Fn(&str) -> bool) -> Result<Option<LostStore>, RunError> {
        let marks = self.read();
        if marks.is_empty() {
            return Ok(None);
        }

        // Tables are listed already by whoever begins a run.
        let mut is_empty = store.tables()?.is_empty();
        for folder in FOLDERS {
            is_empty = is_empty && store.blobs().list(folder)?.is_empty();
        }
        if is_empty {
            return Ok(self.gone());
        }

        for table in job.tables.iter().map(|table| &table.spec.name) {
            // A job that had the table before, under another name, may have left an older mark.
            let of_table = marks.iter().filter_map(|mark| Some((mark, mark.tables.get(table)?)));
            let Some((mark, uuid)) = of_table.max_by(|(left, _), (right, _)| left.run.cmp(&right.run)) else {
                continue;
            };
            // What cannot be read is reported by the stage that reads it.
            let Ok(newest) = store.table(table).latest() else { continue };

            let (root, table) = (self.root.clone(), table.clone());
            let (run, date) = (mark.run.clone(), mark.date.clone());
            match newest {
                None if was_dropped(store.blobs().as_ref(), &table, uuid) => {}
                None if !is_rebuilt(&table) => return Ok(Some(LostTable { root, table, run, date }.into())),
                Some(newest) if newest.table_uuid != *uuid => {
                    return Ok(Some(LostStore::Exchanged { root, table, run, date }));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// The tables that jobs of `project` wrote to this root and that are not there any more.
    ///
    /// # Errors
    /// If the root cannot be listed.
    pub fn lost_tables(&self, project: &Project, store: &Store) -> Result<Vec<LostTable>, RunError> {
        let jobs = project.jobs();
        let mut marks = self.read();
        marks.retain(|mark| jobs.contains(&mark.job));
        if marks.is_empty() {
            return Ok(Vec::new());
        }

        let there = store.tables()?;
        let mut lost = BTreeMap::new();
        // Of a table that went from one job to another, the newest mark counts.
        marks.sort_unstable_by(|one, other| one.run.cmp(&other.run));
        for Mark { run, date, tables, set_aside, .. } in &marks {
            for (table, uuid) in tables {
                let is_missed = !there.contains(table) && !set_aside.contains(table);
                if !is_missed || was_dropped(store.blobs().as_ref(), table, uuid) {
                    continue;
                }
                let (root, run, date) = (self.root.clone(), run.clone(), date.clone());
                lost.insert(table, LostTable { root, table: table.clone(), run, date });
            }
        }
        Ok(lost.into_values().collect())
    }

    /// Notes what the jobs of `project` have in a store that was restored, so that its loss is noticed before the next run, too.
    ///
    /// # Errors
    /// If the store cannot be read, or the project cannot be written.
    pub fn remember(&self, project: &Project, store: &Store) -> Result<(), RunError> {
        let runs = Runs::of(store.blobs().as_ref());
        for name in project.jobs() {
            // A job file with mistakes is told by the next run.
            let Ok(job) = Job::load(project, &name) else { continue };
            if let Some(record) = runs.last(&job.name)? {
                self.write(store, &job, &record).map_err(RunError::Marks)?;
            }
        }
        Ok(())
    }

    /// Notes what `job` has in the store after the run of `record`.
    ///
    /// # Errors
    /// If the project cannot be written.
    pub(crate) fn write(&self, store: &Store, job: &Job, record: &RunRecord) -> io::Result<()> {
        let path = self.folder.join(format!("{}.json", job.name));
        let before: Mark =
            fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let mut tables = BTreeMap::new();
        for name in job.tables.iter().map(|table| &table.spec.name) {
            // A table that is missing or cannot be read now is still missed by the next run.
            let newest = store.table(name).latest().ok().flatten().map(|newest| newest.table_uuid);
            tables.extend(newest.or_else(|| before.tables.get(name).cloned()).map(|uuid| (name.clone(), uuid)));
        }
        if tables.is_empty() {
            return Ok(());
        }

        if !self.folder.is_dir() {
            fs::create_dir_all(&self.folder)?;
            fs::write(self.state.join(".gitignore"), "*\n")?;
            self.forget_oldest();
        }
        let time = chrono::DateTime::from_timestamp_micros(record.finished.unwrap_or(record.started));
        let date = time.map(|time| time.date_naive().to_string()).unwrap_or_default();
        let (run, set_aside) = (record.run.clone(), BTreeSet::new());
        self.replace(&Mark { job: job.name.clone(), root: self.root.clone(), run, date, tables, set_aside })
    }

    /// Notes that a table was moved to quarantine: it is not lost.
    ///
    /// # Errors
    /// If the project cannot be written.
    pub(crate) fn set_aside(&self, table: &str) -> io::Result<()> {
        let of_table = self.read().into_iter().filter(|mark| mark.tables.contains_key(table));
        for mut mark in of_table {
            mark.set_aside.insert(table.to_owned());
            self.replace(&mark)?;
        }
        Ok(())
    }

    /// Writes a mark in the place of the one before.
    fn replace(&self, mark: &Mark) -> io::Result<()> {
        let unfinished = self.folder.join(format!(".{}.{}", mark.job, mark.run));
        fs::write(&unfinished, serde_json::to_vec(mark)?)?;
        fs::rename(unfinished, self.folder.join(format!("{}.json", mark.job)))
    }

    /// All marks of this root. One that cannot be read is left out: the next run of its job writes it again.
    fn read(&self) -> Vec<Mark> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let paths = paths.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
        let marks = paths.filter_map(|path| {
            let mark: Mark = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
            Some(Mark { job: path.file_stem()?.to_string_lossy().into_owned(), ..mark })
        });
        marks.collect()
    }

    /// Keeps the marks of the roots that were used last: roots for a trial leave marks, too.
    fn forget_oldest(&self) {
        let Some(entries) = self.folder.parent().and_then(|roots| fs::read_dir(roots).ok()) else { return };
        let mut roots: Vec<_> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                Some((entry.metadata().ok()?.modified().ok()?, entry.path()))
            })
            .collect();
        roots.sort_unstable();
        for (_, oldest) in roots.iter().rev().skip(ROOTS) {
            let _ = fs::remove_dir_all(oldest);
        }
    }
}
