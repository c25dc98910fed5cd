//! Unpivoting: an event for each value of the unpivoted columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray, StringBuilder, UInt32Array, new_empty_array};
use arrow::compute::{interleave, take};

use crate::encode::input::missing_column;
use crate::error::EncodeError;
use crate::plan::{Layout, Unpivot};
use crate::scalar::ColumnView;
use crate::schema::FieldType;
use crate::time::calendar::Calendar;

/// The events of a batch: one for each value of the unpivoted columns.
pub(super) struct Unpivoted {
    /// The row of the batch that each event comes from.
    pub(super) rows: Vec<u32>,
    /// The columns of the layout, by event.
    pub(super) columns: Vec<ArrayRef>,
}

/// Makes an event of each value of the unpivoted columns; its other columns repeat those of the row.
///
/// # Errors
/// If a column is missing, or there are more events than 32 bits count.
pub(super) fn unpivot_events(
    layout: &Layout,
    unpivot: &Unpivot,
    columns: &[ArrayRef],
    rows: usize,
) -> Result<Unpivoted, EncodeError> {
    let kind = layout.fields.get(unpivot.metric + 1).map_or(FieldType::Text, |field| field.kind);
    let mut wide: Vec<ArrayRef> = Vec::new();
    for field in &unpivot.columns {
        let array = columns.get(*field).ok_or_else(|| missing_column(layout, *field))?;
        wide.push(if *array.data_type() == kind.arrow() { Arc::clone(array) } else { as_text(array.as_ref()) });
    }

    let mut event_rows = Vec::with_capacity(rows * wide.len());
    let mut picks = Vec::with_capacity(rows * wide.len());
    for row in 0..rows {
        for (metric, array) in wide.iter().enumerate() {
            // An upsert clears values that it does not name, so nulls are events too.
            if array.is_valid(row) || layout.stored.upsert {
                event_rows.push(u32::try_from(row).map_err(|_| EncodeError::TooManyEvents)?);
                picks.push((metric, row));
            }
        }
    }
    u32::try_from(picks.len()).map_err(|_| EncodeError::TooManyEvents)?;

    let indices = UInt32Array::from(event_rows.clone());
    let mut out = Vec::with_capacity(layout.fields.len());
    for array in columns {
        out.push(take(array.as_ref(), &indices, None)?);
    }

    let names: Vec<&str> =
        unpivot.columns.iter().filter_map(|field| layout.fields.get(*field)).map(|field| field.name.as_str()).collect();
    let metrics: StringArray = picks.iter().map(|(metric, _)| names.get(*metric).copied()).collect();
    out.push(Arc::new(metrics));
    let wide: Vec<&dyn Array> = wide.iter().map(AsRef::as_ref).collect();
    out.push(if picks.is_empty() { new_empty_array(&kind.arrow()) } else { interleave(&wide, &picks)? });
    Ok(Unpivoted { rows: event_rows, columns: out })
}

/// The values of a column as text, for unpivoted columns of several types.
fn as_text(array: &dyn Array) -> ArrayRef {
    let view = ColumnView::new(array);
    let mut calendar = Calendar::default();
    let mut builder = StringBuilder::with_capacity(array.len(), array.len() * 8);
    let mut text = Vec::new();
    for index in 0..array.len() {
        text.clear();
        match view.get(index) {
            Some(scalar) => {
                scalar.write_text(&mut calendar, &mut text);
                builder.append_value(String::from_utf8_lossy(&text));
            }
            None => builder.append_null(),
        }
    }
    Arc::new(builder.finish())
}
