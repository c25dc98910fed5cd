//! The first lines of delimited text: what separates fields, and the names of the columns.

use std::io::Read;

use crate::csv::{Dialect, Scan, Span, split};
use crate::read::Decoded;
use crate::reader_version::ReaderVersion;
use crate::sample::error::SampleError;
use crate::spec::CsvOptions;

/// Bytes that are sampled, and lines of them.
const HEAD_BYTES: usize = 256 << 10;
const HEAD_LINES: usize = 50;
/// In the order of preference.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// How a file starts.
pub(super) struct Head {
    pub csv: CsvOptions,
    pub names: Vec<String>,
}

pub(super) fn read(path: &str, from: Box<dyn Read + Send>) -> Result<Head, SampleError> {
    let mut bytes = Vec::new();
    let mut decoded = Decoded::new(path.to_owned(), from)?;
    let whole = decoded.append(&mut bytes, HEAD_BYTES)? < HEAD_BYTES;
    // UTF-16 has either or both.
    if bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF") || bytes.contains(&0) {
        return Err(SampleError::NotUtf8 { path: path.to_owned(), line: 1 });
    }
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        bytes.drain(..3);
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(SampleError::Empty { path: path.to_owned() });
    }
    let comment = comment(&bytes);
    let best = DELIMITERS
        .into_iter()
        .map(|delimiter| CsvOptions { delimiter, comment, ..CsvOptions::default() })
        .filter_map(|csv| {
            let records = records(&csv, &bytes, whole);
            let width = records.first()?.len();
            let alike = records.iter().filter(|record| record.len() == width).count();
            (width > 1).then_some((alike * 1000 / records.len(), width, csv, records))
        })
        // Of equals the first.
        .reduce(|best, next| if (next.0, next.1) > (best.0, best.1) { next } else { best });
    let Some((_, _, csv, records)) = best else { return Err(SampleError::OneColumn { path: path.to_owned() }) };
    let header = records.into_iter().next().unwrap_or_default();
    let names: Result<Vec<_>, _> = header.into_iter().map(String::from_utf8).collect();
    let names = names.map_err(|_| SampleError::NotUtf8 { path: path.to_owned(), line: 1 })?;
    Ok(Head { csv, names })
}

/// `#`, where lines before the header start so.
fn comment(bytes: &[u8]) -> Option<u8> {
    let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let (first, header) = (lines.next()?, lines.find(|line| !line.starts_with(b"#"))?);
    let fields = |line: &[u8]| {
        let count = |delimiter: u8| line.iter().filter(|byte| **byte == delimiter).count();
        DELIMITERS.map(count)
    };
    // A header may start with `#` too: it has as many fields as what follows.
    (first.starts_with(b"#") && fields(first) != fields(header)).then_some(b'#')
}

/// The fields of the first records.
fn records(csv: &CsvOptions, bytes: &[u8], whole: bool) -> Vec<Vec<Vec<u8>>> {
    let dialect = Dialect::new(csv, ReaderVersion::CURRENT);
    let (mut spans, mut scratch): (Vec<Span>, Vec<u8>) = (Vec::new(), Vec::new());
    let mut records = Vec::new();
    let mut at = 0;
    while at < bytes.len() && records.len() < HEAD_LINES {
        let end = match dialect.scan(bytes, at, whole) {
            Scan::Record(end) => end,
            Scan::Open { resume, .. } => resume,
            Scan::More => break,
        };
        let record = dialect.body(bytes.get(at..end).unwrap_or_default());
        at = end;
        if record.is_empty() || dialect.is_comment(record) {
            continue;
        }
        split(&dialect, record, &mut spans, &mut scratch);
        records.push(spans.iter().map(|span| span.of(record, &scratch).to_vec()).collect());
    }
    records
}
