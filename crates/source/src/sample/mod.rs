//! Looks at a file of which nothing is declared: how it is written, which columns it has, and of which types.
//!
//! What is found is tried with the reader that will load the file, so that the two cannot disagree.

mod error;
mod footer;
mod head;
mod kinds;
mod numbers;
#[cfg(test)]
mod tests;
mod times;

use std::collections::BTreeSet;

use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use chrono_tz::Tz;
use tidetable_layout::FieldType;

pub use error::SampleError;

use crate::error::SourceError;
use crate::reject::{RejectReason, Rejected};
use crate::spec::{ColumnSpec, CsvOptions, Format, SourceSpec};
use crate::storage::{InputFile, Storage};
use kinds::{Found, decimal_comma, infer};

/// As much of a file is looked at, in bytes as stored.
const SAMPLE_BYTES: u64 = 32 << 20;
/// Rows, likewise.
const SAMPLE_ROWS: u64 = 1_000_000;
/// One row in so many may have another number of fields than the header: what a run tolerates by default.
const ODD_SHARE: u64 = 1000;

/// What a file looks like.
#[derive(Debug)]
pub struct Sample {
    /// How it is read: everything but the event time.
    pub spec: SourceSpec,
    /// What was found of each column, in the order of `spec.columns`.
    pub columns: Vec<SampleColumn>,
    /// Columns that cannot be read: those without a name, lists and the like.
    pub left_out: Vec<String>,
    /// The rows, typed.
    pub batches: Vec<RecordBatch>,
    /// Rows that will be rejected, of those looked at.
    pub rejected: u64,
    /// Whether this is the whole file.
    pub whole: bool,
}

/// What stands beside a column's type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampleColumn {
    /// Another format that all its times fit as well.
    pub also: Option<String>,
    /// Whether its times are written without an offset.
    pub without_offset: bool,
    /// Whether it holds integers that could be times since the epoch, though its name does not say so: their unit.
    pub maybe_epoch: Option<&'static str>,
}

/// What a pass over the file gives.
struct Pass {
    batches: Vec<RecordBatch>,
    rows: u64,
    rejected: u64,
    first: Option<Rejected>,
    whole: bool,
}

impl Storage {
    /// Looks at the first 32 MiB of a file. Times without an offset are taken to be of `zone`.
    ///
    /// # Errors
    /// [`SampleError`]: the file cannot be read, or it shows too little to tell its columns.
    pub fn sample(&self, input: &InputFile, zone: Option<Tz>) -> Result<Sample, SampleError> {
        let path = &input.path;
        let mut spec = SourceSpec { files: vec![path.clone()], format: Some(input.format), ..SourceSpec::default() };
        let left_out = match input.format {
            Format::Csv => {
                let head = head::read(path, self.raw(input)?)?;
                if let Some(column) = twice(&head.names) {
                    let is_value = column.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'));
                    return Err(match is_value {
                        true => SampleError::NoHeader { path: path.clone() },
                        false => SourceError::DuplicateColumn { path: path.clone(), column: column.clone() }.into(),
                    });
                }
                let (named, nameless): (Vec<_>, Vec<_>) =
                    head.names.into_iter().enumerate().partition(|(_, name)| !name.trim().is_empty());
                spec.csv = head.csv;
                spec.columns = named.into_iter().map(|(_, name)| ColumnSpec::new(name, FieldType::Text)).collect();
                nameless.into_iter().map(|(at, _)| format!("column {} (it has no name)", at + 1)).collect()
            }
            Format::Parquet => {
                let (columns, left_out) = footer::columns(self.parquet(input)?.schema(), zone);
                spec.columns = columns;
                left_out
            }
        };
        let written = self.pass(&spec, input)?;
        enough(path, &written)?;
        let columns = match input.format {
            Format::Csv => refine_text(&mut spec, &written.batches, zone),
            Format::Parquet => refine_typed(&mut spec, &written.batches, zone),
        };
        if input.format == Format::Csv && kinds::header_is_data(&spec) {
            return Err(SampleError::NoHeader { path: path.clone() });
        }
        drop(written);
        let typed = self.pass(&spec, input)?;
        Ok(Sample { spec, columns, left_out, batches: typed.batches, rejected: typed.rejected, whole: typed.whole })
    }

    fn pass(&self, spec: &SourceSpec, input: &InputFile) -> Result<Pass, SourceError> {
        let mut reader = self.open(spec, input)?;
        let parser = reader.parser();
        let mut pass = Pass { batches: Vec::new(), rows: 0, rejected: 0, first: None, whole: false };
        while pass.rows < SAMPLE_ROWS && reader.bytes_read() < SAMPLE_BYTES || pass.rows == 0 {
            let Some(chunk) = reader.next() else {
                pass.whole = true;
                break;
            };
            let parsed = parser.parse(chunk?)?;
            pass.rows += parsed.rows_read;
            pass.rejected += parsed.rejected.len() as u64;
            // A file in another encoding matters more than one odd row.
            let worst = parsed.rejected.iter().find(|row| row.reason == RejectReason::InvalidUtf8);
            let worst = worst.or(parsed.rejected.first());
            if pass.first.as_ref().is_none_or(|first| first.reason != RejectReason::InvalidUtf8) {
                pass.first =
                    pass.first.take().filter(|_| worst.is_none_or(|row| row.reason != RejectReason::InvalidUtf8));
                pass.first = pass.first.take().or(worst.cloned());
            }
            pass.batches.push(parsed.batch);
        }
        Ok(pass)
    }
}

/// The first name that is there more than once.
fn twice(names: &[String]) -> Option<&String> {
    let mut seen = BTreeSet::new();
    names.iter().filter(|name| !name.trim().is_empty()).find(|name| !seen.insert(name.as_str()))
}

/// Whether a pass shows enough to go on.
fn enough(path: &str, pass: &Pass) -> Result<(), SampleError> {
    let path = path.to_owned();
    if pass.rows == 0 {
        return Err(SampleError::Empty { path });
    }
    if let Some(first) = &pass.first {
        match first.reason {
            RejectReason::InvalidUtf8 => return Err(SampleError::NotUtf8 { path, line: first.line }),
            _ if pass.rejected * ODD_SHARE > pass.rows => {
                return Err(SampleError::Odd {
                    path,
                    first: Box::new(first.clone()),
                    odd: pass.rejected,
                    rows: pass.rows,
                });
            }
            _ => {}
        }
    }
    if pass.rows - pass.rejected < 2 {
        return Err(SampleError::OneRow { path });
    }
    Ok(())
}

/// Gives the columns of a CSV file, read as text, their types.
fn refine_text(spec: &mut SourceSpec, batches: &[RecordBatch], zone: Option<Tz>) -> Vec<SampleColumn> {
    let text = |at: usize| texts(batches, at);
    if spec.csv.delimiter != b',' {
        spec.csv.decimal_comma = decimal_comma((0..spec.columns.len()).map(text));
    }
    let mut markers = BTreeSet::from([String::new()]);
    let mut columns = Vec::with_capacity(spec.columns.len());
    let csv = spec.csv.clone();
    for (at, column) in spec.columns.iter_mut().enumerate() {
        let found = infer(&column.name, &text(at), &csv, zone);
        markers.extend(found.markers.iter().map(|marker| (*marker).to_owned()));
        columns.push(settle(column, found));
    }
    spec.csv.null = markers.into_iter().collect();
    columns
}

/// Finds times in the text and the integers of a Parquet file.
fn refine_typed(spec: &mut SourceSpec, batches: &[RecordBatch], zone: Option<Tz>) -> Vec<SampleColumn> {
    let csv = CsvOptions::default();
    let mut columns = Vec::with_capacity(spec.columns.len());
    for (at, column) in spec.columns.iter_mut().enumerate() {
        let found = match column.kind {
            FieldType::Text => times::of_text(&column.name, &texts(batches, at), &csv, zone),
            FieldType::Int64 | FieldType::UInt64 => times::of_integers(&column.name, &integers(batches, at)),
            _ => None,
        };
        columns.push(found.map(|found| settle(column, found)).unwrap_or_default());
    }
    columns
}

fn settle(column: &mut ColumnSpec, found: Found) -> SampleColumn {
    *column = found.spec;
    SampleColumn { also: found.also, without_offset: found.without_offset, maybe_epoch: found.maybe_epoch }
}

/// The column `at`, read as text.
fn texts(batches: &[RecordBatch], at: usize) -> Vec<&StringArray> {
    batches.iter().filter_map(|batch| batch.columns().get(at)?.as_string_opt::<i32>()).collect()
}

/// The least and the greatest integer of each batch of the column `at`.
fn integers(batches: &[RecordBatch], at: usize) -> Vec<(i64, i64)> {
    let ranges = batches.iter().filter_map(|batch| {
        let array = batch.columns().get(at)?;
        if let Some(signed) = array.as_primitive_opt::<arrow::datatypes::Int64Type>() {
            return Some((arrow::compute::min(signed)?, arrow::compute::max(signed)?));
        }
        let unsigned = array.as_primitive_opt::<arrow::datatypes::UInt64Type>()?;
        let whole = |value: Option<u64>| i64::try_from(value?).ok();
        Some((whole(arrow::compute::min(unsigned))?, whole(arrow::compute::max(unsigned))?))
    });
    ranges.collect()
}

/// The values of a column that are there, without blanks around them.
fn values<'a>(column: &'a [&StringArray]) -> impl Iterator<Item = &'a str> + Clone + use<'a> {
    column
        .iter()
        .flat_map(|array| (0..array.len()).filter(|row| array.is_valid(*row)).map(|row| array.value(row).trim()))
}
