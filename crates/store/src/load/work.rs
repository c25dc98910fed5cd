//! Work of a load: the inputs to read, and which of their rows count.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use tidetable_source::{ContentHash, InputFile};

use crate::error::{Result, StoreError};
use crate::load::input::plan::Grown;
use crate::tombstone::Tombstone;
use crate::version::Input;

/// An input to be read.
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
    /// The part that the table keeps, if it has grown.
    pub(crate) held: Option<HeldInput>,
    /// The offsets whose rejected rows are reported: a load that starts over has reported some already.
    pub(crate) reports: Range<u64>,
}

/// The part of a grown input that a table already holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct HeldInput {
    pub(crate) input: Input,
    /// Offset of its end.
    pub(crate) end: u64,
    /// Whether it touches rebuilt windows.
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
        Self { file, input_seqno, counts: true, changed: false, expected: None, cut: None, held: None, reports }
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
        self.counts_at(offset) || self.changed || rebuilt.binary_search(&start).is_ok()
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
        let held = self.held.as_ref().map(|held| &held.input);
        let count = |of: fn(&Input) -> u64| held.map_or(0, of);
        let days = held.into_iter().flat_map(|held| &held.days).chain(read.days.values().flatten());
        let windows = held.into_iter().flat_map(|held| &held.windows).chain(read.days.keys());
        let days: BTreeSet<i32> = days.copied().collect();
        let windows: BTreeSet<i64> = windows.copied().collect();
        Ok(Input {
            input_seqno: self.input_seqno,
            path: self.file.path.clone(),
            size: self.file.size,
            version: self.file.version.clone(),
            hash,
            read: count(|held| held.read) + read.counts.read,
            rejected: count(|held| held.rejected) + read.counts.rejected,
            days: days.into_iter().collect(),
            windows: windows.into_iter().collect(),
        })
    }
}

/// Row counts of an input or a piece.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) read: u64,
    pub(crate) accepted: u64,
    pub(crate) filtered: u64,
    pub(crate) rejected: u64,
    /// Accepted rows without cells.
    pub(crate) empty: u64,
}

impl Counts {
    /// Checks that read = accepted + filtered + rejected.
    pub(crate) fn assert_complete(&self, path: &str) -> Result<()> {
        if self.read == self.accepted + self.filtered + self.rejected {
            return Ok(());
        }
        Err(StoreError::Uncounted {
            path: path.to_owned(),
            read: self.read,
            accepted: self.accepted,
            filtered: self.filtered,
            rejected: self.rejected,
        })
    }
}

/// Totals of one input.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InputRead {
    pub(crate) counts: Counts,
    pub(crate) hash: Option<ContentHash>,
    /// UTC days with cells, by window.
    pub(crate) days: BTreeMap<i64, BTreeSet<i32>>,
}
