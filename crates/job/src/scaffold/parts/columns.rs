//! Columns of parts of times, and the SQL for their numbers.

use std::ops::Range;

use tidetable_layout::FieldType;
use tidetable_layout::time::SECOND;

use crate::scaffold::facts::{Column, Facts};
use crate::scaffold::identifier::identifier;

/// The column without nulls whose name is one of `names` and whose values are in `range`.
pub(crate) fn named<'f>(facts: &'f Facts, names: &[&str], range: Range<i64>) -> Option<(usize, &'f Column)> {
    named_beside(facts, names, range, &[])
}

/// As [`named`], of columns that are not at one of `used`: `mm` is a minute beside the month `MM`.
pub(crate) fn named_beside<'f>(
    facts: &'f Facts,
    names: &[&str],
    range: Range<i64>,
    used: &[usize],
) -> Option<(usize, &'f Column)> {
    let mut columns = facts.columns.iter().enumerate().filter(|(at, column)| column.nulls == 0 && !used.contains(at));
    columns.find(|(_, column)| names.contains(&column.name.to_lowercase().as_str()) && has_parts(column, &range))
}

/// The first column without nulls of which `fits` is true, with its place.
pub(crate) fn whole_column(facts: &Facts, fits: impl Fn(&Column) -> bool) -> Option<(usize, &Column)> {
    facts.columns.iter().enumerate().find(|(_, column)| column.nulls == 0 && fits(column))
}

/// Whether a column holds numbers in `range`, which may be written as text or as names of months.
pub(crate) fn has_parts(column: &Column, range: &Range<i64>) -> bool {
    let are_numbers = matches!(column.kind, FieldType::Int64 | FieldType::UInt64);
    (are_numbers || column.month_names.is_some() || column.is_written_number)
        && column.whole.iter().flatten().all(|value| range.contains(value))
}

/// The number of a row.
pub(crate) fn whole_at(column: &Column, row: usize) -> Option<i64> {
    column.whole.get(row).copied().flatten()
}

/// SQL for the number of a year, month or day.
pub(crate) fn number(part: &Column) -> String {
    let name = identifier(&part.name);
    match part.month_names {
        Some(months) => months.sql(&part.name),
        None => format!("cast({name} as int)"),
    }
}

/// SQL for the number of an hour, minute or second.
pub(crate) fn part(column: &Column) -> String {
    let name = identifier(&column.name);
    if column.is_written_number { format!("cast({name} as bigint)") } else { name }
}

/// Adds the values of a column to times, each of so many seconds.
pub(crate) fn add(micros: &mut [Option<i64>], column: &Column, seconds: i64) {
    for (moment, part) in micros.iter_mut().zip(&column.whole) {
        *moment = moment.zip(*part).map(|(moment, part)| moment + part * seconds * SECOND);
    }
}
