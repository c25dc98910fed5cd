//! The merge of an ASOF join.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, new_null_array};
use arrow::compute::{filter_record_batch, interleave};
use arrow::datatypes::SchemaRef;
use datafusion::error::Result;

use crate::asof::sorted::{SortedBatch, SortedInput};

/// Batches of the right side that wait for the end of a left batch; with more, the rows so far are given out.
const MAX_WAITING: usize = 32;

/// A row of the right side.
#[derive(Clone)]
struct RightRow {
    batch: Arc<SortedBatch>,
    row: usize,
}

/// Merges two sorted inputs. For each left row, right rows that are not behind it are passed; the last of these is its match if it
/// has equal keys. Of several at one time, it is the one with the greatest values, compared column by column.
pub(super) struct Merge {
    left: SortedInput,
    right: SortedInput,
    is_strict: bool,
    keeps_left: bool,
    schema: SchemaRef,
    /// The left batch, and its first row that is not given out.
    left_batch: Option<(Arc<SortedBatch>, usize)>,
    /// The next right row; `None` before the first and after the last.
    next_right: Option<RightRow>,
    right_has_begun: bool,
    /// The last right row that was passed.
    passed: Option<RightRow>,
    /// Batches of matches of rows that are not given out.
    waiting: Vec<Arc<SortedBatch>>,
}

impl Merge {
    pub(super) fn new(
        left: SortedInput,
        right: SortedInput,
        is_strict: bool,
        keeps_left: bool,
        schema: SchemaRef,
    ) -> Self {
        Self {
            left,
            right,
            is_strict,
            keeps_left,
            schema,
            left_batch: None,
            next_right: None,
            right_has_begun: false,
            passed: None,
            waiting: Vec::new(),
        }
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// Those of the inputs.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        if !self.right_has_begun {
            self.right_has_begun = true;
            self.read_right().await?;
        }
        loop {
            let (batch, start) = match self.left_batch.take() {
                Some(left) => left,
                None => match self.left.next().await? {
                    Some(batch) => (batch, 0),
                    None => return Ok(None),
                },
            };

            let mut matches: Vec<Option<(usize, usize)>> = Vec::with_capacity(batch.batch.num_rows() - start);
            let mut row = start;
            while row < batch.batch.num_rows() && self.waiting.len() < MAX_WAITING {
                matches.push(self.find(&batch, row).await?);
                row += 1;
            }
            if row < batch.batch.num_rows() {
                self.left_batch = Some((Arc::clone(&batch), row));
            }
            let rows = batch.batch.slice(start, row - start);
            if let Some(rows) = self.give_out(rows, &matches)? {
                return Ok(Some(rows));
            }
        }
    }

    /// The match of a left row: the number of its batch among those that wait, and its row.
    async fn find(&mut self, left: &SortedBatch, row: usize) -> Result<Option<(usize, usize)>> {
        if !left.is_valid(row) {
            return Ok(None);
        }
        while let Some(right) = &self.next_right {
            let order = right.batch.compare_keys(right.row, left, row);
            let is_behind = match order {
                Ordering::Less => true,
                Ordering::Greater => false,
                Ordering::Equal => match right.batch.compare_times(right.row, left, row) {
                    Ordering::Less => true,
                    Ordering::Equal => !self.is_strict,
                    Ordering::Greater => false,
                },
            };
            if !is_behind {
                break;
            }
            self.pass().await?;
        }

        let Some(passed) =
            self.passed.as_ref().filter(|passed| passed.batch.compare_keys(passed.row, left, row) == Ordering::Equal)
        else {
            return Ok(None);
        };
        if !self.waiting.last().is_some_and(|last| Arc::ptr_eq(last, &passed.batch)) {
            self.waiting.push(Arc::clone(&passed.batch));
        }
        Ok(Some((self.waiting.len() - 1, passed.row)))
    }

    /// Passes the next right row.
    async fn pass(&mut self) -> Result<()> {
        let Some(right) = self.next_right.take() else { return Ok(()) };
        let RightRow { batch, row } = right.clone();
        // A row without a key or a time matches nothing.
        if batch.is_valid(row) {
            let is_better = self.passed.as_ref().is_none_or(|passed| {
                let is_tie = batch.compare_keys(row, &passed.batch, passed.row) == Ordering::Equal
                    && batch.compare_times(row, &passed.batch, passed.row) == Ordering::Equal;
                !is_tie || batch.compare_values(row, &passed.batch, passed.row) == Ordering::Greater
            });
            if is_better {
                self.passed = Some(right);
            }
        }

        if row + 1 < batch.batch.num_rows() {
            self.next_right = Some(RightRow { batch, row: row + 1 });
            return Ok(());
        }
        self.read_right().await
    }

    async fn read_right(&mut self) -> Result<()> {
        self.next_right = self.right.next().await?.map(|batch| RightRow { batch, row: 0 });
        Ok(())
    }

    /// Rows of the left side with their matches; `None` if there are none.
    fn give_out(&mut self, rows: RecordBatch, matches: &[Option<(usize, usize)>]) -> Result<Option<RecordBatch>> {
        let waiting = std::mem::take(&mut self.waiting);
        let rows = match self.keeps_left {
            true => rows,
            false => {
                let has_match: BooleanArray = matches.iter().map(|found| Some(found.is_some())).collect();
                filter_record_batch(&rows, &has_match)?
            }
        };
        if rows.num_rows() == 0 {
            return Ok(None);
        }

        // The first array is of one NULL, for rows without a match.
        let places: Vec<(usize, usize)> = match self.keeps_left {
            true => matches.iter().map(|found| found.map_or((0, 0), |(batch, row)| (batch + 1, row))).collect(),
            false => matches.iter().flatten().map(|(batch, row)| (batch + 1, *row)).collect(),
        };
        let width = rows.num_columns();
        let mut columns: Vec<ArrayRef> = rows.columns().to_vec();
        for (at, field) in self.schema.fields().iter().skip(width).enumerate() {
            let missing = new_null_array(field.data_type(), 1);
            let found = waiting.iter().map(|batch| batch.batch.column(at).as_ref());
            let arrays: Vec<&dyn Array> = std::iter::once(missing.as_ref()).chain(found).collect();
            columns.push(interleave(&arrays, &places)?);
        }
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        Ok(Some(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?))
    }
}
