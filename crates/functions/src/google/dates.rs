//! Functions of dates.

use chrono::{Datelike, NaiveDate};

use crate::google::function::Takes::{Any, Date, Int, Text};
use crate::google::function::{Definition, Gives};
use crate::google::parts::{Part, boundaries, local, moved, named_zone, truncated_date};
use crate::google::value::Value;
use crate::times::parse_time;

pub(crate) const FUNCTIONS: &[Definition] = &[
    Definition::new("date", &[Any, Any, Int], Gives::Date, date).with_arguments(1, 3),
    Definition::new("date_add", &[Date, Int, Text], Gives::Date, date_add),
    Definition::new("date_sub", &[Date, Int, Text], Gives::Date, date_sub),
    Definition::new("date_diff", &[Date, Date, Text], Gives::Int, date_diff),
    Definition::new("date_trunc", &[Date, Text], Gives::Date, date_trunc),
    Definition::new("last_day", &[Date, Text], Gives::Date, last_day).with_arguments(1, 2),
    Definition::new("date_from_unix_date", &[Int], Gives::Date, date_from_unix_date),
    Definition::new("unix_date", &[Date], Gives::Int, unix_date),
    Definition::new("generate_date_array", &[Date, Date, Int, Text], Gives::Dates, generate).with_arguments(2, 4),
];

/// Most items of `GENERATE_DATE_ARRAY`.
const MOST_ITEMS: usize = 1 << 20;

type Row<'a> = Result<Value<'a>, String>;

fn days_of(value: &Value<'_>) -> Result<NaiveDate, String> {
    NaiveDate::from_epoch_days(value.as_date()).ok_or_else(|| "the date is out of range".to_owned())
}

fn value<'a>(date: NaiveDate) -> Value<'a> {
    Value::Date(date.to_epoch_days())
}

fn date<'a>(args: &[Value<'a>]) -> Row<'a> {
    match args {
        [Value::Int(year), Value::Int(month), Value::Int(day)] => {
            let date = i32::try_from(*year)
                .ok()
                .filter(|year| (1..=9999).contains(year))
                .and_then(|year| NaiveDate::from_ymd_opt(year, u32::try_from(*month).ok()?, u32::try_from(*day).ok()?));
            date.map(value).ok_or_else(|| format!("{year}-{month}-{day} is no date"))
        }
        [Value::Date(days)] => Ok(Value::Date(*days)),
        [Value::Time(micros), rest @ ..] => {
            let zone = named_zone(rest.first().map(Value::as_text))?;
            Ok(value(local(*micros, zone)?.date()))
        }
        [Value::Text(text)] => match parse_time(text) {
            Some(micros) => Ok(value(local(micros, named_zone(None)?)?.date())),
            None => Err(format!("'{text}' is no date: write 2024-05-06")),
        },
        _ => Err("it takes year, month and day, or a time and a zone".to_owned()),
    }
}

fn date_add<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [date, count, part] = args else { return Ok(Value::Null) };
    moved(days_of(date)?, count.as_int(), Part::named(part.as_text())?).map(value)
}

fn date_sub<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [date, count, part] = args else { return Ok(Value::Null) };
    let count = count.as_int().checked_neg().ok_or_else(|| "the count is out of range".to_owned())?;
    moved(days_of(date)?, count, Part::named(part.as_text())?).map(value)
}

fn date_diff<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [end, start, part] = args else { return Ok(Value::Null) };
    boundaries(days_of(end)?, days_of(start)?, Part::named(part.as_text())?).map(Value::Int)
}

fn date_trunc<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [date, part] = args else { return Ok(Value::Null) };
    truncated_date(days_of(date)?, Part::named(part.as_text())?).map(value)
}

fn last_day<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [date, rest @ ..] = args else { return Ok(Value::Null) };
    let part = rest.first().map_or(Ok(Part::Month), |part| Part::named(part.as_text()))?;
    let first = truncated_date(days_of(date)?, part)?;
    let next = match part {
        Part::Week(_) | Part::IsoWeek => moved(first, 7, Part::Day)?,
        Part::IsoYear => {
            let next = NaiveDate::from_isoywd_opt(first.iso_week().year() + 1, 1, chrono::Weekday::Mon);
            next.ok_or_else(|| "the date is at the end of the calendar".to_owned())?
        }
        part => moved(first, 1, part)?,
    };
    next.pred_opt().map(value).ok_or_else(|| "the date is at the end of the calendar".to_owned())
}

fn date_from_unix_date<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [days] = args else { return Ok(Value::Null) };
    let date = i32::try_from(days.as_int()).ok().and_then(NaiveDate::from_epoch_days);
    let date = date.filter(|date| (1..=9999).contains(&date.year()));
    date.map(value).ok_or_else(|| format!("{} days since 1970 are no date", days.as_int()))
}

fn unix_date<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [date] = args else { return Ok(Value::Null) };
    Ok(Value::Int(i64::from(date.as_date())))
}

fn generate<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [start, end, rest @ ..] = args else { return Ok(Value::Null) };
    let count = rest.first().map_or(1, Value::as_int);
    let part = rest.get(1).map_or(Ok(Part::Day), |part| Part::named(part.as_text()))?;
    if count == 0 {
        return Err("the step must not be 0".to_owned());
    }

    let (start, end) = (days_of(start)?, days_of(end)?);
    let mut dates = Vec::new();
    for at in 0.. {
        let date = moved(start, count.saturating_mul(at), part)?;
        if if count > 0 { date > end } else { date < end } {
            break;
        }
        if dates.len() == MOST_ITEMS {
            return Err(format!("the array has more than {MOST_ITEMS} items"));
        }
        dates.push(value(date));
    }
    Ok(Value::List(dates))
}
