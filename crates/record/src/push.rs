//! What was pushed of a table into Bigtable, and how far a push came: `pushes/<table>/<id>.json`.
//!
//! A push writes it while it works. After a kill the next one goes on from there; cells that were sent since are sent again.

use serde::{Deserialize, Serialize};
use tidetable_blobs::Blobs;
use tidetable_store::StoreError;

/// Directory of the states, inside the store.
const PUSHES: &str = "pushes";
/// Ending of the name of a state.
const ENDING: &str = ".json";

/// The pushes of a table, or of a range of its keys, to one target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PushState {
    /// Name of the table in the store.
    pub table: String,
    /// Its UUID: another table of the same name was not pushed.
    pub table_uuid: String,
    /// The table of Bigtable, by its full name.
    pub target: String,
    /// First row key of the range; empty for all.
    #[serde(with = "hex::serde")]
    pub start: Vec<u8>,
    /// The row key after the range; empty for none.
    #[serde(with = "hex::serde")]
    pub end: Vec<u8>,
    /// The version that was pushed last; 0 if none was.
    pub version: u64,
    /// When that push ended by the clock, microseconds since the epoch.
    pub finished: Option<i64>,
    /// What that push wrote.
    pub counts: PushCounts,
    /// The push that has begun since.
    pub running: Option<PushProgress>,
}

/// How far a push came.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PushProgress {
    /// Name of the push.
    pub push: String,
    /// The version that it pushes.
    pub version: u64,
    /// What it compares the version with.
    pub base: PushBase,
    /// When it began by the clock, microseconds since the epoch.
    pub started: i64,
    /// The ranges of keys in which it works, ascending.
    pub ranges: Vec<PushRange>,
    /// What it wrote so far.
    pub counts: PushCounts,
}

/// What a push compares a version with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PushBase {
    /// Nothing: all cells are written.
    #[default]
    Nothing,
    /// The version that was pushed before.
    Version(u64),
    /// The cells of the target.
    Target,
}

/// A range of keys of a push.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PushRange {
    /// First row key of the range.
    #[serde(with = "hex::serde")]
    pub start: Vec<u8>,
    /// The row key after it; empty for none.
    #[serde(with = "hex::serde")]
    pub end: Vec<u8>,
    /// The last row key up to which all is written; empty at first.
    #[serde(with = "hex::serde")]
    pub done: Vec<u8>,
    /// Whether all of it is written.
    pub finished: bool,
}

/// Counts of a push.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PushCounts {
    /// Rows that were written to the target.
    pub rows: u64,
    /// Cells that were written to the target.
    pub cells: u64,
    /// Cells of the target that were deleted.
    pub deleted: u64,
    /// Requests that were sent, also repeated ones.
    pub requests: u64,
    /// Rows sent again after an error.
    pub repeated: u64,
}

impl PushCounts {
    /// Adds the counts of another part of the same push.
    pub fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.cells += other.cells;
        self.deleted += other.deleted;
        self.requests += other.requests;
        self.repeated += other.repeated;
    }
}

/// A push by a run, as its record keeps it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PushRecord {
    /// Its name in the job file.
    pub push: String,
    /// Name of the table in the store.
    pub table: String,
    /// The table of Bigtable, by its full name.
    pub target: String,
    /// The version that was pushed before; 0 if none was.
    pub before: u64,
    /// The version that is there now.
    pub version: u64,
    /// What the push wrote.
    pub counts: PushCounts,
    /// The error that ended it; `None` if it succeeded.
    pub error: Option<String>,
}

impl PushState {
    /// The state with this id; `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn load(blobs: &dyn Blobs, table: &str, id: &str) -> Result<Option<Self>, StoreError> {
        let path = path(table, id);
        let Some(bytes) = blobs.read(&path)? else { return Ok(None) };
        let read = serde_json::from_slice(&bytes);
        read.map(Some).map_err(|error| StoreError::Manifest { path, reason: error.to_string() })
    }

    /// Writes the state.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, blobs: &dyn Blobs, id: &str) -> Result<(), StoreError> {
        let path = path(&self.table, id);
        let mut bytes = serde_json::to_vec(self)
            .map_err(|error| StoreError::Manifest { path: path.clone(), reason: error.to_string() })?;
        bytes.push(b'\n');
        Ok(blobs.replace(&path, &bytes)?)
    }

    /// All states of a table; unreadable ones are left out.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub fn of_table(blobs: &dyn Blobs, table: &str) -> Result<Vec<Self>, StoreError> {
        let names = blobs.list(&format!("{PUSHES}/{table}"))?;
        let ids = names.iter().filter_map(|name| name.strip_suffix(ENDING));
        let mut found: Vec<Self> = ids.filter_map(|id| Self::load(blobs, table, id).ok().flatten()).collect();
        found.sort_by(|a, b| (&a.target, &a.start).cmp(&(&b.target, &b.start)));
        Ok(found)
    }
}

/// Path of the state of a push, inside the store.
fn path(table: &str, id: &str) -> String {
    format!("{PUSHES}/{table}/{id}{ENDING}")
}

#[cfg(test)]
mod tests {
    use tidetable_blobs::LocalBlobs;

    use super::*;

    #[test]
    fn a_state_comes_back() {
        let root = tempfile::tempdir().unwrap();
        let blobs = LocalBlobs::new(root.path().to_owned());
        let range = PushRange { start: vec![0, 255], done: b"k".to_vec(), ..PushRange::default() };
        let running = PushProgress {
            push: "P".to_owned(),
            version: 3,
            base: PushBase::Version(2),
            ranges: vec![range],
            ..PushProgress::default()
        };
        let state = PushState {
            table: "T".to_owned(),
            target: "projects/p/instances/i/tables/T".to_owned(),
            version: 2,
            running: Some(running),
            ..PushState::default()
        };
        assert_eq!(PushState::load(&blobs, "T", "a").unwrap(), None);
        state.save(&blobs, "a").unwrap();
        assert_eq!(PushState::load(&blobs, "T", "a").unwrap(), Some(state.clone()));
        assert_eq!(PushState::of_table(&blobs, "T").unwrap(), [state]);
        assert_eq!(PushState::of_table(&blobs, "U").unwrap(), []);
    }
}
