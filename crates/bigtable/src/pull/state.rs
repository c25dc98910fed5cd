//! How far a pull came: `pull.json` beside its files.
//!
//! Each part is a range of keys and a file. A later pull of the same rows has the same parts, so a file replaces the one
//! before it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidetable_store::hex_bytes;

use crate::error::{BigtableError, Result};

/// A pull into a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PullState {
    /// The table, by its full name, and what is read of it.
    pub source: String,
    /// Whether cells are kept as they are.
    pub raw: bool,
    /// The parts, by ascending keys.
    pub parts: Vec<PullPart>,
    /// Whether all are written.
    pub finished: bool,
}

/// A part of a pull.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PullPart {
    /// First row key.
    #[serde(with = "hex_bytes")]
    pub start: Vec<u8>,
    /// The row key after it; empty for none.
    #[serde(with = "hex_bytes")]
    pub end: Vec<u8>,
    /// What was read, once its file is written.
    pub counts: Option<PullCounts>,
}

/// Counts of a pull.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PullCounts {
    /// Rows read.
    pub rows: u64,
    /// Cells read.
    pub cells: u64,
    /// Records written.
    pub records: u64,
    /// Rows that could not be decoded.
    pub rejected: u64,
}

impl PullCounts {
    /// Adds `other`.
    pub fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.cells += other.cells;
        self.records += other.records;
        self.rejected += other.rejected;
    }
}

impl PullState {
    /// The state in `directory`; `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn load(directory: &Path) -> Result<Option<Self>> {
        let path = Self::path(directory);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(BigtableError::File { path, source }),
        };
        // One that is damaged counts as none: the rows are read again.
        Ok(serde_json::from_slice(&bytes).ok())
    }

    /// Writes it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, directory: &Path) -> Result<()> {
        let path = Self::path(directory);
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        replace(&path, &bytes)
    }

    fn path(directory: &Path) -> PathBuf {
        directory.join("pull.json")
    }

    /// Sums of all parts.
    pub fn counts(&self) -> PullCounts {
        self.parts.iter().filter_map(|part| part.counts.as_ref()).fold(PullCounts::default(), |mut all, one| {
            all.add(one);
            all
        })
    }
}

/// The name under which a file is written before it takes its place.
pub(crate) fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

/// Writes a file aside and puts it in its place.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let aside = aside(path);
    let written = std::fs::File::create(&aside).and_then(|mut file| {
        std::io::Write::write_all(&mut file, bytes)?;
        file.sync_all()
    });
    written
        .and_then(|()| std::fs::rename(&aside, path))
        .map_err(|source| BigtableError::File { path: path.to_owned(), source })
}
