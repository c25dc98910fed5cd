//! Intervals and durations as text, as PostgreSQL and DuckDB write them: `1 year 2 months 2 days 12:00:00.5`.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType, TimeUnit,
};

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const MONTHS_PER_YEAR: i32 = 12;

/// A column of intervals or durations.
#[derive(Clone, Copy)]
pub struct IntervalColumn<'a> {
    array: &'a dyn Array,
    read: fn(&dyn Array, usize) -> Parts,
}

/// An interval in parts that do not convert into one another: a month has no fixed number of days.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Parts {
    months: i32,
    days: i64,
    nanos: i128,
}

impl<'a> IntervalColumn<'a> {
    /// The column, if its type is an interval or a duration.
    pub fn new(array: &'a dyn Array) -> Option<Self> {
        let read = match array.data_type() {
            DataType::Interval(IntervalUnit::YearMonth) => year_month,
            DataType::Interval(IntervalUnit::DayTime) => day_time,
            DataType::Interval(IntervalUnit::MonthDayNano) => month_day_nano,
            DataType::Duration(TimeUnit::Second) => seconds,
            DataType::Duration(TimeUnit::Millisecond) => millis,
            DataType::Duration(TimeUnit::Microsecond) => micros,
            DataType::Duration(TimeUnit::Nanosecond) => nanos,
            _ => return None,
        };
        Some(Self { array, read })
    }

    /// The text of a row that is not null.
    pub fn text(self, row: usize) -> String {
        (self.read)(self.array, row).text()
    }
}

fn year_month(array: &dyn Array, row: usize) -> Parts {
    Parts { months: array.as_primitive::<IntervalYearMonthType>().value(row), ..Parts::default() }
}

fn day_time(array: &dyn Array, row: usize) -> Parts {
    let value = array.as_primitive::<IntervalDayTimeType>().value(row);
    Parts { months: 0, days: i64::from(value.days), nanos: i128::from(value.milliseconds) * 1_000_000 }
}

fn month_day_nano(array: &dyn Array, row: usize) -> Parts {
    let value = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
    Parts { months: value.months, days: i64::from(value.days), nanos: i128::from(value.nanoseconds) }
}

fn seconds(array: &dyn Array, row: usize) -> Parts {
    Parts::of_nanos(i128::from(array.as_primitive::<DurationSecondType>().value(row)) * NANOS_PER_SECOND)
}

fn millis(array: &dyn Array, row: usize) -> Parts {
    Parts::of_nanos(i128::from(array.as_primitive::<DurationMillisecondType>().value(row)) * 1_000_000)
}

fn micros(array: &dyn Array, row: usize) -> Parts {
    Parts::of_nanos(i128::from(array.as_primitive::<DurationMicrosecondType>().value(row)) * 1_000)
}

fn nanos(array: &dyn Array, row: usize) -> Parts {
    Parts::of_nanos(i128::from(array.as_primitive::<DurationNanosecondType>().value(row)))
}

impl Parts {
    /// A duration: a day of it has 24 hours.
    fn of_nanos(nanos: i128) -> Self {
        let day = 86_400 * NANOS_PER_SECOND;
        Self { months: 0, days: (nanos / day) as i64, nanos: nanos % day }
    }

    fn text(self) -> String {
        let mut words = Vec::new();
        push_count(&mut words, i64::from(self.months / MONTHS_PER_YEAR), "year");
        push_count(&mut words, i64::from(self.months % MONTHS_PER_YEAR), "month");
        push_count(&mut words, self.days, "day");
        if self.nanos != 0 || words.is_empty() {
            words.push(clock(self.nanos));
        }
        words.join(" ")
    }
}

fn push_count(words: &mut Vec<String>, number: i64, noun: &str) {
    if number != 0 {
        let plural = if number.abs() == 1 { "" } else { "s" };
        words.push(format!("{number} {noun}{plural}"));
    }
}

/// Hours, minutes and seconds: `-01:30:00.25`.
fn clock(nanos: i128) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let (seconds, fraction) = (nanos.abs() / NANOS_PER_SECOND, nanos.abs() % NANOS_PER_SECOND);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let text = format!("{sign}{hours:02}:{minutes:02}:{seconds:02}");
    if fraction == 0 { text } else { format!("{text}.{fraction:09}").trim_end_matches('0').to_owned() }
}

#[cfg(test)]
mod tests {
    use arrow::array::{DurationMicrosecondArray, IntervalMonthDayNanoArray};
    use arrow::datatypes::IntervalMonthDayNano;

    use super::*;

    #[test]
    fn intervals_are_read_at_a_glance() {
        let hours = 3_600_000_000_000;
        for (months, days, nanos, text) in [
            (0, 2, 12 * hours, "2 days 12:00:00"),
            (14, 0, 0, "1 year 2 months"),
            (0, 0, 0, "00:00:00"),
            (0, -1, -hours / 2, "-1 day -00:30:00"),
            (0, 0, 30 * hours + 250_000_000, "30:00:00.25"),
        ] {
            let array = IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::new(months, days, nanos)]);
            assert_eq!(IntervalColumn::new(&array).unwrap().text(0), text);
        }
        let array = DurationMicrosecondArray::from(vec![-90_061_000_001, i64::MIN]);
        let column = IntervalColumn::new(&array).unwrap();
        assert_eq!(column.text(0), "-1 day -01:01:01.000001");
        assert!(column.text(1).starts_with("-106751991 days"));
    }
}
