//! `avg` of decimals, rounded half away from zero; that of floats is in [`floats`](super::floats).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal128Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal256Type, FieldRef, UInt64Type, i256};
use datafusion::common::{DataFusionError, ScalarValue, exec_datafusion_err, internal_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::average::Avg;
use datafusion::logical_expr::function::StateFieldsArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF, EmitTo, GroupsAccumulator};

use crate::totals::floats::accumulators::FloatTotal;
use crate::totals::function::{OverriddenAggregate, ResultOverride, finished};

/// DataFusion's `avg`, with averages that are exact until they are rounded once.
pub(crate) fn average() -> AggregateUDF {
    AggregateUDF::from(OverriddenAggregate::<_, ExactAverage>::new(Avg::new()))
}

/// The overrides of `avg` for one result type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ExactAverage {
    Decimals(DecimalAverage),
    Floats,
}

impl ResultOverride for ExactAverage {
    fn of(kind: &DataType) -> Option<Self> {
        match kind {
            DataType::Decimal128(precision, scale) => {
                Some(Self::Decimals(DecimalAverage { precision: *precision, scale: *scale }))
            }
            DataType::Float64 => Some(Self::Floats),
            _ => None,
        }
    }

    fn state(&self, args: &StateFieldsArgs<'_>) -> Option<Vec<FieldRef>> {
        match self {
            Self::Decimals(_) => None,
            Self::Floats => FloatTotal::Average.state(args),
        }
    }

    fn all(self, inner: Box<dyn Accumulator>, distinct: bool) -> Box<dyn Accumulator> {
        match self {
            Self::Decimals(rounds) => finished(inner, move |state| rounds.of_all(state, distinct)),
            Self::Floats => FloatTotal::Average.all(inner, distinct),
        }
    }

    fn groups(self, inner: impl FnOnce() -> Result<Box<dyn GroupsAccumulator>>) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(match self {
            Self::Decimals(rounds) => Box::new(GroupAverages { inner: inner()?, rounds }),
            Self::Floats => FloatTotal::Average.groups(),
        })
    }
}

/// An average that is a decimal of 128 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct DecimalAverage {
    precision: u8,
    scale: i8,
}

impl DecimalAverage {
    /// `sum / count`, rounded half away from zero; `scale` is that of `sum`.
    fn average(self, sum: i256, scale: i8, count: u64) -> Result<i128> {
        let finer = (self.scale - scale).max(0).cast_unsigned().into();
        let narrow = sum.to_i128().and_then(|sum| narrow_average(sum, finer, count));
        let average = narrow.or_else(|| wide_average(sum, finer, count)).ok_or_else(average_overflow)?;
        if average.unsigned_abs() < 10_u128.pow(self.precision.min(38).into()) {
            Ok(average)
        } else {
            Err(average_overflow())
        }
    }

    /// The average of all rows. `state`: count and sum, or the distinct values.
    fn of_all(self, state: &[ScalarValue], distinct: bool) -> Result<ScalarValue> {
        let (sum, own, count) = match (state, distinct) {
            ([ScalarValue::List(values)], true) => {
                let (values, own) = wide(values.values())?;
                let values = values.as_primitive::<Decimal256Type>();
                let sum =
                    values.iter().flatten().try_fold(i256::ZERO, i256::checked_add).ok_or_else(average_overflow)?;
                (Some(sum), own, (values.len() - values.null_count()) as u64)
            }
            ([ScalarValue::UInt64(count), ScalarValue::Decimal128(sum, _, own)], false) => {
                (sum.map(i256::from_i128), *own, count.unwrap_or(0))
            }
            ([ScalarValue::UInt64(count), sum], false) => {
                let (sum, own) = wide(&sum.to_array()?)?;
                (sum.as_primitive::<Decimal256Type>().iter().next().flatten(), own, count.unwrap_or(0))
            }
            _ => return internal_err!("avg has another state"),
        };

        let average = match sum {
            Some(sum) if count > 0 => Some(self.average(sum, own, count)?),
            _ => None,
        };
        Ok(ScalarValue::Decimal128(average, self.precision, self.scale))
    }
}

/// `sum * 10^finer / count`, rounded half away from zero; `None` if a step needs more than 128 bits.
fn narrow_average(sum: i128, finer: u32, count: u64) -> Option<i128> {
    let sum = sum.checked_mul(10_i128.checked_pow(finer)?)?;
    // A division of 64 bits is several times as fast.
    let (whole, rest) = match (i64::try_from(sum), i64::try_from(count)) {
        (Ok(sum), Ok(count)) => (i128::from(sum.checked_div(count)?), i128::from(sum.checked_rem(count)?)),
        _ => (sum.checked_div(count.into())?, sum.checked_rem(count.into())?),
    };
    let up = rest.abs() >= i128::from(count) - rest.abs();
    whole.checked_add(if up { sum.signum() } else { 0 })
}

/// As [`narrow_average`], in 256 bits; `None` if even these are too few.
fn wide_average(sum: i256, finer: u32, count: u64) -> Option<i128> {
    let sum = i256::from_i128(10).checked_pow(finer)?.checked_mul(sum)?;
    let count = i256::from_i128(count.into());
    let (whole, rest) = (sum.checked_div(count)?, sum.checked_rem(count)?.checked_abs()?);
    let one = i256::from_i128(if sum.is_negative() { -1 } else { 1 });
    if rest >= count - rest { whole.checked_add(one)?.to_i128() } else { whole.to_i128() }
}

fn average_overflow() -> DataFusionError {
    exec_datafusion_err!("an average does not fit into a decimal of 38 digits: CAST the argument to DOUBLE")
}

/// Widens decimals of any width to 256 bits; with their scale, which stays the same.
fn wide(decimals: &ArrayRef) -> Result<(ArrayRef, i8)> {
    let scale = match decimals.data_type() {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => *scale,
        other => return internal_err!("avg of {other}"),
    };
    Ok((cast(decimals, &DataType::Decimal256(76, scale))?, scale))
}

/// Averages by group: the sums and counts of DataFusion's accumulator, divided as this module does.
struct GroupAverages {
    inner: Box<dyn GroupsAccumulator>,
    rounds: DecimalAverage,
}

impl GroupsAccumulator for GroupAverages {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        only: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.inner.update_batch(values, groups, only, total)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.inner.merge_batch(states, groups, total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let state = self.inner.state(emit_to)?;
        let [counts, sums] = state.as_slice() else { return internal_err!("avg has another state") };
        let (sums, own) = wide(sums)?;
        let counts = counts.as_primitive_opt::<UInt64Type>();
        let Some(counts) = counts else { return internal_err!("avg has another state") };
        let pairs = sums.as_primitive::<Decimal256Type>().iter().zip(counts);
        let averages = pairs.map(|(sum, count)| match (sum, count) {
            (Some(sum), Some(count)) if count > 0 => self.rounds.average(sum, own, count).map(Some),
            _ => Ok(None),
        });
        let averages: Decimal128Array = averages.collect::<Result<_>>()?;
        Ok(Arc::new(averages.with_precision_and_scale(self.rounds.precision, self.rounds.scale)?))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit_to)
    }

    fn convert_to_state(&self, values: &[ArrayRef], only: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(values, only)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_averages_equal_wide_ones() {
        let sums =
            [0, 1, -1, 5, -5, 14, 15, -15, 16, i128::from(i64::MAX), i128::from(i64::MIN), 1 << 100, -(1 << 100)];
        for (sum, count) in
            sums.into_iter().flat_map(|sum| [1, 2, 3, 4, 10, 1 << 40, u64::MAX].map(|count| (sum, count)))
        {
            for finer in [0, 1, 4] {
                let wide = wide_average(i256::from_i128(sum), finer, count);
                assert_eq!(narrow_average(sum, finer, count), wide, "{sum} {count} {finer}");
            }
        }
        assert_eq!(narrow_average(15, 0, 10), Some(2));
        assert_eq!(narrow_average(-15, 0, 10), Some(-2));
        assert_eq!(narrow_average(i128::MAX, 1, 10), None);
        assert_eq!(wide_average(i256::from_i128(i128::MAX), 1, 10), Some(i128::MAX));
    }
}
