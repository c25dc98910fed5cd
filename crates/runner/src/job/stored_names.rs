//! Names of types and variants in fingerprints. Fingerprints are stored in manifests and in lists of exports, so these
//! names never change, even if identifiers in the code do.

use tidetable_export::FileFormat;
use tidetable_layout::FieldType;

use super::{Export, ExportMode, Per};

/// The type of a source's column.
pub(crate) fn field_type(kind: FieldType) -> String {
    let name = match kind {
        FieldType::UInt64 => "UInt64",
        FieldType::Int64 => "Int64",
        FieldType::Float64 => "Float64",
        FieldType::Decimal { precision, scale } => return format!("Decimal128({precision}, {scale})"),
        FieldType::Text => "Utf8",
        FieldType::Bool => "Boolean",
        FieldType::Timestamp => "Timestamp(µs, \"UTC\")",
        FieldType::Date => "Date32",
    };
    name.to_owned()
}

/// The format of an export's files and its mode.
pub(crate) fn export_form(export: &Export) -> String {
    let per = match export.per {
        Per::Day => "Day",
        Per::Hour => "Hour",
        Per::Month => "Month",
        Per::Query => "Query",
    };
    let format = match export.format {
        FileFormat::Parquet => "Parquet",
        FileFormat::Csv => "Csv",
        FileFormat::Arrow => "Arrow",
        FileFormat::BigtableParquet => "BigtableParquet",
        FileFormat::CbtCsv => "CbtCsv",
    };
    let mode = match export.mode {
        ExportMode::Replace => "Replace",
        ExportMode::Append => "Append",
        ExportMode::Upsert => "Upsert",
    };
    format!("{per} {format} {mode} {:?}", export.keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_hashed_by_the_names_that_manifests_hold() {
        let kinds = [
            (FieldType::UInt64, "UInt64"),
            (FieldType::Int64, "Int64"),
            (FieldType::Float64, "Float64"),
            (FieldType::Decimal { precision: 10, scale: 2 }, "Decimal128(10, 2)"),
            (FieldType::Text, "Utf8"),
            (FieldType::Bool, "Boolean"),
            (FieldType::Timestamp, "Timestamp(µs, \"UTC\")"),
            (FieldType::Date, "Date32"),
        ];
        for (kind, name) in kinds {
            assert_eq!(field_type(kind), name);
            // The first builds hashed Arrow's name; if a new Arrow prints another one, this line may go.
            assert_eq!(kind.arrow().to_string(), name);
        }
    }
}
