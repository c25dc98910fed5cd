//! A table: what its rows are made of, where its bytes are, and what its versions were.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A page on a table. Sections without content are left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TablePage {
    /// The heading and the title of the window, such as `Table SENSOR`.
    pub title: String,
    /// One line on it: job, version, rows, bytes.
    pub subtitle: String,
    /// The command that made the page.
    pub command: String,
    /// Template of the row key.
    pub row_key: String,
    /// Row keys as they are, the first and others at even distances.
    pub keys: Vec<String>,
    /// Families with their columns.
    pub families: Vec<FamilyText>,
    /// Fields of records, as SQL shows them: name and type.
    pub fields: Vec<(String, String)>,
    /// Bytes in files by column, largest first.
    pub bytes: Vec<(String, u64)>,
    /// Records by event time; `None` if the layout keeps no time, or the table is empty.
    #[serde(default)]
    pub by_time: Option<TimeChart>,
    /// Windows with their files, oldest first.
    pub windows: Vec<WindowBar>,
    /// Versions that are kept, oldest first.
    pub versions: Vec<VersionText>,
    /// What `--output json` prints.
    pub data: Value,
}

/// The records of a table by event time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeChart {
    /// Length of every slice, seconds.
    pub slice: i64,
    /// A column of numbers whose mean is drawn; may be empty.
    pub measure: String,
    /// Slices with records, oldest first.
    pub slices: Vec<TimeSlice>,
}

/// A slice of time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeSlice {
    /// Its start, microseconds since the epoch.
    pub start: i64,
    /// Records with an event time in it.
    pub records: u64,
    /// The mean of the measure.
    pub mean: Option<f64>,
}

/// A family with its columns, as text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FamilyText {
    /// The id of the family.
    pub name: String,
    /// Its garbage collection; may be empty.
    pub gc: String,
    /// Qualifiers and what their values are.
    pub columns: Vec<(String, String)>,
}

/// A window of a table, with what its files hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowBar {
    /// Its name, such as `2018-01-05`.
    pub window: String,
    /// The number of files with rows of it.
    pub files: u64,
    /// Rows of the window.
    pub rows: u64,
    /// Cells of these rows.
    pub cells: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// Whether some of them hold other windows, too: their numbers are then its share of what they hold.
    #[serde(default)]
    pub shares_files: bool,
}

/// A version of a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VersionText {
    /// Its number, from 1.
    pub number: u64,
    /// When it was committed, microseconds since the epoch; `None` if not recorded.
    pub at: Option<i64>,
    /// Its files and their bytes.
    pub files: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// The inputs it holds.
    pub inputs: u64,
}
