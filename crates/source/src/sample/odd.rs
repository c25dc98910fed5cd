//! Tolerates a few odd values: a broken line must not turn a column of numbers or times into text.

use std::collections::HashSet;

use arrow::array::{Array, StringArray};
use chrono_tz::Tz;
use tidetable_layout::FieldType;

use crate::sample::candidate::{Candidate, values};
use crate::sample::kinds::{MARKERS, infer};
use crate::sample::numbers::notation::Marks;
use crate::sample::numbers::{forms, notation};
use crate::sample::times;
use crate::sample::words::{self, Words, is_name};
use crate::spec::{ColumnSpec, CsvOptions, Thousands};
use crate::value::blanks::trimmed_text;
use crate::value::notation::Notation;

/// One row in so many may be rejected: the default tolerance of a run.
const ODD_SHARE: u64 = 1000;
/// Fewest values of which one may be odd.
const ENOUGH: u64 = 100;
/// Values of a column that show how numbers of the file are written.
const MARKED: usize = 10_000;
/// Fewest values of a column, and one odd value in so many, that make text nearly numbers or times.
const NEARLY_LEAST: usize = 10;
const NEARLY_SHARE: usize = 5;
/// Most different words that may be up to half of such values, and how many different numbers there are for each.
const FEW_WORDS: usize = 3;
const NUMBERS_OF_A_WORD: usize = 3;

/// How many of `count` values or rows may be odd: the default tolerance of a run, at least one.
pub(super) fn tolerated(count: u64) -> u64 {
    if count < ENOUGH { 0 } else { (count / ODD_SHARE).max(1) }
}

/// A row of the sample, by its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SampledRow {
    pub batch: usize,
    /// Index in the batch.
    pub row: usize,
}

/// The values of a column that are there: neither empty nor a marker.
struct There<'a> {
    texts: Vec<&'a str>,
    /// For each text its row.
    rows: Vec<SampledRow>,
}

impl<'a> There<'a> {
    fn of(column: &'a [&StringArray]) -> Self {
        let mut there = Self { texts: Vec::new(), rows: Vec::new() };
        for (batch, array) in column.iter().enumerate() {
            for row in (0..array.len()).filter(|row| array.is_valid(*row)) {
                let text = trimmed_text(array.value(row));
                if is_there(text) {
                    there.texts.push(text);
                    there.rows.push(SampledRow { batch, row });
                }
            }
        }
        there
    }

    /// The rows of the texts at these indices.
    fn rows_of(&self, indices: &[usize]) -> Vec<SampledRow> {
        indices.iter().filter_map(|index| self.rows.get(*index)).copied().collect()
    }
}

/// What is found of a column, a few odd values aside.
pub(super) struct Inferred {
    pub found: Candidate,
    /// The rows of values that do not fit, which will be rejected.
    pub odd: Vec<SampledRow>,
    /// Words that stand for missing numbers, if the column has any.
    pub words: Option<Words>,
    /// Of text that is nearly numbers or times: the rows of what is not.
    pub nearly: Option<Nearly>,
    /// The rows of integers that are no times from 1990 to 2100 in the unit of the others.
    pub stray: Vec<SampledRow>,
    /// How its numbers are written, and how they might be.
    pub notation: notation::Found,
    /// The first value, if they are text because they look like a code and a flag.
    pub flagged: Option<String>,
    /// The first value with a comma, if they are text because they look like lists of codes.
    pub listed: Option<String>,
    /// How many values are neither empty nor markers.
    pub count: usize,
}

impl Inferred {
    fn new(found: Candidate, notation: notation::Found, count: usize) -> Self {
        let (odd, words, nearly, stray) = (Vec::new(), None, None, Vec::new());
        Self { found, odd, words, nearly, stray, notation, flagged: None, listed: None, count }
    }
}

/// Text of which most values are numbers or times.
pub(super) struct Nearly {
    pub is_time: bool,
    pub odd: Vec<SampledRow>,
}

/// The type of a column, and the values that do not fit it.
pub(super) fn infer_most(
    name: &str,
    column: &[&StringArray],
    csv: &CsvOptions,
    marks: Marks,
    zone: Option<Tz>,
) -> Inferred {
    let there = There::of(column);
    let texts = &there.texts;
    let notation = notation::of_values(texts, csv, marks);
    let splits_at_commas = marks.commas_separate && notation.notation.point == b',' && notation.also.is_none();
    if splits_at_commas && let Some(first) = notation::first_with_flag(texts) {
        let found = Candidate::plain(ColumnSpec::new(name, FieldType::Text));
        return Inferred { flagged: Some(first.to_owned()), ..Inferred::new(found, notation, texts.len()) };
    }

    // Where other columns write points, a comma between a few small numbers makes a list of them.
    let is_contrary = marks.decimal_point && notation.notation.point == b',' && !marks.commas_separate;
    if is_contrary && let Some(first) = notation::first_list(texts) {
        let found = Candidate::plain(ColumnSpec::new(name, FieldType::Text));
        return Inferred { listed: Some(first.to_owned()), ..Inferred::new(found, notation, texts.len()) };
    }

    let strict = infer(name, column, csv, notation.notation, zone);
    let is_text = strict.spec.kind == FieldType::Text;
    let maybe_time = strict.spec.kind == FieldType::Int64 && times::named_so(name);
    let inferred = Inferred::new(strict, notation, texts.len());
    if !is_text && !maybe_time {
        return inferred;
    }

    let numbers = || texts.iter().map(|text| text.parse().ok()).collect::<Option<Vec<i64>>>();
    if maybe_time && let Some((unit, odd)) = numbers().and_then(|numbers| times::odd_epochs(&numbers)) {
        let stray = there.rows_of(&odd);
        let rest = without(column, &stray);
        let found = infer(name, &rest.iter().collect::<Vec<_>>(), csv, notation.notation, zone);
        if found.spec.format.as_deref() == Some(unit) {
            return Inferred { found, stray, ..inferred };
        }
    }

    if is_text
        && let Some(words) = words::find(texts, notation.notation)
        && let Some(found) = with_words(name, column, csv, notation.notation, &words, &there.rows_of(&words.places))
    {
        return Inferred { found, words: Some(words), ..inferred };
    }

    let most = tolerated(texts.len() as u64) as usize;
    let odd = forms::odd(texts, notation.notation, most).filter(|odd| is_text && !odd.is_empty());
    let odd = odd.or_else(|| times::odd(name, texts, csv, most)).filter(|odd| most > 0 && !odd.is_empty());
    if let Some(odd) = odd {
        let rows = there.rows_of(&odd);
        let rest = without(column, &rows);
        let lenient = infer(name, &rest.iter().collect::<Vec<_>>(), csv, notation.notation, zone);
        let fits = match lenient.spec.kind {
            FieldType::Text | FieldType::Bool => false,
            // `A12` among integers, `1A05` beside `1E05`: they are names.
            FieldType::Int64 | FieldType::UInt64 => is_text && !has_names(texts, &odd),
            FieldType::Float64 if !texts.iter().any(|text| text.contains('.')) => is_text && !has_names(texts, &odd),
            _ => true,
        };
        if fits {
            return Inferred { found: lenient, odd: rows, ..inferred };
        }
    }
    if !is_text || texts.len() < NEARLY_LEAST {
        return inferred;
    }

    let most = texts.len() / NEARLY_SHARE;
    let number = forms::odd(texts, notation.notation, texts.len() / 2);
    let number = number.filter(|odd| !odd.is_empty() && (odd.len() <= most || are_of_few_words(texts, odd)));
    let is_time = number.is_none();
    let odd = number.or_else(|| times::odd(name, texts, csv, most).filter(|odd| !odd.is_empty()));
    let nearly = odd.map(|odd| Nearly { is_time, odd: there.rows_of(&odd) });
    Inferred { nearly, ..inferred }
}

/// Whether the texts at `places` are a few words, beside many more different numbers.
fn are_of_few_words(texts: &[&str], places: &[usize]) -> bool {
    let words: HashSet<&str> = places.iter().filter_map(|place| texts.get(*place)).copied().collect();
    let all: HashSet<&str> = texts.iter().copied().collect();
    words.len() <= FEW_WORDS && all.len() > words.len() * NUMBERS_OF_A_WORD
}

/// Makes a column of numbers with words text, and says which of its values are words.
pub(super) fn without_words(inferred: &mut Inferred, name: &str, column: &[&StringArray]) {
    let Some(words) = inferred.words.take() else { return };
    let odd = There::of(column).rows_of(&words.places);
    inferred.found = Candidate::plain(ColumnSpec::new(name, FieldType::Text));
    inferred.nearly = Some(Nearly { is_time: false, odd });
}

/// Whether a text at one of `places` may be a name.
fn has_names(texts: &[&str], places: &[usize]) -> bool {
    places.iter().filter_map(|place| texts.get(*place)).any(|value| is_name(value))
}

/// The type of a column of numbers without its words; `None` if they may be names.
fn with_words(
    name: &str,
    column: &[&StringArray],
    csv: &CsvOptions,
    notation: Notation,
    words: &Words,
    rows: &[SampledRow],
) -> Option<Candidate> {
    let rest = without(column, rows);
    let rest: Vec<&StringArray> = rest.iter().collect();
    let found = infer(name, &rest, csv, notation, None);
    let distinct: HashSet<&str> = values(&rest).collect();
    words::is_measured(found.spec.kind, words, distinct.len()).then(|| {
        let markers = found.markers.iter().chain(words.counts.keys()).cloned().collect();
        Candidate { markers, ..found }
    })
}

/// What the numbers of text columns show of their separators. Groups of three digits alone show nothing.
pub(super) fn marks(columns: &[Vec<&StringArray>], commas_separate: bool) -> Marks {
    let mut marks = Marks { commas_separate, ..Marks::default() };
    for column in columns {
        marks.decimal_comma |= are_certain_fractions(column, b',', Thousands::Point);
        marks.decimal_point |= are_certain_fractions(column, b'.', Thousands::Comma);
        marks.days_with_points |= values(column).find(|value| is_there(value)).is_some_and(starts_with_points);
    }
    marks
}

/// Whether a text starts with a day as in `13.01.2024`.
fn starts_with_points(text: &str) -> bool {
    let mut parts = text.splitn(3, '.');
    let is_short = |part: Option<&str>| {
        part.is_some_and(|part| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    is_short(parts.next()) && is_short(parts.next()) && parts.next().is_some_and(|year| year.len() >= 2)
}

/// Whether `,` is the decimal separator: some numbers have a comma, and none certainly has a point.
pub(super) fn decimal_comma(columns: &[Vec<&StringArray>], marks: Marks) -> bool {
    let has_points = || columns.iter().any(|column| has_fractions(column, b'.'));
    columns.iter().any(|column| has_fractions(column, b','))
        && !marks.decimal_point
        && (marks.decimal_comma || !has_points())
}

/// Whether a column is numbers with `point` before their fraction, but for a few odd values.
fn has_fractions(column: &[&StringArray], point: u8) -> bool {
    let notation = Notation { point, thousands: None, unicode_minus: true };
    are_fractions(&most_numbers(column, notation, usize::MAX), notation)
}

/// As [`has_fractions`], of the first numbers, which may have separators of thousands, and of which not all are groups of three digits
/// with `point` between them.
fn are_certain_fractions(column: &[&StringArray], point: u8, thousands: Thousands) -> bool {
    let notation = Notation { point, thousands: Some(thousands), unicode_minus: true };
    let numbers = most_numbers(column, notation, MARKED);
    are_fractions(&numbers, notation) && !notation::are_grouped(&numbers, point)
}

fn are_fractions(numbers: &[&str], notation: Notation) -> bool {
    let kind = forms::forms(numbers.iter().copied(), notation).and_then(|forms| forms.kind());
    !numbers.is_empty() && matches!(kind, Some(FieldType::Float64 | FieldType::Decimal { .. }))
}

/// The first `most` values of numbers of a column but for a few odd ones.
fn most_numbers<'a>(column: &'a [&StringArray], notation: Notation, most: usize) -> Vec<&'a str> {
    let mut there: Vec<&str> = values(column).filter(|value| is_there(value)).take(most).collect();
    let odd = forms::odd(&there, notation, tolerated(there.len() as u64) as usize);
    for at in odd.unwrap_or_default().into_iter().rev() {
        there.remove(at);
    }
    there
}

fn is_there(value: &str) -> bool {
    !value.is_empty() && !MARKERS.contains(&value)
}

/// The column with null in `rows`, which are in order.
fn without(column: &[&StringArray], rows: &[SampledRow]) -> Vec<StringArray> {
    let parts = column.iter().enumerate().map(|(batch, array)| {
        let values = array.iter().enumerate();
        values.map(|(row, value)| value.filter(|_| rows.binary_search(&SampledRow { batch, row }).is_err())).collect()
    });
    parts.collect()
}
