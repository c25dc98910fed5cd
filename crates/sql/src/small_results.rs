//! Runs small queries: one row of integers, or the first rows as JSON.

use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::DataFusionError;
use datafusion::physical_plan::collect;
use datafusion::scalar::ScalarValue;
use serde_json::{Map, Value};

use crate::error::Result;
use crate::session::Session;
use crate::session::planning::plan_frame;

/// The first row of `query` as integers, 0 for null; empty without a row.
///
/// # Errors
/// As [`Session::sql_with`], and if a column is not a number.
pub async fn first_row_of_integers(session: &Session, query: &str, params: &[(&str, ScalarValue)]) -> Result<Vec<i64>> {
    let planned = plan_frame(session.sql_with(query, params).await?).await?;
    let batches = collect(planned.plan, planned.context).await?;
    let Some(batch) = batches.iter().find(|batch| batch.num_rows() > 0) else { return Ok(Vec::new()) };
    let mut numbers = Vec::with_capacity(batch.num_columns());
    for column in batch.columns() {
        let column = cast(column, &DataType::Int64).map_err(DataFusionError::from)?;
        numbers.push(column.as_primitive::<Int64Type>().iter().next().flatten().unwrap_or(0));
    }
    Ok(numbers)
}

/// The first rows of `query`, at most `most`, each as a JSON object: numbers and booleans as such, other types as text.
///
/// # Errors
/// As [`Session::sql_with`], and if a column has a type that cannot be displayed.
pub async fn first_rows(
    session: &Session,
    query: &str,
    params: &[(&str, ScalarValue)],
    most: usize,
) -> Result<Vec<String>> {
    let planned = plan_frame(session.sql_with(query, params).await?.limit(0, Some(most))?).await?;
    let batches = collect(planned.plan, planned.context).await?;

    let mut rows = Vec::new();
    let options = FormatOptions::new();
    for batch in &batches {
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
        let columns = columns.collect::<Result<Vec<_>, _>>().map_err(DataFusionError::from)?;
        for row in 0..batch.num_rows() {
            let mut object = Map::new();
            for ((field, column), shown) in batch.schema_ref().fields().iter().zip(batch.columns()).zip(&columns) {
                let value = match shown.value(row).to_string() {
                    _ if column.is_null(row) || *field.data_type() == DataType::Null => Value::Null,
                    text if field.data_type().is_numeric() || *field.data_type() == DataType::Boolean => {
                        serde_json::from_str(&text).unwrap_or(Value::String(text))
                    }
                    text => Value::String(text),
                };
                object.insert(field.name().clone(), value);
            }
            rows.push(Value::Object(object).to_string());
        }
    }
    Ok(rows)
}

/// Quotes an identifier for SQL, so that it is taken as it is.
pub fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
