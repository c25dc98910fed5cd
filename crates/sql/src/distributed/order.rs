//! What a scan reads, as a value.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tidetable_layout::KeyRange;
use tidetable_store::{Snapshot, Store, StoreError};

use crate::scan::spec::{ScanOutput, TableScan};
use crate::schema::{RowView, families};
use crate::view_options::CellsShown;

/// Keys from the first to before the second.
pub(crate) type Keys = (Vec<u8>, Option<Vec<u8>>);

/// What a scan reads: a version of a table, and what of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanOrder {
    pub(crate) table: String,
    pub(crate) version: u64,
    /// The commit of the version: another root may have one of the same number.
    commit: String,
    shown: Shown,
    keys: Vec<Keys>,
    time: Range<i64>,
    even: bool,
    push_down: bool,
}

/// The output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Shown {
    Records(Option<(usize, Range<i64>)>),
    Cells,
    Rows { with_history: bool, time: Range<i64>, versions: usize, include_expired: bool },
}

pub(crate) fn keys_of(range: &KeyRange) -> Keys {
    (range.start.clone(), range.end.clone())
}

pub(crate) fn range_of((start, end): &Keys) -> KeyRange {
    KeyRange { start: start.clone(), end: end.clone() }
}

impl ScanOrder {
    /// Of a scan that shares nothing with other scans.
    pub(crate) fn of(scan: &TableScan) -> Self {
        let shown = match &scan.output {
            ScanOutput::Records { within } => Shown::Records(within.clone()),
            ScanOutput::Cells => Shown::Cells,
            ScanOutput::Rows(RowView { shown, .. }) => Shown::Rows {
                with_history: shown.with_history,
                time: shown.time.clone(),
                versions: shown.versions,
                include_expired: shown.include_expired,
            },
        };
        Self {
            table: scan.snapshot.table().name().to_owned(),
            version: scan.snapshot.version().number,
            commit: scan.snapshot.version().commit.clone(),
            shown,
            keys: scan.keys.iter().map(keys_of).collect(),
            time: scan.time.clone(),
            even: scan.even,
            push_down: scan.push_down,
        }
    }

    /// Name of the schema that the scan is of.
    pub(crate) fn schema(&self) -> &'static str {
        match self.shown {
            Shown::Records(_) => "records",
            Shown::Cells => "cells",
            Shown::Rows { .. } => "rows",
        }
    }

    /// The scan in `store`; `None` if the version there is of another commit.
    ///
    /// # Errors
    /// If the version cannot be opened.
    pub(crate) fn open(&self, store: &Store) -> Result<Option<TableScan>, StoreError> {
        let table = store.table(&self.table);
        let version = table.version(self.version)?;
        if version.commit != self.commit {
            return Ok(None);
        }
        let mut snapshot = Snapshot::new(table, Arc::new(version))?;
        let output = match self.shown.clone() {
            Shown::Records(within) => ScanOutput::Records { within },
            Shown::Cells => ScanOutput::Cells,
            Shown::Rows { with_history, time, versions, include_expired } => {
                if include_expired {
                    snapshot = snapshot.including_expired();
                }
                let shown = CellsShown { with_history, time, versions, include_expired };
                ScanOutput::Rows(RowView { families: families(snapshot.layout()), shown })
            }
        };
        Ok(Some(TableScan {
            snapshot,
            output,
            keys: self.keys.iter().map(range_of).collect(),
            time: self.time.clone(),
            even: self.even,
            push_down: self.push_down,
        }))
    }
}
