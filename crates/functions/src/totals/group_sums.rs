//! Sums of groups in 128 bits, of integers, of decimals, and of floats that are decimals.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, Decimal128Array, Int64Array, PrimitiveArray,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::{cast, nullif};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Decimal128Type, Int64Type, UInt64Type};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};

use crate::totals::wide::{fitting, state, sum_overflow};

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
    use arrow::array::Int64Array;

    use super::*;

    fn totals() -> GroupSums {
        GroupSums::new(DataType::Int64)
    }

    fn emitted(totals: &mut GroupSums, emit_to: EmitTo) -> Vec<Option<i64>> {
        totals.evaluate(emit_to).unwrap().as_primitive::<Int64Type>().iter().collect()
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
