//! `ReadRows`: from a request to a stream of chunks.

mod chunks;
mod codec;
mod plan;
mod read;
#[cfg(test)]
mod vectors;

pub(crate) use chunks::ChunkWriter;
pub use codec::{EncodedRows, RowsCodec};
pub(crate) use plan::RowsPlan;
pub(crate) use read::{Reading, read};
