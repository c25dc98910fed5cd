//! Work of a load: the inputs to read, and which of their rows count.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use tidetable_source::{ContentHash, InputFile, TextShape};
use tidetable_store::version::Tombstone;
use tidetable_store::version::{Input, OwedWindow, VersionEdit};
use tidetable_store::{Result, StoreError};

use crate::input::feed::LoadedContent;
use crate::input::plan::Grown;

/// An input to be read, and which of its rows count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToRead {
    pub(crate) file: InputFile,
    pub(crate) input_seqno: u64,
    /// New or changed: its rows are counted and its rejected rows reported. Otherwise it is only read again to
    /// rebuild windows.
    pub(crate) counts: bool,
    /// Whether it changed, so that all its windows must be among the rebuilt ones.
    pub(crate) changed: bool,
    /// Expected hash of its content, if known.
    pub(crate) expected: Option<ContentHash>,
    /// Offset at which a piece must begin.
    pub(crate) cut: Option<u64>,
    /// The part that the table keeps, if it has grown or is read again to settle windows that it owes.
    pub(crate) held: Option<HeldInput>,
    /// Windows that stay as they are although its rows there change, and what they hold of it.
    pub(crate) left: Vec<OwedWindow>,
    /// Windows that it owed and that are rebuilt now.
    pub(crate) settles: Vec<OwedWindow>,
    /// The offset up to which its content is that of its record, and the hash of that content, if that is known.
    pub(crate) prefix: Option<(u64, ContentHash)>,
    /// The offsets whose rejected rows are reported: a load that starts over has reported some already.
    pub(crate) reports: Range<u64>,
}

/// The part of an input that a table already holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct HeldInput {
    pub(crate) input: Input,
    pub(crate) end: u64,
    /// Whether it touches rebuilt windows, so that it is read again from its start.
    pub(crate) again: bool,
}

/// Work of a load for one table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Work {
    /// Windows whose SSTs are all replaced, ascending.
    pub(crate) rebuilt: Vec<i64>,
    /// Tombstones of the version to load into: they hide cells of inputs that are read again.
    pub(crate) tombstones: Vec<Tombstone>,
    /// In order of input sequence number.
    pub(crate) inputs: Vec<ToRead>,
}

impl Work {
    /// Reports rejected rows only of the old content of `grown` inputs.
    pub(crate) fn report_only_held(&mut self, grown: &[Grown]) {
        for input in &mut self.inputs {
            let held = grown.iter().find(|grown| grown.file.path == input.file.path).map_or(0, |grown| grown.from);
            (input.reports, input.cut) = (0..held, Some(held).filter(|held| *held > 0));
        }
    }
}

impl ToRead {
    /// An input whose rows are all loaded.
    pub(crate) fn new(file: &InputFile, input_seqno: u64) -> Self {
        let (file, reports) = (file.clone(), 0..u64::MAX);
        Self {
            file,
            input_seqno,
            counts: true,
            changed: false,
            expected: None,
            cut: None,
            held: None,
            left: Vec::new(),
            settles: Vec::new(),
            prefix: None,
            reports,
        }
    }

    /// The same for an input that owes windows, of which those of `rebuilt` are settled. Their days are added to `edit`.
    pub(crate) fn owing(mut self, owed: &[OwedWindow], rebuilt: &BTreeSet<i64>, edit: &mut VersionEdit) -> Self {
        for owed in owed {
            if rebuilt.contains(&owed.start) {
                edit.days.entry(owed.start).or_default().extend(&owed.days);
                self.settles.push(owed.clone());
            } else {
                self.left.push(owed.clone());
            }
        }
        self
    }

    /// Whether its changed rows stay out of the window at `start`.
    pub(crate) fn leaves(&self, start: i64) -> bool {
        self.changed && self.left.iter().any(|left| left.start == start)
    }

    /// Whether the piece at `offset` holds rows that its record does not count.
    pub(crate) fn is_new_at(&self, offset: u64) -> bool {
        self.prefix.is_none_or(|(end, _)| offset >= end)
    }

    /// Whether the table already holds the piece at `offset`.
    fn holds(&self, offset: u64) -> bool {
        self.held.as_ref().is_some_and(|held| offset < held.end)
    }

    /// Whether the rows of the piece at `offset` are counted.
    pub(crate) fn counts_at(&self, offset: u64) -> bool {
        self.counts && !self.holds(offset)
    }

    /// Whether rejected rows of the piece at `offset` are reported.
    pub(crate) fn reports_at(&self, offset: u64) -> bool {
        self.counts_at(offset) && self.reports.contains(&offset)
    }

    /// Whether the piece at `offset` is not needed.
    pub(crate) fn skips(&self, offset: u64) -> bool {
        self.holds(offset) && self.held.as_ref().is_some_and(|held| !held.again)
    }

    /// Whether cells of the piece at `offset` are needed in the window at `start`.
    pub(crate) fn wants(&self, start: i64, offset: u64, rebuilt: &[i64]) -> bool {
        !self.leaves(start) && (self.counts_at(offset) || self.changed || rebuilt.binary_search(&start).is_ok())
    }

    /// Checks that an input read again is the recorded one.
    pub(crate) fn check(&self, read: &InputRead) -> Result<()> {
        match self.expected {
            Some(expected) if read.hash != Some(expected) => {
                Err(StoreError::InputChanged { path: self.file.path.clone() })
            }
            _ => Ok(()),
        }
    }

    /// The record of the input for the next version.
    pub(crate) fn record(&self, read: &InputRead, rebuilt: &[i64]) -> Result<Input> {
        let moved = self.changed && read.days.keys().any(|start| rebuilt.binary_search(start).is_err());
        let Some(hash) = read.hash.filter(|_| !moved) else {
            return Err(StoreError::InputChanged { path: self.file.path.clone() });
        };
        let (size, hash) = read.loaded.map_or((self.file.size, hash), |loaded| (loaded.bytes, loaded.hash));
        let held = self.held.as_ref().map(|held| &held.input);
        let mut days: BTreeSet<i32> = BTreeSet::new();
        let mut windows: BTreeSet<i64> = BTreeSet::new();
        if let Some(held) = held {
            days.extend(&held.days);
            let settled: BTreeSet<i64> = self.settles.iter().map(|settled| settled.start).collect();
            windows.extend(held.windows.iter().filter(|start| !settled.contains(start)));
        }
        for left in self.left.iter().filter(|left| !left.days.is_empty()) {
            days.extend(&left.days);
            windows.insert(left.start);
        }
        for (start, read_days) in read.days.iter().chain(&read.settled) {
            days.extend(read_days);
            windows.insert(*start);
        }

        Ok(Input {
            input_seqno: self.input_seqno,
            path: self.file.path.clone(),
            size,
            version: self.file.version.clone(),
            hash,
            read: held.map_or(0, |held| held.read) + read.counts.read,
            rejected: held.map_or(0, |held| held.rejected) + read.counts.rejected,
            more_lines_rejected: held.map_or(0, |held| held.more_lines_rejected) + read.counts.more_lines,
            reader: self.file.reader,
            breaks: self.file.breaks.clone(),
            shape: read.shape,
            days: days.into_iter().collect(),
            windows: windows.into_iter().collect(),
            owed: self.owed(read, hash),
        })
    }

    /// The rows that it owed in windows that are rebuilt now, unless all its rows are counted again.
    pub(crate) fn rows_settled(&self) -> u64 {
        self.settles.iter().map(|settled| settled.rows).sum()
    }

    /// The rows of windows that stay as they are, because they hold these rows already: the load brings nothing of them.
    pub(crate) fn rows_held(&self, read: &InputRead) -> u64 {
        let Some(hash) = read.hash.filter(|_| self.changed && self.counts) else { return 0 };
        let held = self.left.iter().filter(|left| self.is_built_from(left, read, hash));
        held.filter_map(|left| read.owed.get(&left.start)).sum()
    }

    /// Whether a window was last built from the rows that content `hash` has in it.
    fn is_built_from(&self, left: &OwedWindow, read: &InputRead, hash: ContentHash) -> bool {
        let unchanged = self.prefix.filter(|_| !read.renewed.contains(&left.start)).map(|(_, before)| before);
        left.held.is_some_and(|held| held == hash || Some(held) == unchanged)
    }

    /// The windows that it owes after it was read as content `hash`.
    fn owed(&self, read: &InputRead, hash: ContentHash) -> Vec<OwedWindow> {
        let mut owed = Vec::new();
        if !self.changed {
            for left in &self.left {
                // Rows of an input that has grown may lie in them, too.
                let held = left.held.filter(|_| !self.counts);
                owed.push(OwedWindow { held, ..left.clone() });
            }
            return owed;
        }

        for left in &self.left {
            let rows = read.owed.get(&left.start).copied().unwrap_or_default();
            let brings = left.lost || rows > 0 || !left.days.is_empty();
            if brings && !self.is_built_from(left, read, hash) {
                owed.push(OwedWindow { rows, ..left.clone() });
            }
        }
        owed.sort_by_key(|owed| owed.start);
        owed
    }
}

/// Row counts of an input or a piece.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) read: u64,
    pub(crate) accepted: u64,
    pub(crate) filtered: u64,
    pub(crate) rejected: u64,
    /// Lines of rejected rows beyond the first of each.
    pub(crate) more_lines: u64,
    pub(crate) empty: u64,
    /// Rows of windows that are left as they are.
    pub(crate) owed: u64,
    /// Rows of which a delete hides cells.
    #[serde(default)]
    pub(crate) hidden: u64,
}

impl Counts {
    /// Checks that read = accepted + filtered + rejected + owed.
    pub(crate) fn assert_complete(&self, path: &str) -> Result<()> {
        if self.read == self.accepted + self.filtered + self.rejected + self.owed {
            return Ok(());
        }
        Err(StoreError::Uncounted {
            path: path.to_owned(),
            read: self.read,
            accepted: self.accepted,
            filtered: self.filtered,
            rejected: self.rejected,
            owed: self.owed,
        })
    }
}

/// Totals of one input, as far as it was read: what its record in the next version is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InputRead {
    pub(crate) counts: Counts,
    pub(crate) hash: Option<ContentHash>,
    /// What was loaded, if not all of it.
    #[serde(default)]
    pub(crate) loaded: Option<LoadedContent>,
    /// What the beginning of its text decided.
    #[serde(default, skip_serializing_if = "TextShape::is_open")]
    pub(crate) shape: TextShape,
    /// UTC days with cells, by the start of their window.
    pub(crate) days: BTreeMap<i64, BTreeSet<i32>>,
    /// The same of rows that are not counted, in windows that the input owed.
    pub(crate) settled: BTreeMap<i64, BTreeSet<i32>>,
    /// Rows of windows that are left as they are, by window.
    pub(crate) owed: BTreeMap<i64, u64>,
    /// Those of these windows with rows after [`ToRead::prefix`].
    pub(crate) renewed: BTreeSet<i64>,
}

impl InputRead {
    /// Adds rows of windows that are left as they are. `is_new` tells whether they lie behind what the record counts.
    pub(crate) fn add_owed(&mut self, owed: &BTreeMap<i64, u64>, is_new: bool) {
        for (window, rows) in owed {
            *self.owed.entry(*window).or_default() += rows;
            if is_new {
                self.renewed.insert(*window);
            }
        }
    }

    /// Adds the days of rows that do not count, in windows that the input owed.
    pub(crate) fn add_settled(&mut self, days: BTreeMap<i64, BTreeSet<i32>>, to_read: &ToRead) {
        for (window, days) in days {
            if to_read.settles.iter().any(|owed| owed.start == window) {
                self.settled.entry(window).or_default().extend(days);
            }
        }
    }

    /// Adds rows that count, and the days of their cells by window.
    pub(crate) fn count(&mut self, rows: &Counts, days: &BTreeMap<i64, BTreeSet<i32>>) {
        self.counts.read += rows.read;
        self.counts.accepted += rows.accepted;
        self.counts.filtered += rows.filtered;
        self.counts.rejected += rows.rejected;
        self.counts.more_lines += rows.more_lines;
        for (window, days) in days {
            self.days.entry(*window).or_default().extend(days);
        }
    }
}
