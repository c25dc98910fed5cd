//! Combines the rows of a query with those published before.

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::JoinType;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Operator, binary_expr};
use datafusion::prelude::{DataFrame, col};
use datafusion::scalar::ScalarValue;
use futures::TryStreamExt;
use tidetable_sql::{Session, SqlError, plan_frame, quoted_name};

use crate::file::cbt::CellColumn;
use crate::file::cells::{COLUMNS, are_cells};
use crate::part::request::{FileMode, PublishRequest};

/// The rows of the part: those kept from before, then those of `new`. The columns are those of `new`; a new column
/// is null in older rows.
pub(crate) async fn combined(
    session: &Session,
    new: DataFrame,
    request: &PublishRequest<'_>,
) -> Result<DataFrame, SqlError> {
    let (FileMode::Append | FileMode::Upsert(_), Some(_)) = (request.mode, request.previous) else { return Ok(new) };
    let before = session.sql(&format!("SELECT * FROM exports.{}", quoted_name(request.folder))).await?;
    let before = match request.mode {
        FileMode::Upsert(keys) => {
            let renamed: Vec<String> = keys.iter().map(|key| format!("new {key}")).collect();
            let only = keys.iter().zip(&renamed).map(|(key, renamed)| column(key).alias(renamed));
            let restated = new.clone().select(only)?.distinct()?;
            let same = keys.iter().zip(&renamed).map(|(key, renamed)| {
                // Null keys are equal, as in GROUP BY.
                binary_expr(column(key), Operator::IsNotDistinctFrom, column(renamed))
            });
            before.join_on(restated, JoinType::LeftAnti, same)?
        }
        _ => before,
    };
    Ok(before.union_by_name(new)?)
}

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
fn column(name: &str) -> datafusion::prelude::Expr {
    col(datafusion::common::Column::new_unqualified(name))
}
