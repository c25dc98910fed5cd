//! Layouts: source columns to Bigtable cells and back, by templates of row keys, qualifiers and values. No I/O.
//!
//! A [`TableSpec`] is compiled against a [`SourceSchema`] into a [`Layout`]. Its [`encode::Encoder`] turns batches into
//! key codes, times and value columns ([`encode::EncodedBatch`]), which a load sorts into a [`Block`]. [`Layout::decode`]
//! turns a block back into records of the source. Predicates ([`pushdown::FieldBound`]) become [`KeyRange`]s.
//!
//! ```
//! use tidetable_layout::spec::{ColumnSpec, FamilySpec};
//! use tidetable_layout::{Field, FieldType, Layout, SourceSchema, TableSpec};
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

pub mod block;
pub mod cell;
mod compile;
pub mod decode;
pub mod encode;
pub mod error;
mod fingerprint;
pub mod hll;
pub mod parse;
mod plan;
pub mod protobuf;
pub mod pushdown;
pub mod read_back;
mod scalar;
pub mod schema;
pub mod spec;
mod template;
#[cfg(test)]
mod tests;
pub mod time;
pub mod varint;

pub use block::{Block, GroupBlock, Keys, Projection};
pub use plan::Layout;
pub use pushdown::KeyRange;
pub use schema::{Column, ColumnRef, FieldType, Group, StoredSchema, ValueType};
pub use spec::{Field, SourceSchema, TableSpec, Window};
pub use template::outline;
