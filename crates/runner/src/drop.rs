//! Removal of a table or an export that no job declares any more. A plan finds its files; only [`DropPlan::run`] removes.

use std::fs;

use tidetable_blobs::Blobs;
use tidetable_export::export_folders;
use tidetable_job::{Job, Project};
use tidetable_store::published::Published;
use tidetable_store::{Store, StoreError};

use crate::fault::error::RunError;
use crate::fault::stop::Stop;
use crate::lock::lock_named;
use crate::marks::Marks;

/// Files removed in one call: a request of S3 takes as many.
const BATCH: usize = 1000;

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

/// The files of a table or an export, in the order in which they go.
#[derive(Debug)]
pub struct DropPlan {
    /// The table or export.
    pub name: String,
    /// Which of both it is.
    pub kind: DroppedKind,
    /// The job that made it; empty if no file can be read that tells it.
    pub job: String,
    /// Files that it has.
    pub files: usize,
    /// Bytes of them.
    pub bytes: u64,
    /// The table of a catalog, in words, that goes on naming the files.
    pub cataloged: Option<String>,
    paths: Vec<String>,
    /// The directories that hold them, inside the store.
    directories: Vec<String>,
}

impl DropPlan {
    /// Finds the files of `name`, which none of `jobs` declares. What a killed removal left counts.
    ///
    /// # Errors
    /// [`RunError::Declared`] if a job declares it; [`RunError::NothingToDrop`] if the store has nothing of that name; and if the
    /// store cannot be listed, or the list of an export cannot be read.
    pub fn new(store: &Store, jobs: &[Job], name: &str) -> Result<Self, RunError> {
        let blobs = store.blobs().as_ref();
        let mut plan = if blobs.list("tables")?.iter().any(|table| table == name) {
            Self::of_table(store, name)?
        } else if blobs.list("exports")?.contains(&format!("{name}.json")) {
            Self::of_export(blobs, name)?
        } else {
            return Err(RunError::NothingToDrop { name: name.to_owned() });
        };

        if let Some(job) = jobs.iter().find(|job| job.table(name).is_some() || job.export(name).is_some()) {
            return Err(RunError::Declared { name: name.to_owned(), file: job.shown_path.clone() });
        }

        let list = std::mem::take(&mut plan.paths);
        for directory in &plan.directories {
            for (path, bytes) in blobs.files_below(directory)? {
                plan.bytes += bytes;
                plan.paths.push(path);
            }
        }
        plan.paths.extend(list);
        plan.files = plan.paths.len();
        Ok(plan)
    }

    /// The newest manifest goes after the checkpoints and all others: at no time is an older version the newest one.
    fn of_table(store: &Store, name: &str) -> Result<Self, RunError> {
        let table = format!("tables/{name}");
        let mut directories = vec![format!("{table}/checkpoint"), format!("{table}/manifest")];
        for below in store.blobs().list(&table)? {
            let directory = format!("{table}/{below}");
            if !directories.contains(&directory) {
                directories.push(directory);
            }
        }
        directories.push(format!("pushes/{name}"));

        // One that is damaged may go, too.
        let newest = store.table(name).latest().ok().flatten();
        let job = newest.map(|newest| newest.table.job).unwrap_or_default();
        let (name, kind) = (name.to_owned(), DroppedKind::Table);
        Ok(Self { name, kind, job, files: 0, bytes: 0, cataloged: None, paths: Vec::new(), directories })
    }

    /// The list goes last: it tells a second removal what a killed one left.
    fn of_export(blobs: &dyn Blobs, name: &str) -> Result<Self, RunError> {
        let list = Published::load(blobs, name)?;
        let directories = export_folders(&list).into_iter().map(|folder| format!("exports/{folder}")).collect();
        let mut paths: Vec<String> = list.retired.into_keys().collect();
        paths.push(format!("exports/{name}.json"));

        let (name, kind, cataloged) = (name.to_owned(), DroppedKind::Export, list.cataloged.map(|known| known.table));
        Ok(Self { name, kind, job: list.job, files: 0, bytes: 0, cataloged, paths, directories })
    }

    /// Removes the files under the lock of the job, so that no run adds to them. One that was killed is done again.
    ///
    /// # Errors
    /// [`RunError::Locked`] if the job runs; if a file cannot be removed: then the rest stays.
    pub fn run(&self, store: &Store, project: &Project, stop: &Stop) -> Result<(), RunError> {
        let _lock = match self.job.is_empty() {
            true => None,
            false => Some(lock_named(project, store.blobs(), (&self.job, "drop"), stop)?),
        };

        let blobs = store.blobs().as_ref();
        for batch in self.paths.chunks(BATCH) {
            stop.check()?;
            blobs.delete_all(batch).map_err(StoreError::from)?;
        }
        if self.kind == DroppedKind::Table {
            Marks::of(project).forget_table(&self.name).map_err(RunError::Marks)?;
        }
        self.remove_directories(blobs);
        Ok(())
    }

    /// Removes the directories, with the one above them if nothing is left in it. They hold nothing that is ever read.
    fn remove_directories(&self, blobs: &dyn Blobs) {
        let Some(root) = blobs.directory() else { return };
        for directory in &self.directories {
            // Half-written files may be in it.
            let _ = fs::remove_dir_all(root.join(directory));
            let above = directory.rsplit_once('/').map(|(above, _)| above);
            if let Some(above) = above.filter(|above| above.contains('/')) {
                // Fails, as it should, if the directory is not empty.
                let _ = fs::remove_dir(root.join(above));
            }
        }
    }
}
