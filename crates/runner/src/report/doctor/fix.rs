//! Repairs of `doctor --fix`. Nothing is deleted: damaged files are moved to `quarantine/` under the
//! path they had.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Arc;

use tidetable_blobs::BlobError;
use tidetable_blobs::Blobs;
use tidetable_job::Project;
use tidetable_record::rejected_lines;
use tidetable_store::{Ids, Store, StoreError};

use super::{DamagedTable, Diagnosis, FindingKind};
use crate::fault::error::RunError;
use crate::lock::take_all;
use crate::marks::Marks;
use crate::report::QUARANTINE;

impl Diagnosis {
    /// Fixes what can be fixed. No job may run meanwhile. A table of `project` that is set aside as a whole is lost no more.
    ///
    /// # Errors
    /// [`RunError::Running`], or if something could not be moved or written: earlier fixes stay, and the call can
    /// be repeated.
    pub fn fix(&mut self, store: &Store, project: Option<&Project>, ids: &dyn Ids) -> Result<(), RunError> {
        let _locks = take_all(store.blobs())?;
        let quarantine = Quarantine { blobs: Arc::clone(store.blobs()), moved: RefCell::default() };
        for table in std::mem::take(&mut self.tables) {
            mend(store, &table, &quarantine, ids)?;
            if let Some(project) = project.filter(|_| table.health.is_lost()) {
                Marks::of(project).set_aside(&table.name).map_err(RunError::Marks)?;
            }
        }

        let moved = quarantine.moved.borrow().clone();
        for finding in self.findings.iter_mut().filter(|finding| finding.fixable) {
            let path = finding.path.as_str();
            finding.set_aside = match finding.kind {
                FindingKind::Manifest | FindingKind::Checkpoint => moved.get(path).cloned(),
                FindingKind::Rejects => Some(keep_good_rows(store, path, &quarantine)?),
                FindingKind::Lock => {
                    empty_lock(quarantine.blobs.as_ref(), path)?;
                    None
                }
                _ => Some(quarantine.aside(path)?),
            };
            finding.fixed = true;
        }
        Ok(())
    }
}

/// Empties a damaged lock instead of removing it: another process may hold it open, and would lock a removed file. Does
/// nothing in a bucket, where the fix has taken a damaged lease, and so has written it anew.
fn empty_lock(blobs: &dyn Blobs, path: &str) -> Result<(), RunError> {
    let Some(root) = blobs.directory() else { return Ok(()) };
    let opened = OpenOptions::new().write(true).open(root.join(path));
    let emptied = opened.and_then(|file| file.set_len(0));
    emptied.map_err(|source| RunError::Staging { path: path.to_owned(), source })
}

/// Makes a table readable, or moves all of it to quarantine.
fn mend(store: &Store, table: &DamagedTable, quarantine: &Quarantine, ids: &dyn Ids) -> Result<(), RunError> {
    let DamagedTable { name: table, health, named } = table;
    if health.is_lost() {
        let to = quarantine.aside(&format!("tables/{table}"))?;
        for file in health.damaged.iter().filter(|file| file.is_there) {
            quarantine.moved.borrow_mut().insert(file.path.clone(), to.clone());
        }
        return Ok(());
    }

    // Manifests that an interrupted fix already moved.
    let names = store.blobs().list(&format!("{QUARANTINE}/tables/{table}/manifest"))?;
    let moved = names.iter().filter_map(|name| name.split('.').next()?.parse::<u64>().ok());
    let used = moved.max().unwrap_or(0).max(health.newest).max(*named);

    health.mend(used, ids, &|path| quarantine.aside(path).map(drop).map_err(|error| as_store_error(path, error)))?;
    Ok(())
}

/// The error of a file that could not be moved to quarantine, as the store gives it.
fn as_store_error(path: &str, error: RunError) -> StoreError {
    let (path, source) = match error {
        RunError::Staging { path, source } => (path, source),
        other => (path.to_owned(), io::Error::other(other)),
    };
    StoreError::Blob(BlobError::Io { action: "quarantine", path, source })
}

/// Keeps the readable rows of a file of rejected rows.
fn keep_good_rows(store: &Store, path: &str, quarantine: &Quarantine) -> Result<String, RunError> {
    let bytes = store.blobs().read(path)?.unwrap_or_default();
    let mut good = Vec::new();
    for row in rejected_lines(path, &bytes).flatten() {
        serde_json::to_writer(&mut good, &row)
            .map_err(|error| RunError::Staging { path: path.to_owned(), source: error.into() })?;
        good.push(b'\n');
    }

    let to = quarantine.aside(path)?;
    store.blobs().replace(path, &good)?;
    Ok(to)
}

/// The directory of damaged files, and what this fix has moved there.
struct Quarantine {
    blobs: Arc<dyn Blobs>,
    /// Moved files, with their new paths.
    moved: RefCell<HashMap<String, String>>,
}

impl Quarantine {
    /// Moves a file or directory of the store there. Needs no room on the disk.
    fn aside(&self, path: &str) -> Result<String, RunError> {
        match self.blobs.directory() {
            Some(root) => self.rename(root, path),
            None => self.copy(path),
        }
    }

    /// Moves objects: each is copied and then removed, so that nothing is lost in between.
    fn copy(&self, path: &str) -> Result<String, RunError> {
        let to = format!("{QUARANTINE}/{path}");
        let inside = self.blobs.list(path)?;
        if inside.is_empty() {
            let mut free = numbered(to.clone());
            let bytes = self.blobs.read(path)?.unwrap_or_default();
            let taken = free.find_map(|name| match self.blobs.create_new(&name, &bytes) {
                Ok(true) => Some(Ok(name)),
                Ok(false) => None,
                Err(error) => Some(Err(error)),
            });

            let to = taken.transpose()?.unwrap_or(to);
            self.blobs.delete(path)?;
            self.moved.borrow_mut().insert(path.to_owned(), to.clone());
            return Ok(to);
        }

        for name in inside {
            self.copy(&format!("{path}/{name}"))?;
        }
        Ok(to)
    }

    fn rename(&self, root: &Path, path: &str) -> Result<String, RunError> {
        let wanted = format!("{QUARANTINE}/{path}");
        let mut names = numbered(wanted.clone());
        let to = names.find(|name| fs::symlink_metadata(root.join(name)).is_err()).unwrap_or(wanted);

        move_file(&root.join(path), &root.join(&to))
            .map_err(|source| RunError::Staging { path: path.to_owned(), source })?;
        self.moved.borrow_mut().insert(path.to_owned(), to.clone());
        Ok(to)
    }
}

/// `path`, and numbered names beside it.
fn numbered(path: String) -> impl Iterator<Item = String> {
    std::iter::once(path.clone()).chain((1..).map(move |copy| format!("{path}.{copy}")))
}

/// Moves a file or directory, durably.
fn move_file(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::rename(from, to)?;

    sync_directory(to.parent());
    sync_directory(from.parent());
    Ok(())
}

/// Makes renames in a directory durable. If that fails, a repeated fix moves the files again.
fn sync_directory(folder: Option<&Path>) {
    if let Some(folder) = folder {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}
