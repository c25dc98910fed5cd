//! Rows of a chunk into columns. The fast way reads fields from the cursor and hands any surprise to the general way,
//! row by row, so that both mean the same.

use arrow::array::ArrayRef;
use arrow::error::ArrowError;
use memchr::memchr_iter;

use super::dialect::{Dialect, Scan, Span, body, split};
use crate::column::Column;
use crate::field::field_end;
use crate::plan::ColumnPlan;
use crate::reject::{RejectReason, Rejected, raw};

/// How the rows of one file are read.
#[derive(Debug)]
pub(crate) struct CsvPlan {
    pub dialect: Dialect,
    pub columns: Vec<ColumnPlan>,
    /// For each field of a row the column it feeds.
    pub steps: Vec<Option<usize>>,
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
}

/// Reads all rows of a block.
pub(crate) fn parse(plan: &CsvPlan, block: Block<'_>) -> Result<Parsed, ArrowError> {
    let valid = std::str::from_utf8(block.bytes).is_ok();
    let mut rows = Rows::new(plan, block, valid);
    // Comments are a matter of record starts, invalid UTF-8 of whole rows: both are left to the general way.
    if block.plain && valid && plan.dialect.comment.is_none() {
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
    columns: Vec<Column<'a>>,
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
            columns: plan.columns.iter().map(|column| Column::new(column, room)).collect(),
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
        let mut at = 0;
        while at < bytes.len() {
            match self.fast_row(at) {
                Some(next) => {
                    self.starts.push(at as u32);
                    self.read += 1;
                    at = next;
                }
                None => {
                    let rest = bytes.get(at..).unwrap_or_default();
                    let end = memchr::memchr(b'\n', rest).map_or(bytes.len(), |found| at + found + 1);
                    self.undo(self.starts.len());
                    self.record(at, end);
                    at = end;
                }
            }
        }
    }

    /// Reads one row and returns where the next starts; `None`, possibly with some fields already added, if anything
    /// about it is unusual.
    #[inline]
    fn fast_row(&mut self, start: usize) -> Option<usize> {
        let delimiter = self.plan.dialect.delimiter;
        let mut rest = self.block.bytes.get(start..)?;
        // A blank line is no row, even where a single empty field would be one.
        if matches!(rest.first(), Some(b'\n' | b'\r')) {
            return None;
        }
        let (last, steps) = self.plan.steps.split_last()?;
        for step in steps {
            let length = match step {
                Some(column) => self.columns.get_mut(*column)?.push_prefix(rest, delimiter)?,
                None => field_end(rest, delimiter)?,
            };
            let (end, after) = rest.get(length..)?.split_first()?;
            if *end != delimiter {
                return None;
            }
            rest = after;
        }
        let length = match last {
            Some(column) => self.columns.get_mut(*column)?.push_prefix(rest, delimiter)?,
            None => field_end(rest, delimiter)?,
        };
        let line_end = match rest.get(length)? {
            b'\n' => 1,
            b'\r' => 2,
            _ => return None,
        };
        Some(self.block.bytes.len() - rest.len() + length + line_end)
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
                Scan::Open { opened, resume } => {
                    self.read += 1;
                    let quote_line =
                        self.line(at) + memchr_iter(b'\n', bytes.get(at..opened).unwrap_or_default()).count() as u64;
                    self.reject(at, resume, None, RejectReason::UnterminatedQuote { line: quote_line });
                    at = resume;
                }
                Scan::More => return,
            }
        }
    }

    /// One complete record, which may be blank or a comment.
    fn record(&mut self, start: usize, end: usize) {
        let record = body(self.block.bytes.get(start..end).unwrap_or_default());
        if record.is_empty() || self.plan.dialect.is_comment(record) {
            return;
        }
        self.read += 1;
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
        let raw = raw(body(self.block.bytes.get(start..end).unwrap_or_default()));
        self.rejected.push(Rejected { line, column, reason, raw });
    }

    /// The line of an offset not before any asked for earlier.
    fn line(&mut self, at: usize) -> u64 {
        let (from, line) = self.mark;
        let line = line + memchr_iter(b'\n', self.block.bytes.get(from..at).unwrap_or_default()).count() as u64;
        self.mark = (at, line);
        line
    }

    pub fn finish(self) -> Result<Parsed, ArrowError> {
        let columns = self.columns.into_iter().map(Column::finish).collect::<Result<_, _>>()?;
        Ok(Parsed { columns, starts: self.starts, rejected: self.rejected, read: self.read })
    }
}
