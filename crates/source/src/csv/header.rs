//! Which field of a row is which declared column.

use crate::error::{SourceError, nearest};
use crate::plan::ColumnPlan;

/// For each field of a row the declared column it feeds, if any.
pub(crate) fn map_columns(
    path: &str,
    header: &[String],
    columns: &[ColumnPlan],
) -> Result<Vec<Option<usize>>, SourceError> {
    let mut steps = vec![None; header.len()];
    for (index, column) in columns.iter().enumerate() {
        let mut places = header.iter().zip(&mut steps).filter(|(name, _)| **name == column.name);
        let Some((_, step)) = places.next() else {
            return Err(SourceError::MissingColumn {
                path: path.to_owned(),
                column: column.name.clone(),
                header: header.to_vec(),
                hint: nearest(&column.name, header),
            });
        };
        if places.next().is_some() {
            return Err(SourceError::DuplicateColumn { path: path.to_owned(), column: column.name.clone() });
        }
        *step = Some(index);
    }
    Ok(steps)
}
