//! Accumulators of `sum` and `avg` of floats: of all rows or of a window, and of groups.
//!
//! A partial state is the sum of the values that are decimals, null without any value, and the bytes of a superaccumulator of
//! the others, null without one; before them the number of values, if it is of an average.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Float64Array, PrimitiveArray, UInt64Array};
use arrow::compute::nullif;
use arrow::datatypes::{ArrowPrimitiveType, DataType, Decimal128Type, Field, FieldRef, Float64Type, UInt64Type};
use datafusion::common::{DataFusionError, ScalarValue, internal_datafusion_err, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::function::StateFieldsArgs;
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use crate::totals::floats::rounding::quotient;
use crate::totals::floats::split::{DECIMALS, Exception, Exceptional, SCALE, Split};
use crate::totals::floats::superaccumulator::Superaccumulator;
use crate::totals::function::finished;
use crate::totals::group_sums::{GroupSums, counted};
use crate::totals::wide::{decimal_sum, sum_overflow};

/// What is computed from the exact sum of floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FloatTotal {
    Sum,
    Average,
}

impl FloatTotal {
    /// The fields of a partial state; `None` for distinct values, which DataFusion collects.
    pub(crate) fn state(self, args: &StateFieldsArgs<'_>) -> Option<Vec<FieldRef>> {
        if args.is_distinct {
            return None;
        }
        let field = |name: &str, kind: DataType| Arc::new(Field::new(format_state_name(args.name, name), kind, true));
        let sum = [field("decimals", DECIMALS), field("rest", DataType::Binary)];
        Some(match self {
            Self::Sum => sum.to_vec(),
            Self::Average => [field("count", DataType::UInt64)].into_iter().chain(sum).collect(),
        })
    }

    /// The accumulator of all rows or of a window; `inner` is DataFusion's, which collects distinct values.
    pub(crate) fn all(self, inner: Box<dyn Accumulator>, distinct: bool) -> Box<dyn Accumulator> {
        match distinct {
            true => finished(inner, move |state| self.of_distinct(state)),
            false => Box::new(AllFloats::new(self)),
        }
    }

    pub(crate) fn groups(self) -> Box<dyn GroupsAccumulator> {
        Box::new(GroupFloats { total: self, decimals: GroupSums::new(DECIMALS), rests: Vec::new(), counts: Vec::new() })
    }

    fn of_distinct(self, state: &[ScalarValue]) -> Result<ScalarValue> {
        let mut all = AllFloats::new(self);
        for state in state {
            let ScalarValue::List(values) = state else { return internal_err!("distinct values are not a list") };
            all.update_batch(&[Arc::clone(values.values())])?;
        }
        all.evaluate()
    }

    /// The columns of partial states.
    fn states<'a>(self, columns: &'a [ArrayRef]) -> Result<States<'a>> {
        let (counts, sums) = match (self, columns) {
            (Self::Average, [counts, sums @ ..]) => (Some(primitive::<UInt64Type>(counts)?), sums),
            (_, sums) => (None, sums),
        };
        let [decimals, rests] = sums else { return internal_err!("{} columns of states of a sum", columns.len()) };
        let rests = rests.as_binary_opt().ok_or_else(|| internal_datafusion_err!("a sum has another state"))?;
        Ok(States { counts, decimals, rests })
    }

    /// The result for an exact sum of `count` values.
    fn of(self, decimals: i128, rest: Option<&Superaccumulator>, count: u64) -> f64 {
        quotient(decimals, rest, if self == Self::Sum { 1 } else { count })
    }
}

/// Partial states, a row each.
struct States<'a> {
    /// Of averages only.
    counts: Option<&'a UInt64Array>,
    decimals: &'a ArrayRef,
    rests: &'a BinaryArray,
}

fn primitive<T: ArrowPrimitiveType>(values: &ArrayRef) -> Result<&PrimitiveArray<T>> {
    values.as_primitive_opt::<T>().ok_or_else(|| internal_datafusion_err!("a sum of {}", values.data_type()))
}

fn only_argument(values: &[ArrayRef]) -> Result<&Float64Array> {
    match values {
        [values] => primitive::<Float64Type>(values),
        _ => internal_err!("a sum of {} columns", values.len()),
    }
}

fn no_state() -> DataFusionError {
    internal_datafusion_err!("the bytes are no state of a sum")
}

/// What a batch adds to a sum.
struct Parts {
    /// The sum of the values that are decimals.
    decimals: i128,
    /// All other values.
    others: Vec<f64>,
    /// The number of values.
    count: u64,
}

impl Parts {
    fn of(floats: &Float64Array) -> Self {
        let split = Split::of(floats);
        let mut decimals = split.sum_of(0..floats.len());
        let mut others = Vec::new();
        for exception in split.exceptions {
            match exception.value {
                Exceptional::Decimal(decimal) => decimals += decimal,
                Exceptional::Other(value) => others.push(value),
            }
        }
        Self { decimals, others, count: (floats.len() - floats.null_count()) as u64 }
    }
}

/// The exact sum of all rows, or of the rows of a window.
#[derive(Debug)]
struct AllFloats {
    total: FloatTotal,
    decimals: i128,
    rest: Option<Superaccumulator>,
    /// The number of values. Of sums the number of values and of states with values, since only 0 matters.
    count: u64,
}

impl AllFloats {
    fn new(total: FloatTotal) -> Self {
        Self { total, decimals: 0, rest: None, count: 0 }
    }
}

impl Accumulator for AllFloats {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Parts { decimals, others, count } = Parts::of(only_argument(values)?);
        self.decimals = self.decimals.checked_add(decimals).ok_or_else(sum_overflow)?;
        for value in others {
            self.rest.get_or_insert_default().add(value);
        }
        self.count += count;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Parts { decimals, others, count } = Parts::of(only_argument(values)?);
        self.decimals = self.decimals.checked_sub(decimals).ok_or_else(sum_overflow)?;
        for value in others {
            self.rest.get_or_insert_default().take_out(value);
        }
        self.count -= count;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let States { counts, decimals, rests } = self.total.states(states)?;
        let decimals = primitive::<Decimal128Type>(decimals)?;

        let more = decimal_sum(decimals.values(), decimals.nulls()).ok_or_else(sum_overflow)?;
        self.decimals = self.decimals.checked_add(more).ok_or_else(sum_overflow)?;
        self.count += match counts {
            Some(counts) => counts.iter().flatten().sum(),
            None => (decimals.len() - decimals.null_count()) as u64,
        };
        for rest in rests.iter().flatten() {
            let rest = Superaccumulator::from_bytes(rest).ok_or_else(no_state)?;
            self.rest.get_or_insert_default().merge(&rest);
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let decimals = (self.count > 0).then_some(self.decimals);
        let rest = self.rest.as_ref().map(Superaccumulator::to_bytes);
        let sum = [ScalarValue::Decimal128(decimals, 38, SCALE), ScalarValue::Binary(rest)];
        Ok(match self.total {
            FloatTotal::Sum => sum.to_vec(),
            FloatTotal::Average => [ScalarValue::UInt64(Some(self.count))].into_iter().chain(sum).collect(),
        })
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let result = self.total.of(self.decimals, self.rest.as_ref(), self.count);
        Ok(ScalarValue::Float64((self.count > 0).then_some(result)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.rest.as_ref().map_or(0, Superaccumulator::size)
    }
}

/// Exact sums by group, indexed by the number of the group.
struct GroupFloats {
    total: FloatTotal,
    decimals: GroupSums,
    /// Empty while every value is a decimal.
    rests: Vec<Option<Box<Superaccumulator>>>,
    /// The number of values of each group; of averages only.
    counts: Vec<u64>,
}

impl GroupFloats {
    /// The superaccumulator of a group, of `total` groups.
    fn rest(&mut self, group: usize, total: usize) -> Option<&mut Superaccumulator> {
        if self.rests.len() < total {
            self.rests.resize_with(total, || None);
        }
        Some(self.rests.get_mut(group)?.get_or_insert_default())
    }

    /// Takes the superaccumulators of the groups that are emitted; empty if there are none.
    fn take_rests(&mut self, emit_to: EmitTo) -> Vec<Option<Box<Superaccumulator>>> {
        if !self.rests.is_empty() {
            let total = self.decimals.len();
            self.rests.resize_with(total, || None);
        }
        match self.rests.is_empty() {
            true => Vec::new(),
            false => emit_to.take_needed(&mut self.rests),
        }
    }
}

impl GroupsAccumulator for GroupFloats {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        only: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        let floats = only_argument(values)?;
        let split = Split::of(floats);
        self.decimals.add_scaled(&split.integers, split.unit(), groups, only, total)?;

        for Exception { at, value } in split.exceptions {
            let counts = only.is_none_or(|only| only.is_valid(at) && only.value(at));
            let Some(group) = groups.get(at).filter(|_| counts) else { continue };
            match value {
                Exceptional::Decimal(decimal) => self.decimals.add_one(*group, decimal)?,
                Exceptional::Other(value) => {
                    if let Some(rest) = self.rest(*group, total) {
                        rest.add(value);
                    }
                }
            }
        }

        if self.total == FloatTotal::Average {
            self.counts.resize(total, 0);
            let counted = counted(floats.nulls(), only);
            for (at, group) in groups.iter().enumerate() {
                let counts = counted.as_ref().is_none_or(|counted| counted.value(at));
                if let Some(count) = self.counts.get_mut(*group) {
                    *count += u64::from(counts);
                }
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        let States { counts, decimals, rests } = self.total.states(states)?;
        self.decimals.update_batch(&[Arc::clone(decimals)], groups, None, total)?;

        if rests.null_count() < rests.len() {
            for (group, rest) in groups.iter().zip(rests) {
                let Some(rest) = rest else { continue };
                let rest = Superaccumulator::from_bytes(rest).ok_or_else(no_state)?;
                if let Some(own) = self.rest(*group, total) {
                    own.merge(&rest);
                }
            }
        }

        if let Some(counts) = counts {
            self.counts.resize(total, 0);
            for (group, more) in groups.iter().zip(counts) {
                if let Some(count) = self.counts.get_mut(*group) {
                    *count += more.unwrap_or(0);
                }
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let rests = self.take_rests(emit_to);
        let counts = if self.counts.is_empty() { Vec::new() } else { emit_to.take_needed(&mut self.counts) };
        let decimals = self.decimals.evaluate(emit_to)?;

        let mut results = Float64Array::builder(decimals.len());
        for (group, decimals) in primitive::<Decimal128Type>(&decimals)?.iter().enumerate() {
            let rest = rests.get(group).and_then(Option::as_deref);
            let count = counts.get(group).copied().unwrap_or(1);
            results.append_option(decimals.map(|decimals| self.total.of(decimals, rest, count)));
        }
        Ok(Arc::new(results.finish()))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let rests = self.take_rests(emit_to);
        let mut counts = None;
        if self.total == FloatTotal::Average {
            counts = Some(Arc::new(UInt64Array::from(emit_to.take_needed(&mut self.counts))) as ArrayRef);
        }
        let decimals = self.decimals.evaluate(emit_to)?;

        let rests: ArrayRef = match rests.is_empty() {
            true => Arc::new(BinaryArray::new_null(decimals.len())),
            false => {
                let rests = rests.iter().map(|rest| rest.as_ref().map(|rest| rest.to_bytes()));
                Arc::new(rests.collect::<BinaryArray>())
            }
        };
        Ok(counts.into_iter().chain([decimals, rests]).collect())
    }

    fn convert_to_state(&self, values: &[ArrayRef], only: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let hidden = only.map(|only| only.iter().map(|counts| Some(counts != Some(true))).collect::<BooleanArray>());
        let floats = match hidden {
            Some(hidden) => nullif(only_argument(values)?, &hidden)?,
            None => Arc::new(only_argument(values)?.clone()),
        };
        let floats = primitive::<Float64Type>(&floats)?;
        let split = Split::of(floats);

        let mut counts = None;
        if self.total == FloatTotal::Average {
            let each = (0..floats.len()).map(|at| u64::from(floats.is_valid(at)));
            counts = Some(Arc::new(UInt64Array::from_iter_values(each)) as ArrayRef);
        }
        let mut rests = vec![None; floats.len()];
        for exception in &split.exceptions {
            if let (Exceptional::Other(value), Some(rest)) = (&exception.value, rests.get_mut(exception.at)) {
                let mut own = Superaccumulator::default();
                own.add(*value);
                *rest = Some(own.to_bytes());
            }
        }
        let sums: [ArrayRef; 2] = [Arc::new(split.decimals()), Arc::new(rests.into_iter().collect::<BinaryArray>())];
        Ok(counts.into_iter().chain(sums).collect())
    }

    fn size(&self) -> usize {
        let rests: usize = self.rests.iter().flatten().map(|rest| size_of::<Superaccumulator>() + rest.size()).sum();
        self.decimals.size()
            + self.rests.capacity() * size_of::<Option<Box<Superaccumulator>>>()
            + rests
            + self.counts.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::UInt32Array;
    use arrow::compute::{filter, take};

    use super::*;

    const GROUPS: usize = 5;

    /// Values that are decimals, others, cancel out, or are null; the group and the filter of each row.
    fn batch(seed: usize, rows: usize) -> (ArrayRef, Vec<usize>, BooleanArray) {
        let draw = |at: usize, most: usize| (at * at * 31 + at * 7 + seed * 101) % most;
        let value = |at: usize| match draw(at, 7) {
            0 => None,
            1 => Some(draw(at, 997) as f64 / 100.0),
            2 => Some(1.0 / (draw(at, 89) + 3) as f64),
            3 => Some(1e22),
            4 => Some(-1e22),
            5 => Some(-0.0),
            _ => Some(draw(at, 1013) as f64 * 1e-9),
        };
        let floats: Float64Array = (0..rows).map(value).collect();
        let groups = (0..rows).map(|at| draw(at, GROUPS)).collect();
        let only = (0..rows).map(|at| [Some(true), Some(true), Some(false), None][draw(at, 4)]).collect();
        (Arc::new(floats), groups, only)
    }

    /// The results of all batches, each group by itself, with the values in reverse.
    fn expected(total: FloatTotal, batches: &[(ArrayRef, Vec<usize>, BooleanArray)]) -> Vec<ScalarValue> {
        let mut results = Vec::new();
        for group in 0..GROUPS {
            let mut all = AllFloats::new(total);
            for (floats, groups, only) in batches.iter().rev() {
                let own: BooleanArray =
                    groups.iter().zip(only).map(|(of, only)| Some(*of == group && only == Some(true))).collect();
                let own = filter(floats, &own).unwrap();
                let turned: UInt32Array = (0..own.len() as u32).rev().map(Some).collect();
                all.update_batch(&[take(&own, &turned, None).unwrap()]).unwrap();
            }
            results.push(all.evaluate().unwrap());
        }
        results
    }

    fn scalars(results: &ArrayRef) -> Vec<ScalarValue> {
        (0..results.len()).map(|at| ScalarValue::try_from_array(results, at).unwrap()).collect()
    }

    #[test]
    fn groups_states_and_rows_alone_agree_bit_for_bit() {
        for total in [FloatTotal::Sum, FloatTotal::Average] {
            let batches = [batch(1, 200), batch(2, 1), batch(3, 777)];
            let (mut updated, mut converted) = (total.groups(), total.groups());
            for (floats, groups, only) in &batches {
                let floats = [Arc::clone(floats)];
                updated.update_batch(&floats, groups, Some(only), GROUPS).unwrap();
                let states = converted.convert_to_state(&floats, Some(only)).unwrap();
                converted.merge_batch(&states, groups, GROUPS).unwrap();
            }

            let mut merged = total.groups();
            let order = [3, 1, 4, 0, 2];
            merged.merge_batch(&updated.state(EmitTo::First(3)).unwrap(), &order[..3], GROUPS).unwrap();
            merged.merge_batch(&updated.state(EmitTo::All).unwrap(), &order[3..], GROUPS).unwrap();

            let expected = expected(total, &batches);
            assert_eq!(scalars(&converted.evaluate(EmitTo::All).unwrap()), expected);
            let merged = scalars(&merged.evaluate(EmitTo::All).unwrap());
            for (group, at) in order.into_iter().enumerate() {
                assert_eq!(merged[at], expected[group], "{group}");
            }
        }
    }

    #[test]
    fn windows_take_out_what_they_added() {
        let (floats, ..) = batch(9, 60);
        for total in [FloatTotal::Sum, FloatTotal::Average] {
            let mut window = AllFloats::new(total);
            for at in 0..60 {
                window.update_batch(&[floats.slice(at, 1)]).unwrap();
                if at >= 7 {
                    window.retract_batch(&[floats.slice(at - 7, 1)]).unwrap();
                }
                let mut alone = AllFloats::new(total);
                let start = (at + 1).saturating_sub(7);
                alone.update_batch(&[floats.slice(start, at + 1 - start)]).unwrap();
                assert_eq!(window.evaluate().unwrap(), alone.evaluate().unwrap(), "{at}");
            }
        }
    }

    #[test]
    fn states_of_all_rows_merge_in_any_order() {
        for total in [FloatTotal::Sum, FloatTotal::Average] {
            let (floats, ..) = batch(4, 90);
            let mut whole = AllFloats::new(total);
            whole.update_batch(&[Arc::clone(&floats)]).unwrap();
            let mut merged = AllFloats::new(total);
            for part in [60, 0, 30] {
                let mut own = AllFloats::new(total);
                own.update_batch(&[floats.slice(part, 30)]).unwrap();
                let states: Vec<ArrayRef> =
                    own.state().unwrap().iter().map(|state| state.to_array().unwrap()).collect();
                merged.merge_batch(&states).unwrap();
            }
            assert_eq!(merged.evaluate().unwrap(), whole.evaluate().unwrap());
            assert!(AllFloats::new(total).evaluate().unwrap().is_null());
        }
    }
}
