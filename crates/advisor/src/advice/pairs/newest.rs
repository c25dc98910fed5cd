//! A table of the newest row of each entity.

use tidetable_job::workload::{Need, Query};

use super::pairing::{Pairing, Second, SecondTable, TableLoad, event_bytes, serves};
use crate::cost::{KIB, QueryLoad};
use crate::growth::{KeyShape, QueryBounds};
use crate::lint::limits::{row_writes, writes_text};
use crate::queries::Asked;

/// The tables of the newest rows of a layout, one for each key that a query wants.
pub(super) fn newest(pairing: &Pairing<'_>, at: usize) -> Vec<SecondTable> {
    let mut keys: Vec<Vec<String>> = Vec::new();
    for (query, answer) in pairing.asked(at) {
        let asked = answer.asked.as_ref().filter(|asked| wants_newest(query, asked));
        let key = asked.map(|asked| pairing.columns.newest_key(&asked.bounds)).unwrap_or_default();
        if !key.is_empty() && !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys.into_iter().filter_map(|key| newest_by(pairing, at, key)).collect()
}

/// Whether a query wants the newest row, or that of each entity, whenever it was written. A table of these keeps one row: it has
/// no second newest, and none of an earlier time.
fn wants_newest(query: &Query, asked: &Asked) -> bool {
    query.newest && query.limit.is_none_or(|limit| limit == 1) && !asked.bounds.is_ended
}

/// The newest row of each value of the columns `key`, which each write replaces.
fn newest_by(pairing: &Pairing<'_>, at: usize, key: Vec<String>) -> Option<SecondTable> {
    let (layout, cost) = (pairing.comparison.layouts.get(at)?, pairing.economy.costs.get(at)?);
    let (demand, measured) = (&pairing.economy.demand, &layout.measured);
    KeyShape::of(&layout.layout).step()?;

    let names: Vec<&str> = key.iter().map(String::as_str).collect();
    let entities = demand.combinations(&names);
    let event = event_bytes(measured);
    let loads = pairing.asked(at).map(|(query, answer)| {
        let asked = answer.asked.as_ref().filter(|asked| wants_newest(query, asked))?;
        let need = need(pairing, &names, query, &asked.bounds).filter(|need| serves(query, *need))?;
        let fixed: Vec<&str> = names.iter().copied().take_while(|name| asked.bounds.fixed.contains(*name)).collect();
        let rows = if need == Need::Point { 1.0 } else { entities / demand.combinations(&fixed) };
        Some(QueryLoad::new(query.per_second, 1.0, rows, rows * event))
    });

    let write_kib = (event / KIB).max(1.0);
    let kept = TableLoad {
        writes_per_second: demand.writes_per_second,
        write_kib,
        write_load: demand.writes_per_second * write_kib / pairing.prices.node.writes_per_second,
        rewrite_load: 0.0,
        stored: cost.stored.1 / demand.kept_rows.max(1.0) * entities,
    };

    // Every write of an entity replaces its one row.
    let passed = demand.busiest(&names).and_then(|rate| {
        let passed = row_writes(rate, write_kib, pairing.prices)?;
        let busiest = format!("those of the busiest {}", names.join(" and "));
        Some((passed.rule, format!("one row takes {}: {busiest}", writes_text(rate, write_kib))))
    });

    let templates = names.iter().enumerate().map(|(at, name)| pairing.columns.template(name, at == 0));
    Some(SecondTable {
        second: Second::Newest,
        name: format!("{}_newest", measured.layout),
        row_key: templates.collect::<Vec<_>>().join("#"),
        loads: loads.collect(),
        key,
        kept,
        is_whole: false,
        passed,
    })
}

/// What a query needs of the table whose key is these columns; `None` if the table cannot answer it. A row for each entity is
/// what a query wants that fixes nothing; one that fixes something else than what leads the key reads rows that it does not want.
fn need(pairing: &Pairing<'_>, key: &[&str], query: &Query, bounds: &QueryBounds) -> Option<Need> {
    // The newest row of an entity need not be the newest of those that satisfy a condition on its values.
    let fields = pairing.columns.schema.fields.iter().enumerate();
    let mut values = fields.filter(|(at, field)| {
        let is_told =
            key.iter().any(|name| *name == field.name || pairing.columns.profile.is_within(name, &field.name));
        *at != pairing.columns.schema.time && !is_told
    });
    if values.any(|(_, field)| names_column(&query.predicate, &field.name)) {
        return None;
    }
    if key.iter().all(|name| bounds.fixed.contains(*name)) {
        return (query.limit == Some(1)).then_some(Need::Point);
    }
    let is_led = key.first().is_some_and(|name| bounds.fixed.contains(*name));
    Some(if is_led || bounds.fixed.is_empty() { Need::Range } else { Need::Scan })
}

/// Whether a predicate names a column, as far as its words tell.
fn names_column(predicate: &str, column: &str) -> bool {
    predicate.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == column)
}
