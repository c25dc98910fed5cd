//! Rows of `information_schema`.

use crate::catalog::batch::{Cell, Row, row};
use crate::catalog::relations::{Relation, schemas};
use crate::catalog::{DATABASE, OWNER};
use crate::types::{Base, Column};

/// Bits of a modifier of `numeric` below its precision, and what PostgreSQL adds to it.
const SCALE_BITS: i32 = 16;
const NUMERIC_HEADER: i32 = 4;

/// The rows of a table; none if the store has nothing for it.
pub(super) fn rows(table: &str, relations: &[Relation]) -> Vec<Row> {
    match table {
        "schemata" => {
            let system = ["pg_catalog", "information_schema"];
            let names = system.into_iter().chain(schemas().map(|(name, _)| name));
            names.map(|name| row! { catalog_name: DATABASE, schema_name: name, schema_owner: OWNER }).collect()
        }
        "tables" => relations.iter().map(table_row).collect(),
        "views" => relations.iter().filter(|relation| relation.is_view()).map(view_row).collect(),
        "columns" => relations.iter().flat_map(column_rows).collect(),
        "table_privileges" | "role_table_grants" => relations.iter().map(privilege_row).collect(),
        _ => Vec::new(),
    }
}

fn table_row(relation: &Relation) -> Row {
    row! {
        table_catalog: DATABASE,
        table_schema: relation.schema.as_str(),
        table_name: relation.name.as_str(),
        table_type: if relation.is_view() { "VIEW" } else { "BASE TABLE" },
        is_insertable_into: "NO",
        is_typed: "NO",
    }
}

fn view_row(relation: &Relation) -> Row {
    row! { table_catalog: DATABASE, table_schema: relation.schema.as_str(), table_name: relation.name.as_str() }
}

fn privilege_row(relation: &Relation) -> Row {
    row! {
        grantor: OWNER,
        grantee: OWNER,
        table_catalog: DATABASE,
        table_schema: relation.schema.as_str(),
        table_name: relation.name.as_str(),
        privilege_type: "SELECT",
        is_grantable: "NO",
    }
}

fn column_rows(relation: &Relation) -> Vec<Row> {
    let mut rows = Vec::with_capacity(relation.columns.len());
    for (place, (column, is_nullable)) in relation.columns.iter().enumerate() {
        let entry = column.kind.base.entry();
        let is_array = column.kind.is_array;
        let udt = if is_array { format!("_{}", entry.name) } else { entry.name.to_owned() };
        let mut row = row! {
            table_catalog: DATABASE,
            table_schema: relation.schema.as_str(),
            table_name: relation.name.as_str(),
            column_name: column.name.as_str(),
            ordinal_position: i64::try_from(place + 1).unwrap_or_default(),
            is_nullable: if *is_nullable { "YES" } else { "NO" },
            data_type: if is_array { "ARRAY" } else { entry.sql },
            udt_catalog: DATABASE,
            udt_schema: "pg_catalog",
            udt_name: udt.as_str(),
            is_identity: "NO",
            is_generated: "NEVER",
            is_updatable: "NO",
        };
        for (name, value) in sizes(column) {
            row.insert(name, value.map_or(Cell::Null, Cell::Int));
        }
        rows.push(row);
    }
    rows
}

/// Digits of numbers and of times.
fn sizes(column: &Column) -> [(&'static str, Option<i64>); 6] {
    let (precision, radix, scale) = match column.kind.base {
        _ if column.kind.is_array => (None, None, None),
        Base::Int2 => (Some(16), Some(2), Some(0)),
        Base::Int4 => (Some(32), Some(2), Some(0)),
        Base::Int8 => (Some(64), Some(2), Some(0)),
        Base::Float4 => (Some(24), Some(2), None),
        Base::Float8 => (Some(53), Some(2), None),
        Base::Numeric if column.modifier >= NUMERIC_HEADER => {
            let modifier = column.modifier - NUMERIC_HEADER;
            let scale = modifier & ((1 << SCALE_BITS) - 1);
            (Some(i64::from(modifier >> SCALE_BITS)), Some(10), Some(i64::from(scale)))
        }
        Base::Numeric => (None, Some(10), None),
        _ => (None, None, None),
    };
    let digits = match column.kind.base {
        _ if column.kind.is_array => None,
        Base::Timestamp | Base::TimestampTz | Base::Time | Base::Interval => Some(6),
        Base::Date => Some(0),
        _ => None,
    };
    [
        ("numeric_precision", precision),
        ("numeric_precision_radix", radix),
        ("numeric_scale", scale),
        ("datetime_precision", digits),
        ("character_maximum_length", None),
        ("character_octet_length", None),
    ]
}
