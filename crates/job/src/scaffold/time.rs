//! Finds the event time of a sample: one column, the first non-null of several, or one derived from parts.

use std::cmp::Reverse;

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use chrono::{DateTime, Datelike, NaiveDateTime};
use chrono_tz::Tz;
use tidetable_layout::FieldType;
use tidetable_layout::time::{DAY, LocalOffset, SECOND};
use tidetable_source::sample::Sample;

use crate::scaffold::calendar::clock_name::ClockName;
use crate::scaffold::calendar::day_time::DayTime;
use crate::scaffold::calendar::part_name::{HOUR_NAMES, is_unnamed};
use crate::scaffold::facts::{Column, Facts};
use crate::scaffold::hours::{HourSql, Numbering};
use crate::scaffold::identifier::identifier;
use crate::scaffold::parts::clock::beside_day;
use crate::scaffold::parts::columns::{add, named, part, whole_column};
use crate::scaffold::parts::count::CountedTime;
use crate::scaffold::parts::date::PartedTime;
use crate::scaffold::parts::digits::DigitTime;
use crate::scaffold::parts::fraction::Millis;

/// The event time of each row of a sample, and how a job derives it.
#[derive(Debug, Default)]
pub(crate) struct EventTime {
    pub name: String,
    /// SQL that derives it; `None` if it is a column of the file.
    pub derive: Option<String>,
    /// Columns that it makes redundant, so that they are not stored.
    pub parts: Vec<usize>,
    /// Microseconds since the epoch by row; `None` for null.
    pub micros: Vec<Option<i64>>,
    /// Rows that are rejected because a clock change skips their local time.
    pub skipped: usize,
    /// Rows whose local time, put together from several columns, occurs twice because the clocks go back.
    pub repeated: usize,
    /// Whether it is put together from local times that are taken as UTC.
    pub is_taken_as_utc: bool,
    /// Why a zone has to be given, if hours of the parts are the same without one.
    pub needs_zone: Option<String>,
    /// Whether it is the start of a year although a column says a finer part of it.
    pub has_finer: bool,
    /// Notes on columns that may be of it, or that are of it in part.
    pub told: Vec<String>,
    /// Why it was chosen, as a comment says it.
    pub why: String,
}

impl EventTime {
    /// Whether the rows have no time, and all share a constant.
    pub fn is_none(&self) -> bool {
        self.derive.as_deref() == Some(NO_TIME)
    }

    /// Rows whose time is null in the file, which lie in no window.
    pub fn nulls(&self) -> usize {
        self.micros.iter().filter(|micros| micros.is_none()).count() - self.skipped
    }

    /// Whether it only distinguishes years; with many rows of few times it is a property, such as a model year.
    pub fn is_year(&self) -> bool {
        let mut times = self.micros.iter().flatten();
        times.all(|micros| {
            let time = DateTime::from_timestamp_micros(*micros);
            time.is_some_and(|time| time.ordinal() == 1 && micros % DAY == 0)
        })
    }

    /// Whether all rows that have one share it, such as the time of an export.
    fn is_constant(&self) -> bool {
        let mut times = self.micros.iter().flatten();
        let first = times.next();
        self.micros.len() > 1 && times.all(|micros| Some(micros) == first)
    }

    /// The columns that it is read from.
    pub fn columns<'f>(&'f self, facts: &'f Facts) -> impl Iterator<Item = &'f Column> {
        let is_derived = |column: &Column| self.derive.as_deref() == Some(&identifier(&column.name));
        let alone = facts.columns.iter().filter(move |column| column.name == self.name || is_derived(column));
        alone.chain(facts.at(&self.parts))
    }

    /// Whether all times are whole multiples of `size` microseconds since the epoch.
    pub fn are_multiples_of(&self, size: i64) -> bool {
        self.micros.iter().flatten().all(|micros| micros % size == 0)
    }

    /// Whether a row is from before 1970, which cell timestamps cannot express.
    pub fn before_epoch(&self) -> bool {
        self.micros.iter().flatten().any(|micros| *micros < 0)
    }
}

/// The constant time of rows without one.
const NO_TIME: &str = "to_timestamp_seconds(0)";

/// Names that are most likely the event time.
const FIRST: [&str; 8] = ["ts", "timestamp", "time", "datetime", "event", "utc", "recorded", "observed"];
/// Words in names of the start and the end of a span of time.
const STARTS: [&str; 7] = ["start", "started", "begin", "from", "pickup", "von", "beginn"];
const ENDS: [&str; 9] = ["end", "ended", "stop", "until", "to", "dropoff", "finish", "bis", "ende"];
/// Words in names of times at which a record was written, where another column says when its span starts.
const RECORDED: [&str; 6] = ["created", "updated", "modified", "inserted", "imported", "published"];

/// The event time. If there is none, all rows share a constant.
pub(crate) fn find(sample: &Sample, facts: &Facts, zone: Option<Tz>) -> EventTime {
    let mut constant = None;
    let ways: [&dyn Fn() -> Option<EventTime>; 7] = [
        &|| of_moments(facts),
        &|| of_count(sample, facts, zone),
        &|| of_day_and_clock(facts, zone),
        &|| of_day(facts),
        &|| of_parts(facts, zone),
        &|| of_digits(facts, zone),
        &|| of_epoch(sample, facts),
    ];
    for way in ways {
        match way().map(|time| with_millis(facts, time)) {
            Some(time) if time.is_constant() => constant = constant.or(Some(time)),
            Some(time) => return time,
            None => {}
        }
    }
    constant.unwrap_or_else(|| none(facts, "no column holds times: all rows share one time"))
}

/// The time with the milliseconds that stand behind it; where these may be a duration, that is told.
fn with_millis(facts: &Facts, mut time: EventTime) -> EventTime {
    let own = facts.position(&time.name);
    let last = own.or_else(|| time.parts.iter().copied().max());
    let Some(found) = last.and_then(|last| Millis::behind(facts, last, &time.micros)) else { return time };
    let Some(micros) = found.micros.clone() else {
        time.told.push(format!(
            "{} is not of the time: if it is the milliseconds of {}, add them in `derive`.",
            found.column.name, time.name
        ));
        return time;
    };

    let seconds = time.derive.take().unwrap_or_else(|| identifier(&time.name));
    time.derive = Some(found.sql(&seconds));
    if own.is_some() {
        time.parts.extend(own);
        time.name = free_name(facts, "ts");
    }
    time.parts.push(found.at);
    time.micros = micros;
    time.why.push_str(", with its milliseconds");
    time
}

/// The constant time of rows without one.
pub(crate) fn none(facts: &Facts, why: &str) -> EventTime {
    EventTime {
        name: free_name(facts, "epoch"),
        derive: Some(NO_TIME.to_owned()),
        micros: vec![Some(0); facts.rows],
        why: why.to_owned(),
        ..EventTime::default()
    }
}

/// Timestamp columns: the best one, and others as fallback where it is null.
fn of_moments(facts: &Facts) -> Option<EventTime> {
    let moments = facts.columns.iter().filter(|column| column.kind == FieldType::Timestamp);
    let mut found: Vec<&Column> = moments.filter(|column| column.nulls < facts.rows).collect();
    // One time in all rows is that of an export, if others vary.
    if found.iter().any(|column| column.distinct > 1) {
        found.retain(|column| column.distinct > 1);
    }
    // Of equal ones the first in the file.
    let has_start = found.iter().any(|column| is_start(column));
    let is_of_record =
        |column: &Column| has_start && column.words().iter().any(|word| RECORDED.contains(&word.as_str()));
    found.sort_by_key(|column| {
        let is_unlikely = (has_start && is_end(column), is_of_record(column), !is_likely(column), !is_utc(column));
        (column.nulls, is_unlikely, Reverse(column.distinct))
    });
    let best = *found.first()?;
    let others = found.len() > 1;
    if best.nulls == 0 {
        let why = if others { "in every row, and with the likeliest name" } else { "the only column with times" };
        return Some(alone(best, why));
    }

    let mut micros = best.whole.clone();
    let mut used = vec![best];
    for column in found.iter().skip(1) {
        let filled: Vec<_> = micros.iter().zip(&column.whole).map(|(first, second)| first.or(*second)).collect();
        if filled != micros {
            micros = filled;
            used.push(column);
        }
    }
    if used.len() == 1 {
        return Some(alone(best, "the fullest column with times"));
    }

    let names: Vec<_> = used.iter().map(|column| identifier(&column.name)).collect();
    let why = "no column has a time in every row: the first that is not null";
    Some(EventTime {
        name: free_name(facts, "event_time"),
        derive: Some(format!("coalesce({})", names.join(", "))),
        micros,
        why: why.to_owned(),
        ..EventTime::default()
    })
}

/// Whether a column has a name of the start of a span of time.
fn is_start(column: &Column) -> bool {
    column.words().iter().any(|word| STARTS.contains(&word.as_str()))
}

/// Whether a column has a name of the end of a span of time.
fn is_end(column: &Column) -> bool {
    column.words().iter().any(|word| ENDS.contains(&word.as_str()))
}

/// Whether the name of a column says that its times are in UTC.
fn is_utc(column: &Column) -> bool {
    column.words().iter().any(|word| matches!(word.as_str(), "utc" | "gmt"))
}

/// Whether a column has a name that is most likely the event time.
fn is_likely(column: &Column) -> bool {
    column.words().iter().any(|word| FIRST.contains(&word.as_str()))
}

/// The event time that one column has.
fn alone(column: &Column, why: &str) -> EventTime {
    let micros = match column.kind {
        FieldType::Date => column.whole.iter().map(|day| day.and_then(|day| day.checked_mul(DAY))).collect(),
        _ => column.whole.clone(),
    };
    let (name, derive) = match column.fits_templates() {
        true => (column.name.clone(), None),
        // Templates cannot refer to its name: derive a column with the same values.
        false => ("event_time".to_owned(), Some(identifier(&column.name))),
    };
    EventTime { name, derive, micros, why: why.to_owned(), ..EventTime::default() }
}

/// A column that counts from another epoch.
fn of_count(sample: &Sample, facts: &Facts, zone: Option<Tz>) -> Option<EventTime> {
    let CountedTime { at, sql, micros, why } = CountedTime::find(sample, facts)?;
    Some(made(facts, vec![at], sql, micros, zone, why))
}

/// The best column of days.
fn of_day(facts: &Facts) -> Option<EventTime> {
    let days = facts.columns.iter().filter(|column| column.kind == FieldType::Date && column.fits_templates());
    let days: Vec<&Column> = days.filter(|column| column.nulls < facts.rows).collect();
    let has_start = days.iter().any(|column| is_start(column));
    let best = days.iter().min_by_key(|column| (column.distinct < 2, column.nulls, has_start && is_end(column)))?;
    let why = if days.len() > 1 { "the first column with a day in every row" } else { "the only column with a day" };
    Some(alone(best, why))
}

/// A column with a day and one with a clock time or an hour.
fn of_day_and_clock(facts: &Facts, zone: Option<Tz>) -> Option<EventTime> {
    let is_day = |column: &Column| column.kind == FieldType::Date;
    let is_clock = |column: &Column| column.clock.is_some() && ClockName::of(&column.words()) == ClockName::TimeOfDay;
    // Beside local ones, a day and a time of day in UTC are the better pair.
    let utc_day = whole_column(facts, |column| is_day(column) && is_utc(column));
    let utc_clock = whole_column(facts, |column| is_clock(column) && is_utc(column));
    let in_utc = utc_day.zip(utc_clock);
    let zone = if in_utc.is_some() { Some(Tz::UTC) } else { zone };

    let (day_at, day) = in_utc.map_or_else(|| whole_column(facts, is_day), |(day, _)| Some(day))?;
    let start = format!("cast(date_part('epoch', {}) as bigint)", identifier(&day.name));
    let clock_at = in_utc.map_or_else(|| beside_day(&facts.columns, day_at, is_end), |(_, (at, _))| Some(at));
    if let Some((clock_at, clock)) = clock_at.and_then(|at| Some((at, facts.column(at)?)))
        && let Some(DayTime { micros: clocks, sql, has_fraction }) = &clock.clock
    {
        let mut micros = Vec::with_capacity(facts.rows);
        for (day, clock) in day.whole.iter().zip(clocks) {
            let start = day.and_then(|day| day.checked_mul(DAY));
            micros.push(start.zip(*clock).map(|(start, clock)| start + clock));
        }
        let local = match has_fraction {
            true => format!("to_timestamp_micros(1000000 * {start} + {sql})"),
            false => format!("to_timestamp_seconds({start} + {sql})"),
        };
        let parts = vec![day_at, clock_at];
        return Some(made(facts, parts, local, micros, zone, "a day and a time of day, put together"));
    }

    let hour = named(facts, &HOUR_NAMES, 0..25);
    let minute = named(facts, &["minute", "min"], 0..60);
    let Some((hour_at, hour)) = hour else {
        return of_day_and_hours(facts, day_at, &start, zone).or_else(|| of_day_and_next(facts, day_at, &start, zone));
    };
    let mut parts = vec![day_at, hour_at];
    let mut seconds = format!("{start} + 3600 * {}", part(hour));
    let mut micros: Vec<_> = day.whole.iter().map(|day| day.and_then(|day| day.checked_mul(DAY))).collect();
    add(&mut micros, hour, 3600);
    if let Some((at, minute)) = minute {
        seconds.push_str(&format!(" + 60 * {}", part(minute)));
        add(&mut micros, minute, 60);
        parts.push(at);
    }
    let local = format!("to_timestamp_seconds({seconds})");
    Some(made(facts, parts, local, micros, zone, "a day and an hour, put together"))
}

/// A column with a day, and one named like hours whose values end at 24, also with a zero in front: an hour that ends at
/// 24 ends at the next midnight.
fn of_day_and_hours(facts: &Facts, day_at: usize, start: &str, zone: Option<Tz>) -> Option<EventTime> {
    let is_hours = |column: &Column| column.hours.is_some() && ClockName::of(&column.words()) != ClockName::Other;
    let (hours_at, column) = whole_column(facts, is_hours)?;
    let hours = column.hours.as_ref()?;
    let days: Vec<Option<i64>> =
        facts.column(day_at)?.whole.iter().map(|day| day.and_then(|day| day.checked_mul(DAY))).collect();
    let parts = vec![day_at, hours_at];
    let zone_of_ends = zone.filter(|zone| *zone != Tz::UTC && hours.numbering != Numbering::OfClock);
    let Some(zone_of_ends) = zone_of_ends else {
        let ends = days.iter().zip(&hours.numbers);
        let micros = ends.map(|(day, hour)| day.zip(*hour).map(|(day, hour)| day + hour * 3600 * SECOND)).collect();
        let sql = format!("to_timestamp_seconds({start} + 3600 * {})", hours.number_sql(&column.name));
        let needs_zone = if zone.is_none() { hours.needs_zone(&column.name) } else { None };
        return Some(EventTime {
            needs_zone,
            ..made(facts, parts, sql, micros, zone, "a day and an hour, put together")
        });
    };

    // The start of the day, or of the hour, is one moment of the zone; the hours behind it are counted.
    let micros = days.iter().enumerate().map(|(row, day)| {
        let (local, behind) = hours.local_and_behind(row)?;
        Some(instant(zone_of_ends, (*day)? + local * 3600 * SECOND)? + behind * 3600 * SECOND)
    });
    let HourSql { local, behind } = hours.sql(&column.name);
    let moment = format!("to_timestamp_seconds({start} + 3600 * {local}) at time zone '{}'", zone_of_ends.name());
    let sql = format!("to_timestamp_seconds(cast(date_part('epoch', {moment}) as bigint) + 3600 * {behind})");
    let micros = micros.collect();
    Some(made(facts, parts, sql, micros, Some(Tz::UTC), "a day and the number of an hour, put together"))
}

/// A column with a day, and behind it one without a name that holds hours.
fn of_day_and_next(facts: &Facts, day_at: usize, start: &str, zone: Option<Tz>) -> Option<EventTime> {
    let days = facts.column(day_at).filter(|day| is_unnamed(&day.name))?;
    let micros = days.whole.iter().map(|day| day.and_then(|day| day.checked_mul(DAY))).collect();
    let (parts, sql, told) = (vec![day_at], String::new(), Vec::new());
    let day = PartedTime { parts, sql, micros, told, has_finer: false };
    let PartedTime { parts, sql, micros, told, .. } = day.with_unnamed_hour(facts, start, day_at + 1);
    let has_hour = parts.len() > 1;
    let made = made(facts, parts, sql, micros, zone, "a day and an hour, put together");
    has_hour.then_some(EventTime { told, ..made })
}

/// Columns of the parts of a time, by their names or by their place.
fn of_parts(facts: &Facts, zone: Option<Tz>) -> Option<EventTime> {
    let found = PartedTime::find(facts, is_end).or_else(|| PartedTime::by_place(facts))?;
    let PartedTime { parts, sql, micros, told, has_finer } = found;
    let made = made(facts, parts, sql, micros, zone, "put together from its parts");
    Some(EventTime { has_finer, told, ..made })
}

/// Whole numbers whose digits are times, or days with a time of day beside them.
fn of_digits(facts: &Facts, zone: Option<Tz>) -> Option<EventTime> {
    let DigitTime { at, seconds, mut micros, is_day, told } = DigitTime::find(facts)?;
    let clock_at = if is_day { beside_day(&facts.columns, at, is_end) } else { None };
    let clock = clock_at.and_then(|at| Some((at, facts.column(at)?.clock.as_ref()?)));
    let (parts, sql) = match clock {
        Some((clock_at, DayTime { micros: clocks, sql, has_fraction })) => {
            for (moment, clock) in micros.iter_mut().zip(clocks) {
                *moment = moment.zip(*clock).map(|(moment, clock)| moment + clock);
            }
            let sql = match has_fraction {
                true => format!("to_timestamp_micros(1000000 * {seconds} + {sql})"),
                false => format!("to_timestamp_seconds({seconds} + {sql})"),
            };
            (vec![at, clock_at], sql)
        }
        None => match named(facts, &HOUR_NAMES, 0..25).filter(|_| is_day) {
            Some((hour_at, hour)) => {
                add(&mut micros, hour, 3600);
                (vec![at, hour_at], format!("to_timestamp_seconds({seconds} + 3600 * {})", part(hour)))
            }
            None => (vec![at], format!("to_timestamp_seconds({seconds})")),
        },
    };
    let made = made(facts, parts, sql, micros, zone, "the digits of a number");
    Some(EventTime { told: vec![told], ..made })
}

/// Numbers that may be times since the epoch, if there is nothing better: they go up or down, as events are recorded.
fn of_epoch(sample: &Sample, facts: &Facts) -> Option<EventTime> {
    let columns = facts.columns.iter().zip(&sample.columns).enumerate();
    let mut found = columns.filter_map(|(at, (column, found))| {
        let unit = found.maybe_epoch?;
        let micros = epoch_micros(sample, at, column, unit)?;
        let is_sorted = micros.is_sorted() || micros.is_sorted_by(|a, b| a >= b);
        is_sorted.then_some((column, found, unit, micros))
    });
    let (column, first, unit, micros) = found.next()?;
    let first = first.first.as_ref().map_or(String::new(), |first| format!(" such as {first}"));
    let told = format!(
        "{}: numbers{first} have the magnitude of times since 1970 ({unit}), and are read so: declare it otherwise if they \
         count something else.",
        column.name
    );
    let why = "its numbers have the magnitude of times since the epoch";
    Some(EventTime { micros, told: vec![told], ..alone(column, why) })
}

/// The numbers of a column as microseconds since the epoch, of which they count `unit`.
fn epoch_micros(sample: &Sample, at: usize, column: &Column, unit: &str) -> Option<Vec<Option<i64>>> {
    let mut micros = Vec::with_capacity(sample.batches.len());
    if column.is_whole() {
        for value in &column.whole {
            micros.push(value.and_then(|value| match unit {
                "s" => value.checked_mul(SECOND),
                "ms" => value.checked_mul(1000),
                "us" => Some(value),
                _ => Some(value.div_euclid(1000)),
            }));
        }
        return Some(micros);
    }

    let scale = match unit {
        "s" => 1e6,
        "ms" => 1e3,
        "us" => 1.0,
        _ => 1e-3,
    };
    for batch in &sample.batches {
        let numbers = cast(batch.columns().get(at)?, &DataType::Float64).ok()?;
        let numbers = numbers.as_primitive_opt::<Float64Type>()?;
        micros.extend(numbers.iter().map(|number| number.map(|number| (number * scale).round() as i64)));
    }
    Some(micros)
}

/// The event time whose local time is the SQL `local`.
fn made(
    facts: &Facts,
    parts: Vec<usize>,
    local: String,
    micros: Vec<Option<i64>>,
    zone: Option<Tz>,
    why: &str,
) -> EventTime {
    let mut repeated = 0;
    let nulls = micros.iter().filter(|micros| micros.is_none()).count();
    let (derive, micros) = match zone.filter(|zone| *zone != Tz::UTC) {
        Some(zone) => {
            let moments: Vec<Option<i64>> = micros.iter().map(|local| instant(zone, (*local)?)).collect();
            repeated = moments.iter().flatten().filter(|micros| repeated_local(zone, **micros).is_some()).count();
            (format!("{local} at time zone '{}'", zone.name()), moments)
        }
        None => (local, micros),
    };
    let skipped = micros.iter().filter(|micros| micros.is_none()).count() - nulls;
    EventTime {
        name: free_name(facts, "ts"),
        derive: Some(derive),
        parts,
        micros,
        skipped,
        repeated,
        is_taken_as_utc: zone.is_none(),
        why: why.to_owned(),
        ..EventTime::default()
    }
}

/// The instant of a local time, both in microseconds since the epoch; `None` where a clock change skips it.
fn instant(zone: Tz, local: i64) -> Option<i64> {
    let written = DateTime::from_timestamp_micros(local)?.naive_utc();
    Some(local - i64::from(LocalOffset::resolve(&zone, &written).offset()?) * SECOND)
}

/// The local time of an instant, if the clocks of `zone` show it twice.
pub(crate) fn repeated_local(zone: Tz, micros: i64) -> Option<NaiveDateTime> {
    let local = DateTime::from_timestamp_micros(micros)?.with_timezone(&zone).naive_local();
    matches!(LocalOffset::resolve(&zone, &local), LocalOffset::Ambiguous { .. }).then_some(local)
}

/// `wanted`, or a similar name that no column has.
fn free_name(facts: &Facts, wanted: &str) -> String {
    let others = ["event_time", "moment", "row_time"].into_iter();
    let mut names = std::iter::once(wanted).chain(others);
    names.find(|name| facts.position(name).is_none()).unwrap_or("event_time_").to_owned()
}
