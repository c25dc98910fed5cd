//! Dedup: several records with equal qualifier and timestamp are kept, except those equal in every column to an
//! earlier one.
//!
//! They stay in order of arrival, later inputs after earlier ones. The resulting set does not depend on the SSTs that
//! hold the records; its order does not if each SST holds records that arrived before those of the next.

use arrow::array::ArrayRef;
use arrow::row::{Row, RowConverter, Rows, SortField};

use crate::error::Result;
use crate::merge::place::RecordRef;

/// The records of several sources, converted to arrow's row format for comparison.
#[derive(Debug)]
pub struct Contents {
    sources: Vec<Rows>,
}

impl Contents {
    /// Converts all columns of each source.
    ///
    /// # Errors
    /// If a column's type is not comparable.
    pub fn new(sources: &[Vec<ArrayRef>]) -> Result<Self> {
        let fields = sources.first().into_iter().flatten();
        let converter = RowConverter::new(fields.map(|array| SortField::new(array.data_type().clone())).collect())?;
        let sources = sources.iter().map(|columns| converter.convert_columns(columns)).collect::<Result<_, _>>()?;
        Ok(Self { sources })
    }

    /// Removes from `records` those equal to an earlier one.
    pub fn keep_first(&self, records: &mut Vec<RecordRef>) {
        let contents: Vec<Row<'_>> = records.iter().map(|record| self.content(*record)).collect();
        let mut order: Vec<usize> = (0..records.len()).collect();
        order.sort_by(|a, b| contents[*a].cmp(&contents[*b]).then(a.cmp(b)));

        let mut is_first = vec![true; records.len()];
        for pair in order.windows(2) {
            is_first[pair[1]] = contents[pair[0]] != contents[pair[1]];
        }
        let mut is_first = is_first.into_iter();
        records.retain(|_| is_first.next().unwrap_or(true));
    }

    /// Whether two records have the same content.
    pub fn is_equal(&self, left: RecordRef, right: RecordRef) -> bool {
        self.content(left) == self.content(right)
    }

    fn content(&self, RecordRef { source, record }: RecordRef) -> Row<'_> {
        self.sources[source].row(record)
    }
}
