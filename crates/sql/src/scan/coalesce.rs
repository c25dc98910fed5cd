//! Coalesces small batches: sending one wakes the query up, which costs more than a few rows. Can also make batch sizes
//! independent of files and stripes, for statistics such as `stddev`, which are computed batch by batch.

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use datafusion::error::Result;

/// Joins small batches of a scan and splits large ones, so that a query gets batches of about one size.
#[derive(Debug)]
pub(crate) struct Coalescer {
    waiting: Vec<RecordBatch>,
    /// Rows of the batches in `waiting`.
    rows: usize,
    /// The fewest rows that are sent as a batch, unless the records end.
    least: usize,
    /// The most rows of a batch that is sent.
    most: usize,
}

impl Coalescer {
    /// Batches of `most` rows. Unless `even`, the first batch is sent at once and the least size doubles each time, so
    /// that a query for few rows does not wait.
    pub(crate) fn new(most: usize, even: bool) -> Self {
        let most = most.max(1);
        Self { waiting: Vec::new(), rows: 0, least: if even { most } else { 1 }, most }
    }

    /// Takes a batch; calls `send` if there are enough rows. Returns whether more is wanted.
    pub(crate) fn push(&mut self, batch: &RecordBatch, send: &mut dyn FnMut(RecordBatch) -> bool) -> Result<bool> {
        let mut start = 0;
        while start < batch.num_rows() {
            let rows = (self.most - self.rows).min(batch.num_rows() - start);
            self.waiting.push(batch.slice(start, rows));
            (self.rows, start) = (self.rows + rows, start + rows);
            if self.rows >= self.least && !self.flush(send)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sends the waiting rows. Returns whether more is wanted.
    pub(crate) fn flush(&mut self, send: &mut dyn FnMut(RecordBatch) -> bool) -> Result<bool> {
        let waiting = std::mem::take(&mut self.waiting);
        (self.rows, self.least) = (0, (self.least * 2).min(self.most));
        Ok(match waiting.as_slice() {
            [] => true,
            [one] => send(one.clone()),
            [first, ..] => send(concat_batches(first.schema_ref(), &waiting)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Int32Array};
    use arrow::datatypes::Int32Type;

    use super::*;

    fn sent(sizes: &[usize], most: usize, even: bool, wanted: usize) -> Vec<Vec<i32>> {
        let (mut coalescer, mut out, mut next) = (Coalescer::new(most, even), Vec::new(), 0);
        let mut send = |batch: RecordBatch| {
            out.push(batch.column(0).as_primitive::<Int32Type>().values().to_vec());
            out.len() < wanted
        };
        for size in sizes {
            let values: ArrayRef = Arc::new(Int32Array::from_iter_values(next..next + *size as i32));
            next += *size as i32;
            let batch = RecordBatch::try_from_iter([("n", values)]).unwrap();
            if !coalescer.push(&batch, &mut send).unwrap() {
                return out;
            }
        }
        coalescer.flush(&mut send).unwrap();
        out
    }

    #[test]
    fn batches_keep_order_and_grow() {
        let sizes = |sizes: &[usize], most, even| -> Vec<usize> {
            let found = sent(sizes, most, even, usize::MAX);
            let all: Vec<i32> = found.concat();
            assert_eq!(all, (0..sizes.iter().sum::<usize>() as i32).collect::<Vec<_>>());
            found.iter().map(Vec::len).collect()
        };
        assert_eq!(sizes(&[1; 20], 8, false), [1, 2, 4, 8, 5]);
        assert_eq!(sizes(&[3; 8], 8, false), [3, 3, 6, 8, 4]);
        assert_eq!(sizes(&[20, 0, 1], 8, false), [8, 8, 4, 1]);
        assert_eq!(sizes(&[0, 0], 8, false), [0usize; 0]);
        for cut in [&[1; 21][..], &[3; 7], &[20, 0, 1], &[5, 16]] {
            assert_eq!(sizes(cut, 8, true), [8, 8, 5]);
        }
    }

    #[test]
    fn nothing_is_sent_after_send_returns_false() {
        assert_eq!(sent(&[1; 20], 8, false, 2), [vec![0], vec![1, 2]]);
        assert_eq!(sent(&[100], 8, true, 1), [(0..8).collect::<Vec<_>>()]);
    }
}
