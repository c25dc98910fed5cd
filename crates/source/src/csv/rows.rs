//! Rows of a chunk into columns. The fast way finds the fields of many rows, then reads them column by column, and hands
//! any row that surprises it to the general way, so that both mean the same.

use arrow::array::ArrayRef;
use arrow::error::ArrowError;
use memchr::memchr_iter;

use crate::column_diff::ColumnDiff;
use crate::csv::dialect::{Dialect, Scan, Span, split};
use crate::reject::{RejectReason, Rejected, raw};
use crate::time::TimeCounts;
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
    /// For each field of a row the column it feeds.
    pub steps: Vec<Option<usize>>,
    /// Why every row is rejected, if so.
    pub refused: Option<ColumnDiff>,
}

/// Whole records of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'a> {
    pub bytes: &'a [u8],
    /// Physical line of the first byte, from 1.
    pub first_line: u64,
    /// Line ends among the bytes.
    pub lines: usize,
    /// Whether there is no quote among the bytes.
    pub plain: bool,
}

/// What became of a block.
pub(crate) struct Parsed {
    pub columns: Vec<ArrayRef>,
    /// Where the accepted rows start.
    pub starts: Vec<u32>,
    pub rejected: Vec<Rejected>,
    pub read: u64,
    pub times: TimeCounts,
}

/// Reads all rows of a block.
pub(crate) fn parse(plan: &CsvPlan, block: Block<'_>) -> Result<Parsed, ArrowError> {
    let valid = std::str::from_utf8(block.bytes).is_ok();
    let mut rows = Rows::new(plan, block, valid);
    // Comments are a matter of record starts, invalid UTF-8 of whole rows: both are left to the general way.
    if block.plain && valid && plan.dialect.comment.is_none() && plan.refused.is_none() {
        rows.fast();
    } else {
        rows.general();
    }
    rows.finish()
}

pub(super) struct Rows<'a> {
    plan: &'a CsvPlan,
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
}

impl<'a> Rows<'a> {
    pub fn new(plan: &'a CsvPlan, block: Block<'a>, valid: bool) -> Self {
        let room = block.lines + 1;
        Self {
            plan,
            block,
            valid,
            columns: plan.columns.iter().map(|column| ColumnBuilder::new(column, room)).collect(),
            starts: Vec::with_capacity(room),
            rejected: Vec::new(),
            read: 0,
            spans: Vec::new(),
            scratch: Vec::new(),
            mark: (0, block.first_line),
        }
    }

    /// Rows without quotes and comments, valid UTF-8.
    pub fn fast(&mut self) {
        let bytes = self.block.bytes;
        let mut fields = Fields::default();
        let (mut at, mut most) = (0, MAX_ROWS);
        while at < bytes.len() {
            let odd = fields.find(bytes, at, self.plan.dialect.delimiter, self.plan.steps.len(), most);
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
            let end = memchr::memchr(b'\n', rest).map_or(bytes.len(), |found| at + found + 1);
            self.record(at, end);
            at = end;
        }
    }

    /// Adds the values of `fields`, column by column, up to the first row that cannot be added: how many rows those are.
    fn columns(&mut self, fields: &Fields) -> usize {
        let mut rows = fields.rows();
        for (field, step) in self.plan.steps.iter().enumerate() {
            if let Some(column) = step.and_then(|step| self.columns.get_mut(step)) {
                rows = column.push_all(fields.slices(self.block.bytes, field, rows));
            }
        }
        if rows < fields.rows() {
            self.undo(self.starts.len() + rows);
        }
        rows
    }

    /// Rows of any kind.
    pub fn general(&mut self) {
        let bytes = self.block.bytes;
        let mut at = 0;
        while at < bytes.len() {
            match self.plan.dialect.scan(bytes, at, true) {
                Scan::Record(end) => {
                    self.record(at, end);
                    at = end;
                }
                Scan::Open { opened, resume, stray } => {
                    self.read += 1;
                    let line =
                        self.line(at) + memchr_iter(b'\n', bytes.get(at..opened).unwrap_or_default()).count() as u64;
                    let reason = match stray {
                        true => RejectReason::StrayQuote { line },
                        false => RejectReason::UnterminatedQuote { line },
                    };
                    self.reject(at, resume, None, reason);
                    at = resume;
                }
                Scan::More => return,
            }
        }
    }

    /// One complete record, which may be blank or a comment.
    fn record(&mut self, start: usize, end: usize) {
        let record = self.plan.dialect.body(self.block.bytes.get(start..end).unwrap_or_default());
        if record.is_empty() || self.plan.dialect.is_comment(record) {
            return;
        }
        self.read += 1;
        if let Some(diff) = &self.plan.refused {
            return self.reject(start, end, None, RejectReason::Columns(diff.clone()));
        }
        match self.fields(start, record) {
            Ok(()) => self.starts.push(start as u32),
            Err((column, reason)) => {
                self.undo(self.starts.len());
                self.reject(start, end, column, reason);
            }
        }
    }

    fn fields(&mut self, start: usize, record: &[u8]) -> Result<(), (Option<usize>, RejectReason)> {
        split(&self.plan.dialect, record, &mut self.spans, &mut self.scratch);
        let (expected, found) = (self.plan.steps.len(), self.spans.len());
        if expected != found {
            return Err((None, RejectReason::ColumnCount { expected, found }));
        }
        if !self.valid && std::str::from_utf8(record).is_err() {
            return Err((None, RejectReason::InvalidUtf8));
        }
        for (span, step) in self.spans.iter().zip(&self.plan.steps) {
            if let Some(column) = *step
                && let Some(target) = self.columns.get_mut(column)
            {
                let pushed = match span.in_place() {
                    Some((at, length)) => {
                        let rest = self.block.bytes.get(start + at..).unwrap_or_default();
                        target.push_first(rest, length, span.quoted)
                    }
                    None => target.push(span.of(record, &self.scratch), span.quoted),
                };
                pushed.map_err(|reason| (Some(column), reason))?;
            }
        }
        Ok(())
    }

    fn undo(&mut self, rows: usize) {
        for column in &mut self.columns {
            column.truncate(rows);
        }
    }

    fn reject(&mut self, start: usize, end: usize, column: Option<usize>, reason: RejectReason) {
        let line = self.line(start);
        let column = column.and_then(|index| self.plan.columns.get(index)).map(|column| column.name.clone());
        let raw = raw(self.plan.dialect.body(self.block.bytes.get(start..end).unwrap_or_default()));
        self.rejected.push(Rejected { line, column, reason, raw });
    }

    /// The line of an offset not before any asked for earlier.
    fn line(&mut self, at: usize) -> u64 {
        let (from, line) = self.mark;
        let line = line + memchr_iter(b'\n', self.block.bytes.get(from..at).unwrap_or_default()).count() as u64;
        self.mark = (at, line);
        line
    }

    pub fn finish(mut self) -> Result<Parsed, ArrowError> {
        let rows = self.starts.len();
        let mut times = TimeCounts::default();
        for column in &mut self.columns {
            times += column.remarks().counts(|_| true);
        }
        let columns = self.columns.into_iter().enumerate().map(|(index, column)| {
            let fed = self.plan.steps.contains(&Some(index));
            if fed { column.finish() } else { Ok(column.all_null(rows)) }
        });
        let columns = columns.collect::<Result<_, _>>()?;
        Ok(Parsed { columns, starts: self.starts, rejected: self.rejected, read: self.read, times })
    }
}
