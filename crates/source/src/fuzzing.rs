//! What fuzz targets compare: two ways to read the same bytes, which must mean the same.

use std::io::Cursor;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::error::ArrowError;

use crate::csv::{CsvPlan, Dialect};
use crate::decompress::Decoded;
use crate::error::SourceError;
use crate::plan::column_plans;
use crate::read::InputReader;
use crate::reader_version::ReaderVersion;
use crate::reject::Rejected;
use crate::spec::SourceSpec;
use crate::text_shape::{TextRules, TextShape};

pub use crate::csv::Outcome;

/// The name of the file that is read, for messages.
const NAME: &str = "fuzz.csv";

/// Rows without a header the fast way and the general way; `None` if the fast way is not for them. `steps` says for
/// each field of a row which column it is.
///
/// # Errors
/// If `spec` is wrong, or columns cannot be made.
pub fn both_paths(
    spec: &SourceSpec,
    steps: Vec<Option<usize>>,
    bytes: &[u8],
) -> Result<Option<[Outcome; 2]>, SourceError> {
    let plan = CsvPlan {
        dialect: Dialect::new(&spec.csv, ReaderVersion::CURRENT),
        columns: column_plans(spec, ReaderVersion::CURRENT)?,
        steps,
        header: Vec::new(),
        refused: None,
    };
    crate::csv::both_paths(&plan, bytes).map_err(arrow)
}

fn arrow(source: ArrowError) -> SourceError {
    SourceError::Arrow { path: NAME.to_owned(), source }
}

/// A file as all its chunks together have it.
#[derive(Debug, PartialEq)]
pub struct Whole {
    /// Accepted rows, in the order of the file.
    pub batch: RecordBatch,
    /// The line, from 1, and the text of each accepted row.
    pub origins: Vec<(u64, String)>,
    /// Rejected rows, in the order of the file.
    pub rejected: Vec<Rejected>,
    /// Rows that were read, accepted or not.
    pub read: u64,
}

/// Reads a file that is `bytes`, cut into chunks of about `chunk_bytes`.
///
/// # Errors
/// Those of a reader and a parser.
pub fn read_all(spec: &SourceSpec, bytes: &[u8], chunk_bytes: usize) -> Result<Whole, SourceError> {
    let from = Box::new(Cursor::new(bytes.to_vec()));
    let bytes = Decoded::new(NAME.to_owned(), from)?;
    let mut reader = InputReader::csv(
        spec,
        column_plans(spec, ReaderVersion::CURRENT)?,
        TextRules { reader: ReaderVersion::CURRENT, shape: TextShape::default() },
        bytes,
        chunk_bytes,
    )?;

    let parser = reader.parser();
    let (mut batches, mut origins, mut rejected, mut read) = (Vec::new(), Vec::new(), Vec::new(), 0);

    for chunk in &mut reader {
        let parsed = parser.parse(chunk?)?;
        origins.extend((0..parsed.batch.num_rows()).map(|row| (parsed.origin.line(row), parsed.origin.raw(row))));
        batches.push(parsed.batch);
        rejected.extend(parsed.rejected);
        read += parsed.rows_read;
    }

    let batch = concat_batches(parser.schema(), &batches).map_err(arrow)?;
    Ok(Whole { batch, origins, rejected, read })
}
