//! Reads `[messages.NAME]`: the protobuf messages that columns name, declared in the job file or in a `.proto`.
//!
//! A declared field has the type of the column of its name, so a message is compiled once for each source that a table
//! uses it with.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use prost_reflect::{Cardinality, FieldDescriptor, Kind, MessageDescriptor};
use protox::Compiler;
use protox::file::File;
use tidetable_layout::SourceSchema;
use tidetable_layout::protobuf::{is_field_number, proto_file};
use tidetable_layout::schema::{MessageField, ProtoType};
use tidetable_layout::spec::MessageSpec;
use toml::de::DeValue;

use crate::file::fields::{Fields, Named, Reader};
use crate::file::keys::MESSAGE;
use crate::file::problem::Mistake;
use crate::file::words::nearest;

/// The messages of a job, each compiled once for each source that uses it.
#[derive(Debug)]
pub(crate) struct Messages {
    declared: Vec<(String, Option<Declared>)>,
    /// Compiled messages by (message, source); a mistake is reported once.
    made: HashMap<(String, String), Option<MessageSpec>>,
}

#[derive(Debug)]
struct Declared {
    at: Range<usize>,
    body: Body,
}

#[derive(Debug)]
enum Body {
    /// Name, number, and byte range of the name.
    Fields(Vec<(String, u32, Range<usize>)>),
    File {
        text: String,
        message: MessageDescriptor,
        /// A wrapper message with a repeated field of the message, and that field's number.
        list: Option<(String, u32)>,
        at: Range<usize>,
    },
}

impl Messages {
    /// Reads all messages of the file; paths are relative to `folder`.
    pub(crate) fn read(reader: &mut Reader<'_>, fields: &Fields<'_>, folder: &Path) -> Self {
        let named = fields.named("messages");
        let declared = named.iter().map(|named| (named.name.to_owned(), message(reader, named, folder))).collect();
        Self { declared, made: HashMap::new() }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.declared.iter().map(|(name, _)| name.clone()).collect()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.declared.iter().any(|(declared, _)| declared == name)
    }

    /// The message `name` for tables of the source `owner`; `None` if it is invalid.
    pub(crate) fn of_source(
        &mut self,
        reader: &mut Reader<'_>,
        name: &str,
        owner: &str,
        schema: &SourceSchema,
    ) -> Option<MessageSpec> {
        let key = (name.to_owned(), owner.to_owned());
        if let Some(made) = self.made.get(&key) {
            return made.clone();
        }

        let declared = self.declared.iter().find(|(declared, _)| declared == name);
        let declared = declared.and_then(|(_, declared)| declared.as_ref());
        let made =
            declared.and_then(|declared| declared.of_source(reader, name, owner, schema, &|name| self.has(name)));
        self.made.insert(key, made.clone());
        made
    }
}

fn message(reader: &mut Reader<'_>, named: &Named<'_>, folder: &Path) -> Option<Declared> {
    let fields = Fields::of_value(reader, &MESSAGE, named.value, named.at.clone())?;
    if fields.has("fields") == fields.has("proto") {
        reader.refuse(fields.at(), Mistake::FieldsAndProto);
        return None;
    }
    let at = named.at.clone();
    let body = if fields.has("fields") {
        declared_fields(reader, named, &fields)?
    } else {
        from_file(reader, named.name, &fields, folder)?
    };
    Some(Declared { at, body })
}

/// Scalar types, which cannot be names of messages.
const TYPES: [&str; 15] = [
    "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
    "sfixed64", "bool", "string", "bytes",
];

/// Whether `name` is an identifier in a `.proto`.
fn is_identifier(name: &str) -> bool {
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    first && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Reads `fields = { pressure = 1, .. }`.
fn declared_fields(reader: &mut Reader<'_>, named: &Named<'_>, fields: &Fields<'_>) -> Option<Body> {
    let before = reader.count();
    // A field of type `string` is a scalar, even if a message has that name.
    if !is_identifier(named.name) || TYPES.contains(&named.name) {
        reader.refuse(named.at.clone(), Mistake::ProtoName { name: named.name.to_owned() });
    }

    let entries = fields.named("fields");
    if entries.is_empty() && fields.value("fields").is_some() {
        reader.refuse(fields.key_at("fields"), Mistake::Empty { key: "fields" });
    }

    let mut found: Vec<(String, u32, Range<usize>)> = Vec::new();
    for entry in entries {
        if !is_identifier(entry.name) {
            reader.refuse(entry.at.clone(), Mistake::ProtoName { name: entry.name.to_owned() });
        }
        let number = match entry.value.get_ref() {
            DeValue::Integer(number) => u32::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        let Some(number) = number.filter(|number| is_field_number(*number)) else {
            reader.refuse(entry.value.span(), Mistake::FieldNumber { field: entry.name.to_owned() });
            continue;
        };

        if let Some((other, ..)) = found.iter().find(|(_, other, _)| *other == number) {
            let (field, other) = (entry.name.to_owned(), other.clone());
            reader.refuse(entry.value.span(), Mistake::SameFieldNumber { field, other, number });
        }
        found.push((entry.name.to_owned(), number, entry.at));
    }

    (reader.count() == before).then_some(Body::Fields(found))
}

/// `proto = "file.proto"`: the message of this name, qualified or not, in that file.
fn from_file(reader: &mut Reader<'_>, name: &str, fields: &Fields<'_>, folder: &Path) -> Option<Body> {
    let file = fields.required_text(reader, "proto")?;
    let path = folder.join(reader.path("proto", &file, "a .proto")?);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            let path = file.value.into();
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            let mistake = if missing { Mistake::NoProtoFile { path } } else { Mistake::ReadProto { path, error } };
            reader.refuse(file.at, mistake);
            return None;
        }
    };

    let beside = path.parent().unwrap_or(folder);
    let file_name = path.file_name().map(Path::new)?;
    let compiled = Compiler::new([beside, folder]).and_then(|mut compiler| {
        compiler.open_file(file_name)?;
        Ok(compiler.descriptor_pool())
    });
    let pool = match compiled {
        Ok(pool) => pool,
        Err(error) => {
            reader.refuse(file.at, Mistake::Proto { said: said(&error) });
            return None;
        }
    };

    // Messages of the files that it imports are in the pool, too.
    let file_name = file_name.to_string_lossy();
    let messages: Vec<MessageDescriptor> =
        pool.all_messages().filter(|message| *message.parent_file().name() == *file_name).collect();
    let found = messages.iter().find(|message| message.full_name() == name || relative(message) == name);
    let Some(message) = found.cloned() else {
        let known: Vec<String> = messages.iter().map(relative).collect();
        let near = nearest(name, known.iter().map(String::as_str));
        let (name, path) = (name.to_owned(), file.value.into());
        reader.refuse(file.at, Mistake::NoMessageInFile { name, path, known, near });
        return None;
    };

    let list = messages.iter().find_map(|list| {
        let mut fields = list.fields();
        let field = fields.find(|field| field.is_list() && field.kind() == Kind::Message(message.clone()))?;
        Some((relative(list), field.number()))
    });

    Some(Body::File { text, message, list, at: file.at })
}

/// The diagnostics of protox. Its `Debug` output is the readable one, with the place of each mistake.
fn said(error: &protox::Error) -> String {
    format!("{error:?}").trim_end().to_owned()
}

/// The name of a message within its package.
fn relative(message: &MessageDescriptor) -> String {
    let (name, package) = (message.full_name(), message.parent_file());
    let package = package.package_name();
    let rest = name.strip_prefix(package).and_then(|rest| rest.strip_prefix('.'));
    rest.filter(|_| !package.is_empty()).unwrap_or(name).to_owned()
}

impl Declared {
    fn of_source(
        &self,
        reader: &mut Reader<'_>,
        name: &str,
        owner: &str,
        schema: &SourceSchema,
        is_declared: &dyn Fn(&str) -> bool,
    ) -> Option<MessageSpec> {
        let before = reader.count();
        let spec = match &self.body {
            Body::Fields(declared) => {
                let mut fields = Vec::with_capacity(declared.len());
                for (field, number, at) in declared {
                    match schema.fields.iter().find(|column| column.name == *field) {
                        Some(column) => {
                            let kind = ProtoType::of(column.kind);
                            fields.push(MessageField { name: field.clone(), number: *number, kind });
                        }
                        None => {
                            let known: Vec<String> = schema.fields.iter().map(|column| column.name.clone()).collect();
                            let near = nearest(field, known.iter().map(String::as_str));
                            let (name, owner) = (field.clone(), owner.to_owned());
                            reader.refuse(at.clone(), Mistake::UnknownColumn { name, owner, known, near });
                        }
                    }
                }

                let mut list = (format!("{name}List"), 1);
                while is_declared(&list.0) {
                    list.0.push('_');
                }
                let spec = MessageSpec { name: name.to_owned(), fields, list, ..MessageSpec::default() };

                // The compiler finds the rest, such as a keyword used as a name.
                let text = proto_file("", &[(&spec, true)], &[]);
                if reader.count() == before
                    && let Err(error) = check(&text)
                {
                    reader.refuse(self.at.clone(), Mistake::Proto { said: said(&error) });
                }
                spec
            }
            Body::File { text, message, list, at } => {
                let fields = matched(reader, name, message, owner, schema, at);
                MessageSpec {
                    name: name.to_owned(),
                    fields,
                    list: list.clone().unwrap_or_else(|| (free_list_name(name, message), 1)),
                    proto: Some(text.clone()),
                    has_list: list.is_some(),
                }
            }
        };
        (reader.count() == before).then_some(spec)
    }
}

/// A name for the list of a message: no message of the file or of what it imports has it.
fn free_list_name(name: &str, message: &MessageDescriptor) -> String {
    let pool = message.parent_pool();
    let mut list = format!("{}List", name.rsplit('.').next().unwrap_or(name));
    while pool.all_messages().any(|other| relative(&other) == list) {
        list.push('_');
    }
    list
}

fn check(text: &str) -> Result<(), protox::Error> {
    let mut resolver = protox::file::ChainFileResolver::new();
    resolver.add(OneFile(File::from_source(GENERATED, text)?));
    resolver.add(protox::file::GoogleFileResolver::new());
    Compiler::with_file_resolver(resolver).open_file(GENERATED)?;
    Ok(())
}

const GENERATED: &str = "generated.proto";

struct OneFile(File);

impl protox::file::FileResolver for OneFile {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        if name == self.0.name() { Ok(self.0.clone()) } else { Err(protox::Error::file_not_found(name)) }
    }
}

/// The fields of a message that have a column; other fields are left out.
fn matched(
    reader: &mut Reader<'_>,
    name: &str,
    message: &MessageDescriptor,
    owner: &str,
    schema: &SourceSchema,
    at: &Range<usize>,
) -> Vec<MessageField> {
    let mut fields = Vec::new();
    let mut has_any = false;
    for field in message.fields() {
        let has_column = schema.fields.iter().any(|column| column.name == field.name());
        has_any |= has_column;

        let wrong = if field.cardinality() == Cardinality::Required {
            // Without a required field no program could read the message, and a column may be null.
            Some("is required")
        } else if has_column {
            unsupported(&field)
        } else {
            None
        };

        if let Some(why) = wrong {
            let (message, field) = (name.to_owned(), field.name().to_owned());
            reader.refuse(at.clone(), Mistake::ProtoField { message, field, why });
        } else if has_column && let Some(kind) = proto_type(&field.kind()) {
            fields.push(MessageField { name: field.name().to_owned(), number: field.number(), kind });
        }
    }
    if !has_any {
        let known = message.fields().map(|field| field.name().to_owned()).collect();
        reader.refuse(at.clone(), Mistake::NoFieldMatches { name: name.to_owned(), owner: owner.to_owned(), known });
    }
    fields
}

/// Why a field cannot hold the value of a column.
fn unsupported(field: &FieldDescriptor) -> Option<&'static str> {
    if field.is_map() {
        return Some("is a map");
    }
    if field.is_list() {
        return Some("is repeated");
    }
    // A synthetic oneof is that of `optional`.
    if field.containing_oneof().is_some_and(|oneof| !oneof.is_synthetic()) {
        return Some("is one of a oneof");
    }
    match field.kind() {
        Kind::Enum(_) => Some("is an enum"),
        kind @ Kind::Message(_) if proto_type(&kind).is_none() => Some("is a message"),
        _ => None,
    }
}

fn proto_type(kind: &Kind) -> Option<ProtoType> {
    Some(match kind {
        Kind::Double => ProtoType::Double,
        Kind::Float => ProtoType::Float,
        Kind::Int32 => ProtoType::Int32,
        Kind::Int64 => ProtoType::Int64,
        Kind::Uint32 => ProtoType::Uint32,
        Kind::Uint64 => ProtoType::Uint64,
        Kind::Sint32 => ProtoType::Sint32,
        Kind::Sint64 => ProtoType::Sint64,
        Kind::Fixed32 => ProtoType::Fixed32,
        Kind::Fixed64 => ProtoType::Fixed64,
        Kind::Sfixed32 => ProtoType::Sfixed32,
        Kind::Sfixed64 => ProtoType::Sfixed64,
        Kind::Bool => ProtoType::Bool,
        Kind::String => ProtoType::String,
        Kind::Bytes => ProtoType::Bytes,
        Kind::Message(message) if message.full_name() == "google.protobuf.Timestamp" => ProtoType::Timestamp,
        Kind::Message(_) | Kind::Enum(_) => return None,
    })
}
