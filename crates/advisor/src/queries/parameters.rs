//! The parameters of queries: `$name` in predicates.

use chrono::{DateTime, Datelike};
use tidetable_job::workload::{Params, Query, Workload};
use tidetable_layout::SourceSchema;
use tidetable_layout::time::{DAY, HOUR, MINUTE, SECOND};

use crate::error::{AdvisorError, Result};
use crate::trial::{Candidate, Draw, DrawSpec, time_literal};

/// The rows to draw for each query.
///
/// # Errors
/// [`AdvisorError::Parameter`] if one has no value.
pub fn draw_specs(queries: &[Query], schema: &SourceSchema) -> Result<Vec<DrawSpec>> {
    queries.iter().map(|query| draw_spec(query, schema)).collect()
}

fn draw_spec(query: &Query, schema: &SourceSchema) -> Result<DrawSpec> {
    let Params::Data { draw, seed, age } = &query.params else {
        predicates(query, &[], &[])?;
        return Ok(DrawSpec::default());
    };
    let mut columns: Vec<String> = Vec::new();
    for name in names(&query.predicate) {
        let is_column = schema.fields.iter().any(|field| field.name == name);
        if !is_column && start_of(name, 0).is_none() {
            return Err(no_value(query, name));
        }
        if is_column && !columns.iter().any(|column| column == name) {
            columns.push(name.to_owned());
        }
    }
    Ok(DrawSpec { columns, most: *draw, seed: *seed, age: *age })
}

/// As `profiled_columns`, of the sources and row keys of layouts; none without a workload.
pub fn profiled_of(candidates: &[Candidate], workload: Option<&Workload>) -> Vec<String> {
    let keys: Vec<String> = candidates.iter().flat_map(Candidate::key_columns).collect();
    let schemas = candidates.iter().map(|candidate| &candidate.schema);
    workload.map(|workload| profiled_columns(schemas, &keys, workload)).unwrap_or_default()
}

/// The columns of sources whose values are counted, since growth depends on them: those that a query of the workload or its scale
/// names, those that a query wants, and those of `keys`.
pub(crate) fn profiled_columns<'a>(
    schemas: impl IntoIterator<Item = &'a SourceSchema>,
    keys: &[String],
    workload: &Workload,
) -> Vec<String> {
    let mut profiled: Vec<String> = Vec::new();
    for schema in schemas {
        for (at, field) in schema.fields.iter().enumerate() {
            let name = &field.name;
            let is_asked =
                workload.queries.iter().any(|query| query.predicate.contains(name) || query.columns.contains(name));
            let is_scaled = workload.scale.entities.iter().any(|(column, _)| column == name);
            if at != schema.time && (is_asked || is_scaled || keys.contains(name)) && !profiled.contains(name) {
                profiled.push(name.clone());
            }
        }
    }
    profiled
}

/// The predicates of a query: one for each draw, whose values are of `columns`, or for each place of the lists.
///
/// # Errors
/// [`AdvisorError::Parameter`] if a parameter has no value.
pub(super) fn predicates(query: &Query, columns: &[String], draws: &[Draw]) -> Result<Vec<String>> {
    let mut predicates = Vec::new();
    match &query.params {
        Params::Data { .. } => {
            // A predicate without parameters is the same for every row.
            let most = if names(&query.predicate).next().is_some() { draws.len() } else { 1 };
            for draw in draws.iter().take(most) {
                predicates.push(substitute(&query.predicate, |name| {
                    let column = columns.iter().position(|column| column == name);
                    let value = column.and_then(|at| draw.literals.get(at).cloned());
                    value.or_else(|| start_of(name, draw.time).map(time_literal)).ok_or_else(|| no_value(query, name))
                })?);
            }
        }
        Params::Lists(lists) => {
            let length = lists.first().map_or(1, |(_, values)| values.len());
            for place in 0..length {
                predicates.push(substitute(&query.predicate, |name| {
                    let list = lists.iter().find(|(list, _)| list == name);
                    list.and_then(|(_, values)| values.get(place).cloned()).ok_or_else(|| no_value(query, name))
                })?);
            }
        }
    }
    Ok(predicates)
}

fn no_value(query: &Query, name: &str) -> AdvisorError {
    AdvisorError::Parameter { query: query.name.clone(), name: name.to_owned() }
}

/// The start of the unit of time that holds `time`, microseconds; `None` if there is no such unit.
fn start_of(unit: &str, time: i64) -> Option<i64> {
    let into_unit = match unit {
        "second" => time.rem_euclid(SECOND),
        "minute" => time.rem_euclid(MINUTE),
        "hour" => time.rem_euclid(HOUR),
        "day" => time.rem_euclid(DAY),
        // 1970-01-01 was a Thursday; weeks begin on Monday.
        "week" => (time + 3 * DAY).rem_euclid(7 * DAY),
        "month" => time.rem_euclid(DAY) + i64::from(DateTime::from_timestamp_micros(time)?.day0()) * DAY,
        _ => return None,
    };
    Some(time - into_unit)
}

/// Parameters of a predicate, in its order.
fn names(predicate: &str) -> impl Iterator<Item = &str> {
    pieces(predicate).filter_map(|piece| if let Piece::Name(name) = piece { Some(name) } else { None })
}

/// A predicate with the literals that `value` has for its parameters, or the first error of `value`.
fn substitute(predicate: &str, mut value: impl FnMut(&str) -> Result<String>) -> Result<String> {
    let mut filled = String::new();
    for piece in pieces(predicate) {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Name(name) => filled.push_str(&value(name)?),
        }
    }
    Ok(filled)
}

enum Piece<'a> {
    Text(&'a str),
    Name(&'a str),
}

/// SQL text, and the names after `$` that are not in quotes.
fn pieces(mut rest: &str) -> impl Iterator<Item = Piece<'_>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(name) = rest.strip_prefix('$') {
            let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
            let (name, after) = name.split_at(end);
            rest = after;
            return Some(Piece::Name(name));
        }

        let mut quote = None;
        let end = rest.char_indices().find(|(_, c)| match quote {
            Some(open) => {
                if *c == open {
                    quote = None;
                }
                false
            }
            None => {
                if matches!(c, '\'' | '"') {
                    quote = Some(*c);
                }
                *c == '$'
            }
        });
        let (text, after) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
        rest = after;
        Some(Piece::Text(text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_in_quotes_are_text() {
        let predicate = "a = $a and b = '$b''$c' and \"$d\" < $day";
        assert_eq!(names(predicate).collect::<Vec<_>>(), ["a", "day"]);
        let filled = substitute(predicate, |name| Ok(format!("<{name}>"))).unwrap();
        assert_eq!(filled, "a = <a> and b = '$b''$c' and \"$d\" < <day>");
        assert_eq!(names("$").collect::<Vec<_>>(), [""]);
    }

    #[test]
    fn units_of_time_begin_where_calendars_say() {
        // 2021-03-05T12:34:56.5Z, a Friday.
        let time = 1_614_947_696_500_000;
        for (unit, start) in [
            ("second", "2021-03-05T12:34:56"),
            ("minute", "2021-03-05T12:34:00"),
            ("hour", "2021-03-05T12:00:00"),
            ("day", "2021-03-05T00:00:00"),
            ("week", "2021-03-01T00:00:00"),
            ("month", "2021-03-01T00:00:00"),
        ] {
            assert_eq!(start_of(unit, time).map(time_literal), Some(format!("TIMESTAMP '{start}.000000Z'")), "{unit}");
        }
        assert_eq!(start_of("year", time), None);
    }
}
