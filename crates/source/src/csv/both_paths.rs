//! Parses rows by the fast and the general path, for tests and fuzz targets that compare them.

use arrow::array::ArrayRef;
use arrow::error::ArrowError;
use memchr::{memchr, memchr_iter};

use crate::csv::rows::{Block, CsvPlan, Parsed, Rows};
use crate::reject::Rejected;

/// What one of the two paths made of the same rows.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    /// The declared columns of the accepted rows.
    pub columns: Vec<ArrayRef>,
    /// Where the accepted rows start, as offsets in bytes.
    pub starts: Vec<u32>,
    /// Rows that were rejected, in the order of the file.
    pub rejected: Vec<Rejected>,
    /// Rows that were read, accepted or not.
    pub read: u64,
}

/// Parses `bytes` by both paths; `None` if the fast path does not apply.
pub(crate) fn both_paths(plan: &CsvPlan, bytes: &[u8]) -> Result<Option<[Outcome; 2]>, ArrowError> {
    let plain = plan.dialect.quote.is_none_or(|quote| memchr(quote, bytes).is_none());
    if !plain || plan.has_odd_returns(bytes) || plan.dialect.comment.is_some() || std::str::from_utf8(bytes).is_err() {
        return Ok(None);
    }
    let block = Block { bytes, first_line: 1, lines: memchr_iter(b'\n', bytes).count(), plain, later_header: None };

    let mut by_fast = Rows::new(plan, block, true);
    by_fast.fast();
    let mut by_general = Rows::new(plan, block, true);
    by_general.general();
    Ok(Some([outcome(by_fast)?, outcome(by_general)?]))
}

fn outcome(rows: Rows<'_>) -> Result<Outcome, ArrowError> {
    let Parsed { columns, starts, rejected, read, .. } = rows.finish()?;
    Ok(Outcome { columns, starts, rejected, read })
}
