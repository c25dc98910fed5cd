//! strftime formats, compiled once and parsed from bytes.

use crate::number::Exact;
use crate::time::civil::Civil;
use crate::time::month_names::{take_english_month, take_month, take_weekday};
use crate::time::stamp::Stamp;
use crate::time::zone_names::ZoneName;

/// An error of a time format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatFault {
    /// An unknown item.
    #[error(
        "%{0} is not read; use Y y q m b B d e a A H I p M S f 3f 6f 9f .f z Z s F T R, * for all that follows, or s, ms, \
         us, ns for epoch numbers, or excel for its days"
    )]
    Item(String),
    /// Something behind `%*`.
    #[error("%* stands for all that follows: nothing goes behind it")]
    BehindRest,
    /// A `%` at the end.
    #[error("it ends in %; write %% for a percent sign")]
    Unfinished,
    /// It does not determine a time.
    #[error("it must give a day (year, month and day), or a year, quarter or month without a time of day, or %s")]
    NoDay,
    /// Half of a twelve-hour clock.
    #[error("%I and %p go together")]
    HalfClock,
}

/// A unit of epoch numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Millis,
    Micros,
    Nanos,
    /// Days of local time since 1899-12-30, as spreadsheets count.
    ExcelDays,
}

/// Seconds from day 0 of a spreadsheet to 1970.
const EXCEL_TO_EPOCH: i64 = 25_569 * 86_400;

impl Unit {
    pub fn named(text: &str) -> Option<Self> {
        match text {
            "s" => Some(Self::Seconds),
            "ms" => Some(Self::Millis),
            "us" => Some(Self::Micros),
            "ns" => Some(Self::Nanos),
            "excel" => Some(Self::ExcelDays),
            _ => None,
        }
    }

    /// Converts to microseconds, truncating nanoseconds. `None` on overflow.
    pub fn stamp(self, count: i64) -> Option<Stamp> {
        match self {
            Self::Seconds => count.checked_mul(1_000_000).map(Stamp::at),
            Self::Millis => count.checked_mul(1000).map(Stamp::at),
            Self::Micros => Some(Stamp::at(count)),
            Self::Nanos => Some(Stamp { cut: count.rem_euclid(1000) != 0, ..Stamp::at(count.div_euclid(1000)) }),
            Self::ExcelDays => {
                count.checked_mul(86_400)?.checked_sub(EXCEL_TO_EPOCH)?.checked_mul(1_000_000).map(Stamp::at)
            }
        }
    }

    /// As [`Self::stamp`] for numbers with a fraction. Days of a spreadsheet are rounded to milliseconds, because their
    /// fractions are inexact.
    pub fn exact(self, count: Exact) -> Option<Stamp> {
        let power = match self {
            Self::Seconds => 6,
            Self::Millis => 3,
            Self::Micros => 0,
            Self::Nanos => -3,
            Self::ExcelDays => {
                let (micros, _) = count.scaled(86_400, 6)?;
                let millis = micros.checked_add(500)?.div_euclid(1000);
                return millis.checked_sub(EXCEL_TO_EPOCH * 1000)?.checked_mul(1000).map(Stamp::at);
            }
        };
        let (micros, cut) = count.scaled(1, power)?;
        Some(Stamp { cut, ..Stamp::at(micros) })
    }

    /// As [`Self::exact`] for a double, rounded to microseconds.
    pub fn float(self, count: f64) -> Option<Stamp> {
        let whole = count.floor();
        let fraction = count - whole;
        if !(-1e15..1e19).contains(&whole) {
            return None;
        }
        // Seconds in a double have no digits beyond the microsecond that could be cut.
        let (size, scale) = match self {
            Self::Seconds => (1_000_000, 1e6),
            Self::Millis => (1000, 1e3),
            Self::Micros => (1, 1.0),
            Self::Nanos => return self.stamp(whole as i64),
            Self::ExcelDays => {
                let millis =
                    (whole as i64).checked_mul(86_400_000)?.checked_add((fraction * 86_400e3).round() as i64)?;
                return millis.checked_sub(EXCEL_TO_EPOCH * 1000)?.checked_mul(1000).map(Stamp::at);
            }
        };
        let micros = (whole as i64).checked_mul(size)?.checked_add((fraction * scale).round() as i64)?;
        Some(Stamp::at(micros))
    }
}

/// One item of a format. Numbers without a width of their own take one or two digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    Literal(u8),
    /// Four digits.
    Year,
    /// Two digits: 69 to 99 are of the 20th century.
    ShortYear,
    /// One digit; stands for its first month.
    Quarter,
    Month,
    /// Three letters or whole, English or another large language of Europe.
    MonthName,
    /// Its English name alone, as the first reader version reads it.
    EnglishMonth,
    /// English, three letters or whole; says nothing.
    Weekday,
    /// May be padded with a blank.
    Day,
    Hour,
    Hour12,
    Half,
    Minute,
    Second,
    /// Digits after the point.
    Fraction {
        least: usize,
        most: usize,
    },
    /// Nothing, or a point and digits.
    PointFraction,
    /// `+01:00`, `+0100`, `+01` or Z.
    Offset,
    /// As [`Item::Offset`], or nothing.
    MaybeOffset,
    /// An abbreviation such as CEST.
    ZoneName,
    /// Nothing, or a colon and seconds, which a point or comma and digits may follow.
    MaybeSeconds,
    /// T, t or a blank.
    Separator,
    /// Seconds since the epoch, in UTC.
    Epoch,
    /// All that follows, at least one character: the end of an interval, say.
    Rest,
}

/// RFC 3339; unless `is_strict`, seconds may be left out, and a comma may precede the fraction, as in ISO 8601.
pub(super) fn rfc_3339(is_strict: bool) -> Vec<Item> {
    use Item::*;
    let dash = Literal(b'-');
    let colon = Literal(b':');
    let minutes = [Year, dash, Month, dash, Day, Separator, Hour, colon, Minute];
    let seconds: &[Item] = if is_strict { &[colon, Second, PointFraction] } else { &[MaybeSeconds] };
    minutes.iter().chain(seconds).chain(&[MaybeOffset]).copied().collect()
}

pub(super) fn compile(text: &str) -> Result<Vec<Item>, FormatFault> {
    let mut items = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        items.extend(rest.bytes().take(at).map(Item::Literal));
        rest = rest.get(at + 1..).unwrap_or_default();
        // A width, a point or a colon belongs to the letter after it.
        let letter = rest.find(|c: char| !matches!(c, '.' | ':' | '-' | '0'..='9')).ok_or(FormatFault::Unfinished)?;
        let length = letter + rest.get(letter..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        let (item, after) = rest.split_at_checked(length).ok_or(FormatFault::Unfinished)?;
        rest = after;
        let exactly = |count| Item::Fraction { least: count, most: count };
        match item {
            "Y" => items.push(Item::Year),
            "y" => items.push(Item::ShortYear),
            "q" => items.push(Item::Quarter),
            "m" | "-m" => items.push(Item::Month),
            "b" | "B" | "h" => items.push(Item::MonthName),
            "a" | "A" => items.push(Item::Weekday),
            "d" | "e" | "-d" => items.push(Item::Day),
            "H" | "-H" => items.push(Item::Hour),
            "I" | "-I" => items.push(Item::Hour12),
            "p" | "P" => items.push(Item::Half),
            "M" => items.push(Item::Minute),
            "S" => items.push(Item::Second),
            "f" => items.push(Item::Fraction { least: 1, most: 9 }),
            "3f" => items.push(exactly(3)),
            "6f" => items.push(exactly(6)),
            "9f" => items.push(exactly(9)),
            ".f" => items.push(Item::PointFraction),
            ".3f" => items.extend([Item::Literal(b'.'), exactly(3)]),
            ".6f" => items.extend([Item::Literal(b'.'), exactly(6)]),
            ".9f" => items.extend([Item::Literal(b'.'), exactly(9)]),
            "z" | ":z" => items.push(Item::Offset),
            "Z" => items.push(Item::ZoneName),
            "s" => items.push(Item::Epoch),
            "*" => items.push(Item::Rest),
            "F" => items.extend(compile("%Y-%m-%d")?),
            "T" => items.extend(compile("%H:%M:%S")?),
            "R" => items.extend(compile("%H:%M")?),
            "%" => items.push(Item::Literal(b'%')),
            other => return Err(FormatFault::Item(other.to_owned())),
        }
    }
    items.extend(rest.bytes().map(Item::Literal));
    Ok(items)
}

/// Checks that a format determines a time: years, quarters and months stand for their start.
pub(super) fn check(items: &[Item]) -> Result<(), FormatFault> {
    if items.iter().rev().skip(1).any(|item| *item == Item::Rest) {
        return Err(FormatFault::BehindRest);
    }
    let has = |wanted: &[Item]| wanted.iter().any(|item| items.contains(item));
    let (year, month) = (has(&[Item::Year, Item::ShortYear]), has(&[Item::Month, Item::MonthName, Item::EnglishMonth]));
    let day = year && month && has(&[Item::Day]);
    let clock = has(&[Item::Hour, Item::Hour12, Item::Minute, Item::Second]);
    let finer = clock || has(&[Item::Day]) || month && has(&[Item::Quarter]);
    let coarse = year && !finer;
    if !day && !coarse && !has(&[Item::Epoch]) {
        return Err(FormatFault::NoDay);
    }
    if has(&[Item::Hour12]) != has(&[Item::Half]) {
        return Err(FormatFault::HalfClock);
    }
    Ok(())
}

/// A parsed text.
pub(super) enum Moment {
    /// Microseconds since the epoch.
    Instant(i64),
    /// Calendar fields, and the offset they were written with.
    Civil(Civil, Option<WrittenOffset>),
}

/// The offset a time was written with.
#[derive(Debug, Clone, Copy)]
pub(super) enum WrittenOffset {
    /// Seconds east of UTC.
    Seconds(i32),
    Name(ZoneName),
}

/// What `text` means, and whether digits beyond the microsecond were cut; `None` if it is not of the form.
pub(super) fn read(items: &[Item], text: &[u8]) -> Option<(Moment, bool)> {
    let mut cut = false;
    let mut civil = Civil::MIDNIGHT;
    let mut offset = None;
    let mut epoch = None;
    let mut half = None;
    let mut rest = text;
    for item in items {
        match *item {
            Item::Literal(byte) => rest = rest.strip_prefix(&[byte])?,
            Item::Year => civil.year = number(&mut rest, 4, 4)?,
            Item::ShortYear => {
                let year = number(&mut rest, 2, 2)?;
                civil.year = if year < 69 { 2000 + year } else { 1900 + year };
            }
            Item::Quarter => {
                let quarter = number(&mut rest, 1, 1)?;
                civil.month = if (1..=4).contains(&quarter) { quarter * 3 - 2 } else { return None };
            }
            Item::Month => civil.month = number(&mut rest, 1, 2)?,
            Item::MonthName => civil.month = take_month(&mut rest)?,
            Item::EnglishMonth => civil.month = take_english_month(&mut rest)?,
            Item::Weekday => take_weekday(&mut rest)?,
            Item::Day => {
                rest = rest.strip_prefix(b" ").unwrap_or(rest);
                civil.day = number(&mut rest, 1, 2)?;
            }
            Item::Hour => civil.hour = number(&mut rest, 1, 2)?,
            Item::Hour12 => {
                civil.hour = number(&mut rest, 1, 2)?;
                if !(1..=12).contains(&civil.hour) {
                    return None;
                }
            }
            Item::Half => {
                let (letters, after) = rest.split_at_checked(2)?;
                let afternoon = letters.eq_ignore_ascii_case(b"pm");
                if !afternoon && !letters.eq_ignore_ascii_case(b"am") {
                    return None;
                }
                half = Some(afternoon);
                rest = after;
            }
            Item::Minute => civil.minute = number(&mut rest, 1, 2)?,
            Item::Second => civil.second = number(&mut rest, 1, 2)?,
            Item::Fraction { least, most } => (civil.micros, cut) = fraction(&mut rest, least, most)?,
            Item::PointFraction => {
                if let Some(after) = rest.strip_prefix(b".") {
                    rest = after;
                    (civil.micros, cut) = fraction(&mut rest, 1, usize::MAX)?;
                }
            }
            Item::MaybeSeconds => {
                if let Some(after) = rest.strip_prefix(b":") {
                    rest = after;
                    civil.second = number(&mut rest, 1, 2)?;
                    if let Some((b'.' | b',', after)) = rest.split_first() {
                        rest = after;
                        (civil.micros, cut) = fraction(&mut rest, 1, usize::MAX)?;
                    }
                }
            }
            Item::Offset => offset = Some(WrittenOffset::Seconds(zone_offset(&mut rest)?)),
            Item::MaybeOffset if rest.is_empty() => {}
            Item::MaybeOffset => offset = Some(WrittenOffset::Seconds(zone_offset(&mut rest)?)),
            Item::ZoneName => offset = Some(WrittenOffset::Name(ZoneName::take(&mut rest)?)),
            Item::Separator => {
                let (first, after) = rest.split_first()?;
                if !matches!(first, b'T' | b't' | b' ') {
                    return None;
                }
                rest = after;
            }
            Item::Epoch => {
                let negative = rest.first() == Some(&b'-');
                let digits = if negative { rest.get(1..)? } else { rest };
                let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let (count, after) = digits.split_at_checked(length)?;
                let count = crate::number::parse_i64(count).ok()?;
                epoch = Some(if negative { -count } else { count });
                rest = after;
            }
            Item::Rest if rest.is_empty() => return None,
            Item::Rest => rest = b"",
        }
    }
    if !rest.is_empty() {
        return None;
    }
    if let Some(seconds) = epoch {
        // What has too many digits is beyond all times.
        let micros = seconds.saturating_mul(1_000_000).saturating_add(i64::from(civil.micros));
        return Some((Moment::Instant(micros), cut));
    }
    if let Some(afternoon) = half {
        civil.hour = civil.hour % 12 + if afternoon { 12 } else { 0 };
    }
    Some((Moment::Civil(civil, offset), cut))
}

/// Takes at least `least` and at most `most` digits.
fn digits<'a>(rest: &mut &'a [u8], least: usize, most: usize) -> Option<&'a [u8]> {
    let count = rest.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
    if count < least {
        return None;
    }
    let (taken, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(taken)
}

fn number(rest: &mut &[u8], least: usize, most: usize) -> Option<u32> {
    Some(digits(rest, least, most)?.iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0')))
}

/// Digits after a point as microseconds, and whether further ones were cut off that are not 0.
fn fraction(rest: &mut &[u8], least: usize, most: usize) -> Option<(u32, bool)> {
    let taken = digits(rest, least, most)?;
    let padded = taken.iter().copied().chain(std::iter::repeat(b'0')).take(6);
    let micros = padded.fold(0, |value, digit| value * 10 + u32::from(digit - b'0'));
    Some((micros, taken.iter().skip(6).any(|digit| *digit != b'0')))
}

/// Seconds east of UTC.
fn zone_offset(rest: &mut &[u8]) -> Option<i32> {
    let (sign, after) = rest.split_first()?;
    *rest = after;
    let sign = match sign {
        b'Z' | b'z' => return Some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = number(rest, 2, 2)?;
    if let Some(after) = rest.strip_prefix(b":") {
        *rest = after;
    }
    let minutes = if rest.first().is_some_and(u8::is_ascii_digit) { number(rest, 2, 2)? } else { 0 };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60).cast_signed())
}
