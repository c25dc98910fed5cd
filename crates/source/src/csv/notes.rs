//! Unusual records that are read all the same, and told.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::time::EpochNotes;

/// How many lines or records are unusual in one way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// How many lines or records there are.
    pub count: u64,
    /// The line on which the first of them starts, from 1; 0 if there is none.
    pub first_line: u64,
}

impl Counted {
    /// Counts one more, on a line behind those before.
    pub(crate) fn add(&mut self, line: u64) {
        if self.count == 0 {
            self.first_line = line;
        }
        self.count += 1;
    }

    fn join(&mut self, later: Self) {
        if self.count == 0 {
            self.first_line = later.first_line;
        }
        self.count += later.count;
    }
}

impl TextNotes {
    /// Most undeclared keys that are kept: objects may have keys that are values.
    pub const MOST_NEW_KEYS: usize = 64;

    /// Adds those of a later part of the same text.
    pub(crate) fn add(&mut self, later: &Self) {
        self.several_lines.join(later.several_lines);
        self.most_lines = self.most_lines.max(later.most_lines);
        self.repeated_headers.join(later.repeated_headers);
        self.changed_headers.join(later.changed_headers);
        self.bare_returns.join(later.bare_returns);
        self.extra_fields.join(later.extra_fields);
        self.comments.join(later.comments);
        self.comment_rows.join(later.comment_rows);
        self.empty_lists.join(later.empty_lists);
        self.list_records += later.list_records;
        self.unmarked_ends.join(later.unmarked_ends);
        self.epochs.add(&later.epochs);
        for (key, line) in &later.new_keys {
            self.new_keys.entry(key.clone()).or_insert(*line);
        }
    }
}

/// Unusual records of a part of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextNotes {
    /// Accepted records over several lines, whose quoted fields have line ends.
    pub several_lines: Counted,
    /// The most lines that one accepted record is on.
    pub most_lines: u64,
    /// Lines equal to the header, which are skipped.
    pub repeated_headers: Counted,
    /// Headers behind the first with other columns, or in another order: the records below them are read by them.
    pub changed_headers: Counted,
    /// Records with a carriage return in an unquoted value, which stays there.
    pub bare_returns: Counted,
    /// Rows with more fields than their header, which are blank and not read.
    pub extra_fields: Counted,
    /// Comment lines below the header, which are not read.
    pub comments: Counted,
    /// Those of them with as many fields as the header: rows, perhaps, whose first value begins with the mark of comments.
    pub comment_rows: Counted,
    /// Lists of events without an element, which give none.
    pub empty_lists: Counted,
    /// Records of a source whose events are the elements of lists.
    pub list_records: u64,
    /// Streams of Arrow without the mark of their end, with their last row: they may be cut between two batches.
    pub unmarked_ends: Counted,
    /// Epoch times whose unit may be another one than declared.
    pub epochs: EpochNotes,
    /// Keys of JSON that are neither declared nor in the first records of the file, with their first lines.
    pub new_keys: BTreeMap<String, u64>,
}
