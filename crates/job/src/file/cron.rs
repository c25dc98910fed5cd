//! Parses a `schedule`: five crontab fields.

use std::ops::Range;

/// A crontab field and its allowed values.
struct CronField {
    name: &'static str,
    values: Range<u32>,
    names: &'static [&'static str],
}

const FIELDS: [CronField; 5] = [
    CronField { name: "minute", values: 0..60, names: &[] },
    CronField { name: "hour", values: 0..24, names: &[] },
    CronField { name: "day of month", values: 1..32, names: &[] },
    CronField {
        name: "month",
        values: 1..13,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    CronField { name: "day of week", values: 0..8, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];

/// What is wrong with a schedule, with the byte range.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CronError {
    /// `found` fields instead of five.
    Count { found: usize },
    /// A field whose text is not of the syntax, or has a value that is not between `low` and `high`.
    Field { field: &'static str, text: String, low: u32, high: u32, at: Range<usize> },
}

/// Checks the five fields of `schedule`, each by itself, so that all mistakes are told at once.
pub(crate) fn check(schedule: &str) -> Result<(), Vec<CronError>> {
    let words = words(schedule);
    if words.len() != FIELDS.len() {
        return Err(vec![CronError::Count { found: words.len() }]);
    }
    let wrong: Vec<_> = FIELDS
        .iter()
        .zip(words)
        .filter(|(field, (_, text))| !text.split(',').all(|item| field.holds(item)))
        .map(|(field, (at, text))| CronError::Field {
            field: field.name,
            text: text.to_owned(),
            low: field.values.start,
            high: field.values.end - 1,
            at: at..at + text.len(),
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// A parsed schedule, independent of a time zone: which minutes of which days it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cron {
    /// One bit for each value of a field.
    fields: [u64; 5],
    /// Whether a field starts with `*`.
    stars: [bool; 5],
}

impl Cron {
    /// Parses five crontab fields; `None` if they are invalid.
    pub fn parse(schedule: &str) -> Option<Self> {
        check(schedule).ok()?;
        let mut cron = Self { fields: [0; 5], stars: [false; 5] };
        for (at, (field, (_, text))) in FIELDS.iter().zip(words(schedule)).enumerate() {
            *cron.fields.get_mut(at)? =
                text.split(',').filter_map(|item| field.bits(item)).fold(0, |all, bits| all | bits);
            *cron.stars.get_mut(at)? = text.starts_with('*');
        }
        // Sunday is 0 and 7.
        let [.., weekdays] = &mut cron.fields;
        *weekdays = (*weekdays | *weekdays >> 7) & 0x7F;
        Some(cron)
    }

    fn allowed(&self, field: usize) -> impl Iterator<Item = u32> + use<> {
        let bits = self.fields.get(field).copied().unwrap_or(0);
        (0..64).filter(move |bit| bits >> bit & 1 == 1)
    }

    /// The minutes of the hour at which it is due, ascending, 0 to 59.
    pub fn minutes(&self) -> impl Iterator<Item = u32> + use<> {
        self.allowed(0)
    }

    /// The hours of the day at which it is due, ascending, 0 to 23.
    pub fn hours(&self) -> impl Iterator<Item = u32> + use<> {
        self.allowed(1)
    }

    /// The days of the month on which it is due, ascending, from 1.
    pub fn days(&self) -> impl Iterator<Item = u32> + use<> {
        self.allowed(2)
    }

    /// The months of the year in which it is due, ascending, from 1.
    pub fn months(&self) -> impl Iterator<Item = u32> + use<> {
        self.allowed(3)
    }

    /// The days of the week on which it is due, ascending, 0 for Sunday.
    pub fn weekdays(&self) -> impl Iterator<Item = u32> + use<> {
        self.allowed(4)
    }

    /// Whether it is periodic (every few minutes, every hour) instead of at times of day.
    pub fn goes_round(&self) -> bool {
        let [minute, hour, ..] = self.stars;
        minute || hour
    }

    /// Whether a day matches by day of month or by weekday: cron's rule if both fields are given.
    pub fn either_day(&self) -> bool {
        let [_, _, day, _, weekday] = self.stars;
        !day && !weekday
    }

    /// Whether it matches this month, day and weekday (0 for Sunday).
    pub fn takes_day(&self, month: u32, day: u32, weekday: u32) -> bool {
        let [_, _, days, months, weekdays] = self.fields;
        let (by_day, by_weekday) = (has_bit(days, day), has_bit(weekdays, weekday));
        has_bit(months, month) && if self.either_day() { by_day || by_weekday } else { by_day && by_weekday }
    }
}

/// Whether a set of small numbers, a bit each, has this one.
fn has_bit(set: u64, number: u32) -> bool {
    set >> number & 1 == 1
}

impl CronField {
    /// The bits of `*`, `7` or `1-5`, each also with a step `/2`.
    fn bits(&self, item: &str) -> Option<u64> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, number(step)?),
            None => (item, 1),
        };
        let last = self.values.end - 1;
        let (first, last) = match (range, range.split_once('-')) {
            ("*", _) => (self.values.start, last),
            (_, Some((first, last))) => (self.value(first)?, self.value(last)?),
            // A step from a value up to the last.
            (_, None) if item.contains('/') => (self.value(range)?, last),
            (_, None) => (self.value(range)?, self.value(range)?),
        };
        let values = (first..=last).step_by(usize::try_from(step).ok()?.max(1));
        Some(values.fold(0, |bits, value| bits | 1 << value))
    }

    /// Whether `item` is `*`, `7` or `1-5`, each also with a step `/2`.
    fn holds(&self, item: &str) -> bool {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (item, None),
        };
        let step_fits = step.is_none_or(|step| number(step).is_some_and(|step| step > 0 && step < self.values.end));
        let range_fits = range == "*"
            || match range.split_once('-') {
                Some((first, last)) => {
                    self.value(first).zip(self.value(last)).is_some_and(|(first, last)| first <= last)
                }
                None => self.value(range).is_some(),
            };
        step_fits && range_fits
    }

    fn value(&self, text: &str) -> Option<u32> {
        let lower = text.to_ascii_lowercase();
        let by_name = self.names.iter().zip(self.values.clone()).find(|(name, _)| **name == lower);
        by_name.map(|(_, value)| value).or_else(|| number(text).filter(|value| self.values.contains(value)))
    }
}

fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// The words of `text`, each with its byte offset.
fn words(text: &str) -> Vec<(usize, &str)> {
    text.split_whitespace().map(|word| (word.as_ptr().addr() - text.as_ptr().addr(), word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules() {
        for good in ["15 1 * * *", "*/5 0-6,22-23 1,15 jan-mar mon-fri", "0 0 31 12 7", "0-30/10 * * * Sun"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        assert_eq!(check("15 1 * *"), Err(vec![CronError::Count { found: 4 }]));
        let both = check(" 60 1 * * 8").unwrap_err();
        assert_eq!(both.len(), 2);
        assert_eq!(both[0], CronError::Field { field: "minute", text: "60".to_owned(), low: 0, high: 59, at: 1..3 });
        for bad in ["a * * * *", "*/0 * * * *", "5-1 * * * *", "1, * * * *", "* * 0 * *", "* * * foo *", "+1 * * * *"] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
