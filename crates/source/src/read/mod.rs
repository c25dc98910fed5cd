//! A file to chunks, and chunks to typed batches.

mod chunk;
mod growth;
mod input_reader;
mod parser;
mod stop_check;

pub use chunk::Chunk;
pub use growth::{Growth, HeldContent};
pub use input_reader::InputReader;
pub use parser::{ParsedChunk, Parser};
pub(crate) use stop_check::StopCheck;
