//! Pins: keep versions from vacuum while they are copied.
//!
//! A pin is an empty file, `tables/T/pin/N-NAME.pin`, for version N and newer ones. It expires after an hour at the
//! earliest, so that a killed process does not block vacuum forever; longer copies renew it.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use tidetable_blobs::BlobError;
use tidetable_store::{Result, Store, StoreError, TABLES, Table};

const ENDING: &str = ".pin";
/// Attempts to pin all tables while others commit.
const ATTEMPTS: usize = 100;

/// Pinned versions, one of each table, that were the newest at one instant. They stay until the pins are removed.
#[derive(Debug)]
pub struct Pins {
    store: Store,
    name: String,
    /// Version numbers by table.
    pub numbers: BTreeMap<String, u64>,
    /// Whether the pins were written: on a full or read-only disk nothing holds off a vacuum.
    pub are_held: bool,
    /// Errors of the tables that are left out.
    pub damaged: Vec<StoreError>,
}

impl Pins {
    /// Pins the newest version of each table, all at one instant. `name` distinguishes these pins from others.
    ///
    /// # Errors
    /// If the store cannot be listed, or commits do not stop.
    pub fn all(store: &Store, name: &str) -> Result<Self> {
        let (store, name) = (store.clone(), name.to_owned());
        let mut pins = Self { store, name, numbers: BTreeMap::new(), are_held: true, damaged: Vec::new() };
        for _ in 0..ATTEMPTS {
            pins.damaged.clear();
            let numbers = pins.newest()?;
            pins.release()?;
            pins.numbers = numbers;
            match pins.renew() {
                Err(StoreError::Blob(BlobError::Io { source, .. })) if is_unwritable(source.kind()) => {
                    pins.are_held = false
                }
                renewed => renewed?,
            }
            // Numbers only grow: if they are unchanged, all were the newest in between; and a vacuum that did not see
            // the pins has kept the newest versions.
            if pins.newest()? == pins.numbers {
                return Ok(pins);
            }
        }
        pins.release()?;
        let (table, reason) = ("the store".to_owned(), format!("others committed {ATTEMPTS} times meanwhile"));
        Err(StoreError::Conflict { table, reason })
    }

    /// Pins version `number` of one table.
    ///
    /// # Errors
    /// If the pin cannot be written, except on storage that is full or read-only.
    pub fn of_version(store: &Store, table: &str, number: u64, name: &str) -> Result<Self> {
        let numbers = BTreeMap::from([(table.to_owned(), number)]);
        let (store, name) = (store.clone(), name.to_owned());
        let mut pins = Self { store, name, numbers, are_held: true, damaged: Vec::new() };
        match pins.renew() {
            Err(StoreError::Blob(BlobError::Io { source, .. })) if is_unwritable(source.kind()) => {
                pins.are_held = false
            }
            renewed => renewed?,
        }
        Ok(pins)
    }

    /// The newest version of each table; notes the tables that cannot be read.
    fn newest(&mut self) -> Result<BTreeMap<String, u64>> {
        let mut numbers = BTreeMap::new();
        for name in self.store.tables()? {
            match self.store.table(&name).latest_number() {
                Ok(number) => drop(numbers.insert(name, number)),
                Err(error @ StoreError::Blob(BlobError::Io { .. })) => return Err(error),
                Err(error) => self.damaged.push(error),
            }
        }
        Ok(numbers)
    }

    /// Renews the pins for another hour.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn renew(&self) -> Result<()> {
        if !self.are_held {
            return Ok(());
        }
        for path in self.paths() {
            self.store.blobs().replace(&path, &[])?;
        }
        Ok(())
    }

    /// Removes the pins.
    ///
    /// # Errors
    /// If one cannot be removed.
    pub fn release(&self) -> Result<()> {
        if !self.are_held {
            return Ok(());
        }
        for path in self.paths() {
            self.store.blobs().delete(&path)?;
        }
        Ok(())
    }

    fn paths(&self) -> impl Iterator<Item = String> {
        let numbers = self.numbers.iter();
        numbers.map(|(table, number)| format!("{}/{number:020}-{}{ENDING}", pin_directory(table), self.name))
    }
}

/// Whether the storage cannot be written to.
fn is_unwritable(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::StorageFull | ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied)
}

impl Drop for Pins {
    fn drop(&mut self) {
        // A pin that stays expires after an hour.
        let _ = self.release();
    }
}

/// Directory of the pins of a table.
fn pin_directory(table: &str) -> String {
    format!("{TABLES}/{table}/pin")
}

/// The oldest pinned version of a table, and the expired pins: those last written before `before`, microseconds since the epoch.
///
/// # Errors
/// If the pins cannot be listed.
pub fn pinned(table: &Table, before: i64) -> Result<(Option<u64>, Vec<String>)> {
    let (mut oldest, mut dead): (Option<u64>, Vec<String>) = (None, Vec::new());
    let directory = pin_directory(table.name());
    for name in table.blobs().list(&directory)? {
        let path = format!("{directory}/{name}");
        let number = name.strip_suffix(ENDING).and_then(|name| name.split_once('-')?.0.parse::<u64>().ok());
        let (Some(number), Some(found)) = (number, table.blobs().stat(&path)?) else { continue };
        match found.modified {
            Some(modified) if modified < before => dead.push(path),
            _ => oldest = Some(oldest.map_or(number, |oldest| oldest.min(number))),
        }
    }
    Ok((oldest, dead))
}
