//! The scans of a query, by signature, independent of the period.

use std::sync::Arc;

use datafusion::physical_plan::PhysicalExpr;
use tidetable_layout::KeyRange;

use crate::scan::spec::{ScanOutput, ScanTask};

/// Signature of a scan without its period.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScanSignature {
    pub(crate) table: String,
    pub(crate) version: u64,
    pub(crate) keys: Vec<KeyRange>,
    /// Table columns, ascending.
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

/// The scans of the queries of one period.
#[derive(Debug, Clone, Default)]
pub struct ScanSignatures {
    /// Signatures with the estimated bytes of their records.
    pub(crate) scans: Vec<(ScanSignature, u64)>,
}

impl ScanSignatures {
    /// Union of both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        let new = |(signature, _): &(ScanSignature, u64)| !self.scans.iter().any(|(known, _)| known == signature);
        let new: Vec<_> = other.scans.into_iter().filter(new).collect();
        self.scans.extend(new);
        self
    }

    /// Intersection of both.
    #[must_use]
    pub fn alike(&self, other: &Self) -> Self {
        let both = self.scans.iter().filter(|(signature, _)| other.scans.iter().any(|(known, _)| known == signature));
        Self { scans: both.cloned().collect() }
    }

    /// Whether there are no scans.
    pub fn is_empty(&self) -> bool {
        self.scans.is_empty()
    }

    /// Estimated bytes of the period's records.
    pub fn bytes(&self) -> u64 {
        self.scans.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add)
    }

    pub(crate) fn signatures(&self) -> Vec<ScanSignature> {
        self.scans.iter().map(|(signature, _)| signature.clone()).collect()
    }
}
