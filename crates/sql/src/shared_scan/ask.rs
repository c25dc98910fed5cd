//! What scans ask of the files of their tables, whatever the period.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use tidetable_layout::KeyRange;
use tidetable_store::StoreError;

use crate::scan::opener::Work;
use crate::scan::source::{Shape, SstSource};
use crate::shared_scan::share;

/// Bytes of a value whose size its type does not tell, about.
const TEXT: usize = 24;

/// What a scan asks for, but for its period.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScanSignature {
    table: String,
    version: u64,
    keys: Vec<KeyRange>,
    /// Columns of the table, ascending.
    columns: Vec<usize>,
    filters: Vec<Arc<dyn PhysicalExpr>>,
    /// The event time, where that says which period a record is of, and not the window of its row.
    time: Option<usize>,
}

impl ScanSignature {
    /// What a scan asks for; `None` if it is not for records as they are.
    pub(crate) fn of(work: &Work) -> Option<Self> {
        let Shape::Records { within } = &work.scan.shape else { return None };
        if work.aggregate.is_some() {
            return None;
        }
        let snapshot = &work.scan.snapshot;
        Some(Self {
            table: snapshot.table().name().to_owned(),
            version: snapshot.version().number,
            keys: work.scan.keys.clone(),
            columns: work.columns.clone(),
            filters: work.filters.clone(),
            time: within.as_ref().map(|(time, _)| *time),
        })
    }
}

/// What the queries of one period ask for.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Each with the bytes, about, that its records take.
    scans: Vec<(ScanSignature, u64)>,
}

impl Asked {
    /// What the scans of a plan ask for.
    ///
    /// # Errors
    /// If a file cannot be opened.
    pub(crate) fn of(plan: &Arc<dyn ExecutionPlan>) -> Result<Self, StoreError> {
        let mut asked = Self::default();
        asked.add(plan)?;
        Ok(asked)
    }

    fn add(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Result<(), StoreError> {
        if let Some(exec) = plan.downcast_ref::<DataSourceExec>()
            && let Some((config, source)) = exec.downcast_to_file_source::<SstSource>()
            // Of a limit little is read.
            && config.limit.is_none()
            && let Ok(work) = source.work()
            && let Some(ask) = ScanSignature::of(&work)
            && !self.scans.iter().any(|(known, _)| *known == ask)
        {
            let records = share::records(&work.scan)?;
            self.scans.push((ask, records.saturating_mul(width(&work.schema))));
        }
        plan.children().into_iter().try_for_each(|child| self.add(child))
    }

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

/// Bytes of a record with these columns, about.
fn width(schema: &Schema) -> u64 {
    let of = |kind: &DataType| kind.primitive_width().unwrap_or(TEXT) as u64;
    schema.fields().iter().map(|field| of(field.data_type())).sum::<u64>().max(1)
}
