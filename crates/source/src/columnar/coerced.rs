//! A column in its declared type, with the rows that do not fit it, and what all ways to a type need.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::reject::RejectReason;
use crate::time::Remarks;
use crate::value::ColumnBuilder;

/// A value that does not fit the declared type, by its row in the batch.
pub(super) struct Fault {
    pub row: u32,
    pub reason: RejectReason,
}

/// A column in its declared type, of the length of the column of the file.
pub(super) struct Coerced {
    pub array: ArrayRef,
    /// The rows that do not fit, whose values are arbitrary.
    pub faults: Vec<Fault>,
    pub remarks: Remarks,
    /// The rows with NaN, which are null.
    pub nans: Vec<u32>,
}

impl Coerced {
    pub fn new(array: ArrayRef, faults: Vec<Fault>) -> Self {
        Self { array, faults, remarks: Remarks::default(), nans: Vec::new() }
    }

    pub fn of(mut column: ColumnBuilder<'_>, faults: Vec<Fault>) -> Result<Self, ArrowError> {
        let remarks = column.remarks();
        Ok(Self { remarks, ..Self::new(column.finish()?, faults) })
    }
}

/// Arrow's cast, in which a value that does not fit becomes null.
pub(super) fn cast(array: &ArrayRef, target: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == target {
        return Ok(Arc::clone(array));
    }
    cast_with_options(array, target, &CastOptions { safe: true, format_options: FormatOptions::new() })
}

/// Shows the values of an array, as messages about rejected rows do.
pub(super) fn formatter(array: &ArrayRef) -> Result<ArrayFormatter<'_>, ArrowError> {
    const OPTIONS: FormatOptions<'static> = FormatOptions::new();
    ArrayFormatter::try_new(array.as_ref(), &OPTIONS)
}

/// The faults of the first `rows` rows, in ascending order.
pub(super) fn faulty(rows: usize, check: impl Fn(usize) -> Option<RejectReason>) -> Vec<Fault> {
    (0..rows).filter_map(|row| check(row).map(|reason| Fault { row: row as u32, reason })).collect()
}

/// Rows that have a value in `from` and none in `to`; `reason` is given their text.
pub(super) fn lost(
    from: &ArrayRef,
    to: &ArrayRef,
    reason: impl Fn(String) -> RejectReason,
) -> Result<Vec<Fault>, ArrowError> {
    if from.logical_null_count() == to.null_count() {
        return Ok(Vec::new());
    }

    let nulls = from.logical_nulls();
    let text = formatter(from)?;
    Ok(faulty(from.len(), |row| {
        let had_value = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        (had_value && to.is_null(row)).then(|| reason(text.value(row).to_string()))
    }))
}
