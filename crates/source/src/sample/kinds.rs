//! Infers the type of a column that was read as text.

use std::collections::BTreeSet;

use arrow::array::StringArray;
use chrono_tz::Tz;
use tidetable_layout::FieldType;

use crate::number::parse_bool;
use crate::sample::candidate::{self, Candidate, fits, values};
use crate::sample::numbers::codes::Codes;
use crate::sample::numbers::forms::Forms;
use crate::sample::numbers::{forms, notation};
use crate::sample::times;
use crate::spec::{ColumnSpec, CsvOptions, SourceSpec};
use crate::value::blanks::trimmed_text;
use crate::value::notation::Notation;

/// Common null markers; only used in columns that are not text.
pub(super) const MARKERS: [&str; 14] =
    ["NA", "N/A", "n/a", "na", "NaN", "nan", "NULL", "Null", "null", "None", "none", "-", "?", "\\N"];

/// Fewest digits of a text that is a time.
const LEAST_TIME_DIGITS: usize = 6;

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
    let codes = forms.as_ref().and_then(|_| {
        let all: Vec<&str> = there.clone().collect();
        Codes::of(&all, notation.point)
    });
    let kind = forms.as_ref().filter(|_| codes.is_none()).and_then(Forms::kind);
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
    let Some(found) = found else { return Candidate { codes, ..text } };

    let is_time = matches!(found.spec.kind, FieldType::Timestamp | FieldType::Date);
    let rewritten = forms.and_then(|forms| forms.rewritten).filter(|_| !is_time);
    Candidate { markers, rewritten, ..found }
}

/// A column of numbers that fit `spec`, or of times that such numbers count.
fn of_numbers<'a>(spec: ColumnSpec, there: impl Iterator<Item = &'a str> + Clone, notation: Notation) -> Candidate {
    let time = match spec.kind {
        FieldType::Int64 => {
            let range = there.filter_map(|value| value.parse().ok()).map(|value: i64| (value, value));
            times::of_integers(&spec.name, &range.collect::<Vec<_>>())
        }
        FieldType::Float64 | FieldType::Decimal { .. } => {
            let maybe_epoch = times::maybe_epoch_of(there.clone(), notation);
            let number = Candidate { maybe_epoch, ..Candidate::plain(spec.clone()) };
            times::of_fractions(&spec.name, there, notation).or(Some(number))
        }
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

/// Whether the header looks like data, although its columns are text: some names are numbers with a unit or times, as all values
/// below them are, and no other name tells that it is one.
pub(super) fn names_are_values(spec: &SourceSpec, texts: &[Vec<&StringArray>]) -> bool {
    let mut any = false;
    for (column, values) in spec.columns.iter().zip(texts) {
        if column.kind != FieldType::Text {
            if !fits(column, &[&StringArray::from(vec![column.name.as_str()])], &spec.csv) {
                return false;
            }
            continue;
        }
        any |= is_written_like(&column.name, values);
    }
    any
}

/// Whether a name has the form of a number with a unit, or of a time, and all `values` have the same form.
fn is_written_like(name: &str, values: &[&StringArray]) -> bool {
    let name = trimmed_text(name);
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    let unsigned = name.strip_prefix(['-', '+']).unwrap_or(name);
    let number = unsigned.split(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default();
    // Names such as `2020 kWh` are those of years.
    let is_year = number.len() == 4 && number.parse().is_ok_and(|year: u32| (1000..3000).contains(&year));
    let is_measure = !number.is_empty() && !is_year;
    if !is_measure && digits < LEAST_TIME_DIGITS {
        return false;
    }

    let form = form_of(name, is_measure);
    let mut there = candidate::values(values).filter(|value| !value.is_empty()).peekable();
    there.peek().is_some() && there.all(|value| form_of(value, is_measure) == form)
}

/// A text with `0` for each run of digits and, unless `keeps_letters`, with `a` for each run of letters.
pub(super) fn form_of(text: &str, keeps_letters: bool) -> String {
    let mut form = String::new();
    for letter in text.chars() {
        let of_form = match letter {
            '0'..='9' => '0',
            letter if letter.is_alphabetic() && !keeps_letters => 'a',
            // Numbers have either sign, and exponents too.
            '-' => '+',
            other => other,
        };
        let is_run = matches!(of_form, '0' | 'a') && form.ends_with(of_form);
        if !is_run {
            form.push(of_form);
        }
    }
    form
}

/// Whether a text is a value rather than a name: a number, or digits with the signs of times.
pub(super) fn is_like_value(text: &str) -> bool {
    let text = trimmed_text(text);
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let is_time = digits >= 6 && text.bytes().all(|byte| byte.is_ascii_digit() || b"-:/. TZ+".contains(&byte));
    text.parse::<f64>().is_ok_and(f64::is_finite) || is_time
}
