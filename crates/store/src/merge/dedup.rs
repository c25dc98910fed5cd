//! Dedup: several records with equal qualifier and timestamp are kept, except those equal in every column to an
//! earlier one.
//!
//! They stay in order of arrival, later inputs after earlier ones. The resulting set does not depend on the SSTs that
//! hold the records; its order does not if each SST holds records that arrived before those of the next.

use arrow::array::ArrayRef;
use arrow::row::{RowConverter, Rows, SortField};

use crate::error::Result;

/// The records of several sources, converted for comparison.
#[derive(Debug)]
pub struct Contents {
    sources: Vec<Rows>,
}

impl Contents {
    /// From all columns of each source.
    ///
    /// # Errors
    /// If a column's type is not comparable.
    pub fn new(sources: &[Vec<ArrayRef>]) -> Result<Self> {
        let fields = sources.first().into_iter().flatten();
        let converter = RowConverter::new(fields.map(|array| SortField::new(array.data_type().clone())).collect())?;
        let sources = sources.iter().map(|columns| converter.convert_columns(columns)).collect::<Result<_, _>>()?;
        Ok(Self { sources })
    }

    /// Removes from `records` (source, record) those equal to an earlier one.
    pub fn keep_first(&self, records: &mut Vec<(usize, usize)>) {
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
