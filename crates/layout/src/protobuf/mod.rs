//! Protobuf: the wire format of values, and the `.proto` that describes a table's cells.

pub(crate) mod coding;
mod file;

pub use file::{is_field_number, proto_file};
