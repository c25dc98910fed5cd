//! Names of types and variants in fingerprints. Fingerprints are stored in manifests and in lists of exports, so these
//! names never change, even if identifiers in the code do.

use tidetable_layout::FieldType;

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
