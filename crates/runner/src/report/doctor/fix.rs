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
use crate::lock::lease::LeaseTimes;
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
        let _locks = take_all(store.blobs(), LeaseTimes::default())?;
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
                // A damaged lease was taken above, and written anew.
                FindingKind::Lock if quarantine.blobs.directory().is_none() => None,
                FindingKind::Lock => {
                    // Emptied instead of removed: another process may hold it open, and would lock a removed file.
                    let failed = |source| RunError::Staging { path: path.to_owned(), source };
                    let whole = quarantine.blobs.directory().map(|root| root.join(path)).unwrap_or_default();
                    let opened = OpenOptions::new().write(true).open(whole);
                    opened.and_then(|file| file.set_len(0)).map_err(failed)?;
                    None
                }
                _ => Some(quarantine.aside(path)?),
            };
            finding.fixed = true;
        }
        Ok(())
    }
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
    let number = |name: &String| name.split('.').next()?.parse::<u64>().ok();
    let used = names.iter().filter_map(number).max().unwrap_or(0).max(health.newest).max(*named);
    health.mend(used, ids, &|path| {
        quarantine.aside(path).map(drop).map_err(|error| match error {
            RunError::Staging { path, source } => {
                StoreError::Blob(BlobError::Io { action: "quarantine", path, source })
            }
            other => StoreError::Blob(BlobError::Io {
                action: "quarantine",
                path: path.to_owned(),
                source: io::Error::other(other),
            }),
        })
    })?;
    Ok(())
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

/// The quarantine directory.
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
            let mut free = std::iter::once(to.clone()).chain((1..).map(|copy| format!("{to}.{copy}")));
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
        let failed = |source| RunError::Staging { path: path.to_owned(), source };
        let named = format!("{QUARANTINE}/{path}");
        let free = |name: &String| fs::symlink_metadata(root.join(name)).is_err();
        let to = (1..).map(|copy| format!("{named}.{copy}"));
        let to = std::iter::once(named.clone()).chain(to).find(free).unwrap_or(named);
        let whole = root.join(&to);
        if let Some(folder) = whole.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let from = root.join(path);
        fs::rename(&from, &whole).map_err(failed)?;
        sync_directory(whole.parent());
        sync_directory(from.parent());
        self.moved.borrow_mut().insert(path.to_owned(), to.clone());
        Ok(to)
    }
}

/// Makes renames in a directory durable. If that fails, a repeated fix moves the files again.
fn sync_directory(folder: Option<&Path>) {
    if let Some(folder) = folder {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}
