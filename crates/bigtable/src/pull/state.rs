//! The list of a pull and how far a pull came: `pull.json` and `pull.next.json` beside its files.
//!
//! Each part is a range of keys and a file. A pull writes its files into a directory of their own, and its list last, which
//! a run then reads; until then the list of the pull before stands. A later pull of the same rows has the same parts, so
//! that an input keeps its name.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidetable_source::PullList;

use crate::error::{BigtableError, Result};

/// A pull into a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PullState {
    /// What a run reads of it.
    #[serde(flatten)]
    pub list: PullList,
    /// What was read of the table, as the options of the command.
    pub selection: String,
    /// The columns of the files.
    pub columns: Vec<String>,
    /// The directory of the files, relative to that of the list.
    pub directory: String,
    /// The parts, by ascending keys.
    pub parts: Vec<PullPart>,
}

/// A part of a pull.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PullPart {
    /// The first row key of the range; empty for the first of all.
    #[serde(with = "hex::serde")]
    pub start: Vec<u8>,
    /// The row key after it; empty for none.
    #[serde(with = "hex::serde")]
    pub end: Vec<u8>,
    /// What was read, once its file is written.
    pub counts: Option<PullCounts>,
}

/// Counts of a pull: each cell that is read is written or rejected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PullCounts {
    /// Rows that were read.
    pub rows: u64,
    /// Cells of these rows, as far as they were selected.
    pub cells: u64,
    /// Records that were written into files.
    pub records: u64,
    /// Rows of which something could not be written.
    pub rejected: u64,
    /// Their cells that are not in the files.
    pub cells_rejected: u64,
}

impl PullCounts {
    /// Adds the counts of other rows.
    pub fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.cells += other.cells;
        self.records += other.records;
        self.rejected += other.rejected;
        self.cells_rejected += other.cells_rejected;
    }

    /// Cells that are in the files.
    pub fn cells_written(&self) -> u64 {
        self.cells.saturating_sub(self.cells_rejected)
    }
}

impl PullState {
    /// The state called `name` in `directory`; `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn load(directory: &Path, name: &str) -> Result<Option<Self>> {
        let path = directory.join(name);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(BigtableError::File { path, source }),
        };
        // One that is damaged counts as none: the rows are read again.
        Ok(serde_json::from_slice(&bytes).ok())
    }

    /// Puts it into `directory` under `name`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, directory: &Path, name: &str) -> Result<()> {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        replace(&directory.join(name), &bytes)?;
        sync_directory(directory)
    }

    /// Sums of all parts.
    pub fn counts(&self) -> PullCounts {
        self.parts.iter().filter_map(|part| part.counts.as_ref()).fold(PullCounts::default(), |mut all, one| {
            all.add(one);
            all
        })
    }
}

/// The name of the input of a part.
pub(crate) fn part_name(at: usize) -> String {
    format!("part-{at:05}.parquet")
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

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(directory: &Path) -> Result<()> {
    let synced = std::fs::File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|source| BigtableError::File { path: directory.to_owned(), source })
}
