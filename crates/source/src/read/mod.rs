//! A file to chunks, and chunks to typed batches. `text_start` reads what stands before the records of a text, `input_reader`
//! cuts a file into chunks, and `parser` types them, on any thread; `growth` compares a text with what it was.

mod chunk;
mod growth;
mod input_reader;
mod parsed_chunk;
mod parser;
mod repeated_hour;
mod stop_check;
mod text_start;

pub use chunk::Chunk;
pub use growth::{Growth, HeldContent};
pub use input_reader::InputReader;
pub use parsed_chunk::ParsedChunk;
pub use parser::Parser;
pub(crate) use stop_check::StopCheck;
