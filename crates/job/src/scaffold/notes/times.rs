//! Notes on columns that may hold a part of the event time.

use tidetable_layout::FieldType;
use tidetable_source::ColumnSpec;

use crate::scaffold::calendar::clock_name::ClockName;
use crate::scaffold::draft::Draft;
use crate::scaffold::facts::{Column, Facts};
use crate::scaffold::identifier::identifier;
use crate::scaffold::notes::epoch;
use crate::scaffold::notes::values::cut;
use crate::scaffold::time::EventTime;

/// Words in the names of columns of times of day.
const TIMES_OF_DAY: [&str; 9] = ["time", "clock", "hour", "hours", "zeit", "uhrzeit", "hora", "heure", "tod"];
/// Words in the names of columns that number the parts of a day.
const PERIODS: [&str; 7] = ["period", "interval", "slot", "sp", "mtu", "position", "pos"];

/// Notes on what is not of an event time that is a day or coarser, and on what may wrongly be of it.
pub(crate) fn undecided_times(draft: &Draft<'_>) -> Vec<String> {
    let Draft { time, facts, .. } = draft;
    let mut notes = time.told.clone();
    if !time.is_none() && time.parts.is_empty() && is_day(facts, time) {
        notes.extend(beside_day(draft));
        notes.extend(periods(facts, time));
    }
    notes.extend(far_clock(facts, time));
    notes.extend(epoch::other_epoch(draft));
    notes
}

fn is_day(facts: &Facts, time: &EventTime) -> bool {
    facts.columns.iter().any(|column| column.name == time.name && column.kind == FieldType::Date)
}

/// A column that may be the time of day where the event time is only a day.
fn beside_day(draft: &Draft<'_>) -> Option<String> {
    let columns = draft.sample.columns.iter().zip(&draft.sample.spec.columns).zip(&draft.facts.columns);
    let mut clocks = columns.filter(|((_, spec), column)| {
        ClockName::of(&column.words()) != ClockName::Other && (column.clock.is_some() || is_named_clock(spec))
    });
    let ((found, spec), _) = clocks.next()?;
    let first = found.first.as_deref()?;
    Some(format!(
        "{} gives only the day: if {} ('{}') is the time of day, put both together in `derive`.",
        draft.time.name,
        spec.name,
        cut(first)
    ))
}

/// Whether a column is named like a time of day, and is no time itself.
fn is_named_clock(column: &ColumnSpec) -> bool {
    let name = column.name.to_lowercase();
    let mut words = name.split(|letter: char| !letter.is_alphanumeric());
    let is_time = matches!(column.kind, FieldType::Timestamp | FieldType::Date);
    !is_time && words.any(|word| TIMES_OF_DAY.contains(&word))
}

/// A time of day that does not stand beside its day, where each day has one row: it may be a duration.
fn far_clock(facts: &Facts, time: &EventTime) -> Option<String> {
    let [day_at, clock_at] = *time.parts.as_slice() else { return None };
    let (day, clock) = (facts.column(day_at)?, facts.column(clock_at)?);
    let is_pair = day.kind == FieldType::Date && clock.clock.is_some() && clock.kind == FieldType::Text;
    if !is_pair || day_at.abs_diff(clock_at) == 1 || day.distinct < facts.rows || facts.rows < 2 {
        return None;
    }
    Some(format!(
        "{} ('{}') is read as the time of day of {}, of which each row has another: if it is a duration, write {} into \
         `time` and `row_key`, and {} into `columns` of the family.",
        clock.name,
        cut(clock.first.as_deref()?),
        day.name,
        day.name,
        clock.name
    ))
}

/// Numbers from 1 on that are likely of half or quarter hours of a day.
fn periods(facts: &Facts, time: &EventTime) -> Option<String> {
    let numbers = |column: &&Column| {
        let is_named = column.words().iter().any(|word| PERIODS.contains(&word.as_str()));
        is_named && column.is_natural() && column.nulls == 0
    };
    let column = facts.columns.iter().find(numbers)?;
    let (least, most) = (column.whole.iter().flatten().min()?, column.whole.iter().flatten().max()?);
    let (what, minutes) = match most {
        23..=25 => ("hour", 60),
        46..=50 => ("half-hour", 30),
        92..=100 => ("quarter-hour", 15),
        _ => return None,
    };
    if *least != 1 {
        return None;
    }
    let (day, number) = (identifier(&time.name), identifier(&column.name));
    Some(format!(
        "{} gives only the day, and {} is {least} to {most}: if it numbers each {what}, `derive` puts both together: \
         to_timestamp_seconds(cast(date_part('epoch', {day}) as bigint) + {} * ({number} - 1)).",
        time.name,
        column.name,
        minutes * 60
    ))
}
