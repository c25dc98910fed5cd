//! The schema of a Delta table.

use arrow::datatypes::{DataType, TimeUnit};
use serde_json::{Value, json};
use tidetable_store::published::Published;

use crate::error::{ExportError, Result};
use crate::table::TableLog;
use crate::table::listed::ListedFiles;

/// The columns of `published` in Delta's schema, as JSON; partition columns are dates if all their values are.
pub(crate) fn schema(published: &Published, files: &ListedFiles, partition: &[String]) -> Result<String> {
    let mut fields = Vec::with_capacity(published.columns.len());
    // The values of directories count, also where files have a column of this name.
    for (name, kind) in published.columns.iter().filter(|(name, _)| !partition.contains(name)) {
        let Some(kind) = kind.parse::<DataType>().ok().and_then(|kind| delta_type(&kind)) else {
            let path = format!("exports/{}.json", published.name);
            let reason = format!("a Delta table has no columns of type {kind}: CAST it in the query");
            return Err(ExportError::Log { log: TableLog::Delta, path, reason });
        };
        fields.push(field(name, &kind));
    }

    for (index, name) in partition.iter().enumerate() {
        let mut values = files.values().filter_map(|file| file.partition.get(index));
        let are_dates = values.all(|(_, value)| value.parse::<chrono::NaiveDate>().is_ok());
        fields.push(field(name, if are_dates { "date" } else { "string" }));
    }

    Ok(json!({ "type": "struct", "fields": fields }).to_string())
}

/// A column in Delta's schema.
fn field(name: &str, kind: &str) -> Value {
    json!({ "name": name, "type": kind, "nullable": true, "metadata": {} })
}

/// The name of a type in Delta; `None` if Delta has no such type.
pub(crate) fn delta_type(kind: &DataType) -> Option<String> {
    Some(match kind {
        DataType::Boolean => "boolean".to_owned(),
        DataType::Int8 => "byte".to_owned(),
        DataType::Int16 => "short".to_owned(),
        DataType::Int32 => "integer".to_owned(),
        DataType::Int64 => "long".to_owned(),
        DataType::Float32 => "float".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Utf8 => "string".to_owned(),
        DataType::Binary => "binary".to_owned(),
        DataType::Date32 => "date".to_owned(),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamp".to_owned(),
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp_ntz".to_owned(),
        DataType::Decimal128(precision, scale) => format!("decimal({precision},{scale})"),
        _ => return None,
    })
}

/// Whether a schema has times without a zone, a table feature that readers must support.
pub(crate) fn has_local_time(schema: &str) -> bool {
    schema.contains("\"timestamp_ntz\"")
}
