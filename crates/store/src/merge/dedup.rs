//! Records that are kept side by side though they are alike in qualifier and timestamp: all but those equal in every
//! column to an earlier one.
//!
//! They stay in the order they came, later inputs after earlier ones. Whatever SSTs the same records come in, the same
//! set is left; its order is the same where each SST holds what came before the next one's.

use arrow::array::ArrayRef;
use arrow::row::{RowConverter, Rows, SortField};

use crate::error::Result;

/// The records of several sources, made to be compared.
#[derive(Debug)]
pub(crate) struct Contents {
    sources: Vec<Rows>,
}

impl Contents {
    /// Of each source, all its columns.
    ///
    /// # Errors
    /// If columns are of types that do not compare.
    pub(crate) fn new(sources: &[Vec<ArrayRef>]) -> Result<Self> {
        let fields = sources.first().into_iter().flatten();
        let converter = RowConverter::new(fields.map(|array| SortField::new(array.data_type().clone())).collect())?;
        let sources = sources.iter().map(|columns| converter.convert_columns(columns)).collect::<Result<_, _>>()?;
        Ok(Self { sources })
    }

    /// Takes out of `records` (source, record) those that equal an earlier one.
    pub(crate) fn keep_first(&self, records: &mut Vec<(usize, usize)>) {
        let content = |at: usize| {
            let (source, record) = records[at];
            self.sources[source].row(record)
        };
        let mut order: Vec<usize> = (0..records.len()).collect();
        order.sort_by(|a, b| content(*a).cmp(&content(*b)).then(a.cmp(b)));
        let mut first = vec![true; records.len()];
        for pair in order.windows(2) {
            first[pair[1]] = content(pair[0]) != content(pair[1]);
        }
        let mut kept = first.into_iter();
        records.retain(|_| kept.next().unwrap_or(true));
    }
}
