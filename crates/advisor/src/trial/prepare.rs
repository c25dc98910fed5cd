//! Preparation of rows for a trial: the columns of the counter, and the sample.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Int64Array, PrimitiveArray, RecordBatch, TimestampMicrosecondArray,
};
use arrow::compute::{filter_record_batch, max, min};
use arrow::datatypes::{Field, Schema, TimestampMicrosecondType};
use arrow::error::ArrowError;
use tidetable_ingest::{Prepare, Prepared};
use tidetable_layout::FieldType;
use tidetable_layout::cell::ColumnText;
use tidetable_sql::Preparation;
use xxhash_rust::xxh3::xxh3_64;

use crate::trial::counter::Counter;
use crate::trial::draws::DrawCollector;
use crate::trial::kinds::KindCollector;
use crate::trial::profile::ProfileCollector;
use crate::trial::repeats::RepeatCounter;

/// Separates the fields of an entity.
const BETWEEN: u8 = 0;

/// A part of the entities: all rows of an entity are in it, or none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// More than 0, less than 1.
    pub fraction: f64,
}

/// Adds the columns of the counter to prepared rows.
#[derive(Debug)]
pub(super) struct CountingColumns<'a> {
    pub(super) inner: &'a Preparation,
    pub(super) counter: &'a Counter,
    pub(super) draws: &'a [DrawCollector],
    pub(super) profile: &'a ProfileCollector,
    pub(super) kinds: Option<&'a KindCollector>,
    /// Event times that are drawn, microseconds; all if `None`.
    pub(super) window: Option<Range<i64>>,
    /// The part of the entities of which rows are drawn: a query of an entity that is not measured would find nothing.
    pub(super) sample: Option<Sample>,
    /// Names of the columns that make the entity.
    pub(super) entity: &'a [String],
}

impl Prepare for CountingColumns<'_> {
    fn prepare(&self, batch: RecordBatch) -> Result<Prepared, ArrowError> {
        let mut prepared = if self.inner.is_empty() { Prepared::whole(batch) } else { self.inner.prepare(batch)? };
        self.observe(&prepared.batch)?;
        prepared.batch = self.with_counter(&prepared.batch)?;
        Ok(prepared)
    }
}

impl CountingColumns<'_> {
    /// Shows the rows to those that draw from them, profile them, and look for kinds of events.
    fn observe(&self, batch: &RecordBatch) -> Result<(), ArrowError> {
        if !self.draws.is_empty() {
            let sampled = self.sample.map(|sample| filter_record_batch(batch, &chosen(batch, self.entity, sample)));
            let sampled = sampled.transpose()?;
            let drawn = sampled.as_ref().unwrap_or(batch);
            self.draws.iter().for_each(|draws| draws.look(drawn, &self.counter.time, self.window.as_ref()));
        }

        self.profile.look(batch, &self.counter.time);
        if let Some(kinds) = self.kinds {
            kinds.look(batch, &self.counter.time);
        }
        Ok(())
    }

    /// The rows with the columns of the counter: the second of each event, and a one.
    fn with_counter(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let times = batch.column_by_name(&self.counter.time).and_then(|times| times.as_primitive_opt());
        let seconds: TimestampMicrosecondArray = match times {
            Some(times) => {
                let times: &PrimitiveArray<TimestampMicrosecondType> = times;
                times.iter().map(|time| time.map(Counter::timestamp)).collect()
            }
            None => TimestampMicrosecondArray::new_null(batch.num_rows()),
        };
        let ones: ArrayRef = Arc::new(Int64Array::from_value(1, batch.num_rows()));
        let seconds: ArrayRef = Arc::new(seconds.with_timezone("UTC"));

        let schema = batch.schema();
        let mut fields: Vec<Arc<Field>> = schema.fields().iter().map(Arc::clone).collect();
        fields.push(Arc::new(Field::new(&self.counter.second, FieldType::Timestamp.arrow(), true)));
        fields.push(Arc::new(Field::new(&self.counter.one, FieldType::Int64.arrow(), true)));
        let columns = batch.columns().iter().cloned().chain([seconds, ones]).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
    }
}

/// The `where` of a layout, then the sample.
#[derive(Debug)]
pub(super) struct SampleFilter<'a> {
    pub(super) inner: &'a Preparation,
    pub(super) sample: Option<Sample>,
    /// Event times that are kept, microseconds; all if `None`.
    pub(super) window: Option<Range<i64>>,
    /// Names of the columns that make the entity.
    pub(super) entity: &'a [String],
    /// Name of the event time.
    pub(super) time: &'a str,
    pub(super) counts: Mutex<FilterCounts>,
    /// Counts repeated rows, in one of the filters that keep the same rows.
    pub(super) repeats: Option<&'a RepeatCounter>,
}

/// What a filter saw.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FilterCounts {
    /// Rows in the window, before the sample was taken.
    pub(super) seen: u64,
    /// Rows in the sample.
    pub(super) kept: u64,
    /// Their least and greatest event time, microseconds.
    pub(super) times: Option<(i64, i64)>,
    /// Whether there was a sample or a window.
    pub(super) is_part: bool,
    /// Whether the layout has no `where`.
    pub(super) takes_all: bool,
    /// How many of them can be repeats, if that is known.
    pub(super) repeated: Option<u64>,
}

impl SampleFilter<'_> {
    /// Which of the rows `inside` the window are in the sample, too.
    fn kept(&self, batch: &RecordBatch, inside: &BooleanArray) -> BooleanArray {
        let Some(sample) = self.sample else { return inside.clone() };
        let sampled = chosen(batch, self.entity, sample);
        inside
            .iter()
            .zip(sampled.iter())
            .map(|(inside, sampled)| inside.zip(sampled).map(|both| both.0 && both.1))
            .collect()
    }

    /// Which rows are in the window.
    fn inside(&self, batch: &RecordBatch) -> BooleanArray {
        let times = batch.column_by_name(self.time).and_then(|times| times.as_primitive_opt());
        let times: Option<&PrimitiveArray<TimestampMicrosecondType>> = times;
        let (Some(window), Some(times)) = (&self.window, times) else {
            return BooleanArray::from(vec![true; batch.num_rows()]);
        };
        let inside = times.iter().map(|time| Some(time.is_some_and(|time| window.contains(&time))));
        inside.collect()
    }

    fn count(&self, seen: usize, kept: &RecordBatch) {
        let times = kept.column_by_name(self.time).and_then(|times| times.as_primitive_opt());
        let ends = times.and_then(|times: &PrimitiveArray<TimestampMicrosecondType>| min(times).zip(max(times)));
        // Counting does not unwind, so poisoned counts are right.
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.seen += seen as u64;
        counts.kept += kept.num_rows() as u64;
        counts.times = match (counts.times, ends) {
            (Some(own), Some(ends)) => Some((own.0.min(ends.0), own.1.max(ends.1))),
            (own, ends) => own.or(ends),
        };
    }
}

impl Prepare for SampleFilter<'_> {
    fn prepare(&self, batch: RecordBatch) -> Result<Prepared, ArrowError> {
        let mut prepared = if self.inner.is_empty() { Prepared::whole(batch) } else { self.inner.prepare(batch)? };
        let rows = prepared.batch.num_rows();
        let mut seen = rows;
        if self.sample.is_some() || self.window.is_some() {
            let inside = self.inside(&prepared.batch);
            seen = inside.true_count();
            let keep = self.kept(&prepared.batch, &inside);
            prepared.rows =
                Some((0..rows).filter(|row| keep.value(*row)).map(|row| prepared.origin(row) as u32).collect());
            prepared.batch = filter_record_batch(&prepared.batch, &keep)?;
            prepared.filtered += (rows - prepared.batch.num_rows()) as u64;
        }
        self.count(seen, &prepared.batch);
        if let Some(repeats) = self.repeats {
            repeats.look(&prepared.batch);
        }
        Ok(prepared)
    }
}

/// Which rows are of entities in the sample, by the hash of the entity's text.
fn chosen(batch: &RecordBatch, entity: &[String], sample: Sample) -> BooleanArray {
    let columns: Vec<&ArrayRef> = entity.iter().filter_map(|name| batch.column_by_name(name)).collect();
    let mut texts: Vec<ColumnText<'_>> = columns.iter().filter_map(|column| ColumnText::new(column.as_ref())).collect();
    let limit = (sample.fraction * u64::MAX as f64) as u64;
    let mut text = Vec::new();
    (0..batch.num_rows())
        .map(|row| {
            text.clear();
            for column in &mut texts {
                column.write(row, &mut text);
                text.push(BETWEEN);
            }
            Some(xxh3_64(&text) <= limit)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use arrow::array::UInt64Array;

    use super::*;

    #[test]
    fn a_sample_takes_whole_entities_in_proportion() {
        let meters: Vec<u64> = (0..20_000).map(|at| at % 10_000).collect();
        let column: ArrayRef = Arc::new(UInt64Array::from(meters));
        let batch = RecordBatch::try_from_iter([("meter", column)]).unwrap();
        let keep = chosen(&batch, &["meter".to_owned()], Sample { fraction: 0.1 });
        let taken = keep.true_count();
        assert!((1_700..2_300).contains(&taken), "{taken}");
        assert!((0..10_000).all(|meter| keep.value(meter) == keep.value(meter + 10_000)));
    }
}
