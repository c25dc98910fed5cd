//! What a backup and a copy of a store have in common: they read what jobs write meanwhile.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tidetable_blobs::BlobError;
use tidetable_export::TableLog;
use tidetable_store::published::Published;
use tidetable_store::{Sst, StoreError, Table};
use tidetable_upkeep::Pins;

use crate::backup::catalog::Held;
use crate::backup::error::BackupError;

/// Attempts to read a file or an export that is being written, before what changed is left out.
pub(super) const ROUNDS: usize = 3;
/// Interval of renewing pins, which expire after an hour.
const RENEW: Duration = Duration::from_secs(300);

/// Pins that last as long as their versions are copied.
pub(super) struct RenewedPins<'a> {
    pins: &'a Pins,
    renewed: Instant,
}

impl<'a> RenewedPins<'a> {
    /// Pins that were set just now.
    pub(super) fn new(pins: &'a Pins) -> Self {
        Self { pins, renewed: Instant::now() }
    }

    /// Renews the pins once [`RENEW`] has passed.
    ///
    /// # Errors
    /// If they cannot be written.
    pub(super) fn renew_if_due(&mut self) -> Result<(), BackupError> {
        if self.renewed.elapsed() > RENEW {
            self.pins.renew()?;
            self.renewed = Instant::now();
        }
        Ok(())
    }
}

/// A published file that is missing, or not what its list says.
pub(super) struct WrongFile {
    /// Label of its part.
    pub(super) label: String,
    /// What is wrong with it.
    pub(super) reason: String,
}

/// What was loaded; `None` if it is damaged, which is added to `damaged`.
///
/// # Errors
/// If it cannot be read for another reason than its content.
pub(super) fn unless_damaged<T>(
    loaded: Result<T, StoreError>,
    damaged: &mut Vec<String>,
) -> Result<Option<T>, BackupError> {
    match loaded {
        Ok(value) => Ok(Some(value)),
        Err(error @ StoreError::Blob(BlobError::Io { .. })) => Err(error.into()),
        Err(error) => {
            damaged.push(error.to_string());
            Ok(None)
        }
    }
}

/// The directories of the logs of the tables of a list, as far as these logs are of use elsewhere.
pub(super) fn log_directories(list: &Published) -> Vec<String> {
    let folders: BTreeSet<&str> = list.parts.values().filter_map(|part| part.folder.split('/').next()).collect();
    let logs: Vec<TableLog> = TableLog::ALL.into_iter().filter(|log| log.moves_with_files()).collect();
    folders.into_iter().flat_map(|folder| logs.iter().map(move |log| log.path(folder))).collect()
}

/// The entry of an SST of a table.
pub(super) fn held_sst(table: &Table, sst: &Sst) -> Held {
    Held { path: table.sst_path(&sst.id), bytes: sst.bytes, checksum: sst.checksum.clone() }
}
