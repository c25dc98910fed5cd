//! Writes the query of the export: a summary per entity if it has many readings a day, otherwise the readings.

use tidetable_layout::FieldType;

use crate::scaffold::facts::Column;
use crate::scaffold::identifier::identifier;
use crate::scaffold::layout::Per;
use crate::scaffold::write::Draft;

/// Most columns that are summarised.
const MEASURES: usize = 4;

/// The query of the export.
pub(crate) struct Query {
    pub sql: String,
    /// Whether it is a summary.
    pub summary: bool,
}

pub(crate) fn of(draft: &Draft<'_>) -> Query {
    let Draft { facts, key, plan, time, table, .. } = draft;
    let entity: Vec<String> =
        key.entity.iter().filter_map(|at| facts.columns.get(*at)).map(|column| identifier(column.key_name())).collect();
    let measures: Vec<&Column> =
        plan.values.iter().filter_map(|at| facts.columns.get(*at)).filter(|column| measures(column)).collect();
    let summary = plan.often && !measures.is_empty();
    if !summary {
        let ties = key.ties.iter().filter_map(|at| facts.columns.get(*at)).map(|column| identifier(column.key_name()));
        let when = (!time.is_none()).then(|| identifier(&time.name));
        let order = entity.iter().cloned().chain(when).chain(ties).collect::<Vec<_>>().join(", ");
        let what = match plan.per {
            Per::Day => "The readings of one day",
            Per::Month => "The readings of one month",
            Per::Query => "All rows",
        };
        let sql = format!("-- {what}, in the order of the row keys.\nSELECT * FROM {table} ORDER BY {order}\n");
        return Query { sql, summary };
    }
    let each = if entity.is_empty() { String::new() } else { format!(" per {}", key_names(draft)) };
    let mut sql =
        format!("-- One row{each}: the number of readings of the day, and the range and mean of its values.\n");
    if measures.len() > MEASURES {
        let others: Vec<_> = measures.iter().skip(MEASURES).map(|column| column.name.as_str()).collect();
        sql.push_str(&format!("-- Left out here: {}.\n", others.join(", ").replace(['\n', '\r'], " ")));
    }
    sql.push_str("SELECT\n");
    for name in &entity {
        sql.push_str(&format!("  {name},\n"));
    }
    sql.push_str("  COUNT(*) AS readings");
    for column in measures.iter().take(MEASURES) {
        let name = identifier(&column.name);
        let alias = |what: &str| identifier(&format!("{what}_{}", column.name));
        sql.push_str(&format!(
            ",\n  MIN({name}) AS {},\n  AVG({name}) AS {},\n  MAX({name}) AS {}",
            alias("min"),
            alias("avg"),
            alias("max")
        ));
    }
    sql.push_str(&format!("\nFROM {table}\n"));
    if !entity.is_empty() {
        let list = entity.join(", ");
        sql.push_str(&format!("GROUP BY {list}\nORDER BY {list}\n"));
    }
    Query { sql, summary }
}

fn key_names(draft: &Draft<'_>) -> String {
    let names =
        draft.key.entity.iter().filter_map(|at| draft.facts.columns.get(*at)).map(|column| column.name.as_str());
    names.collect::<Vec<_>>().join(" and ").replace(['\n', '\r'], " ")
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
