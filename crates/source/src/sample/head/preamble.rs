//! What stands in front of the header, and how text is encoded.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use memchr::memchr_iter;

use crate::csv::is_separator_line;
use crate::format::conversion;
use crate::sample::error::SampleError;
use crate::sample::head::lines::begins_like_others;

/// The share of records (percent) that must have one number of fields, so that those before them are a preamble.
const ALIKE: usize = 60;
/// Fewest records with that number of fields.
const FEWEST: usize = 2;

/// A record of the beginning of a file.
pub(in crate::sample) struct HeadRecord {
    /// Its line in the file, from 1.
    pub line: u64,
    pub fields: Vec<Vec<u8>>,
}

/// The delimiter that a line `sep=;` at the start declares.
pub(in crate::sample) fn declared_delimiter(bytes: &[u8]) -> Option<u8> {
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")).unwrap_or(line);
    if is_separator_line(line) { line.last().copied().filter(u8::is_ascii) } else { None }
}

/// The header of a table behind other lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sample) struct HeaderLine {
    /// The line of the header, from 1.
    pub line: u64,
    /// Records with as many fields as the header.
    pub records: usize,
}

/// The header, if the first records have other numbers of fields than most.
pub(in crate::sample) fn header_line(records: &[HeadRecord]) -> Option<HeaderLine> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for record in records {
        *counts.entry(record.fields.len()).or_default() += 1;
    }
    let width = records.iter().map(|record| record.fields.len()).filter(|width| *width > 1);
    let width = width.max_by_key(|width| counts.get(width))?;
    let count = counts.get(&width).copied().unwrap_or_default();

    let is_first = records.first().is_some_and(|first| first.fields.len() == width);
    if is_first || count < FEWEST || count * 100 < records.len() * ALIKE {
        return None;
    }
    let header = records.iter().find(|record| record.fields.len() == width)?;
    Some(HeaderLine { line: header.line, records: count })
}

/// The bytes from `line` on, which is counted from 1.
pub(in crate::sample) fn behind(bytes: &[u8], line: u64) -> &[u8] {
    let mut ends = memchr_iter(b'\n', bytes).map(|end| end + 1);
    let start = line.checked_sub(2).and_then(|before| ends.nth(before as usize)).unwrap_or(0);
    bytes.get(start..).unwrap_or_default()
}

/// Whether the header on `line` is that of a logger of Campbell Scientific, which writes units and kinds of values below it.
pub(in crate::sample) fn is_toa5(bytes: &[u8], line: u64) -> bool {
    bytes.trim_ascii_start().starts_with(b"\"TOA5\"") && line == 2
}

/// The error for a file whose header, or first row, is on `line`.
pub(in crate::sample) fn error(path: &str, line: u64, bytes: &[u8]) -> SampleError {
    let is_toa5 = is_toa5(bytes, line);
    let cut = if is_toa5 { "sed -e 1d -e 3,4d".to_owned() } else { format!("tail -n +{line}") };
    let command = conversion(path, &cut, true);
    let what = if is_toa5 { ", as in all files of TOA5, with units on lines 3 and 4" } else { "" };
    let start = if begins_like_others(behind(bytes, line)) { "first row is" } else { "header is" };
    SampleError::Preamble { path: path.to_owned(), line, start, what, command }
}

/// The encoding that bytes which are not UTF-8 most likely have, as `iconv` calls it.
pub(in crate::sample) fn encoding(bytes: &[u8]) -> &'static str {
    let (mut whole, mut broken) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        whole += chunk.valid().chars().filter(|letter| !letter.is_ascii()).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    if whole > broken {
        return "utf-8 -c";
    }

    if is_shift_jis(bytes) && has_byte(bytes, 0x81..=0x9F) {
        return "SHIFT_JIS";
    }
    // Letters of Western Europe stand alone or in odd numbers somewhere; characters of two bytes never do.
    let mut runs = bytes.split(u8::is_ascii).filter(|run| !run.is_empty());
    if runs.clone().count() > 1 && runs.all(|run| run.len() % 2 == 0) && !has_byte(bytes, 0x80..=0xA0) {
        return "GB18030";
    }
    if has_byte(bytes, 0x80..=0x9F) { "CP1252" } else { "latin1" }
}

fn has_byte(bytes: &[u8], range: RangeInclusive<u8>) -> bool {
    bytes.iter().any(|byte| range.contains(byte))
}

/// Whether all bytes are ASCII, half-width letters, or pairs of Shift-JIS, and there is such a pair.
fn is_shift_jis(bytes: &[u8]) -> bool {
    let mut left = bytes.iter();
    let mut pairs = 0;
    while let Some(byte) = left.next() {
        match byte {
            0..=0x7F | 0xA1..=0xDF => {}
            0x81..=0x9F | 0xE0..=0xFC => match left.next() {
                Some(0x40..=0x7E | 0x80..=0xFC) => pairs += 1,
                // Cut at the end.
                None => {}
                Some(_) => return false,
            },
            _ => return false,
        }
    }
    pairs > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_behind_a_preamble_are_found() {
        let record = |line: u64, width: usize| HeadRecord { line, fields: vec![Vec::new(); width] };
        let toa5: Vec<_> = [record(1, 8)].into_iter().chain((2..20).map(|line| record(line, 5))).collect();
        assert_eq!(header_line(&toa5), Some(HeaderLine { line: 2, records: 18 }));
        let told: Vec<_> = [record(1, 1), record(3, 1)].into_iter().chain((5..9).map(|line| record(line, 3))).collect();
        assert_eq!(header_line(&told), Some(HeaderLine { line: 5, records: 4 }));
        let plain: Vec<_> = (1..9).map(|line| record(line, 3)).collect();
        assert_eq!(header_line(&plain), None);
        let ragged: Vec<_> = (1..9).map(|line| record(line, 2 + line as usize)).collect();
        assert_eq!(header_line(&ragged), None);
        let error = error("a.csv.gz", 5, b"Report\n").to_string();
        assert!(error.contains("gzip -dc a.csv.gz | tail -n +5 > NEW.csv"), "{error}");
    }

    #[test]
    fn encodings_are_told_apart() {
        assert_eq!(encoding(b"zeit,St\xE4rke\n1,2\n"), "latin1");
        assert_eq!(encoding(b"price \x80,caf\xE9\n"), "CP1252");
        assert_eq!(encoding(b"\x8E\x9E\x8D\x8F,\x89\xB7\x93x\n"), "SHIFT_JIS");
        assert_eq!(encoding(b"\xCA\xB1\xBC\xE4,\xCE\xC2\xB6\xC8\n"), "GB18030");
        assert_eq!(
            encoding(
                "Stärke, Größe, \u{fc}\n".as_bytes().iter().copied().chain(*b"\xFF").collect::<Vec<_>>().as_slice()
            ),
            "utf-8 -c"
        );
    }

    #[test]
    fn a_first_line_declares_the_delimiter() {
        assert_eq!(declared_delimiter(b"sep=;\r\na;b\r\n"), Some(b';'));
        assert_eq!(declared_delimiter(b"\"sep=,\"\na,b\n"), Some(b','));
        assert_eq!(declared_delimiter(b"sep,b\n"), None);
    }
}
