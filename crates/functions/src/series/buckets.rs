//! Counts of values in buckets of equal width.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, UInt64Array};
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{ScalarValue, exec_err, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;

use crate::series::width_bucket::buckets;

/// Most buckets of a histogram.
const MAX_BUCKETS: i64 = 1_000_000;

/// Counts by bucket, as TimescaleDB's `histogram`: the first is of values below all buckets, the last of those above.
#[derive(Debug, Default)]
pub(super) struct BucketCounts {
    counts: Vec<u64>,
}

impl BucketCounts {
    /// The type of its result and of its state.
    pub(super) fn kind() -> DataType {
        DataType::new_list(DataType::UInt64, true)
    }

    /// Makes room for so many counts; all rows of a group need the same.
    fn resize(&mut self, len: usize) -> Result<()> {
        if !self.counts.is_empty() && self.counts.len() != len {
            let (one, other) = (self.counts.len().saturating_sub(2), len.saturating_sub(2));
            return exec_err!(
                "histogram: a group has {one} buckets in one row and {other} in another; write one number"
            );
        }
        self.counts.resize(len, 0);
        Ok(())
    }
}

impl Accumulator for BucketCounts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [_, _, _, counts] = values else { return internal_err!("histogram has one or four arguments") };
        let places = buckets(values)?;
        for (place, count) in places.iter().zip(counts.as_primitive::<Int64Type>()) {
            let (Some(place), Some(count)) = (place, count) else { continue };
            if count > MAX_BUCKETS {
                return exec_err!("histogram: {count} buckets are too many; {MAX_BUCKETS} are allowed");
            }
            self.resize(count as usize + 2)?;
            if let Some(count) = self.counts.get_mut(place as usize) {
                *count += 1;
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [lists] = states else { return internal_err!("a state of histogram is one list") };
        for list in lists.as_list::<i32>().iter().flatten() {
            let more = list.as_primitive::<UInt64Type>();
            if more.is_empty() {
                continue;
            }
            self.resize(more.len())?;
            self.counts.iter_mut().zip(more.values()).for_each(|(count, more)| *count += more);
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.counts.is_empty() {
            return ScalarValue::try_from(&Self::kind());
        }
        let counts: ArrayRef = Arc::new(UInt64Array::from(self.counts.clone()));
        Ok(ScalarValue::List(Arc::new(SingleRowListArrayBuilder::new(counts).build_list_array())))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.counts.capacity() * size_of::<u64>()
    }
}
