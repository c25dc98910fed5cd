//! Reads of rows from an open file: a stripe as a block of cells, whole or with late materialisation of filtered records.

mod filtered;
mod stripe;

pub use stripe::StripeReader;
