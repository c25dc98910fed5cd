//! Decompression of files, with the stored bytes counted and hashed.

use std::io;
use std::io::{BufReader, Cursor, Read};

use bytes::Bytes;
use memchr::memchr;

use crate::content_hash::{ContentHash, Tally, hash_all};
use crate::decompress::gzip::Gzip;
use crate::decompress::zip_archive;
use crate::error::{ArchiveFault, SourceError};
use crate::format::{Compression, Foreign, LOOKED_AT};

/// The marks of zstd frames that hold no data, such as those that parallel compressors write first.
const SKIPPABLE: std::ops::RangeInclusive<u32> = 0x184D_2A50..=0x184D_2A5F;
/// The longest window of zstd that is decompressed, as a power of two: the longest that there is.
const LONGEST_WINDOW: u32 = 31;
/// The largest zip archive. Archives are held in memory because their directory is at the end.
const LARGEST_ARCHIVE: u64 = 1 << 30;

/// The largest content of a compressed file that is held in memory, and the bytes that are decompressed at once.
const LARGEST_CONTENT: usize = 2 << 30;
const PIECE: usize = 4 << 20;

/// The content of a file, without its compression.
pub(crate) struct Content {
    pub bytes: Bytes,
    /// The hash of the stored bytes, and their number.
    pub hash: ContentHash,
    pub stored: u64,
}

type Raw = io::Chain<Cursor<Vec<u8>>, Box<dyn Read + Send>>;

/// A reader that hashes what it reads.
struct Hashed {
    from: Raw,
    tally: Tally,
}

impl Read for Hashed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(into)?;
        self.tally.add(into.get(..count).unwrap_or_default());
        Ok(count)
    }
}

enum Codec {
    Plain(Hashed),
    Gzip(Box<Gzip<Hashed>>),
    Zstd(zstd::Decoder<'static, BufReader<Hashed>>),
    /// The archive is in memory.
    Zip {
        text: Box<dyn Read + Send>,
        archive: Hashed,
    },
}

/// A file being read, decompressed if necessary.
pub(crate) struct Decoded {
    path: String,
    codec: Codec,
    ended: bool,
    /// Whether the file is still as it was found; none if it cannot change.
    is_as_found: Option<AsFound>,
    /// Whether CRs end lines: they become LFs.
    has_return_lines: bool,
}

/// Looks whether a file is still as it was found.
pub(crate) type AsFound = Box<dyn Fn() -> bool + Send + Sync>;

impl Decoded {
    /// Detects the codec by magic bytes; a file extension that contradicts them is an error.
    pub fn new(path: String, mut from: Box<dyn Read + Send>) -> Result<Self, SourceError> {
        let mut magic = Vec::new();
        let io = |source| SourceError::Io { path: path.clone(), source };
        (&mut from).take(4).read_to_end(&mut magic).map_err(io)?;
        let mark = magic.first_chunk().map(|mark| u32::from_le_bytes(*mark));
        let is_skippable = mark.is_some_and(|mark| SKIPPABLE.contains(&mark));
        let found = Compression::of_bytes(&magic).or(is_skippable.then_some(Compression::ZSTD));
        if let Some(promised) = Compression::of_name(&path.to_ascii_lowercase())
            && found.is_none()
            && !magic.is_empty()
        {
            return Err(not_compressed(path, promised, magic, &mut from));
        }
        let mut hashed = Hashed { from: Cursor::new(magic).chain(from), tally: Tally::default() };
        let codec = match found {
            Some(Compression::GZIP) => Codec::Gzip(Box::new(Gzip::new(hashed))),
            Some(Compression::ZIP) => {
                let mut bytes = Vec::new();
                (&mut hashed).take(LARGEST_ARCHIVE + 1).read_to_end(&mut bytes).map_err(io)?;
                if bytes.len() as u64 > LARGEST_ARCHIVE {
                    return Err(SourceError::Archive { path, fault: ArchiveFault::TooLarge(LARGEST_ARCHIVE) });
                }
                Codec::Zip { text: zip_archive::open(&path, bytes.into())?, archive: hashed }
            }
            Some(_) => {
                let mut decoder = zstd::Decoder::new(hashed).map_err(io)?;
                decoder.window_log_max(LONGEST_WINDOW).map_err(io)?;
                Codec::Zstd(decoder)
            }
            None => Codec::Plain(hashed),
        };
        Ok(Self { path, codec, ended: false, is_as_found: None, has_return_lines: false })
    }

    /// The file, for messages.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The same, with a look whether the file has changed since it was found.
    pub fn with_look(mut self, is_as_found: Option<AsFound>) -> Self {
        self.is_as_found = is_as_found;
        self
    }

    /// Whether the file has changed since it was found.
    pub fn has_changed(&self) -> bool {
        self.is_as_found.as_ref().is_some_and(|is_as_found| !is_as_found())
    }

    /// Takes CRs as line ends, those of `read` too: the last bytes read so far. It gets more if it ends with a CR.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn take_returns_as_line_ends(&mut self, read: &mut Vec<u8>) -> Result<(), SourceError> {
        self.has_return_lines = true;
        self.end_behind_return(read)?;
        returns_to_line_ends(read);
        Ok(())
    }

    /// Whether CRs are taken as line ends.
    pub fn takes_returns_as_line_ends(&self) -> bool {
        self.has_return_lines
    }

    /// The same, keeping the hashes of its first so many bytes, if it is not compressed.
    pub fn with_marks(mut self, marks: Vec<u64>) -> Self {
        if let Codec::Plain(hashed) = &mut self.codec {
            hashed.tally.mark(marks);
        }
        self
    }

    /// The hash of the first `mark` bytes, if they were marked, once all of them were read.
    pub fn marked(&self, mark: u64) -> Option<ContentHash> {
        self.hashed()?.tally.marked(mark)
    }

    /// Appends up to `limit` bytes; fewer only at the end of the file. More if they would end with a CR that may be part of
    /// a CR LF, where CRs are line ends.
    pub fn append(&mut self, into: &mut Vec<u8>, limit: usize) -> Result<usize, SourceError> {
        let start = into.len();
        self.append_raw(into, limit)?;
        if self.has_return_lines {
            self.end_behind_return(into)?;
            returns_to_line_ends(into.get_mut(start..).unwrap_or_default());
        }
        Ok(into.len() - start)
    }

    /// Reads on while `read`, the last bytes read, ends with a CR.
    fn end_behind_return(&mut self, read: &mut Vec<u8>) -> Result<(), SourceError> {
        while read.last() == Some(&b'\r') && self.append_raw(read, 1)? > 0 {}
        Ok(())
    }

    /// Appends up to `limit` bytes as they are; fewer only at the end of the file.
    fn append_raw(&mut self, into: &mut Vec<u8>, limit: usize) -> Result<usize, SourceError> {
        let (start, limit) = (into.len(), limit as u64);
        let failed = |codec: &'static str| {
            let path = self.path.clone();
            move |source| SourceError::Compression { path, codec, source }
        };
        let count = match &mut self.codec {
            Codec::Plain(hashed) => {
                // Bypasses the hashing reader, for which the buffer would be zeroed before each read.
                let count = (&mut hashed.from)
                    .take(limit)
                    .read_to_end(into)
                    .map_err(|source| SourceError::Io { path: self.path.clone(), source })?;
                hashed.tally.add(into.get(start..).unwrap_or_default());
                count
            }
            Codec::Gzip(gzip) => gzip.take(limit).read_to_end(into).map_err(failed(Compression::GZIP.name))?,
            Codec::Zstd(zstd) => zstd.take(limit).read_to_end(into).map_err(failed(Compression::ZSTD.name))?,
            Codec::Zip { text, .. } => text.take(limit).read_to_end(into).map_err(failed(Compression::ZIP.name))?,
        };
        if (count as u64) < limit && !self.ended {
            self.ended = true;
            self.drain()?;
        }
        Ok(count)
    }

    /// The whole content, held in memory: files of formats that are read from their ends.
    ///
    /// # Errors
    /// [`SourceError::TooLarge`], and those of reading.
    pub fn into_content(mut self) -> Result<Content, SourceError> {
        let mut bytes = Vec::new();
        while self.append(&mut bytes, PIECE)? == PIECE {
            if bytes.len() > LARGEST_CONTENT {
                return Err(SourceError::TooLarge { path: self.path, limit: LARGEST_CONTENT });
            }
        }
        Ok(Content { bytes: bytes.into(), hash: self.hash(), stored: self.bytes() })
    }

    /// Reads bytes that the decoder left unread, so that the hash covers the whole file.
    fn drain(&mut self) -> Result<(), SourceError> {
        let Some(hashed) = self.hashed_mut() else { return Ok(()) };
        let mut rest = Tally::default();
        hash_all(hashed, &mut rest).map_err(|source| SourceError::Io { path: self.path.clone(), source })
    }

    fn hashed_mut(&mut self) -> Option<&mut Hashed> {
        match &mut self.codec {
            Codec::Plain(hashed) => Some(hashed),
            Codec::Gzip(gzip) => gzip.get_mut(),
            Codec::Zstd(zstd) => Some(zstd.get_mut().get_mut()),
            Codec::Zip { archive, .. } => Some(archive),
        }
    }

    fn hashed(&self) -> Option<&Hashed> {
        match &self.codec {
            Codec::Plain(hashed) => Some(hashed),
            Codec::Gzip(gzip) => gzip.get_ref(),
            Codec::Zstd(zstd) => Some(zstd.get_ref().get_ref()),
            Codec::Zip { archive, .. } => Some(archive),
        }
    }

    /// Stored bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.hashed().map_or(0, |hashed| hashed.tally.bytes())
    }

    /// The hash of the stored bytes read so far.
    pub fn hash(&self) -> ContentHash {
        self.hashed().map_or_else(|| Tally::default().hash(), |hashed| hashed.tally.hash())
    }
}

/// The error for a file that begins with `magic`, which is not that of the codec of its ending.
fn not_compressed(path: String, promised: Compression, magic: Vec<u8>, from: &mut impl Read) -> SourceError {
    let codec = promised.name;
    if promised.mark.starts_with(&magic) {
        return SourceError::Compression { path, codec, source: io::ErrorKind::UnexpectedEof.into() };
    }
    let mut start = magic;
    if let Err(source) = from.take(LOOKED_AT as u64).read_to_end(&mut start) {
        return SourceError::Io { path, source };
    }
    match Foreign::of(&start) {
        Some(format) => SourceError::Foreign { path, format: format.as_stored() },
        None => SourceError::NotCompressed { path, codec },
    }
}

/// Makes LF of each CR, except for that of a CR LF, which is one line end.
fn returns_to_line_ends(bytes: &mut [u8]) {
    let mut start = 0;
    while let Some(found) = bytes.get(start..).and_then(|rest| memchr(b'\r', rest)) {
        let (at, next) = (start + found, start + found + 1);
        if bytes.get(next) != Some(&b'\n')
            && let Some(byte) = bytes.get_mut(at)
        {
            *byte = b'\n';
        }
        start = next;
    }
}
