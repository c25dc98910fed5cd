//! Parts of dates and times, as GoogleSQL names them.

use arrow::array::timezone::Tz;
use chrono::{Datelike, Days, Months, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeZone, Timelike, Weekday};
use tidetable_layout::time::LocalOffset;

use crate::times::zones::zone;

const MICROS: i64 = 1_000_000;

/// A part of a date or a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    DayOfWeek,
    DayOfYear,
    /// A week that begins on this day.
    Week(Weekday),
    IsoWeek,
    Month,
    Quarter,
    Year,
    IsoYear,
    Date,
}

impl Part {
    /// # Errors
    /// If there is no such part.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let name = name.to_ascii_uppercase();
        if let Some(day) = name.strip_prefix("WEEK(").and_then(|rest| rest.strip_suffix(')')) {
            return day.trim().parse().map(Self::Week).map_err(|_| format!("{day} is no day of the week"));
        }
        Ok(match name.as_str() {
            "MICROSECOND" => Self::Microsecond,
            "MILLISECOND" => Self::Millisecond,
            "SECOND" => Self::Second,
            "MINUTE" => Self::Minute,
            "HOUR" => Self::Hour,
            "DAY" => Self::Day,
            "DAYOFWEEK" => Self::DayOfWeek,
            "DAYOFYEAR" => Self::DayOfYear,
            "WEEK" => Self::Week(Weekday::Sun),
            "ISOWEEK" => Self::IsoWeek,
            "MONTH" => Self::Month,
            "QUARTER" => Self::Quarter,
            "YEAR" => Self::Year,
            "ISOYEAR" => Self::IsoYear,
            "DATE" => Self::Date,
            _ => return Err(format!("{name} is no part of a date or a time")),
        })
    }

    /// Microseconds of a part of constant length, up to a day.
    pub(crate) fn micros(self) -> Option<i64> {
        Some(match self {
            Self::Microsecond => 1,
            Self::Millisecond => 1_000,
            Self::Second => MICROS,
            Self::Minute => 60 * MICROS,
            Self::Hour => 3_600 * MICROS,
            Self::Day => 86_400 * MICROS,
            _ => return None,
        })
    }
}

/// A zone by name; UTC without one.
///
/// # Errors
/// If there is no such zone.
pub(crate) fn named_zone(name: Option<&str>) -> Result<Tz, String> {
    let name = name.unwrap_or("UTC");
    zone(name).ok_or_else(|| format!("{name} is no time zone"))
}

/// The date and time that the clocks of `zone` show at `micros`.
///
/// # Errors
/// If it is beyond the years 1 to 9999, which GoogleSQL has.
pub(crate) fn local(micros: i64, zone: Tz) -> Result<NaiveDateTime, String> {
    let utc = chrono::DateTime::from_timestamp_micros(micros).ok_or_else(|| beyond(micros))?.naive_utc();
    let local = zone.offset_from_utc_datetime(&utc).fix();
    utc.checked_add_offset(local).filter(|time| (1..=9999).contains(&time.year())).ok_or_else(|| beyond(micros))
}

fn beyond(micros: i64) -> String {
    format!("{micros} microseconds since 1970 are not within the years 1 to 9999")
}

/// The instant of a local time; where clocks are set forward over it, that with the offset before.
///
/// # Errors
/// If it is beyond the years 1 to 9999.
pub(crate) fn instant_of(local: NaiveDateTime, zone: Tz) -> Result<i64, String> {
    let micros = local.and_utc().timestamp_micros();
    let offset = LocalOffset::resolve(&zone, &local).offset().map(i64::from);
    let offset = match offset {
        Some(offset) => offset,
        None => {
            let before = local.checked_sub_days(Days::new(1)).unwrap_or(local);
            i64::from(zone.offset_from_utc_datetime(&before).fix().local_minus_utc())
        }
    };
    micros.checked_sub(offset * MICROS).ok_or_else(|| beyond(micros))
}

/// The value of a part.
///
/// # Errors
/// If the part is no number.
pub(crate) fn extract(time: NaiveDateTime, part: Part) -> Result<i64, String> {
    let date = time.date();
    let micros = i64::from(time.nanosecond() / 1_000);
    Ok(match part {
        Part::Microsecond => micros,
        Part::Millisecond => micros / 1_000,
        Part::Second => i64::from(time.second()),
        Part::Minute => i64::from(time.minute()),
        Part::Hour => i64::from(time.hour()),
        Part::Day => i64::from(date.day()),
        Part::DayOfWeek => i64::from(date.weekday().number_from_sunday()),
        Part::DayOfYear => i64::from(date.ordinal()),
        // Days before the first of the year are of week 0.
        Part::Week(first) => i64::from((date.ordinal0() + 7 - date.weekday().days_since(first)) / 7),
        Part::IsoWeek => i64::from(date.iso_week().week()),
        Part::Month => i64::from(date.month()),
        Part::Quarter => i64::from(date.quarter()),
        Part::Year => i64::from(date.year()),
        Part::IsoYear => i64::from(date.iso_week().year()),
        Part::Date => return Err("DATE is no number".to_owned()),
    })
}

/// The first day of the part that contains `date`.
///
/// # Errors
/// If the part is shorter than a day.
pub(crate) fn truncated_date(date: NaiveDate, part: Part) -> Result<NaiveDate, String> {
    let back = |days: u32| date.checked_sub_days(Days::new(u64::from(days)));
    let first_of = |month: u32| NaiveDate::from_ymd_opt(date.year(), month, 1);
    let start = match part {
        Part::Day => Some(date),
        Part::Week(first) => back(date.weekday().days_since(first)),
        Part::IsoWeek => back(date.weekday().num_days_from_monday()),
        Part::Month => first_of(date.month()),
        Part::Quarter => first_of((date.quarter() - 1) * 3 + 1),
        Part::Year => first_of(1),
        Part::IsoYear => NaiveDate::from_isoywd_opt(date.iso_week().year(), 1, Weekday::Mon),
        part => return Err(format!("a date has no part {part:?} to be cut to")),
    };
    start.ok_or_else(|| format!("{date} is at the end of the calendar"))
}

/// The start of the part that contains `time`.
///
/// # Errors
/// If the part is none that times are cut to.
pub(crate) fn truncated(time: NaiveDateTime, part: Part) -> Result<NaiveDateTime, String> {
    let Some(unit) = part.micros().filter(|_| part != Part::Day) else {
        return Ok(truncated_date(time.date(), part)?.and_time(NaiveTime::MIN));
    };
    let micros = time.and_utc().timestamp_micros();
    let cut = chrono::DateTime::from_timestamp_micros(micros.div_euclid(unit) * unit);
    cut.map(|cut| cut.naive_utc()).ok_or_else(|| beyond(micros))
}

/// `date` moved by `count` parts; a day beyond the end of a month is its last.
///
/// # Errors
/// If the part is none of a date, or the result is beyond the calendar.
pub(crate) fn moved(date: NaiveDate, count: i64, part: Part) -> Result<NaiveDate, String> {
    let days = match part {
        Part::Day => Some(1),
        Part::Week(_) => Some(7),
        _ => None,
    };
    let months = match part {
        Part::Month => 1,
        Part::Quarter => 3,
        Part::Year => 12,
        _ if days.is_some() => 0,
        part => return Err(format!("a date is not moved by {part:?}: use DAY, WEEK, MONTH, QUARTER or YEAR")),
    };
    let moved = match days {
        Some(days) => {
            let days = count.checked_mul(days).map(|days| (days, Days::new(days.unsigned_abs())));
            days.and_then(
                |(count, days)| {
                    if count < 0 { date.checked_sub_days(days) } else { date.checked_add_days(days) }
                },
            )
        }
        None => {
            let months = count.checked_mul(months);
            let span = months.and_then(|months| u32::try_from(months.unsigned_abs()).ok()).map(Months::new);
            span.and_then(|span| if count < 0 { date.checked_sub_months(span) } else { date.checked_add_months(span) })
        }
    };
    let moved = moved.filter(|date| (1..=9999).contains(&date.year()));
    moved.ok_or_else(|| format!("{date} moved by {count} is not within the years 1 to 9999"))
}

/// Boundaries of a part between two dates.
///
/// # Errors
/// If the part is none of a date.
pub(crate) fn boundaries(end: NaiveDate, start: NaiveDate, part: Part) -> Result<i64, String> {
    let months = |date: NaiveDate| i64::from(date.year()) * 12 + i64::from(date.month0());
    Ok(match part {
        Part::Day => end.signed_duration_since(start).num_days(),
        Part::Week(_) | Part::IsoWeek => {
            truncated_date(end, part)?.signed_duration_since(truncated_date(start, part)?).num_days() / 7
        }
        Part::Month => months(end) - months(start),
        Part::Quarter => months(end).div_euclid(3) - months(start).div_euclid(3),
        Part::Year => i64::from(end.year()) - i64::from(start.year()),
        Part::IsoYear => i64::from(end.iso_week().year()) - i64::from(start.iso_week().year()),
        part => return Err(format!("dates are not counted in {part:?}")),
    })
}
