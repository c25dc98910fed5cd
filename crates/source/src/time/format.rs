//! strftime formats, compiled once and parsed from bytes, and units of numbers that count from an epoch.

use crate::number::Exact;
use crate::time::civil::Civil;
use crate::time::month_names::{take_english_month, take_month, take_weekday};
use crate::time::stamp::Stamp;
use crate::time::zone_names::ZoneName;

/// Why a format cannot be read with. Messages say what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatFault {
    /// An item that is not known, as it is written behind its `%`.
    #[error(
        "%{0} is not read; use Y y q m b B d e a A H I p M S f 3f 6f 9f .f z -z Z s F T R, ? where a time may end that is a \
         midnight, * for all that follows, or s, ms, us, ns for epoch numbers, or excel for its days"
    )]
    Item(String),
    /// Something stands behind `%*`, which takes all that follows.
    #[error("%* stands for all that follows: nothing goes behind it")]
    BehindRest,
    /// A `%` at the end, behind which its letter is missing.
    #[error("it ends in %; write %% for a percent sign")]
    Unfinished,
    /// The items do not determine a time, not even the start of a month, quarter or year.
    #[error("it must give a day (year, month and day), or a year, quarter or month without a time of day, or %s")]
    NoDay,
    /// An hour of a twelve-hour clock without AM or PM, or the reverse.
    #[error("%I and %p go together")]
    HalfClock,
}

/// A unit of numbers that count from an epoch.
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
    /// One or two digits, before which a blank may stand.
    Day,
    Hour,
    Hour12,
    /// AM or PM, in any case, also with points and blanks as in Spanish: `p. m.`.
    Half,
    /// Blanks before [`Item::Half`], of which there is at least one; no-break and thin ones count.
    Blanks,
    Minute,
    Second,
    /// So many digits of a fraction, whose point is an item of its own.
    Fraction {
        least: usize,
        most: usize,
    },
    /// Nothing, or a point and the digits of a fraction.
    PointFraction,
    /// An offset from UTC: `+01:00`, `+0100`, `+01` or Z.
    Offset,
    /// As [`Item::Offset`], whose hour may have one digit: `+1`, `-5:30`.
    ShortOffset,
    /// As [`Item::Offset`], or nothing at the end of the text.
    MaybeOffset,
    /// An abbreviation of a zone, such as CEST.
    ZoneName,
    /// Nothing, or a colon and seconds, which a point or comma and digits may follow.
    MaybeSeconds,
    /// What stands between day and time of day: T, t or a blank.
    Separator,
    /// Seconds since the epoch, in UTC, which may be negative.
    Epoch,
    /// Where the text may end: what follows is 0, so that a day alone is its midnight.
    End,
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

/// The items of a format as it is written.
///
/// # Errors
/// [`FormatFault::Item`] and [`FormatFault::Unfinished`].
pub(super) fn compile(text: &str) -> Result<Vec<Item>, FormatFault> {
    let mut items = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        items.extend(rest.bytes().take(at).map(Item::Literal));
        if matches!(rest.as_bytes().get(at + 1), Some(b'p' | b'P')) {
            let is_blank = items.pop_if(|item| *item == Item::Literal(b' ')).is_some();
            items.extend(is_blank.then_some(Item::Blanks));
        }
        rest = rest.get(at + 1..).unwrap_or_default();
        // A width, a point or a colon belongs to the letter after it.
        let letter = rest.find(|c: char| !matches!(c, '.' | ':' | '-' | '0'..='9')).ok_or(FormatFault::Unfinished)?;
        let length = letter + rest.get(letter..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        let (item, after) = rest.split_at_checked(length).ok_or(FormatFault::Unfinished)?;
        add_item(item, &mut items)?;
        rest = after;
    }
    items.extend(rest.bytes().map(Item::Literal));
    Ok(items)
}

/// Appends what stands behind a `%`.
fn add_item(item: &str, items: &mut Vec<Item>) -> Result<(), FormatFault> {
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
        "-z" => items.push(Item::ShortOffset),
        "Z" => items.push(Item::ZoneName),
        "s" => items.push(Item::Epoch),
        "?" => items.push(Item::End),
        "*" => items.push(Item::Rest),
        "F" => items.extend(compile("%Y-%m-%d")?),
        "T" => items.extend(compile("%H:%M:%S")?),
        "R" => items.extend(compile("%H:%M")?),
        "%" => items.push(Item::Literal(b'%')),
        other => return Err(FormatFault::Item(other.to_owned())),
    }
    Ok(())
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

/// What a text means, before zones are applied.
pub(super) enum Moment {
    /// Microseconds since the epoch, in UTC.
    Instant(i64),
    /// Calendar fields, and the offset they were written with.
    Civil(Civil, Option<WrittenOffset>),
}

/// The offset a time was written with.
#[derive(Debug, Clone, Copy)]
pub(super) enum WrittenOffset {
    Seconds(i32),
    Name(ZoneName),
}

/// What `text` means, and whether digits beyond the microsecond were cut; `None` if it is not of the form.
pub(super) fn read(items: &[Item], text: &[u8]) -> Option<(Moment, bool)> {
    let mut reading = Reading { rest: text, civil: Civil::MIDNIGHT, cut: false, offset: None, epoch: None, half: None };
    for item in items {
        if *item == Item::End && reading.rest.is_empty() {
            break;
        }
        reading.take(*item)?;
    }
    reading.finish()
}

/// A text that is being read, with what it has said so far.
struct Reading<'t> {
    rest: &'t [u8],
    civil: Civil,
    /// Whether digits beyond the microsecond were cut off that are not 0.
    cut: bool,
    offset: Option<WrittenOffset>,
    /// Seconds since the epoch, if the text has them.
    epoch: Option<i64>,
    /// Whether the hour is one of the afternoon, on a clock of twelve hours.
    half: Option<bool>,
}

impl Reading<'_> {
    /// Takes an item off the text; `None` if the text has something else there.
    #[inline]
    fn take(&mut self, item: Item) -> Option<()> {
        match item {
            Item::Literal(byte) => self.rest = self.rest.strip_prefix(&[byte])?,
            Item::Year => self.civil.year = number(&mut self.rest, 4, 4)?,
            Item::ShortYear => {
                let year = number(&mut self.rest, 2, 2)?;
                self.civil.year = if year < 69 { 2000 + year } else { 1900 + year };
            }
            Item::Quarter => {
                let quarter = number(&mut self.rest, 1, 1)?;
                self.civil.month = if (1..=4).contains(&quarter) { quarter * 3 - 2 } else { return None };
            }
            Item::Month => self.civil.month = number(&mut self.rest, 1, 2)?,
            Item::MonthName => self.civil.month = take_month(&mut self.rest)?,
            Item::EnglishMonth => self.civil.month = take_english_month(&mut self.rest)?,
            Item::Weekday => take_weekday(&mut self.rest)?,
            Item::Day => {
                self.rest = self.rest.strip_prefix(b" ").unwrap_or(self.rest);
                self.civil.day = number(&mut self.rest, 1, 2)?;
            }

            Item::Hour => self.civil.hour = number(&mut self.rest, 1, 2)?,
            Item::Hour12 => {
                let hour = number(&mut self.rest, 1, 2)?;
                self.civil.hour = Some(hour).filter(|hour| (1..=12).contains(hour))?;
            }
            Item::Blanks => {
                let after = without_blanks(self.rest);
                self.rest = Some(after).filter(|after| after.len() < self.rest.len())?;
            }
            Item::Half => self.half = Some(self.is_afternoon()?),
            Item::Minute => self.civil.minute = number(&mut self.rest, 1, 2)?,
            Item::Second => self.civil.second = number(&mut self.rest, 1, 2)?,
            Item::Fraction { least, most } => {
                (self.civil.micros, self.cut) = fraction(&mut self.rest, least, most)?;
            }
            Item::PointFraction => self.fraction_behind(b".")?,
            Item::MaybeSeconds => {
                if let Some(after) = self.rest.strip_prefix(b":") {
                    self.rest = after;
                    self.civil.second = number(&mut self.rest, 1, 2)?;
                    self.fraction_behind(b".,")?;
                }
            }

            Item::MaybeOffset if self.rest.is_empty() => {}
            Item::Offset | Item::MaybeOffset => {
                self.offset = Some(WrittenOffset::Seconds(zone_offset(&mut self.rest, 2)?));
            }
            Item::ShortOffset => self.offset = Some(WrittenOffset::Seconds(zone_offset(&mut self.rest, 1)?)),
            Item::ZoneName => self.offset = Some(WrittenOffset::Name(ZoneName::take(&mut self.rest)?)),
            Item::Separator => {
                let (_, after) = self.rest.split_first().filter(|(first, _)| matches!(first, b'T' | b't' | b' '))?;
                self.rest = after;
            }
            Item::Epoch => self.epoch = Some(self.seconds()?),
            Item::End => {}
            Item::Rest if self.rest.is_empty() => return None,
            Item::Rest => self.rest = b"",
        }
        Some(())
    }

    /// Takes AM or PM, as [`Item::Half`] says; whether it is the latter.
    fn is_afternoon(&mut self) -> Option<bool> {
        let (first, after) = self.rest.split_first()?;
        let afternoon = match first.to_ascii_lowercase() {
            b'p' => true,
            b'a' => false,
            _ => return None,
        };

        let after = without_blanks(after.strip_prefix(b".").unwrap_or(after));
        let (_, after) = after.split_first().filter(|(letter, _)| letter.eq_ignore_ascii_case(&b'm'))?;
        self.rest = after.strip_prefix(b".").unwrap_or(after);
        Some(afternoon)
    }

    /// Takes one of `points` and the digits behind it, if it is there.
    #[inline]
    fn fraction_behind(&mut self, points: &[u8]) -> Option<()> {
        if let Some((_, after)) = self.rest.split_first().filter(|(first, _)| points.contains(first)) {
            self.rest = after;
            (self.civil.micros, self.cut) = fraction(&mut self.rest, 1, usize::MAX)?;
        }
        Some(())
    }

    /// Takes a whole number, which may be negative.
    fn seconds(&mut self) -> Option<i64> {
        let negative = self.rest.first() == Some(&b'-');
        let digits = if negative { self.rest.get(1..)? } else { self.rest };
        let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (count, after) = digits.split_at_checked(length)?;
        let count = crate::number::parse_i64(count).ok()?;
        self.rest = after;
        Some(if negative { -count } else { count })
    }

    fn finish(mut self) -> Option<(Moment, bool)> {
        if !self.rest.is_empty() {
            return None;
        }
        if let Some(seconds) = self.epoch {
            // What has too many digits is beyond all times.
            let micros = seconds.saturating_mul(1_000_000).saturating_add(i64::from(self.civil.micros));
            return Some((Moment::Instant(micros), self.cut));
        }
        if let Some(afternoon) = self.half {
            self.civil.hour = self.civil.hour % 12 + if afternoon { 12 } else { 0 };
        }
        Some((Moment::Civil(self.civil, self.offset), self.cut))
    }
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

/// Takes an offset from UTC, in seconds east of it, whose hour has at least `least` digits.
fn zone_offset(rest: &mut &[u8], least: usize) -> Option<i32> {
    let (sign, after) = rest.split_first()?;
    *rest = after;
    let sign = match sign {
        b'Z' | b'z' => return Some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = number(rest, least, 2)?;
    if let Some(after) = rest.strip_prefix(b":") {
        *rest = after;
    }
    let minutes = if rest.first().is_some_and(u8::is_ascii_digit) { number(rest, 2, 2)? } else { 0 };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60).cast_signed())
}

/// A text without the blanks at its start, of any kind.
fn without_blanks(text: &[u8]) -> &[u8] {
    const BLANKS: [&[u8]; 4] = [b" ", b"\xC2\xA0", b"\xE2\x80\xAF", b"\xE2\x80\x89"];
    let mut rest = text;
    while let Some(after) = BLANKS.iter().find_map(|blank| rest.strip_prefix(*blank)) {
        rest = after;
    }
    rest
}
