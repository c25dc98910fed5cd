//! Setting aside what is damaged. Nothing is deleted: a file that is taken out of the store's way lies in `quarantine/`,
//! under the path it had.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use tidetable_record::rejected_lines;
use tidetable_store::{Ids, Store, StoreError, TableHealth};

use super::{Diagnosis, FindingKind, QUARANTINE};
use crate::run::{RunError, take_all};

impl Diagnosis {
    /// Fixes what can be fixed. No job may run meanwhile.
    ///
    /// # Errors
    /// [`RunError::Running`], or if something could not be set aside or written: what was fixed before stands, and it can
    /// be tried again.
    pub fn fix(&mut self, store: &Store, ids: &dyn Ids) -> Result<(), RunError> {
        let root = PathBuf::from(store.blobs().display());
        let _locks = take_all(&root)?;
        let quarantine = Quarantine { root, moved: RefCell::default() };
        for (table, health) in std::mem::take(&mut self.tables) {
            mend(store, &table, &health, &quarantine, ids)?;
        }
        let moved = quarantine.moved.borrow().clone();
        for finding in self.findings.iter_mut().filter(|finding| finding.fixable) {
            let path = finding.path.as_str();
            finding.set_aside = match finding.kind {
                FindingKind::Manifest | FindingKind::Checkpoint => moved.get(path).cloned(),
                FindingKind::Rejects => Some(keep_good_rows(store, path, &quarantine)?),
                FindingKind::Lock => {
                    // Removed it would be locked by one who opened it before, and by another who made it again.
                    let failed = |source| RunError::Staging { path: path.to_owned(), source };
                    let opened = OpenOptions::new().write(true).open(quarantine.root.join(path));
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

/// Makes a table one that can be read, or sets all of it aside.
fn mend(
    store: &Store,
    table: &str,
    health: &TableHealth,
    quarantine: &Quarantine,
    ids: &dyn Ids,
) -> Result<(), RunError> {
    if health.is_lost() {
        let to = quarantine.aside(&format!("tables/{table}"))?;
        for file in health.damaged.iter().filter(|file| file.is_there) {
            quarantine.moved.borrow_mut().insert(file.path.clone(), to.clone());
        }
        return Ok(());
    }
    // Numbers that a fix which was stopped on its way had set aside already.
    let names = store.blobs().list(&format!("{QUARANTINE}/tables/{table}/manifest"))?;
    let number = |name: &String| name.split('.').next()?.parse::<u64>().ok();
    let used = names.iter().filter_map(number).max().unwrap_or(0).max(health.newest);
    health.mend(used, ids, &|path| {
        quarantine.aside(path).map(drop).map_err(|error| match error {
            RunError::Staging { path, source } => StoreError::Io { action: "set aside", path, source },
            other => StoreError::Io { action: "set aside", path: path.to_owned(), source: io::Error::other(other) },
        })
    })?;
    Ok(())
}

/// Keeps the rows of a file of rejected rows that can be read.
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

/// Where what is set aside lies.
struct Quarantine {
    root: PathBuf,
    /// What was set aside, and where to.
    moved: RefCell<HashMap<String, String>>,
}

impl Quarantine {
    /// Moves a file or folder of the store there, under the path it had. Needs no room on the disk.
    fn aside(&self, path: &str) -> Result<String, RunError> {
        let failed = |source| RunError::Staging { path: path.to_owned(), source };
        let named = format!("{QUARANTINE}/{path}");
        let free = |name: &String| fs::symlink_metadata(self.root.join(name)).is_err();
        let to = (1..).map(|copy| format!("{named}.{copy}"));
        let to = std::iter::once(named.clone()).chain(to).find(free).unwrap_or(named);
        let whole = self.root.join(&to);
        if let Some(folder) = whole.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let from = self.root.join(path);
        fs::rename(&from, &whole).map_err(failed)?;
        sync_directory(whole.parent());
        sync_directory(from.parent());
        self.moved.borrow_mut().insert(path.to_owned(), to.clone());
        Ok(to)
    }
}

/// Makes the names of a folder durable. Lost, they are set aside once more.
fn sync_directory(folder: Option<&Path>) {
    if let Some(folder) = folder {
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
}
