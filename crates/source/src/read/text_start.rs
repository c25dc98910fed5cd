//! The beginning of a text: its mark, the lines before its header, the header, and what decides how the rest is read.

use std::collections::BTreeMap;

use memchr::{memchr, memchr_iter};

use crate::csv::{Dialect, Scan, Span, is_separator_line, name_by_place, split};
use crate::decompress::Decoded;
use crate::error::SourceError;
use crate::format::BYTE_ORDER_MARK;
use crate::text_shape::TextShape;

/// The longest record: 256 MiB, twice that with doubled quotes. Longer text without a line end is not CSV.
pub(super) const LONGEST_RECORD: usize = 512 << 20;
/// Bytes of a text without LF after which its CRs are its line ends.
const WITHOUT_LINE_END: usize = 16 << 20;
/// Records whose width is looked at where no header tells it.
const WIDTH_RECORDS: usize = 64;

/// The beginning of a text, as far as it has been read and not taken.
pub(super) struct TextStart {
    pub bytes: Decoded,
    pub buffer: Vec<u8>,
    /// Whether the buffer reaches to the end of the text.
    pub exhausted: bool,
    /// Offset of the buffer in the text, in bytes.
    pub offset: u64,
    /// The line on which the buffer starts, from 1.
    pub line: u64,
    pub chunk_bytes: usize,
}

/// The header of a text.
pub(super) struct Header {
    pub names: Vec<String>,
    /// The header as it is written, without its line end.
    pub text: Vec<u8>,
}

impl TextStart {
    /// Reads the first `least` bytes of a text, or all if it has fewer.
    pub fn read(mut bytes: Decoded, least: usize, chunk_bytes: usize) -> Result<Self, SourceError> {
        let mut buffer = Vec::new();
        let exhausted = bytes.append(&mut buffer, least)? < least;
        Ok(Self { bytes, buffer, exhausted, offset: 0, line: 1, chunk_bytes })
    }

    /// Takes a byte order mark off the beginning.
    pub fn skip_mark(&mut self) {
        if self.buffer.starts_with(BYTE_ORDER_MARK) {
            self.take(BYTE_ORDER_MARK.len());
        }
    }

    /// Takes `count` lines, or all if there are fewer.
    ///
    /// # Errors
    /// [`SourceError::RecordTooLong`], and those of reading.
    pub fn skip_lines(&mut self, count: u64) -> Result<(), SourceError> {
        for _ in 0..count {
            let end = loop {
                match memchr(b'\n', &self.buffer) {
                    Some(end) => break end + 1,
                    None if self.exhausted => break self.buffer.len(),
                    None => self.append_more()?,
                }
            };
            self.take(end);
            self.line += 1;
        }
        Ok(())
    }

    /// Reads up to the first LF, and takes CRs as line ends if there is none, or was none when a table loaded the text.
    pub fn find_line_ends(&mut self, shape: TextShape) -> Result<(), SourceError> {
        if shape.returns {
            return self.bytes.take_returns_as_line_ends(&mut self.buffer);
        }

        let mut seen = 0;
        while memchr(b'\n', self.buffer.get(seen..).unwrap_or_default()).is_none() {
            seen = self.buffer.len();
            if self.exhausted || seen >= WITHOUT_LINE_END {
                if memchr(b'\r', &self.buffer).is_some() {
                    self.bytes.take_returns_as_line_ends(&mut self.buffer)?;
                }
                break;
            }
            self.append_more()?;
        }
        Ok(())
    }

    /// Takes the header, with blank lines and comments before it; `None` if the text has none.
    ///
    /// # Errors
    /// [`SourceError::HeaderQuote`], [`SourceError::HeaderReturn`], [`SourceError::RecordTooLong`], [`SourceError::Changed`] if
    /// the header is cut off, and those of reading.
    pub fn header(&mut self, dialect: &Dialect) -> Result<Option<Header>, SourceError> {
        let mut at = 0;
        let mut header = None;
        while header.is_none() && (at < self.buffer.len() || !self.exhausted) {
            match dialect.scan(&self.buffer, at, self.exhausted) {
                Scan::Record(end) => {
                    let record = self.buffer.get(at..end).unwrap_or_default();
                    header = header_of(dialect, record, self.bytes.path(), self.line)?;
                    let is_cut = self.exhausted && end == self.buffer.len() && !record.ends_with(b"\n");
                    if header.is_some() && is_cut && self.bytes.has_changed() {
                        return Err(SourceError::Changed { path: self.bytes.path().to_owned() });
                    }

                    self.line += memchr_iter(b'\n', record).count() as u64;
                    at = end;
                }
                Scan::Open { .. } => return Err(SourceError::HeaderQuote { path: self.bytes.path().to_owned() }),
                Scan::More => self.append_more()?,
            }
        }
        self.take(at);
        Ok(header)
    }

    /// The fields that most of the first records have, of which none is a header; 0 if there is none. One ragged record does not
    /// decide for the others.
    pub fn usual_width(&mut self, dialect: &Dialect) -> Result<usize, SourceError> {
        let mut records: BTreeMap<usize, usize> = BTreeMap::new();
        let (mut spans, mut scratch): (Vec<Span>, Vec<u8>) = (Vec::new(), Vec::new());
        let (mut at, mut left) = (0, WIDTH_RECORDS);
        while left > 0 && (at < self.buffer.len() || !self.exhausted) {
            match dialect.scan(&self.buffer, at, self.exhausted) {
                Scan::Record(end) => {
                    let record = dialect.body(self.buffer.get(at..end).unwrap_or_default());
                    if !record.is_empty() && !dialect.is_comment(record) {
                        split(dialect, record, &mut spans, &mut scratch);
                        *records.entry(spans.len()).or_default() += 1;
                        left -= 1;
                    }
                    at = end;
                }
                Scan::Open { resume, .. } => at = resume,
                Scan::More if self.exhausted || self.buffer.len() >= LONGEST_RECORD || !records.is_empty() => break,
                Scan::More => self.append_more()?,
            }
        }

        // Of widths that are as common, the least.
        let usual = records.into_iter().rev().max_by_key(|(_, records)| *records);
        Ok(usual.map_or(0, |(width, _)| width))
    }

    fn take(&mut self, count: usize) {
        self.buffer.drain(..count);
        self.offset += count as u64;
    }

    fn append_more(&mut self) -> Result<(), SourceError> {
        if self.buffer.len() >= LONGEST_RECORD {
            let (path, bytes) = (self.bytes.path().to_owned(), self.buffer.len());
            return Err(SourceError::RecordTooLong { path, line: self.line, bytes });
        }
        self.exhausted = append_more(&mut self.bytes, &mut self.buffer, self.chunk_bytes)?;
        Ok(())
    }
}

/// Reads more of an unfinished record; returns whether the input is exhausted. Doubles the buffer, because all of it is
/// scanned again.
pub(super) fn append_more(bytes: &mut Decoded, buffer: &mut Vec<u8>, chunk_bytes: usize) -> Result<bool, SourceError> {
    let wanted = chunk_bytes.max(buffer.len());
    Ok(bytes.append(buffer, wanted)? < wanted)
}

/// The header that a record is; `None` for a blank line, a comment, or a line that declares the delimiter.
///
/// # Errors
/// [`SourceError::HeaderReturn`]: it has a CR that ends no line.
fn header_of(dialect: &Dialect, record: &[u8], path: &str, line: u64) -> Result<Option<Header>, SourceError> {
    let record = dialect.body(record);
    if record.is_empty() || dialect.is_comment(record) || is_separator_line(record) {
        return Ok(None);
    }

    let (mut spans, mut scratch): (Vec<Span>, Vec<u8>) = (Vec::new(), Vec::new());
    split(dialect, record, &mut spans, &mut scratch);
    let mut names = Vec::with_capacity(spans.len());
    for span in &spans {
        let name = String::from_utf8_lossy(span.of(record, &scratch)).into_owned();
        if dialect.reader.has_strict_records()
            && !span.quoted
            && let Some((before, _)) = name.split_once('\r')
        {
            return Err(SourceError::HeaderReturn { path: path.to_owned(), line, name: before.to_owned() });
        }
        names.push(name);
    }
    name_by_place(&mut names);
    Ok(Some(Header { names, text: record.to_vec() }))
}
