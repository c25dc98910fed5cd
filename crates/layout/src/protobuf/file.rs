//! The `.proto` file that describes the protobuf cells of a table.

use std::fmt::Write;

use crate::plan::Layout;
use crate::schema::{FieldType, MessageField, ProtoType};
use crate::spec::{Field, MessageSpec, PackedSpec};

/// Whether a field of a protobuf message may have this number.
pub fn is_field_number(number: u32) -> bool {
    (1..=536_870_911).contains(&number) && !(19_000..=19_999).contains(&number)
}

impl Layout {
    /// A `.proto` file of the messages in this table's cells; `None` if it has none. If all messages were read from one
    /// file it is that file, otherwise it is generated.
    pub fn proto(&self) -> Option<String> {
        let mut used: Vec<(&MessageSpec, bool)> = Vec::new();
        for message in &self.spec.messages {
            let columns = self.spec.families.iter().flat_map(|family| &family.columns);
            let mut uses = columns.map(|column| &column.packed).filter(|packed| names(packed, message)).peekable();
            if uses.peek().is_some() {
                used.push((message, uses.any(|packed| matches!(packed, PackedSpec::Repeated(_)))));
            }
        }

        let (first, _) = used.first()?;
        let one_file = used.iter().all(|(message, _)| message.proto == first.proto);
        Some(match first.proto.as_ref().filter(|_| one_file) {
            Some(text) => with_lists(text, &used),
            None => proto_file(&self.spec.name, &used, &self.source.fields),
        })
    }
}

/// Whether a packed column is of this message.
fn names(packed: &PackedSpec, message: &MessageSpec) -> bool {
    match packed {
        PackedSpec::Message(name) | PackedSpec::Repeated(name) => *name == message.name,
        PackedSpec::None | PackedSpec::Json => false,
    }
}

/// The user's file with missing list messages appended.
fn with_lists(text: &str, used: &[(&MessageSpec, bool)]) -> String {
    let mut out = text.to_owned();
    for (message, _) in used.iter().filter(|(message, repeated)| *repeated && !message.has_list) {
        if !out.ends_with('\n') {
            out.push('\n');
        }
        list(message, &message.name, &mut out);
    }
    out
}

/// A `.proto` that declares these messages of the table `table`, and the lists of those that are repeated (the flag).
/// `columns` are those of the source.
pub fn proto_file(table: &str, messages: &[(&MessageSpec, bool)], columns: &[Field]) -> String {
    let mut out = format!("// Cells of the table {table}.\nsyntax = \"proto3\";\n");
    let mut kinds = messages.iter().flat_map(|(message, _)| &message.fields).map(|field| field.kind);
    if kinds.any(|kind| kind == ProtoType::Timestamp) {
        out.push_str("\nimport \"google/protobuf/timestamp.proto\";\n");
    }

    for (message, repeated) in messages {
        // Packages and outer messages belong to the original file; the wire format does not contain names.
        let name = &message.name.replace('.', "_");
        let _ = writeln!(out, "\n// One event.\nmessage {name} {{");
        for field in &message.fields {
            let column = columns.iter().find(|column| column.name == field.name);
            if let Some(says) = column.and_then(|column| comment(field, column.kind)) {
                let _ = writeln!(out, "  // {says}");
            }
            let _ = writeln!(out, "  optional {} {} = {};", field.kind.name(), field.name, field.number);
        }

        out.push_str("}\n");
        if *repeated {
            list(message, name, &mut out);
        }
    }
    out
}

/// A comment on the representation, where the type does not show it.
fn comment(field: &MessageField, kind: FieldType) -> Option<String> {
    Some(match (kind, field.kind) {
        (FieldType::Timestamp, ProtoType::Int64) => "Microseconds since 1970-01-01T00:00:00Z.".to_owned(),
        (FieldType::Decimal { scale: 0, .. }, _) => "An exact decimal without a point, such as 600.".to_owned(),
        (FieldType::Decimal { scale, .. }, _) => {
            let zeros = "0".repeat(usize::from(scale));
            format!("An exact decimal with {scale} digits after the point, such as 1.{zeros}.")
        }
        (FieldType::Date, _) => "A date, such as 2018-01-31.".to_owned(),
        _ => return None,
    })
}

/// Appends the list message: the cell that holds all events of a row as repeated `name`.
fn list(message: &MessageSpec, name: &str, out: &mut String) {
    let (list_name, number) = (message.list.0.replace('.', "_"), message.list.1);
    let mut field = String::new();
    let mut before = '_';
    for c in name.rsplit('.').next().unwrap_or_default().chars() {
        if c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
            field.push('_');
        }
        field.push(c.to_ascii_lowercase());
        before = c;
    }

    let _ = write!(out, "\n// The events of a row, by ascending time.\nmessage {list_name} {{\n");
    let _ = write!(out, "  repeated {name} {field}s = {number};\n}}\n");
}
