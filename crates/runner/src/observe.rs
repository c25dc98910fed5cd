//! What a run tells of itself while it goes on.

use crate::plan::Plan;

/// Something a run did or is about to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// What the run is going to do.
    Plan(Plan),
    /// A stage began.
    Stage {
        /// What it does.
        name: String,
        /// What it counts.
        unit: Unit,
        /// How much of that there is to do.
        total: u64,
    },
    /// Inputs were read, since the last such event.
    Read {
        /// Bytes as stored.
        bytes: u64,
        /// Rows accepted.
        rows: u64,
    },
    /// Rows were laid out for a table, since the last such event.
    Laid {
        /// How many.
        rows: u64,
    },
    /// Rows that were laid out were sorted and written.
    Wrote {
        /// How many.
        rows: u64,
    },
    /// A part of an export was published, or found to be as it was.
    Published {
        /// Its folder.
        name: String,
        /// Its rows.
        rows: u64,
        /// Whether its file changed.
        changed: bool,
    },
    /// A part of an export could not be published, or was not.
    Missed {
        /// Its folder.
        name: String,
        /// Why.
        reason: String,
    },
    /// Files that several parts of an export are made from were read once for all of them.
    ReadTogether {
        /// The export.
        export: String,
        /// Parts that were read so.
        parts: u64,
        /// How often files were read for that.
        reads: u64,
    },
    /// A sentence for the user.
    Note(String),
}

/// What a stage counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of inputs.
    Bytes,
    /// Parts of an export.
    Parts,
    /// Nothing.
    None,
}

/// Watches a run. Called from several threads.
pub trait Observer: Sync {
    /// Takes note of an event.
    fn event(&self, event: Event);
}

/// Watches nothing.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Observer for Silent {
    fn event(&self, _: Event) {}
}
