//! CSV and Parquet telemetry to typed Arrow batches and rejected rows.
//!
//! - [`SourceSpec`] says which files, which columns, which types.
//! - [`Storage`] finds the [`InputFile`]s, on disk or in an object store, hashes and opens them.
//! - [`InputReader`] cuts one file into [`Chunk`]s, in order, on one thread.
//! - [`Storage::sample`] looks at a file of which nothing is declared, and says what to declare.
//! - [`Parser`] turns a chunk into a [`ParsedChunk`], on any thread: a typed batch, the [`Rejected`] rows, and the
//!   [`Origin`] of the accepted ones.
//!
//! What becomes of a file that has other columns than its source declares is a matter of [`SchemaMode`].
//!
//! A file without a byte, or with blank lines and comments only, has no rows and is no error; a file with a header only
//! has no rows, but must have the declared columns. Numbers that are not finite are rejected, because their text has
//! no use in a cell. Digits of a time beyond the microsecond are cut off.
//!
//! ```
//! use tidetable_layout::FieldType;
//! use tidetable_source::{ColumnSpec, SourceSpec, Storage};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let root = tempfile::tempdir()?;
//! std::fs::write(root.path().join("a.csv"), "ts,meter,kwh\n2017-07-26T00:15:00Z,987654,12.34\nsoon,1,2\n")?;
//!
//! let spec = SourceSpec {
//!     name: "readings".to_owned(),
//!     files: vec!["*.csv".to_owned()],
//!     columns: vec![
//!         ColumnSpec::new("meter", FieldType::UInt64),
//!         ColumnSpec::new("ts", FieldType::Timestamp),
//!         ColumnSpec::new("kwh", FieldType::Float64),
//!     ],
//!     time: "ts".to_owned(),
//!     ..SourceSpec::default()
//! };
//! let storage = Storage::new(root.path().to_owned(), None);
//! for input in storage.discover(&spec)? {
//!     let mut reader = storage.open(&spec, &input)?;
//!     let parser = reader.parser();
//!     for chunk in &mut reader {
//!         let parsed = parser.parse(chunk?)?;
//!         assert_eq!(parsed.batch.num_rows(), 1);
//!         assert_eq!(parsed.rejected[0].to_string(), "line 3, ts: \"soon\" is no time of the form RFC 3339");
//!     }
//!     assert_eq!(reader.content_hash(), storage.hash(&input)?);
//! }
//! # Ok(())
//! # }
//! ```

mod chunk;
mod column;
mod columns;
mod csv;
mod decode;
mod error;
mod field;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod growth;
mod hash;
mod number;
mod origin;
mod parquet;
mod parser;
mod plan;
mod reader;
mod reject;
mod sample;
mod spec;
mod storage;
#[cfg(test)]
mod tests;
mod time;
mod wanted;
mod zip;

pub use chunk::Chunk;
pub use columns::ColumnDiff;
pub use error::SourceError;
pub use growth::Growth;
pub use hash::ContentHash;
pub use origin::Origin;
pub use parser::{ParsedChunk, Parser};
pub use reader::InputReader;
pub use reject::{RejectReason, Rejected};
pub use sample::{Sample, SampleColumn, SampleError};
pub use spec::{ColumnSpec, CsvOptions, Format, MaxRejected, SchemaMode, SourceSpec};
pub use storage::{Found, InputFile, Secret, Storage, store_may_pass};
pub use time::{FormatFault, TimeCounts};
pub use zip::ArchiveFault;
