//! Collects scan signatures from a physical plan.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use tidetable_store::StoreError;

use crate::shared_scan::share;
use crate::shared_scan::signatures::{ScanSignature, ScanSignatures};
use crate::source::sst_source::SstSource;

/// Bytes that a value of variable length is assumed to have.
const TEXT: usize = 24;

/// The scans of a plan, by signature.
///
/// # Errors
/// If a file cannot be opened.
pub(crate) fn scans_of(plan: &Arc<dyn ExecutionPlan>) -> Result<ScanSignatures, StoreError> {
    let mut found = ScanSignatures::default();
    add_scans(plan, &mut found)?;
    Ok(found)
}

fn add_scans(plan: &Arc<dyn ExecutionPlan>, found: &mut ScanSignatures) -> Result<(), StoreError> {
    if let Some(exec) = plan.downcast_ref::<DataSourceExec>()
            && let Some((config, source)) = exec.downcast_to_file_source::<SstSource>()
            // With a limit, little is read.
            && config.limit.is_none()
            && let Ok(task) = source.task()
            && let Some(signature) = ScanSignature::of(&task)
            && !found.scans.iter().any(|(known, _)| *known == signature)
    {
        let records = share::records(&task.scan.snapshot, &task.scan.keys, &task.scan.time)?;
        found.scans.push((signature, records.saturating_mul(width(&task.schema))));
    }
    plan.children().into_iter().try_for_each(|child| add_scans(child, found))
}

/// Estimated bytes of a record of this schema.
fn width(schema: &Schema) -> u64 {
    let widths = schema.fields().iter().map(|field| field.data_type().primitive_width().unwrap_or(TEXT) as u64);
    widths.sum::<u64>().max(1)
}
