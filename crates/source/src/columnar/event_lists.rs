//! Which lists of a file with columns are events: the rule of JSON, on its first rows.

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema};

use crate::columnar::explode::Lists;
use crate::columnar::json_text::lines;
use crate::error::SourceError;
use crate::json::likely_lists;

/// Rows that are looked at.
const ROWS: usize = 1000;

impl Lists {
    /// The lists of the file at `path` whose elements are most likely events. `first_rows` reads its first rows, if `schema` has
    /// lists at all.
    ///
    /// # Errors
    /// Those of `first_rows`.
    pub fn likely(
        path: &str,
        schema: &Schema,
        first_rows: impl FnOnce() -> Result<Option<RecordBatch>, SourceError>,
    ) -> Result<Self, SourceError> {
        if !schema.fields().iter().any(|field| has_list(field.data_type())) {
            return Ok(Self::default());
        }
        let Some(batch) = first_rows()? else { return Ok(Self::default()) };

        let text = lines(&batch.slice(0, batch.num_rows().min(ROWS)));
        let text = text.map_err(|source| SourceError::Arrow { path: path.to_owned(), source })?;
        let lists = Self::new(likely_lists(text.as_bytes()));
        // A list inside of a map has no path.
        Ok(if lists.missing(schema).is_none() { lists } else { Self::default() })
    }
}

fn has_list(data_type: &DataType) -> bool {
    use DataType as D;
    match data_type {
        D::List(_) | D::LargeList(_) | D::ListView(_) | D::LargeListView(_) | D::FixedSizeList(..) => true,
        D::Struct(children) => children.iter().any(|child| has_list(child.data_type())),
        _ => false,
    }
}
