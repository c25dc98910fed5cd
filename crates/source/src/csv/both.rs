//! The same rows the fast way and the general way, for those who compare them: tests and fuzz targets.

use arrow::array::ArrayRef;
use arrow::error::ArrowError;
use memchr::{memchr, memchr_iter};

use super::rows::{Block, CsvPlan, Rows};
use crate::reject::Rejected;

/// What became of some bytes.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    /// A column for each declared one.
    pub columns: Vec<ArrayRef>,
    /// Where the accepted rows start.
    pub starts: Vec<u32>,
    /// The other rows.
    pub rejected: Vec<Rejected>,
    /// Rows seen.
    pub read: u64,
}

/// What `bytes` are the fast way and the general way; `None` if the fast way is not for them.
pub(crate) fn both_ways(plan: &CsvPlan, bytes: &[u8]) -> Result<Option<[Outcome; 2]>, ArrowError> {
    let plain = plan.dialect.quote.is_none_or(|quote| memchr(quote, bytes).is_none());
    if !plain || plan.dialect.comment.is_some() || std::str::from_utf8(bytes).is_err() {
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
