//! Pins: versions that a vacuum leaves alone while they are copied.
//!
//! A pin is an empty file, `tables/T/pin/N-NAME.pin`, for version N and what is newer. It holds for an hour at least after
//! it was last written, so that one whose process was killed holds nothing up for good; who copies for longer writes it again.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use crate::error::{Result, StoreError};
use crate::manifest;
use crate::store::Store;
use crate::table::Table;
use crate::version::Version;

const ENDING: &str = ".pin";
/// Attempts to pin all tables while others commit.
const ATTEMPTS: usize = 100;

/// Versions of tables, one of each, that were the newest at one moment. They stay until the pins are removed.
#[derive(Debug)]
pub struct Pins {
    store: Store,
    name: String,
    /// By table.
    pub numbers: BTreeMap<String, u64>,
    /// Whether they could be written: on a disk that is full or read-only nothing keeps a vacuum away.
    pub are_held: bool,
    /// Why others are left out.
    pub damaged: Vec<StoreError>,
}

impl Pins {
    /// Pins the newest version of each table, all of one moment. `name` tells these pins from others.
    ///
    /// # Errors
    /// If the store cannot be listed, or others go on committing.
    pub fn all(store: &Store, name: &str) -> Result<Self> {
        let (store, name) = (store.clone(), name.to_owned());
        let mut pins = Self { store, name, numbers: BTreeMap::new(), are_held: true, damaged: Vec::new() };
        for _ in 0..ATTEMPTS {
            pins.damaged.clear();
            let numbers = pins.newest()?;
            pins.release()?;
            pins.numbers = numbers;
            match pins.renew() {
                Err(StoreError::Io { source, .. }) if is_unwritable(source.kind()) => pins.are_held = false,
                renewed => renewed?,
            }
            // Numbers only grow: if they are as they were, they were all the newest in between; and a vacuum that has not
            // seen the pins has left what was the newest then.
            if pins.newest()? == pins.numbers {
                return Ok(pins);
            }
        }
        pins.release()?;
        let (table, reason) = ("the store".to_owned(), format!("others committed {ATTEMPTS} times meanwhile"));
        Err(StoreError::Conflict { table, reason })
    }

    fn newest(&mut self) -> Result<BTreeMap<String, u64>> {
        let mut numbers = BTreeMap::new();
        for name in self.store.tables()? {
            match self.store.table(&name).latest_number() {
                Ok(number) => drop(numbers.insert(name, number)),
                Err(error @ StoreError::Io { .. }) => return Err(error),
                Err(error) => self.damaged.push(error),
            }
        }
        Ok(numbers)
    }

    /// Writes the pins again, so that they hold for another hour.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn renew(&self) -> Result<()> {
        if !self.are_held {
            return Ok(());
        }
        self.paths().try_for_each(|path| self.store.blobs().replace(&path, &[]))
    }

    /// Removes the pins.
    ///
    /// # Errors
    /// If one cannot be removed.
    pub fn release(&self) -> Result<()> {
        if !self.are_held {
            return Ok(());
        }
        self.paths().try_for_each(|path| self.store.blobs().delete(&path))
    }

    fn paths(&self) -> impl Iterator<Item = String> {
        let path = |(table, number): (&String, &u64)| {
            format!("{}/{number:020}-{}{ENDING}", self.store.table(table).pin_folder(), self.name)
        };
        self.numbers.iter().map(path)
    }
}

/// Whether nothing can be written there, for now or at all.
fn is_unwritable(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::StorageFull | ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied)
}

impl Drop for Pins {
    fn drop(&mut self) {
        // One that stays holds for an hour.
        let _ = self.release();
    }
}

impl Table {
    pub(crate) fn pin_folder(&self) -> String {
        format!("{}/pin", self.folder())
    }

    /// The oldest version that is pinned, and pins that hold no more: those last written before `before`.
    pub(crate) fn pinned(&self, before: i64) -> Result<(Option<u64>, Vec<String>)> {
        let (mut oldest, mut dead): (Option<u64>, Vec<String>) = (None, Vec::new());
        for name in self.blobs().list(&self.pin_folder())? {
            let path = format!("{}/{name}", self.pin_folder());
            let number = name.strip_suffix(ENDING).and_then(|name| name.split_once('-')?.0.parse::<u64>().ok());
            let (Some(number), Some(found)) = (number, self.blobs().stat(&path)?) else { continue };
            match found.modified {
                Some(modified) if modified < before => dead.push(path),
                _ => oldest = Some(oldest.map_or(number, |oldest| oldest.min(number))),
            }
        }
        Ok((oldest, dead))
    }

    /// The small files of a table that has `version` and none before it, by path inside the store: its SSTs are all that is
    /// missing.
    ///
    /// # Errors
    /// If its manifest cannot be read.
    pub fn files_of(&self, version: &Version) -> Result<Vec<(String, Vec<u8>)>> {
        let number = version.number;
        let path = self.manifest_path(number);
        let Some(bytes) = self.blobs().read(&path)? else { return Err(self.missing(number)) };
        manifest::read(&bytes, number).map_err(|reason| StoreError::Manifest { path: path.clone(), reason })?;
        let (checkpoint, whole) = self.checkpoint_of(version)?;
        Ok(vec![(path, bytes.to_vec()), (checkpoint, whole), (self.oldest_path(number), Vec::new())])
    }
}
