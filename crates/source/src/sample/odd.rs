//! Tolerates a few odd values: a broken line must not turn a column of numbers or times into text.

use std::collections::HashSet;

use arrow::array::{Array, StringArray};
use chrono_tz::Tz;
use tidetable_layout::FieldType;

use crate::sample::candidate::{Candidate, values};
use crate::sample::kinds::{MARKERS, infer};
use crate::sample::numbers::{forms, notation};
use crate::sample::times;
use crate::sample::words::{self, Words, is_name};
use crate::spec::CsvOptions;
use crate::value::blanks::trimmed_text;
use crate::value::notation::Notation;

/// One row in so many may be rejected: the default tolerance of a run.
const ODD_SHARE: u64 = 1000;
/// Fewest values of which one may be odd.
const ENOUGH: u64 = 100;
/// Fewest values of a column, and one odd value in so many, that make text nearly numbers or times.
const NEARLY_LEAST: usize = 10;
const NEARLY_SHARE: usize = 5;

/// How many of `count` values or rows may be odd: the default tolerance of a run, at least one.
pub(super) fn tolerated(count: u64) -> u64 {
    if count < ENOUGH { 0 } else { (count / ODD_SHARE).max(1) }
}

/// What is found of a column.
pub(super) struct Inferred {
    pub found: Candidate,
    /// The positions (batch, row) of values that do not fit, whose rows will be rejected.
    pub odd: Vec<(usize, usize)>,
    /// Words that stand for missing numbers.
    pub words: Option<Words>,
    /// Of text that is nearly numbers or times: the positions of what is not.
    pub nearly: Option<Nearly>,
    /// How its numbers are written.
    pub notation: notation::Found,
    /// Values that are not empty.
    pub count: usize,
}

/// Text of which most values are numbers or times.
pub(super) struct Nearly {
    pub is_time: bool,
    pub odd: Vec<(usize, usize)>,
}

/// The type of a column, and the values that do not fit it.
pub(super) fn infer_most(name: &str, column: &[&StringArray], csv: &CsvOptions, zone: Option<Tz>) -> Inferred {
    let there: Vec<_> = positions(column).filter(|(_, value)| is_there(value)).collect();
    let texts: Vec<&str> = there.iter().map(|(_, value)| *value).collect();
    let notation = notation::of_values(&texts, csv);
    let place = |indices: &[usize]| -> Vec<(usize, usize)> {
        indices.iter().filter_map(|at| there.get(*at)).map(|(place, _)| *place).collect()
    };
    let strict = infer(name, column, csv, notation.notation, zone);
    let is_text = strict.spec.kind == FieldType::Text;
    let maybe_time = strict.spec.kind == FieldType::Int64 && times::named_so(name);
    let result = |found, odd| Inferred { found, odd, words: None, nearly: None, notation, count: texts.len() };
    if !is_text && !maybe_time {
        return result(strict, Vec::new());
    }

    if is_text
        && let Some(words) = words::find(&texts, notation.notation)
        && let Some(found) = with_words(name, column, csv, notation.notation, &words, &place(&words.places))
    {
        return Inferred { words: Some(words), ..result(found, Vec::new()) };
    }

    let is_any = |odd: &Vec<usize>| !odd.is_empty();
    let most = tolerated(texts.len() as u64) as usize;
    let odd = forms::odd(&texts, notation.notation, most).filter(|odd| is_text && is_any(odd));
    let odd = odd.or_else(|| times::odd(name, &texts, csv, most)).filter(|odd| most > 0 && is_any(odd));
    if let Some(odd) = odd {
        let places = place(&odd);
        let rest = without(column, &places);
        let lenient = infer(name, &rest.iter().collect::<Vec<_>>(), csv, notation.notation, zone);
        let fits = match lenient.spec.kind {
            FieldType::Text | FieldType::Bool => false,
            // `A12` among integers: they are names.
            FieldType::Int64 | FieldType::UInt64 => {
                is_text && !odd.iter().filter_map(|at| texts.get(*at)).any(|value| is_name(value))
            }
            _ => true,
        };
        if fits {
            return result(lenient, places);
        }
    }
    if !is_text || texts.len() < NEARLY_LEAST {
        return result(strict, Vec::new());
    }

    let most = texts.len() / NEARLY_SHARE;
    let number = forms::odd(&texts, notation.notation, most).filter(is_any).map(|odd| (false, odd));
    let near = number.or_else(|| times::odd(name, &texts, csv, most).filter(is_any).map(|odd| (true, odd)));
    let nearly = near.map(|(is_time, odd)| Nearly { is_time, odd: place(&odd) });
    Inferred { nearly, ..result(strict, Vec::new()) }
}

/// The type of a column of numbers without its words; `None` if they may be names.
fn with_words(
    name: &str,
    column: &[&StringArray],
    csv: &CsvOptions,
    notation: Notation,
    words: &Words,
    places: &[(usize, usize)],
) -> Option<Candidate> {
    let rest = without(column, places);
    let rest: Vec<&StringArray> = rest.iter().collect();
    let found = infer(name, &rest, csv, notation, None);
    let distinct: HashSet<&str> = values(&rest).collect();
    words::is_measured(found.spec.kind, words, distinct.len()).then(|| {
        let markers = found.markers.iter().chain(words.counts.keys()).cloned().collect();
        Candidate { markers, ..found }
    })
}

/// Whether `,` is the decimal separator: some numbers have a comma, and none has a point.
pub(super) fn decimal_comma<'a>(columns: impl Iterator<Item = Vec<&'a StringArray>>) -> bool {
    let (mut commas, mut points) = (false, false);
    for column in columns {
        let fractional = |point| {
            let notation = Notation { point, thousands: None, unicode_minus: true };
            let there = most_numbers(&column, notation);
            let kind = forms::forms(there.iter().copied(), notation).and_then(|forms| forms.kind());
            !there.is_empty() && matches!(kind, Some(FieldType::Float64 | FieldType::Decimal { .. }))
        };
        commas |= fractional(b',');
        points |= fractional(b'.');
    }
    commas && !points
}

/// The values of numbers of a column but for a few odd ones.
fn most_numbers<'a>(column: &'a [&StringArray], notation: Notation) -> Vec<&'a str> {
    let mut there: Vec<&str> = values(column).filter(|value| is_there(value)).collect();
    let odd = forms::odd(&there, notation, tolerated(there.len() as u64) as usize);
    for at in odd.unwrap_or_default().into_iter().rev() {
        there.remove(at);
    }
    there
}

fn is_there(value: &str) -> bool {
    !value.is_empty() && !MARKERS.contains(&value)
}

fn positions<'a>(column: &'a [&StringArray]) -> impl Iterator<Item = ((usize, usize), &'a str)> {
    column.iter().enumerate().flat_map(|(batch, array)| {
        let rows = (0..array.len()).filter(|row| array.is_valid(*row));
        rows.map(move |row| ((batch, row), trimmed_text(array.value(row))))
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
