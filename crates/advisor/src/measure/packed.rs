//! Cells as a compressed file would hold them.
//!
//! ```text
//! key family qualifier timestamp(8, big-endian) value | key family .. | ..
//! |<------------- 64 KiB ------------->|<------------ 64 KiB ------------>| ..
//! ```
//! How Bigtable compresses is not published. Two codecs, of which one is faster and the other denser than what such files
//! use, give a range. Cells go on across the ends of blocks.

use tidetable_layout::cell::CellRef;

use crate::error::{AdvisorError, Result};

/// Bytes of a block before compression.
const BLOCK: usize = 64 << 10;

/// Bytes of all blocks after compression.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PackedSize {
    /// By Snappy, the faster and less dense of both.
    pub snappy: u64,
    /// By zstd at level 1, the denser of both.
    pub zstd: u64,
}

/// Compresses cells in order, and keeps only the sizes.
pub(super) struct Packer {
    block: Vec<u8>,
    out: Vec<u8>,
    snappy: snap::raw::Encoder,
    zstd: zstd::bulk::Compressor<'static>,
    size: PackedSize,
}

impl Packer {
    pub(super) fn new() -> Result<Self> {
        let out = vec![0; snap::raw::max_compress_len(BLOCK).max(zstd::zstd_safe::compress_bound(BLOCK))];
        let zstd = zstd::bulk::Compressor::new(1).map_err(failed)?;
        let block = Vec::with_capacity(2 * BLOCK);
        Ok(Self { block, out, snappy: snap::raw::Encoder::new(), zstd, size: PackedSize::default() })
    }

    pub(super) fn add(&mut self, cell: &CellRef<'_>) -> Result<()> {
        let timestamp = cell.timestamp.to_be_bytes();
        for part in [cell.row_key, cell.family.as_bytes(), cell.qualifier, &timestamp, cell.value] {
            self.block.extend_from_slice(part);
        }
        while self.block.len() >= BLOCK {
            self.pack(BLOCK)?;
        }
        Ok(())
    }

    /// The sizes, after the last cell.
    pub(super) fn finish(mut self) -> Result<PackedSize> {
        if !self.block.is_empty() {
            self.pack(self.block.len())?;
        }
        Ok(self.size)
    }

    fn pack(&mut self, bytes: usize) -> Result<()> {
        let block = self.block.get(..bytes).unwrap_or_default();
        self.size.snappy += self.snappy.compress(block, &mut self.out).map_err(failed)? as u64;
        self.size.zstd += self.zstd.compress_to_buffer(block, self.out.as_mut_slice()).map_err(failed)? as u64;
        self.block.drain(..bytes);
        Ok(())
    }
}

fn failed(error: impl std::fmt::Display) -> AdvisorError {
    AdvisorError::Compression { reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_cell_is_in_a_block() {
        let value = vec![7; 3 * BLOCK];
        let cell = CellRef { row_key: b"key", family: "f", qualifier: b"q", timestamp: -1, value: &value };
        let mut packer = Packer::new().unwrap();
        packer.add(&cell).unwrap();
        assert_eq!(packer.block.len(), 3 + 1 + 1 + 8);
        let size = packer.finish().unwrap();
        assert!(size.zstd > 0 && size.zstd < size.snappy && size.snappy < BLOCK as u64, "{size:?}");
    }
}
