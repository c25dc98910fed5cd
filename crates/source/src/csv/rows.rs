//! Rows of a chunk into columns. The fast way finds the fields of many rows, then reads them column by column, and hands
//! any row that surprises it to the general way, so that both mean the same.

use arrow::array::ArrayRef;
use arrow::error::ArrowError;
use memchr::{memchr, memchr_iter, memmem};
use tidetable_layout::FieldType;

use crate::csv::dialect::{Dialect, Scan, Span, split};
use crate::csv::later_header::{CsvHeader, LaterHeader};
use crate::csv::notes::TextNotes;
use crate::format::BYTE_ORDER_MARK;
use crate::reject::{RejectReason, Rejected, raw};
use crate::time::Adjusted;
use crate::value::ColumnBuilder;
use crate::value::ColumnPlan;
use crate::value::fields::Fields;

/// Maximum and minimum number of rows that the fast way takes at once; the minimum where most surprise it.
const MAX_ROWS: usize = 4096;
const MIN_ROWS: usize = 16;

/// How the rows of one file are read.
#[derive(Debug)]
pub(crate) struct CsvPlan {
    pub dialect: Dialect,
    pub columns: Vec<ColumnPlan>,
    /// The first header.
    pub header: CsvHeader,
    /// Fields that a row may have behind those of its header, if they are blank.
    pub extra: usize,
}

/// Whole records of a text, as its reader cuts them off.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'a> {
    pub bytes: &'a [u8],
    /// Physical line of the first byte, from 1.
    pub first_line: u64,
    /// Line ends among the bytes: as many rows and one more have room.
    pub lines: usize,
    /// Whether there is no quote among the bytes.
    pub plain: bool,
    /// The header of the records, if it is not the first of the file.
    pub later_header: Option<&'a LaterHeader>,
}

/// The declared columns of a block, with the rows that were rejected.
pub(crate) struct Parsed {
    pub columns: Vec<ArrayRef>,
    /// Where the accepted rows start in the block.
    pub starts: Vec<u32>,
    pub rejected: Vec<Rejected>,
    pub read: u64,
    pub times: Adjusted,
    pub notes: TextNotes,
}

/// Reads all rows of a block, by the fast way where it can be taken.
pub(crate) fn parse(plan: &CsvPlan, block: Block<'_>) -> Result<Parsed, ArrowError> {
    let valid = std::str::from_utf8(block.bytes).is_ok();
    let mut rows = Rows::new(plan, block, valid);
    // Comments are a matter of record starts, invalid UTF-8 of whole rows: both are left to the general way.
    let is_plain = block.plain && valid && plan.dialect.comment.is_none() && rows.header.refused.is_none();
    rows.has_odd_returns = plan.has_odd_returns(block.bytes);
    if is_plain && !rows.has_odd_returns && !rows.may_take_header() {
        rows.fast();
    } else {
        rows.general();
    }
    rows.finish()
}

impl CsvPlan {
    /// Whether there is a CR among `bytes` that is not the only one of a line end.
    pub fn has_odd_returns(&self, bytes: &[u8]) -> bool {
        if !self.dialect.reader.has_strict_records() {
            return false;
        }
        let Some(first) = memchr(b'\r', bytes) else { return false };
        let rest = bytes.get(first..).unwrap_or_default();
        let behind = rest.get(1..).unwrap_or_default();
        // Without a branch, so that many bytes are compared at once. A last CR belongs to the end of the last line.
        rest.iter().zip(behind).fold(0, |odd, (byte, next)| odd | u8::from((*byte == b'\r') & (*next != b'\n'))) != 0
    }
}

/// Whether a comment is of InfluxDB's annotated CSV: groups, types or defaults of the columns, each in a line with all fields.
pub(crate) fn is_annotation(line: &[u8]) -> bool {
    [&b"#group,"[..], b"#datatype,", b"#default,"].iter().any(|start| line.starts_with(start))
}

pub(super) struct Rows<'a> {
    plan: &'a CsvPlan,
    header: &'a CsvHeader,
    block: Block<'a>,
    valid: bool,
    columns: Vec<ColumnBuilder<'a>>,
    starts: Vec<u32>,
    rejected: Vec<Rejected>,
    read: u64,
    spans: Vec<Span>,
    scratch: Vec<u8>,
    /// An offset and its line, to count on from.
    mark: (usize, u64),
    notes: TextNotes,
    has_odd_returns: bool,
}

impl<'a> Rows<'a> {
    pub fn new(plan: &'a CsvPlan, block: Block<'a>, valid: bool) -> Self {
        let room = block.lines + 1;
        Self {
            plan,
            header: block.later_header.map_or(&plan.header, |later| &later.header),
            block,
            valid,
            columns: plan.columns.iter().map(|column| ColumnBuilder::new(column, room)).collect(),
            starts: Vec::with_capacity(room),
            rejected: Vec::new(),
            read: 0,
            spans: Vec::new(),
            scratch: Vec::new(),
            mark: (0, block.first_line),
            notes: TextNotes::default(),
            has_odd_returns: false,
        }
    }

    /// Whether a repeated header would be read as a row: none of its fields would be rejected.
    fn may_take_header(&self) -> bool {
        let CsvHeader { steps, text, .. } = self.header;
        let mut fed = steps.iter().filter_map(|step| self.plan.columns.get((*step)?));
        !text.is_empty()
            && fed.all(|column| column.kind == FieldType::Text)
            && memmem::find(self.block.bytes, text).is_some()
    }

    /// Whether a record is the header again; of the first record of a block, whether it is its later header.
    fn is_header(&self, record: &[u8]) -> bool {
        let text = &self.header.text;
        !text.is_empty() && record.strip_prefix(BYTE_ORDER_MARK).unwrap_or(record) == text
    }

    /// Reads rows without quotes and comments, of valid UTF-8.
    pub fn fast(&mut self) {
        let bytes = self.block.bytes;
        let mut fields = Fields::default();

        let (mut at, mut most) = (0, MAX_ROWS);
        while at < bytes.len() {
            let odd = fields.find(bytes, at, self.plan.dialect.delimiter, self.header.steps.len(), most);
            let kept = self.columns(&fields);
            self.starts.extend((0..kept).map(|row| fields.row(row) as u32));
            self.read += kept as u64;
            at = fields.row(kept);

            if kept == fields.rows() && !odd {
                most = (most * 2).min(MAX_ROWS);
                continue;
            }
            // Shrinks the batch where many rows are unusual, so that few are parsed again.
            most = (most / 2).max(MIN_ROWS);

            let rest = bytes.get(at..).unwrap_or_default();
            let end = memchr(b'\n', rest).map_or(bytes.len(), |found| at + found + 1);
            self.record(at, end);
            at = end;
        }
    }

    /// Adds the values of `fields`, column by column, up to the first row that cannot be added: how many rows those are.
    fn columns(&mut self, fields: &Fields) -> usize {
        let mut rows = fields.rows();
        for (field, step) in self.header.steps.iter().enumerate() {
            if let Some(column) = step.and_then(|step| self.columns.get_mut(step)) {
                rows = column.push_all(fields.slices(self.block.bytes, field, rows));
            }
        }
        if rows < fields.rows() {
            self.undo(self.starts.len() + rows);
        }
        rows
    }

    /// Reads rows of any kind, record by record.
    pub fn general(&mut self) {
        let bytes = self.block.bytes;
        let mut at = 0;
        while at < bytes.len() {
            match self.plan.dialect.scan(bytes, at, true) {
                Scan::Record(end) => {
                    self.record(at, end);
                    at = end;
                }
                Scan::Open { opened, resume } => {
                    self.read += 1;
                    let line =
                        self.line(at) + memchr_iter(b'\n', bytes.get(at..opened).unwrap_or_default()).count() as u64;
                    self.reject(at, resume, None, RejectReason::UnterminatedQuote { line });
                    at = resume;
                }
                Scan::More => return,
            }
        }
    }

    /// One complete record, which may be blank or a comment.
    fn record(&mut self, start: usize, end: usize) {
        let record = self.plan.dialect.body(self.block.bytes.get(start..end).unwrap_or_default());
        if record.is_empty() {
            return;
        }
        if self.plan.dialect.is_comment(record) {
            return self.note_comment(start, record);
        }

        if self.is_header(record) {
            let line = self.line(start);
            let is_later = self.block.later_header.is_some_and(|later| later.line == line);
            let notes = &mut self.notes;
            return if is_later { notes.changed_headers.add(line) } else { notes.repeated_headers.add(line) };
        }

        self.read += 1;
        if let Some(diff) = &self.header.refused {
            return self.reject(start, end, None, RejectReason::Columns(diff.clone()));
        }

        match self.fields(start, record) {
            Ok(()) => {
                self.starts.push(start as u32);
                if self.spans.len() > self.header.steps.len() {
                    let line = self.line(start);
                    self.notes.extra_fields.add(line);
                }
                self.note(start, record);
            }
            Err((column, reason)) => {
                self.undo(self.starts.len());
                self.reject(start, end, column, reason);
            }
        }
    }

    /// Notes a comment below the header, and whether it has the fields of a row.
    fn note_comment(&mut self, start: usize, record: &[u8]) {
        let line = self.line(start);
        self.notes.comments.add(line);
        let width = self.header.steps.len();
        if width > 1 && !is_annotation(record) {
            split(&self.plan.dialect, record, &mut self.spans, &mut self.scratch);
            if self.spans.len() == width {
                self.notes.comment_rows.add(line);
            }
        }
    }

    /// Notes what is unusual about an accepted record, whose fields are in `spans`.
    fn note(&mut self, start: usize, record: &[u8]) {
        if !self.plan.dialect.reader.has_strict_records() {
            return;
        }
        let is_over_lines = memchr(b'\n', record).is_some();
        if !is_over_lines && !self.has_odd_returns {
            return;
        }

        let lines = 1 + memchr_iter(b'\n', record).count() as u64;
        let mut unquoted = self.spans.iter().filter(|span| !span.quoted);
        let has_returns =
            self.has_odd_returns && unquoted.any(|span| memchr(b'\r', span.of(record, &self.scratch)).is_some());
        if lines == 1 && !has_returns {
            return;
        }

        let line = self.line(start);
        if lines > 1 {
            self.notes.several_lines.add(line);
            self.notes.most_lines = self.notes.most_lines.max(lines);
        }
        if has_returns {
            self.notes.bare_returns.add(line);
        }
    }

    /// Appends the fields of a record to the columns, or says which column it is rejected for, and why.
    fn fields(&mut self, start: usize, record: &[u8]) -> Result<(), (Option<usize>, RejectReason)> {
        split(&self.plan.dialect, record, &mut self.spans, &mut self.scratch);
        let (expected, found) = (self.header.steps.len(), self.spans.len());
        if expected != found && !self.has_blank_rest(record, expected) {
            return Err((None, RejectReason::ColumnCount { expected, found }));
        }
        if !self.valid && std::str::from_utf8(record).is_err() {
            return Err((None, RejectReason::InvalidUtf8));
        }

        for (span, step) in self.spans.iter().zip(&self.header.steps) {
            let Some(column) = *step else { continue };
            let Some(target) = self.columns.get_mut(column) else { continue };
            let pushed = match span.in_place().filter(|_| !self.plan.dialect.has_returns) {
                Some(place) => {
                    let rest = self.block.bytes.get(start + place.start..).unwrap_or_default();
                    target.push_first(rest, place.len(), span.quoted)
                }
                None => {
                    let text = self.plan.dialect.written(span.of(record, &self.scratch));
                    target.push(&text, span.quoted)
                }
            };
            pushed.map_err(|reason| (Some(column), reason))?;
        }
        Ok(())
    }

    /// Whether the fields of a record behind those of the header are blank, and may be there.
    fn has_blank_rest(&self, record: &[u8], expected: usize) -> bool {
        let rest = self.spans.get(expected..).unwrap_or_default();
        let mut texts = rest.iter().map(|span| span.of(record, &self.scratch));
        (1..=self.plan.extra).contains(&rest.len()) && texts.all(|text| text.trim_ascii().is_empty())
    }

    fn undo(&mut self, rows: usize) {
        for column in &mut self.columns {
            column.truncate(rows);
        }
    }

    fn reject(&mut self, start: usize, end: usize, column: Option<usize>, reason: RejectReason) {
        let line = self.line(start);
        let column = column.and_then(|index| self.plan.columns.get(index)).map(|column| column.name.clone());
        let body = self.plan.dialect.body(self.block.bytes.get(start..end).unwrap_or_default());
        let lines = 1 + memchr_iter(b'\n', body).count() as u64;
        self.rejected.push(Rejected { line, lines, column, reason, raw: raw(&self.plan.dialect.written(body)) });
    }

    /// The line of an offset that is not before any asked for earlier; lines count from 1.
    fn line(&mut self, at: usize) -> u64 {
        let (from, line) = self.mark;
        let line = line + memchr_iter(b'\n', self.block.bytes.get(from..at).unwrap_or_default()).count() as u64;
        self.mark = (at, line);
        line
    }

    pub fn finish(mut self) -> Result<Parsed, ArrowError> {
        let rows = self.starts.len();
        let mut times = Adjusted::default();
        for column in &mut self.columns {
            times.add_column(&column.remarks(), None);
        }
        let columns = self.columns.into_iter().enumerate().map(|(index, column)| {
            let fed = self.header.steps.contains(&Some(index));
            if fed { column.finish() } else { Ok(column.all_null(rows)) }
        });
        let columns = columns.collect::<Result<_, _>>()?;
        Ok(Parsed { columns, starts: self.starts, rejected: self.rejected, read: self.read, times, notes: self.notes })
    }
}
