//! Functions of instants.

use chrono::{DateTime, NaiveDate};

use crate::google::function::Takes::{Any, Int, Text, Time};
use crate::google::function::{Definition, Gives};
use crate::google::numbers::steps;
use crate::google::parts::{Part, extract, instant_of, local, named_zone, truncated};
use crate::google::value::Value;
use crate::times::parse_time_in;

pub(crate) const FUNCTIONS: &[Definition] = &[
    Definition::new("timestamp", &[Any, Text], Gives::Time, timestamp).with_arguments(1, 2),
    Definition::new("timestamp_trunc", &[Time, Text, Text], Gives::Time, timestamp_trunc).with_arguments(2, 3),
    Definition::new("timestamp_add", &[Time, Int, Text], Gives::Time, timestamp_add),
    Definition::new("timestamp_sub", &[Time, Int, Text], Gives::Time, timestamp_sub),
    Definition::new("timestamp_diff", &[Time, Time, Text], Gives::Int, timestamp_diff),
    Definition::new("timestamp_seconds", &[Int], Gives::Time, timestamp_seconds),
    Definition::new("timestamp_millis", &[Int], Gives::Time, timestamp_millis),
    Definition::new("timestamp_micros", &[Int], Gives::Time, timestamp_micros),
    Definition::new("unix_seconds", &[Time], Gives::Int, unix_seconds),
    Definition::new("unix_millis", &[Time], Gives::Int, unix_millis),
    Definition::new("unix_micros", &[Time], Gives::Int, unix_micros),
    Definition::new("generate_timestamp_array", &[Time, Time, Int, Text], Gives::Times, generate),
    // `EXTRACT(part FROM value AT TIME ZONE zone)`.
    Definition::new("extract", &[Text, Any, Text], Gives::Int, extract_part).with_arguments(2, 3),
];

type Row<'a> = Result<Value<'a>, String>;

fn zone_of<'v>(rest: &'v [Value<'_>]) -> Option<&'v str> {
    rest.first().map(Value::as_text)
}

/// An instant within the years that GoogleSQL has.
fn time<'a>(micros: Option<i64>) -> Row<'a> {
    let micros = micros.ok_or_else(|| "the time is beyond the years 1 to 9999".to_owned())?;
    local(micros, named_zone(None)?)?;
    Ok(Value::Time(micros))
}

fn timestamp<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, rest @ ..] = args else { return Ok(Value::Null) };
    let zone = named_zone(zone_of(rest))?;
    match value {
        Value::Time(micros) => time(Some(*micros)),
        Value::Date(days) => {
            let date = NaiveDate::from_epoch_days(*days).ok_or_else(|| "the date is out of range".to_owned())?;
            time(Some(instant_of(date.into(), zone)?))
        }
        Value::Text(text) => match parse_time_in(text, zone) {
            Some(micros) => time(Some(micros)),
            None => {
                Err(format!("'{text}' is no time: write 2024-05-06 07:08:09, with an offset such as +02:00 or a zone"))
            }
        },
        _ => Err("it takes text, a date or a time".to_owned()),
    }
}

fn timestamp_trunc<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, part, rest @ ..] = args else { return Ok(Value::Null) };
    let (zone, part) = (named_zone(zone_of(rest))?, Part::named(part.as_text())?);
    let start = truncated(local(value.as_time(), zone)?, part)?;
    Ok(Value::Time(instant_of(start, zone)?))
}

fn moved<'a>(args: &[Value<'a>], sign: i64) -> Row<'a> {
    let [value, count, part] = args else { return Ok(Value::Null) };
    let Some(unit) = Part::named(part.as_text())?.micros() else {
        return Err(format!("a timestamp is not moved by {}: use MICROSECOND to DAY", part.as_text()));
    };
    let span = count.as_int().checked_mul(sign).and_then(|count| count.checked_mul(unit));
    time(span.and_then(|span| value.as_time().checked_add(span)))
}

fn timestamp_add<'a>(args: &[Value<'a>]) -> Row<'a> {
    moved(args, 1)
}

fn timestamp_sub<'a>(args: &[Value<'a>]) -> Row<'a> {
    moved(args, -1)
}

fn timestamp_diff<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [end, start, part] = args else { return Ok(Value::Null) };
    let Some(unit) = Part::named(part.as_text())?.micros() else {
        return Err(format!("timestamps are not counted in {}: use MICROSECOND to DAY", part.as_text()));
    };
    let span = end.as_time().checked_sub(start.as_time()).ok_or_else(|| "the difference is beyond INT64".to_owned())?;
    Ok(Value::Int(span / unit))
}

fn timestamp_seconds<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [count] = args else { return Ok(Value::Null) };
    time(count.as_int().checked_mul(1_000_000))
}

fn timestamp_millis<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [count] = args else { return Ok(Value::Null) };
    time(count.as_int().checked_mul(1_000))
}

fn timestamp_micros<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [count] = args else { return Ok(Value::Null) };
    time(Some(count.as_int()))
}

fn unix_seconds<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [time] = args else { return Ok(Value::Null) };
    Ok(Value::Int(time.as_time().div_euclid(1_000_000)))
}

fn unix_millis<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [time] = args else { return Ok(Value::Null) };
    Ok(Value::Int(time.as_time().div_euclid(1_000)))
}

fn unix_micros<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [time] = args else { return Ok(Value::Null) };
    Ok(Value::Int(time.as_time()))
}

fn generate<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [start, end, count, part] = args else { return Ok(Value::Null) };
    let Some(unit) = Part::named(part.as_text())?.micros() else {
        return Err(format!("the step is MICROSECOND to DAY, not {}", part.as_text()));
    };
    let step = count.as_int().checked_mul(unit).ok_or_else(|| "the step is too large".to_owned())?;
    Ok(Value::List(steps(start.as_time(), end.as_time(), step)?.into_iter().map(Value::Time).collect()))
}

fn extract_part<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [part, value, rest @ ..] = args else { return Ok(Value::Null) };
    let part = Part::named(part.as_text())?;
    let time = match value {
        Value::Time(micros) => local(*micros, named_zone(zone_of(rest))?)?,
        Value::Date(days) => {
            let time = DateTime::from_timestamp(i64::from(*days) * 86_400, 0);
            time.ok_or_else(|| "the date is out of range".to_owned())?.naive_utc()
        }
        _ => return Err("it takes a date or a time".to_owned()),
    };
    extract(time, part).map(Value::Int)
}
