//! Row-key and column templates: source columns to Bigtable cells and back. No I/O.
//!
//! A [`TableSpec`] is compiled against a [`SourceSchema`] into a [`Layout`]. Its [`Encoder`] turns batches into
//! key codes, times and value columns ([`LaidOut`]); a [`Block`] is what those become once sorted; `decode` turns
//! a block back into the source's records. [`FieldBound`]s become [`KeyRange`]s.
//!
//! ```
//! use tidetable_layout::{ColumnSpec, FamilySpec, Field, FieldType, Layout, SourceSchema, TableSpec};
//!
//! let field = |name: &str, kind| Field { name: name.to_owned(), kind };
//! let source = SourceSchema { fields: vec![field("meter", FieldType::UInt64), field("ts", FieldType::Timestamp)], time: 1 };
//! let column = |qualifier: &str, value: &str| ColumnSpec { qualifier: qualifier.into(), value: value.into(), ..Default::default() };
//! let families = vec![FamilySpec { name: "METER".into(), columns: vec![column("ID", "{meter}")], ..Default::default() }];
//! let spec = TableSpec { row_key: "{meter:010}#{ts:%Y%m%d}".into(), families, ..Default::default() };
//! let layout = Layout::compile(&spec, &source).map_err(|errors| format!("{errors:?}"))?;
//! assert_eq!(layout.stored().tail.digits(), 8);
//! # Ok::<(), String>(())
//! ```

mod aggregate;
mod block;
mod bound;
mod cell;
mod civil;
mod compile;
mod datum;
mod decode;
mod dictionary;
mod encode;
mod error;
mod fingerprint;
mod frame;
mod hll;
mod intern;
mod json;
mod keys;
mod layout;
mod local_time;
mod packed;
mod percent;
mod proto_file;
mod protobuf;
mod ranges;
mod read;
mod records;
mod rows;
mod schema;
mod segment;
mod spec;
mod template;
#[cfg(test)]
mod tests;
mod time_format;
mod value;
mod window;

pub use block::{Block, GroupBlock, GroupProjection, Projection, Qualifiers};
pub use bound::{FieldBound, KeyRange, Scalar, ValueSet};
pub use cell::{CellWriter, write_cell};
pub use dictionary::Dictionary;
pub use encode::{Dictionaries, Encoder, LaidOut, LaidOutGroup};
pub use error::{
    Advice, ColumnPart, DecodeError, EncodeError, LayoutError, LayoutReject, LayoutWarning, Lost, LostReason, Place,
    Problem, RejectReason,
};
pub use hll::{Distinct, Sketch, SketchError};
pub use keys::Keys;
pub use layout::Layout;
pub use local_time::LocalTime;
pub use packed::PackedWriter;
pub use proto_file::{is_field_number, proto_file};
pub use rows::{RowValues, record_counts};
pub use schema::{
    Column, Group, KeyTail, Merge, MessageField, Packed, PackedForm, ProtoType, QualifierKind, StoredSchema, TailPart,
    TimestampKind,
};
pub use spec::{
    ColumnSpec, FamilySpec, Field, Granularity, MessageSpec, PackedSpec, SourceSchema, TableSpec, TimestampSpec, Window,
};
pub use value::{Encoding, FieldType, TIMES, ValueType};
pub use window::{window_bounds, window_name, window_of};
