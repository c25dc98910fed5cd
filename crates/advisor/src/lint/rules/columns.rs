//! Families, qualifiers and values.

use tidetable_layout::error::Place;
use tidetable_layout::outline::FieldForm;
use tidetable_layout::schema::QualifierKind;

use crate::facts::{RejectKind, TableFacts, shown};
use crate::lint::found::Found;
use crate::lint::rule::{Check, DESIGN, GARBAGE, Needs, QUOTAS, Rule, Severity};
use crate::lint::subject::TableSubject;

/// Bytes of family and qualifier from which on names weigh more than most values.
const NAME_ADVISED: f64 = 20.0;
/// Part of the bytes that messages must save.
const MESSAGE_SAVES: f64 = 0.2;
/// Share of names in the bytes of a table.
const NAME_SHARE: f64 = 0.3;

pub(super) static FAMILIES: Rule = Rule {
    id: "C1",
    severity: Severity::Warn,
    needs: Needs::Job,
    title: "over 100 families in a table",
    reason: "Each family is stored apart, and reads that want many of them become slower; columns that are read together go into one",
    source: QUOTAS,
    check: Check::Table(families),
};

fn families(table: &TableSubject<'_>) -> Vec<Found> {
    let (count, advised) = (table.table.spec.families.len() as u64, table.prices.limits.families);
    if count <= advised {
        return Vec::new();
    }
    let found = Found::new(Severity::Warn, table.at(), format!("{count} families"));
    vec![found.measure(count as f64, advised as f64, "families")]
}

pub(super) static LONG_NAMES: Rule = Rule {
    id: "C2",
    severity: Severity::Warn,
    needs: Needs::Job,
    title: "names of families and columns over 30 % of the bytes; without data a note if they have over 20 bytes a cell",
    reason: "The names of family and column are stored and sent with every cell, so short ones save storage and transfer",
    source: DESIGN,
    check: Check::Table(long_names),
};

fn long_names(table: &TableSubject<'_>) -> Vec<Found> {
    match table.facts.filter(|facts| facts.bytes > 0) {
        Some(facts) => names_of_bytes(table, facts),
        None => names_of_columns(table),
    }
}

/// The share of names in the bytes of the data.
fn names_of_bytes(table: &TableSubject<'_>, facts: &TableFacts) -> Vec<Found> {
    let share = facts.name_bytes as f64 / facts.bytes as f64;
    if share <= NAME_SHARE {
        return Vec::new();
    }
    // A letter for the family and one for the column.
    let saved = facts.name_bytes.saturating_sub(2 * facts.cells) as f64 / facts.bytes as f64;
    let message = format!(
        "{:.0} % of the bytes are names of families and columns; names of one letter would save {:.0} %",
        100.0 * share,
        100.0 * saved
    );
    vec![Found::new(Severity::Warn, table.at(), message).measure(share, NAME_SHARE, "of the bytes")]
}

/// The length of names, as the job file has them.
fn names_of_columns(table: &TableSubject<'_>) -> Vec<Found> {
    let groups = table.table.layout.stored().groups.iter().filter(|group| group.qualifier == QualifierKind::Constant);
    let mut names: Vec<(String, usize)> = Vec::new();
    for group in groups {
        match &group.packed {
            Some(packed) => names.push(name_of(&packed.family, &packed.qualifier)),
            None => names.extend(group.columns.iter().map(|column| name_of(&column.family, &column.qualifier))),
        }
    }
    let Some((longest, _)) = names.iter().max_by_key(|(_, bytes)| *bytes) else { return Vec::new() };
    let mean = names.iter().map(|(_, bytes)| *bytes as f64).sum::<f64>() / names.len() as f64;
    if mean <= NAME_ADVISED {
        return Vec::new();
    }
    let message = format!("each cell carries {mean:.1} bytes of names on average, the longest `{longest}`");
    vec![Found::new(Severity::Info, table.at(), message).measure(mean, NAME_ADVISED, "bytes")]
}

fn name_of(family: &str, qualifier: &[u8]) -> (String, usize) {
    (format!("{family}:{}", String::from_utf8_lossy(qualifier)), family.len() + qualifier.len())
}

pub(super) static ROWS_FOR_COLUMNS: Rule = Rule {
    id: "C8",
    severity: Severity::Warn,
    needs: Needs::Job,
    title: "a numbered row for each item of an entity, where a column for each would do",
    reason: "Items of one entity that are read together can be columns of its row, with the item as qualifier: one row is read at \
             once and changed as a whole, and its key is not repeated for every item",
    source: DESIGN,
    check: Check::Table(rows_for_columns),
};

fn rows_for_columns(table: &TableSubject<'_>) -> Vec<Found> {
    let [.., entity, number] = table.fields() else { return Vec::new() };
    let numbered = number.is_integer() && matches!(number.form, FieldForm::Text | FieldForm::ZeroPad(_));
    // Columns with a name of their own, read together; the number itself says nothing about the item.
    let constant = table.table.layout.stored().groups.iter().all(|group| group.qualifier == QualifierKind::Constant);
    if !numbered || !constant || table.has_time() || entity.is_integer() {
        return Vec::new();
    }
    let message = format!(
        "`{}` only numbers the items of `{}`: make the item the qualifier of a column",
        number.name, entity.name
    );
    vec![Found::new(Severity::Warn, table.key_at(number.span.clone()), message)]
}

pub(super) static QUALIFIER_LENGTH: Rule = Rule {
    id: "C3",
    severity: Severity::Error,
    needs: Needs::Data,
    title: "a qualifier over 16 KiB, the limit",
    reason: "A write with a longer qualifier is refused",
    source: QUOTAS,
    check: Check::Table(qualifier_length),
};

fn qualifier_length(table: &TableSubject<'_>) -> Vec<Found> {
    let rejects = table.facts.iter().flat_map(|facts| &facts.rejects);
    let found = rejects.filter(|reject| reject.kind == RejectKind::Qualifier).map(|reject| {
        let message = format!("{} rows are rejected: their qualifier has over 16 KiB", reject.rows);
        Found::new(Severity::Error, table.at(), message).measure(reject.rows as f64, 0.0, "rows")
    });
    found.collect()
}

pub(super) static MESSAGE: Rule = Rule {
    id: "C4",
    severity: Severity::Info,
    needs: Needs::Data,
    title: "cells of one event that would take 20 % fewer bytes as one message",
    reason: "Row key, family, qualifier and timestamp are stored with every cell; a message in one cell has them once, but is read, \
             written and filtered as a whole",
    source: DESIGN,
    check: Check::Table(message),
};

fn message(table: &TableSubject<'_>) -> Vec<Found> {
    let groups = &table.table.layout.stored().groups;
    // Messages are what it would become, and aggregates are merged cell by cell.
    let cells = groups.iter().all(|group| group.packed.is_none() && !group.has_aggregates());
    let Some(facts) = table.facts.filter(|facts| cells && facts.bytes > 0) else { return Vec::new() };
    let saved = 1.0 - facts.message_bytes as f64 / facts.bytes as f64;
    if facts.message_bytes as f64 > (1.0 - MESSAGE_SAVES) * facts.bytes as f64 {
        return Vec::new();
    }
    let message = format!(
        "{} bytes as cells, {} with a message for each event: {:.0} % less",
        facts.bytes,
        facts.message_bytes,
        100.0 * saved
    );
    vec![Found::new(Severity::Info, table.at(), message).measure(saved, MESSAGE_SAVES, "of the bytes")]
}

pub(super) static COLLECTED: Rule = Rule {
    id: "C5",
    severity: Severity::Error,
    needs: Needs::Data,
    title: "garbage collection that drops readings of a bucket of time",
    reason: "In a bucket each reading is a version of its column, so a rule of fewer versions than the bucket has readings drops the \
             rest of them",
    source: GARBAGE,
    check: Check::Table(collected),
};

fn collected(table: &TableSubject<'_>) -> Vec<Found> {
    let Some(row) = table.facts.map(|facts| &facts.longest_row).filter(|_| table.has_time()) else { return Vec::new() };
    if table.table.layout.stored().upsert {
        return Vec::new();
    }

    let families = table.table.spec.families.iter().enumerate();
    let families = families.filter(|(_, family)| table.is_versioned(&family.name));
    let found = families.filter_map(|(index, family)| {
        let kept = table.newest_kept(&family.name).filter(|kept| (*kept as u64) < row.seconds)?;
        let message =
            format!("a row of `{}` has readings of {} times, and {kept} of them stay", family.name, row.seconds);
        let at = table.table.places.of(Place::Family(index), 0..family.name.len());
        let edit = table.with_gc(index, "never");
        let found = Found::new(Severity::Error, at, message).edit(edit).keys([shown(&row.key)]);
        Some(found.measure(row.seconds as f64, kept as f64, "versions"))
    });
    found.collect()
}
