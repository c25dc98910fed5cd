//! Dates whose year, month and day are columns, with the time of day in columns beside them.

use std::ops::Range;

use chrono::NaiveDate;
use tidetable_layout::time::DAY;

use crate::scaffold::calendar::day_time::DayTime;
use crate::scaffold::calendar::part_name::{
    DAY_NAMES, DAYS_OF_YEAR, HOUR_NAMES, MINUTE_NAMES, SECOND_NAMES, is_unnamed,
};
use crate::scaffold::calendar::year_part::{MONTH_NAMES, QUARTER_NAMES, YearCodes, is_named_finer};
use crate::scaffold::facts::{Column, Facts, YEAR_NAMES, YEARS};
use crate::scaffold::parts::clock::beside_day;
use crate::scaffold::parts::columns::{add, has_parts, named, named_beside, number, part, whole_at, whole_column};

/// Years that a column without a name may hold.
const LIKELY_YEARS: Range<i64> = 1700..2100;

/// A time that is put together from its parts.
#[derive(Debug)]
pub(crate) struct PartedTime {
    pub parts: Vec<usize>,
    /// SQL for the timestamp, without a zone.
    pub sql: String,
    /// Microseconds since the epoch by row; `None` for null.
    pub micros: Vec<Option<i64>>,
    /// Notes on what is of the time in part, or without being named so.
    pub told: Vec<String>,
    /// Whether it is the start of a year although a column says a finer part of it.
    pub has_finer: bool,
}

/// The columns of which a date is made.
struct DateParts<'f> {
    year: &'f Column,
    /// The month, or 1 if there is none.
    month: Option<&'f Column>,
    /// The quarter, instead of a month.
    quarter: Option<&'f Column>,
    /// Codes that give the month, instead of both.
    codes: Option<&'f YearCodes>,
    day: Option<&'f Column>,
}

impl DateParts<'_> {
    fn sql(&self) -> String {
        let month = match (self.codes, self.quarter) {
            (Some(codes), _) => codes.sql.clone(),
            (None, Some(quarter)) => format!("{} * 3 - 2", number(quarter)),
            (None, None) => self.month.map_or("1".to_owned(), number),
        };
        let day = self.day.map_or("1".to_owned(), number);
        format!("make_date({}, {month}, {day})", number(self.year))
    }

    /// The start of the date of a row, in microseconds since the epoch; `None` if there is no such date.
    fn micros(&self, row: usize) -> Option<i64> {
        let month = match (self.codes, self.quarter) {
            (Some(codes), _) => codes.months.get(row).copied().flatten()?,
            (None, Some(quarter)) => whole_at(quarter, row)? * 3 - 2,
            (None, None) => self.month.map_or(Some(1), |month| whole_at(month, row))?,
        };
        let day = self.day.map_or(Some(1), |day| whole_at(day, row))?;
        let year = i32::try_from(whole_at(self.year, row)?).ok()?;
        let date = NaiveDate::from_ymd_opt(year, u32::try_from(month).ok()?, u32::try_from(day).ok()?)?;
        Some(date.and_hms_opt(0, 0, 0)?.and_utc().timestamp_micros())
    }
}

impl PartedTime {
    /// Columns named year, month and day, possibly hour, minute and second, or with a time of day; or a year with or without a
    /// month.
    pub fn find(facts: &Facts, is_end: impl Fn(&Column) -> bool) -> Option<Self> {
        let (year_at, year) = named(facts, &YEAR_NAMES, YEARS)?;
        let month = named(facts, &MONTH_NAMES, 1..13);
        let quarter = named(facts, &QUARTER_NAMES, 1..5).filter(|_| month.is_none());
        let day = named(facts, &DAY_NAMES, 1..32).filter(|_| month.is_some());
        let mut parts = vec![year_at];
        parts.extend(month.iter().chain(&quarter).chain(&day).map(|(at, _)| *at));

        let has_codes = |column: &Column| column.codes.is_some();
        let codes = whole_column(facts, has_codes).filter(|_| month.is_none() && quarter.is_none());
        parts.extend(codes.iter().map(|(at, _)| *at));
        let has_month = month.is_some() || quarter.is_some() || codes.is_some();
        // A day beyond 31 counts from the start of the year.
        let is_late = |(_, column): &(usize, &Column)| column.whole.iter().flatten().any(|day| *day > 31);
        let days = named(facts, &DAY_NAMES, 1..367).filter(is_late);
        let day_of_year = named(facts, &DAYS_OF_YEAR, 1..367).or(days).filter(|_| !has_month);
        parts.extend(day_of_year.iter().map(|(at, _)| *at));

        let day_at = day.or(day_of_year).map(|(at, _)| at);
        let [month, quarter, day] = [month, quarter, day].map(|found| found.map(|(_, column)| column));
        let code_column = codes.map(|(_, column)| column);
        let codes = code_column.and_then(|column| column.codes.as_ref());
        let date = DateParts { year, month, quarter, codes, day };
        let mut seconds = format!("cast(date_part('epoch', {}) as bigint)", date.sql());
        let mut micros: Vec<Option<i64>> = (0..facts.rows).map(|row| date.micros(row)).collect();
        if let Some((_, day_of_year)) = day_of_year {
            seconds.push_str(&format!(" + 86400 * ({} - 1)", part(day_of_year)));
            for (moment, day) in micros.iter_mut().zip(&day_of_year.whole) {
                *moment = moment.zip(*day).map(|(moment, day)| moment + (day - 1) * DAY);
            }
        }
        let is_of_year = |row: usize| codes.is_some_and(|codes| codes.months.get(row) == Some(&None));
        if micros.iter().enumerate().any(|(row, micros)| micros.is_none() && !is_of_year(row)) {
            return None;
        }

        let mut told = Vec::new();
        if let Some(code) = codes.and_then(|codes| codes.whole_year.as_ref()) {
            let name = code_column.map_or("", |column| column.name.as_str());
            told.push(format!("{name}: '{code}' is of a whole year, and has no time."));
        }
        // A year alone is not all that the file says.
        let finer = facts.columns.iter().find(|column| is_named_finer(&column.name) && column.distinct > 1);
        if let Some(finer) = finer.filter(|_| parts == [year_at]) {
            let first = finer.first.as_ref().map_or(String::new(), |first| format!(" ('{first}')"));
            told.push(format!(
                "The time of a row is the start of {}: {}{first} says more, and is not put together with it; `derive` can do it.",
                year.name, finer.name
            ));
            let sql = format!("to_timestamp_seconds({seconds})");
            return Some(Self { parts: Vec::new(), sql, micros, told, has_finer: true });
        }

        let mut found = Self { parts, sql: String::new(), micros, told, has_finer: false };
        found.sql = match day_at {
            Some(day_at) => found.with_time_of_day(facts, seconds, day_at, is_end),
            None => format!("to_timestamp_seconds({seconds})"),
        };
        Some(found)
    }

    /// SQL for the time whose day is SQL `seconds` and ends with the column at `day_at`: with its hour, minute and second, or with
    /// a column of times of day. They are added to the times of the rows.
    fn with_time_of_day(
        &mut self,
        facts: &Facts,
        mut seconds: String,
        day_at: usize,
        is_end: impl Fn(&Column) -> bool,
    ) -> String {
        let sizes = [(&HOUR_NAMES[..], 0..25, 3600), (&MINUTE_NAMES, 0..60, 60), (&SECOND_NAMES, 0..60, 1)];
        let count = self.parts.len();
        for (names, range, size) in sizes {
            let Some((at, column)) = named_beside(facts, names, range, &self.parts) else { break };
            seconds.push_str(&format!(" + {size} * {}", part(column)));
            add(&mut self.micros, column, size);
            self.parts.push(at);
        }
        let clock_at = if self.parts.len() == count { beside_day(&facts.columns, day_at, is_end) } else { None };
        let clock = clock_at.and_then(|at| Some((at, facts.column(at)?.clock.as_ref()?)));
        let Some((at, DayTime { micros: clocks, sql, has_fraction })) = clock else {
            return format!("to_timestamp_seconds({seconds})");
        };

        for (moment, clock) in self.micros.iter_mut().zip(clocks) {
            *moment = moment.zip(*clock).map(|(moment, clock)| moment + clock);
        }
        self.parts.push(at);
        match has_fraction {
            true => format!("to_timestamp_micros(1000000 * ({seconds}) + {sql})"),
            false => format!("to_timestamp_seconds({seconds} + {sql})"),
        }
    }

    /// A year, a month and a day in three columns without names, one behind the other, whose dates go up; with the hour behind
    /// them.
    pub fn by_place(facts: &Facts) -> Option<Self> {
        (0..facts.columns.len()).find_map(|at| {
            let three: Vec<usize> = (at..at + 3).collect();
            let columns: Vec<&Column> = facts.at(&three).filter(|column| is_unnamed(&column.name)).collect();
            let [year, month, day] = columns.as_slice() else { return None };
            let ranges = [(*year, LIKELY_YEARS), (month, 1..13), (day, 1..32)];
            if ranges.iter().any(|(column, range)| column.nulls > 0 || !has_parts(column, range)) {
                return None;
            }
            let date = DateParts { year, month: Some(month), quarter: None, codes: None, day: Some(day) };
            let micros: Option<Vec<i64>> = (0..facts.rows).map(|row| date.micros(row)).collect();
            let micros = micros.filter(|micros| micros.is_sorted() && micros.first() != micros.last())?;

            let seconds = format!("cast(date_part('epoch', {}) as bigint)", date.sql());
            let told = format!(
                "{}, {} and {} have no names and are read as a year, a month and a day: write the event time into `derive` if \
                 they are not.",
                year.name, month.name, day.name
            );
            let found = Self {
                parts: three,
                sql: format!("to_timestamp_seconds({seconds})"),
                micros: micros.into_iter().map(Some).collect(),
                told: vec![told],
                has_finer: false,
            };
            Some(found.with_unnamed_hour(facts, &seconds, at + 3))
        })
    }

    /// The time with the hour in the column without a name at `hour_at`, if there is one, and with the minute and second behind it.
    pub fn with_unnamed_hour(mut self, facts: &Facts, seconds: &str, hour_at: usize) -> Self {
        let parts = [("hour of the day", 0..25, 3600), ("minute", 0..60, 60), ("second", 0..60, 1)];
        let mut seconds = seconds.to_owned();
        for (at, (what, range, size)) in (hour_at..).zip(parts) {
            let Some((column, micros)) = unnamed_part(facts, at, &self.micros, &range, size) else { break };
            seconds.push_str(&format!(" + {size} * {}", part(column)));
            self.parts.push(at);
            self.sql = format!("to_timestamp_seconds({seconds})");
            self.micros = micros;
            self.told.push(format!("{} has no name and is read as the {what}.", column.name));
        }
        self
    }
}

/// The column without a name at `at` if it holds parts of `size` seconds of `times`, in this range, and the times with them.
fn unnamed_part<'f>(
    facts: &'f Facts,
    at: usize,
    times: &[Option<i64>],
    range: &Range<i64>,
    size: i64,
) -> Option<(&'f Column, Vec<Option<i64>>)> {
    let column = facts.column(at).filter(|column| is_unnamed(&column.name) && column.nulls == 0)?;
    let are_parts = has_parts(column, range) && column.month_names.is_none() && column.distinct > 1;
    let mut micros = times.to_vec();
    add(&mut micros, column, size);
    // Within a day or an hour they go up, and some has more than one.
    let is_likely = are_parts && micros.is_sorted() && times.windows(2).any(|pair| pair[0] == pair[1]);
    is_likely.then_some((column, micros))
}
