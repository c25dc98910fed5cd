//! The order of the columns in a row key.

use std::collections::BTreeMap;

use tidetable_layout::outline::FieldForm;

use crate::lint::found::Found;
use crate::lint::rule::{Check, DESIGN, Needs, Rule, Severity, TIME_SERIES};
use crate::lint::subject::{JobSubject, TableSubject};
use crate::lint::words;

use super::tables::{alike, chosen_value};

pub(super) static TIME_FIRST: Rule = Rule {
    id: "K1",
    severity: Severity::Error,
    needs: Needs::Job,
    title: "the row key begins with a time, also reversed or behind a literal",
    reason: "Rows are kept in the order of their keys, so what is written at one time goes to one range of keys, and one \
             node serves it while the others wait",
    source: TIME_SERIES,
    check: Check::Table(time_first),
};

fn time_first(table: &TableSubject<'_>) -> Vec<Found> {
    let fields = table.fields();
    let Some(first) = fields.first().filter(|first| first.is_time()) else { return Vec::new() };
    let is_event_time = first.name == table.time();
    let times = fields.iter().take_while(|field| field.is_time() && field.name == first.name).count();
    let (times, others) = fields.split_at(times);

    let mut order = match (others.is_empty(), table.promotable()) {
        (false, _) => table.written_all(others),
        (true, Some(promoted)) => vec![promoted],
        (true, None) => vec![format!("{{salt({}, 3)}}", first.name)],
    };
    order.extend(table.written_all(times));

    let severity = if is_event_time { Severity::Error } else { Severity::Warn };
    let end = if matches!(first.form, FieldForm::MsReversed) { "start" } else { "end" };
    let message = if is_event_time {
        format!("`{}` comes first, so every write lands at the {end} of the table", first.name)
    } else {
        format!("`{}` comes first: if it grows with the clock, every write lands at one place", first.name)
    };
    vec![Found::new(severity, table.key_at(first.span.clone()), message).edit(table.with_order(&order))]
}

pub(super) static SALT: Rule = Rule {
    id: "K9",
    severity: Severity::Warn,
    needs: Needs::Job,
    title: "the row key has a salt: a range of time is as many ranges as it has values; silent if each query is one range",
    reason: "A salt spreads writes, and each question about a range of time is then asked once for each of its values; a \
             column that is asked for spreads them as well and is read as one range",
    source: TIME_SERIES,
    check: Check::Table(salt),
};

fn salt(table: &TableSubject<'_>) -> Vec<Found> {
    let salted = table.fields().iter().filter_map(|field| match field.form {
        FieldForm::Salt(count) => Some((field, count)),
        _ => None,
    });
    let queries = table.facts.map(|facts| facts.queries.as_slice()).unwrap_or_default();
    let widest = queries.iter().max_by_key(|query| (query.ranges, std::cmp::Reverse(&query.name)));
    if widest.is_some_and(|query| query.ranges <= 1) {
        return Vec::new();
    }

    let found = salted.map(|(field, count)| {
        let at = table.key_at(field.span.clone());
        let is_time = field.name == table.time();
        let promoted = table.promotable().filter(|_| is_time);
        let message = match &promoted {
            Some(_) => {
                format!("a range of time is {count} ranges, and a column of the source could stand in for the salt")
            }
            None if is_time => format!("a range of time is {count} ranges"),
            None => format!("a range over `{}` is {count} ranges; one value of it is one range", field.name),
        };

        let (message, ranges) = match widest {
            Some(query) => {
                (format!("{message}; the query `{}` reads {}", query.name, query.ranges), query.ranges as f64)
            }
            None => (message, f64::from(count)),
        };

        let severity = if promoted.is_some() { Severity::Warn } else { Severity::Info };
        let edit = promoted.and_then(|promoted| table.with_field(field, &promoted));
        Found::new(severity, at, message).measure(ranges, 1.0, "ranges a query").edit(edit)
    });
    found.collect()
}

pub(super) static REVERSED_TIME: Rule = Rule {
    id: "K10",
    severity: Severity::Warn,
    needs: Needs::Job,
    title: "a reversed time, which serves only questions about the newest rows",
    reason: "Reversed times put the newest row of an entity first, which helps where the newest rows are the main question; \
             all others read such keys with more difficulty, people too",
    source: TIME_SERIES,
    check: Check::Table(reversed_time),
};

fn reversed_time(table: &TableSubject<'_>) -> Vec<Found> {
    let queries = table.facts.map(|facts| facts.queries.as_slice()).unwrap_or_default();
    let newest = queries.iter().find(|query| query.newest);

    let found = table.fields().iter().filter_map(|field| {
        let at = table.key_at(field.span.clone());
        let (name, back) = (&field.name, format!("{{{}:ms}}", field.name));
        let is_reversed = matches!(field.form, FieldForm::MsReversed);
        let ends_with_time = table.fields().last() == Some(field) && matches!(field.form, FieldForm::Epoch);

        let (severity, message, text) = match (is_reversed, newest) {
            (true, None) if queries.is_empty() => (
                Severity::Info,
                format!("`{name}` is reversed: right only if the newest rows are the main question"),
                back,
            ),
            (true, None) => (Severity::Warn, format!("`{name}` is reversed, and no query asks for the newest"), back),
            (false, Some(query)) if ends_with_time && *name == table.time() => (
                Severity::Warn,
                format!("the query `{}` wants the newest first, and `{name}` puts them last", query.name),
                format!("{{{name}:ms-reversed}}"),
            ),
            _ => return None,
        };

        // Without queries nobody knows whether it is right.
        let edit = table.with_field(field, &text).filter(|_| severity > Severity::Info);
        Some(Found::new(severity, at, message).edit(edit))
    });
    found.collect()
}

pub(super) static TENANT: Rule = Rule {
    id: "K16",
    severity: Severity::Warn,
    needs: Needs::Job,
    title: "a tenant that does not come first in the row key, or a table for each tenant",
    reason: "With the tenant first, the rows of one are a prefix: read, counted and dropped as a range, in one table for all; an \
             instance holds 1,000 tables at most",
    source: DESIGN,
    check: Check::Job(tenant),
};

fn tenant(job: &JobSubject<'_>) -> Vec<Found> {
    let mut found: Vec<Found> = job.tables.iter().filter_map(tenant_not_first).collect();
    found.extend(table_a_tenant(job));
    found
}

fn tenant_not_first(table: &TableSubject<'_>) -> Option<Found> {
    let fields = table.fields();
    let (at, tenant) = fields.iter().enumerate().find(|(_, field)| words::is_tenant(&field.name))?;
    if at == 0 {
        return None;
    }
    let others = fields.iter().filter(|field| *field != tenant);
    let order: Vec<String> = std::iter::once(tenant).chain(others).map(|field| table.written(field)).collect();
    let message = format!("`{}` tells tenants apart and is column {} of the row key", tenant.name, at + 1);
    let found = Found::new(Severity::Warn, table.key_at(tenant.span.clone()), message).edit(table.with_order(&order));
    Some(Found { table: Some(table.name().to_owned()), ..found })
}

/// Tables that differ only in the tenant whose rows they take.
fn table_a_tenant(job: &JobSubject<'_>) -> Vec<Found> {
    let mut groups: BTreeMap<String, Vec<(&TableSubject<'_>, String)>> = BTreeMap::new();
    for table in &job.tables {
        if let Some((column, value)) = chosen_value(table).filter(|(column, _)| words::is_tenant(column)) {
            let alike = job.tables.iter().position(|other| alike(other.table, table.table)).unwrap_or_default();
            groups.entry(format!("{alike} {column}")).or_default().push((table, value));
        }
    }
    let several = groups.into_values().filter(|tables| tables.len() > 1);
    let found = several.filter_map(|tables| {
        let (first, _) = tables.first()?;
        let names: Vec<&str> = tables.iter().map(|(table, _)| table.name()).collect();
        let message = format!("{} tables, one for each tenant: {}", tables.len(), names.join(", "));
        let keys = tables.iter().map(|(_, value)| value.clone());
        let found =
            Found::new(Severity::Warn, first.at(), message).measure(tables.len() as f64, 1.0, "tables").keys(keys);
        Some(Found { table: Some(first.name().to_owned()), ..found })
    });
    found.collect()
}
