//! Space for what queries spill: one file without a name in the system's directory for temporary files.
//!
//! However the process ends, also by SIGKILL, the system frees the file. Spill files are lists of its blocks, so that many of
//! them need one file descriptor; the blocks of a dropped one are reused.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use datafusion::common::exec_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::spill_file::{SpillFile, SpillWriter, TempFileFactory};
use futures::Stream;

/// Bytes of a block, which are also written and read at a time.
const BLOCK_BYTES: usize = 1 << 18;

/// Makes spill files in one file, which is created with the first of them.
#[derive(Debug, Default)]
pub(crate) struct SpillSpace(Mutex<Option<Arc<Space>>>);

impl TempFileFactory for SpillSpace {
    fn create_temp_file(&self, _: &str) -> Result<Arc<dyn SpillFile>> {
        let mut space = locked(&self.0);
        let space = match space.as_ref() {
            Some(space) => Arc::clone(space),
            None => Arc::clone(space.insert(Arc::new(Space::create()?))),
        };
        Ok(Arc::new(SpilledBlocks(Arc::new(Content { space, extent: Mutex::default() }))))
    }
}

#[derive(Debug)]
struct Space {
    file: File,
    blocks: Mutex<FreeBlocks>,
}

/// The blocks of the spill space that no file has.
#[derive(Debug, Default)]
struct FreeBlocks {
    /// Blocks of files that were dropped.
    reusable: Vec<u64>,
    /// The first block that no file has ever had.
    end: u64,
}

impl Space {
    fn create() -> Result<Self> {
        let folder = std::env::temp_dir();
        let file = tempfile::tempfile_in(&folder)
            .map_err(|error| exec_datafusion_err!("cannot create a spill file in {}: {error}", folder.display()))?;
        Ok(Self { file, blocks: Mutex::default() })
    }

    /// A block for a file to write to: a reusable one if there is one.
    fn take(&self) -> u64 {
        let mut blocks = locked(&self.blocks);
        if let Some(block) = blocks.reusable.pop() {
            return block;
        }
        blocks.end += 1;
        blocks.end - 1
    }

    fn write(&self, block: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, block * BLOCK_BYTES as u64).map_err(|error| {
            let folder = std::env::temp_dir();
            io::Error::new(error.kind(), format!("cannot write to a spill file in {}: {error}", folder.display()))
        })
    }
}

/// A file of the spill space; its blocks are free when it is dropped.
#[derive(Debug)]
struct SpilledBlocks(Arc<Content>);

#[derive(Debug)]
struct Content {
    space: Arc<Space>,
    extent: Mutex<Extent>,
}

/// Where the bytes of a spill file are.
#[derive(Debug, Default)]
struct Extent {
    blocks: Vec<u64>,
    bytes: u64,
}

impl Drop for Content {
    fn drop(&mut self) {
        let extent = self.extent.get_mut().unwrap_or_else(PoisonError::into_inner);
        locked(&self.space.blocks).reusable.append(&mut extent.blocks);
    }
}

impl Content {
    /// The bytes from `start` to the end of their block, or of the file; none at its end.
    fn read(&self, start: u64) -> Result<Bytes> {
        let (block, offset) = (start / BLOCK_BYTES as u64, start % BLOCK_BYTES as u64);
        let extent = locked(&self.extent);
        let length = extent.bytes.saturating_sub(start).min(BLOCK_BYTES as u64 - offset);
        let block = usize::try_from(block).ok().and_then(|block| extent.blocks.get(block).copied());
        drop(extent);

        let Some(block) = block.filter(|_| length > 0) else { return Ok(Bytes::new()) };
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(BLOCK_BYTES)];
        self.space.file.read_exact_at(&mut bytes, block * BLOCK_BYTES as u64 + offset)?;
        Ok(bytes.into())
    }
}

impl SpillFile for SpilledBlocks {
    fn size(&self) -> Option<u64> {
        Some(locked(&self.0.extent).bytes)
    }

    /// A file may be read while it is written: the stream has what was flushed.
    fn read_stream(&self) -> Result<Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>> {
        let content = Arc::clone(&self.0);
        Ok(Box::pin(futures::stream::try_unfold(0_u64, move |start| {
            let read = content.read(start).map(|bytes| {
                let end = start + bytes.len() as u64;
                (!bytes.is_empty()).then_some((bytes, end))
            });
            futures::future::ready(read)
        })))
    }

    fn open_writer(&self) -> Result<Box<dyn SpillWriter>> {
        let content = Arc::clone(&self.0);
        let bytes = locked(&content.extent).bytes;
        // What is appended begins in the last block.
        let tail = content.read(bytes - bytes % BLOCK_BYTES as u64)?;
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        block.extend_from_slice(&tail);
        let full = bytes / BLOCK_BYTES as u64;
        Ok(Box::new(BlockWriter { content, full: usize::try_from(full).unwrap_or(usize::MAX), block }))
    }
}

/// Appends to a spill file, block by block.
struct BlockWriter {
    content: Arc<Content>,
    /// Number of blocks before the one that is written.
    full: usize,
    /// The bytes of the block that is written now.
    block: Vec<u8>,
}

impl Write for BlockWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (taken, _) = bytes.split_at(bytes.len().min(BLOCK_BYTES - self.block.len()));
        self.block.extend_from_slice(taken);
        if self.block.len() == BLOCK_BYTES {
            self.flush()?;
            self.full += 1;
            self.block.clear();
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let mut extent = locked(&self.content.extent);
        let block = match extent.blocks.get(self.full) {
            Some(block) => *block,
            None => {
                let block = self.content.space.take();
                extent.blocks.push(block);
                block
            }
        };
        self.content.space.write(block, &self.block)?;
        extent.bytes = (self.full * BLOCK_BYTES + self.block.len()) as u64;
        Ok(())
    }
}

impl SpillWriter for BlockWriter {
    fn finish(&mut self) -> Result<()> {
        Ok(self.flush()?)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use futures::executor::block_on_stream;

    use super::*;

    fn read(file: &Arc<dyn SpillFile>) -> Vec<u8> {
        block_on_stream(file.read_stream().unwrap()).flat_map(|bytes| bytes.unwrap()).collect()
    }

    fn written(space: &SpillSpace, seed: u8, length: usize) -> (Arc<dyn SpillFile>, Vec<u8>) {
        let file = space.create_temp_file("a test").unwrap();
        let bytes: Vec<u8> = (0..length).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed)).collect();
        let mut writer = file.open_writer().unwrap();
        for piece in bytes.chunks(7_001) {
            writer.write_all(piece).unwrap();
        }
        writer.finish().unwrap();
        (file, bytes)
    }

    #[test]
    fn files_hold_what_was_written() {
        let space = SpillSpace::default();
        for length in [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES + 5] {
            let (file, bytes) = written(&space, 1, length);
            assert_eq!(file.size(), Some(length as u64));
            assert!(read(&file) == bytes, "{length}");
            assert!(file.path().is_none());
        }
    }

    #[test]
    fn files_share_a_space_and_leave_it_to_others() {
        let space = SpillSpace::default();
        let (first, bytes) = written(&space, 1, 5 * BLOCK_BYTES);
        let (second, others) = written(&space, 2, 3 * BLOCK_BYTES + 1);
        assert!(read(&first) == bytes && read(&second) == others);
        drop(first);
        let (third, bytes) = written(&space, 3, 6 * BLOCK_BYTES);
        assert!(read(&second) == others && read(&third) == bytes);
        // Nine blocks in two files, then one more.
        let used = locked(&space.0).as_ref().map(|space| locked(&space.blocks).end);
        assert_eq!(used, Some(10));
    }

    #[test]
    fn a_file_is_read_while_it_is_written() {
        let space = SpillSpace::default();
        let file = space.create_temp_file("a test").unwrap();
        let mut writer = file.open_writer().unwrap();
        writer.write_all(b"one").unwrap();
        assert!(read(&file).is_empty());
        writer.flush().unwrap();
        let mut stream = file.read_stream().unwrap();
        let mut next = || futures::executor::block_on(stream.next()).unwrap().unwrap();
        assert_eq!(next(), &b"one"[..]);
        writer.write_all(b", two").unwrap();
        writer.finish().unwrap();
        assert_eq!(next(), &b", two"[..]);
        drop(writer);
        let mut writer = file.open_writer().unwrap();
        writer.write_all(b", three").unwrap();
        writer.finish().unwrap();
        assert_eq!(read(&file), b"one, two, three");
    }
}
