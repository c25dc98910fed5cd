//! Samples of a series, and accumulators that keep them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{ScalarValue, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;

use crate::series::changes::SampleFunction;
use crate::series::pairs::{float_of, float_word};

/// A time in microseconds, and the word of a value.
type Sample = (i64, u64);

/// The samples of rows with a value and a time; times in microseconds.
fn samples(columns: &[ArrayRef]) -> Result<Vec<Sample>> {
    let [values, times] = columns else { return internal_err!("a sample is a value and its time") };
    let values = values.as_primitive::<Float64Type>().iter();
    let times = times.as_primitive::<TimestampMicrosecondType>().iter();
    Ok(times.zip(values).filter_map(|(time, value)| Some((time?, float_word(value?)))).collect())
}

/// The samples of partial states: lists of times and of values.
fn samples_of_states(states: &[ArrayRef]) -> Result<Vec<Sample>> {
    let [times, values] = states else { return internal_err!("a state of samples has two lists") };
    let (times, values) = (times.as_list::<i32>(), values.as_list::<i32>());
    let mut samples = Vec::new();
    for (times, values) in times.iter().flatten().zip(values.iter().flatten()) {
        let values = values.as_primitive::<Float64Type>().values().iter().map(|value| float_word(*value));
        samples.extend(times.as_primitive::<Int64Type>().values().iter().copied().zip(values));
    }
    Ok(samples)
}

fn state(samples: impl Iterator<Item = Sample>) -> Vec<ScalarValue> {
    let (times, values): (Vec<i64>, Vec<f64>) = samples.map(|(time, word)| (time, float_of(word))).unzip();
    let list = |array: ArrayRef| ScalarValue::List(Arc::new(SingleRowListArrayBuilder::new(array).build_list_array()));
    vec![list(Arc::new(Int64Array::from(times))), list(Arc::new(Float64Array::from(values)))]
}

/// The type of a list in a state, of elements of this type.
pub(super) fn list_type(of: DataType) -> DataType {
    DataType::new_list(of, true)
}

/// Samples in the order of time, one for each time: that with the greatest value.
fn in_order(sorted: impl Iterator<Item = Sample>) -> Vec<(i64, f64)> {
    let mut series: Vec<(i64, f64)> = Vec::new();
    for (time, word) in sorted {
        match series.last_mut() {
            Some(last) if last.0 == time => last.1 = float_of(word),
            _ => series.push((time, float_of(word))),
        }
    }
    series
}

/// All samples of a group.
#[derive(Debug)]
pub(super) struct AllSamples {
    function: SampleFunction,
    samples: Vec<Sample>,
}

impl AllSamples {
    pub(super) fn new(function: SampleFunction) -> Self {
        Self { function, samples: Vec::new() }
    }
}

impl Accumulator for AllSamples {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.samples.extend(samples(values)?);
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.samples.extend(samples_of_states(states)?);
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(state(self.samples.iter().copied()))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if !self.samples.is_sorted() {
            self.samples.sort_unstable();
        }
        Ok(ScalarValue::Float64(self.function.of(&in_order(self.samples.iter().copied()))))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.samples.capacity() * size_of::<Sample>()
    }
}

/// The samples of a frame that moves, with their counts.
#[derive(Debug)]
pub(super) struct FrameSamples {
    function: SampleFunction,
    counts: BTreeMap<Sample, usize>,
}

impl FrameSamples {
    pub(super) fn new(function: SampleFunction) -> Self {
        Self { function, counts: BTreeMap::new() }
    }
}

impl Accumulator for FrameSamples {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for sample in samples(values)? {
            *self.counts.entry(sample).or_default() += 1;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for sample in samples(values)? {
            match self.counts.get_mut(&sample) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(self.counts.remove(&sample)),
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for sample in samples_of_states(states)? {
            *self.counts.entry(sample).or_default() += 1;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(state(self.counts.keys().copied()))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.function.of(&in_order(self.counts.keys().copied()))))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.counts.len() * size_of::<(Sample, usize)>() * 2
    }
}
