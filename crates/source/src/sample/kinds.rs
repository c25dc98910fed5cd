//! Infers the type of a column that was read as text.

use std::collections::BTreeSet;

use arrow::array::StringArray;
use chrono_tz::Tz;
use tidetable_layout::FieldType;

use crate::number::parse_bool;
use crate::sample::candidate::{Candidate, fits, values};
use crate::sample::numbers::forms::Forms;
use crate::sample::numbers::{forms, notation};
use crate::sample::times;
use crate::spec::{ColumnSpec, CsvOptions, SourceSpec};
use crate::value::blanks::trimmed_text;
use crate::value::notation::Notation;

/// Common null markers; only used in columns that are not text.
pub(super) const MARKERS: [&str; 14] =
    ["NA", "N/A", "n/a", "na", "NaN", "nan", "NULL", "Null", "null", "None", "none", "-", "?", "\\N"];

/// The narrowest type that fits all values of the column `name`, whose numbers are in `notation`.
pub(super) fn infer(
    name: &str,
    column: &[&StringArray],
    csv: &CsvOptions,
    notation: Notation,
    zone: Option<Tz>,
) -> Candidate {
    let text = Candidate::plain(ColumnSpec::new(name, FieldType::Text));
    let markers: BTreeSet<String> = values(column).filter(|value| MARKERS.contains(value)).map(str::to_owned).collect();
    let there = values(column).filter(|value| !value.is_empty() && !markers.contains(*value));
    if there.clone().next().is_none() {
        return text;
    }
    let csv = CsvOptions { null: markers.iter().cloned().chain([String::new()]).collect(), ..csv.clone() };

    let forms = forms::forms(there.clone(), notation);
    let apart = forms.as_ref().and_then(|_| {
        let all: Vec<&str> = there.clone().collect();
        notation::written_two_ways(&all, notation.point)
    });
    let kind = forms.as_ref().filter(|_| apart.is_none()).and_then(Forms::kind);
    let spec = kind.map(|kind| notation::declared(ColumnSpec::new(name, kind), notation, &csv));
    let number = spec.filter(|spec| fits(spec, column, &csv)).map(|spec| of_numbers(spec, there.clone(), notation));

    let are_flags = there.clone().all(|value| value.len() > 3 && parse_bool(value.as_bytes()).is_some());
    let flag = are_flags.then(|| Candidate::plain(ColumnSpec::new(name, FieldType::Bool)));
    // Eight digits can be a day, if the column's name suggests it.
    let found = times::of_digits(name, column, &csv, zone)
        .or(number)
        .or(flag)
        .or_else(|| times::of_text(name, column, &csv, zone))
        .or_else(|| times::of_intervals(name, column, &csv, zone))
        .or_else(|| times::of_days_and_times(name, column, &csv, zone));
    let Some(found) = found else { return Candidate { apart, ..text } };

    let is_time = matches!(found.spec.kind, FieldType::Timestamp | FieldType::Date);
    let rewritten = forms.and_then(|forms| forms.rewritten).filter(|_| !is_time);
    Candidate { markers, rewritten, ..found }
}

/// A column of numbers that fit `spec`, or of times that such numbers count.
fn of_numbers<'a>(spec: ColumnSpec, there: impl Iterator<Item = &'a str>, notation: Notation) -> Candidate {
    let time = match spec.kind {
        FieldType::Int64 => {
            let range = there.filter_map(|value| value.parse().ok()).map(|value: i64| (value, value));
            times::of_integers(&spec.name, &range.collect::<Vec<_>>())
        }
        FieldType::Float64 | FieldType::Decimal { .. } => times::of_fractions(&spec.name, there, notation),
        _ => None,
    };
    time.unwrap_or_else(|| Candidate::plain(spec))
}

/// Whether the header looks like data: all names fit the types of their columns.
pub(super) fn header_is_data(spec: &SourceSpec) -> bool {
    let mut typed = spec.columns.iter().filter(|column| column.kind != FieldType::Text);
    let count = typed.clone().count();

    // Years as names of columns: 1990, 1991, ..
    let years = typed.clone().filter_map(|column| column.name.parse::<u32>().ok());
    let years: Vec<u32> = years.filter(|year| (1000..3000).contains(year)).collect();
    let are_years = years.len() > 1 && years.len() == count && years.is_sorted_by(|a, b| a < b);

    count > 0
        && !are_years
        && typed.all(|column| fits(column, &[&StringArray::from(vec![column.name.as_str()])], &spec.csv))
}

/// Whether a text is a value rather than a name: a number, or digits with the signs of times.
pub(super) fn is_like_value(text: &str) -> bool {
    let text = trimmed_text(text);
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let is_time = digits >= 6 && text.bytes().all(|byte| byte.is_ascii_digit() || b"-:/. TZ+".contains(&byte));
    text.parse::<f64>().is_ok_and(f64::is_finite) || is_time
}
