//! Times that are whole numbers by their digits: 20240114, 2024011422, 20240114220000.

use chrono::NaiveDate;
use tidetable_layout::time::SECOND;
use tidetable_source::sample::named_so;

use crate::scaffold::facts::{Column, Facts};
use crate::scaffold::identifier::identifier;

/// Years that digits are taken for.
const YEARS: std::ops::Range<i64> = 1990..2100;
/// The form with as many digits as seconds since 1970 have, and two digits for the year.
const SHORT_YEAR: &str = "%y%m%d%H%M";

/// Digits of times from the day on: how many parts of two digits follow the day, and what is added to the year.
struct Form {
    digits: u32,
    format: &'static str,
    parts: u32,
    century: i64,
}

const FORMS: [Form; 5] = [
    Form { digits: 14, format: "%Y%m%d%H%M%S", parts: 3, century: 0 },
    Form { digits: 12, format: "%Y%m%d%H%M", parts: 2, century: 0 },
    Form { digits: 10, format: "%Y%m%d%H", parts: 1, century: 0 },
    Form { digits: 10, format: SHORT_YEAR, parts: 2, century: 2000 },
    Form { digits: 8, format: "%Y%m%d", parts: 0, century: 0 },
];

/// A time that the digits of a column are.
#[derive(Debug)]
pub(crate) struct DigitTime {
    pub at: usize,
    /// SQL for the seconds since the epoch, without a zone.
    pub seconds: String,
    /// Microseconds since the epoch by row.
    pub micros: Vec<Option<i64>>,
    pub is_day: bool,
    /// What is read how, for the user.
    pub told: String,
}

impl DigitTime {
    /// The finest of the columns whose whole numbers are times by their digits in all rows; of equals one that is named like
    /// times.
    pub fn find(facts: &Facts) -> Option<Self> {
        let columns = facts.columns.iter().enumerate().filter(|(_, column)| {
            let is_full = column.nulls == 0 && column.distinct > 1;
            is_full && column.is_natural()
        });
        let found = columns.filter_map(|(at, column)| {
            let place = FORMS.iter().position(|form| form.fits(column))?;
            Some((place, !named_so(&column.name), at, column))
        });
        let (place, _, at, column) = found.min_by_key(|(place, is_unnamed, at, _)| (*place, *is_unnamed, *at))?;
        FORMS.get(place).map(|form| form.time(at, column))
    }
}

impl Form {
    /// Whether all values are times in this form, and not as steady in seconds since 1970.
    fn fits(&self, column: &Column) -> bool {
        let mut values = column.whole.iter().flatten();
        let are_times = values.all(|value| self.micros(*value).is_some());
        are_times && (self.format != SHORT_YEAR || !are_steady(&column.whole))
    }

    /// Microseconds since the epoch of a number in this form.
    fn micros(&self, value: i64) -> Option<i64> {
        if value.checked_ilog10()? + 1 != self.digits {
            return None;
        }
        let day = value / 100_i64.pow(self.parts);
        let year = day / 10_000 + self.century;
        let [month, of_month] = [day / 100 % 100, day % 100].map(|part| u32::try_from(part).ok());
        let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month?, of_month?)?;

        let part =
            |number: u32| if number < self.parts { value / 100_i64.pow(self.parts - 1 - number) % 100 } else { 0 };
        let (hour, minute, second) = (part(0), part(1), part(2));
        let of_day = hour * 3600 + minute * 60 + second;
        let is_clock = minute < 60 && second < 60 && of_day <= 24 * 3600;
        let start = date.and_hms_opt(0, 0, 0)?.and_utc().timestamp();
        (YEARS.contains(&year) && is_clock).then_some((start + of_day) * SECOND)
    }

    fn time(&self, at: usize, column: &Column) -> DigitTime {
        let name = identifier(&column.name);
        let number = format!("cast({name} as bigint)");
        let day = match self.parts {
            0 => number.clone(),
            parts => format!("{number} / {}", 100_i64.pow(parts)),
        };
        let year =
            if self.century > 0 { format!("{day} / 10000 + {}", self.century) } else { format!("{day} / 10000") };
        let date = format!("make_date(cast({year} as int), cast({day} / 100 % 100 as int), cast({day} % 100 as int))");
        let mut seconds = format!("cast(date_part('epoch', {date}) as bigint)");
        for (number_of_part, size) in (0..self.parts).zip([3600, 60, 1]) {
            let below = 100_i64.pow(self.parts - 1 - number_of_part);
            seconds.push_str(&format!(" + {size} * ({number} / {below} % 100)"));
        }

        let first = column.whole.iter().flatten().next().copied().unwrap_or_default();
        let other = if self.digits == 10 { ", not as seconds since 1970" } else { "" };
        let told = format!(
            "{}: numbers such as {first} are read by their digits as times ({}){other}; leave them out of `derive` if they are \
             no times.",
            column.name, self.format
        );
        let micros = column.whole.iter().map(|value| value.and_then(|value| self.micros(value))).collect();
        DigitTime { at, seconds, micros, is_day: self.parts == 0, told }
    }
}

/// Whether numbers are as steady as seconds: all of one hour by their digits, or with one step between them.
fn are_steady(whole: &[Option<i64>]) -> bool {
    let mut numbers: Vec<i64> = whole.iter().flatten().copied().collect();
    numbers.sort_unstable();
    numbers.dedup();
    let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { return false };
    let steps = numbers.windows(2).map(|pair| pair[1] - pair[0]);
    first / 100 == last / 100 || steps.clone().min() == steps.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_times() {
        let of = |value: i64| {
            let form = FORMS.iter().find(|form| form.micros(value).is_some())?;
            Some((form.format, form.micros(value)? / SECOND))
        };
        assert_eq!(of(2_024_011_422), Some(("%Y%m%d%H", 1_705_269_600)));
        assert_eq!(of(2_401_142_200), Some((SHORT_YEAR, 1_705_269_600)));
        assert_eq!(of(20_240_114_220_000), Some(("%Y%m%d%H%M%S", 1_705_269_600)));
        assert_eq!(of(2_024_011_424), Some(("%Y%m%d%H", 1_705_276_800)));
        assert_eq!(of(20_240_114), Some(("%Y%m%d", 1_705_190_400)));
        for other in [0, -20_240_114, 20_241_301, 20_240_230, 2_024_011_425, 1_705_269_660, 18_180_101] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn steady_seconds_are_no_digits() {
        let steady = |numbers: &[i64]| are_steady(&numbers.iter().copied().map(Some).collect::<Vec<_>>());
        assert!(steady(&[1_709_251_200, 1_709_251_201, 1_709_251_259]));
        assert!(steady(&[1_709_251_200, 1_709_254_800, 1_709_258_400]));
        assert!(!steady(&[2_401_142_200, 2_401_142_230, 2_401_142_300]));
    }
}
