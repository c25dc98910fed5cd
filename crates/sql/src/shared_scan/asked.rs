//! What scans ask of the files of their tables, whatever the period.

use std::sync::Arc;

use datafusion::physical_plan::PhysicalExpr;
use tidetable_layout::KeyRange;

/// What a scan asks for, but for its period.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScanSignature {
    pub(crate) table: String,
    pub(crate) version: u64,
    pub(crate) keys: Vec<KeyRange>,
    /// Columns of the table, ascending.
    pub(crate) columns: Vec<usize>,
    pub(crate) filters: Vec<Arc<dyn PhysicalExpr>>,
    /// The event time, where that says which period a record is of, and not the window of its row.
    pub(crate) time: Option<usize>,
}

/// What the queries of one period ask for.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Each with the bytes, about, that its records take.
    pub(crate) scans: Vec<(ScanSignature, u64)>,
}

impl Asked {
    /// What either asks for.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        let new = |(ask, _): &(ScanSignature, u64)| !self.scans.iter().any(|(known, _)| known == ask);
        let new: Vec<_> = other.scans.into_iter().filter(new).collect();
        self.scans.extend(new);
        self
    }

    /// What both ask for.
    #[must_use]
    pub fn alike(&self, other: &Self) -> Self {
        let both = self.scans.iter().filter(|(ask, _)| other.scans.iter().any(|(known, _)| known == ask));
        Self { scans: both.cloned().collect() }
    }

    /// Whether it is nothing.
    pub fn is_empty(&self) -> bool {
        self.scans.is_empty()
    }

    /// Bytes that the records of the period take, about.
    pub fn bytes(&self) -> u64 {
        self.scans.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add)
    }

    pub(crate) fn asks(&self) -> Vec<ScanSignature> {
        self.scans.iter().map(|(ask, _)| ask.clone()).collect()
    }
}
