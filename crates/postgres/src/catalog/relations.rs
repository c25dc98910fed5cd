//! Schemas and tables of the store, with object ids that stay as long as their names do.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use tidetable_sql::{CATALOG_OIDS, TableColumns};
use xxhash_rust::xxh3::xxh3_64;

use crate::statement::SCHEMAS;
use crate::types::{Column, columns};

/// Relations of a schema at most.
const SPAN: i64 = 1_000_000;
/// Object id of the first schema of a store; the others follow it.
const FIRST_SCHEMA: i64 = 16_385;

/// A table of the store.
#[derive(Debug, Clone)]
pub(super) struct Relation {
    pub(super) oid: i64,
    pub(super) schema: String,
    pub(super) name: String,
    /// Its columns, each with whether it may be null.
    pub(super) columns: Vec<(Column, bool)>,
}

impl Relation {
    /// Whether it shows a table of the store in another way: as its cells, or its rows.
    pub(super) fn is_view(&self) -> bool {
        matches!(self.schema.as_str(), "cells" | "rows")
    }

    /// Object id of its schema.
    pub(super) fn schema_oid(&self) -> i64 {
        schema_oid(&self.schema)
    }
}

/// The schemas with their object ids.
pub(super) fn schemas() -> impl Iterator<Item = (&'static str, i64)> {
    SCHEMAS.iter().map(|name| (*name, schema_oid(name)))
}

fn schema_oid(schema: &str) -> i64 {
    let place = SCHEMAS.iter().position(|known| *known == schema).unwrap_or(SCHEMAS.len());
    FIRST_SCHEMA + i64::try_from(place).unwrap_or_default()
}

/// The object ids that tables of a schema have.
pub(super) fn oids_of(schema: &str) -> Range<i64> {
    let start = CATALOG_OIDS + SPAN * (schema_oid(schema) - FIRST_SCHEMA);
    start..start + SPAN
}

/// The tables with object ids: a hash of the name, so that an id means the same table when others come and go.
pub(super) fn relations(tables: Vec<TableColumns>) -> Vec<Relation> {
    let mut taken = HashSet::new();
    let mut found = Vec::with_capacity(tables.len());
    for TableColumns { schema, name, columns: schema_of_table } in tables {
        let base = oids_of(&schema).start;
        let mut place = i64::try_from(xxh3_64(name.as_bytes()) % SPAN.unsigned_abs()).unwrap_or_default();
        while !taken.insert(base + place) {
            place = (place + 1) % SPAN;
        }

        let columns = schema_of_table.map(|schema| {
            let nullable = schema.fields().iter().map(|field| field.is_nullable());
            columns(&schema).into_iter().zip(nullable).collect()
        });
        found.push(Relation { oid: base + place, schema, name, columns: columns.unwrap_or_default() });
    }
    found
}

/// Object ids by schema and name.
pub(super) fn by_name(relations: &[Relation]) -> HashMap<(String, String), i64> {
    relations.iter().map(|relation| ((relation.schema.clone(), relation.name.clone()), relation.oid)).collect()
}

/// Names of tables and columns that are not in lower case.
pub(super) fn cased_words(relations: &[Relation]) -> HashSet<String> {
    let columns = relations.iter().flat_map(|relation| relation.columns.iter().map(|(column, _)| &column.name));
    let names = relations.iter().map(|relation| &relation.name).chain(columns);
    names.filter(|name| name.to_lowercase() != **name).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_stay_when_other_tables_come() {
        let table =
            |schema: &str, name: &str| TableColumns { schema: schema.to_owned(), name: name.to_owned(), columns: None };
        let few = relations(vec![table("records", "B"), table("cells", "B")]);
        let many =
            relations(vec![table("records", "A"), table("records", "B"), table("cells", "A"), table("cells", "B")]);
        assert_eq!((few[0].oid, few[1].oid), (many[1].oid, many[3].oid));
        assert!(oids_of("records").contains(&few[0].oid) && oids_of("cells").contains(&few[1].oid));
        assert_eq!(few[1].oid - few[0].oid, SPAN);
    }
}
