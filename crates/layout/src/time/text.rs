//! The text of times and dates: fixed-width digits, RFC 3339 and ISO 8601.

use chrono::{DateTime, NaiveDate};

use crate::time::calendar::{Calendar, HOUR, MINUTE, SECOND};

/// Appends the last `width` digits of `value`, zero-padded.
pub(crate) fn push_digits(value: u64, width: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + width, b'0');
    let mut rest = value;
    for byte in out.iter_mut().skip(start).rev() {
        if rest == 0 {
            break;
        }
        *byte = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

/// Reads a number of ASCII digits and nothing else.
pub(crate) fn read_digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { value.checked_mul(10)?.checked_add(u64::from(digit)) }
    })
}

/// Appends a time as RFC 3339 in UTC, with as many of 0, 3 or 6 digits of a second as it needs.
pub(crate) fn write_rfc3339(time_us: i64, calendar: &mut Calendar, out: &mut Vec<u8>) {
    let civil = calendar.at(time_us);
    write_date(civil.year, civil.month, civil.day, out);
    out.push(b'T');
    for (at, value) in
        [civil.micros / HOUR, civil.micros / MINUTE % 60, civil.micros / SECOND % 60].into_iter().enumerate()
    {
        if at > 0 {
            out.push(b':');
        }
        push_digits(value.cast_unsigned(), 2, out);
    }
    let micros = (civil.micros % SECOND).cast_unsigned();
    if micros != 0 {
        out.push(b'.');
        if micros.is_multiple_of(1000) { push_digits(micros / 1000, 3, out) } else { push_digits(micros, 6, out) }
    }
    out.push(b'Z');
}

/// Appends a date in ISO 8601, such as `2021-03-05`.
pub(crate) fn write_date(year: i64, month: u32, day: u32, out: &mut Vec<u8>) {
    match u64::try_from(year) {
        Ok(year) if year <= 9999 => push_digits(year, 4, out),
        // ISO 8601 requires a sign beyond four digits.
        _ => out.extend_from_slice(format!("{year:+05}").as_bytes()),
    }
    out.push(b'-');
    push_digits(month.into(), 2, out);
    out.push(b'-');
    push_digits(day.into(), 2, out);
}

/// Reads a time in RFC 3339, as [`write_rfc3339`] writes it, in microseconds since the epoch.
pub(crate) fn read_rfc3339(text: &str) -> Option<i64> {
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.timestamp_micros())
}

/// Reads what [`write_date`] writes, as a day since the epoch.
pub(crate) fn read_date(text: &str) -> Option<i64> {
    let date: NaiveDate = text.parse().ok()?;
    Some(date.signed_duration_since(NaiveDate::default()).num_days())
}
