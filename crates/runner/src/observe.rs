//! Events of a run in progress, and the observer that receives them.

use crate::plan::Plan;

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The plan of the run.
    Plan(Plan),
    /// A stage of the run began.
    Stage {
        /// What the stage does, for people.
        name: String,
        /// What its progress counts.
        unit: Unit,
        /// The total to be counted.
        total: u64,
    },
    /// Inputs were read since the last event of this kind.
    Read {
        /// Bytes of the inputs, as stored.
        bytes: u64,
        /// Rows that were accepted.
        rows: u64,
    },
    /// Rows were encoded as cells of a table since the last event of this kind.
    Laid {
        /// Number of rows that were encoded.
        rows: u64,
    },
    /// Encoded rows were sorted and written.
    Wrote {
        /// Number of rows that were written.
        rows: u64,
    },
    /// A part of an export was published, or found unchanged.
    Published {
        /// Name of the directory of the part.
        name: String,
        /// Rows of the part.
        rows: u64,
        /// Whether its file changed.
        changed: bool,
    },
    /// A part of an export failed, or was left out.
    Missed {
        /// Name of the directory of the part.
        name: String,
        /// Why it is not published, in words.
        reason: String,
    },
    /// Files from which several parts of an export are made were read by a shared scan.
    ReadTogether {
        /// Name of the export.
        export: String,
        /// Parts made by it.
        parts: u64,
        /// Number of scans that were shared.
        reads: u64,
    },
    /// A note for the user.
    Note(String),
}

/// What a stage counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of inputs, as stored.
    Bytes,
    /// Parts of an export.
    Parts,
    /// Nothing: it has no progress.
    None,
}

/// Watches a run. Called from several threads.
pub trait Observer: Sync {
    /// Receives an event of the run.
    fn event(&self, event: Event);

    /// `text` for a reader elsewhere, as of a hook: commands that it names get the options that say where the store is.
    fn completed(&self, text: &str) -> String {
        text.to_owned()
    }
}

/// An observer that ignores all events.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Observer for Silent {
    fn event(&self, _: Event) {}
}
