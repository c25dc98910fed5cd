//! `sum` of integers and decimals in 128 bits; that of floats is in [`floats`](super::floats).

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, Decimal128Array, Int64Array, PrimitiveArray,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::{cast, nullif};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Decimal128Type, Field, FieldRef, Int64Type, UInt64Type};
use datafusion::common::{DataFusionError, ScalarValue, exec_datafusion_err, exec_err, internal_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::sum::Sum;
use datafusion::logical_expr::function::StateFieldsArgs;
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDF, EmitTo, GroupsAccumulator};

use crate::totals::floats::accumulators::FloatTotal;
use crate::totals::function::{OverriddenAggregate, ResultOverride, finished};

/// Type of integer sums in progress: a sum leaves 64 bits long before its last value brings it back.
const WIDE: DataType = DataType::Decimal128(38, 0);

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

/// Type of a sum in progress for this result type.
fn state(kind: &DataType) -> DataType {
    if kind.is_integer() { WIDE } else { kind.clone() }
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

/// Number of 32-bit halves whose sum fits 64 bits.
const HALVES: usize = 1 << 30;

fn sum_of<T: Copy>(values: &[T], nulls: Option<&NullBuffer>, moved: impl Fn(T) -> u64) -> i128 {
    let parts = values.chunks(HALVES).enumerate().map(|(at, part)| match nulls {
        None => halves(part.iter().map(|value| moved(*value))),
        Some(nulls) => {
            let there = nulls.slice(at * HALVES, part.len());
            let pairs = part.iter().zip(there.iter());
            halves(pairs.map(|(value, there)| if there { moved(*value) } else { 0 }))
        }
    });
    parts.sum()
}

/// Adds low and high halves separately, so that the loop vectorizes.
fn halves(values: impl Iterator<Item = u64>) -> i128 {
    let (mut low, mut high) = (0_u64, 0_u64);
    for value in values {
        low += value & 0xffff_ffff;
        high += value >> 32;
    }
    (i128::from(high) << 32) + i128::from(low)
}

/// The sum of decimals; `None` if it does not fit.
pub(super) fn decimal_sum(values: &[i128], nulls: Option<&NullBuffer>) -> Option<i128> {
    let mut sum = 0_i128;

    for (at, part) in values.chunks(HALVES).enumerate() {
        let mut quarters = Quarters::default();
        match nulls.map(|nulls| nulls.inner().slice(at * HALVES, part.len())) {
            None => quarters.add(part.iter().copied()),
            Some(valid) => {
                let bits = valid.bit_chunks();
                for (values, bits) in part.chunks(64).zip(bits.iter_padded()) {
                    match bits {
                        u64::MAX => quarters.add(values.iter().copied()),
                        0 => {}
                        _ => {
                            let values = values.iter().enumerate();
                            quarters.add(values.map(|(at, value)| value & i128::from((bits >> at) & 1).wrapping_neg()));
                        }
                    }
                }
            }
        }

        sum = sum.checked_add(quarters.total()?)?;
    }
    Some(sum)
}

/// Sums of the 32-bit quarters of decimals, lowest first; the last one is biased by 2^31, so that none is negative and
/// loops over them vectorize.
#[derive(Default)]
struct Quarters {
    sums: [u64; 4],
    count: u64,
}

impl Quarters {
    fn add(&mut self, values: impl ExactSizeIterator<Item = i128>) {
        let [mut a, mut b, mut c, mut d] = self.sums;
        self.count += values.len() as u64;
        for value in values {
            let (low, high) = (value as u64, (value >> 64) as u64 ^ (1 << 63));
            a += low & 0xffff_ffff;
            b += low >> 32;
            c += high & 0xffff_ffff;
            d += high >> 32;
        }
        self.sums = [a, b, c, d];
    }

    /// The sum of the quarters, each at its place; `None` if it does not fit.
    fn total(&self) -> Option<i128> {
        let [a, b, c, d] = self.sums.map(i128::from);
        let low = (b << 32) + a;
        let high = ((d - (i128::from(self.count) << 31)) << 32) + c + (low >> 64);
        Some((i128::from(i64::try_from(high).ok()?) << 64) | i128::from(low as u64))
    }
}

/// The error of a sum that no integer of 64 bits holds.
pub fn sum_overflow() -> DataFusionError {
    exec_datafusion_err!("a sum does not fit into {WIDE}: CAST the argument to DOUBLE")
}

/// Returns `sum` if it fits the type `kind`, else an error.
fn fitting(sum: i128, kind: &DataType) -> Result<i128> {
    let fits = match kind {
        DataType::Int64 => i64::try_from(sum).is_ok(),
        DataType::UInt64 => u64::try_from(sum).is_ok(),
        _ => sum.unsigned_abs() < 10_u128.pow(38),
    };
    match (fits, kind) {
        (true, _) => Ok(sum),
        (false, DataType::Int64 | DataType::UInt64) => exec_err!(
            "the sum {sum} does not fit into {}: write sum(CAST(.. AS DECIMAL(38, 0)))",
            kind.to_string().to_lowercase()
        ),
        _ => Err(sum_overflow()),
    }
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

/// Sums by group in 128 bits, indexed by the number of the group.
pub(super) struct GroupSums {
    sums: Vec<i128>,
    /// Groups with a value; `None` while all have one.
    seen: Option<BooleanBufferBuilder>,
    kind: DataType,
}

impl GroupSums {
    /// Sums of this type, of no groups yet.
    pub(super) fn new(kind: DataType) -> Self {
        Self { sums: Vec::new(), seen: None, kind }
    }

    /// The number of groups.
    pub(super) fn len(&self) -> usize {
        self.sums.len()
    }

    /// Grows to `total` groups. `has_all`: whether every row of the batch has a value.
    fn grow(&mut self, groups: &[usize], total: usize, has_all: bool) {
        let before = self.sums.len();
        self.sums.resize(total, 0);
        if self.seen.is_none() && !(has_all && follow(groups, before) == total) {
            let mut seen = BooleanBufferBuilder::new(total);
            seen.append_n(before, true);
            self.seen = Some(seen);
        }
        if let Some(seen) = &mut self.seen {
            seen.append_n(total.saturating_sub(seen.len()), false);
        }
    }

    /// Adds integers that count `unit` each.
    pub(super) fn add_scaled(
        &mut self,
        integers: &Int64Array,
        unit: i128,
        groups: &[usize],
        only: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.grow(groups, total, only.is_none() && integers.null_count() == 0);
        self.add(integers, groups, only, |integer| i128::from(integer) * unit)
    }

    /// Adds to the sum of a group that has a value already.
    pub(super) fn add_one(&mut self, group: usize, more: i128) -> Result<()> {
        let Some(sum) = self.sums.get_mut(group) else { return Ok(()) };
        *sum = sum.checked_add(more).ok_or_else(sum_overflow)?;
        Ok(())
    }

    /// Adds the values that `widened` makes of `values`, each to the sum of its group.
    fn add<T: ArrowPrimitiveType>(
        &mut self,
        values: &PrimitiveArray<T>,
        groups: &[usize],
        only: Option<&BooleanArray>,
        widened: impl Fn(T::Native) -> i128,
    ) -> Result<()> {
        let (mut over, sums) = (false, self.sums.as_mut_slice());
        let mut one = |group: usize, value: T::Native| {
            if let Some(sum) = sums.get_mut(group) {
                let (more, passed) = sum.overflowing_add(widened(value));
                (*sum, over) = (more, over | passed);
            }
        };

        let pairs = || groups.iter().copied().zip(values.values().iter().copied());
        match &mut self.seen {
            None => pairs().for_each(|(group, value)| one(group, value)),
            Some(seen) => match counted(values.nulls(), only) {
                None => pairs().for_each(|(group, value)| {
                    one(group, value);
                    seen.set_bit(group, true);
                }),
                Some(counted) => pairs().zip(&counted).filter(|(_, counts)| *counts).for_each(|((group, value), _)| {
                    one(group, value);
                    seen.set_bit(group, true);
                }),
            },
        }

        if over { Err(sum_overflow()) } else { Ok(()) }
    }

    fn emit(&mut self, emit_to: EmitTo, kind: &DataType) -> Result<ArrayRef> {
        let sums = emit_to.take_needed(&mut self.sums);
        let nulls = self.seen.take().map(|mut seen| {
            let seen = seen.finish();
            let rest = seen.slice(sums.len(), seen.len() - sums.len());
            if !rest.is_empty() {
                let mut later = BooleanBufferBuilder::new(rest.len());
                later.append_buffer(&rest);
                self.seen = Some(later);
            }
            NullBuffer::new(seen.slice(0, sums.len()))
        });
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);

        // Groups without a value have sum 0, which fits.
        let fit = match kind {
            DataType::Int64 => sums.iter().all(|sum| i64::try_from(*sum).is_ok()),
            DataType::UInt64 => sums.iter().all(|sum| u64::try_from(*sum).is_ok()),
            _ => false,
        };
        if !fit {
            sums.iter().try_for_each(|sum| fitting(*sum, kind).map(|_| ()))?;
        }

        Ok(match kind {
            DataType::Int64 => {
                let sums: Vec<i64> = sums.iter().map(|sum| *sum as i64).collect();
                Arc::new(PrimitiveArray::<Int64Type>::new(sums.into(), nulls))
            }
            DataType::UInt64 => {
                let sums: Vec<u64> = sums.iter().map(|sum| *sum as u64).collect();
                Arc::new(PrimitiveArray::<UInt64Type>::new(sums.into(), nulls))
            }
            _ => Arc::new(Decimal128Array::new(sums.into(), nulls).with_data_type(kind.clone())),
        })
    }
}

/// The rows that an aggregate counts: those with a value that pass its filter, which null does not; `None` for all.
pub(super) fn counted(nulls: Option<&NullBuffer>, only: Option<&BooleanArray>) -> Option<BooleanBuffer> {
    let only = only.map(|only| match only.nulls() {
        Some(nulls) => only.values() & nulls.inner(),
        None => only.values().clone(),
    });
    match (only, nulls.map(NullBuffer::inner)) {
        (Some(only), Some(there)) => Some(&only & there),
        (only, there) => only.or(there.cloned()),
    }
}

/// Number of groups after a batch, as long as new groups appear in it in order.
fn follow(groups: &[usize], before: usize) -> usize {
    groups.iter().fold(before, |next, group| next + usize::from(*group == next))
}

impl GroupsAccumulator for GroupSums {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        only: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        let [values] = values else { return internal_err!("sum of {} columns", values.len()) };
        self.grow(groups, total, only.is_none() && values.null_count() == 0);
        match values.data_type() {
            DataType::Int64 => self.add(values.as_primitive::<Int64Type>(), groups, only, i128::from),
            DataType::UInt64 => self.add(values.as_primitive::<UInt64Type>(), groups, only, i128::from),
            DataType::Decimal128(..) => self.add(values.as_primitive::<Decimal128Type>(), groups, only, |value| value),
            other => internal_err!("sum of {other}"),
        }
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.update_batch(states, groups, None, total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let kind = self.kind.clone();
        self.emit(emit_to, &kind)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let kind = state(&self.kind);
        Ok(vec![self.emit(emit_to, &kind)?])
    }

    fn convert_to_state(&self, values: &[ArrayRef], only: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let [values] = values else { return internal_err!("sum of {} columns", values.len()) };
        let hidden = only.map(|only| only.iter().map(|counts| Some(counts != Some(true))).collect::<BooleanArray>());
        let values = match hidden {
            Some(hidden) => nullif(values, &hidden)?,
            None => Arc::clone(values),
        };
        Ok(vec![cast(&values, &state(&self.kind))?])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<i128>() + self.seen.as_ref().map_or(0, |seen| seen.capacity() / 8)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::UInt64Array;

    use super::*;

    fn totals() -> GroupSums {
        GroupSums::new(DataType::Int64)
    }

    fn emitted(totals: &mut GroupSums, emit_to: EmitTo) -> Vec<Option<i64>> {
        totals.evaluate(emit_to).unwrap().as_primitive::<Int64Type>().iter().collect()
    }

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

    #[test]
    fn decimal_sums_are_exact_and_overflow_is_found() {
        let extreme = 10_i128.pow(38) - 1;
        let values: Vec<i128> = (0..1000_i128)
            .map(|at| (at - 500) * 7_i128.pow((at % 40) as u32) % 10_i128.pow(35))
            .chain([extreme, -extreme, -1, 1 << 96, -(1 << 64), i128::from(u64::MAX)])
            .collect();
        for step in [0, 1, 2, 3, 64, 65] {
            let nulls: Option<NullBuffer> = (step > 0).then(|| (0..values.len()).map(|at| at % step != 0).collect());
            let there = |at: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(at));
            let expected = values.iter().enumerate().filter(|(at, _)| there(*at)).map(|(_, value)| value).sum();
            assert_eq!(decimal_sum(&values, nulls.as_ref()), Some(expected), "{step}");
        }
        assert_eq!(decimal_sum(&[extreme, extreme], None), None);
        assert_eq!(decimal_sum(&[-extreme, -extreme], None), None);
        assert_eq!(decimal_sum(&[-extreme, -extreme, extreme], None), Some(-extreme));
    }

    #[test]
    fn groups_without_a_value_are_null() {
        let mut totals = totals();
        let batch = |totals: &mut GroupSums, values: Vec<Option<i64>>, groups: &[usize], total: usize| {
            totals.update_batch(&[Arc::new(Int64Array::from(values))], groups, None, total).unwrap();
        };
        batch(&mut totals, vec![Some(1), Some(2), Some(3)], &[0, 1, 0], 2);
        assert!(totals.seen.is_none());
        batch(&mut totals, vec![None, Some(5)], &[2, 1], 3);
        batch(&mut totals, vec![Some(7)], &[3], 4);
        assert_eq!(emitted(&mut totals, EmitTo::First(2)), [Some(4), Some(7)]);
        assert_eq!(emitted(&mut totals, EmitTo::All), [None, Some(7)]);
        // A group without rows in the batch.
        batch(&mut totals, vec![Some(1)], &[1], 2);
        assert_eq!(emitted(&mut totals, EmitTo::All), [None, Some(1)]);
    }

    #[test]
    fn filtered_rows_are_not_added() {
        let mut totals = totals();
        let values = Int64Array::from(vec![Some(1), Some(2), None, Some(8), Some(16)]);
        let only = BooleanArray::from(vec![Some(true), Some(false), Some(true), None, Some(true)]);
        totals.update_batch(&[Arc::new(values)], &[0, 1, 1, 2, 0], Some(&only), 3).unwrap();
        assert_eq!(emitted(&mut totals, EmitTo::All), [Some(17), None, None]);
    }

    #[test]
    fn overflow_of_a_group_fails() {
        let mut totals = totals();
        let values = Arc::new(Int64Array::from(vec![i64::MAX, 1, 1])) as ArrayRef;
        totals.update_batch(&[Arc::clone(&values)], &[0, 0, 1], None, 2).unwrap();
        assert!(totals.evaluate(EmitTo::All).unwrap_err().to_string().contains("does not fit into int64"));
    }
}
