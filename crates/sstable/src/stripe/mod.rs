//! Stripes: the row ranges that a file is written and read in.

mod encode;
mod hashes;
mod head;
mod splits;

pub(crate) use encode::filled_rows;
pub use encode::{EncodedStripe, encode_rows, encode_stripe};
pub(crate) use hashes::{KeyHashes, schema_hash};
pub(crate) use head::StripeHead;
pub use splits::stripe_splits;
