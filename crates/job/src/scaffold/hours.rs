//! Hours of days as markets of power write them: 1 to 24 by their end, 0 to 23 by their start, `3A` and `3B` for the hour that a clock change repeats,
//! or 1 to 25 counted from midnight.

use arrow::array::{Array, StringArray};

use crate::scaffold::identifier::identifier;

/// How the hours of a day with a clock change are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbering {
    /// By the clock: 0 to 24.
    OfClock,
    /// By the clock, with a letter behind the two that have one number: `3A` and `3B`.
    WithLetters,
    /// By the hours since midnight: a day may have 25.
    SinceMidnight,
}

/// The hours of a column.
#[derive(Debug)]
pub(crate) struct Hours {
    pub numbering: Numbering,
    /// The number by row; `None` for null.
    pub numbers: Vec<Option<i64>>,
    /// The number of the first hour of a day: 0 where hours are known by their start, 1 by their end.
    first: i64,
    /// Whether it is the second of its number, by row.
    is_second: Vec<bool>,
}

/// SQL for [`Hours::local_and_behind`].
pub(crate) struct HourSql {
    pub local: String,
    pub behind: String,
}

impl Hours {
    /// Numbers from 0 to 25, of which several are beyond 12.
    pub fn of_numbers(numbers: Vec<Option<i64>>) -> Option<Self> {
        let most = numbers.iter().flatten().copied().max()?;
        let least = numbers.iter().flatten().copied().min()?;
        let numbering = match (least, most) {
            (0.., 13..=24) => Numbering::OfClock,
            (1.., 25) => Numbering::SinceMidnight,
            _ => return None,
        };
        let is_second = vec![false; numbers.len()];
        Some(Self { numbering, numbers, first: least.min(1), is_second })
    }

    /// Text of such numbers, of which some have a letter behind: `02`, `3A`, `3B`.
    pub fn of_text(text: &StringArray) -> Option<Self> {
        let (mut numbers, mut is_second) = (Vec::with_capacity(text.len()), Vec::with_capacity(text.len()));
        let mut has_letters = false;
        for value in text {
            let Some(value) = value.map(str::trim) else {
                numbers.push(None);
                is_second.push(false);
                continue;
            };
            let digits = value.trim_end_matches(['A', 'B', 'a', 'b']);
            let is_number = (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
            if !is_number || value.len() > digits.len() + 1 {
                return None;
            }
            numbers.push(Some(digits.parse().ok()?));
            is_second.push(value.ends_with(['B', 'b']));
            has_letters |= value.len() > digits.len();
        }

        let hours = Self { is_second, ..Self::of_numbers(numbers)? };
        match (has_letters, hours.numbering) {
            (false, _) => Some(hours),
            (true, Numbering::SinceMidnight) => None,
            (true, _) => Some(Self { numbering: Numbering::WithLetters, ..hours }),
        }
    }

    /// The local hour at which a row's hour starts, the first time if the clocks show it twice, or 0 where hours are counted
    /// from midnight; and the hours from there to the time of the row.
    pub fn local_and_behind(&self, row: usize) -> Option<(i64, i64)> {
        let number = self.numbers.get(row).copied().flatten()?;
        let is_second = self.is_second.get(row).copied().unwrap_or_default();
        Some(match self.numbering {
            Numbering::SinceMidnight => (0, number),
            _ => (number - self.first, self.first + i64::from(is_second)),
        })
    }

    /// As [`Self::local_and_behind`], for the column of this name.
    pub fn sql(&self, name: &str) -> HourSql {
        let number = self.number_sql(name);
        match self.numbering {
            Numbering::SinceMidnight => HourSql { local: "0".to_owned(), behind: number },
            _ => {
                let is_second = format!("upper(right(trim({}), 1)) = 'B'", identifier(name));
                let (first, second) = (self.first, self.first + 1);
                HourSql {
                    local: format!("({number} - {first})"),
                    behind: format!("case when {is_second} then {second} else {first} end"),
                }
            }
        }
    }

    /// SQL for the number.
    pub fn number_sql(&self, name: &str) -> String {
        let name = identifier(name);
        match self.numbering {
            Numbering::WithLetters => format!("cast(regexp_replace({name}, '[^0-9]', '', 'g') as bigint)"),
            _ => format!("cast({name} as bigint)"),
        }
    }

    /// What is said where no zone is known and the numbers need one.
    pub fn needs_zone(&self, name: &str) -> Option<String> {
        let what = match self.numbering {
            Numbering::OfClock => return None,
            Numbering::WithLetters => {
                "an hour such as 3B is the second of a clock change, and falls on 3A without a zone"
            }
            Numbering::SinceMidnight => {
                "hour 25 is that of a day with a clock change, and falls on the next day without a zone"
            }
        };
        Some(format!("{name}: {what}; --timezone, such as Europe/Berlin, tells them apart."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> Option<(Numbering, Vec<(i64, i64)>)> {
        let hours = Hours::of_text(&StringArray::from(values.to_vec()))?;
        Some((hours.numbering, (0..values.len()).filter_map(|row| hours.local_and_behind(row)).collect()))
    }

    #[test]
    fn numbers_of_hours() {
        assert_eq!(of(&["01", "24"]), Some((Numbering::OfClock, vec![(0, 1), (23, 1)])));
        let letters = of(&["2", "3A", "3B", "4", "24"]);
        assert_eq!(letters, Some((Numbering::WithLetters, vec![(1, 1), (2, 1), (2, 2), (3, 1), (23, 1)])));
        let starts = of(&["0", "2A", "2B", "23"]);
        assert_eq!(starts, Some((Numbering::WithLetters, vec![(0, 0), (2, 0), (2, 1), (23, 0)])));
        assert_eq!(of(&["01", "25"]), Some((Numbering::SinceMidnight, vec![(0, 1), (0, 25)])));
        for other in
            [vec!["1", "26"], vec!["1", "12"], vec!["3AB", "24"], vec!["3C", "24"], vec!["3A", "25"], vec!["A", "24"]]
        {
            assert_eq!(of(&other), None, "{other:?}");
        }
    }
}
