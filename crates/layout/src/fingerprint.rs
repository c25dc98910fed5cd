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
use crate::spec::{FamilySpec, Granularity, PackedSpec, SourceSchema, TableSpec, TimestampSpec, Window};

impl Layout {
    /// The layout's fingerprint: 32 hex digits that change with the layout and with the columns of its source.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.spec, &self.source)
    }
}

/// Texts to be hashed, each with its length in front, so that no two lists of texts have the same bytes.
#[derive(Default)]
struct Texts(Vec<u8>);

impl Texts {
    fn put(&mut self, text: &str) {
        self.0.extend_from_slice(&(text.len() as u64).to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
    }
}

/// See [`Layout::fingerprint`]. The order of the texts never changes.
pub(crate) fn fingerprint(spec: &TableSpec, source: &SourceSchema) -> String {
    let mut texts = Texts::default();
    texts.put("tidetable layout 1");
    texts.put(&spec.name);
    texts.put(&spec.row_key);
    texts.put(&format!("{} {}", window(spec.window), granularity(spec.granularity)));
    texts.put(&spec.unpivot.len().to_string());
    spec.unpivot.iter().for_each(|column| texts.put(column));

    spec.families.iter().for_each(|declared| family(declared, &mut texts));
    if spec.upsert {
        texts.put("upsert");
    }
    for message in &spec.messages {
        let (list, number) = &message.list;
        texts.put(&format!("message {} ({list:?}, {number}) {}", message.name, fields(&message.fields)));
    }

    texts.put("source");
    for field in &source.fields {
        texts.put(&field.name);
        texts.put(&field_type(field.kind));
    }
    texts.put(&source.time.to_string());
    format!("{:032x}", xxh3_128(&texts.0))
}

/// Appends the texts of a family and its columns.
fn family(family: &FamilySpec, texts: &mut Texts) {
    texts.put("family");
    texts.put(&family.name);
    if !family.kind.is_newest() {
        texts.put(&format!("kind {}", merge(family.kind)));
    }

    for column in &family.columns {
        texts.put("column");
        texts.put(&column.qualifier);
        texts.put(&column.value);
        texts.put(&format!("{} {} {}", encoding(column.encoding), timestamp(&column.timestamp), column.each));
        column.except.iter().for_each(|name| texts.put(name));
        if let Some(packed) = packed(&column.packed) {
            texts.put(&packed);
        }
    }
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
    let fields = fields.iter().map(|MessageField { name, number, kind }| {
        format!("MessageField {{ name: {name:?}, number: {number}, kind: {} }}", proto_type(*kind))
    });
    format!("[{}]", fields.collect::<Vec<_>>().join(", "))
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
