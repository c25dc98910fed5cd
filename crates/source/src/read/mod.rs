//! A file to chunks, and chunks to typed batches.

mod chunk;
mod decompression;
mod growth;
mod gzip;
mod input_reader;
mod parser;
mod stop_check;
mod zip_archive;

pub use chunk::Chunk;
pub(crate) use decompression::{AsFound, Content, Decoded};
pub use growth::{Growth, HeldContent};
pub use input_reader::InputReader;
pub use parser::{ParsedChunk, Parser};
pub(crate) use stop_check::StopCheck;
