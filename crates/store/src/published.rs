//! What was published of a table: for each export its parts, and what each was made from.
//!
//! `exports/SENSOR_DAY.json` is the list of one export; `exports/SENSOR_20180101/` is a part of it.
//! A part is listed after its files are in place, so what is listed can be read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::blobs::Blobs;
use crate::error::{Result, StoreError};

const EXPORTS: &str = "exports";
const FORMAT: u32 = 1;

/// The parts of one export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// Format of this list.
    pub format: u32,
    /// Name of the export, as in the job file.
    pub name: String,
    /// The job it belongs to.
    pub job: String,
    /// Names and types of its columns, as Arrow data types print; readers take the schema from here.
    pub columns: Vec<(String, String)>,
    /// Parts by label: `2018-01-01` for a day.
    pub parts: BTreeMap<String, Part>,
    /// Parts that would hold no row, by label: they have no file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub empty: BTreeMap<String, MadeFrom>,
}

/// What a part was made from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeFrom {
    /// Fingerprint of the query and its settings.
    pub query: String,
    /// For each table read, the last version that had changed any of its days.
    pub sources: BTreeMap<String, u64>,
}

/// A published part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Name of its folder in `exports/`; also its name in SQL.
    pub folder: String,
    /// Its file.
    pub file: String,
    /// Rows.
    pub rows: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// xxh3-128 of the file, hexadecimal.
    pub checksum: String,
    /// Fingerprint of the query and its settings.
    pub query: String,
    /// For each table read, the last version that had changed any of its days.
    pub sources: BTreeMap<String, u64>,
    /// Logical time of the run that published it, microseconds.
    pub now: i64,
    /// That run.
    pub run: String,
}

impl Published {
    /// The list of export `name`; empty if nothing was published.
    ///
    /// # Errors
    /// If the list cannot be read.
    pub fn load(blobs: &dyn Blobs, name: &str) -> Result<Self> {
        let path = list_path(name);
        let Some(bytes) = blobs.read(&path)? else {
            return Ok(Self { format: FORMAT, name: name.to_owned(), ..Self::default() });
        };
        let broken = |reason: String| StoreError::Manifest { path: path.clone(), reason };
        let list: Self = serde_json::from_slice(&bytes).map_err(|error| broken(error.to_string()))?;
        if list.format == FORMAT { Ok(list) } else { Err(broken(format!("it has format {}", list.format))) }
    }

    /// Writes the list, replacing the one before.
    ///
    /// # Errors
    /// If it cannot be written; then the list is the old one or the new.
    pub fn save(&self, blobs: &dyn Blobs) -> Result<()> {
        let path = list_path(&self.name);
        let broken = |error: serde_json::Error| StoreError::Manifest { path: path.clone(), reason: error.to_string() };
        let mut bytes = serde_json::to_vec_pretty(self).map_err(broken)?;
        bytes.push(b'\n');
        blobs.replace(&path, &bytes)
    }

    /// All lists of a store, by name.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn all(blobs: &dyn Blobs) -> Result<Vec<Self>> {
        let names = blobs.list(EXPORTS)?;
        names.iter().filter_map(|name| name.strip_suffix(".json")).map(|name| Self::load(blobs, name)).collect()
    }
}

impl Part {
    /// Path of its file inside the store.
    pub fn path(&self) -> String {
        format!("{EXPORTS}/{}/{}", self.folder, self.file)
    }
}

fn list_path(name: &str) -> String {
    format!("{EXPORTS}/{name}.json")
}
