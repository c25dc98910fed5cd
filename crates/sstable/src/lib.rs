//! The SST: one immutable, sorted, columnar file of rows. Knows bytes, not paths or manifests.
//!
//! * [`encode_stripe`] encodes the rows of one stripe; pure, so stripes can be encoded in parallel;
//! * [`Writer`] appends stripes in key order, then the filter, meta and footer;
//! * [`Reader`] finds stripes by key and decodes a projection of them;
//! * [`Reader::verify`] checks the whole file ([`Reader::sweep`] only its checksums), [`Reader::inspect`] returns the size of
//!   each part.
//!
//! `format.rs` specifies the bytes. Each part has a checksum that is stored in its parent, up to the footer; the top two
//! levels are bound to the file's uid and their offset. Flipped bits, swapped pages and stripes of other files are errors.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::sync::Arc;
//! use tidetable_layout::schema::{KeyTail, TailPart};
//! use tidetable_layout::{Block, Keys, Projection, StoredSchema};
//! use tidetable_sstable::{Reader, WriteOptions, Writer, encode_stripe};
//!
//! let schema = Arc::new(StoredSchema { tail: KeyTail { parts: vec![TailPart::Digits(8)] }, groups: vec![], upsert: false });
//! let mut keys = Keys::new(Arc::new(schema.tail.clone()));
//! keys.push(b"0000987654#", 20170726);
//! let block = Block { keys, groups: vec![] };
//!
//! let options = WriteOptions::new(7);
//! let mut writer = Writer::new(Vec::new(), Arc::clone(&schema), options.clone(), BTreeMap::new())?;
//! writer.push(encode_stripe(&schema, &options, &block)?)?;
//! let (bytes, summary) = writer.finish()?;
//! assert_eq!(summary.rows, 1);
//!
//! let reader = Reader::open(Arc::new(bytes::Bytes::from(bytes)))?;
//! let rows = reader.read_stripe(0, &Projection::all(&schema))?;
//! assert_eq!(rows.keys.get(0), b"0000987654#20170726");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod codec;
mod coding;
mod column;
mod error;
mod file;
mod format;
mod group;
mod io;
mod keys;
mod options;
mod read;
mod stats;
mod stripe;
pub mod tools;

#[cfg(test)]
mod tests;

pub use codec::value_range::ValueRange;
pub use error::{FilePart, ReadError, WriteError};
pub use file::{FileSummary, Reader, Writer};
pub use group::RecordFilter;
pub use io::{FileSource, ReadAt, ReadCounts};
pub use options::{Compression, StripeLimits, WriteOptions};
pub use read::StripeReader;
pub use stats::{ColumnMeta, Scalar, StripeMeta};
pub use stripe::{EncodedStripe, encode_rows, encode_stripe, stripe_splits};
