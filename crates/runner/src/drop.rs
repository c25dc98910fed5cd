//! Removal of a table or an export that no job declares any more. A plan finds the files; [`DropLock::remove`] removes them, and nothing
//! else: what other exports list, and what somebody else put there, stays.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tidetable_blobs::Blobs;
use tidetable_export::files_of_export;
use tidetable_job::{Job, Project};
use tidetable_layout::time::HOUR;
use tidetable_store::published::Published;
use tidetable_store::{Store, StoreError};
use tidetable_upkeep::pinned;

use crate::fault::error::RunError;
use crate::fault::stop::Stop;
use crate::lock::{Lock, NamedLock, lock_named, take_all};

/// Files removed in one call: a request of S3 takes as many.
const BATCH: usize = 1000;
/// Age at which a pin has expired, as vacuum takes it; microseconds.
const PIN_EXPIRES: i64 = HOUR;

/// What a name of a store stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DroppedKind {
    /// A table: its versions with all cells.
    Table,
    /// An export: its list and the published parts.
    Export,
}

impl DroppedKind {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Export => "export",
        }
    }
}

/// The files of a table or an export.
#[derive(Debug, PartialEq, Eq)]
pub struct DropPlan {
    /// The table or export.
    pub name: String,
    /// Which of both it is.
    pub kind: DroppedKind,
    /// The job that made it; empty if no file can be read that tells it.
    pub job: String,
    /// Files that it has.
    pub files: usize,
    /// Bytes of all of these files.
    pub bytes: u64,
    /// The table of a catalog, in words, that goes on naming the files.
    pub cataloged: Option<String>,
    /// The UUID of a table; empty if it cannot be read.
    table_uuid: String,
    /// Paths inside the store. All of a step are removed before the next one begins, wherever the removal is interrupted.
    steps: Vec<Vec<String>>,
}

impl DropPlan {
    /// Finds the files of `name`, which none of `jobs`, all of the project, declares. What a killed removal left counts. `clock` is the
    /// time, microseconds since the epoch.
    ///
    /// # Errors
    /// [`RunError::Declared`] if a job declares it, [`RunError::DropRead`] if an export or a table of a job is made from it,
    /// [`RunError::Pinned`] while somebody copies it, [`RunError::NothingToDrop`] if the store has nothing of that name; and if the
    /// store cannot be listed, or the list of an export cannot be read.
    pub fn new(store: &Store, jobs: &[Job], name: &str, clock: i64) -> Result<Self, RunError> {
        let blobs = store.blobs().as_ref();
        let is_table = blobs.list("tables")?.iter().any(|table| table == name);
        let is_export = blobs.list("exports")?.contains(&format!("{name}.json"));
        let of_table = jobs.iter().find(|job| job.table(name).is_some());
        let of_export = jobs.iter().find(|job| job.export(name).is_some());

        match (is_table, is_export, of_table, of_export) {
            (true, _, None, _) => Self::of_table(store, jobs, name, clock),
            (_, true, _, None) => Self::of_export(blobs, name),
            (true, _, Some(job), _) | (_, true, _, Some(job)) => {
                Err(RunError::Declared { name: name.to_owned(), file: job.shown_path.clone() })
            }
            (false, false, _, _) => Err(RunError::NothingToDrop { name: name.to_owned() }),
        }
    }

    /// The newest manifest goes after the checkpoints and all others: at no time is an older version the newest one.
    fn of_table(store: &Store, jobs: &[Job], name: &str, clock: i64) -> Result<Self, RunError> {
        let table = store.table(name);
        if let Some(by) = reader_of(store, jobs, name)? {
            return Err(RunError::DropRead { table: name.to_owned(), by });
        }
        if pinned(&table, clock.saturating_sub(PIN_EXPIRES))?.0.is_some() {
            return Err(RunError::Pinned { table: name.to_owned() });
        }

        let blobs = store.blobs().as_ref();
        let directory = format!("tables/{name}");
        let mut bytes = 0;
        let (mut first, mut manifests, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for below in [directory.clone(), format!("pushes/{name}")] {
            for (path, size) in blobs.files_below(&below)? {
                bytes += size;
                let step = match path.strip_prefix(&directory) {
                    Some(path) if path.starts_with("/checkpoint/") => &mut first,
                    Some(path) if path.starts_with("/manifest/") => &mut manifests,
                    _ => &mut rest,
                };
                step.push(path);
            }
        }
        let newest_manifest = manifests.pop().into_iter().collect();
        first.append(&mut manifests);

        // One that is damaged may go, too.
        let newest = table.latest().ok().flatten().map(|newest| (newest.table.job, newest.table_uuid));
        let (job, table_uuid) = newest.unwrap_or_default();
        let steps = vec![first, newest_manifest, rest];
        let files = steps.iter().map(Vec::len).sum();
        let (name, kind) = (name.to_owned(), DroppedKind::Table);
        Ok(Self { name, kind, job, files, bytes, cataloged: None, table_uuid, steps })
    }

    /// The list goes last: it tells a second removal what a killed one left.
    fn of_export(blobs: &dyn Blobs, name: &str) -> Result<Self, RunError> {
        let (lists, damaged) = Published::readable(blobs)?;
        // A file that it lists may be one of the export that is dropped.
        if let Some(error) = damaged.into_iter().next() {
            return Err(error.into());
        }

        let mut list = Published::default();
        let mut others = BTreeSet::new();
        for other in lists {
            match other.name == name {
                true => list = other,
                false => others.extend(other.parts.values().flat_map(|part| part.paths())),
            }
        }

        let mut parts: Vec<String> = files_of_export(blobs, &list)?.into_iter().collect();
        parts.retain(|path| !others.contains(path));
        let of_list = vec![format!("exports/{name}.json")];
        let found = blobs.stat_all(&[parts.as_slice(), &of_list].concat())?;
        let bytes = found.into_iter().flatten().map(|found| found.bytes).sum();

        let (files, steps) = (parts.len() + 1, vec![parts, of_list]);
        let (name, kind, cataloged) = (name.to_owned(), DroppedKind::Export, list.cataloged.map(|known| known.table));
        Ok(Self { name, kind, job: list.job, files, bytes, cataloged, table_uuid: String::new(), steps })
    }

    /// Locks the job, so that no run adds to the table or export; all jobs, if it is not known which one made it.
    ///
    /// # Errors
    /// [`RunError::Running`] if a job runs, and those of the storage.
    pub fn lock(&self, store: &Store, project: &Project, stop: &Stop) -> Result<DropLock, RunError> {
        if self.job.is_empty() {
            return Ok(DropLock { _of_job: None, _of_all: take_all(store.blobs())? });
        }
        match lock_named(project, store.blobs(), &self.job, "drop", stop) {
            Ok(lock) => Ok(DropLock { _of_job: Some(lock), _of_all: Vec::new() }),
            // Its advice is for runs.
            Err(RunError::Locked { job, run, place }) => Err(RunError::Running { job, run, place }),
            Err(error) => Err(error),
        }
    }
}

/// The locks under which a plan is carried out.
#[derive(Debug)]
pub struct DropLock {
    _of_job: Option<NamedLock>,
    _of_all: Vec<Lock>,
}

impl DropLock {
    /// Removes the files of `plan`. `again` is the plan made anew under the lock: what was agreed to is what goes. A removal that was
    /// killed is done again.
    ///
    /// # Errors
    /// [`RunError::DropChanged`] if the plans differ; if a file cannot be removed: then the rest stays.
    pub fn remove(&self, store: &Store, plan: &DropPlan, again: &DropPlan, stop: &Stop) -> Result<(), RunError> {
        if plan != again {
            return Err(RunError::DropChanged { name: plan.name.clone() });
        }

        let blobs = store.blobs().as_ref();
        if plan.kind == DroppedKind::Table {
            DroppedTable { table: plan.name.clone(), table_uuid: plan.table_uuid.clone() }.save(blobs)?;
        }
        for step in &plan.steps {
            for batch in step.chunks(BATCH) {
                stop.check()?;
                blobs.delete_all(batch).map_err(StoreError::from)?;
            }
        }
        remove_emptied(blobs, plan.steps.iter().flatten());
        Ok(())
    }
}

/// An export or a table of a job that is made from the table `name`.
fn reader_of(store: &Store, jobs: &[Job], name: &str) -> Result<Option<String>, RunError> {
    for list in Published::readable(store.blobs().as_ref())?.0 {
        let made_from = list.parts.values().map(|part| &part.sources);
        let mut made_from = made_from.chain(list.empty.values().map(|part| &part.sources));
        let is_declared = jobs.iter().any(|job| job.export(&list.name).is_some());
        if is_declared && made_from.any(|tables| tables.contains_key(name)) {
            return Ok(Some(format!("export {} of job {}", list.name, list.job)));
        }
    }

    // The inputs of a derived table are windows of others: `SENSOR@2020-01-31`.
    let window = format!("{name}@");
    for job in jobs {
        for table in &job.tables {
            let Some(newest) = store.table(&table.spec.name).latest().ok().flatten() else { continue };
            if newest.inputs.iter().any(|input| input.path.starts_with(&window)) {
                return Ok(Some(format!("table {} of job {}", table.spec.name, job.name)));
            }
        }
    }
    Ok(None)
}

/// Removes the directories of removed files that hold nothing any more, but not those that every store has.
fn remove_emptied<'a>(blobs: &dyn Blobs, removed: impl Iterator<Item = &'a String>) {
    let Some(root) = blobs.directory() else { return };
    let mut directories: BTreeSet<PathBuf> = BTreeSet::new();
    for path in removed {
        let path = PathBuf::from(path);
        let above = path.ancestors().skip(1).filter(|directory| directory.components().count() > 1);
        directories.extend(above.map(|directory| root.join(directory)));
    }
    // What is inside comes after what it is in.
    for directory in directories.iter().rev() {
        // Fails, as it should, if the directory is not empty.
        let _ = fs::remove_dir(directory);
    }
}

/// A table that was removed on purpose, `dropped/TABLE.json`: the last one of its name. Without it, every project that ran jobs in
/// the store would miss the table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct DroppedTable {
    /// Name of the table.
    table: String,
    /// Its UUID; empty if none of its versions could be read. Another table of the same name was not removed.
    table_uuid: String,
}

impl DroppedTable {
    fn path(table: &str) -> String {
        format!("dropped/{table}.json")
    }

    fn save(&self, blobs: &dyn Blobs) -> Result<(), StoreError> {
        let path = Self::path(&self.table);
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| StoreError::Manifest { path: path.clone(), reason: error.to_string() })?;
        Ok(blobs.replace(&path, &text)?)
    }
}

/// Whether the table with this UUID was dropped. A note that cannot be read says nothing.
pub(crate) fn was_dropped(blobs: &dyn Blobs, table: &str, table_uuid: &str) -> bool {
    let note = blobs.read(&DroppedTable::path(table)).ok().flatten();
    let note: Option<DroppedTable> = note.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    note.is_some_and(|note| note.table_uuid == table_uuid || note.table_uuid.is_empty())
}
