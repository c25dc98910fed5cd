//! The sort order of a file's rows, derived from the plan of its query.

use arrow::datatypes::Schema;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use parquet::file::metadata::SortingColumn;

/// The columns by which the rows of `plan` are sorted, the most significant first. Empty if
/// the plan guarantees none, or if a column of the file is nested (Parquet counts leaves).
pub(crate) fn sorting_columns(plan: &dyn ExecutionPlan, file: &Schema) -> Vec<SortingColumn> {
    if file.fields().iter().any(|field| field.data_type().is_nested()) {
        return Vec::new();
    }
    let Some(ordering) = plan.output_ordering() else { return Vec::new() };
    let columns = ordering.iter().map_while(|sort| {
        let column = sort.expr.downcast_ref::<Column>()?;
        let column_idx = i32::try_from(column.index()).ok()?;
        Some(SortingColumn { column_idx, descending: sort.options.descending, nulls_first: sort.options.nulls_first })
    });
    columns.collect()
}
