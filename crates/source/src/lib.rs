//! Telemetry in files of several formats to typed Arrow batches and rejected rows.
//!
//! - [`SourceSpec`] declares files, columns and types.
//! - [`Storage`] finds [`InputFile`]s on disk or in an object store, hashes and opens them.
//! - [`InputReader`] splits one file into [`Chunk`]s, in order, on one thread.
//! - [`Parser`] turns a chunk into a [`ParsedChunk`], on any thread: a typed batch, the [`Rejected`] rows, and the
//!   [`Origin`] of the accepted ones.
//! - [`Storage::sample`] infers a declaration from a file.
//!
//! [`SchemaMode`] determines how a file whose columns differ from the declaration is handled.
//!
//! An empty file, or one with only blank lines and comments, has no rows and is not an error; a file with only a header
//! has no rows, but must have the declared columns. Numbers that are not finite are rejected. Times are truncated to
//! microseconds.
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
//!         assert_eq!(parsed.rejected[0].to_string(), "line 3, ts: \"soon\" is no time of the form RFC 3339, such as 2026-01-31T18:30:00Z");
//!     }
//!     assert_eq!(reader.content_hash(), storage.hash(&input)?);
//! }
//! # Ok(())
//! # }
//! ```

mod blocks;
mod bucket_error;
mod column_diff;
mod columnar;
mod content_hash;
mod csv;
mod decompress;
mod dump;
pub mod error;
mod format;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod json;
mod location;
mod number;
mod origin;
pub mod panics;
mod parquet;
mod plan;
mod read;
mod reader_version;
mod reject;
pub mod sample;
mod spec;
mod storage;
#[cfg(test)]
mod tests;
mod text_shape;
mod time;
mod value;

pub use blocks::check_arrow_lengths;
pub use column_diff::ColumnDiff;
pub use content_hash::ContentHash;
pub use csv::{Counted, TextNotes};
pub use decompress::PlainContent;
pub use dump::CELL_COLUMNS;
pub use error::SourceError;
pub use format::{Foreign, Format, shell_word};
pub use location::{BucketUrl, Location, LocationError, Split, is_url, redacted, without_passwords};
pub use origin::Origin;
pub use plan::folder_values;
pub use read::{Chunk, Growth, HeldContent, InputReader, ParsedChunk, Parser};
pub use reader_version::ReaderVersion;
pub use reject::{RejectReason, Rejected, shown_text};
pub use spec::Thousands;
pub use spec::{ColumnSpec, CsvOptions, DumpForm, DumpLayout, MaxRejected, Preset, SchemaMode, SourceSpec};
pub use storage::{
    BucketAddress, BucketError, BucketFault, DiscoveredFiles, InputFile, OpenedBucket, PULL_DIRECTORY, PULL_FORMAT,
    PULL_LIST, PULL_UNDER_WAY, PackedContent, PullList, PulledDirectory, PulledFamily, Secret, Storage, Unread,
    UnreadReason, describe_request, folder_of_part, is_http, is_missing_object, is_transient, literal_folders,
    open_object_store,
};
pub use text_shape::TextShape;
pub use time::Ambiguous;
pub use time::{EpochNotes, FormatFault, OddEpoch, TimeCounts};
