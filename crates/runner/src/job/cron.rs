//! The syntax of a `schedule`: five crontab fields.

use std::ops::Range;

/// A crontab field and what it may hold.
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

/// What is wrong with a schedule, and which bytes of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CronError {
    /// Not five fields, but `found`.
    Count { found: usize },
    /// A field that holds something else.
    Field { field: &'static str, text: String, low: u32, high: u32, at: Range<usize> },
}

/// Checks the five fields of `schedule`.
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

impl CronField {
    /// `*`, `7`, `1-5`, and each of them `/2`.
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

/// The words of `text` and where each starts.
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
