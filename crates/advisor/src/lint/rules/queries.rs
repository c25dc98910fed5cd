//! What queries read of tables. Of several tables of a job a query is asked of the one that it reads least of.

use tidetable_layout::Group;
use tidetable_layout::outline::{PartContent, template_parts};
use tidetable_layout::spec::FamilySpec;

use crate::facts::{QueryFacts, Reads};
use crate::lint::found::Found;
use crate::lint::rule::{AGGREGATE, Check, DESIGN, Needs, PERFORMANCE, Rule, Severity};
use crate::lint::subject::{JobSubject, TableSubject};

/// Cells read for each value that is returned.
const READ_RATIO: u64 = 10;

/// Each query with the table that serves it best: by how much it reads, then by cells.
fn best<'s>(job: &'s JobSubject<'_>) -> Vec<(&'s TableSubject<'s>, &'s QueryFacts)> {
    let mut best: Vec<(&TableSubject<'_>, &QueryFacts)> = Vec::new();
    for table in &job.tables {
        for query in queries(table) {
            let Some(known) = best.iter_mut().find(|(_, known)| known.name == query.name) else {
                best.push((table, query));
                continue;
            };
            if (query.reads, query.cells) < (known.1.reads, known.1.cells) {
                *known = (table, query);
            }
        }
    }
    best
}

/// The queries that were asked of a table.
fn queries<'t>(table: &'t TableSubject<'_>) -> &'t [QueryFacts] {
    table.facts.map(|facts| facts.queries.as_slice()).unwrap_or_default()
}

fn of_table(table: &TableSubject<'_>, found: Found) -> Found {
    Found { table: Some(table.name().to_owned()), ..found }
}

pub(super) static SCAN: Rule = Rule {
    id: "Q1",
    severity: Severity::Error,
    needs: Needs::Queries,
    title: "a query that reads all rows of every table; an error if it reads more than its `must` allows",
    reason: "Only row keys are an index: a question that names no prefix of them reads the table, and the more the longer it is kept",
    source: DESIGN,
    check: Check::Job(scan),
};

fn scan(job: &JobSubject<'_>) -> Vec<Found> {
    let found = best(job).into_iter().filter_map(|(table, query)| {
        let severity = match query.must {
            Some(must) if query.reads > must => Severity::Error,
            None if query.reads == Reads::Scan => Severity::Warn,
            _ => return None,
        };
        let message = format!("the query `{}` reads {} of every table", query.name, query.reads.word());
        Some(of_table(table, Found::new(severity, table.whole_key(), message)))
    });
    found.collect()
}

pub(super) static READ_FOR_NOTHING: Rule = Rule {
    id: "Q2",
    severity: Severity::Warn,
    needs: Needs::Queries,
    title: "a query that reads 10 cells or more for each value it returns",
    reason: "Cells are read, filtered and billed as work of a node whether they are returned or not",
    source: PERFORMANCE,
    check: Check::Job(read_for_nothing),
};

fn read_for_nothing(job: &JobSubject<'_>) -> Vec<Found> {
    let found = best(job).into_iter().filter_map(|(table, query)| {
        // A scan is a finding of its own.
        let wasteful = query.reads < Reads::Scan && query.cells > 0 && query.cells >= READ_RATIO * query.values.max(1);
        if !wasteful {
            return None;
        }
        let message = format!("the query `{}` reads {} cells for {} values", query.name, query.cells, query.values);
        let ratio = query.cells as f64 / query.values.max(1) as f64;
        let found = Found::new(Severity::Warn, table.whole_key(), message);
        Some(of_table(table, found.measure(ratio, READ_RATIO as f64, "cells a value")))
    });
    found.collect()
}

pub(super) static ATOMIC: Rule = Rule {
    id: "R5",
    severity: Severity::Warn,
    needs: Needs::Queries,
    title: "a query that must see one instant and reads several rows",
    reason: "Only a row is written and read as a whole: of two rows a reader may see one before a change and one after it",
    source: DESIGN,
    check: Check::Job(atomic),
};

fn atomic(job: &JobSubject<'_>) -> Vec<Found> {
    let found = best(job).into_iter().filter(|(_, query)| query.atomic && query.rows > 1).map(|(table, query)| {
        let message = format!("the query `{}` is atomic, and reads {} rows", query.name, query.rows);
        of_table(table, Found::new(Severity::Warn, table.whole_key(), message).measure(query.rows as f64, 1.0, "rows"))
    });
    found.collect()
}

pub(super) static AGGREGATES: Rule = Rule {
    id: "C7",
    severity: Severity::Info,
    needs: Needs::Queries,
    title: "single readings are kept, and all queries want one aggregate of them",
    reason: "A family that aggregates merges what is written into one cell, so that the sum is read instead of made of all readings; \
             the readings themselves are then not kept",
    source: AGGREGATE,
    check: Check::Table(aggregates),
};

fn aggregates(table: &TableSubject<'_>) -> Vec<Found> {
    let queries = queries(table);
    let Some(kind) = queries.first().and_then(|query| query.aggregate) else { return Vec::new() };
    let same = queries.iter().all(|query| query.aggregate == Some(kind));
    if !same || table.table.layout.stored().groups.iter().any(Group::has_aggregates) {
        return Vec::new();
    }
    // A query that reads as many values as it wants has nothing to add up.
    let most = queries.iter().map(|query| query.values).max().unwrap_or_default();
    if most < 2 {
        return Vec::new();
    }
    let message =
        format!("every query wants the {kind} of its values: a family with `kind = \"{kind}\"` keeps only that");
    vec![Found::new(Severity::Info, table.at(), message).measure(most as f64, 1.0, "values a query")]
}

pub(super) static FAMILIES_READ: Rule = Rule {
    id: "C6",
    severity: Severity::Warn,
    needs: Needs::Queries,
    title: "a query whose columns are in several families",
    reason: "Families are stored apart, so columns that are read together are cheapest in one",
    source: DESIGN,
    check: Check::Job(families_read),
};

fn families_read(job: &JobSubject<'_>) -> Vec<Found> {
    let found = best(job).into_iter().filter_map(|(table, query)| {
        let wanted = query.columns.iter().map(|column| families_of(table, column));
        let mut wanted = wanted.filter(|families| !families.is_empty());
        let mut common = wanted.next()?;
        let mut all: Vec<&str> = common.clone();
        for families in wanted {
            common.retain(|family| families.contains(family));
            all.extend(families);
        }
        if !common.is_empty() {
            return None;
        }

        all.sort_unstable();
        all.dedup();
        let message = format!("the query `{}` reads columns of {}", query.name, all.join(" and "));
        Some(of_table(
            table,
            Found::new(Severity::Warn, table.at(), message).measure(all.len() as f64, 1.0, "families"),
        ))
    });
    found.collect()
}

/// The families of a table that hold the values of a column of the source.
fn families_of<'t>(table: &'t TableSubject<'_>, column: &str) -> Vec<&'t str> {
    let families = table.table.spec.families.iter();
    families.filter(|family| holds(family, column)).map(|family| family.name.as_str()).collect()
}

/// Whether a column of the family has the values of a column of the source.
fn holds(family: &FamilySpec, column: &str) -> bool {
    family.columns.iter().any(|own| {
        let excepted = own.except.iter().any(|except| except == column);
        let named = template_parts(&own.value).into_iter().any(|part| match part.content {
            PartContent::Field { name, .. } => name == column,
            PartContent::Literal(_) => false,
        });
        named || (own.each && !excepted)
    })
}
