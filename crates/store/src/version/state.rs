//! One version of a table.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use tidetable_layout::time::window_bounds;
use tidetable_layout::{SourceSchema, TableSpec, Window};

use crate::version::Tombstone;
use crate::version::cow_list::CowList;
use crate::version::inputs::{Input, InputName};
use crate::version::sst::Sst;
use crate::version::window::WindowState;

/// One version of a table, as its manifest states it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// Number of the version; the first is 1.
    pub number: u64,
    /// Id of the commit, by which a writer recognises its own commit after a lost reply.
    pub commit: String,
    /// Table UUID: the commit id of version 1. Distinguishes this table from an earlier one of the same name.
    #[serde(rename = "born")]
    pub table_uuid: String,
    /// Logical time of the commit, microseconds since the epoch.
    pub now: i64,
    /// What the table is: its job, layout and rules.
    pub table: TableIdentity,
    /// Inputs whose rows the table holds, by input sequence number.
    pub inputs: CowList<Input>,
    /// Other names that were seen, by input sequence number: copies of inputs, and inputs that were removed.
    #[serde(default, skip_serializing_if = "CowList::is_empty")]
    pub names: CowList<InputName>,
    /// Windows that hold cells, by start.
    pub windows: CowList<WindowState>,
    /// Tombstones, oldest first. They also hide cells of inputs that are read again.
    #[serde(default, rename = "drops", skip_serializing_if = "Vec::is_empty")]
    pub tombstones: Vec<Tombstone>,
    /// GC watermark: logical time of the latest compaction. Cells that had expired by then may be gone.
    #[serde(default, rename = "collected", skip_serializing_if = "Option::is_none")]
    pub gc_watermark: Option<i64>,
    /// Cutoff of the latest vacuum, microseconds since the epoch by the clock of the store, recorded before it
    /// removes anything: older files that no version named then may be gone.
    #[serde(default, rename = "vacuumed", skip_serializing_if = "Option::is_none")]
    pub vacuum_watermark: Option<i64>,
    /// Where it was read from.
    #[serde(skip)]
    pub(crate) origin: Origin,
}

/// Where a version was read from or written to. Ignored when versions are compared.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    /// Checksum of its manifest; empty if it has none yet.
    pub(crate) manifest: String,
    /// The newest known checkpoint or full manifest up to this version.
    pub(crate) checkpoint: u64,
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Identity of a table: fixed at creation, changed only by a rebuild.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableIdentity {
    /// The job it belongs to.
    pub job: String,
    /// The layout as declared in the job file.
    pub spec: TableSpec,
    /// The columns of its source.
    pub source: SourceSchema,
    /// Fingerprint of the layout.
    pub layout: String,
    /// Garbage-collection rule of each family that has one, in cbt's notation.
    pub gc: BTreeMap<String, String>,
}

impl Version {
    /// Version 0: empty and without a manifest.
    pub fn empty(table: TableIdentity) -> Self {
        Self {
            number: 0,
            commit: String::new(),
            table_uuid: String::new(),
            now: 0,
            table,
            inputs: CowList::default(),
            names: CowList::default(),
            windows: CowList::default(),
            tombstones: Vec::new(),
            gc_watermark: None,
            vacuum_watermark: None,
            origin: Origin::default(),
        }
    }

    /// The window that starts at `start` (microseconds since the epoch), inserted if it is missing.
    pub fn window(&mut self, start: i64) -> &mut WindowState {
        let found = self.windows.binary_search_by_key(&start, |window| window.start);
        let at = match found {
            Ok(at) => at,
            Err(at) => {
                self.windows.insert(at, WindowState::new(start));
                at
            }
        };
        &mut self.windows[at]
    }

    /// All SSTs, by window.
    pub fn ssts(&self) -> impl Iterator<Item = &Sst> {
        self.windows.iter().flat_map(|window| &window.ssts)
    }

    /// Sequence number of the next new input: never one that a tombstone covers, even if inputs are gone.
    pub fn next_input_seqno(&self) -> u64 {
        let deleted = self.tombstones.iter().map(|tombstone| tombstone.input_seqno);
        let inputs = self.inputs.last().map(|input| input.input_seqno + 1);
        let names = self.names.last().map(|name| name.input_seqno + 1);
        deleted.chain(inputs).chain(names).fold(1, u64::max)
    }

    /// Sequence number of the next SST or tombstone. A tombstone has its own, so that a compaction of the SSTs before
    /// it can take that number, below all later SSTs.
    pub fn next_seqno(&self) -> u64 {
        let seqnos = self.ssts().map(|sst| sst.seqno).chain(self.tombstones.iter().map(|tombstone| tombstone.seqno));
        seqnos.map(|seqno| seqno + 1).max().unwrap_or(0)
    }

    /// Multi-window files with rows of the window at `start`.
    pub fn shared_files(&self, start: i64) -> impl Iterator<Item = &Sst> {
        self.ssts().filter(move |sst| sst.multi_window.as_ref().is_some_and(|multi_window| multi_window.holds(start)))
    }

    /// Starts of the windows that lost a damaged SST to a repair and were not rebuilt since: cells are missing there.
    pub fn lost_windows(&self) -> BTreeSet<i64> {
        let of_inputs = self.inputs.iter().flat_map(|input| &input.owed);
        let of_names = self.names.iter().flat_map(|name| &name.owed);
        of_inputs.chain(of_names).filter(|owed| owed.lost).map(|owed| owed.start).collect()
    }

    /// The event times of the [lost windows](Self::lost_windows), microseconds since the epoch.
    pub fn lost_times(&self) -> Vec<Range<i64>> {
        self.lost_windows().into_iter().map(|start| self.window_times(start)).collect()
    }

    /// The event times of the window at `start`, microseconds since the epoch.
    pub fn window_times(&self, start: i64) -> Range<i64> {
        match self.table.spec.window {
            Window::None => i64::MIN..i64::MAX,
            window => window_bounds(window, start),
        }
    }

    /// Whether tombstones or garbage-collection rules may hide cells of `sst`.
    pub fn may_hide_cells(&self, sst: &Sst) -> bool {
        self.tombstones.iter().any(|tombstone| tombstone.may_hide(sst)) || !self.table.gc.is_empty()
    }
}
