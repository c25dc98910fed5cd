//! Accumulators of variances, deviations, covariances and correlations: of all rows, and of groups.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, UInt64Array};
use arrow::compute::{and, filter, is_not_null};
use arrow::datatypes::{DataType, FieldRef, Float64Type, UInt64Type};
use datafusion::common::{ScalarValue, internal_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::correlation::Correlation;
use datafusion::functions_aggregate::covariance::{CovariancePopulation, CovarianceSample};
use datafusion::functions_aggregate::stddev::{Stddev, StddevPop};
use datafusion::functions_aggregate::variance::{VariancePopulation, VarianceSample};
use datafusion::logical_expr::function::StateFieldsArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF, EmitTo, GroupsAccumulator};

use crate::totals::function::{OverriddenAggregate, ResultOverride};
use crate::totals::moments::{Moments, Statistic};

const STATISTICS: [Statistic; 7] = [
    Statistic::Deviation { sample: true },
    Statistic::Deviation { sample: false },
    Statistic::Variance { sample: true },
    Statistic::Variance { sample: false },
    Statistic::Covariance { sample: true },
    Statistic::Covariance { sample: false },
    Statistic::Correlation,
];

/// `stddev`, `stddev_pop`, `var`, `var_pop`, `covar_samp`, `covar_pop` and `corr`, in the order of [`STATISTICS`].
pub(crate) fn moments() -> [AggregateUDF; 7] {
    type Of<E, const STATISTIC: usize> = OverriddenAggregate<E, FloatMoments<STATISTIC>>;
    [
        AggregateUDF::from(Of::<_, 0>::new(Stddev::new())),
        AggregateUDF::from(Of::<_, 1>::new(StddevPop::new())),
        AggregateUDF::from(Of::<_, 2>::new(VarianceSample::new())),
        AggregateUDF::from(Of::<_, 3>::new(VariancePopulation::new())),
        AggregateUDF::from(Of::<_, 4>::new(CovarianceSample::new())),
        AggregateUDF::from(Of::<_, 5>::new(CovariancePopulation::new())),
        AggregateUDF::from(Of::<_, 6>::new(Correlation::new())),
    ]
}

/// The overrides for one of [`STATISTICS`] of floats.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FloatMoments<const STATISTIC: usize>;

impl<const STATISTIC: usize> ResultOverride for FloatMoments<STATISTIC> {
    const HAS_GROUPS: bool = true;

    fn of(kind: &DataType) -> Option<Self> {
        (*kind == DataType::Float64).then_some(Self)
    }

    fn state(&self, _: &StateFieldsArgs<'_>) -> Option<Vec<FieldRef>> {
        None
    }

    fn all(self, inner: Box<dyn Accumulator>, distinct: bool) -> Box<dyn Accumulator> {
        let statistic = STATISTICS[STATISTIC];
        if distinct { inner } else { Box::new(AllMoments { statistic, moments: Moments::default() }) }
    }

    fn groups(self, _: impl FnOnce() -> Result<Box<dyn GroupsAccumulator>>) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(GroupMoments { statistic: STATISTICS[STATISTIC], groups: Vec::new() }))
    }
}

/// The arguments of a function, without the rows in which one is null.
struct Arguments {
    first: Float64Array,
    /// Values of the second argument; empty if there is one argument.
    second: Float64Array,
}

impl Arguments {
    fn new(statistic: Statistic, values: &[ArrayRef]) -> Result<Self> {
        let mask = match values.iter().any(|values| values.null_count() > 0) {
            true => present(values)?,
            false => None,
        };

        let float = |values: &ArrayRef| -> Result<Float64Array> {
            let values = match &mask {
                Some(mask) => filter(values, mask)?,
                None => Arc::clone(values),
            };
            match values.as_primitive_opt::<Float64Type>() {
                Some(floats) => Ok(floats.clone()),
                None => internal_err!("moments of {}", values.data_type()),
            }
        };

        match (values, statistic.has_two_arguments()) {
            ([first], false) => Ok(Self { first: float(first)?, second: Float64Array::new_null(0) }),
            ([first, second], true) => Ok(Self { first: float(first)?, second: float(second)? }),
            _ => internal_err!("moments of {} arguments", values.len()),
        }
    }

    /// The values of a row; the second is 0 if there is one argument.
    fn pair(&self, row: usize) -> [f64; 2] {
        [&self.first, &self.second].map(|values| values.values().get(row).copied().unwrap_or_default())
    }
}

/// The rows in which no argument of the function is null; `None` without arguments.
fn present(values: &[ArrayRef]) -> Result<Option<BooleanArray>> {
    let masks = values.iter().map(|values| is_not_null(values)).collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(masks.into_iter().map(Ok).reduce(|all, one| and(&all?, &one?)).transpose()?)
}

/// The columns of states, as DataFusion names them: count, mean and squares; of two arguments count, means and products, or count, mean and
/// squares of each, and products.
fn columns(statistic: Statistic, groups: &[Moments]) -> Vec<ArrayRef> {
    let float = |of: &dyn Fn(&Moments) -> f64| -> ArrayRef {
        Arc::new(groups.iter().map(|moments| Some(of(moments))).collect::<Float64Array>())
    };
    let count: ArrayRef = Arc::new(groups.iter().map(|moments| Some(moments.count)).collect::<UInt64Array>());
    let mean = |at: usize| float(&move |moments| moments.means[at]);
    let squares = |at: usize| float(&move |moments| moments.squares[at]);
    let products = || float(&|moments| moments.products);

    match statistic {
        Statistic::Variance { .. } | Statistic::Deviation { .. } => vec![count, mean(0), squares(0)],
        Statistic::Covariance { .. } => vec![count, mean(0), mean(1), products()],
        Statistic::Correlation => vec![count, mean(0), squares(0), mean(1), squares(1), products()],
    }
}

/// Calls `each` with the number and the moments of each state in `columns`.
fn for_each_state(statistic: Statistic, columns: &[ArrayRef], mut each: impl FnMut(usize, Moments)) -> Result<()> {
    let floats: Option<Vec<&[f64]>> =
        columns.iter().skip(1).map(|column| Some(&column.as_primitive_opt::<Float64Type>()?.values()[..])).collect();
    let counts = columns.first().and_then(|column| column.as_primitive_opt::<UInt64Type>());
    let (Some(counts), Some(floats)) = (counts, floats) else { return internal_err!("states of moments") };

    for (at, count) in counts.values().iter().enumerate() {
        let float = |column: usize| floats.get(column).and_then(|floats| floats.get(at)).copied().unwrap_or_default();
        let (means, squares, products) = match statistic {
            Statistic::Variance { .. } | Statistic::Deviation { .. } => ([float(0), 0.0], [float(1), 0.0], 0.0),
            Statistic::Covariance { .. } => ([float(0), float(1)], [0.0; 2], float(2)),
            Statistic::Correlation => ([float(0), float(2)], [float(1), float(3)], float(4)),
        };
        each(at, Moments { count: *count, means, squares, products });
    }
    Ok(())
}

/// Moments of all rows, or of the rows of a window, which are also taken out again.
#[derive(Debug)]
struct AllMoments {
    statistic: Statistic,
    moments: Moments,
}

impl Accumulator for AllMoments {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Arguments { first, second } = Arguments::new(self.statistic, values)?;
        self.moments.add(first.values(), second.values());
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for_each_state(self.statistic, states, |_, moments| self.moments.merge(&moments))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let columns = columns(self.statistic, &[self.moments]);
        columns.iter().map(|column| ScalarValue::try_from_array(column, 0)).collect()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.statistic.of(&self.moments)))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let gone = Arguments::new(self.statistic, values)?;
        (0..gone.first.len()).for_each(|row| self.moments.take_out(gone.pair(row)));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }
}

/// Moments by group, indexed by the number of the group.
struct GroupMoments {
    statistic: Statistic,
    groups: Vec<Moments>,
}

impl GroupsAccumulator for GroupMoments {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        only: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.groups.resize(total, Moments::default());

        let mut mask = match values.iter().any(|values| values.null_count() > 0) {
            true => present(values)?,
            false => None,
        };

        if let Some(only) = only {
            mask = Some(match &mask {
                Some(mask) => and(mask, only)?,
                None => only.clone(),
            });
        }

        if let Some(mask) = mask {
            let mut kept = Vec::with_capacity(groups.len());
            for (row, group) in groups.iter().enumerate() {
                if mask.is_valid(row) && mask.value(row) {
                    kept.push(*group);
                }
            }
            let values =
                values.iter().map(|values| filter(values, &mask)).collect::<std::result::Result<Vec<_>, _>>()?;
            return self.update_batch(&values, &kept, None, total);
        }

        let Arguments { first, second } = Arguments::new(self.statistic, values)?;
        // Neighbours often share a group: a day has all its readings.
        let mut start = 0;
        for run in groups.chunk_by(|one, next| one == next) {
            let rows = start..start + run.len();
            start = rows.end;
            if let Some(moments) = run.first().and_then(|group| self.groups.get_mut(*group)) {
                let second = second.values().get(rows.clone()).unwrap_or_default();
                moments.add(first.values().get(rows).unwrap_or_default(), second);
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.groups.resize(total, Moments::default());
        for_each_state(self.statistic, states, |row, moments| {
            if let Some(own) = groups.get(row).and_then(|group| self.groups.get_mut(*group)) {
                own.merge(&moments);
            }
        })
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let groups = emit_to.take_needed(&mut self.groups);
        Ok(Arc::new(groups.iter().map(|moments| self.statistic.of(moments)).collect::<Float64Array>()))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(columns(self.statistic, &emit_to.take_needed(&mut self.groups)))
    }

    fn convert_to_state(&self, values: &[ArrayRef], only: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let rows = values.first().map_or(0, |values| values.len());
        let mut each = Self { statistic: self.statistic, groups: Vec::new() };
        each.update_batch(values, &(0..rows).collect::<Vec<_>>(), only, rows)?;
        each.state(EmitTo::All)
    }

    fn size(&self) -> usize {
        self.groups.capacity() * size_of::<Moments>()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::functions_aggregate::correlation::CorrelationAccumulator;
    use datafusion::functions_aggregate::covariance::CovarianceAccumulator;
    use datafusion::functions_aggregate::stddev::StddevAccumulator;
    use datafusion::functions_aggregate::variance::VarianceAccumulator;
    use datafusion::physical_expr::expressions::StatsType::{Population, Sample};

    use super::*;

    /// The accumulator of DataFusion that computes the same statistic, for comparison.
    fn peer(statistic: Statistic) -> Box<dyn Accumulator> {
        let kind = |sample: bool| if sample { Sample } else { Population };
        match statistic {
            Statistic::Variance { sample } => Box::new(VarianceAccumulator::try_new(kind(sample)).unwrap()),
            Statistic::Deviation { sample } => Box::new(StddevAccumulator::try_new(kind(sample)).unwrap()),
            Statistic::Covariance { sample } => Box::new(CovarianceAccumulator::try_new(kind(sample)).unwrap()),
            Statistic::Correlation => Box::new(CorrelationAccumulator::try_new().unwrap()),
        }
    }

    fn close(found: &ScalarValue, expected: &ScalarValue) {
        let (ScalarValue::Float64(one), ScalarValue::Float64(other)) = (found, expected) else { panic!("{found}") };
        let is_close = match (one, other) {
            (Some(one), Some(other)) => (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1e-3),
            (one, other) => one == other,
        };
        assert!(is_close, "{found} and {expected}");
    }

    /// Columns with nulls, and the group and the filter of each row.
    fn batch(seed: u64, rows: u64) -> (Vec<ArrayRef>, Vec<usize>, BooleanArray) {
        let draw = |at: u64, factor: u64| (at + seed * 77) * (at + seed) * factor % 1_009;
        let column = |factor: u64, holes: u64| -> ArrayRef {
            let value = |at| (draw(at, factor + 1) % holes > 0).then(|| draw(at, factor) as f64 / 8.0 - 30.0);
            Arc::new((0..rows).map(value).collect::<Float64Array>())
        };
        let groups = (0..rows).map(|at| (at / (1 + seed * 20) % 5) as usize).collect();
        let only = (0..rows).map(|at| [Some(true), Some(true), Some(false), None][draw(at, 3) as usize % 4]).collect();
        (vec![column(5, 9), column(11, 1 << (seed % 3 * 4))], groups, only)
    }

    #[test]
    fn groups_have_the_results_of_their_rows_alone() {
        for statistic in STATISTICS {
            let of = |columns: &[ArrayRef]| columns[..1 + usize::from(statistic.has_two_arguments())].to_vec();
            let grouped = || GroupMoments { statistic, groups: Vec::new() };
            let (mut updated, mut merged) = (grouped(), grouped());
            let mut expected: Vec<Box<dyn Accumulator>> = (0..6).map(|_| peer(statistic)).collect();
            for (seed, rows) in [(0, 300), (3, 700), (5, 1)] {
                let (columns, groups, only) = batch(seed, rows);
                let columns = of(&columns);
                updated.update_batch(&columns, &groups, Some(&only), 6).unwrap();
                let states = merged.convert_to_state(&columns, Some(&only)).unwrap();
                merged.merge_batch(&states, &groups, 6).unwrap();
                for (group, expected) in expected.iter_mut().enumerate() {
                    let own: BooleanArray =
                        groups.iter().zip(&only).map(|(of, only)| Some(*of == group && only == Some(true))).collect();
                    let own: Vec<ArrayRef> = columns.iter().map(|column| filter(column, &own).unwrap()).collect();
                    expected.update_batch(&own).unwrap();
                }
            }
            let mut again = grouped();
            again.merge_batch(&updated.state(EmitTo::All).unwrap(), &[0, 1, 2, 3, 4, 5], 6).unwrap();
            let found = [again.evaluate(EmitTo::All).unwrap(), merged.evaluate(EmitTo::All).unwrap()];
            for (group, expected) in expected.iter_mut().enumerate() {
                let expected = expected.evaluate().unwrap();
                found.iter().for_each(|found| close(&ScalarValue::try_from_array(found, group).unwrap(), &expected));
            }
        }
    }

    #[test]
    fn windows_take_out_what_they_added() {
        for statistic in STATISTICS {
            let mut moments = AllMoments { statistic, moments: Moments::default() };
            let mut expected = peer(statistic);
            let (columns, ..) = batch(4, 200);
            let columns = &columns[..1 + usize::from(statistic.has_two_arguments())];
            let rows = |from: usize, count: usize| -> Vec<ArrayRef> {
                columns.iter().map(|column| column.slice(from, count)).collect()
            };
            for start in 0..150 {
                moments.update_batch(&rows(start + 3, 1)).unwrap();
                expected.update_batch(&rows(start + 3, 1)).unwrap();
                if start > 20 {
                    moments.retract_batch(&rows(start - 18, 1)).unwrap();
                    expected.retract_batch(&rows(start - 18, 1)).unwrap();
                }
                close(&moments.evaluate().unwrap(), &expected.evaluate().unwrap());
            }
        }
    }
}
