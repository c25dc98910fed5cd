//! Infers times and dates: the common formats that all values of a column match.

use std::sync::OnceLock;

use arrow::array::{Array, AsArray, StringArray};
use arrow::datatypes::{Date32Type, TimestampMicrosecondType};
use chrono_tz::Tz;
use tidetable_layout::FieldType;
use tidetable_layout::time::DAY;

use crate::reader_version::ReaderVersion;
use crate::sample::candidate::{Candidate, fits, misfits, values};
use crate::spec::{ColumnSpec, CsvOptions, SourceSpec};
use crate::value::ColumnBuilder;

const DAYS: [&str; 20] = [
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d.%m.%Y",
    "%d/%m/%y",
    "%m/%d/%y",
    "%d.%m.%y",
    "%Y%m%d",
    "%d %b %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%b %d, %Y",
    "%b %d %Y",
    "%d/%b/%Y",
    "%b-%d-%Y",
    "%b/%d/%Y",
];
/// Months, quarters and weeks stand for their first day.
const COARSE: [&str; 15] = [
    "%Y-%m", "%Y/%m", "%m/%Y", "%m-%Y", "%b %Y", "%b-%Y", "%b-%y", "%b %y", "%Y %b", "%Y-%b", "%YM%m", "%YQ%q",
    "%Y-Q%q", "%Y Q%q", "Q%q %Y",
];
const CLOCKS: [&str; 10] =
    ["%H:%M:%S", "%H:%M:%S%.3f", "%H:%M:%S%.f", "%H:%M", "%H%M%S", "%H%M", "%H", "%I:%M:%S %p", "%I:%M %p", "%I:%M%p"];
const BETWEEN: [&str; 4] = [" ", "T", ":", ", "];
/// Suffixes, and whether each is an offset.
const OFFSETS: [(&str, bool); 5] = [("", false), ("Z", true), (" UTC", true), ("%z", true), (" %z", true)];

/// Words in the names of time columns.
const WORDS: [&str; 14] = [
    "time", "date", "epoch", "created", "updated", "recorded", "observed", "measured", "utc", "when", "day", "start",
    "month", "period",
];
/// Complete names of time columns.
const NAMES: [&str; 6] = ["ts", "t", "dt", "at", "unix", "datum"];

/// Epoch units, with the range of numbers for times from 1990 to 2100.
const EPOCHS: [(&str, i64, i64); 4] = [
    ("s", 631_152_000, 4_102_444_800),
    ("ms", 631_152_000_000, 4_102_444_800_000),
    ("us", 631_152_000_000_000, 4_102_444_800_000_000),
    ("ns", 631_152_000_000_000_000, 4_102_444_800_000_000_000),
];

/// Whether a column of this name is likely to hold times.
pub(super) fn named_so(name: &str) -> bool {
    let name = name.trim().to_lowercase();
    let part = |word: &&str| name.split(|c: char| !c.is_alphanumeric()).any(|part| part == *word);
    WORDS.iter().any(|word| name.contains(word)) || NAMES.iter().any(part)
}

/// Integers that count from the epoch; `ranges` are the least and greatest of parts of them.
pub(super) fn of_integers(name: &str, ranges: &[(i64, i64)]) -> Option<Candidate> {
    let least = ranges.iter().map(|(least, _)| *least).min()?;
    let most = ranges.iter().map(|(_, most)| *most).max()?;
    let (unit, ..) = EPOCHS.iter().find(|(_, low, high)| *low <= least && most < *high)?;
    if named_so(name) {
        let spec = ColumnSpec { format: Some((*unit).to_owned()), ..ColumnSpec::new(name, FieldType::Timestamp) };
        return Some(Candidate::plain(spec));
    }
    let plain = Candidate::plain(ColumnSpec::new(name, FieldType::Int64));
    Some(Candidate { maybe_epoch: Some(*unit), ..plain })
}

/// `201801`, `20180131` and `20180131134500`, where the name says that it is a time.
pub(super) fn of_digits(name: &str, column: &[&StringArray], csv: &CsvOptions, zone: Option<Tz>) -> Option<Candidate> {
    let first = values(column).find(|value| !value.is_empty() && !csv.null.iter().any(|null| null == value))?;
    let all_digits = first.bytes().all(|byte| byte.is_ascii_digit());
    if !named_so(name) || !all_digits {
        return None;
    }
    let (kind, formats): (_, &[&str]) = match first.len() {
        6 => (FieldType::Date, &["%Y%m", "%y%m%d"]),
        8 => (FieldType::Date, &["%Y%m%d"]),
        10 => (FieldType::Timestamp, &["%Y%m%d%H"]),
        12 => (FieldType::Timestamp, &["%Y%m%d%H%M"]),
        14 => (FieldType::Timestamp, &["%Y%m%d%H%M%S"]),
        _ => return None,
    };
    formats.iter().find_map(|format| of_format(name, column, csv, zone, (kind, format)))
}

/// Digits that are a time in this format, if they are likely to be one.
fn of_format(
    name: &str,
    column: &[&StringArray],
    csv: &CsvOptions,
    zone: Option<Tz>,
    (kind, format): (FieldType, &str),
) -> Option<Candidate> {
    let spec = ColumnSpec { format: Some(format.to_owned()), ..ColumnSpec::new(name, kind) };
    // A number of eight digits is seldom one of the last or next centuries by chance.
    let (first, last) = range(&spec, column, csv)?;
    let likely = first > -2_208_988_800_000_000 && last < 4_102_444_800_000_000;
    let without_offset = kind == FieldType::Timestamp;
    let timezone = zone.filter(|_| without_offset);
    likely.then(|| Candidate { without_offset, ..Candidate::plain(ColumnSpec { timezone, ..spec }) })
}

/// Text that is times or days.
pub(super) fn of_text(name: &str, column: &[&StringArray], csv: &CsvOptions, zone: Option<Tz>) -> Option<Candidate> {
    let there = || values(column).filter(|value| !value.is_empty() && !csv.null.iter().any(|null| null == value));
    let first = there().next().filter(|value| is_like_time(value))?;
    let sample = StringArray::from(vec![first]);
    let rfc_3339 = ColumnSpec::new(name, FieldType::Timestamp);
    if fits(&rfc_3339, &[&sample], csv) && fits(&rfc_3339, column, csv) {
        let without_offset = !there().any(has_offset);
        let timezone = zone.filter(|_| without_offset);
        return Some(Candidate { without_offset, ..Candidate::plain(ColumnSpec { timezone, ..rfc_3339 }) });
    }
    let mut fitting = formats()
        .iter()
        .map(|(kind, format, offset)| {
            let plain = *kind == FieldType::Date && format == "%Y-%m-%d";
            let format = (!plain).then(|| format.clone());
            (ColumnSpec { format, ..ColumnSpec::new(name, *kind) }, *offset)
        })
        .filter(|(spec, _)| fits(spec, &[&sample], csv) && fits(spec, column, csv));
    let (spec, offset) = fitting.next()?;
    // Day or month first: what happened lies closer together when it is read right.
    let width = |spec: &ColumnSpec| range(spec, column, csv).map_or(i64::MAX, |(first, last)| last - first);
    let other = fitting.find(|(other, _)| swapped(&spec, other)).map(|(other, _)| other);
    let (spec, also) = match other {
        Some(other) if width(&other) < width(&spec) => (other, spec.format),
        Some(other) => (spec, other.format),
        None => (spec, None),
    };
    let without_offset = spec.kind == FieldType::Timestamp && !offset;
    let timezone = zone.filter(|_| without_offset);
    Some(Candidate { also, without_offset, ..Candidate::plain(ColumnSpec { timezone, ..spec }) })
}

/// The indices of values that are no times in the format of the others, at most `most`.
pub(super) fn odd(name: &str, there: &[&str], csv: &CsvOptions, most: usize) -> Option<Vec<usize>> {
    // The first value may be the odd one.
    let samples = [0, there.len() / 2, there.len().saturating_sub(1)].into_iter().filter_map(|at| there.get(at));
    let mut samples = samples.filter(|value| is_like_time(value));
    let best = |sample: &&str| {
        let sample = StringArray::from(vec![*sample]);
        let spec = |kind, format| ColumnSpec { format, ..ColumnSpec::new(name, kind) };
        let rfc_3339 = std::iter::once(spec(FieldType::Timestamp, None));
        let specs = rfc_3339.chain(formats().iter().map(|(kind, format, _)| spec(*kind, Some(format.clone()))));
        let likely = specs.filter(|spec| fits(spec, &[&sample], csv));
        likely.filter_map(|spec| misfits(&spec, there, csv, most)).min_by_key(Vec::len)
    };
    samples.find_map(best)
}

/// Whether a value is worth trying the formats.
fn is_like_time(value: &str) -> bool {
    (6..=40).contains(&value.len()) && value.bytes().any(|byte| byte.is_ascii_digit())
}

/// Whether two formats differ by the order of day and month alone.
fn swapped(one: &ColumnSpec, other: &ColumnSpec) -> bool {
    let format = |spec: &ColumnSpec| spec.format.clone().unwrap_or_default();
    let turned = format(one).replace("%d", "\0").replace("%m", "%d").replace('\0', "%m");
    turned == format(other) && one.kind == other.kind && format(one) != format(other)
}

/// Whether a time of RFC 3339's form ends in Z or +01:00.
fn has_offset(value: &str) -> bool {
    let clock = value.get(10..).unwrap_or_default();
    clock.ends_with(['Z', 'z']) || clock.contains(['+', '-'])
}

/// The first and the last time, in microseconds since the epoch.
fn range(spec: &ColumnSpec, column: &[&StringArray], csv: &CsvOptions) -> Option<(i64, i64)> {
    let whole = SourceSpec { csv: csv.clone(), columns: vec![spec.clone()], ..SourceSpec::default() };
    let plans = crate::plan::column_plans(&whole, ReaderVersion::CURRENT).ok()?;
    let mut read = ColumnBuilder::new(plans.first()?, 64);
    for value in values(column) {
        read.push(value.as_bytes(), false).ok()?;
    }
    let array = read.finish().ok()?;
    if let Some(days) = array.as_primitive_opt::<Date32Type>() {
        let micros = |days: i32| i64::from(days) * DAY;
        return Some((micros(arrow::compute::min(days)?), micros(arrow::compute::max(days)?)));
    }
    let times = array.as_primitive_opt::<TimestampMicrosecondType>().filter(|times| !times.is_empty())?;
    Some((arrow::compute::min(times)?, arrow::compute::max(times)?))
}

/// Every format that is tried, with whether it holds an offset; the plainest first.
fn formats() -> &'static [(FieldType, String, bool)] {
    static FORMATS: OnceLock<Vec<(FieldType, String, bool)>> = OnceLock::new();
    FORMATS.get_or_init(|| {
        let days = DAYS.iter().chain(&COARSE).map(|day| (FieldType::Date, (*day).to_owned(), false));
        let moments = DAYS.iter().flat_map(|day| {
            CLOCKS.iter().flat_map(move |clock| {
                BETWEEN.iter().flat_map(move |between| {
                    OFFSETS.iter().map(move |(end, offset)| {
                        (FieldType::Timestamp, format!("{day}{between}{clock}{end}"), *offset)
                    })
                })
            })
        });
        days.chain(moments).collect()
    })
}
