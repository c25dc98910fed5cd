//! Queries that return cells: their columns, and their order in a file.

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::error::DataFusionError;
use datafusion::prelude::{DataFrame, col};
use datafusion::scalar::ScalarValue;
use futures::TryStreamExt;
use tidetable_sql::{Session, SqlError, plan_frame};

use crate::file::cbt::CellColumn;
use crate::file::cells::{COLUMNS, are_cells};

/// The cells of a query in Bigtable's order.
pub(crate) fn cells_in_order(frame: DataFrame) -> Result<DataFrame, SqlError> {
    are_cells(frame.schema().as_arrow()).map_err(DataFusionError::from)?;
    let [key, family, qualifier, timestamp, _] = COLUMNS.map(column);
    let order = vec![
        key.sort(true, false),
        family.sort(true, false),
        qualifier.sort(true, false),
        timestamp.sort(false, false),
    ];
    Ok(frame.sort(order)?)
}

/// The columns of the cells that the query returns, in ascending order.
pub(crate) async fn cell_columns(
    session: &Session,
    sql: &str,
    params: &[(&str, ScalarValue)],
) -> Result<Vec<CellColumn>, SqlError> {
    let sql = sql.trim_end().trim_end_matches(';');
    let query = format!("SELECT DISTINCT family, qualifier FROM ({sql}\n) AS cells ORDER BY family, qualifier");
    let frame = session.sql_with(&query, params).await?;
    let mut stream = plan_frame(frame).await?.stream();
    let mut columns = Vec::new();
    while let Some(batch) = stream.try_next().await? {
        let families = cast(batch.column(0), &DataType::Utf8).map_err(DataFusionError::from)?;
        let qualifiers = cast(batch.column(1), &DataType::Binary).map_err(DataFusionError::from)?;
        let pairs = families.as_string::<i32>().iter().zip(qualifiers.as_binary::<i32>());
        columns.extend(pairs.filter_map(|(family, name)| Some((family?.to_owned(), name?.to_vec()))));
    }
    Ok(columns)
}

/// A column, by its exact name.
pub(crate) fn column(name: &str) -> datafusion::prelude::Expr {
    col(datafusion::common::Column::new_unqualified(name))
}
