//! The text of intervals, in the forms that PostgreSQL takes: units (`1 day 2 hours ago`), times (`1 day, 02:03:04.5`), and those
//! of ISO 8601 (`P1DT2H`).

use arrow::datatypes::IntervalMonthDayNano;

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const NANOS_PER_DAY: i128 = 86_400 * NANOS_PER_SECOND;
const DAYS_PER_MONTH: i128 = 30;
const MONTHS_PER_YEAR: i128 = 12;
/// Digits after the point of a number, and what a whole one of it is multiplied by.
const PLACES: usize = 9;
const WHOLE: i128 = 1_000_000_000;

/// An interval in parts that do not convert into one another.
#[derive(Debug, Default)]
struct Sum {
    months: i128,
    days: i128,
    nanos: i128,
}

/// The unit of a number.
#[derive(Debug, Clone, Copy)]
enum Unit {
    Months(i128),
    Days(i128),
    Nanos(i128),
}

/// The interval that a text means; `None` if it is none, or exceeds the type.
pub(super) fn interval(text: &str) -> Option<IntervalMonthDayNano> {
    let mut sum = Sum::default();
    match text.strip_prefix(['P', 'p']) {
        Some(rest) => iso(rest, &mut sum)?,
        None => verbose(text, &mut sum)?,
    }
    let (months, days) = (i32::try_from(sum.months).ok()?, i32::try_from(sum.days).ok()?);
    Some(IntervalMonthDayNano::new(months, days, i64::try_from(sum.nanos).ok()?))
}

/// Numbers with units, and times, in any order; `ago` at the end turns the sign.
fn verbose(text: &str, sum: &mut Sum) -> Option<()> {
    let text = text.trim_start_matches('@');
    let mut words = text.split([' ', '\t', '\n', ',']).filter(|word| !word.is_empty()).peekable();
    words.peek()?;

    while let Some(word) = words.next() {
        if word.eq_ignore_ascii_case("ago") && words.peek().is_none() {
            (sum.months, sum.days, sum.nanos) = (-sum.months, -sum.days, -sum.nanos);
            return Some(());
        }
        if word.contains(':') {
            sum.nanos = sum.nanos.checked_add(time(word)?)?;
            continue;
        }
        let digits = word.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(word.len());
        let (digits, joined) = word.split_at_checked(digits)?;
        let unit = match (joined, words.peek().and_then(|next| unit(next))) {
            ("", Some(unit)) => {
                words.next();
                unit
            }
            // A number alone is one of seconds, at the end.
            ("", None) => words.peek().is_none().then_some(Unit::Nanos(NANOS_PER_SECOND))?,
            (joined, _) => unit(joined)?,
        };
        sum.add(number(digits)?, unit)?;
    }
    Some(())
}

/// What follows the `P` of ISO 8601.
fn iso(text: &str, sum: &mut Sum) -> Option<()> {
    let (mut rest, mut is_time) = (text, false);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(['T', 't']).filter(|after| !is_time && !after.is_empty()) {
            (rest, is_time) = (after, true);
            continue;
        }
        let end = rest.find(|letter: char| letter.is_ascii_alphabetic())?;
        let (digits, after) = rest.split_at_checked(end)?;
        let unit = match (after.chars().next()?.to_ascii_uppercase(), is_time) {
            ('Y', false) => Unit::Months(MONTHS_PER_YEAR),
            ('M', false) => Unit::Months(1),
            ('W', false) => Unit::Days(7),
            ('D', false) => Unit::Days(1),
            ('H', true) => Unit::Nanos(3_600 * NANOS_PER_SECOND),
            ('M', true) => Unit::Nanos(60 * NANOS_PER_SECOND),
            ('S', true) => Unit::Nanos(NANOS_PER_SECOND),
            _ => return None,
        };
        sum.add(number(digits)?, unit)?;
        rest = after.get(1..)?;
    }
    Some(())
}

fn unit(word: &str) -> Option<Unit> {
    let months = |years: i128| Unit::Months(years * MONTHS_PER_YEAR);
    let seconds = |seconds: i128| Unit::Nanos(seconds * NANOS_PER_SECOND);
    Some(match word.to_ascii_lowercase().as_str() {
        "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecond" | "microseconds" | "microsecon" => {
            Unit::Nanos(1_000)
        }
        "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecond" | "milliseconds" | "millisecon" => {
            Unit::Nanos(1_000_000)
        }
        "s" | "sec" | "secs" | "second" | "seconds" => seconds(1),
        "m" | "min" | "mins" | "minute" | "minutes" => seconds(60),
        "h" | "hr" | "hrs" | "hour" | "hours" => seconds(3_600),
        "d" | "day" | "days" => Unit::Days(1),
        "w" | "week" | "weeks" => Unit::Days(7),
        "mon" | "mons" | "month" | "months" => Unit::Months(1),
        "y" | "yr" | "yrs" | "year" | "years" => months(1),
        "dec" | "decs" | "decade" | "decades" => months(10),
        "c" | "cent" | "century" | "centuries" => months(100),
        "mil" | "mils" | "millennium" | "millennia" => months(1_000),
        _ => return None,
    })
}

/// A number in parts of [`WHOLE`].
fn number(text: &str) -> Option<i128> {
    let (sign, digits) = signed(text);
    let (whole, places) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && places.is_empty() {
        return None;
    }
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(whole) || !are_digits(places) {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // More places than nanoseconds of a second are cut.
    let places = format!("{:0<PLACES$}", places.get(..PLACES.min(places.len()))?);
    Some(sign * (i128::from(whole) * WHOLE + places.parse::<i128>().ok()?))
}

/// A time of day as nanoseconds: hours and minutes, or with seconds.
fn time(text: &str) -> Option<i128> {
    let (sign, text) = signed(text);
    let mut parts = text.split(':');
    let (hours, minutes) = (parts.next()?, parts.next()?);
    let (hours, minutes): (u32, u32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let seconds = match parts.next() {
        Some(seconds) if !seconds.starts_with(['-', '+']) => number(seconds)?,
        Some(_) => return None,
        None => 0,
    };
    if minutes >= 60 || seconds >= 60 * WHOLE || parts.next().is_some() {
        return None;
    }
    let whole = (i128::from(hours) * 3_600 + i128::from(minutes) * 60) * NANOS_PER_SECOND;
    Some(sign * (whole + seconds * NANOS_PER_SECOND / WHOLE))
}

fn signed(text: &str) -> (i128, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    }
}

impl Sum {
    /// Adds a number of a unit. What is no whole unit goes to the next smaller part: half a month is 15 days, half a day 12 hours;
    /// of a year no part is smaller than a month.
    fn add(&mut self, number: i128, unit: Unit) -> Option<()> {
        match unit {
            Unit::Months(1) => {
                self.months += number / WHOLE;
                self.add(number % WHOLE * DAYS_PER_MONTH, Unit::Days(1))
            }
            Unit::Months(months) => {
                self.months += number.checked_mul(months)? / WHOLE;
                Some(())
            }
            Unit::Days(days) => {
                let number = number.checked_mul(days)?;
                self.days += number / WHOLE;
                self.nanos += number % WHOLE * NANOS_PER_DAY / WHOLE;
                Some(())
            }
            Unit::Nanos(nanos) => {
                self.nanos = self.nanos.checked_add(number.checked_mul(nanos)? / WHOLE)?;
                Some(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_intervals_are_read() {
        let second = 1_000_000_000;
        for (text, months, days, nanos) in [
            ("1 year 2 mons 3 days 04:05:06.5", 14, 3, (4 * 3_600 + 5 * 60 + 6) * second + second / 2),
            ("1 day, 2:03:04", 0, 1, (2 * 3_600 + 3 * 60 + 4) * second),
            ("-1 day, 23:59:59.999999", 0, -1, 86_399 * second + 999_999_000),
            ("-1 days +02:00:00", 0, -1, 7_200 * second),
            ("@ 1 hour 30 mins ago", 0, 0, -5_400 * second),
            ("1d 2h 3us", 0, 1, 7_200 * second + 3_000),
            ("90", 0, 0, 90 * second),
            ("1.5 days", 0, 1, 43_200 * second),
            ("1.5 months", 1, 15, 0),
            ("2.5 years", 30, 0, 0),
            ("1 week", 0, 7, 0),
            ("P1Y2M3DT4H5M6.5S", 14, 3, (4 * 3_600 + 5 * 60 + 6) * second + second / 2),
            ("P-1DT-2H", 0, -1, -7_200 * second),
        ] {
            assert_eq!(interval(text), Some(IntervalMonthDayNano::new(months, days, nanos)), "{text}");
        }
    }

    #[test]
    fn what_is_no_interval_is_refused() {
        for text in [
            "",
            "soon",
            "1 fortnight",
            "1:2:3:4",
            "1:60",
            "1 2 days",
            "P",
            "PT",
            "P1H",
            "P1",
            "1 day ago 2",
            "--1 day",
            "1e5 days",
            "99999999999 days",
            "99999999999999999999 s",
            "é day",
            "1 dé",
        ] {
            assert_eq!(interval(text), None, "{text}");
        }
    }
}
