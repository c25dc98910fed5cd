//! Times of results in UTC.

use arrow::datatypes::DataType;
use datafusion::common::Column;
use datafusion::logical_expr::{Expr, cast};
use datafusion::prelude::DataFrame;

use crate::error::{Result, SqlError};

/// Casts timestamp columns with another time zone to UTC, the zone of tables, so that output code handles UTC only.
pub(crate) fn convert_to_utc(frame: DataFrame) -> Result<DataFrame> {
    let schema = frame.schema();
    if !schema.fields().iter().any(|field| utc_type(field.data_type()).is_some()) {
        return Ok(frame);
    }

    let columns: Vec<Expr> = schema
        .iter()
        .map(|(table, field)| {
            let column = Expr::Column(Column::from((table, field)));
            match utc_type(field.data_type()) {
                Some(utc) => cast(column, utc).alias_qualified(table.cloned(), field.name()),
                None => column,
            }
        })
        .collect();
    frame.select(columns).map_err(SqlError::planning)
}

/// The type in UTC to cast times of this type to; `None` if it is no time with another zone.
fn utc_type(kind: &DataType) -> Option<DataType> {
    match kind {
        DataType::Timestamp(_, Some(zone)) if matches!(&**zone, "UTC" | "+00:00") => None,
        DataType::Timestamp(unit, Some(_)) => Some(DataType::Timestamp(*unit, Some("UTC".into()))),
        _ => None,
    }
}
