//! Variances, deviations, covariances and correlations, of a batch at a time: its state is made in two passes over the values, and
//! merged. DataFusion 55.2 takes value by value, with a division for each, which takes several times as long.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, UInt64Array};
use arrow::compute::{and, filter, is_not_null};
use arrow::datatypes::{DataType, FieldRef, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions_aggregate::correlation::Correlation;
use datafusion::functions_aggregate::covariance::{CovariancePopulation, CovarianceSample};
use datafusion::functions_aggregate::stddev::{Stddev, StddevPop};
use datafusion::functions_aggregate::variance::{VariancePopulation, VarianceSample};
use datafusion::logical_expr::function::StateFieldsArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF, GroupsAccumulator};

use crate::totals::function::{OverriddenAggregate, ResultOverride};

/// Fewer values are taken one by one.
const LEAST: usize = 32;
/// Values added in parallel.
const LANES: usize = 8;
/// DataFusion multiplies means when it merges states: greater ones could overflow there.
const MAX_MEAN: f64 = 1e100;

/// `stddev`, `stddev_pop`, `var`, `var_pop`, `covar_samp`, `covar_pop`, `corr`.
pub(crate) fn moments() -> [AggregateUDF; 7] {
    type Of<E, const STATES: usize> = OverriddenAggregate<E, BatchMoments<STATES>>;
    [
        AggregateUDF::from(Of::<_, 3>::new(Stddev::new())),
        AggregateUDF::from(Of::<_, 3>::new(StddevPop::new())),
        AggregateUDF::from(Of::<_, 3>::new(VarianceSample::new())),
        AggregateUDF::from(Of::<_, 3>::new(VariancePopulation::new())),
        AggregateUDF::from(Of::<_, 4>::new(CovarianceSample::new())),
        AggregateUDF::from(Of::<_, 4>::new(CovariancePopulation::new())),
        AggregateUDF::from(Of::<_, 6>::new(Correlation::new())),
    ]
}

/// Makes states of batches. `STATES` is the number of columns of DataFusion's state: 3 of a variance, 4 of a covariance, 6 of a
/// correlation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct BatchMoments<const STATES: usize>;

impl<const STATES: usize> ResultOverride for BatchMoments<STATES> {
    fn of(kind: &DataType) -> Option<Self> {
        (*kind == DataType::Float64).then_some(Self)
    }

    fn state(&self, _: &StateFieldsArgs<'_>) -> Option<Vec<FieldRef>> {
        None
    }

    fn all(self, inner: Box<dyn Accumulator>, distinct: bool) -> Box<dyn Accumulator> {
        if distinct { inner } else { Box::new(MomentsAccumulator::<STATES>::new(inner)) }
    }

    fn groups(self, inner: Box<dyn GroupsAccumulator>) -> Box<dyn GroupsAccumulator> {
        inner
    }
}

/// DataFusion's accumulator, which gets states of whole batches to merge.
#[derive(Debug)]
struct MomentsAccumulator<const STATES: usize> {
    inner: Box<dyn Accumulator>,
    /// Whether a batch had no mean of ordinary size: what follows is taken one by one, too.
    one_by_one: bool,
}

impl<const STATES: usize> MomentsAccumulator<STATES> {
    fn new(inner: Box<dyn Accumulator>) -> Self {
        Self { inner, one_by_one: false }
    }

    /// The state of values without nulls; `None` if they have to be taken one by one.
    fn state_of(&mut self, values: &[ArrayRef]) -> Option<Vec<ArrayRef>> {
        let first = values.first()?.as_primitive_opt::<Float64Type>()?.values();
        let second = values.last()?.as_primitive_opt::<Float64Type>()?.values();
        if self.one_by_one || first.is_empty() {
            return None;
        }
        let means = [mean(first), mean(second)];
        self.one_by_one = !means.iter().all(|mean| mean.abs() < MAX_MEAN);
        if self.one_by_one || first.len() < LEAST || is_constant(first) || is_constant(second) {
            return None;
        }
        let [one, other] = means;
        let floats: &[f64] = match STATES {
            3 => &[one, products(first, first, [one, one])],
            4 => &[one, other, products(first, second, means)],
            6 => &[
                one,
                products(first, first, [one, one]),
                other,
                products(second, second, [other, other]),
                products(first, second, means),
            ],
            _ => return None,
        };
        let count: ArrayRef = Arc::new(UInt64Array::from(vec![first.len() as u64]));
        let floats = floats.iter().map(|float| Arc::new(Float64Array::from(vec![*float])) as ArrayRef);
        Some(std::iter::once(count).chain(floats).collect())
    }
}

impl<const STATES: usize> Accumulator for MomentsAccumulator<STATES> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let present;
        let values = match values.iter().all(|values| values.null_count() == 0) {
            true => values,
            false => {
                present = pairs(values)?;
                &present
            }
        };
        match self.state_of(values) {
            Some(state) => self.inner.merge_batch(&state),
            None => self.inner.update_batch(values),
        }
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.inner.evaluate()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

/// The rows in which no argument is null.
fn pairs(values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
    let masks = values.iter().map(|values| is_not_null(values)).collect::<std::result::Result<Vec<_>, _>>()?;
    let mask = masks.into_iter().map(Ok).reduce(|all, one| and(&all?, &one?)).transpose()?;
    let Some(mask) = mask else { return Ok(values.to_vec()) };
    Ok(values.iter().map(|values| filter(values, &mask)).collect::<std::result::Result<_, _>>()?)
}

/// Whether all values are equal: their variance is exactly 0 one by one, and a mean of their sum may differ from them.
fn is_constant(values: &[f64]) -> bool {
    values.first().is_some_and(|first| values.iter().all(|value| value == first))
}

fn mean(values: &[f64]) -> f64 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(sum, value)| *sum += value);
    }
    sums.iter().chain(rest).sum::<f64>() / values.len() as f64
}

/// The sum of the products of the distances of two lists from their means.
fn products(first: &[f64], second: &[f64], [one, other]: [f64; 2]) -> f64 {
    let ((chunks, rest), (others, others_rest)) = (first.as_chunks::<LANES>(), second.as_chunks::<LANES>());
    let mut sums = [0.0; LANES];
    for (chunk, second) in chunks.iter().zip(others) {
        let products = chunk.iter().zip(second).map(|(x, y)| (x - one) * (y - other));
        sums.iter_mut().zip(products).for_each(|(sum, product)| *sum += product);
    }
    let rest = rest.iter().zip(others_rest).map(|(x, y)| (x - one) * (y - other));
    sums.into_iter().chain(rest).sum()
}

#[cfg(test)]
mod tests {
    use datafusion::functions_aggregate::correlation::CorrelationAccumulator;
    use datafusion::functions_aggregate::covariance::CovarianceAccumulator;
    use datafusion::functions_aggregate::variance::VarianceAccumulator;
    use datafusion::physical_expr::expressions::StatsType::Sample;

    use super::*;

    /// Numbers that repeat by no small period.
    fn numbers(count: usize, factor: u64) -> Vec<f64> {
        (0..count as u64).map(|at| ((at * factor * factor + 7) % 10_007) as f64 / 8.0 + 1e6).collect()
    }

    fn close(a: &ScalarValue, b: &ScalarValue) -> bool {
        let (ScalarValue::Float64(Some(a)), ScalarValue::Float64(Some(b))) = (a, b) else { return a == b };
        a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
    }

    /// DataFusion's accumulator and this one of the same batches.
    fn both<const STATES: usize>(of: impl Fn() -> Box<dyn Accumulator>, batches: &[Vec<ArrayRef>]) {
        let (mut one_by_one, mut batched) = (of(), MomentsAccumulator::<STATES>::new(of()));
        for batch in batches {
            one_by_one.update_batch(batch).unwrap();
            batched.update_batch(batch).unwrap();
        }
        let (expected, found) = (one_by_one.evaluate().unwrap(), batched.evaluate().unwrap());
        assert!(close(&expected, &found), "{expected} and {found}");
        let counts = [one_by_one.state().unwrap(), batched.state().unwrap()].map(|state| state[0].clone());
        assert_eq!(counts[0], counts[1]);
    }

    fn all_functions(batches: &[Vec<ArrayRef>]) {
        let first: Vec<Vec<ArrayRef>> = batches.iter().map(|batch| batch[..1].to_vec()).collect();
        both::<3>(|| Box::new(VarianceAccumulator::try_new(Sample).unwrap()), &first);
        both::<4>(|| Box::new(CovarianceAccumulator::try_new(Sample).unwrap()), batches);
        both::<6>(|| Box::new(CorrelationAccumulator::try_new().unwrap()), batches);
    }

    fn batch(first: Vec<Option<f64>>, second: Vec<Option<f64>>) -> Vec<ArrayRef> {
        vec![Arc::new(Float64Array::from(first)), Arc::new(Float64Array::from(second))]
    }

    #[test]
    fn batches_have_the_moments_of_their_values() {
        for count in [0, 1, 2, 31, 32, 33, 39, 40, 1000, 8191] {
            let (first, second) = (numbers(count, 3), numbers(count, 11));
            let some = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
            let holes = |values: &[f64], every: usize| {
                values.iter().enumerate().map(|(at, value)| (at % every != 1).then_some(*value)).collect::<Vec<_>>()
            };
            all_functions(&[batch(some(&first), some(&second))]);
            all_functions(&[batch(some(&first), some(&second)), batch(some(&second), some(&first))]);
            all_functions(&[batch(holes(&first, 3), holes(&second, 5)), batch(some(&first), holes(&second, 2))]);
        }
    }

    fn ordinary(factor: u64) -> Vec<Option<f64>> {
        numbers(100, factor).into_iter().map(Some).collect()
    }

    #[test]
    fn values_that_are_not_finite_or_overflow_are_taken_one_by_one() {
        for (odd, times) in [f64::NAN, f64::INFINITY, 1.7e308, 1e300, -1e200]
            .into_iter()
            .flat_map(|odd| [(odd, 1), (odd, 2), (odd, 100)])
        {
            let mut first = ordinary(3);
            first.iter_mut().rev().take(times).for_each(|value| *value = Some(odd));
            all_functions(&[
                batch(first, ordinary(5)),
                batch(ordinary(5), ordinary(3)),
                batch(ordinary(11), ordinary(3)),
            ]);
        }
    }

    #[test]
    fn a_constant_has_no_variance_and_no_correlation() {
        let batches: Vec<_> = (0..3).map(|_| batch(vec![Some(0.1); 1000], vec![Some(0.1); 1000])).collect();
        let mut variance = MomentsAccumulator::<3>::new(Box::new(VarianceAccumulator::try_new(Sample).unwrap()));
        let mut correlation = MomentsAccumulator::<6>::new(Box::new(CorrelationAccumulator::try_new().unwrap()));
        for batch in &batches {
            variance.update_batch(&batch[..1]).unwrap();
            correlation.update_batch(batch).unwrap();
        }
        assert_eq!(variance.evaluate().unwrap(), ScalarValue::Float64(Some(0.0)));
        assert_eq!(correlation.evaluate().unwrap(), ScalarValue::Float64(None));
    }
}
