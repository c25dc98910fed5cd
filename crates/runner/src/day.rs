//! What a day is in a job's time zone, and names made of days.
//!
//! Days partition time: the end of one is the start of the next, also where clocks change at
//! midnight or a date is skipped.

use std::fmt::{self, Write};
use std::ops::Range;

use chrono::format::{Item, StrftimeItems};
use chrono::{DateTime, MappedLocalTime, NaiveDate, NaiveTime, TimeDelta, TimeZone};
use chrono_tz::Tz;
use thiserror::Error;

const MICROS_PER_SECOND: i64 = 1_000_000;

/// The moments of `day` in the time zone `tz`, in microseconds since the epoch: 23 or 25 hours where
/// clocks change, and none for a date that the zone skipped.
pub fn day_bounds(tz: Tz, day: NaiveDate) -> Range<i64> {
    let start = day_start(tz, day);
    let end = day.succ_opt().map_or(i64::MAX, |next| day_start(tz, next));
    start..end.max(start)
}

/// The day that the moment `micros` (microseconds since the epoch) belongs to; `None` outside the
/// calendar's range.
pub fn day_of(tz: Tz, micros: i64) -> Option<NaiveDate> {
    let local = local_date(tz, micros)?;
    // Where clocks go back over midnight, the first minutes of a date come before its start.
    if micros < day_start(tz, local) { local.pred_opt() } else { Some(local) }
}

/// The days of `tz` that hold a moment of `range` (microseconds since the epoch), in order. Empty for
/// an empty range or one outside the calendar.
pub fn days_touched(tz: Tz, range: Range<i64>) -> impl Iterator<Item = NaiveDate> {
    let ends = if range.is_empty() { None } else { day_of(tz, range.start).zip(day_of(tz, range.end - 1)) };
    ends.into_iter()
        .flat_map(|(first, last)| first.iter_days().take_while(move |day| *day <= last))
        .filter(move |day| !day_bounds(tz, *day).is_empty())
}

fn local_date(tz: Tz, micros: i64) -> Option<NaiveDate> {
    DateTime::from_timestamp_micros(micros).map(|utc| utc.with_timezone(&tz).date_naive())
}

/// The moment from which on the local date is `day` or later for good.
fn day_start(tz: Tz, day: NaiveDate) -> i64 {
    let midnight = day.and_time(NaiveTime::MIN);
    match tz.from_local_datetime(&midnight) {
        MappedLocalTime::Single(start) => start.timestamp_micros(),
        MappedLocalTime::Ambiguous(first, second) => {
            let before_second = second.timestamp_micros() - 1;
            let fell_back_a_day = local_date(tz, before_second).is_some_and(|date| date < day);
            if fell_back_a_day { second.timestamp_micros() } else { first.timestamp_micros() }
        }
        MappedLocalTime::None => {
            // Midnight lies in a gap: the day starts when the gap ends. No zone is 26 hours from UTC.
            let around = midnight.and_utc().timestamp();
            let span = TimeDelta::hours(26).num_seconds();
            let (mut before, mut after) = (around - span, around + span);
            while before + 1 < after {
                let middle = before + (after - before) / 2;
                match local_date(tz, middle * MICROS_PER_SECOND) {
                    Some(date) if date < day => before = middle,
                    _ => after = middle,
                }
            }
            after * MICROS_PER_SECOND
        }
    }
}

/// A text with days in it: `SENSOR_{day:%Y%m%d}`; `{day}` alone is `{day:%Y-%m-%d}`. Other braces are
/// text, as globs use them.
#[derive(Debug, Clone, PartialEq)]
pub struct DayTemplate {
    text: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Literal(String),
    Day(Vec<Item<'static>>),
}

/// Why a text is not a [`DayTemplate`]. Ranges are bytes of the text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DayTemplateError {
    /// `{day` without its `}`.
    #[error("`{{day` is not closed: write `{{day:%Y%m%d}}`")]
    Open {
        /// The rest of the text.
        at: Range<usize>,
    },
    /// A format that strftime does not know, or that needs more than a date.
    #[error("`{format}` is not the strftime format of a date: write for example `%Y%m%d`")]
    Format {
        /// The format as written.
        format: String,
        /// Where it stands.
        at: Range<usize>,
    },
}

impl DayTemplateError {
    /// Bytes of the text that are wrong.
    pub fn at(&self) -> Range<usize> {
        match self {
            Self::Open { at } | Self::Format { at, .. } => at.clone(),
        }
    }
}

impl DayTemplate {
    /// Reads a template.
    ///
    /// # Errors
    /// If a `{day` is not closed or its format is not that of a date.
    pub fn parse(text: &str) -> Result<Self, DayTemplateError> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let Some(after) = placeholder(rest) else {
                literal.extend(rest.chars().next());
                at += rest.chars().next().map_or(1, char::len_utf8);
                continue;
            };
            let Some(close) = after.find('}') else {
                return Err(DayTemplateError::Open { at: at..text.len() });
            };
            let body = after.get(..close).unwrap_or_default();
            let start = text.len() - after.len();
            let (format, from) = body.strip_prefix(':').map_or(("%Y-%m-%d", start), |format| (format, start + 1));
            let items = date_items(format)
                .ok_or_else(|| DayTemplateError::Format { format: format.to_owned(), at: from..start + close })?;
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
            }
            parts.push(Part::Day(items));
            at = start + close + 1;
        }
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(Self { text: text.to_owned(), parts })
    }

    /// The template as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a day stands in it.
    pub fn has_day(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Day(_)))
    }

    /// The text for `day`.
    pub fn render(&self, day: NaiveDate) -> String {
        let mut out = String::with_capacity(self.text.len() + 8);
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.push_str(text),
                // Every item was tried on a date when the template was read.
                Part::Day(items) => drop(write!(out, "{}", day.format_with_items(items.iter()))),
            }
        }
        out
    }
}

impl fmt::Display for DayTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What follows `{day`, if `rest` starts with a placeholder.
fn placeholder(rest: &str) -> Option<&str> {
    let after = rest.strip_prefix("{day")?;
    let names_day = after.is_empty() || after.starts_with([':', '}']);
    names_day.then_some(after)
}

fn date_items(format: &str) -> Option<Vec<Item<'static>>> {
    let items = StrftimeItems::new(format).parse_to_owned().ok()?;
    let mut probe = String::new();
    let shown = write!(probe, "{}", NaiveDate::default().format_with_items(items.iter()));
    (shown.is_ok() && !probe.is_empty()).then_some(items)
}

#[cfg(test)]
mod tests {
    use chrono_tz::{America, Europe, Pacific};

    use super::*;

    const HOUR: i64 = 3600 * MICROS_PER_SECOND;

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    fn micros(text: &str) -> i64 {
        DateTime::parse_from_rfc3339(text).unwrap().timestamp_micros()
    }

    fn hours(tz: Tz, day: &str) -> i64 {
        let bounds = day_bounds(tz, date(day));
        assert_eq!((bounds.end - bounds.start) % HOUR, 0);
        (bounds.end - bounds.start) / HOUR
    }

    #[test]
    fn days_of_23_and_25_hours() {
        assert_eq!(hours(Tz::UTC, "2026-03-29"), 24);
        assert_eq!(hours(Europe::Paris, "2026-03-28"), 24);
        assert_eq!(hours(Europe::Paris, "2026-03-29"), 23);
        assert_eq!(hours(Europe::Paris, "2026-10-25"), 25);
        assert_eq!(
            day_bounds(Europe::Paris, date("2026-03-29")),
            micros("2026-03-28T23:00:00Z")..micros("2026-03-29T22:00:00Z")
        );
    }

    #[test]
    fn midnight_in_a_gap() {
        // On 2018-11-04 the clocks of São Paulo went from 00:00 to 01:00.
        let day = date("2018-11-04");
        assert_eq!(hours(America::Sao_Paulo, "2018-11-04"), 23);
        assert_eq!(day_bounds(America::Sao_Paulo, day).start, micros("2018-11-04T03:00:00Z"));
        assert_eq!(day_of(America::Sao_Paulo, micros("2018-11-04T03:00:00Z")), Some(day));
        assert_eq!(day_of(America::Sao_Paulo, micros("2018-11-04T02:59:59Z")), day.pred_opt());
    }

    #[test]
    fn clocks_that_go_back_at_midnight() {
        // On 2018-02-18 at 00:00 back to 23:00 of the 17th, which has 25 hours.
        assert_eq!(hours(America::Sao_Paulo, "2018-02-17"), 25);
        assert_eq!(hours(America::Sao_Paulo, "2018-02-18"), 24);
        assert_eq!(day_bounds(America::Sao_Paulo, date("2018-02-18")).start, micros("2018-02-18T03:00:00Z"));
        // Havana repeats 00:00 to 01:00 inside the same date: the first pass belongs to it.
        assert_eq!(hours(America::Havana, "2026-11-01"), 25);
        // St. John's went from 00:01 back to 23:01: that minute stays with the day before.
        assert_eq!(hours(America::St_Johns, "2010-11-06"), 25);
        assert_eq!(day_of(America::St_Johns, micros("2010-11-07T02:30:30Z")), Some(date("2010-11-06")));
    }

    #[test]
    fn a_skipped_date_is_empty() {
        assert!(day_bounds(Pacific::Apia, date("2011-12-30")).is_empty());
        let range = micros("2011-12-29T12:00:00Z")..micros("2012-01-01T00:00:00Z");
        let days: Vec<_> = days_touched(Pacific::Apia, range).collect();
        assert_eq!(days, [date("2011-12-29"), date("2011-12-31"), date("2012-01-01")]);
    }

    #[test]
    fn days_partition_time() {
        for tz in [Tz::UTC, Europe::Paris, America::Sao_Paulo, America::St_Johns, America::Havana, Pacific::Apia] {
            let mut day = date("2009-12-31");
            while day < date("2019-02-01") {
                let bounds = day_bounds(tz, day);
                let next = day.succ_opt().unwrap();
                assert_eq!(bounds.end, day_bounds(tz, next).start, "{tz} {day}");
                if !bounds.is_empty() {
                    assert_eq!(day_of(tz, bounds.start), Some(day), "{tz} {day}");
                    assert_eq!(day_of(tz, bounds.end - 1), Some(day), "{tz} {day}");
                }
                day = next;
            }
        }
    }

    #[test]
    fn touched_days_cross_the_leap_day() {
        let range = micros("2024-02-28T23:30:00Z")..micros("2024-02-29T23:00:00Z");
        let paris: Vec<_> = days_touched(Europe::Paris, range.clone()).collect();
        assert_eq!(paris, [date("2024-02-29")]);
        let utc: Vec<_> = days_touched(Tz::UTC, range.start..range.end + 1).collect();
        assert_eq!(utc, [date("2024-02-28"), date("2024-02-29")]);
        assert_eq!(days_touched(Tz::UTC, 5..5).count(), 0);
        assert_eq!(days_touched(Tz::UTC, i64::MIN..i64::MAX).count(), 0);
    }

    #[test]
    fn names() {
        let day = date("2024-02-29");
        assert_eq!(DayTemplate::parse("SENSOR_{day:%Y%m%d}").unwrap().render(day), "SENSOR_20240229");
        assert_eq!(DayTemplate::parse("x-{day}").unwrap().render(day), "x-2024-02-29");
        assert_eq!(DayTemplate::parse("é/{a,b}/{daytime}").unwrap().render(day), "é/{a,b}/{daytime}");
        assert_eq!(DayTemplate::parse("{day:%G-W%V}/{day:%j}.csv").unwrap().render(day), "2024-W09/060.csv");
        assert!(!DayTemplate::parse("plain").unwrap().has_day());
        assert_eq!(DayTemplate::parse("é{day:%H}").unwrap_err().at(), 7..9);
        assert_eq!(DayTemplate::parse("a{day:%Y").unwrap_err(), DayTemplateError::Open { at: 1..8 });
        assert!(DayTemplate::parse("a{day:%Q}").is_err());
        assert!(DayTemplate::parse("a{day:}").is_err());
    }
}
