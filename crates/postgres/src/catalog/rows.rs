//! Rows of `pg_catalog`.

use crate::catalog::batch::{Cell, Row, row};
use crate::catalog::relations::{Relation, schemas};
use crate::catalog::{DATABASE, OWNER, OWNER_OID};
use crate::statement::Settings;
use crate::types::{Base, Entry, TYPES};

/// Object ids that PostgreSQL has for ever.
pub(super) const CATALOG_OID: i64 = 11;
pub(super) const INFORMATION_OID: i64 = 13_000;
const HEAP: i64 = 2;
const DEFAULT_COLLATION: i64 = 100;
const DEFAULT_TABLESPACE: i64 = 1_663;
const DATABASE_OID: i64 = 16_384;
/// The number of UTF-8 among encodings.
const UTF8: i64 = 6;

/// The rows of a table; none if the store has nothing for it.
pub(super) fn rows(table: &str, relations: &[Relation], settings: &Settings) -> Vec<Row> {
    match table {
        "pg_namespace" => namespaces(),
        "pg_class" => relations.iter().map(class).collect(),
        "pg_attribute" => relations.iter().flat_map(attributes).collect(),
        "pg_type" => TYPES.iter().flat_map(types).collect(),
        "pg_database" => vec![database()],
        "pg_roles" => {
            vec![row! { oid: OWNER_OID, rolname: OWNER, rolinherit: true, rolcanlogin: true, rolconnlimit: -1_i64 }]
        }
        "pg_user" => vec![row! { usename: OWNER, usesysid: OWNER_OID }],
        "pg_am" => vec![row! { oid: HEAP, amname: "heap", amhandler: "heap_tableam_handler", amtype: "t" }],
        "pg_tables" => relations
            .iter()
            .filter(|relation| !relation.is_view())
            .map(|relation| {
                row! { schemaname: relation.schema.as_str(), tablename: relation.name.as_str(), tableowner: OWNER }
            })
            .collect(),
        "pg_views" => relations
            .iter()
            .filter(|relation| relation.is_view())
            .map(|relation| {
                row! { schemaname: relation.schema.as_str(), viewname: relation.name.as_str(), viewowner: OWNER }
            })
            .collect(),
        "pg_settings" => settings
            .all()
            .map(|(name, value)| row! { name: name, setting: value, vartype: "string", source: "default" })
            .collect(),
        "pg_tablespace" => vec![row! { oid: DEFAULT_TABLESPACE, spcname: "pg_default", spcowner: OWNER_OID }],
        "pg_language" => vec![row! { oid: 14_i64, lanname: "sql", lanowner: OWNER_OID, lanpltrusted: true }],
        "pg_collation" => vec![row! {
            oid: DEFAULT_COLLATION, collname: "default", collnamespace: CATALOG_OID, collowner: OWNER_OID, collprovider: "d",
            collisdeterministic: true, collencoding: -1_i64,
        }],
        "pg_stat_user_tables" => relations
            .iter()
            .filter(|relation| !relation.is_view())
            .map(|relation| {
                row! { relid: relation.oid, schemaname: relation.schema.as_str(), relname: relation.name.as_str() }
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn namespaces() -> Vec<Row> {
    let system = [("pg_catalog", CATALOG_OID), ("information_schema", INFORMATION_OID)];
    system
        .into_iter()
        .chain(schemas())
        .map(|(name, oid)| row! { oid: oid, nspname: name, nspowner: OWNER_OID })
        .collect()
}

fn class(relation: &Relation) -> Row {
    let columns = i64::try_from(relation.columns.len()).unwrap_or_default();
    let kind = if relation.is_view() { "v" } else { "r" };
    row! {
        oid: relation.oid,
        relname: relation.name.as_str(),
        relnamespace: relation.schema_oid(),
        relowner: OWNER_OID,
        relam: if relation.is_view() { 0 } else { HEAP },
        // It is not known without reading the table.
        reltuples: -1_i64,
        relpersistence: "p",
        relkind: kind,
        relnatts: columns,
        relispopulated: true,
        relreplident: "n",
    }
}

fn attributes(relation: &Relation) -> Vec<Row> {
    let mut rows = Vec::with_capacity(relation.columns.len());
    for (place, (column, is_nullable)) in relation.columns.iter().enumerate() {
        let is_text = !column.kind.is_array && column.kind.base == Base::Text;
        rows.push(row! {
            attrelid: relation.oid,
            attname: column.name.as_str(),
            atttypid: i64::from(column.kind.oid()),
            attstattarget: -1_i64,
            attlen: i64::from(column.kind.length()),
            attnum: i64::try_from(place + 1).unwrap_or_default(),
            attndims: i64::from(column.kind.is_array),
            atttypmod: i64::from(column.modifier),
            attalign: "i",
            attstorage: if column.kind.length() < 0 { "x" } else { "p" },
            attnotnull: !is_nullable,
            attislocal: true,
            attcollation: if is_text { DEFAULT_COLLATION } else { 0 },
        });
    }
    rows
}

/// A type, and that of arrays of it.
fn types(entry: &Entry) -> Vec<Row> {
    let collation = if entry.category == 'S' { DEFAULT_COLLATION } else { 0 };
    let common = |oid: u32, name: &str, length: i16, category: &str| {
        row! {
            oid: i64::from(oid),
            typname: name,
            typnamespace: CATALOG_OID,
            typowner: OWNER_OID,
            typlen: i64::from(length),
            typbyval: (1..=8).contains(&length),
            typtype: if entry.base == Base::Unknown { "p" } else { "b" },
            typcategory: category,
            typisdefined: true,
            typdelim: ",",
            typalign: "i",
            typstorage: if length < 0 { "x" } else { "p" },
            typtypmod: -1_i64,
            typcollation: collation,
        }
    };

    let mut one = common(entry.oid, entry.name, entry.length, &entry.category.to_string());
    one.insert("typarray", Cell::Int(entry.array.into()));
    one.insert("typinput", Cell::Text(format!("{}in", entry.name)));
    one.insert("typoutput", Cell::Text(format!("{}out", entry.name)));
    one.insert(
        "typispreferred",
        Cell::Bool(matches!(entry.base, Base::Text | Base::Float8 | Base::TimestampTz | Base::Bool)),
    );
    let mut rows = vec![one];
    if entry.array != 0 {
        let mut array = common(entry.array, &format!("_{}", entry.name), -1, "A");
        array.insert("typelem", Cell::Int(entry.oid.into()));
        array.insert("typinput", Cell::from("array_in"));
        array.insert("typoutput", Cell::from("array_out"));
        array.insert("typsubscript", Cell::from("array_subscript_handler"));
        rows.push(array);
    }
    rows
}

fn database() -> Row {
    row! {
        oid: DATABASE_OID,
        datname: DATABASE,
        datdba: OWNER_OID,
        encoding: UTF8,
        datlocprovider: "c",
        datallowconn: true,
        datconnlimit: -1_i64,
        dattablespace: DEFAULT_TABLESPACE,
        datcollate: "C",
        datctype: "C",
    }
}
