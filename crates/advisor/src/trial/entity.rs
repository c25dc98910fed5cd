//! The columns of a row key that name an entity.

use tidetable_layout::{FieldType, SourceSchema, TableSpec};

/// Columns of the row key other than times, in its order. Salts are left out: they follow from other columns.
pub(crate) fn key_columns(spec: &TableSpec, schema: &SourceSchema) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in names_of(&spec.row_key) {
        let field = schema.fields.iter().find(|field| field.name == name);
        let is_time = field.is_some_and(|field| matches!(field.kind, FieldType::Timestamp | FieldType::Date));
        if !is_time && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// The names of fields in a template that compiled, without those in functions such as `salt(..)`.
fn names_of(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).filter_map(|part| {
        let field = part.split_once('}').map_or(part, |(field, _)| field);
        let name = field.split(':').next().unwrap_or_default().trim();
        (!name.is_empty() && !name.contains('(')).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use tidetable_layout::Field;

    use super::*;

    #[test]
    fn times_and_salts_are_no_entity() {
        let field = |name: &str, kind| Field { name: name.to_owned(), kind };
        let schema = SourceSchema {
            fields: vec![field("meter", FieldType::UInt64), field("ts", FieldType::Timestamp)],
            time: 1,
        };
        let columns =
            |row_key: &str| key_columns(&TableSpec { row_key: row_key.to_owned(), ..TableSpec::default() }, &schema);
        assert_eq!(columns("{salt(ts, 3)}#{meter:010}#{ts:%Y%m%d}"), ["meter"]);
        assert_eq!(columns("{metric}#{meter}#{meter:010}"), ["metric", "meter"]);
        assert!(columns("{ts:ms}").is_empty());
    }
}
