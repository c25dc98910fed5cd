//! Boundaries of records and fields.
//!
//! A record ends at `\n`; those `\r` right before it are part of the line end, any other is data. (A file without `\n` is
//! read as if its `\r` were `\n`.) A quote opens a quoted field only as its first byte; in it, two quotes stand for one,
//! and an escape takes its meaning from the quote behind it. After the closing quote, the field goes on unquoted up to its
//! delimiter, unless it contains a line end: then the quote is a stray one, its line is rejected, and reading goes on with
//! the line after it, as for a quote that is never closed.
//!
//! Files that were loaded by the first reading rules are read by them: one `\r` at most is part of a line end, and no quote
//! that is closed is a stray one.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memrchr};

use crate::reader_version::ReaderVersion;
use crate::spec::CsvOptions;
use crate::value::field::find;

/// A quoted field that reaches past its line and is not closed within so many bytes of its record counts as never closed:
/// otherwise one stray quote would buffer the rest of the file. A field that is closed on its own line may be longer.
const LONGEST_QUOTED: usize = 16 << 20;

/// The special bytes of a text, and the rules by which its records and fields are found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dialect {
    pub delimiter: u8,
    pub quote: Option<u8>,
    /// In a quoted field, takes its meaning from a quote or an escape behind it.
    pub escape: Option<u8>,
    pub comment: Option<u8>,
    pub reader: ReaderVersion,
    pub longest_quoted: usize,
    /// Whether the file has `\r` where its bytes, as they are read, have `\n`.
    pub has_returns: bool,
}

/// The result of scanning for the end of a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Scan {
    /// The record ends before this offset, its line end included.
    Record(usize),
    /// The quote at `opened` is a stray one: it is never closed, or text follows the closing quote of a field over several
    /// lines. The next record starts at `resume`, on the line after the quote's.
    Open { opened: usize, resume: usize },
    /// The record does not end within these bytes.
    More,
}

/// Where the records of a text go on that has grown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seam {
    /// The start of the first new record; `None` if the last record of before goes on.
    pub next: Option<usize>,
    /// Where records must end, so that a quote of before does not take in lines that were rows.
    pub new_break: Option<usize>,
}

/// Where the text of a field is: in the record, or unescaped in a scratch buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    start: usize,
    end: usize,
    pub quoted: bool,
    /// Text follows the closing quote, up to the delimiter.
    pub has_text_behind: bool,
    /// Unescaped: the text is in the scratch buffer, not in the record.
    in_scratch: bool,
}

impl Span {
    /// The range in the record of a field without escapes; `None` if its text is in the scratch buffer.
    pub fn in_place(&self) -> Option<Range<usize>> {
        (!self.in_scratch).then_some(self.start..self.end)
    }

    pub fn of<'a>(&self, record: &'a [u8], scratch: &'a [u8]) -> &'a [u8] {
        let from = if self.in_scratch { scratch } else { record };
        from.get(self.start..self.end).unwrap_or_default()
    }

    /// Reads the quoted field that starts here, up to its delimiter; returns where that is.
    fn unquote(&mut self, dialect: &Dialect, record: &[u8], quote: u8, scratch: &mut Vec<u8>) -> usize {
        let scratch_start = scratch.len();
        let escape = dialect.escape.unwrap_or(quote);
        let mut at = self.start + 1;
        self.start = at;

        loop {
            let piece = record.get(at..).unwrap_or_default();
            let length = find(piece, quote, escape).unwrap_or(piece.len());
            let is_escape = piece.get(length).is_some_and(|byte| *byte != quote);
            let next = piece.get(length + 1).copied();
            // What stands for one byte: two quotes, or an escape with what it escapes.
            let meant = next.filter(|next| *next == quote || (is_escape && *next == escape));
            let meant = meant.or(is_escape.then_some(escape));
            at += length + 1 + usize::from(meant.is_some() && meant == next);

            if meant.is_some() || self.in_scratch {
                self.in_scratch = true;
                scratch.extend_from_slice(piece.get(..length).unwrap_or_default());
            }
            let Some(byte) = meant else {
                self.end = self.start + length;
                break;
            };
            scratch.push(byte);
        }

        let rest = record.get(at..).unwrap_or_default();
        let tail = find(rest, dialect.delimiter, dialect.delimiter).unwrap_or(rest.len());
        self.has_text_behind = tail > 0;
        if tail > 0 && !self.in_scratch {
            self.in_scratch = true;
            scratch.extend_from_slice(record.get(self.start..self.end).unwrap_or_default());
        }
        scratch.extend_from_slice(rest.get(..tail).unwrap_or_default());
        if self.in_scratch {
            (self.start, self.end) = (scratch_start, scratch.len());
        }
        at + tail
    }
}

impl Dialect {
    pub fn new(options: &CsvOptions, reader: ReaderVersion) -> Self {
        let CsvOptions { delimiter, quote, escape, comment, .. } = *options;
        Self { delimiter, quote, escape, comment, reader, longest_quoted: LONGEST_QUOTED, has_returns: false }
    }

    /// The dialect of a text whose records are its lines, such as JSON lines.
    pub fn of_lines(reader: ReaderVersion) -> Self {
        Self::new(&CsvOptions { quote: None, ..CsvOptions::default() }, reader)
    }

    /// A record without its line end, and so without the returns right before it.
    pub fn body<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        let line = record.strip_suffix(b"\n").unwrap_or(record);
        if !self.reader.has_strict_records() {
            return line.strip_suffix(b"\r").unwrap_or(line);
        }
        let end = line.iter().rposition(|byte| *byte != b'\r').map_or(0, |last| last + 1);
        line.get(..end).unwrap_or_default()
    }

    /// A text of the file as it is written there.
    pub fn written<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        if !self.has_returns || memchr(b'\n', text).is_none() {
            return Cow::Borrowed(text);
        }
        text.iter().map(|byte| if *byte == b'\n' { b'\r' } else { *byte }).collect()
    }

    pub fn is_comment(&self, record: &[u8]) -> bool {
        self.comment.is_some() && record.first().copied() == self.comment
    }

    /// Scans for the end of the record at `start`. With `whole`, `bytes` is the end of the input.
    pub fn scan(&self, bytes: &[u8], start: usize, whole: bool) -> Scan {
        let unended = if whole { Scan::Record(bytes.len()) } else { Scan::More };
        let record = bytes.get(start..).unwrap_or_default();
        let (false, Some(quote)) = (self.is_comment(record), self.quote) else {
            return line_end(bytes, start).map_or(unended, Scan::Record);
        };

        let mut at = start;
        loop {
            if bytes.get(at) == Some(&quote) {
                match self.close(bytes, start, at, quote) {
                    Some(after) => match self.has_text_behind(bytes, at..after, whole) {
                        Some(true) => return stray_quote(bytes, at, whole),
                        Some(false) => at = after,
                        None => return Scan::More,
                    },
                    None if whole || bytes.len() >= start.saturating_add(self.longest_quoted) => {
                        return stray_quote(bytes, at, whole);
                    }
                    None => return Scan::More,
                }
            }

            match find(bytes.get(at..).unwrap_or_default(), self.delimiter, b'\n') {
                Some(found) if bytes.get(at + found) == Some(&b'\n') => return Scan::Record(at + found + 1),
                Some(found) => at += found + 1,
                None => return unended,
            }
        }
    }

    /// The offset after the closing quote of the one at `opened`: within [`Self::longest_quoted`] bytes of the record, or on
    /// the line of the quote.
    fn close(&self, bytes: &[u8], start: usize, opened: usize, quote: u8) -> Option<usize> {
        let limit = bytes.len().min(start.saturating_add(self.longest_quoted));
        if let Some(after) = self.closing_quote(bytes, opened + 1, limit, quote) {
            return Some(after);
        }

        let line = bytes.get(opened..)?;
        let line_end = memchr(b'\n', line).map_or(bytes.len(), |end| opened + end);
        if line_end <= limit {
            return None;
        }
        self.closing_quote(bytes, opened + 1, line_end, quote)
    }

    /// The offset after the first quote of `bytes` in `at..limit` that is neither one of two nor escaped.
    fn closing_quote(&self, bytes: &[u8], mut at: usize, limit: usize, quote: u8) -> Option<usize> {
        let escape = self.escape.unwrap_or(quote);
        loop {
            let found = at + find(bytes.get(at..limit)?, quote, escape)?;
            let is_escape = bytes.get(found) != Some(&quote);
            at = found + 1;
            match bytes.get(at) {
                Some(next) if *next == quote || (is_escape && *next == escape) => at += 1,
                _ if is_escape => {}
                _ => return Some(at),
            }
        }
    }

    /// Whether text follows the closing quote of a `quoted` field over several lines; `None` if more bytes are needed.
    fn has_text_behind(&self, bytes: &[u8], quoted: Range<usize>, whole: bool) -> Option<bool> {
        let after = quoted.end;
        let is_one_line = memchr(b'\n', bytes.get(quoted).unwrap_or_default()).is_none();
        if is_one_line || !self.reader.has_strict_records() {
            return Some(false);
        }
        let rest = bytes.get(after..).unwrap_or_default();
        let returns = rest.iter().take_while(|byte| **byte == b'\r').count();
        match rest.get(returns) {
            Some(b'\n') => Some(false),
            Some(byte) => Some(returns > 0 || *byte != self.delimiter),
            None => whole.then_some(false),
        }
    }

    /// Where the records go on behind the first `size` of `bytes`, which were all of the text when they were read; `has_rows`
    /// tells whether records within them have rows.
    pub fn seam(&self, bytes: &[u8], size: usize, has_rows: &dyn Fn(Range<usize>) -> bool) -> Seam {
        let mut at = 0;
        while at < size {
            match self.scan(bytes, at, true) {
                Scan::Record(end) | Scan::Open { resume: end, .. } if end <= size => at = end,
                _ => return self.seam_within(bytes, at, size, has_rows),
            }
        }
        Seam { next: Some(at), new_break: None }
    }

    /// As [`Self::seam`], where the record at `start` is another one than it was.
    fn seam_within(&self, bytes: &[u8], start: usize, size: usize, has_rows: &dyn Fn(Range<usize>) -> bool) -> Seam {
        let before = bytes.get(..size).unwrap_or_default();
        let line_start = memrchr(b'\n', before).map_or(0, |end| end + 1);
        let next = if line_start == size { Some(size) } else { self.end_of_last_line(bytes, size) };

        match self.scan(before, start, true) {
            Scan::Open { resume, .. } if resume < size && has_rows(resume..size) => {
                Seam { next, new_break: Some(next.unwrap_or(line_start)) }
            }
            Scan::Record(_) if line_start < size => Seam { next, new_break: None },
            _ => Seam { next: None, new_break: None },
        }
    }

    /// Where the line that was cut off at `size` ends, if only its line end was missing, as at the end of a file.
    fn end_of_last_line(&self, bytes: &[u8], size: usize) -> Option<usize> {
        let (before, rest) = bytes.split_at_checked(size)?;
        let returns = rest.iter().position(|byte| *byte != b'\r').filter(|at| rest.get(*at) == Some(&b'\n'))?;

        let returns_before = before.iter().rev().take_while(|byte| **byte == b'\r').count();
        let is_one_end = self.reader.has_strict_records() || returns + returns_before.min(1) <= 1;
        is_one_end.then_some(size + returns + 1)
    }

    /// Where to cut `bytes`, which start with a record, so that the first part has whole records and about `wanted` bytes:
    /// the end of the last record within `wanted` bytes, or of the first if that is longer; 0 if it does not end in `bytes`.
    /// With `whole`, `bytes` is the end of the input.
    ///
    /// A quote that is open for [`Self::longest_quoted`] bytes can be decided only by a buffer of that size. The buffer is then cut
    /// into parts as small as all others.
    pub fn cut(&self, bytes: &[u8], wanted: usize, whole: bool) -> usize {
        if whole && bytes.len() <= wanted {
            return bytes.len();
        }
        let wanted = wanted.min(bytes.len());
        let mut end = 0;
        loop {
            // Lines before the line of the next quote are records.
            let rest = bytes.get(end..wanted).unwrap_or_default();
            let quote = self.quote.and_then(|quote| memchr(quote, rest));
            let plain = rest.get(..quote.unwrap_or(rest.len())).unwrap_or_default();
            end += memrchr(b'\n', plain).map_or(0, |at| at + 1);
            if quote.is_none() && end > 0 {
                return end;
            }

            match self.scan(bytes, end, whole) {
                Scan::Record(after) | Scan::Open { resume: after, .. } if end == 0 || after <= wanted => end = after,
                Scan::Record(_) | Scan::Open { .. } | Scan::More => return end,
            }
            if end >= wanted {
                return end;
            }
        }
    }
}

/// The offset after the line end at `from` or behind it.
fn line_end(bytes: &[u8], from: usize) -> Option<usize> {
    memchr(b'\n', bytes.get(from..)?).map(|at| from + at + 1)
}

/// The quote at `opened` opens no field: the records go on behind its line.
fn stray_quote(bytes: &[u8], opened: usize, whole: bool) -> Scan {
    match line_end(bytes, opened) {
        Some(resume) => Scan::Open { opened, resume },
        None if whole => Scan::Open { opened, resume: bytes.len() },
        None => Scan::More,
    }
}

/// Whether a record without its line end is `sep=;`, by which Excel is told the delimiter. It is no header.
pub(crate) fn is_separator_line(record: &[u8]) -> bool {
    let start = record.strip_prefix(b"\"").unwrap_or(record);
    let rest = start.get(..4).filter(|word| word.eq_ignore_ascii_case(b"sep=")).and_then(|_| start.get(4..));
    matches!(rest, Some([_] | [_, b'"']))
}

/// Splits a complete record, without its line end, into `spans`. Unescaped text is appended to `scratch`.
pub(crate) fn split(dialect: &Dialect, record: &[u8], spans: &mut Vec<Span>, scratch: &mut Vec<u8>) {
    spans.clear();
    scratch.clear();
    let mut at = 0;
    loop {
        let quoted = dialect.quote.filter(|quote| record.get(at) == Some(quote));
        let mut span = Span { start: at, end: at, quoted: quoted.is_some(), has_text_behind: false, in_scratch: false };
        match quoted {
            Some(quote) => at = span.unquote(dialect, record, quote, scratch),
            None => {
                let rest = record.get(at..).unwrap_or_default();
                at += find(rest, dialect.delimiter, dialect.delimiter).unwrap_or(rest.len());
                span.end = at;
            }
        }

        spans.push(span);
        if at >= record.len() {
            return;
        }
        at += 1;
    }
}
