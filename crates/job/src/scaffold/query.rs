//! Writes the query of the export: a summary per entity if it has many readings a day, otherwise the readings.

use tidetable_layout::FieldType;

use crate::scaffold::draft::Draft;
use crate::scaffold::facts::Column;
use crate::scaffold::identifier::identifier;
use crate::scaffold::layout::Per;

const MEASURES: usize = 4;

pub(crate) struct Query {
    pub sql: String,
    pub summary: bool,
}

/// Writes the query of a draft.
pub(crate) fn of(draft: &Draft<'_>) -> Query {
    let Draft { facts, key, plan, .. } = draft;
    let mut entity: Vec<String> = facts.at(&key.entity).map(|column| identifier(column.key_name())).collect();
    entity.extend(key.series.as_ref().map(|series| identifier(&series.name)));
    let measures: Vec<&Column> = facts.at(&plan.values).filter(|column| measures(column)).collect();

    let summary = plan.often && !measures.is_empty();
    let sql = if summary { summary_of(draft, &entity, &measures) } else { readings(draft, entity) };
    Query { sql, summary }
}

/// All readings, in the order of their keys.
fn readings(draft: &Draft<'_>, entity: Vec<String>) -> String {
    let Draft { facts, key, plan, time, table, .. } = draft;
    let mut order = entity;
    order.extend((!time.is_none()).then(|| identifier(&time.name)));
    order.extend(facts.at(&key.ties).map(|column| identifier(column.key_name())));

    let what = match plan.per {
        Per::Day => "The readings of one day",
        Per::Month => "The readings of one month",
        Per::Query => "All rows",
    };
    format!("-- {what}, in the order of the row keys.\nSELECT * FROM {table} ORDER BY {}\n", order.join(", "))
}

/// One row for each entity, with the range and the mean of its values.
fn summary_of(draft: &Draft<'_>, entity: &[String], measures: &[&Column]) -> String {
    let each = if entity.is_empty() { String::new() } else { format!(" per {}", key_names(draft)) };
    let mut sql =
        format!("-- One row{each}: the number of readings of the day, and the range and mean of its values.\n");
    if measures.len() > MEASURES {
        let others: Vec<_> = measures.iter().skip(MEASURES).map(|column| column.name.as_str()).collect();
        sql.push_str(&format!("-- Left out here: {}.\n", others.join(", ").replace(['\n', '\r'], " ")));
    }

    sql.push_str("SELECT\n");
    for name in entity {
        sql.push_str(&format!("  {name},\n"));
    }
    sql.push_str("  COUNT(*) AS readings");
    for column in measures.iter().take(MEASURES) {
        let name = identifier(&column.name);
        let [min, avg, max] = ["min", "avg", "max"].map(|what| identifier(&format!("{what}_{}", column.name)));
        sql.push_str(&format!(",\n  MIN({name}) AS {min},\n  AVG({name}) AS {avg},\n  MAX({name}) AS {max}"));
    }

    sql.push_str(&format!("\nFROM {}\n", draft.table));
    if !entity.is_empty() {
        let list = entity.join(", ");
        sql.push_str(&format!("GROUP BY {list}\nORDER BY {list}\n"));
    }
    sql
}

/// The columns of the entity, in a sentence on one line.
fn key_names(draft: &Draft<'_>) -> String {
    let series = draft.key.series.iter().map(|series| series.name.as_str());
    let names: Vec<_> = draft.facts.at(&draft.key.entity).map(|column| column.name.as_str()).chain(series).collect();
    names.join(" and ").replace(['\n', '\r'], " ")
}

/// Whether it has numbers that are neither names nor parts of a date.
fn measures(column: &Column) -> bool {
    const CALENDAR: [&str; 9] = ["year", "month", "day", "hour", "minute", "second", "week", "id", "code"];
    let spoken = column.words();
    column.is_number()
        && !matches!(column.kind, FieldType::Text)
        && !spoken.iter().any(|word| CALENDAR.contains(&word.as_str()))
        && column.nulls < column.ids.len()
}
