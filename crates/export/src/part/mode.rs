//! Combines the rows of a query with those published before.

use datafusion::common::JoinType;
use datafusion::logical_expr::{Operator, binary_expr};
use datafusion::prelude::DataFrame;
use tidetable_sql::{Session, SqlError, quoted_name};

use crate::file::cell_query::column;
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
