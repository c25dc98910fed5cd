//! The scans of a query, by signature, independent of the period.

use std::sync::Arc;

use datafusion::physical_plan::PhysicalExpr;
use tidetable_layout::KeyRange;

use crate::scan::spec::{ScanOutput, ScanTask};

/// What a scan reads and outputs, without its period: scans with equal signatures can share a read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScanSignature {
    pub(crate) table: String,
    pub(crate) version: u64,
    pub(crate) keys: Vec<KeyRange>,
    /// Indexes of the columns of the table, ascending.
    pub(crate) columns: Vec<usize>,
    pub(crate) filters: Vec<Arc<dyn PhysicalExpr>>,
    /// The event-time column, if it and not the row's window decides the period of a record.
    pub(crate) time: Option<usize>,
}

impl ScanSignature {
    /// The signature of a scan of records; `None` for aggregations, cells and rows.
    pub(crate) fn of(task: &ScanTask) -> Option<Self> {
        let ScanOutput::Records { within } = &task.scan.output else { return None };
        if task.aggregate.is_some() {
            return None;
        }
        let snapshot = &task.scan.snapshot;
        Some(Self {
            table: snapshot.table().name().to_owned(),
            version: snapshot.version().number,
            keys: task.scan.keys.clone(),
            columns: task.columns.clone(),
            filters: task.filters.clone(),
            time: within.as_ref().map(|(time, _)| *time),
        })
    }
}

/// The signatures of the scans of the queries of one period.
#[derive(Debug, Clone, Default)]
pub struct ScanSignatures {
    /// Signatures, each with the estimated bytes of the records of its scan.
    pub(crate) scans: Vec<(ScanSignature, u64)>,
}

impl ScanSignatures {
    /// The scans that are in either of both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        let mut scans = other.scans;
        scans.retain(|(signature, _)| !self.scans.iter().any(|(known, _)| known == signature));
        self.scans.extend(scans);
        self
    }

    /// The scans that are in both.
    #[must_use]
    pub fn alike(&self, other: &Self) -> Self {
        let both = self.scans.iter().filter(|(signature, _)| other.scans.iter().any(|(known, _)| known == signature));
        Self { scans: both.cloned().collect() }
    }

    /// Whether there are no scans that could be shared.
    pub fn is_empty(&self) -> bool {
        self.scans.is_empty()
    }

    /// Estimated bytes of the records of all scans of the period.
    pub fn bytes(&self) -> u64 {
        self.scans.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add)
    }

    pub(crate) fn signatures(&self) -> Vec<ScanSignature> {
        self.scans.iter().map(|(signature, _)| signature.clone()).collect()
    }
}
