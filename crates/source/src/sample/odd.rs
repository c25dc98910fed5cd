//! Tolerates a few odd values: a broken line must not turn a column of numbers or times into text.

use arrow::array::{Array, StringArray};
use chrono_tz::Tz;
use tidetable_layout::FieldType;

use crate::sample::candidate::{Candidate, values};
use crate::sample::kinds::{MARKERS, infer};
use crate::sample::{numbers, times};
use crate::spec::CsvOptions;

/// One row in so many may be rejected: the default tolerance of a run.
const ODD_SHARE: u64 = 1000;
/// Fewest values of which one may be odd.
const ENOUGH: u64 = 100;

/// How many of `count` values or rows may be odd: the default tolerance of a run, at least one.
pub(super) fn tolerated(count: u64) -> u64 {
    if count < ENOUGH { 0 } else { (count / ODD_SHARE).max(1) }
}

/// The type of a column, and the positions (batch, row) of values that do not fit it.
pub(super) fn infer_most(
    name: &str,
    column: &[&StringArray],
    csv: &CsvOptions,
    zone: Option<Tz>,
) -> (Candidate, Vec<(usize, usize)>) {
    let strict = infer(name, column, csv, zone);
    let is_text = strict.spec.kind == FieldType::Text;
    let maybe_time = strict.spec.kind == FieldType::Int64 && times::named_so(name);
    if !is_text && !maybe_time {
        return (strict, Vec::new());
    }
    let there: Vec<_> = positions(column).filter(|(_, value)| is_there(value)).collect();
    let most = tolerated(there.len() as u64) as usize;
    if most == 0 {
        return (strict, Vec::new());
    }
    let found: Vec<&str> = there.iter().map(|(_, value)| *value).collect();
    let point = if csv.decimal_comma { ',' } else { '.' };
    let is_any = |odd: &Vec<usize>| !odd.is_empty();
    let odd = numbers::odd(&found, point, most).filter(|odd| is_text && is_any(odd));
    let Some(odd) = odd.or_else(|| times::odd(name, &found, csv, most)).filter(is_any) else {
        return (strict, Vec::new());
    };
    let odd: Vec<_> = odd.into_iter().filter_map(|at| there.get(at)).collect();
    let places: Vec<(usize, usize)> = odd.iter().map(|(place, _)| *place).collect();
    let rest = without(column, &places);
    let lenient = infer(name, &rest.iter().collect::<Vec<_>>(), csv, zone);
    let fits = match lenient.spec.kind {
        FieldType::Text | FieldType::Bool => false,
        // `A12` among integers: they are names.
        FieldType::Int64 | FieldType::UInt64 => is_text && !odd.iter().any(|(_, value)| is_name(value)),
        _ => true,
    };
    if fits { (lenient, places) } else { (strict, Vec::new()) }
}

/// Whether `,` is the decimal separator: some numbers have a comma, and none has a point.
pub(super) fn decimal_comma<'a>(columns: impl Iterator<Item = Vec<&'a StringArray>>) -> bool {
    let (mut commas, mut points) = (false, false);
    for column in columns {
        let fractional = |point| {
            let there = most_numbers(&column, point);
            let kind = numbers::kind(there.iter().copied(), point);
            !there.is_empty() && matches!(kind, Some(FieldType::Float64 | FieldType::Decimal { .. }))
        };
        commas |= fractional(',');
        points |= fractional('.');
    }
    commas && !points
}

/// The values of numbers of a column but for a few odd ones.
fn most_numbers<'a>(column: &'a [&StringArray], point: char) -> Vec<&'a str> {
    let mut there: Vec<&str> = values(column).filter(|value| is_there(value)).collect();
    let odd = numbers::odd(&there, point, tolerated(there.len() as u64) as usize);
    for at in odd.unwrap_or_default().into_iter().rev() {
        there.remove(at);
    }
    there
}

fn is_there(value: &str) -> bool {
    !value.is_empty() && !MARKERS.contains(&value)
}

/// Letters and digits, and nothing else.
fn is_name(value: &str) -> bool {
    let has = |class: fn(char) -> bool| value.chars().any(class);
    has(char::is_alphabetic) && has(char::is_numeric) && value.chars().all(char::is_alphanumeric)
}

fn positions<'a>(column: &'a [&StringArray]) -> impl Iterator<Item = ((usize, usize), &'a str)> {
    column.iter().enumerate().flat_map(|(batch, array)| {
        let rows = (0..array.len()).filter(|row| array.is_valid(*row));
        rows.map(move |row| ((batch, row), array.value(row).trim()))
    })
}

/// The column with null at `places`, which are in order.
fn without(column: &[&StringArray], places: &[(usize, usize)]) -> Vec<StringArray> {
    let parts = column.iter().enumerate().map(|(batch, array)| {
        let values = array.iter().enumerate();
        values.map(|(row, value)| value.filter(|_| places.binary_search(&(batch, row)).is_err())).collect()
    });
    parts.collect()
}
