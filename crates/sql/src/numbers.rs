//! Queries that measure: one row of whole numbers.

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::error::DataFusionError;
use datafusion::scalar::ScalarValue;

use crate::error::Result;
use crate::session::Session;

/// The first row of `query` as whole numbers, 0 for what is null; none if it gives no row.
///
/// # Errors
/// As [`Session::sql_with`], and if a column is no number.
pub async fn numbers(session: &Session, query: &str, params: &[(&str, ScalarValue)]) -> Result<Vec<i64>> {
    let batches = session.sql_with(query, params).await?.collect().await?;
    let Some(batch) = batches.iter().find(|batch| batch.num_rows() > 0) else { return Ok(Vec::new()) };
    let mut numbers = Vec::with_capacity(batch.num_columns());
    for column in batch.columns() {
        let column = cast(column, &DataType::Int64).map_err(DataFusionError::from)?;
        numbers.push(column.as_primitive::<Int64Type>().iter().next().flatten().unwrap_or(0));
    }
    Ok(numbers)
}

/// A name as SQL takes it, whatever is in it.
pub fn name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
