//! Headers inside a file, as a logger leaves them that was restarted: reading goes on by them.
//!
//! A later line is a header if its fields are the names of the header in force, in any order. One that has at least half of
//! these names and that of the event time is a header too, though it lacks names or adds others. A line equal to the header in
//! force changes nothing.

use std::ops::Range;
use std::sync::Arc;

use memchr::{memchr, memmem, memrchr};

use crate::column_diff::ColumnDiff;
use crate::csv::dialect::{Dialect, Scan, Span, split};
use crate::csv::unnamed::name_by_place;
use crate::format::BYTE_ORDER_MARK;
use crate::spec::SchemaMode;
use crate::value::blanks::trimmed_text;
use crate::value::{ColumnBuilder, ColumnPlan};

/// What a header says of the records below it.
#[derive(Debug, Clone, Default)]
pub(crate) struct CsvHeader {
    /// For each field of a row the column it feeds.
    pub steps: Vec<Option<usize>>,
    /// The header without its line end, by which repeated ones are known; empty if there is none, or if they are rows.
    pub text: Vec<u8>,
    /// Why every row is rejected, if so.
    pub refused: Option<ColumnDiff>,
}

/// A header in force that is not the first of its file.
#[derive(Debug)]
pub(crate) struct LaterHeader {
    pub header: CsvHeader,
    /// The line of the header, from 1.
    pub line: u64,
    /// How its columns differ from the declared ones.
    pub diff: ColumnDiff,
}

/// Finds the headers behind the first.
pub(crate) struct LaterHeaders {
    /// The header in force, if it is not the first.
    pub in_force: Option<Arc<LaterHeader>>,
    /// The names of the header in force, and its text.
    names: Vec<String>,
    text: Vec<u8>,
    /// Names of headers before, as they are written there.
    known: Vec<String>,
    /// The name that every header has: the event time's, or the first.
    key: memmem::Finder<'static>,
    /// The declared column of that name.
    key_column: Option<usize>,
    /// What a header may lack.
    pub mode: SchemaMode,
    /// The name of the event time.
    pub time: String,
}

/// A header among the records of a text.
pub(crate) struct FoundHeader {
    /// Its place, with its line end.
    pub place: Range<usize>,
    pub names: Vec<String>,
    text: Vec<u8>,
}

impl LaterHeaders {
    /// Finds headers like that with these names and this text; `None` where no line could be one.
    pub fn new(names: &[String], text: &[u8], mode: SchemaMode, time: &str, columns: &[ColumnPlan]) -> Option<Self> {
        let key = names.iter().find(|name| *name == time).or(names.first())?;
        if names.len() < 2 || trimmed_text(key).is_empty() || key.contains(['\n', '"']) {
            return None;
        }
        Some(Self {
            in_force: None,
            names: names.to_vec(),
            text: text.to_vec(),
            known: names.to_vec(),
            key: memmem::Finder::new(trimmed_text(key)).into_owned(),
            key_column: columns.iter().position(|column| column.name == *key),
            mode,
            time: time.to_owned(),
        })
    }

    /// The first header in `bytes`, whole records of which the first begins there, that differs from the one in force.
    ///
    /// Looks only at lines that have the name of the event time as a field.
    pub fn find(&self, dialect: &Dialect, columns: &[ColumnPlan], bytes: &[u8]) -> Option<FoundHeader> {
        let mut at = 0;
        while let Some(hit) = self.key.find(bytes.get(at..)?) {
            let hit = at + hit;
            let behind = hit + self.key.needle().len();
            at = behind;
            let before = hit.checked_sub(1).and_then(|before| bytes.get(before));
            if !is_edge(dialect, before) || !is_edge(dialect, bytes.get(behind)) {
                continue;
            }

            let start = memrchr(b'\n', bytes.get(..hit)?).map_or(0, |end| end + 1);
            let end = memchr(b'\n', bytes.get(behind..)?).map_or(bytes.len(), |length| behind + length + 1);
            at = end;
            let body = dialect.body(bytes.get(start..end)?);
            let body = body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body);
            if body == self.text || dialect.is_comment(body) || !self.may_begin(dialect, body) {
                continue;
            }
            if let Some(names) = self.names_of(dialect, columns, body)
                && is_record(dialect, bytes, start..end)
            {
                return Some(FoundHeader { place: start..end, names, text: body.to_vec() });
            }
        }
        None
    }

    /// Goes on by a header on `line`, whose columns were matched to the declared ones.
    pub fn go_on(&mut self, found: FoundHeader, line: u64, steps: Vec<Option<usize>>, diff: ColumnDiff) {
        let refused = (self.mode == SchemaMode::Reject && !diff.is_empty()).then(|| diff.clone());
        self.known.extend(found.names.iter().filter(|name| !self.known.contains(name)).cloned().collect::<Vec<_>>());
        self.names = found.names;
        self.text.clone_from(&found.text);
        let header = CsvHeader { steps, text: found.text, refused };
        self.in_force = Some(Arc::new(LaterHeader { header, line, diff }));
    }

    /// Whether a header may begin as `line` does: rows mostly begin with a digit, and names do not.
    fn may_begin(&self, dialect: &Dialect, line: &[u8]) -> bool {
        let first = line.iter().find(|byte| !byte.is_ascii_whitespace() && Some(**byte) != dialect.quote);
        let is_number = first.is_some_and(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+'));
        !is_number || self.known.iter().any(|name| name.trim_start().as_bytes().first() == first)
    }

    /// The names of a line, if it is a header.
    fn names_of(&self, dialect: &Dialect, columns: &[ColumnPlan], line: &[u8]) -> Option<Vec<String>> {
        let (mut spans, mut scratch): (Vec<Span>, Vec<u8>) = (Vec::new(), Vec::new());
        split(dialect, line, &mut spans, &mut scratch);
        let mut names = Vec::with_capacity(spans.len());
        if spans.iter().any(|span| span.has_text_behind) {
            return None;
        }
        for span in &spans {
            let name = trimmed_text(std::str::from_utf8(span.of(line, &scratch)).ok()?);
            let known = self.known.iter().find(|known| trimmed_text(known) == name);
            names.push(known.map_or(name, String::as_str).to_owned());
        }
        name_by_place(&mut names);

        let mut left: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let mut added = Vec::new();
        for name in &names {
            match left.iter().position(|other| other == name) {
                Some(place) => drop(left.swap_remove(place)),
                None => added.push(name.as_str()),
            }
        }
        if left.is_empty() && added.is_empty() {
            return Some(names);
        }

        let key = self.key.needle();
        let place = |names: &[String]| names.iter().position(|name| trimmed_text(name).as_bytes() == key);
        let (place_before, place_now) = (place(&self.names), place(&names)?);
        let shared = names.len() - added.len();
        let is_like = shared * 2 >= self.names.len() && (shared > 1 || place_before == Some(place_now));
        let has_values = added.iter().any(|name| name.parse::<f64>().is_ok());
        (is_like && !has_values && !self.is_row(columns, place_before, &names)).then_some(names)
    }

    /// Whether the field in the place of the event time is a time, so that the line is a row.
    fn is_row(&self, columns: &[ColumnPlan], place: Option<usize>, fields: &[String]) -> bool {
        let column = self.key_column.and_then(|index| columns.get(index)).filter(|column| column.time.is_some());
        let (Some(column), Some(field)) = (column, place.and_then(|place| fields.get(place))) else { return false };
        ColumnBuilder::new(column, 1).value(field.as_bytes()).is_ok()
    }
}

/// Whether a field may begin behind `byte`, or end before it.
fn is_edge(dialect: &Dialect, byte: Option<&u8>) -> bool {
    byte.is_none_or(|byte| {
        let is_mark = *byte == dialect.delimiter || Some(*byte) == dialect.quote;
        is_mark || byte.is_ascii_whitespace() || !byte.is_ascii()
    })
}

/// Whether a record is at `place`: a quoted field may have lines that look like a header, and a stray quote makes no header.
fn is_record(dialect: &Dialect, bytes: &[u8], place: Range<usize>) -> bool {
    let until = bytes.get(..place.end).unwrap_or_default();
    if dialect.quote.is_none_or(|quote| memchr(quote, until).is_none()) {
        return true;
    }

    let mut at = 0;
    while at < place.start {
        match dialect.scan(bytes, at, true) {
            Scan::Record(end) | Scan::Open { resume: end, .. } => at = end,
            Scan::More => return false,
        }
    }
    at == place.start && dialect.scan(bytes, at, true) == Scan::Record(place.end)
}
