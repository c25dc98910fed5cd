//! Collects scan signatures from a physical plan.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use tidetable_store::StoreError;

use crate::scan::source::SstSource;
use crate::scan::spec::{ScanOutput, ScanTask};
use crate::shared_scan::share;
use crate::shared_scan::signatures::{ScanSignature, ScanSignatures};

/// Assumed bytes of a variable-length value.
const TEXT: usize = 24;

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

impl ScanSignatures {
    /// The scans of a plan.
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
            // With a limit, little is read.
            && config.limit.is_none()
            && let Ok(task) = source.task()
            && let Some(signature) = ScanSignature::of(&task)
            && !self.scans.iter().any(|(known, _)| *known == signature)
        {
            let records = share::records(&task.scan.snapshot, &task.scan.keys, &task.scan.time)?;
            self.scans.push((signature, records.saturating_mul(width(&task.schema))));
        }
        plan.children().into_iter().try_for_each(|child| self.add(child))
    }
}

/// Estimated bytes of a record.
fn width(schema: &Schema) -> u64 {
    let of = |kind: &DataType| kind.primitive_width().unwrap_or(TEXT) as u64;
    schema.fields().iter().map(|field| of(field.data_type())).sum::<u64>().max(1)
}
