//! Row keys in the parts that their template prints.

use tidetable_layout::Layout;
use tidetable_layout::outline::{PartContent, template_parts};

/// The columns in a row key as text, from left to right; the whole key if the layout cannot have written it. Bytes other than
/// printable ASCII are escaped.
pub fn key_segments(layout: &Layout, key: &[u8]) -> Vec<String> {
    let parts = template_parts(&layout.spec().row_key);
    let printed = layout.split_key(key).unwrap_or_default();
    let mut segments = Vec::new();
    for (part, bytes) in parts.iter().zip(printed) {
        // A literal at the start stands before what tells keys apart; between columns it only delimits.
        if matches!(part.content, PartContent::Field { .. }) {
            segments.push(bytes.escape_ascii().to_string());
        }
    }

    if segments.is_empty() {
        segments.push(key.escape_ascii().to_string());
    }
    segments
}

#[cfg(test)]
mod tests {
    use tidetable_layout::{Field, FieldType, SourceSchema, TableSpec};

    use super::*;

    #[test]
    fn keys_are_cut_where_the_template_says() {
        let field = |name: &str, kind| Field { name: name.to_owned(), kind };
        let fields =
            vec![field("site", FieldType::Text), field("meter", FieldType::UInt64), field("ts", FieldType::Timestamp)];
        let schema = SourceSchema { fields, time: 2 };
        let of = |row_key: &str, key: &str| {
            let spec = TableSpec {
                row_key: row_key.to_owned(),
                families: vec![tidetable_layout::spec::FamilySpec {
                    name: "f".to_owned(),
                    columns: vec![tidetable_layout::spec::ColumnSpec {
                        qualifier: "q".to_owned(),
                        value: "1".to_owned(),
                        ..Default::default()
                    }],
                    ..Default::default()
                }],
                ..TableSpec::default()
            };
            key_segments(&Layout::compile(&spec, &schema).unwrap(), key.as_bytes())
        };
        assert_eq!(of("S/{site}/{meter:04}{ts:%Y%m%d}", "S/a#b/000720210305"), ["a#b", "0007", "20210305"]);
        assert_eq!(of("{meter:04}#{ts:%Y%m%d}", "no such key"), ["no such key"]);
    }
}
