//! One pass over the sample of a file, by a declaration.

use arrow::array::RecordBatch;
use tidetable_layout::FieldType;

use crate::csv::TextNotes;
use crate::error::SourceError;
use crate::format::Format;
use crate::origin::Origin;
use crate::reject::{RejectReason, Rejected};
use crate::spec::{ColumnSpec, SchemaMode, SourceSpec};
use crate::storage::{InputFile, Storage};

/// Stored bytes of a file that are sampled.
const SAMPLE_BYTES: u64 = 32 << 20;
/// Rows that are sampled, of all files together.
const SAMPLE_ROWS: u64 = 1_000_000;

/// Passes that add columns: each adds many, unless keys are values.
const PASSES: usize = 8;

/// Lines of the beginning of a file, and those among them that are rejected if its header is another line.
const FIRST_LINES: u64 = 20;
const TOP_LINES: u64 = 3;

/// Which rows of a pass are rejected.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct OddRows {
    /// The line of the first, from 1.
    pub first: u64,
    /// The line of the last row that is accepted.
    pub last_accepted: u64,
    /// How many rows are rejected on the first lines, and whether one is at the very top.
    pub early: u64,
    pub is_at_top: bool,
    /// Whether all of them have other numbers of fields than they should.
    pub are_counts: bool,
    /// The number of fields that a row should have, the least that one of them has, and the most.
    pub expected: usize,
    pub least: usize,
    pub most: usize,
}

impl OddRows {
    /// Adds those of a later part of the file.
    fn add(&mut self, rejected: &[Rejected]) {
        for row in rejected {
            self.early += u64::from(row.line <= FIRST_LINES);
            self.is_at_top |= row.line <= TOP_LINES;
            let is_first = self.first == 0;
            if is_first {
                (self.first, self.are_counts, self.least) = (row.line, true, usize::MAX);
            }
            match row.reason {
                RejectReason::ColumnCount { expected, found } => {
                    (self.expected, self.least, self.most) = (expected, self.least.min(found), self.most.max(found));
                }
                _ => self.are_counts = false,
            }
        }
    }
}

/// The result of one pass over the files.
#[derive(Default)]
pub(super) struct Pass {
    pub(super) batches: Vec<RecordBatch>,
    /// The origin of the rows of each batch.
    pub(super) origins: Vec<Origin>,
    pub(super) rows: u64,
    pub(super) rejected: u64,
    pub(super) more_lines: u64,
    pub(super) repeated: u64,
    pub(super) first: Option<Rejected>,
    pub(super) odd: OddRows,
    pub(super) notes: TextNotes,
    pub(super) whole: bool,
    /// Undeclared columns of headers inside the files, and of JSON keys behind the first records.
    pub(super) added: Vec<String>,
}

impl Storage {
    /// Reads the beginnings of `inputs`, which share the size of the sample.
    ///
    /// # Errors
    /// If one cannot be read.
    pub(super) fn pass(&self, spec: &SourceSpec, inputs: &[InputFile]) -> Result<Pass, SourceError> {
        let mut pass = Pass { whole: true, ..Pass::default() };
        let share = inputs.len().max(1) as u64;
        for input in inputs {
            pass.whole &= self.pass_file(spec, input, share, &mut pass)?;
        }
        Ok(pass)
    }

    /// As [`Self::pass`], of files that may have headers inside of them, or JSON keys behind the first records: columns that
    /// only these have are declared, too, and null elsewhere.
    pub(super) fn pass_of_headers(&self, spec: &mut SourceSpec, inputs: &[InputFile]) -> Result<Pass, SourceError> {
        for _ in 0..PASSES {
            match self.pass(spec, inputs) {
                Err(SourceError::LaterHeader { .. }) if spec.mode == SchemaMode::Freeze => {}
                Ok(pass) if !pass.added.is_empty() => {
                    spec.columns.extend(pass.added.into_iter().map(|name| ColumnSpec::new(name, FieldType::Text)));
                }
                done => return done,
            }
            spec.mode = SchemaMode::Evolve;
        }
        self.pass(spec, inputs)
    }

    /// Adds the beginning of a file, one of `share`; whether that is all of it.
    pub(super) fn pass_file(
        &self,
        spec: &SourceSpec,
        input: &InputFile,
        share: u64,
        pass: &mut Pass,
    ) -> Result<bool, SourceError> {
        let mut reader = self.open(spec, input)?;
        let parser = reader.parser();
        let before = pass.rows;
        while pass.rows - before < SAMPLE_ROWS / share && reader.bytes_read() < SAMPLE_BYTES / share
            || pass.rows == before
        {
            let Some(chunk) = reader.next() else { return Ok(true) };
            let chunk = chunk?;
            for name in chunk.diff().into_iter().flat_map(|diff| &diff.extra) {
                if !pass.added.contains(name) {
                    pass.added.push(name.clone());
                }
            }
            let parsed = parser.parse(chunk)?;
            pass.rows += parsed.rows_read;
            pass.repeated += parsed.times.repeated;
            pass.rejected += parsed.rejected.len() as u64;
            pass.more_lines += parsed.rejected.iter().map(|row| row.lines.saturating_sub(1)).sum::<u64>();
            for key in parsed.notes.new_keys.keys() {
                if !pass.added.contains(key) {
                    pass.added.push(key.clone());
                }
            }
            pass.notes.add(&parsed.notes);
            if let Some(last) = parsed.batch.num_rows().checked_sub(1) {
                pass.odd.last_accepted = parsed.origin.line(last);
            }
            pass.odd.add(&parsed.rejected);

            // An encoding error is reported before other rejects.
            let worst = parsed.rejected.iter().find(|row| row.reason == RejectReason::InvalidUtf8);
            let worst = worst.or(parsed.rejected.first());
            if pass.first.as_ref().is_none_or(|first| first.reason != RejectReason::InvalidUtf8) {
                pass.first =
                    pass.first.take().filter(|_| worst.is_none_or(|row| row.reason != RejectReason::InvalidUtf8));
                pass.first = pass.first.take().or(worst.cloned());
            }
            pass.batches.push(parsed.batch);
            pass.origins.push(parsed.origin);
        }
        Ok(false)
    }
}

/// Takes a column of bytes whose values are not UTF-8 from the declaration.
pub(super) fn take_unreadable(spec: &mut SourceSpec, pass: &Pass) -> Option<String> {
    let rejected = pass.first.as_ref().filter(|first| first.reason == RejectReason::InvalidUtf8)?;
    let name = rejected.column.as_ref().filter(|_| !spec.format.is_none_or(Format::is_text))?;
    let at = spec.columns.iter().position(|column| column.name == *name)?;
    Some(spec.columns.remove(at).name)
}
