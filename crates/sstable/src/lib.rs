//! The SST: one immutable, sorted, columnar file of rows. Knows bytes, not paths or manifests.
//!
//! * [`encode_stripe`] turns the rows of one stripe into bytes; pure, so that many can run at once;
//! * [`Writer`] puts stripes in key order behind each other, then the filter, the index and the footer;
//! * [`Reader`] finds stripes by key and decodes what a projection asks for;
//! * [`Reader::verify`] reads everything back and checks it ([`Reader::sweep`] its bytes alone), [`Reader::inspect`] says
//!   where the bytes are.
//!
//! The bytes are drawn in `format.rs`. Every part is under a checksum that is kept in the part above it, up to the
//! footer, and the top two levels are bound to the file's uid and to their offset: a flipped bit, a swapped page and a
//! stripe of another file are all errors.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::sync::Arc;
//! use tidetable_layout::{Block, KeyTail, Keys, Projection, StoredSchema, TailPart};
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

mod byte_list;
mod checksum;
mod counts;
mod cuts;
mod error;
mod extremes;
mod filter;
mod footer;
mod format;
mod frames;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod group;
mod header;
mod inspect;
mod ints;
mod key_page;
mod meta;
mod numbers;
mod options;
mod order;
mod packed;
#[doc(hidden)]
pub mod planted;
mod presence;
mod reader;
mod scaled;
mod shapes;
mod source;
mod stats;
mod stream;
mod stripe;
mod stripe_reader;
mod summary;
mod sums;
mod values;
mod verify;
mod wire;
mod writer;

#[cfg(test)]
mod tests;

pub use counts::ReadCounts;
pub use cuts::stripe_cuts;
pub use error::{Part, ReadError, WriteError};
pub use format::{MAX_RAW_BYTES, MAX_RECORDS, PAGE_RECORDS, VERSION};
pub use group::KeepRecords;
pub use inspect::{ChunkInspection, Inspection, StripeInspection};
pub use options::{Compression, StripeLimits, WriteOptions};
pub use reader::Reader;
pub use source::{FileSource, ReadAt};
pub use stats::{ColumnMeta, Scalar, StripeMeta};
pub use stripe::{EncodedStripe, encode_rows, encode_stripe};
pub use stripe_reader::StripeReader;
pub use summary::FileSummary;
pub use verify::{Sweep, VerifySummary};
pub use writer::Writer;
