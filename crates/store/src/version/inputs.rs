//! Inputs of a version, and names of inputs without rows: copies, and removed inputs.
//!
//! A name keeps the sequence number that it got when it was first seen, so that order and tombstones stay valid
//! whatever happens to the file. The names whose rows a table holds are its [`crate::Input`]s; these are the others.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use tidetable_source::{ContentHash, HeldContent, InputFile, ReaderVersion, TextShape};

use crate::version::cow_list::CowList;

/// An input the table holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Input sequence number: among equal cells the one with the greatest wins.
    #[serde(rename = "sequence")]
    pub input_seqno: u64,
    /// Path or URL, as in the job.
    pub path: String,
    /// Bytes as stored.
    pub size: u64,
    /// Fingerprint of the file, to detect changes; see [`tidetable_source::InputFile::version`].
    pub version: String,
    /// Hash of the bytes as stored.
    pub hash: ContentHash,
    /// Rows read, including rejected ones.
    pub read: u64,
    /// Rows rejected.
    pub rejected: u64,
    /// Lines of rejected rows beyond the first of each.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_lines_rejected: u64,
    /// The rules by which it was read; those before versions were kept are not written.
    #[serde(default, skip_serializing_if = "ReaderVersion::is_first")]
    pub reader: ReaderVersion,
    /// Where its records end whatever follows; see [`tidetable_source::InputFile::breaks`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breaks: Vec<u64>,
    /// What its beginning decided when it was first loaded; see [`tidetable_source::InputFile::shape`].
    #[serde(default, skip_serializing_if = "TextShape::is_open")]
    pub shape: TextShape,
    /// UTC days its cells lie in, days since the epoch, ascending.
    pub days: Vec<i32>,
    /// Starts of the windows its cells lie in, microseconds, ascending.
    pub windows: Vec<i64>,
    /// Windows that could not be rebuilt when its content changed, ascending; they hold what its former content gave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owed: Vec<OwedWindow>,
}

/// A window that an input owes: other inputs of the window were gone when it had to be rebuilt, so it was left as it
/// was, or a repair removed an SST of it. Once all its inputs are back, or removed, the next load rebuilds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwedWindow {
    /// Its start, microseconds since the epoch.
    #[serde(rename = "window")]
    pub start: i64,
    /// Rows of the input that belong into the window and are not in it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rows: u64,
    /// UTC days of the cells that the window still holds of the input's former content, days since the epoch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<i32>,
    /// Hash of that content, if the window holds exactly its cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<ContentHash>,
    /// Whether a repair removed a damaged SST of the window: cells of its inputs are missing there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
}

impl Input {
    /// Its content, and the rules by which that was read.
    pub fn content(&self) -> HeldContent {
        HeldContent {
            size: self.size,
            hash: self.hash,
            reader: self.reader,
            breaks: self.breaks.clone(),
            shape: self.shape,
        }
    }

    /// Has `file` read by the rules by which the input was loaded.
    pub fn keep_rules(&self, file: &mut InputFile) {
        file.reader = self.reader;
        file.breaks.clone_from(&self.breaks);
        file.shape = self.shape;
    }

    /// Starts of the windows that hold its cells or shall hold them.
    pub fn touches(&self) -> impl Iterator<Item = i64> {
        self.windows.iter().copied().chain(self.owed.iter().map(|owed| owed.start))
    }

    /// What each of its windows holds of it; the days in a window come from `days_in`.
    pub fn holds(&self, days_in: impl Fn(&[i32], i64) -> Vec<i32>) -> Vec<OwedWindow> {
        let held = Some(self.hash).filter(|hash| *hash != ContentHash(0));
        let of_content = self.windows.iter().filter(|start| !self.owed.iter().any(|owed| owed.start == **start));
        let of_content = of_content.map(|start| {
            let days = days_in(&self.days, *start);
            OwedWindow { start: *start, rows: 0, days, held, lost: false }
        });
        self.owed.iter().cloned().chain(of_content).collect()
    }
}

/// Marks the windows of `starts` in `owed` as lost: they no longer hold exactly the cells of any content.
pub fn mark_lost(owed: &mut [OwedWindow], starts: &BTreeSet<i64>) {
    for owed in owed.iter_mut().filter(|owed| starts.contains(&owed.start)) {
        owed.held = None;
        owed.lost = true;
    }
}

fn is_zero(rows: &u64) -> bool {
    *rows == 0
}

/// A name that was seen and for which the table holds no rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputName {
    /// Input sequence number.
    #[serde(rename = "sequence")]
    pub input_seqno: u64,
    /// Path or URL, as in the job.
    pub path: String,
    /// Its content when last seen, a copy of an input's. `None` for a removed input, which is ignored until it comes
    /// back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<InputContent>,
    /// Windows that still hold its rows, because they could not be rebuilt without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owed: Vec<OwedWindow>,
}

/// Content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputContent {
    /// Bytes as stored.
    pub size: u64,
    /// Fingerprint of the file, as in [`crate::Input::version`].
    pub version: String,
    /// Hash of the bytes as stored.
    pub hash: ContentHash,
}

/// An input or another name of a version.
pub(crate) trait Named {
    /// Path or URL.
    fn path(&self) -> &str;
    /// Input sequence number.
    fn input_seqno(&self) -> u64;
}

impl Named for InputName {
    fn path(&self) -> &str {
        &self.path
    }

    fn input_seqno(&self) -> u64 {
        self.input_seqno
    }
}

impl Named for Input {
    fn path(&self) -> &str {
        &self.path
    }

    fn input_seqno(&self) -> u64 {
        self.input_seqno
    }
}

/// Removes items by path, inserts or replaces others by path, and sorts by sequence number.
pub(crate) fn put_named<T: Named>(items: &mut CowList<T>, gone: &[String], put: Vec<T>) {
    if !gone.is_empty() {
        let gone: HashSet<&str> = gone.iter().map(String::as_str).collect();
        items.retain(|item| !gone.contains(item.path()));
    }
    if put.is_empty() {
        return;
    }
    let places: HashMap<String, usize> = {
        let wanted: HashSet<&str> = put.iter().map(Named::path).collect();
        let found = items.iter().enumerate().filter(|(_, item)| wanted.contains(item.path()));
        found.map(|(at, item)| (item.path().to_owned(), at)).collect()
    };
    for item in put {
        match places.get(item.path()) {
            Some(at) => items.set(*at, item),
            None => items.push(item),
        }
    }
    items.sort_by_key(Named::input_seqno);
}
