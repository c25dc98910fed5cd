//! Times that are counted from another epoch than 1970: ticks of .NET and of Windows, and Julian days.

use arrow::array::{Array, AsArray};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, Float64Type};
use tidetable_layout::time::{DAY, SECOND};
use tidetable_source::sample::{Sample, TICKS, named_so};

use crate::scaffold::facts::{Column, Facts};
use crate::scaffold::identifier::identifier;

/// Ticks of 100 ns from the year 1, and from 1601, to 1970.
const TICKS_TO_1970: i64 = 621_355_968_000_000_000;
const FILE_TIME_TO_1970: i64 = 116_444_736_000_000_000;
/// Ticks since 1601, as Windows counts them in a FILETIME, of the years 1990 to 2100.
const FILE_TIMES: std::ops::Range<i64> = 122_756_256_000_000_000..157_469_184_000_000_000;
/// Days from the start of the Julian and of the modified Julian count to 1970.
const JULIAN_TO_1970: f64 = 2_440_587.5;
const MODIFIED_TO_1970: f64 = 40_587.0;
/// Names of columns of these days.
const JULIAN_NAMES: [&str; 5] = ["jd", "julian_date", "juliandate", "julian date", "julian"];
const MODIFIED_NAMES: [&str; 2] = ["mjd", "modified_julian_date"];
/// Days since 1970 of the years 1900 to 2100.
const LIKELY_DAYS: std::ops::Range<f64> = -25_567.0..47_482.0;
/// Seconds of which six digits behind the point of a day are half of the last.
const ROUNDING: f64 = 0.0433;

/// A time that a column counts.
#[derive(Debug)]
pub(crate) struct CountedTime {
    pub at: usize,
    /// SQL for the timestamp, without a zone.
    pub sql: String,
    /// Microseconds since the epoch by row; `None` for null.
    pub micros: Vec<Option<i64>>,
    /// What is counted, as a comment says it.
    pub why: &'static str,
}

impl CountedTime {
    /// The first column that counts ticks or Julian days; `None` if there is none.
    pub fn find(sample: &Sample, facts: &Facts) -> Option<Self> {
        facts.columns.iter().enumerate().find_map(|(at, column)| {
            Self::of_ticks(at, column).or_else(|| {
                let name = column.name.trim().to_lowercase();
                let is_julian = JULIAN_NAMES.contains(&name.as_str());
                let is_modified = MODIFIED_NAMES.contains(&name.as_str());
                let start = if is_modified { MODIFIED_TO_1970 } else { JULIAN_TO_1970 };
                if is_julian || is_modified { Self::of_days(sample, at, column, start) } else { None }
            })
        })
    }

    fn of_ticks(at: usize, column: &Column) -> Option<Self> {
        let counts = [
            (TICKS, TICKS_TO_1970, "ticks of 100 ns since the year 1"),
            (FILE_TIMES, FILE_TIME_TO_1970, "ticks of 100 ns since 1601"),
        ];
        let is_named =
            named_so(&column.name) || column.words().iter().any(|word| matches!(word.as_str(), "ticks" | "filetime"));
        if !is_named || !column.is_whole() || column.nulls == column.whole.len() {
            return None;
        }
        let (_, start, why) =
            counts.into_iter().find(|(range, ..)| column.whole.iter().flatten().all(|value| range.contains(value)))?;
        let micros = column.whole.iter().map(|ticks| ticks.map(|ticks| (ticks - start) / 10)).collect();
        let sql = format!("to_timestamp_micros(({} - {start}) / 10)", identifier(&column.name));
        Some(Self { at, sql, micros, why })
    }

    fn of_days(sample: &Sample, at: usize, column: &Column, start: f64) -> Option<Self> {
        let parts: Vec<&dyn Array> =
            sample.batches.iter().filter_map(|batch| batch.columns().get(at)).map(AsRef::as_ref).collect();
        let days = cast(&concat(&parts).ok()?, &DataType::Float64).ok()?;
        let days: Vec<Option<f64>> = days.as_primitive_opt::<Float64Type>()?.iter().collect();
        let mut given = days.iter().flatten().peekable();
        given.peek()?;
        if !column.is_number() || !given.all(|day| LIKELY_DAYS.contains(&(day - start))) {
            return None;
        }

        let seconds = |day: f64| (day - start) * 86_400.0;
        let are_whole = days.iter().flatten().all(|day| (seconds(*day) - seconds(*day).round()).abs() < ROUNDING);
        let days_sql = format!("(cast({} as double) - {start})", identifier(&column.name));
        let (sql, size) = match are_whole {
            true => (format!("to_timestamp_seconds(cast(round({days_sql} * 86400) as bigint))"), SECOND),
            false => (format!("to_timestamp_millis(cast(round({days_sql} * 86400000) as bigint))"), SECOND / 1000),
        };
        let micros = days.iter().map(|day| day.map(|day| ((day - start) * (DAY / size) as f64).round() as i64 * size));
        Some(Self { at, sql, micros: micros.collect(), why: "Julian days" })
    }
}
