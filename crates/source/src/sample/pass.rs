//! One pass over the sample of a file, by a declaration.

use arrow::array::RecordBatch;

use crate::csv::TextNotes;
use crate::error::SourceError;
use crate::origin::Origin;
use crate::reject::{RejectReason, Rejected};
use crate::spec::{Format, SourceSpec};
use crate::storage::{InputFile, Storage};

/// Stored bytes of a file that are sampled.
const SAMPLE_BYTES: u64 = 32 << 20;
/// Rows that are sampled.
const SAMPLE_ROWS: u64 = 1_000_000;

/// The result of one pass over the file.
pub(super) struct Pass {
    pub(super) batches: Vec<RecordBatch>,
    /// The origin of the rows of each batch.
    pub(super) origins: Vec<Origin>,
    pub(super) rows: u64,
    pub(super) rejected: u64,
    pub(super) more_lines: u64,
    pub(super) repeated: u64,
    pub(super) first: Option<Rejected>,
    pub(super) notes: TextNotes,
    pub(super) whole: bool,
}

impl Storage {
    pub(super) fn pass(&self, spec: &SourceSpec, input: &InputFile) -> Result<Pass, SourceError> {
        let mut reader = self.open(spec, input)?;
        let parser = reader.parser();
        let mut pass = Pass {
            batches: Vec::new(),
            origins: Vec::new(),
            rows: 0,
            rejected: 0,
            more_lines: 0,
            repeated: 0,
            first: None,
            notes: TextNotes::default(),
            whole: false,
        };
        while pass.rows < SAMPLE_ROWS && reader.bytes_read() < SAMPLE_BYTES || pass.rows == 0 {
            let Some(chunk) = reader.next() else {
                pass.whole = true;
                break;
            };
            let parsed = parser.parse(chunk?)?;
            pass.rows += parsed.rows_read;
            pass.repeated += parsed.times.repeated;
            pass.rejected += parsed.rejected.len() as u64;
            pass.more_lines += parsed.rejected.iter().map(|row| row.lines.saturating_sub(1)).sum::<u64>();
            pass.notes.add(&parsed.notes);
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
        Ok(pass)
    }
}

/// Takes a column of Parquet whose bytes are not UTF-8 from the declaration.
pub(super) fn take_unreadable(spec: &mut SourceSpec, pass: &Pass) -> Option<String> {
    let rejected = pass.first.as_ref().filter(|first| first.reason == RejectReason::InvalidUtf8)?;
    let name = rejected.column.as_ref().filter(|_| spec.format == Some(Format::Parquet))?;
    let at = spec.columns.iter().position(|column| column.name == *name)?;
    Some(spec.columns.remove(at).name)
}
