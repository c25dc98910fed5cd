//! Columns without a name: which of them hold something.

use arrow::array::{AsArray, RecordBatch, StringArray};

use crate::spec::SourceSpec;
use crate::value::blanks::trimmed_text;

/// Takes those of the columns `unnamed` out of the declaration that hold nothing, or the numbers of the rows. Returns their
/// names.
pub(in crate::sample) fn take_idle(
    unnamed: &mut Vec<String>,
    spec: &mut SourceSpec,
    batches: &[RecordBatch],
) -> Vec<String> {
    let idle: Vec<String> = unnamed.extract_if(.., |name| is_idle(name, batches)).collect();
    spec.columns.retain(|column| !idle.contains(&column.name));
    idle
}

fn is_idle(name: &str, batches: &[RecordBatch]) -> bool {
    let mut columns = batches.iter().filter_map(|batch| batch.column_by_name(name)?.as_string_opt::<i32>());
    columns.clone().all(is_empty) || columns.all(are_row_numbers)
}

fn is_empty(values: &StringArray) -> bool {
    values.iter().flatten().all(|value| trimmed_text(value).is_empty())
}

/// Whether each value is a number that is one more than that before it.
fn are_row_numbers(values: &StringArray) -> bool {
    let numbers: Option<Vec<i64>> =
        values.iter().map(|value| trimmed_text(value.unwrap_or_default()).parse().ok()).collect();
    numbers.is_some_and(|numbers| numbers.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1])))
}
