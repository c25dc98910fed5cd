//! Parses rows by the fast and the general path, for tests and fuzz targets that compare them.

use arrow::array::ArrayRef;
use arrow::error::ArrowError;
use memchr::{memchr, memchr_iter};

use crate::csv::rows::{Block, CsvPlan, Rows};
use crate::reject::Rejected;

/// The result of one path.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    /// The declared columns.
    pub columns: Vec<ArrayRef>,
    /// Offsets of accepted rows.
    pub starts: Vec<u32>,
    /// Rejected rows.
    pub rejected: Vec<Rejected>,
    /// Rows read.
    pub read: u64,
}

/// Parses `bytes` by both paths; `None` if the fast path does not apply.
pub(crate) fn both_paths(plan: &CsvPlan, bytes: &[u8]) -> Result<Option<[Outcome; 2]>, ArrowError> {
    let plain = plan.dialect.quote.is_none_or(|quote| memchr(quote, bytes).is_none());
    if !plain || plan.has_odd_returns(bytes) || plan.dialect.comment.is_some() || std::str::from_utf8(bytes).is_err() {
        return Ok(None);
    }
    let block = Block { bytes, first_line: 1, lines: memchr_iter(b'\n', bytes).count(), plain };
    let outcome = |way: fn(&mut Rows<'_>)| {
        let mut rows = Rows::new(plan, block, true);
        way(&mut rows);
        let parsed = rows.finish()?;
        let (columns, starts) = (parsed.columns, parsed.starts);
        Ok::<_, ArrowError>(Outcome { columns, starts, rejected: parsed.rejected, read: parsed.read })
    };
    Ok(Some([outcome(|rows| rows.fast())?, outcome(|rows| rows.general())?]))
}
