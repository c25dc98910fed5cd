//! `sum` of integers and decimals in 128 bits; that of floats is in [`floats`](super::floats).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type, UInt64Type};
use datafusion::common::{ScalarValue, internal_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::function::StateFieldsArgs;
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDF, GroupsAccumulator};

use crate::totals::floats::accumulators::FloatTotal;
use crate::totals::function::{OverriddenAggregate, ResultOverride, finished};
use crate::totals::group_sums::GroupSums;
use crate::totals::wide::{decimal_sum, fitting, state, sum_of, sum_overflow};

/// DataFusion's `sum`, added in 128 bits: only a result that does not fit its type is an error.
pub(crate) fn sum() -> AggregateUDF {
    AggregateUDF::from(OverriddenAggregate::<_, ExactSum>::new(Sum::new()))
}

/// The overrides of `sum` for one result type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ExactSum {
    /// Integers of 64 bits, whose sum over any number of rows fits 128 bits, and decimals of 128 bits, whose steps are
    /// checked.
    Integers(DataType),
    Floats,
}

impl ResultOverride for ExactSum {
    fn of(kind: &DataType) -> Option<Self> {
        match kind {
            DataType::Int64 | DataType::UInt64 | DataType::Decimal128(..) => Some(Self::Integers(kind.clone())),
            DataType::Float64 => Some(Self::Floats),
            _ => None,
        }
    }

    fn state(&self, args: &StateFieldsArgs<'_>) -> Option<Vec<FieldRef>> {
        match self {
            Self::Floats => FloatTotal::Sum.state(args),
            Self::Integers(kind) => (!args.is_distinct).then(|| {
                let field = Field::new(format_state_name(args.name, "sum"), state(kind), true);
                vec![Arc::new(field)]
            }),
        }
    }

    fn all(self, inner: Box<dyn Accumulator>, distinct: bool) -> Box<dyn Accumulator> {
        match self {
            Self::Floats => FloatTotal::Sum.all(inner, distinct),
            Self::Integers(kind) if distinct => finished(inner, move |state| of_distinct(state, &kind)),
            Self::Integers(kind) => Box::new(RowSum { sum: 0, count: 0, kind }),
        }
    }

    fn groups(self, _: impl FnOnce() -> Result<Box<dyn GroupsAccumulator>>) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(match self {
            Self::Floats => FloatTotal::Sum.groups(),
            Self::Integers(kind) => Box::new(GroupSums::new(kind)),
        })
    }
}

/// The sum of distinct values, which DataFusion collects in a list for each state.
fn of_distinct(state: &[ScalarValue], kind: &DataType) -> Result<ScalarValue> {
    let (mut sum, mut count) = (0, 0);
    for state in state {
        let ScalarValue::List(list) = state else { return internal_err!("distinct values are not a list") };
        count += add(&mut sum, list.values())?;
    }
    value((count > 0).then_some(sum), kind)
}

/// Adds the non-null values of `array` to `sum`; returns their count.
fn add(sum: &mut i128, array: &ArrayRef) -> Result<usize> {
    let count = array.len() - array.null_count();

    let more = match array.data_type() {
        DataType::Int64 => {
            let values = array.as_primitive::<Int64Type>();
            // Biased by 2^63, so that none is negative.
            let biased = sum_of(values.values(), values.nulls(), |value| value.cast_unsigned() ^ (1 << 63));
            biased - ((count as i128) << 63)
        }
        DataType::UInt64 => {
            let values = array.as_primitive::<UInt64Type>();
            sum_of(values.values(), values.nulls(), |value| value)
        }
        DataType::Decimal128(..) => {
            let values = array.as_primitive::<Decimal128Type>();
            decimal_sum(values.values(), values.nulls()).ok_or_else(sum_overflow)?
        }
        other => return internal_err!("sum of {other}"),
    };

    *sum = sum.checked_add(more).ok_or_else(sum_overflow)?;
    Ok(count)
}

fn value(sum: Option<i128>, kind: &DataType) -> Result<ScalarValue> {
    let sum = sum.map(|sum| fitting(sum, kind)).transpose()?;
    Ok(match kind {
        DataType::Int64 => ScalarValue::Int64(sum.map(|sum| sum as i64)),
        DataType::UInt64 => ScalarValue::UInt64(sum.map(|sum| sum as u64)),
        DataType::Decimal128(precision, scale) => ScalarValue::Decimal128(sum, *precision, *scale),
        other => return internal_err!("sum of {other}"),
    })
}

/// Accumulator of the sum of all rows, or of the rows of a window.
#[derive(Debug)]
struct RowSum {
    sum: i128,
    count: usize,
    kind: DataType,
}

impl Accumulator for RowSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("sum of {} columns", values.len()) };
        self.count += add(&mut self.sum, values)?;
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![value((self.count > 0).then_some(self.sum), &state(&self.kind))?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        value((self.count > 0).then_some(self.sum), &self.kind)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [values] = values else { return internal_err!("sum of {} columns", values.len()) };
        let mut gone = 0;
        self.count -= add(&mut gone, values)?;
        self.sum = self.sum.checked_sub(gone).ok_or_else(sum_overflow)?;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, UInt64Array};

    use super::*;

    #[test]
    fn total_sums_handle_signs_and_nulls() {
        let values = [i64::MIN, -1, 0, 1, i64::MAX, i64::MAX, 1 << 31, -(1 << 33)];
        let some = values.iter().enumerate().map(|(at, value)| (at % 3 != 1).then_some(*value));
        for array in [Int64Array::from(values.to_vec()), some.collect()] {
            let mut sum = 0;
            let count = add(&mut sum, &(Arc::new(array.clone()) as ArrayRef)).unwrap();
            assert_eq!(sum, array.iter().flatten().map(i128::from).sum::<i128>());
            assert_eq!(count, array.iter().flatten().count());
        }
        let array: ArrayRef = Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(u64::MAX), Some(1)]));
        let mut sum = 0;
        assert_eq!((add(&mut sum, &array).unwrap(), sum), (3, 2 * i128::from(u64::MAX) + 1));
    }
}
