//! Infers times and dates: the common formats that all values of a column match.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{AsArray, StringArray};
use arrow::datatypes::{Date32Type, TimestampMicrosecondType};
use chrono::Datelike;
use chrono_tz::Tz;
use tidetable_layout::FieldType;
use tidetable_layout::time::DAY;

use crate::reader_version::ReaderVersion;
use crate::sample::candidate::{Candidate, fits, misfits, values};
use crate::sample::formats;
use crate::sample::numbers::forms::at_most;
use crate::spec::{ColumnSpec, CsvOptions, SourceSpec};
use crate::value::ColumnBuilder;
use crate::value::blanks::trimmed_text;
use crate::value::notation::Notation;

/// Words in the names of time columns.
const WORDS: [&str; 17] = [
    "time", "date", "epoch", "created", "updated", "recorded", "observed", "measured", "utc", "when", "day", "start",
    "month", "period", "zeit", "fecha", "horodat",
];
/// Names of time columns, whole or between other signs.
const NAMES: [&str; 11] = ["ts", "t", "dt", "at", "unix", "datum", "hora", "heure", "ora", "tijd", "czas"];

/// Most different times of a day in files of one time a month.
const MOST_OF_A_DAY: usize = 3;

/// Values of which the second form of a column is found.
const MOST_OF_A_FORM: usize = 10_000;

/// The item of a format at which a time may end: it is the midnight of its day.
pub(super) const OR_MIDNIGHT: &str = "%?";

/// Names, as a whole, of columns that may hold the days of a spreadsheet though they do not say so.
const PLAIN_NAMES: [&str; 8] = ["time", "zeit", "hora", "heure", "ora", "tijd", "czas", "when"];
/// Days of a spreadsheet of the years 1990 to 2040.
const LIKELY_SPREADSHEET_DAYS: std::ops::Range<i64> = 32_874..51_502;

/// Epoch units, with the range of numbers for times from 1990 to 2100.
const EPOCHS: [(&str, i64, i64); 4] = [
    ("s", 631_152_000, 4_102_444_800),
    ("ms", 631_152_000_000, 4_102_444_800_000),
    ("us", 631_152_000_000_000, 4_102_444_800_000_000),
    ("ns", 631_152_000_000_000_000, 4_102_444_800_000_000_000),
];

/// .NET ticks of the years 1990 to 2100: units of 100 ns since the year 1.
pub const TICKS: std::ops::Range<i64> = 627_667_488_000_000_000..662_380_416_000_000_000;
/// Digits that are epoch times in seconds, or [`DIGIT_TIME`].
const EPOCH_DIGITS: usize = 10;
const DIGIT_TIME: &str = "%y%m%d%H%M";

/// Fewest integers of which one may be no epoch time, and so many for each further one.
const ENOUGH_EPOCHS: usize = 100;

/// Words in the names of columns that hold the days of a spreadsheet.
const SPREADSHEET: [&str; 10] =
    ["date", "datetime", "timestamp", "excel", "serial", "datum", "zeitpunkt", "zeitstempel", "fecha", "horodat"];
/// What stands between the start and the end of an interval.
const BETWEEN_ENDS: [&str; 6] = [" - ", " – ", " to ", " bis ", "/", "--"];
/// Days of a spreadsheet of the years 1982 to 2064.
const SPREADSHEET_DAYS: std::ops::Range<i64> = 30_000..60_000;

/// Whether a column of this name is likely to hold times. The first place of pairs, such as `values.0`, mostly does.
pub fn named_so(name: &str) -> bool {
    let name = trimmed_text(name).to_lowercase();
    if name.ends_with(".0") {
        return true;
    }
    let mut parts = name.split(|c: char| !c.is_alphanumeric());
    WORDS.iter().any(|word| name.contains(word)) || parts.any(|part| NAMES.contains(&part))
}

/// Whether a number is seconds since 1970, of the years 1990 to 2100.
pub(super) fn are_likely_seconds(number: f64) -> bool {
    (EPOCHS[0].1 as f64..EPOCHS[0].2 as f64).contains(&number)
}

/// Integers that count from the epoch; `ranges` are the least and greatest of parts of them.
pub(super) fn of_integers(name: &str, ranges: &[(i64, i64)]) -> Option<Candidate> {
    let least = ranges.iter().map(|(least, _)| *least).min()?;
    let most = ranges.iter().map(|(_, most)| *most).max()?;
    if TICKS.contains(&least) && TICKS.contains(&most) {
        return None;
    }
    let (unit, ..) = EPOCHS.iter().find(|(_, low, high)| *low <= least && most < *high)?;
    if named_so(name) {
        let spec = ColumnSpec { format: Some((*unit).to_owned()), ..ColumnSpec::new(name, FieldType::Timestamp) };
        return Some(Candidate::plain(spec));
    }
    let plain = Candidate::plain(ColumnSpec::new(name, FieldType::Int64));
    Some(Candidate { maybe_epoch: Some(*unit), ..plain })
}

/// Whether an integer is the digits of an hour from 1990 to 2100, as in 2024011422. As seconds since 1970 it would be after 2033.
pub(super) fn is_hour_in_digits(number: i64) -> bool {
    let (day, hour) = (number / 100, number % 100);
    let [year, month, of_month] = [day / 10_000, day / 100 % 100, day % 100];
    let parts = (i32::try_from(year), u32::try_from(month), u32::try_from(of_month));
    let (Ok(year), Ok(month), Ok(of_month)) = parts else { return false };
    let is_day = chrono::NaiveDate::from_ymd_opt(year, month, of_month).is_some();
    (1990..2100).contains(&year) && is_day && (0..=24).contains(&hour)
}

/// The unit of integers of which all but one in a hundred count from the epoch, and the indices of the others, which may be of
/// another unit, or 0.
pub(super) fn odd_epochs(numbers: &[i64]) -> Option<(&'static str, Vec<usize>)> {
    if numbers.len() < ENOUGH_EPOCHS {
        return None;
    }
    EPOCHS.iter().find_map(|(unit, low, high)| {
        let odd = numbers.iter().enumerate().filter(|(_, number)| !(*low..*high).contains(*number));
        let odd = at_most(odd.map(|(at, _)| at), numbers.len() / ENOUGH_EPOCHS)?;
        (!odd.is_empty()).then_some((*unit, odd))
    })
}

/// Numbers with a fraction that count from the epoch, or days of a spreadsheet, where the name says that they are times.
pub(super) fn of_fractions<'a>(
    name: &str,
    values: impl Iterator<Item = &'a str>,
    notation: Notation,
) -> Option<Candidate> {
    if !named_so(name) {
        return None;
    }
    of_ranges(name, &whole_numbers(values, notation)?)
}

/// As [`maybe_epoch`], of the numbers of a text.
pub(super) fn maybe_epoch_of<'a>(values: impl Iterator<Item = &'a str>, notation: Notation) -> Option<&'static str> {
    maybe_epoch(&whole_numbers(values, notation)?)
}

/// Numbers without their fractions, each as the least and the greatest of a part.
fn whole_numbers<'a>(values: impl Iterator<Item = &'a str>, notation: Notation) -> Option<Vec<(i64, i64)>> {
    let mut ranges = Vec::new();
    for value in values {
        let (whole, _) = notation.exact(value.as_bytes())?.scaled(1, 0)?;
        ranges.push((whole, whole));
    }
    Some(ranges)
}

/// As [`of_fractions`], of the least and greatest whole numbers of parts of the column.
pub(super) fn of_ranges(name: &str, ranges: &[(i64, i64)]) -> Option<Candidate> {
    let least = ranges.iter().map(|(least, _)| *least).min()?;
    let most = ranges.iter().map(|(_, most)| *most).max()?;
    let lower = name.to_lowercase();
    let are_likely = LIKELY_SPREADSHEET_DAYS.contains(&least) && LIKELY_SPREADSHEET_DAYS.contains(&most);
    let is_spreadsheet = PLAIN_NAMES.contains(&trimmed_text(&lower)) && are_likely
        || SPREADSHEET.iter().any(|word| lower.contains(word))
            && SPREADSHEET_DAYS.contains(&least)
            && SPREADSHEET_DAYS.contains(&most);
    let unit = if is_spreadsheet { "excel" } else { epoch_unit(least, most)? };
    if !named_so(name) {
        return None;
    }
    let spec = ColumnSpec { format: Some(unit.to_owned()), ..ColumnSpec::new(name, FieldType::Timestamp) };
    Some(Candidate { without_offset: is_spreadsheet, ..Candidate::plain(spec) })
}

/// The unit of numbers with a fraction that may count from the epoch though no name says so, of their least and greatest.
pub(super) fn maybe_epoch(ranges: &[(i64, i64)]) -> Option<&'static str> {
    let least = ranges.iter().map(|(least, _)| *least).min()?;
    let most = ranges.iter().map(|(_, most)| *most).max()?;
    epoch_unit(least, most)
}

/// The unit in which numbers are times from 1990 to 2100.
fn epoch_unit(least: i64, most: i64) -> Option<&'static str> {
    EPOCHS.iter().find(|(_, low, high)| *low <= least && most < *high).map(|(unit, ..)| *unit)
}

/// `201801`, `20180131` and `20180131134500`, where the name says that it is a time.
pub(super) fn of_digits(name: &str, column: &[&StringArray], csv: &CsvOptions, zone: Option<Tz>) -> Option<Candidate> {
    let first = there(column, csv).next()?;
    if !named_so(name) || !is_digits(first) {
        return None;
    }
    let (kind, formats) = formats::of_digits(first.len())?;
    let found = formats.iter().find_map(|format| {
        of_format(column, csv, zone, ColumnSpec { format: Some((*format).to_owned()), ..ColumnSpec::new(name, kind) })
    })?;
    if found.spec.format.as_deref() == Some(DIGIT_TIME) && are_steady_epochs(column, csv) {
        let spec = ColumnSpec { format: Some("s".to_owned()), ..ColumnSpec::new(name, kind) };
        return Some(Candidate { also: found.spec.format, ..Candidate::plain(spec) });
    }
    Some(found)
}

/// Whether digits that are a calendar time can be seconds since the epoch, too: up to now, and as steady in seconds as in
/// minutes. Minutes of more than an hour, or hours of more than a day, are not.
fn are_steady_epochs(column: &[&StringArray], csv: &CsvOptions) -> bool {
    let digits = there(column, csv).map(|value| value.parse::<i64>().ok().filter(|_| value.len() == EPOCH_DIGITS));
    let Some(mut seconds) = digits.collect::<Option<Vec<i64>>>() else { return false };
    seconds.sort_unstable();
    seconds.dedup();
    let (Some(first), Some(last)) = (seconds.first(), seconds.last()) else { return false };
    let is_of_past = *first >= EPOCHS[0].1 && *last <= chrono::Utc::now().timestamp();

    // The digits of one hour stand for the minutes of it.
    let is_of_one_hour = first / 100 == last / 100;
    let steps = seconds.windows(2).map(|pair| pair[1] - pair[0]);
    let has_one_step = steps.clone().min() == steps.max();
    is_of_past && (is_of_one_hour || has_one_step)
}

/// Digits that are a time in this format, if they are likely to be one.
fn of_format(column: &[&StringArray], csv: &CsvOptions, zone: Option<Tz>, spec: ColumnSpec) -> Option<Candidate> {
    // A number of eight digits is seldom one of the last or next centuries by chance.
    let (first, last) = range(&spec, column, csv)?;
    let likely = first > -2_208_988_800_000_000 && last < 4_102_444_800_000_000;
    let without_offset = spec.kind == FieldType::Timestamp;
    let timezone = zone.filter(|_| without_offset);
    likely.then(|| Candidate { without_offset, ..Candidate::plain(ColumnSpec { timezone, ..spec }) })
}

/// Text that is times or days, of RFC 3339's form or in a format that is tried.
pub(super) fn of_text(name: &str, column: &[&StringArray], csv: &CsvOptions, zone: Option<Tz>) -> Option<Candidate> {
    let first = there(column, csv).next().filter(|value| is_like_time(value))?;
    let sample = StringArray::from(vec![first]);
    let rfc_3339 = ColumnSpec::new(name, FieldType::Timestamp);
    if !fits(&rfc_3339, &[&sample], csv) || !fits(&rfc_3339, column, csv) {
        return of_formats(name, column, csv, zone);
    }

    // Times that lack seconds or have a comma have formats that say so, unless they differ among themselves.
    let has_all = there(column, csv).all(has_seconds);
    let of_a_format = if has_all { None } else { of_formats(name, column, csv, zone) };
    Some(of_a_format.unwrap_or_else(|| {
        let without_offset = !there(column, csv).all(has_offset);
        let timezone = zone.filter(|_| without_offset);
        Candidate { without_offset, ..Candidate::plain(ColumnSpec { timezone, ..rfc_3339 }) }
    }))
}

/// The values of a column that are not null.
fn there<'a>(column: &'a [&StringArray], csv: &'a CsvOptions) -> impl Iterator<Item = &'a str> + Clone {
    values(column).filter(|value| !value.is_empty() && !csv.null.iter().any(|null| null == value))
}

/// Text that is times or days in one of the formats that are tried.
fn of_formats(name: &str, column: &[&StringArray], csv: &CsvOptions, zone: Option<Tz>) -> Option<Candidate> {
    let first = there(column, csv).next()?;
    let sample = StringArray::from(vec![first]);
    let mut fitting = formats::all()
        .iter()
        .filter(|(kind, format, _)| *kind != FieldType::Date || named_so(name) || !formats::is_like_code(format))
        .map(|(kind, format, offset)| {
            let plain = *kind == FieldType::Date && format == "%Y-%m-%d";
            // Where a zone is given, abbreviations are those of the zone.
            let timezone = zone.filter(|_| format.contains("%Z"));
            let format = (!plain).then(|| format.clone());
            (ColumnSpec { format, timezone, ..ColumnSpec::new(name, *kind) }, *offset)
        })
        .filter(|(spec, _)| fits(spec, &[&sample], csv) && fits(spec, column, csv));
    let (spec, offset) = fitting.next()?;

    let others: Vec<ColumnSpec> = fitting.map(|(other, _)| other).filter(|other| is_reordered(&spec, other)).collect();
    if let Some(found) = year_first(&spec, &others, column, csv) {
        let without_offset = spec.kind == FieldType::Timestamp && !offset;
        let timezone = zone.filter(|_| without_offset);
        return Some(Candidate {
            without_offset,
            ..Candidate { spec: ColumnSpec { timezone, ..found.spec }, ..found }
        });
    }
    let other = others.into_iter().find(|other| swapped(&spec, other));
    let (spec, also) = match other {
        Some(other) if is_american(&other) => (other, spec.format),
        Some(other) if is_american(&spec) => (spec, other.format),
        Some(other) if spread(&other, column, csv) < spread(&spec, column, csv) => (other, spec.format),
        Some(other) => (spec, other.format),
        None => (spec, None),
    };
    let without_offset = spec.kind == FieldType::Timestamp && !offset;
    let timezone = spec.timezone.or(zone.filter(|_| without_offset));
    Some(Candidate { also, without_offset, ..Candidate::plain(ColumnSpec { timezone, ..spec }) })
}

/// Reads the times that fit both orders of day and month in that of the other columns, if these fit one alone.
pub(super) fn take_order_of_others(columns: &mut [&mut Candidate]) {
    let of_sure = columns.iter().filter(|column| column.also.is_none());
    let orders: BTreeSet<Order> = of_sure.filter_map(|column| order_of(column.spec.format.as_deref()?)).collect();
    let Some(order) = orders.first().copied().filter(|_| orders.len() == 1) else { return };
    for column in columns {
        let is_other = column.also.as_deref().is_some_and(|also| order_of(also) == Some(order));
        if is_other && order_of(column.spec.format.as_deref().unwrap_or_default()).is_some() {
            std::mem::swap(&mut column.spec.format, &mut column.also);
        }
    }
}

/// Whether the day or the month comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    Day,
    Month,
}

/// The order of a format with the numbers of both; `None` for others.
fn order_of(format: &str) -> Option<Order> {
    let has_both = format.contains("%d") && format.contains("%m");
    match has_both {
        true if format.starts_with("%d") => Some(Order::Day),
        true if format.starts_with("%m") => Some(Order::Month),
        _ => None,
    }
}

/// Whether a format is that of the United States: the month, slashes, and a clock of twelve hours.
fn is_american(spec: &ColumnSpec) -> bool {
    spec.format.as_deref().is_some_and(|format| format.starts_with("%m/") && format.contains("%p"))
}

/// Times of which some are days alone, as spreadsheets write a midnight: `13.02.2024` beside `13.02.2024 00:15:00`.
pub(super) fn of_days_and_times(
    name: &str,
    column: &[&StringArray],
    csv: &CsvOptions,
    zone: Option<Tz>,
) -> Option<Candidate> {
    let (days, times): (Vec<&str>, Vec<&str>) = there(column, csv).partition(|value| is_day_alone(value));
    if days.is_empty() || days.len() >= times.len() {
        return None;
    }

    let found = of_formats(name, &[&StringArray::from(times)], csv, zone)?;
    let [format, also] = [&found.spec.format, &found.also].map(|format| or_midnight(format.as_deref()?));
    let spec = ColumnSpec { format: Some(format?), ..found.spec.clone() };
    fits(&spec, column, csv).then_some(Candidate { spec, also, ..found })
}

/// Whether a text that is a time or day is a day without a clock.
pub(super) fn is_day_alone(value: &str) -> bool {
    is_like_time(value) && !value.contains(':')
}

/// A format of day and time of day whose times may be days alone.
fn or_midnight(format: &str) -> Option<String> {
    let clock = format.find("%H").or_else(|| format.find("%I"))?;
    let day = format.get(..clock)?.trim_end_matches([' ', 'T', ':', ',', '_']);
    Some(format!("{day}{OR_MIDNIGHT}{}", format.get(day.len()..)?))
}

/// Day or month first: what happened lies closer together when it is read right, unless it is the first of each month. The
/// lesser of two spreads is the likelier.
fn spread(spec: &ColumnSpec, column: &[&StringArray], csv: &CsvOptions) -> (bool, i64) {
    let is_monthly = of_first_days(spec, column, csv);
    range(spec, column, csv).map_or((true, i64::MAX), |(first, last)| (!is_monthly, last - first))
}

/// Text that is intervals, such as `01.01.2020 00:00 - 01.01.2020 01:00`: each stands for its start.
pub(super) fn of_intervals(
    name: &str,
    column: &[&StringArray],
    csv: &CsvOptions,
    zone: Option<Tz>,
) -> Option<Candidate> {
    let first = there(column, csv).next()?;
    let between = BETWEEN_ENDS.iter().find(|between| start_of(first, between).is_some())?;
    let starts: Option<Vec<&str>> = there(column, csv).map(|value| start_of(value, between)).collect();
    let found = of_formats(name, &[&StringArray::from(starts?)], csv, zone)?;

    let start = found.spec.format.as_deref().unwrap_or("%Y-%m-%d");
    let spec = ColumnSpec { format: Some(format!("{start}{between}%*")), ..found.spec.clone() };
    let also = found.also.as_ref().map(|start| format!("{start}{between}%*"));
    fits(&spec, column, csv).then_some(Candidate { spec, also, ..found })
}

/// The start of an interval whose two ends are written alike.
fn start_of<'a>(value: &'a str, between: &str) -> Option<&'a str> {
    let length = value.len().checked_sub(between.len())? / 2;
    let (start, rest) = value.split_at_checked(length)?;
    let end = rest.strip_prefix(between)?;
    let mut letters = start.bytes().zip(end.bytes());
    let are_alike =
        start.len() == end.len() && letters.all(|(one, other)| one.is_ascii_digit() == other.is_ascii_digit());
    (is_like_time(start) && are_alike).then_some(start)
}

/// The indices of values that are no times in the format of the others, at most `most`.
pub(super) fn odd(name: &str, there: &[&str], csv: &CsvOptions, most: usize) -> Option<Vec<usize>> {
    // The first value may be the odd one.
    let samples = [0, there.len() / 2, there.len().saturating_sub(1)].into_iter().filter_map(|at| there.get(at));
    for text in samples.filter(|value| is_like_time(value)) {
        let digits = formats::of_digits(text.len()).filter(|_| named_so(name) && is_digits(text));
        let digits =
            digits.into_iter().flat_map(|(kind, formats)| formats.iter().map(move |format| (kind, Some(*format))));
        let others = formats::all().iter().map(|(kind, format, _)| (*kind, Some(format.as_str())));
        let tried = digits.chain([(FieldType::Timestamp, None)]).chain(others);

        let sample = StringArray::from(vec![*text]);
        let specs =
            tried.map(|(kind, format)| ColumnSpec { format: format.map(str::to_owned), ..ColumnSpec::new(name, kind) });
        let likely = specs.filter(|spec| fits(spec, &[&sample], csv));
        let fewest = likely.filter_map(|spec| misfits(&spec, there, csv, most)).min_by_key(Vec::len);
        if fewest.is_some() {
            return fewest;
        }
    }
    None
}

/// The first value of a column, and the first that is a time in another form; `None` if there are no such two.
pub(super) fn two_forms(name: &str, column: &[&StringArray]) -> Option<(String, String)> {
    let csv = CsvOptions::default();
    let first = there(column, &csv).next()?;
    let form = form_of(name, first, &csv)?;
    let other = there(column, &csv).take(MOST_OF_A_FORM).find(|value| !form.has(value, &csv))?;
    form_of(name, other, &csv).map(|_| (first.to_owned(), other.to_owned()))
}

/// The form of a time.
enum Form {
    /// Integers of an epoch unit, from the first to before the last.
    Epoch(std::ops::Range<i64>),
    Text(ColumnSpec),
}

impl Form {
    fn has(&self, value: &str, csv: &CsvOptions) -> bool {
        match self {
            Self::Epoch(range) => value.parse().is_ok_and(|number| range.contains(&number)),
            Self::Text(spec) => fits(spec, &[&StringArray::from(vec![value])], csv),
        }
    }
}

/// The form of a value that is a time.
fn form_of(name: &str, value: &str, csv: &CsvOptions) -> Option<Form> {
    if let Ok(number) = value.parse::<i64>() {
        let (_, low, high) = EPOCHS.iter().find(|(_, low, high)| (*low..*high).contains(&number))?;
        return Some(Form::Epoch(*low..*high));
    }
    of_text(name, &[&StringArray::from(vec![value])], csv, None).map(|found| Form::Text(found.spec))
}

fn is_digits(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a time of RFC 3339's form has seconds, and a point before their fraction.
fn has_seconds(value: &str) -> bool {
    value.as_bytes().get(16) == Some(&b':') && !value.contains(',')
}

/// Whether all times are the first day of a month, and of several months.
fn of_first_days(spec: &ColumnSpec, column: &[&StringArray], csv: &CsvOptions) -> bool {
    let Some(micros) = micros(spec, column, csv) else { return false };
    let days: Option<Vec<chrono::NaiveDate>> =
        micros.iter().map(|micros| Some(chrono::DateTime::from_timestamp_micros(*micros)?.date_naive())).collect();
    let Some(days) = days else { return false };
    let months: BTreeSet<(i32, u32)> = days.iter().map(|day| (day.year(), day.month())).collect();
    let mut times: BTreeMap<chrono::NaiveDate, BTreeSet<i64>> = BTreeMap::new();
    for (day, micros) in days.iter().zip(&micros) {
        times.entry(*day).or_default().insert(*micros);
    }
    // Many times a day are steps that go on from day to day.
    let is_sparse = times.values().all(|times| times.len() <= MOST_OF_A_DAY);
    days.iter().all(|day| day.day() == 1) && months.len() > 2 && is_sparse
}

/// Whether a value is worth trying the formats.
fn is_like_time(value: &str) -> bool {
    // The name of a zone may stand behind it, in brackets.
    let longest = if value.ends_with(']') { 64 } else { 40 };
    (6..=longest).contains(&value.len()) && value.bytes().any(|byte| byte.is_ascii_digit())
}

/// The candidate of times whose year has two digits and may stand first or last, as in `24-01-14`: where these lie closer together.
/// `None` if the first of `spec` and `others` is not of that kind, or is likelier.
fn year_first(
    spec: &ColumnSpec,
    others: &[ColumnSpec],
    column: &[&StringArray],
    csv: &CsvOptions,
) -> Option<Candidate> {
    let starts_with_year = |spec: &ColumnSpec| spec.format.as_deref().is_some_and(|format| format.starts_with("%y"));
    let other = others.iter().find(|other| starts_with_year(other))?;
    let least = std::iter::once(spec).chain(others).filter(|spec| !starts_with_year(spec));
    let nearest = least.min_by_key(|spec| spread(spec, column, csv))?;
    match spread(other, column, csv).cmp(&spread(nearest, column, csv)) {
        std::cmp::Ordering::Less => Some(Candidate::plain(other.clone())),
        std::cmp::Ordering::Equal => {
            Some(Candidate { also: other.format.clone(), ..Candidate::plain(nearest.clone()) })
        }
        std::cmp::Ordering::Greater => None,
    }
}

/// Whether two formats differ by the order of day, month and year alone.
fn is_reordered(one: &ColumnSpec, other: &ColumnSpec) -> bool {
    let unordered = |spec: &ColumnSpec| {
        let format = spec.format.as_deref().unwrap_or_default();
        ["%d", "%m", "%y", "%Y"].iter().fold(format.to_owned(), |format, item| format.replace(item, "%"))
    };
    one.kind == other.kind && one.format != other.format && unordered(one) == unordered(other)
}

/// Whether two formats differ by the order of day and month alone.
fn swapped(one: &ColumnSpec, other: &ColumnSpec) -> bool {
    let (format, other_format) =
        (one.format.as_deref().unwrap_or_default(), other.format.as_deref().unwrap_or_default());
    let turned = format.replace("%d", "\0").replace("%m", "%d").replace('\0', "%m");
    turned == other_format && one.kind == other.kind && format != other_format
}

/// Whether a time of RFC 3339's form ends in Z or +01:00.
fn has_offset(value: &str) -> bool {
    let clock = value.get(10..).unwrap_or_default();
    clock.ends_with(['Z', 'z']) || clock.contains(['+', '-'])
}

/// The first and the last time, in microseconds since the epoch.
fn range(spec: &ColumnSpec, column: &[&StringArray], csv: &CsvOptions) -> Option<(i64, i64)> {
    let micros = micros(spec, column, csv)?;
    Some((micros.iter().copied().min()?, micros.iter().copied().max()?))
}

/// The times of a column that are not null, in microseconds since the epoch.
fn micros(spec: &ColumnSpec, column: &[&StringArray], csv: &CsvOptions) -> Option<Vec<i64>> {
    let whole = SourceSpec { csv: csv.clone(), columns: vec![spec.clone()], ..SourceSpec::default() };
    let plans = crate::plan::column_plans(&whole, ReaderVersion::CURRENT).ok()?;
    let mut read = ColumnBuilder::new(plans.first()?, 64);
    for value in values(column) {
        read.push(value.as_bytes(), false).ok()?;
    }
    let array = read.finish().ok()?;
    if let Some(days) = array.as_primitive_opt::<Date32Type>() {
        return Some(days.iter().flatten().map(|days| i64::from(days) * DAY).collect());
    }
    Some(array.as_primitive_opt::<TimestampMicrosecondType>()?.iter().flatten().collect())
}
