//! The content of a local file, piece by piece: for readers that find their own way through text.

use std::fs::File;
use std::path::Path;

use bytes::Bytes;
use memchr::memchr;

use crate::decompress::Decoded;
use crate::error::SourceError;
use crate::format::BYTE_ORDER_MARK;

/// Bytes of a piece.
const PIECE: usize = 1 << 20;

/// A local file that is read without its compression and without a byte order mark.
pub struct PlainContent {
    bytes: Decoded,
    /// Bytes that were read and not returned yet.
    waiting: Vec<u8>,
    has_ended: bool,
}

impl PlainContent {
    /// Opens a file. Its first bytes say how it is compressed, if it is.
    ///
    /// # Errors
    /// If it cannot be read, or its name promises a compression that it does not have.
    pub fn open(path: &Path) -> Result<Self, SourceError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| SourceError::Io { path: name.clone(), source })?;
        let mut content = Self { bytes: Decoded::new(name, Box::new(file))?, waiting: Vec::new(), has_ended: false };

        content.read_on()?;
        if content.waiting.starts_with(BYTE_ORDER_MARK) {
            content.waiting.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(content)
    }

    /// Skips lines at the beginning; the rest of the file, if it has fewer.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn skip_lines(&mut self, lines: u64) -> Result<(), SourceError> {
        let mut left = lines;
        while left > 0 {
            match memchr(b'\n', &self.waiting) {
                Some(end) => {
                    self.waiting.drain(..=end);
                    left -= 1;
                }
                None if self.has_ended => {
                    self.waiting.clear();
                    return Ok(());
                }
                None => self.read_on()?,
            }
        }
        Ok(())
    }

    /// The bytes that begin the rest of the content; none at its end.
    pub fn at_hand(&self) -> &[u8] {
        &self.waiting
    }

    /// The next bytes, one mebibyte or so; `None` at the end.
    ///
    /// # Errors
    /// If the file cannot be read, or its compression is damaged.
    pub fn next_piece(&mut self) -> Result<Option<Bytes>, SourceError> {
        if self.waiting.is_empty() && !self.has_ended {
            self.read_on()?;
        }
        let piece = std::mem::take(&mut self.waiting);
        Ok((!piece.is_empty()).then(|| piece.into()))
    }

    fn read_on(&mut self) -> Result<(), SourceError> {
        self.has_ended = self.bytes.append(&mut self.waiting, PIECE)? < PIECE;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::write::GzEncoder;

    use super::*;

    fn content(path: &Path, skip: u64) -> Vec<u8> {
        let mut content = PlainContent::open(path).unwrap();
        content.skip_lines(skip).unwrap();
        let mut bytes = Vec::new();
        while let Some(piece) = content.next_piece().unwrap() {
            bytes.extend_from_slice(&piece);
        }
        bytes
    }

    #[test]
    fn content_comes_without_compression_mark_and_lines_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let text = [BYTE_ORDER_MARK, b"one\ntwo\n", &b"three,".repeat(PIECE / 2)].concat();
        let plain = text.strip_prefix(BYTE_ORDER_MARK).unwrap();
        let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).unwrap();
        let gzip = gzip.finish().unwrap();
        for (name, bytes) in [("a.csv", &text), ("a.csv.gz", &gzip)] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            assert!(content(&path, 0) == plain, "{name}");
            assert!(content(&path, 1) == plain[4..], "{name}");
            assert!(content(&path, 9).is_empty(), "{name}");
        }
        std::fs::write(folder.path().join("b.csv.gz"), &gzip[..gzip.len() / 2]).unwrap();
        let mut cut = PlainContent::open(&folder.path().join("b.csv.gz")).unwrap();
        let error = loop {
            match cut.next_piece() {
                Ok(piece) => assert!(piece.is_some()),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains("b.csv.gz"), "{error}");
    }
}
