//! Cells as a compressed file would hold them.
//!
//! ```text
//! key family qualifier timestamp(8, big-endian) value | key family .. | ..
//! |<------------- 64 KiB ------------->|<------------ 64 KiB ------------>| ..
//! ```
//! How Bigtable compresses is not published. Two codecs, of which one is faster and the other denser than what such files
//! use, give a range. Cells go on across the ends of blocks.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use tidetable_sql::CellRef;

use crate::error::{AdvisorError, Result};

/// Bytes of a block before compression.
const BLOCK: usize = 64 << 10;
/// Bytes that are handed over to be compressed, whole blocks.
const BATCH: usize = 16 * BLOCK;
/// Batches that wait to be compressed.
const WAITING: usize = 2;

/// Bytes of all blocks after compression.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PackedSize {
    /// By Snappy.
    pub snappy: u64,
    /// By zstd, level 1.
    pub zstd: u64,
}

/// Compresses cells in order in a thread of its own, and keeps only the sizes.
pub(super) struct Packer {
    batch: Vec<u8>,
    batches: SyncSender<Vec<u8>>,
    thread: JoinHandle<Result<PackedSize>>,
}

impl Packer {
    pub(super) fn new() -> Result<Self> {
        let (batches, received) = sync_channel::<Vec<u8>>(WAITING);
        let mut compressor = Compressor::new()?;
        let thread = std::thread::spawn(move || {
            let mut size = PackedSize::default();
            for batch in received {
                for block in batch.chunks(BLOCK) {
                    compressor.add(block, &mut size)?;
                }
            }
            Ok(size)
        });
        Ok(Self { batch: Vec::with_capacity(BATCH), batches, thread })
    }

    pub(super) fn add(&mut self, cell: &CellRef<'_>) {
        let timestamp = cell.timestamp.to_be_bytes();
        for part in [cell.row_key, cell.family.as_bytes(), cell.qualifier, &timestamp, cell.value] {
            self.push(part);
        }
    }

    fn push(&mut self, mut part: &[u8]) {
        while self.batch.len() + part.len() >= BATCH {
            let (here, rest) = part.split_at(BATCH - self.batch.len());
            self.batch.extend_from_slice(here);
            part = rest;
            let full = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
            // If the thread has ended, `finish` returns its error.
            let _ = self.batches.send(full);
        }
        self.batch.extend_from_slice(part);
    }

    /// The sizes, after the last cell.
    pub(super) fn finish(self) -> Result<PackedSize> {
        let _ = self.batches.send(self.batch);
        drop(self.batches);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

struct Compressor {
    out: Vec<u8>,
    snappy: snap::raw::Encoder,
    zstd: zstd::bulk::Compressor<'static>,
}

impl Compressor {
    fn new() -> Result<Self> {
        let out = vec![0; snap::raw::max_compress_len(BLOCK).max(zstd::zstd_safe::compress_bound(BLOCK))];
        let zstd = zstd::bulk::Compressor::new(1).map_err(failed)?;
        Ok(Self { out, snappy: snap::raw::Encoder::new(), zstd })
    }

    fn add(&mut self, block: &[u8], size: &mut PackedSize) -> Result<()> {
        size.snappy += self.snappy.compress(block, &mut self.out).map_err(failed)? as u64;
        size.zstd += self.zstd.compress_to_buffer(block, self.out.as_mut_slice()).map_err(failed)? as u64;
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
        let value = vec![7; BATCH + 3 * BLOCK];
        let cell = CellRef { row: 0, row_key: b"key", family: "f", qualifier: b"q", timestamp: -1, value: &value };
        let mut packer = Packer::new().unwrap();
        packer.add(&cell);
        assert_eq!(packer.batch.len(), 3 + 1 + 1 + 8 + 3 * BLOCK);
        let size = packer.finish().unwrap();
        assert!(size.zstd > 0 && size.zstd < size.snappy && size.snappy < BLOCK as u64, "{size:?}");
    }
}
