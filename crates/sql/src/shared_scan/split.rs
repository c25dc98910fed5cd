//! Splits a batch of records by period.

use std::ops::Range;

use arrow::array::{Array, MutableArrayData, RecordBatch, RecordBatchOptions, make_array};
use arrow::error::ArrowError;
use datafusion::error::Result;

use crate::scan::records::event_times;

/// For each period the ranges of its records in a batch.
pub(crate) struct PeriodRanges(Vec<Vec<Range<usize>>>);

/// Finds the period of an instant; caches the last, because consecutive instants are often in one period.
struct Finder<'a> {
    times: &'a [Range<i64>],
    last: usize,
}

impl Finder<'_> {
    fn find(&mut self, instant: i64) -> Option<usize> {
        let is_here = |at: usize| self.times.get(at).is_some_and(|time| time.contains(&instant));
        if !is_here(self.last) {
            self.last = self.times.partition_point(|time| time.end <= instant);
        }
        is_here(self.last).then_some(self.last)
    }
}

impl PeriodRanges {
    fn none(periods: usize) -> Self {
        Self(vec![Vec::new(); periods])
    }

    fn add(&mut self, period: usize, places: Range<usize>) {
        let Some(ranges) = self.0.get_mut(period).filter(|_| !places.is_empty()) else { return };
        match ranges.last_mut() {
            Some(last) if last.end == places.start => last.end = places.end,
            _ => ranges.push(places),
        }
    }

    /// Splits by the windows of rows. `ends`: the end of each row's records.
    pub(crate) fn by_windows(windows: &[i64], ends: &[u32], times: &[Range<i64>]) -> Self {
        let (mut places, mut finder, mut start) = (Self::none(times.len()), Finder { times, last: 0 }, 0);
        for (window, end) in windows.iter().zip(ends) {
            let end = *end as usize;
            if let Some(period) = finder.find(*window) {
                places.add(period, start..end);
            }
            start = end;
        }
        places
    }

    /// Splits by the event time of records, column `at`. A record without one is in no period.
    ///
    /// # Errors
    /// If the column is not a timestamp.
    pub(crate) fn by_times(batch: &RecordBatch, at: usize, times: &[Range<i64>]) -> Result<Self> {
        let (mut places, mut finder) = (Self::none(times.len()), Finder { times, last: 0 });
        for (record, instant) in event_times(batch, at)?.iter().enumerate() {
            if let Some(period) = instant.and_then(|instant| finder.find(instant)) {
                places.add(period, record..record + 1);
            }
        }
        Ok(places)
    }

    /// Copies the records of a period into a batch; `None` if there are none.
    ///
    /// # Errors
    /// If the copy fails.
    pub(crate) fn take(&self, batch: &RecordBatch, period: usize) -> Result<Option<RecordBatch>, ArrowError> {
        let ranges = self.0.get(period).map(Vec::as_slice).unwrap_or_default();
        let rows: usize = ranges.iter().map(Range::len).sum();
        if rows == 0 {
            return Ok(None);
        }
        let mut columns = Vec::with_capacity(batch.num_columns());
        for column in batch.columns() {
            let data = column.to_data();
            let mut copy = MutableArrayData::new(vec![&data], false, rows);
            for range in ranges {
                copy.try_extend(0, range.start, range.end)?;
            }
            columns.push(make_array(copy.freeze()));
        }

        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(batch.schema(), columns, &options).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, StringArray, TimestampMicrosecondArray};

    use super::*;

    const TIMES: [Range<i64>; 3] = [0..10, 10..20, 30..40];

    fn batch(instants: &[Option<i64>]) -> RecordBatch {
        let names: StringArray = (0..instants.len()).map(|at| Some(format!("r{at}"))).collect();
        let instants: ArrayRef = Arc::new(TimestampMicrosecondArray::from(instants.to_vec()));
        RecordBatch::try_from_iter([("ts", instants), ("name", Arc::new(names) as ArrayRef)]).unwrap()
    }

    fn names(places: &PeriodRanges, batch: &RecordBatch, period: usize) -> Vec<String> {
        let Some(taken) = places.take(batch, period).unwrap() else { return Vec::new() };
        taken.column(1).as_string::<i32>().iter().flatten().map(str::to_owned).collect()
    }

    #[test]
    fn records_keep_their_order_and_need_a_period() {
        let batch = batch(&[Some(35), Some(3), None, Some(19), Some(10), Some(25), Some(40), Some(0), Some(-1)]);
        let places = PeriodRanges::by_times(&batch, 0, &TIMES).unwrap();
        assert_eq!(names(&places, &batch, 0), ["r1", "r7"]);
        assert_eq!(names(&places, &batch, 1), ["r3", "r4"]);
        assert_eq!(names(&places, &batch, 2), ["r0"]);
        assert_eq!(names(&places, &batch, 3), [""; 0]);
    }

    #[test]
    fn rows_belong_to_the_period_of_their_window() {
        let batch = batch(&[None; 6]);
        // No record of the third row passed.
        let places = PeriodRanges::by_windows(&[0, 10, 10, 30, 20], &[2, 3, 3, 5, 6], &TIMES);
        assert_eq!(names(&places, &batch, 0), ["r0", "r1"]);
        assert_eq!(names(&places, &batch, 1), ["r2"]);
        assert_eq!(names(&places, &batch, 2), ["r3", "r4"]);
    }
}
