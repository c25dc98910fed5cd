//! Source batches to cells.

mod batch;
mod checks;
mod dictionary;
mod encoder;
mod input;
mod interner;
mod key_numbers;
mod rejects;
mod unpivot;
mod values;

pub use batch::{Dictionaries, EncodedBatch, EncodedGroup};
pub use dictionary::Dictionary;
pub use encoder::Encoder;
pub use key_numbers::KeyNumbers;
