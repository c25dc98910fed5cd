//! Stripes: the row ranges that a file is written and read in.

mod encode;
mod hashes;
mod head;
mod reader;
mod splits;
mod stats;
mod value_range;

pub(crate) use encode::filled_rows;
pub use encode::{EncodedStripe, encode_rows, encode_stripe};
pub(crate) use hashes::{KeyHashes, schema_hash};
pub(crate) use head::StripeHead;
pub use reader::StripeReader;
pub use splits::stripe_splits;
pub use stats::{ColumnMeta, Scalar, StripeMeta};
pub(crate) use stats::{cells_of, column_meta};
pub use value_range::ValueRange;
