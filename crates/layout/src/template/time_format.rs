//! strftime formats of templates: compiled, printed and parsed.

use std::fmt;
use std::fmt::Write;
use std::ops::Range;

use chrono::format::{Item, StrftimeItems};
use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::Tz;

use crate::error::{Problem, RejectReason};
use crate::schema::TailPart;
use crate::time::calendar::{Calendar, Civil, days_from_civil, days_of_iso_week, iso_week};
use crate::time::text::{push_digits, read_digits};
use crate::time::{DAY, HOUR, LocalOffset, MINUTE, SECOND};

/// A time unit that prints as a fixed number of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Unit {
    Year,
    Month,
    Day,
    DayOfYear,
    IsoYear,
    IsoWeek,
    Hour,
    Minute,
    Second,
    Millis,
    Micros,
}

impl Unit {
    /// The unit of a directive without its `%`.
    fn of(directive: &str) -> Option<Self> {
        Some(match directive {
            "Y" => Self::Year,
            "m" => Self::Month,
            "d" => Self::Day,
            "j" => Self::DayOfYear,
            "G" => Self::IsoYear,
            "V" => Self::IsoWeek,
            "H" => Self::Hour,
            "M" => Self::Minute,
            "S" => Self::Second,
            "3f" => Self::Millis,
            "6f" => Self::Micros,
            _ => return None,
        })
    }

    /// The number of digits that it prints.
    pub(crate) fn width(self) -> u8 {
        match self {
            Self::Year | Self::IsoYear => 4,
            Self::DayOfYear | Self::Millis => 3,
            Self::Micros => 6,
            _ => 2,
        }
    }

    /// The greatest length of the unit in microseconds.
    pub(crate) fn size(self) -> i64 {
        match self {
            Self::Year | Self::IsoYear => 371 * DAY,
            Self::Month => 31 * DAY,
            Self::IsoWeek => 7 * DAY,
            Self::Day | Self::DayOfYear => DAY,
            Self::Hour => HOUR,
            Self::Minute => MINUTE,
            Self::Second => SECOND,
            Self::Millis => 1000,
            Self::Micros => 1,
        }
    }

    /// The number that it prints; `None` for years without four digits.
    fn value(self, civil: &Civil) -> Option<u64> {
        let micros = civil.micros;
        Some(match self {
            Self::Year => four_digits(civil.year)?,
            Self::Month => civil.month.into(),
            Self::Day => civil.day.into(),
            Self::DayOfYear => (civil.days - days_from_civil(civil.year, 1, 1) + 1).cast_unsigned(),
            Self::IsoYear => four_digits(iso_week(civil.days).0)?,
            Self::IsoWeek => iso_week(civil.days).1.into(),
            Self::Hour => (micros / HOUR).cast_unsigned(),
            Self::Minute => (micros / MINUTE % 60).cast_unsigned(),
            Self::Second => (micros / SECOND % 60).cast_unsigned(),
            Self::Millis => (micros / 1000 % 1000).cast_unsigned(),
            Self::Micros => (micros % SECOND).cast_unsigned(),
        })
    }

    /// Whether it refines `last`, so that the two together sort as times do.
    fn follows(self, last: Self) -> bool {
        matches!(
            (last, self),
            (Self::Year, Self::Month | Self::DayOfYear)
                | (Self::Month, Self::Day)
                | (Self::IsoYear, Self::IsoWeek)
                | (Self::Day | Self::DayOfYear, Self::Hour)
                | (Self::Hour, Self::Minute)
                | (Self::Minute, Self::Second)
                | (Self::Second, Self::Millis | Self::Micros)
        )
    }
}

/// A year as templates print it; `None` if it has not four digits.
fn four_digits(year: i64) -> Option<u64> {
    u64::try_from(year).ok().filter(|year| *year <= 9999)
}

/// The resolution of the times that `units` together give, in microseconds; `None` if they give none.
pub(crate) fn resolution(units: &[Unit]) -> Option<i64> {
    let has = |unit| units.contains(&unit);
    let gives_day = has(Unit::Year) && (has(Unit::DayOfYear) || (has(Unit::Month) && has(Unit::Day)));
    if !gives_day {
        return if has(Unit::IsoYear) && has(Unit::IsoWeek) {
            Some(Unit::IsoWeek.size())
        } else if has(Unit::Year) && has(Unit::Month) {
            Some(Unit::Month.size())
        } else {
            has(Unit::Year).then(|| Unit::Year.size())
        };
    }

    let mut finest = DAY;
    for unit in [Unit::Hour, Unit::Minute, Unit::Second] {
        if !has(unit) {
            return Some(finest);
        }
        finest = unit.size();
    }

    Some(if has(Unit::Micros) {
        1
    } else if has(Unit::Millis) {
        1000
    } else {
        finest
    })
}

/// A part of a compiled format.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Unit(Unit),
    /// A directive that is delegated to chrono; it cannot be parsed.
    Chrono(String),
}

/// A compiled strftime format with its time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimeFormat {
    parts: Vec<Part>,
    /// The zone of the printed times; `None` for UTC.
    zone: Option<Tz>,
}

/// The time units that have been parsed so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TimeParts {
    values: [Option<u32>; 11],
}

impl TimeParts {
    fn get(&self, unit: Unit) -> Option<i64> {
        self.values.get(unit as usize).copied().flatten().map(i64::from)
    }

    fn set(&mut self, unit: Unit, value: u32) {
        if let Some(slot) = self.values.get_mut(unit as usize) {
            *slot = Some(value);
        }
    }

    /// A unit's value, if it lies between these, as `Some(Some(value))`; `None` if it lies outside, which no time has.
    fn between(&self, unit: Unit, low: i64, high: i64) -> Option<Option<u32>> {
        match self.get(unit) {
            None => Some(None),
            Some(value) => (low..=high).contains(&value).then_some(Some(value as u32)),
        }
    }

    /// The earliest time with these units, in microseconds since the epoch; `None` if there is none.
    pub(crate) fn resolve(&self, zone: Option<Tz>) -> Option<i64> {
        let month = self.between(Unit::Month, 1, 12)?;
        let day = self.between(Unit::Day, 1, 31)?;
        let days = match (self.get(Unit::Year), self.between(Unit::DayOfYear, 1, 366)?) {
            (Some(year), Some(of_year)) => days_from_civil(year, 1, 1) + i64::from(of_year) - 1,
            (Some(year), None) => days_from_civil(year, month.unwrap_or(1), month.and(day).unwrap_or(1)),
            (None, _) => days_of_iso_week(self.get(Unit::IsoYear)?, self.between(Unit::IsoWeek, 1, 53)??),
        };

        let mut time = days * DAY;
        if day.is_some() || self.get(Unit::DayOfYear).is_some() {
            for (unit, most) in [(Unit::Hour, 23), (Unit::Minute, 59), (Unit::Second, 59)] {
                let Some(value) = self.between(unit, 0, most)? else { break };
                time += i64::from(value) * unit.size();
            }
            time += self.get(Unit::Micros).or_else(|| self.get(Unit::Millis).map(|ms| ms * 1000)).unwrap_or(0);
        }

        let Some(zone) = zone else { return Some(time) };
        let local = DateTime::from_timestamp_micros(time)?.naive_utc();
        let offset = LocalOffset::resolve(&zone, &local).offset()?;
        time.checked_sub(i64::from(offset) * SECOND)
    }
}

impl TimeFormat {
    /// Compiles `text`, `%..` with an optional `|Zone`; an error has its byte range in `text`.
    pub(crate) fn compile(text: &str) -> Result<Self, (Range<usize>, Problem)> {
        let (format, zone) = match text.split_once('|') {
            None => (text, None),
            Some((format, name)) => {
                let zone = name
                    .parse::<Tz>()
                    .map_err(|_| (format.len() + 1..text.len(), Problem::UnknownZone { zone: name.to_owned() }))?;
                (format, Some(zone).filter(|zone| !matches!(zone, Tz::UTC | Tz::Etc__UTC)))
            }
        };

        let mut parts = Vec::new();
        let mut at = 0;
        while let Some(rest) = format.get(at..).filter(|rest| !rest.is_empty()) {
            let Some(directive) = rest.strip_prefix('%') else {
                let end = rest.find('%').unwrap_or(rest.len());
                push_literal(&mut parts, &rest[..end]);
                at += end;
                continue;
            };
            let length = directive_length(directive);
            let directive = &directive[..length];
            compile_directive(directive, &mut parts).map_err(|problem| (at..at + 1 + length, problem))?;
            at += 1 + length;
        }

        let format = Self { parts, zone };
        let units: Vec<Unit> = format.units().collect();
        if units.contains(&Unit::IsoWeek) && (!units.contains(&Unit::IsoYear) || units.contains(&Unit::Year)) {
            return Err((0..text.len(), Problem::WeekWithoutIsoYear));
        }
        Ok(format)
    }

    /// The zone of the printed times; `None` for UTC.
    pub(crate) fn zone(&self) -> Option<Tz> {
        self.zone
    }

    /// The units that it prints, from left to right.
    pub(crate) fn units(&self) -> impl Iterator<Item = Unit> + '_ {
        self.parts.iter().filter_map(|part| if let Part::Unit(unit) = part { Some(*unit) } else { None })
    }

    /// Whether the output differs from year to year. Of the directives that only chrono knows, those below print a year.
    pub(crate) fn prints_year(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Literal(_) => false,
            Part::Unit(unit) => matches!(unit, Unit::Year | Unit::IsoYear),
            Part::Chrono(directive) => directive.ends_with(['Y', 'y', 'G', 'g', 'C', 'c', 'D', 'x', 'v', 's']),
        })
    }

    /// Whether chrono prints some of it, so that it cannot be read back.
    fn has_chrono(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Chrono(_)))
    }

    /// The printed width in bytes; `None` if it varies.
    pub(crate) fn width(&self) -> Option<usize> {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Literal(text) => Some(text.len()),
                Part::Unit(unit) => Some(usize::from(unit.width())),
                Part::Chrono(_) => None,
            })
            .sum()
    }

    /// The parts of a key tail: digits and ASCII literals; `None` if it prints anything else.
    pub(crate) fn tail_parts(&self) -> Option<Vec<TailPart>> {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Literal(text) => text.is_ascii().then(|| TailPart::Literal(text.clone())),
                Part::Unit(unit) => Some(TailPart::Digits(unit.width())),
                Part::Chrono(_) => None,
            })
            .collect()
    }

    /// Whether the printed bytes sort as the times do (equal within the resolution).
    pub(crate) fn is_ordered(&self) -> bool {
        let units: Vec<Unit> = self.units().collect();
        !self.has_chrono()
            && self.zone.is_none()
            && matches!(units.first(), Some(Unit::Year | Unit::IsoYear))
            && units.windows(2).all(|pair| matches!(pair, [last, next] if next.follows(*last)))
    }

    /// The resolution of the printed times in microseconds; `None` if it gives no time.
    pub(crate) fn resolution(&self) -> Option<i64> {
        if self.has_chrono() {
            return None;
        }
        let units: Vec<Unit> = self.units().collect();
        resolution(&units)
    }

    /// The smallest time step that changes the output; `None` if unknown.
    pub(crate) fn finest(&self) -> Option<i64> {
        if self.has_chrono() { None } else { self.units().map(Unit::size).min() }
    }

    /// The local time of an instant, in microseconds; `None` if it is out of range.
    fn local(&self, time_us: i64) -> Option<i64> {
        let Some(zone) = self.zone else { return Some(time_us) };
        let utc = DateTime::from_timestamp_micros(time_us)?.naive_utc();
        let offset = zone.offset_from_utc_datetime(&utc).fix().local_minus_utc();
        time_us.checked_add(i64::from(offset) * SECOND)
    }

    /// All printed digits as one number (only for formats without chrono directives).
    pub(crate) fn number(&self, time_us: i64, calendar: &mut Calendar) -> Result<u64, RejectReason> {
        let civil = calendar.at(self.local(time_us).ok_or(RejectReason::Year)?);
        // Checked even if no year is printed, so that rejection does not depend on cached results.
        if !(0..=9999).contains(&civil.year) {
            return Err(RejectReason::Year);
        }
        let mut number = 0u64;
        for part in &self.parts {
            if let Part::Unit(unit) = part {
                let value = unit.value(&civil).ok_or(RejectReason::Year)?;
                number = number.wrapping_mul(10u64.pow(u32::from(unit.width()))).wrapping_add(value);
            }
        }
        Ok(number)
    }

    /// Appends the printed time to `out`.
    ///
    /// # Errors
    /// If the year has not four digits.
    pub(crate) fn write(&self, time_us: i64, calendar: &mut Calendar, out: &mut Vec<u8>) -> Result<(), RejectReason> {
        let local = self.local(time_us).ok_or(RejectReason::Year)?;
        let civil = calendar.at(local);
        if !(0..=9999).contains(&civil.year) {
            return Err(RejectReason::Year);
        }

        for part in &self.parts {
            match part {
                Part::Literal(text) => out.extend_from_slice(text.as_bytes()),
                Part::Unit(unit) => {
                    let value = unit.value(&civil).ok_or(RejectReason::Year)?;
                    push_digits(value, usize::from(unit.width()), out);
                }
                Part::Chrono(directive) => {
                    let utc = DateTime::from_timestamp_micros(time_us).ok_or(RejectReason::Year)?;
                    let format = format!("%{directive}");
                    let text = match self.zone {
                        None => chrono_text(&utc.format(&format)),
                        Some(zone) => chrono_text(&utc.with_timezone(&zone).format(&format)),
                    };
                    out.extend_from_slice(text.ok_or(RejectReason::Year)?.as_bytes());
                }
            }
        }
        Ok(())
    }

    /// Parses `text` into `parts`; false if it does not match the format.
    pub(crate) fn read(&self, text: &[u8], parts: &mut TimeParts) -> bool {
        let mut rest = text;
        for part in &self.parts {
            match part {
                Part::Literal(literal) => match rest.strip_prefix(literal.as_bytes()) {
                    Some(after) => rest = after,
                    None => return false,
                },
                Part::Unit(unit) => {
                    let Some((digits, after)) = rest.split_at_checked(usize::from(unit.width())) else { return false };
                    let Some(value) = read_digits(digits) else { return false };
                    parts.set(*unit, value as u32);
                    rest = after;
                }
                Part::Chrono(_) => return false,
            }
        }
        rest.is_empty()
    }

    /// Decodes the digits of `number`, see [`TimeFormat::number`], into `parts`.
    pub(crate) fn read_number(&self, number: u64, parts: &mut TimeParts) {
        let mut rest = number;
        for part in self.parts.iter().rev() {
            if let Part::Unit(unit) = part {
                let scale = 10u64.pow(u32::from(unit.width()));
                parts.set(*unit, (rest % scale) as u32);
                rest /= scale;
            }
        }
    }
}

/// The number of bytes of the directive that `directive` starts with, without its `%`.
fn directive_length(directive: &str) -> usize {
    let skip = directive.find(|c: char| !matches!(c, '.' | '-' | '_' | ':' | '#') && !c.is_ascii_digit());
    skip.map_or(directive.len(), |at| at + directive[at..].chars().next().map_or(0, char::len_utf8))
}

/// What chrono prints; `None` if it cannot print it.
fn chrono_text(printed: &dyn fmt::Display) -> Option<String> {
    let mut text = String::new();
    write!(text, "{printed}").is_ok().then_some(text)
}

/// Appends a literal; neighbours become one.
fn push_literal(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        Some(Part::Literal(last)) => last.push_str(text),
        _ => parts.push(Part::Literal(text.to_owned())),
    }
}

/// Appends the parts of a directive: units that are read back, or one that only chrono prints.
fn compile_directive(directive: &str, parts: &mut Vec<Part>) -> Result<(), Problem> {
    if let Some(unit) = Unit::of(directive) {
        parts.push(Part::Unit(unit));
        return Ok(());
    }

    let expanded: &[&str] = match directive {
        "%" => {
            push_literal(parts, "%");
            return Ok(());
        }
        "F" => &["Y", "-", "m", "-", "d"],
        "T" => &["H", ":", "M", ":", "S"],
        "R" => &["H", ":", "M"],
        ".3f" => &[".", "3f"],
        ".6f" => &[".", "6f"],
        _ => &[],
    };

    if expanded.is_empty() {
        let format = format!("%{directive}");
        let is_known = StrftimeItems::new(&format).all(|item| !matches!(item, Item::Error));
        // Some directives only parse.
        let is_printed = is_known && chrono_text(&DateTime::UNIX_EPOCH.format(&format)).is_some();
        if !is_printed || directive.ends_with(['Z', '+']) {
            return Err(Problem::UnknownDirective { directive: format!("%{directive}") });
        }
        parts.push(Part::Chrono(directive.to_owned()));
        return Ok(());
    }

    for piece in expanded {
        match Unit::of(piece) {
            Some(unit) => parts.push(Part::Unit(unit)),
            None => push_literal(parts, piece),
        }
    }
    Ok(())
}
