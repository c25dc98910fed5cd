//! The fingerprint of a layout, stored in manifests. A table whose fingerprint changes must be rebuilt.
//!
//! ```text
//! fingerprint  xxh3_128 of texts, each with its length as u64 in front
//! texts        "tidetable layout 1" | name | row key | window granularity | unpivot | families | upsert | messages | source
//! ```
//!
//! The names of variants are spelled out here, so that renaming a type or a variant changes no stored fingerprint. A new key
//! of a table is hashed only if it is set.

use xxhash_rust::xxh3::xxh3_128;

use crate::plan::Layout;
use crate::schema::{Encoding, FieldType, Merge, MessageField, ProtoType};
use crate::spec::{Granularity, PackedSpec, SourceSchema, TableSpec, TimestampSpec, Window};

impl Layout {
    /// The layout's fingerprint: 32 hex digits that change with the layout and with the columns of its source.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.spec, &self.source)
    }
}

pub(crate) fn fingerprint(spec: &TableSpec, source: &SourceSchema) -> String {
    let mut bytes = Vec::new();
    let mut text = |value: &str| {
        bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
        bytes.extend_from_slice(value.as_bytes());
    };
    text("tidetable layout 1");
    text(&spec.name);
    text(&spec.row_key);
    text(&format!("{} {}", window(spec.window), granularity(spec.granularity)));
    text(&spec.unpivot.len().to_string());
    spec.unpivot.iter().for_each(|column| text(column));
    for family in &spec.families {
        text("family");
        text(&family.name);
        if !family.kind.is_newest() {
            text(&format!("kind {}", merge(family.kind)));
        }
        for column in &family.columns {
            text("column");
            text(&column.qualifier);
            text(&column.value);
            text(&format!("{} {} {}", encoding(column.encoding), timestamp(&column.timestamp), column.each));
            column.except.iter().for_each(|name| text(name));
            if let Some(packed) = packed(&column.packed) {
                text(&packed);
            }
        }
    }
    if spec.upsert {
        text("upsert");
    }
    for message in &spec.messages {
        let (list, number) = &message.list;
        text(&format!("message {} ({list:?}, {number}) {}", message.name, fields(&message.fields)));
    }
    text("source");
    for field in &source.fields {
        text(&field.name);
        text(&field_type(field.kind));
    }
    text(&source.time.to_string());
    format!("{:032x}", xxh3_128(&bytes))
}

fn window(window: Window) -> &'static str {
    match window {
        Window::Hour => "Hour",
        Window::Day => "Day",
        Window::Week => "Week",
        Window::Month => "Month",
        Window::None => "None",
    }
}

fn granularity(granularity: Granularity) -> &'static str {
    match granularity {
        Granularity::Millis => "Millis",
        Granularity::Micros => "Micros",
    }
}

fn merge(merge: Merge) -> &'static str {
    match merge {
        Merge::Newest => "Newest",
        Merge::Sum => "Sum",
        Merge::Min => "Min",
        Merge::Max => "Max",
        Merge::Hll => "Hll",
    }
}

fn encoding(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Text => "Text",
        Encoding::Int64 => "Int64",
        Encoding::Float64 => "Float64",
        Encoding::Bytes => "Bytes",
        Encoding::Json => "Json",
    }
}

fn timestamp(timestamp: &TimestampSpec) -> String {
    match timestamp {
        TimestampSpec::Implied => "Implied".to_owned(),
        TimestampSpec::Zero => "Zero".to_owned(),
        TimestampSpec::Field(name) => format!("Field({name:?})"),
    }
}

fn packed(packed: &PackedSpec) -> Option<String> {
    match packed {
        PackedSpec::None => None,
        PackedSpec::Json => Some("Json".to_owned()),
        PackedSpec::Message(name) => Some(format!("Message({name:?})")),
        PackedSpec::Repeated(name) => Some(format!("Repeated({name:?})")),
    }
}

fn fields(fields: &[MessageField]) -> String {
    let field = |field: &MessageField| {
        let MessageField { name, number, kind } = field;
        format!("MessageField {{ name: {name:?}, number: {number}, kind: {} }}", proto_type(*kind))
    };
    format!("[{}]", fields.iter().map(field).collect::<Vec<_>>().join(", "))
}

fn proto_type(kind: ProtoType) -> &'static str {
    match kind {
        ProtoType::Double => "Double",
        ProtoType::Float => "Float",
        ProtoType::Int32 => "Int32",
        ProtoType::Int64 => "Int64",
        ProtoType::Uint32 => "Uint32",
        ProtoType::Uint64 => "Uint64",
        ProtoType::Sint32 => "Sint32",
        ProtoType::Sint64 => "Sint64",
        ProtoType::Fixed32 => "Fixed32",
        ProtoType::Fixed64 => "Fixed64",
        ProtoType::Sfixed32 => "Sfixed32",
        ProtoType::Sfixed64 => "Sfixed64",
        ProtoType::Bool => "Bool",
        ProtoType::String => "String",
        ProtoType::Bytes => "Bytes",
        ProtoType::Timestamp => "Timestamp",
    }
}

fn field_type(kind: FieldType) -> String {
    let name = match kind {
        FieldType::UInt64 => "UInt64",
        FieldType::Int64 => "Int64",
        FieldType::Float64 => "Float64",
        FieldType::Decimal { precision, scale } => {
            return format!("Decimal {{ precision: {precision}, scale: {scale} }}");
        }
        FieldType::Text => "Text",
        FieldType::Bool => "Bool",
        FieldType::Timestamp => "Timestamp",
        FieldType::Date => "Date",
    };
    name.to_owned()
}
