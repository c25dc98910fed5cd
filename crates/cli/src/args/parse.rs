//! Parsers for values of options.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::SystemTime;

use chrono::{DateTime, Days, NaiveDate, NaiveDateTime};
use chrono_tz::Tz;
use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};
use tidetable_cells::KeyPattern;
use tidetable_layout::time::{DAY, HOUR, MINUTE, SECOND, micros_since_epoch};
use tidetable_runner::run::{IfLocked, Selected};
use tidetable_source::{Location, LocationError};

/// What to do if the job is locked: `fail`, `skip`, `wait` or `wait=10m`.
pub(crate) fn parse_if_locked(text: &str) -> Result<IfLocked, String> {
    match text.split_once('=') {
        None if text == "fail" => Ok(IfLocked::Fail),
        None if text == "skip" => Ok(IfLocked::Skip),
        None if text == "wait" => Ok(IfLocked::Wait(None)),
        Some(("wait", age)) => {
            let micros = u64::try_from(parse_age(age)?).unwrap_or_default();
            Ok(IfLocked::Wait(Some(std::time::Duration::from_micros(micros))))
        }
        _ => Err("write fail, skip, wait or wait=10m".to_owned()),
    }
}

/// A table or an export: `table:NAME` or `export:NAME`.
pub(crate) fn parse_selected(text: &str) -> Result<Selected, String> {
    match text.split_once(':') {
        Some(("table", name)) if !name.is_empty() => Ok(Selected::Table(name.to_owned())),
        Some(("export", name)) if !name.is_empty() => Ok(Selected::Export(name.to_owned())),
        _ => Err("write table:NAME or export:NAME".to_owned()),
    }
}

/// A version: a number, with a table unless the query reads only one.
pub(crate) fn parse_version(text: &str) -> Result<(Option<String>, u64), String> {
    let (table, number) = match text.rsplit_once('=') {
        Some((table, number)) => (Some(table.to_owned()), number),
        None => (None, text),
    };
    let number = number.parse().ok().filter(|number| *number > 0);
    number.map(|number| (table, number)).ok_or_else(|| "write a number, or TABLE=NUMBER".to_owned())
}

/// The selection in a run record.
pub fn selected_of(record: &[String]) -> Vec<Selected> {
    record.iter().filter_map(|selected| parse_selected(selected).ok()).collect()
}

/// Advice on times.
const TIMES: &str =
    "write a time as 2018-01-31T01:15:00Z, a day of UTC as 2018-01-31, today or yesterday, or an age as -3d";

/// Parses a time into microseconds since the epoch: RFC 3339, a UTC day (its start), or an age.
pub fn parse_time(text: &str) -> Result<i64, String> {
    time_at(text, micros_since_epoch(SystemTime::now())).ok_or_else(|| TIMES.to_owned())
}

fn time_at(text: &str, now: i64) -> Option<i64> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.timestamp_micros());
    }
    if text == "now" {
        return Some(now);
    }
    if let Some(age) = text.strip_prefix('-').and_then(|age| parse_age(age).ok()) {
        return now.checked_sub(age);
    }
    // Without an offset a time is in UTC, as in queries.
    let forms = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"];
    let naive = forms.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
    let day = || text.parse::<Day>().ok()?.at(chrono_tz::UTC, now)?.and_hms_opt(0, 0, 0);
    Some(naive.or_else(day)?.and_utc().timestamp_micros())
}

/// A day: a date, or a number of days before today.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Day {
    /// A date.
    On(NaiveDate),
    /// Days before today.
    Ago(u64),
}

impl Day {
    /// Resolves the day in `zone`; `now` is in microseconds since the epoch. `None` if the date is outside chrono's
    /// range.
    pub fn at(self, zone: Tz, now: i64) -> Option<NaiveDate> {
        match self {
            Self::On(day) => Some(day),
            Self::Ago(days) => {
                let today = DateTime::from_timestamp_micros(now)?.with_timezone(&zone).date_naive();
                today.checked_sub_days(Days::new(days))
            }
        }
    }
}

impl FromStr for Day {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "today" => return Ok(Self::Ago(0)),
            "yesterday" => return Ok(Self::Ago(1)),
            _ => {}
        }
        let ago =
            text.strip_prefix('-').and_then(|age| age.strip_suffix('d')).and_then(|days| days.parse::<u32>().ok());
        if let Some(days) = ago {
            return Ok(Self::Ago(u64::from(days)));
        }
        let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").map_err(|_| DAYS.to_owned())?;
        Ok(Self::On(day))
    }
}

/// Advice on days.
const DAYS: &str = "write a day as 2018-01-31, today, yesterday, or -3d";

/// Parses a memory size; the unit is required, as nobody means bytes.
pub(crate) fn parse_memory(text: &str) -> Result<u64, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("write a unit, as in {text}MiB or {text}GB: {text} would be bytes"));
    }
    tidetable_job::parse_size(text)
}

/// A regular expression that must match a whole key.
pub(crate) fn parse_regex(text: &str) -> Result<KeyPattern, String> {
    KeyPattern::new(text).map_err(|error| error.to_string())
}

/// Families and columns, separated by commas. In a name, `\,` is a comma and `\\` a backslash.
pub(crate) fn parse_columns(text: &str) -> Result<Columns, String> {
    let (mut names, mut name) = (Vec::new(), String::new());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            ',' => names.push(std::mem::take(&mut name)),
            '\\' => name.push(letters.next_if(|next| matches!(next, ',' | '\\')).unwrap_or(letter)),
            letter => name.push(letter),
        }
    }
    names.push(name);
    names.iter().map(|name| parse_column(name)).collect::<Result<_, _>>().map(Columns)
}

/// A family, a column of it, or a column of any family.
fn parse_column(text: &str) -> Result<Column, String> {
    let (family, qualifier) = match text.split_once(':') {
        Some((family, qualifier)) => (family, Some(qualifier.to_owned())),
        None => (text, None),
    };
    if family.is_empty() && qualifier.is_none() {
        return Err("write FAMILY or FAMILY:QUALIFIER".to_owned());
    }
    Ok(Column { family: (!family.is_empty()).then(|| family.to_owned()), qualifier })
}

/// Parses a number of days, hours, minutes or seconds into microseconds.
pub(crate) fn parse_age(text: &str) -> Result<i64, String> {
    let units = [('d', DAY), ('h', HOUR), ('m', MINUTE), ('s', SECOND)];
    let found = units.iter().find_map(|(unit, micros)| Some((text.strip_suffix(*unit)?, *micros)));
    let age = found.and_then(|(number, micros)| i64::from(number.parse::<u32>().ok()?).checked_mul(micros));
    age.ok_or_else(|| "write a number and d, h, m or s, as in 7d".to_owned())
}

/// The columns of one option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns(pub Vec<Column>);

/// A column, or all columns of a family, or a column of all families.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The family; any if `None`.
    pub family: Option<String>,
    /// The qualifier; any if `None`.
    pub qualifier: Option<String>,
}

/// Parses the name of a time zone, or an offset of whole hours such as `+01:00`.
pub fn parse_zone(text: &str) -> Result<Tz, String> {
    let zone = fixed_zone(text).or_else(|| text.parse().ok());
    zone.ok_or_else(|| "write a name such as Europe/Paris, or an offset of whole hours such as +01:00".to_owned())
}

/// The zone of clocks that stay at an offset: its name counts hours west of UTC, so that of `+01:00` is `Etc/GMT-1`.
fn fixed_zone(text: &str) -> Option<Tz> {
    let (sign, hours) =
        text.strip_prefix('+').map(|hours| ('-', hours)).or(text.strip_prefix('-').map(|hours| ('+', hours)))?;
    let hours: u8 = hours.strip_suffix(":00").unwrap_or(hours).parse().ok()?;
    format!("Etc/GMT{sign}{hours}").parse().ok()
}

// Every option that names a place is read by one parser, so that no URL is ever taken for a path.

/// Reads a place on this machine or in a bucket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Anywhere;

/// As [`Anywhere`], of an option that counts as not given if it is empty, as the variable behind it may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnywhereOrEmpty;

/// Reads the path of what is on this machine only, such as `a file of SQL`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Here(pub(crate) &'static str);

impl TypedValueParser for Anywhere {
    type Value = Location;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Location, Error> {
        filled(command, arg, value)?;
        Location::of(value).map_err(|error| refused(command, arg, &error))
    }
}

impl TypedValueParser for AnywhereOrEmpty {
    type Value = Location;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Location, Error> {
        Location::of(value).map_err(|error| refused(command, arg, &error))
    }
}

impl TypedValueParser for Here {
    type Value = PathBuf;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<PathBuf, Error> {
        filled(command, arg, value)?;
        Location::path_of(value, self.0).map_err(|error| refused(command, arg, &error))
    }
}

fn filled(command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<(), Error> {
    match value.is_empty() {
        true => Err(usage(command, &format!("{} is empty: name a place", name_of(arg)))),
        false => Ok(()),
    }
}

/// The error of a place. Unlike that of clap it does not repeat the value, which may hold credentials.
fn refused(command: &Command, arg: Option<&Arg>, error: &LocationError) -> Error {
    usage(command, &format!("{}: {error}", name_of(arg)))
}

fn usage(command: &Command, message: &str) -> Error {
    let message = format!("{message}\n\nFor more information, try '--help'.\n");
    Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
}

/// The option that gave the file of a result: `--to`, or its short form.
pub fn file_option() -> &'static str {
    let is_long = |word: OsString| {
        let word = word.to_string_lossy();
        word == "--to" || word.starts_with("--to=")
    };
    if std::env::args_os().any(is_long) { "--to" } else { "-O" }
}

/// The name of an option in messages.
fn name_of(arg: Option<&Arg>) -> String {
    let Some(arg) = arg else { return String::new() };
    let name = arg.to_string();
    match (arg.get_long(), arg.get_short()) {
        (Some("to"), Some(_)) => name.replacen("--to", file_option(), 1),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_may_name_a_table() {
        assert_eq!(parse_version("7"), Ok((None, 7)));
        assert_eq!(parse_version("A=7"), Ok((Some("A".to_owned()), 7)));
        assert!(["0", "A", "A=", "A=x", "-1", ""].iter().all(|wrong| parse_version(wrong).is_err()));
    }

    #[test]
    fn tables_and_exports_are_selected_by_kind() {
        assert_eq!(parse_selected("table:A:B"), Ok(Selected::Table("A:B".to_owned())));
        let export = parse_selected("export:DAY");
        assert_eq!(export.clone().map(|selected| selected.to_string()), Ok("export:DAY".to_owned()));
        assert!(["DAY", "export:", ":DAY", "view:DAY", ""].iter().all(|wrong| parse_selected(wrong).is_err()));
    }

    #[test]
    fn ages_have_units() {
        assert_eq!(parse_age("7d"), Ok(7 * 86_400_000_000));
        assert_eq!(parse_age("0s"), Ok(0));
        assert_eq!(parse_age("90m"), parse_age("5400s"));
        for wrong in ["7", "d", "-1d", "1w", "99999999999d", ""] {
            assert!(parse_age(wrong).is_err(), "{wrong}");
        }
    }
    #[test]
    fn times_are_written_in_several_ways() {
        let at = |text: &str| DateTime::parse_from_rfc3339(text).unwrap().timestamp_micros();
        let now = at("2026-11-22T10:30:00Z");
        let said = [
            ("2018-01-31T01:15:00Z", "2018-01-31T01:15:00Z"),
            ("2018-01-31T01:15:00+02:00", "2018-01-30T23:15:00Z"),
            ("2018-01-31T01:15", "2018-01-31T01:15:00Z"),
            ("2018-01-31 01:15:30.5", "2018-01-31T01:15:30.5Z"),
            ("2018-01-31", "2018-01-31T00:00:00Z"),
            ("today", "2026-11-22T00:00:00Z"),
            ("yesterday", "2026-11-21T00:00:00Z"),
            ("-3d", "2026-11-19T10:30:00Z"),
            ("-90m", "2026-11-22T09:00:00Z"),
            ("now", "2026-11-22T10:30:00Z"),
        ];
        for (text, time) in said {
            assert_eq!(time_at(text, now), Some(at(time)), "{text}");
        }
        for wrong in ["", "soon", "2018-13-01", "3d", "-3", "--to", "2018-01-31T25:00"] {
            assert_eq!(time_at(wrong, now), None, "{wrong}");
        }
    }

    #[test]
    fn days_are_those_of_a_zone() {
        let now = time_at("2026-11-22T23:30:00Z", 0).unwrap();
        let day = |text: &str, zone| text.parse::<Day>().unwrap().at(zone, now).unwrap().to_string();
        assert_eq!(day("today", chrono_tz::UTC), "2026-11-22");
        assert_eq!(day("today", chrono_tz::Europe::Paris), "2026-11-23");
        assert_eq!(day("yesterday", chrono_tz::Europe::Paris), "2026-11-22");
        assert_eq!(day("-22d", chrono_tz::UTC), "2026-10-31");
        assert_eq!(day("2018-01-31", chrono_tz::UTC), "2018-01-31");
        for wrong in ["tomorrow", "-3h", "2018-1", "-d", "3d"] {
            assert!(wrong.parse::<Day>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn memory_has_a_unit() {
        assert_eq!(parse_memory("1GB"), Ok(1_000_000_000));
        assert_eq!((parse_memory("1GiB"), parse_memory("1G")), (Ok(1 << 30), Ok(1 << 30)));
        assert!(parse_memory("512").unwrap_err().contains("512MiB"));
        assert!(parse_memory("").is_err() && parse_memory("0MB").is_err());
    }

    #[test]
    fn columns_and_keys_are_named() {
        let column = |(family, qualifier): (Option<&str>, Option<&str>)| Column {
            family: family.map(str::to_owned),
            qualifier: qualifier.map(str::to_owned),
        };
        let named = |family, qualifier| Ok(Columns(vec![column((family, qualifier))]));
        assert_eq!(parse_columns("M"), named(Some("M"), None));
        assert_eq!(parse_columns("M:a:b"), named(Some("M"), Some("a:b")));
        assert_eq!(parse_columns("M:"), named(Some("M"), Some("")));
        assert_eq!(parse_columns(":a"), named(None, Some("a")));
        assert!(parse_columns("").is_err() && parse_columns("M,").is_err());
        let several = [(Some("N"), None), (Some("M"), Some("a,b")), (None, Some("c"))];
        assert_eq!(parse_columns(r"N,M:a\,b,:c"), Ok(Columns(several.map(column).to_vec())));
        assert_eq!(parse_columns(r"M:a\b\\"), named(Some("M"), Some(r"a\b\")));
        assert_eq!(
            parse_columns(r"M:a\\,N"),
            Ok(Columns(vec![column((Some("M"), Some(r"a\"))), column((Some("N"), None))]))
        );
        assert!(parse_regex("(").is_err());
    }
}
