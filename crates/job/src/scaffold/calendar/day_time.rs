//! Times of day in a column of their own, and the SQL that reads them.

use arrow::array::{Array, StringArray};
use tidetable_layout::time::SECOND;

use crate::scaffold::identifier::identifier;

/// The times of day of a column.
#[derive(Debug)]
pub(crate) struct DayTime {
    /// Microseconds since midnight by row, up to 24:00; `None` for null.
    pub micros: Vec<Option<i64>>,
    /// SQL for the seconds since midnight, or the microseconds if `has_fraction`.
    pub sql: String,
    pub has_fraction: bool,
}

/// The form of a time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    parts: usize,
    has_fraction: bool,
    /// Whether hours go from 1 to 12, with AM or PM behind.
    has_half: bool,
    /// What separates the parts. Two parts with a point between them are a number.
    separator: char,
}

const FORMS: [Form; 6] = [
    Form { parts: 2, has_fraction: false, has_half: false, separator: ':' },
    Form { parts: 3, has_fraction: false, has_half: false, separator: ':' },
    Form { parts: 3, has_fraction: true, has_half: false, separator: ':' },
    Form { parts: 2, has_fraction: false, has_half: true, separator: ':' },
    Form { parts: 3, has_fraction: false, has_half: true, separator: ':' },
    Form { parts: 3, has_fraction: false, has_half: false, separator: '.' },
];
const SECONDS_OF_DAY: i64 = 24 * 3600;

impl DayTime {
    /// Text that is a time of day in one form in all rows.
    pub fn of_text(name: &str, text: &StringArray) -> Option<Self> {
        FORMS.into_iter().find_map(|form| {
            let mut micros = Vec::with_capacity(text.len());
            for value in text {
                micros.push(match value {
                    None => None,
                    Some(value) => Some(form.micros(value.trim())?),
                });
            }
            let has_any = micros.iter().any(Option::is_some);
            // `12:00a` has no M behind.
            let has_m = text.iter().flatten().any(|value| value.contains(['m', 'M']));
            let afternoon = if has_m { "[pP][^0-9a-zA-Z]*[mM]" } else { "[pP]" };
            has_any.then(|| Self { micros, sql: form.sql(name, afternoon), has_fraction: form.has_fraction })
        })
    }

    /// Text of four or six digits in all rows, which are hours and minutes, or also seconds: 0930, 093000.
    pub fn of_digit_text(name: &str, text: &StringArray) -> Option<Self> {
        let length = text.iter().flatten().next()?.trim().len();
        let with_seconds = length == 6;
        if !with_seconds && length != 4 {
            return None;
        }

        let mut micros = Vec::with_capacity(text.len());
        for value in text {
            let digits = value.map(str::trim);
            micros.push(match digits {
                None => None,
                Some(digits) if digits.len() != length || !digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                    return None;
                }
                Some(digits) => Some(seconds_of_digits(digits.parse().ok()?, with_seconds)? * SECOND),
            });
        }

        let number = format!("cast({} as bigint)", identifier(name));
        Some(Self { micros, sql: seconds_sql(&number, with_seconds), has_fraction: false })
    }

    /// Numbers whose digits are hours and minutes, or also seconds: 930, 93000.
    pub fn of_digits(name: &str, values: &[Option<i64>]) -> Option<Self> {
        let most = values.iter().flatten().copied().max()?;
        let with_seconds = most > 2400;
        // Hours alone are less than 25.
        if most < 100 {
            return None;
        }

        let mut micros = Vec::with_capacity(values.len());
        for value in values {
            micros.push(match value {
                None => None,
                Some(value) => Some(seconds_of_digits(*value, with_seconds)? * SECOND),
            });
        }

        Some(Self { micros, sql: seconds_sql(&identifier(name), with_seconds), has_fraction: false })
    }
}

impl Form {
    /// Microseconds since midnight of a value in this form.
    fn micros(self, value: &str) -> Option<i64> {
        let (clock, half) = match self.has_half {
            true => split_half(value).map(|(clock, half)| (clock, Some(half)))?,
            false => (value, None),
        };
        let found: Vec<&str> = clock.split(self.separator).collect();
        if found.len() != self.parts {
            return None;
        }

        let mut hours = short_number(found.first()?, 25)?;
        if let Some(half) = half {
            hours = (1..=12).contains(&hours).then_some(hours % 12 + half)?;
        }
        let minutes = hours * 60 + short_number(found.get(1)?, 60)?;
        let (seconds, fraction) = match found.get(2) {
            None => (0, 0),
            Some(text) => match text.split_once('.').filter(|_| self.has_fraction) {
                Some((seconds, fraction)) => (short_number(seconds, 60)?, micros_of(fraction)?),
                None => (short_number(text, 60)?, 0),
            },
        };

        let total = (minutes * 60 + seconds) * SECOND + fraction;
        (total <= SECONDS_OF_DAY * SECOND).then_some(total)
    }

    /// SQL for [`DayTime::sql`] of the column `name`, whose hours from noon on match the pattern `afternoon`.
    fn sql(self, name: &str, afternoon: &str) -> String {
        let name = identifier(name);
        if self.has_half {
            let hours = self.part(&name, 1);
            let half = format!("case when regexp_like({name}, '{afternoon}') then 12 else 0 end");
            let mut sql = format!("3600 * (cast({hours} as bigint) % 12 + {half})");
            for (number, size) in (2..=self.parts).zip(["60 * ", ""]) {
                // A trailing AM or PM is not of the number.
                let part = self.part(&name, number);
                sql.push_str(&format!(" + {size}cast(regexp_replace({part}, '[^0-9].*', '') as bigint)"));
            }
            return sql;
        }

        let kind = if self.has_fraction { "double" } else { "bigint" };
        let parts = (1..=self.parts).zip(["3600 * ", "60 * ", ""]);
        let terms = parts.map(|(number, size)| format!("{size}cast({} as {kind})", self.part(&name, number)));
        let sum = terms.collect::<Vec<_>>().join(" + ");
        if self.has_fraction { format!("cast(round(1000000 * ({sum})) as bigint)") } else { sum }
    }

    /// SQL for a part of the text of a column, counted from 1.
    fn part(self, name: &str, number: usize) -> String {
        format!("split_part({name}, '{}', {number})", self.separator)
    }
}

/// Splits AM or PM, also written `p. m.` or `p`, off a time of day, as the hours to add.
fn split_half(value: &str) -> Option<(&str, i64)> {
    let is_sign = |letter: char| letter == '.' || letter.is_whitespace();
    let start = value.trim_end_matches(is_sign);
    let start = start.strip_suffix(['m', 'M']).unwrap_or(start).trim_end_matches(is_sign);
    let half = match start.chars().next_back()? {
        'a' | 'A' => 0,
        'p' | 'P' => 12,
        _ => return None,
    };
    Some((start.get(..start.len() - 1)?.trim_end(), half))
}

/// A number of one or two digits that is less than `most`.
fn short_number(text: &str, most: i64) -> Option<i64> {
    let is_short = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse::<i64>().ok().filter(|value| is_short && *value < most)
}

/// The seconds since midnight of the digits of hours and minutes, and of seconds if they have them.
fn seconds_of_digits(digits: i64, with_seconds: bool) -> Option<i64> {
    let (hours, minutes, seconds) = match with_seconds {
        true => (digits / 10_000, digits / 100 % 100, digits % 100),
        false => (digits / 100, digits % 100, 0),
    };
    let total = hours * 3600 + minutes * 60 + seconds;
    (minutes < 60 && seconds < 60 && total <= SECONDS_OF_DAY).then_some(total)
}

/// SQL for the seconds since midnight of a number with these digits.
fn seconds_sql(number: &str, with_seconds: bool) -> String {
    match with_seconds {
        true => format!("3600 * ({number} / 10000) + 60 * ({number} / 100 % 100) + {number} % 100"),
        false => format!("3600 * ({number} / 100) + 60 * ({number} % 100)"),
    }
}

fn micros_of(fraction: &str) -> Option<i64> {
    let is_digits = (1..=6).contains(&fraction.len()) && fraction.bytes().all(|byte| byte.is_ascii_digit());
    format!("{fraction:0<6}").parse().ok().filter(|_| is_digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(values: &[&str]) -> Option<Vec<i64>> {
        let found = DayTime::of_text("clock", &StringArray::from(values.to_vec()))?;
        Some(found.micros.into_iter().flatten().collect())
    }

    #[test]
    fn times_of_day() {
        let hours = |hours: f64| (hours * 3600e6) as i64;
        assert_eq!(micros(&["01:00", "24:00"]), Some(vec![hours(1.0), hours(24.0)]));
        assert_eq!(micros(&["9:30:00.250", "9:30:01"]), Some(vec![hours(9.5) + 250_000, hours(9.5) + 1_000_000]));
        assert_eq!(micros(&["12:00 AM", "1:30 pm"]), Some(vec![0, hours(13.5)]));
        assert_eq!(micros(&["12:00 a. m.", "1:30\u{a0}p.\u{a0}m."]), Some(vec![0, hours(13.5)]));
        assert_eq!(micros(&["12:00a", " 1:30p"]), Some(vec![0, hours(13.5)]));
        let davis = DayTime::of_text("Time", &StringArray::from(vec!["12:00a"])).unwrap();
        assert!(davis.sql.contains("'[pP]'"), "{}", davis.sql);
        assert_eq!(micros(&["12:00m"]), None);
        assert_eq!(micros(&["18.00.00", "19.30.00"]), Some(vec![hours(18.0), hours(19.5)]));
        assert_eq!(micros(&["18.00.60"]), None);
        assert_eq!(micros(&["24:01"]), None);
        assert_eq!(micros(&["13:00 PM"]), None);
        let digits = |values: &[i64]| {
            let values: Vec<Option<i64>> = values.iter().copied().map(Some).collect();
            DayTime::of_digits("time", &values).map(|found| found.micros.into_iter().flatten().collect::<Vec<_>>())
        };
        assert_eq!(digits(&[0, 93_000, 235_959]), Some(vec![0, hours(9.5), hours(24.0) - 1_000_000]));
        assert_eq!(digits(&[30, 930, 2400]), Some(vec![hours(0.5), hours(9.5), hours(24.0)]));
        assert_eq!(digits(&[1, 24]), None);
        assert_eq!(digits(&[93_060]), None);
        let written = |values: &[&str]| {
            let found = DayTime::of_digit_text("time", &StringArray::from(values.to_vec()))?;
            Some(found.micros.into_iter().flatten().collect::<Vec<_>>())
        };
        assert_eq!(written(&["000000", "093000"]), Some(vec![0, hours(9.5)]));
        assert_eq!(written(&["0030", "2400"]), Some(vec![hours(0.5), hours(24.0)]));
        assert_eq!(written(&["0030", "093000"]), None);
    }
}
