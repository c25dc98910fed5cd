//! The first lines of delimited text: what separates fields, and the names of the columns.

mod blanks;
mod comment;
mod late;
mod lines;
mod more_values;
mod preamble;
mod rows;
pub(super) mod unnamed;

use std::io::Read;

use memchr::{memchr_iter, memmem};

use crate::csv::{Dialect, Scan, Span, is_annotation, is_separator_line, split};
use crate::decompress::Decoded;
use crate::error::SourceError;
use crate::format::{BYTE_ORDER_MARK, Foreign};
use crate::reader_version::ReaderVersion;
use crate::sample::error::SampleError;
use crate::sample::head::blanks::{BlankTable, Blanks};
use crate::sample::head::late::LateTable;
use crate::sample::head::more_values::MoreValues;
use crate::sample::head::preamble::{HeadRecord, HeaderLine, declared_delimiter, header_line};
use crate::sample::head::rows::{RaggedRows, above_short_rows, begin_with_row, is_value};
use crate::spec::CsvOptions;

/// Bytes that are sampled, and lines of them.
const HEAD_BYTES: usize = 256 << 10;
const HEAD_LINES: usize = 50;
/// Lines that are wanted at least, and bytes that are read for them: a header of thousands of columns is long.
const FEWEST_LINES: usize = 8;
const LARGEST_HEAD: usize = 32 << 20;
/// Records (of 1,000) as wide as the first; with fewer, the header may be elsewhere.
const FEW_ALIKE: usize = 400;
/// Delimiters that are tried, in the order of preference.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// How a file of delimited text starts.
pub(super) struct Head {
    pub csv: CsvOptions,
    /// The names of the header; those of columns by place, if `csv` has no header although there are names above the rows.
    pub names: Vec<String>,
    /// Lines before the header, which are comments if there are any that `csv` does not skip; `None` if one of them has the names.
    pub before: Option<u64>,
    /// Whether the first line is a row, as the others begin like it.
    pub is_row: bool,
    /// Whether the names are those of two lines, one of which names groups of columns.
    pub is_joined: bool,
    /// The encoding that its bytes most likely have, if they are not UTF-8.
    pub encoding: &'static str,
}

/// Reads the first lines of the file at `path`, and finds its dialect and the names of its columns. `delimiter` separates them, if it
/// is known.
pub(super) fn read(path: &str, from: Box<dyn Read + Send>, delimiter: Option<u8>) -> Result<Head, SampleError> {
    let mut bytes = Vec::new();
    let mut decoded = Decoded::new(path.to_owned(), from)?;
    let mut whole = decoded.append(&mut bytes, HEAD_BYTES)? < HEAD_BYTES;
    while !whole && bytes.len() < LARGEST_HEAD && memchr_iter(b'\n', &bytes).count() < FEWEST_LINES {
        let wanted = bytes.len();
        whole = decoded.append(&mut bytes, wanted)? < wanted;
    }

    if let Some(format) = Foreign::of(&bytes) {
        return Err(SourceError::Foreign { path: path.to_owned(), format }.into());
    }
    let encoding = preamble::encoding(&bytes);
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..3);
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(SampleError::Empty { path: path.to_owned() });
    }
    if !bytes.contains(&b'\n') && bytes.contains(&b'\r') {
        decoded.take_returns_as_line_ends(&mut bytes)?;
    }

    if lines::is_line_protocol(&bytes) {
        return Err(SampleError::LineProtocol { path: path.to_owned() });
    }
    let mut is_row = lines::begins_like_others(&bytes);
    let (mut skip, mut start) =
        start_behind_preamble(&bytes, whole, comment(&bytes), delimiter.or_else(|| declared_delimiter(&bytes)));
    if matches!(start, Start::OneColumn) && delimiter.is_none() {
        match BlankTable::find(&bytes) {
            Some(BlankTable { blanks: Blanks::Single, .. }) => {
                let comment = bytes.starts_with(b"#").then_some(b'#');
                (skip, start) = start_behind_preamble(&bytes, whole, comment, Some(b' '));
            }
            Some(table) => return Err(table.error(path)),
            None => {}
        }
    }
    let (csv, header, line) = match start {
        Start::Header { csv, names, line } => (csv, names, line),
        Start::Preamble { line } => return Err(preamble::error(path, line, &bytes)),
        Start::MoreValues(found) => return Err(found.error(path)),
        Start::OneColumn => return Err(lines::error_of_one_column(path, &bytes)),
    };
    let first_records = records(&csv, preamble::behind(&bytes, skip + csv.skip + 1), whole);
    if csv.header
        && csv.skip == 0
        && let Some(names) = comment::names(&csv, &bytes, &first_records)
    {
        let csv = CsvOptions { header: false, ..csv };
        return Ok(Head { csv, names, before: None, is_row: false, is_joined: false, encoding });
    }
    is_row |= csv.header && begin_with_row(&csv, &first_records);
    let names: Result<Vec<_>, _> = header.into_iter().map(String::from_utf8).collect();
    let names = names.map_err(|_| SampleError::NotUtf8 { path: path.to_owned(), line: skip + 1, encoding })?;
    let before = Some(skip + line.saturating_sub(1));
    let is_joined = !csv.header && line == csv.skip + 1 && names.iter().any(|name| !name.is_empty());
    Ok(Head { csv: CsvOptions { skip: skip + csv.skip, ..csv }, names, before, is_row, is_joined, encoding })
}

/// How many lines stand before the header, if they can be skipped, and what follows them.
fn start_behind_preamble(bytes: &[u8], whole: bool, comment: Option<u8>, declared: Option<u8>) -> (u64, Start) {
    let first = start(bytes, whole, comment, declared);

    // Units follow the names of TOA5.
    if let Start::Preamble { line } = first
        && !preamble::is_toa5(bytes, line)
        && let found @ Start::Header { .. } = start(preamble::behind(bytes, line), whole, comment, declared)
    {
        return (line.saturating_sub(1), found);
    }
    (0, first)
}

/// What the first lines of a text are.
enum Start {
    /// The names of columns, on `line`, from 1, and values below them. If `csv` has no header, it skips these names, or the
    /// names are blank.
    Header { csv: CsvOptions, names: Vec<Vec<u8>>, line: u64 },
    /// Other lines than those of the table, whose header is on `line`, from 1.
    Preamble { line: u64 },
    /// Names of columns, and a row with more values than names.
    MoreValues(MoreValues),
    /// No delimiter separates columns.
    OneColumn,
}

/// What the first lines of `bytes` are, with the delimiter that gives the most lines as many fields as the first.
fn start(bytes: &[u8], whole: bool, comment: Option<u8>, declared: Option<u8>) -> Start {
    let delimiters = declared.map_or(DELIMITERS.to_vec(), |declared| vec![declared]);
    let dialects = delimiters
        .into_iter()
        .map(|delimiter| CsvOptions { delimiter, comment, ..CsvOptions::default() })
        .map(|csv| with_quotes(csv, bytes, whole));
    let dialects: Vec<(CsvOptions, Vec<HeadRecord>)> = dialects.collect();
    let best = dialects
        .iter()
        .filter_map(|(csv, records)| {
            let width = records.first()?.fields.len();
            let as_wide = records.iter().filter(|record| record.fields.len() == width).count();
            (width > 1).then_some((as_wide * 1000 / records.len(), width, csv, records))
        })
        // Of equals the first.
        .reduce(|best, next| if (next.0, next.1) > (best.0, best.1) { next } else { best });
    if best.is_none_or(|(share, ..)| share < FEW_ALIKE) {
        if let Some((csv, header)) =
            dialects.iter().find_map(|(csv, records)| Some((csv, above_short_rows(csv, records)?)))
        {
            return Start::Header { csv: csv.clone(), names: header.fields.clone(), line: header.line };
        }
        if let Some(start) = dialects.iter().find_map(|(csv, records)| short_header(csv, records)) {
            return start;
        }
        if let Some(start) = dialects.iter().find_map(|(csv, records)| long_header(csv, records)) {
            return start;
        }
        // The delimiter that gives the most lines one number of fields: a header has no decimal commas, as its values may.
        let preambles = dialects.iter().filter_map(|(csv, records)| Some((csv, records, header_line(records)?)));
        let preamble = preambles.reduce(|best, next| if next.2.records > best.2.records { next } else { best });
        if let Some((csv, records, HeaderLine { line, .. })) = preamble {
            if let Some(start) = ragged_rows(csv, records, line) {
                return start;
            }
            return short_header_at(csv, records, line).unwrap_or(Start::Preamble { line });
        }
    }
    let Some((_, _, csv, records)) = best else { return Start::OneColumn };
    match LateTable::find(csv, records) {
        Some(LateTable::Header(at)) => {
            if let Some(header) = records.get(at) {
                let csv = CsvOptions { skip: header.line - 1, ..csv.clone() };
                return Start::Header { csv, names: header.fields.clone(), line: header.line };
            }
        }
        Some(LateTable::Rows(at)) => {
            if let Some(row) = records.get(at) {
                let csv = CsvOptions { header: false, skip: row.line - 1, ..csv.clone() };
                return Start::Header { csv, names: vec![Vec::new(); row.fields.len()], line: row.line };
            }
        }
        Some(LateTable::Groups { first_row, names }) => {
            if let Some(row) = records.get(first_row) {
                let csv = CsvOptions { header: false, skip: row.line - 1, ..csv.clone() };
                let names = names.into_iter().map(String::into_bytes).collect();
                return Start::Header { csv, names, line: row.line };
            }
        }
        None => {}
    }
    let (names, line) = records.first().map(|record| (record.fields.clone(), record.line)).unwrap_or_default();
    Start::Header { csv: csv.clone(), names, line }
}

/// What a file is whose first rows have another number of fields than most, which begin on `wide_line`; `None` for others. Each row
/// that does not fit is rejected.
fn ragged_rows(csv: &CsvOptions, records: &[HeadRecord], wide_line: u64) -> Option<Start> {
    let wide = records.iter().position(|record| record.line == wide_line)?;
    let found = RaggedRows::find(csv, records, wide)?;
    let values = records.get(wide)?.fields.len();
    let Some(header) = found.header.and_then(|at| records.get(at)) else {
        let line = records.get(found.first_row)?.line;
        let csv = CsvOptions { header: false, skip: line - 1, ..csv.clone() };
        return Some(Start::Header { csv, names: vec![Vec::new(); values], line });
    };

    if found.is_bare && header.fields.len() < values {
        return Some(Start::MoreValues(MoreValues::new(csv, header, records.get(wide)?, true)));
    }
    let csv = CsvOptions { skip: header.line - 1, ..csv.clone() };
    Some(Start::Header { csv, names: header.fields.clone(), line: header.line })
}

/// Names above the rows whose line ends in delimiters that the rows lack: they are those of columns by place, since the rows
/// have too few fields for them.
fn long_header(csv: &CsvOptions, records: &[HeadRecord]) -> Option<Start> {
    let line = header_line(records)?.line;
    let first_row = records.iter().position(|record| record.line == line)?;
    let (header, row) = (records.get(first_row.checked_sub(1)?)?, records.get(first_row)?);
    let (names, rest) = header.fields.split_at_checked(row.fields.len())?;
    let is_value = |field: &Vec<u8>| is_value(csv, &String::from_utf8_lossy(field));
    let is_blank = |field: &Vec<u8>| field.trim_ascii().is_empty();
    let are_names = !names.iter().any(|name| is_blank(name) || is_value(name)) && row.fields.iter().any(is_value);
    let csv = CsvOptions { header: false, skip: line - 1, ..csv.clone() };
    let is_header = are_names && !rest.is_empty() && rest.iter().all(is_blank);
    is_header.then(|| Start::Header { csv, names: names.to_vec(), line: header.line })
}

/// What a file is whose header has fewer names than its rows have fields; `None` for others.
fn short_header(csv: &CsvOptions, records: &[HeadRecord]) -> Option<Start> {
    let [header, first, ..] = records else { return None };
    // A preamble may begin with a shorter line than its others.
    let below = records.get(1..).unwrap_or_default();
    if header_line(records)?.line != first.line || LateTable::find(csv, below).is_some() {
        return None;
    }
    let (names, values) = (header.fields.len(), first.fields.len());
    let is_value = |field: &Vec<u8>| is_value(csv, &String::from_utf8_lossy(field));
    let is_blank = |field: &Vec<u8>| field.trim_ascii().is_empty();
    let has_names = !header.fields.iter().any(|name| is_blank(name) || is_value(name));
    if !has_names || !(2..values).contains(&names) || names * 2 < values || !first.fields.iter().any(is_value) {
        return None;
    }

    let rests = records.iter().filter_map(|record| record.fields.get(names..));
    let are_blank = rests.clone().filter(|rest| rest.iter().all(is_blank)).count();
    Some(match are_blank * 10 >= records.len() * 9 {
        true => Start::Header { csv: csv.clone(), names: header.fields.clone(), line: header.line },
        false => Start::MoreValues(MoreValues::new(csv, header, first, false)),
    })
}

/// As [`short_header`], of names behind a preamble: those of the line before `first_long`, which is the first that is as long as
/// the rows.
fn short_header_at(csv: &CsvOptions, records: &[HeadRecord], first_long: u64) -> Option<Start> {
    let first_row = records.iter().position(|record| record.line == first_long)?;
    let start = short_header(csv, records.get(first_row.checked_sub(1)?..)?)?;
    Some(match start {
        Start::Header { csv, names, line } => Start::Header { csv: CsvOptions { skip: line - 1, ..csv }, names, line },
        other => other,
    })
}

/// The quote and the escape of a file with this delimiter, and its first records.
fn with_quotes(csv: CsvOptions, bytes: &[u8], whole: bool) -> (CsvOptions, Vec<HeadRecord>) {
    let mut csv = csv;
    let mut found = records(&csv, bytes, whole);
    if is_single_quoted(&found) {
        csv.quote = Some(b'\'');
        found = records(&csv, bytes, whole);
    }

    if memmem::find(bytes, b"\\\"").is_some() {
        let width = found.first().map_or(0, |header| header.fields.len());
        let escaped = CsvOptions { escape: Some(b'\\'), ..csv.clone() };
        if untidy(&escaped, bytes, whole, width) < untidy(&csv, bytes, whole, width) {
            found = records(&escaped, bytes, whole);
            csv = escaped;
        }
    }
    (csv, found)
}

/// Whether all names of the header are in single quotes.
fn is_single_quoted(records: &[HeadRecord]) -> bool {
    let Some(HeadRecord { fields, .. }) = records.first() else { return false };
    fields.len() > 1 && fields.iter().all(|field| field.len() > 2 && field.starts_with(b"'") && field.ends_with(b"'"))
}

/// `#`, where lines before the header start so.
fn comment(bytes: &[u8]) -> Option<u8> {
    let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let (first, header) = (lines.next()?, lines.find(|line| !line.starts_with(b"#"))?);
    if is_annotation(first) {
        return Some(b'#');
    }
    // A header may start with `#` too: it has as many fields as what follows.
    (first.starts_with(b"#") && delimiters_in(first) != delimiters_in(header)).then_some(b'#')
}

/// How often each of the delimiters is in a line.
fn delimiters_in(line: &[u8]) -> [usize; DELIMITERS.len()] {
    DELIMITERS.map(|delimiter| line.iter().filter(|byte| **byte == delimiter).count())
}

/// How many records are read as they are hardly meant: a quote is never closed, or text follows its closing quote, or there are
/// not `width` fields.
fn untidy(csv: &CsvOptions, bytes: &[u8], whole: bool, width: usize) -> usize {
    let dialect = Dialect::new(csv, ReaderVersion::CURRENT);
    let (mut spans, mut scratch): (Vec<Span>, Vec<u8>) = (Vec::new(), Vec::new());
    let (mut at, mut untidy) = (0, 0);
    while at < bytes.len() {
        let (end, is_open) = match dialect.scan(bytes, at, whole) {
            Scan::Record(end) => (end, false),
            Scan::Open { resume, .. } => (resume, true),
            Scan::More => break,
        };
        let record = dialect.body(bytes.get(at..end).unwrap_or_default());
        at = end;
        if record.is_empty() || dialect.is_comment(record) {
            continue;
        }
        split(&dialect, record, &mut spans, &mut scratch);
        let has_rest = spans.iter().any(|span| span.has_text_behind);
        untidy += usize::from(is_open || has_rest || spans.len() != width);
    }
    untidy
}

/// The first records of a text, without blank lines and comments.
fn records(csv: &CsvOptions, bytes: &[u8], whole: bool) -> Vec<HeadRecord> {
    let dialect = Dialect::new(csv, ReaderVersion::CURRENT);
    let (mut spans, mut scratch): (Vec<Span>, Vec<u8>) = (Vec::new(), Vec::new());
    let mut records = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() && records.len() < HEAD_LINES {
        let end = match dialect.scan(bytes, at, whole) {
            Scan::Record(end) => end,
            Scan::Open { resume, .. } => resume,
            Scan::More => break,
        };

        let lines = bytes.get(at..end).unwrap_or_default();
        let record = dialect.body(lines);
        let first_line = line;
        line += memchr_iter(b'\n', lines).count() as u64;
        at = end;
        if record.is_empty() || dialect.is_comment(record) || is_separator_line(record) {
            continue;
        }

        split(&dialect, record, &mut spans, &mut scratch);
        let fields = spans.iter().map(|span| span.of(record, &scratch).to_vec()).collect();
        records.push(HeadRecord { line: first_line, fields });
    }
    records
}
