//! Random-access sources of file bytes.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::ops::Range;

use bytes::Bytes;

/// Random access to the bytes of one immutable file: a local file, an object in a bucket, or bytes in memory.
#[expect(clippy::len_without_is_empty, reason = "an empty file is an error, never a case")]
pub trait ReadAt: Send + Sync + Debug {
    /// The size of the file in bytes, known without reading.
    fn len(&self) -> u64;

    /// `len` bytes at `offset`.
    ///
    /// # Errors
    /// `UnexpectedEof` if the range exceeds the file; other errors of the storage.
    fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes>;

    /// Announces that a range will be read soon, so that a source in a network fetches it meanwhile. It may do nothing, and
    /// errors show when the range is read.
    fn will_read(&self, range: Range<u64>) {
        let _ = range;
    }
}

impl ReadAt for Bytes {
    fn len(&self) -> u64 {
        self.as_ref().len() as u64
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let end =
            start.checked_add(len).filter(|end| *end <= self.as_ref().len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(self.slice(start..end))
    }
}

/// A local file, read by `pread`, so that threads share one descriptor.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    len: u64,
}

impl FileSource {
    /// Wraps an open file.
    ///
    /// # Errors
    /// If its length cannot be read.
    pub fn new(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { file, len })
    }
}

impl ReadAt for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Bytes> {
        if offset.checked_add(len as u64).is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut buffer = vec![0; len];
        read_exact_at(&self.file, &mut buffer, offset)?;
        Ok(buffer.into())
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                buffer = &mut buffer[read..];
                offset += read as u64;
            }
        }
    }
    Ok(())
}
