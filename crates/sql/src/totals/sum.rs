//! Sums of integers, added up in 128 bits: more than there are rows to fill.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, Decimal128Array, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::compute::{cast, nullif};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Decimal128Type, Field, FieldRef, Int64Type, UInt64Type};
use datafusion::common::{DataFusionError, ScalarValue, exec_datafusion_err, exec_err, internal_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::sum::Sum as Engine;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature,
};

/// A sum of integers on its way.
const WIDE: DataType = DataType::Decimal128(38, 0);

/// `sum`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Sum {
    engine: Engine,
}

impl Sum {
    pub(super) fn new() -> Self {
        Self { engine: Engine::new() }
    }
}

/// What is added up here: values of 64 bits, which no number of rows takes beyond 128, and decimals of 128, of which each step
/// is looked at.
fn is_ours(kind: &DataType) -> bool {
    matches!(kind, DataType::Int64 | DataType::UInt64 | DataType::Decimal128(..))
}

/// A sum on its way to this type.
fn state(kind: &DataType) -> DataType {
    if kind.is_integer() { WIDE } else { kind.clone() }
}

impl AggregateUDFImpl for Sum {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn signature(&self) -> &Signature {
        self.engine.signature()
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        self.engine.return_type(kinds)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if args.is_distinct || !is_ours(args.return_type()) {
            return self.engine.state_fields(args);
        }
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, "sum"), state(args.return_type()), true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let kind = args.return_type().clone();
        if !is_ours(&kind) {
            return self.engine.accumulator(args);
        }
        if args.is_distinct {
            return Ok(Box::new(DistinctTotal { inner: self.engine.accumulator(args)?, kind }));
        }
        Ok(Box::new(Total { sum: 0, count: 0, kind }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let kind = args.return_type().clone();
        if !is_ours(&kind) {
            return self.engine.create_sliding_accumulator(args);
        }
        if args.is_distinct {
            return Ok(Box::new(DistinctTotal { inner: self.engine.create_sliding_accumulator(args)?, kind }));
        }
        Ok(Box::new(Total { sum: 0, count: 0, kind }))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.engine.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let kind = args.return_type().clone();
        if !is_ours(&kind) {
            return self.engine.create_groups_accumulator(args);
        }
        Ok(Box::new(Totals { sums: Vec::new(), seen: BooleanBufferBuilder::new(0), kind }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.engine.documentation()
    }

    fn set_monotonicity(&self, kind: &DataType) -> SetMonotonicity {
        self.engine.set_monotonicity(kind)
    }
}

/// Adds the values of `array` that are there to `sum`; how many there are.
fn add(sum: &mut i128, array: &ArrayRef) -> Result<usize> {
    let more = match array.data_type() {
        DataType::Int64 => {
            let values = array.as_primitive::<Int64Type>();
            match values.null_count() {
                0 => sum_of(values.values()),
                _ => values.iter().flatten().map(i128::from).sum(),
            }
        }
        DataType::UInt64 => array.as_primitive::<UInt64Type>().iter().flatten().map(i128::from).sum(),
        DataType::Decimal128(..) => {
            let mut values = array.as_primitive::<Decimal128Type>().iter().flatten();
            values.try_fold(0_i128, i128::checked_add).ok_or_else(too_great)?
        }
        other => return internal_err!("sum of {other}"),
    };
    *sum = sum.checked_add(more).ok_or_else(too_great)?;
    Ok(array.len() - array.null_count())
}

/// The halves of integers are added up apart, several at a time.
fn sum_of(values: &[i64]) -> i128 {
    let parts = values.chunks(1 << 30).map(|values| {
        let (mut low, mut high) = (0_u64, 0_u64);
        for value in values {
            // Moved up by 2^63, so that none is below zero.
            let moved = value.cast_unsigned() ^ (1 << 63);
            low += moved & 0xffff_ffff;
            high += moved >> 32;
        }
        (i128::from(high) << 32) + i128::from(low) - ((values.len() as i128) << 63)
    });
    parts.sum()
}

pub(crate) fn too_great() -> DataFusionError {
    exec_datafusion_err!("a sum does not fit into {WIDE}: CAST what is added up to DOUBLE")
}

/// `sum` as a value of `kind`, if it fits.
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
        _ => Err(too_great()),
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

/// The sum of all rows, or of those of a window.
#[derive(Debug)]
struct Total {
    sum: i128,
    count: usize,
    kind: DataType,
}

impl Accumulator for Total {
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
        self.sum = self.sum.checked_sub(gone).ok_or_else(too_great)?;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }
}

/// The sum of distinct values, which the engine collects.
#[derive(Debug)]
struct DistinctTotal {
    inner: Box<dyn Accumulator>,
    kind: DataType,
}

impl Accumulator for DistinctTotal {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let (mut sum, mut count) = (0, 0);
        for state in self.inner.state()? {
            let ScalarValue::List(list) = state else { return internal_err!("distinct values are no list") };
            count += add(&mut sum, list.values())?;
        }
        value((count > 0).then_some(sum), &self.kind)
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

/// The sums of groups.
struct Totals {
    sums: Vec<i128>,
    /// The groups that have a value.
    seen: BooleanBufferBuilder,
    kind: DataType,
}

impl Totals {
    fn add<T: ArrowPrimitiveType>(
        &mut self,
        values: &PrimitiveArray<T>,
        groups: &[usize],
        only: Option<&BooleanArray>,
    ) -> Result<()>
    where
        T::Native: Into<i128>,
    {
        let mut fits = true;
        let mut one = |group: usize, value: T::Native| {
            if let Some(sum) = self.sums.get_mut(group) {
                let (more, over) = sum.overflowing_add(value.into());
                (*sum, fits) = (more, fits & !over);
            }
            self.seen.set_bit(group, true);
        };
        match only {
            None if values.null_count() == 0 => {
                groups.iter().zip(values.values()).for_each(|(group, value)| one(*group, *value));
            }
            None => {
                let there = groups.iter().zip(values.iter());
                there.for_each(|(group, value)| value.into_iter().for_each(|value| one(*group, value)));
            }
            Some(only) => {
                let there = groups.iter().zip(values.iter()).zip(only.iter());
                let there = there.filter(|(_, counts)| *counts == Some(true));
                there.for_each(|((group, value), _)| value.into_iter().for_each(|value| one(*group, value)));
            }
        }
        if fits { Ok(()) } else { Err(too_great()) }
    }

    fn emit(&mut self, emit_to: EmitTo, kind: &DataType) -> Result<ArrayRef> {
        let sums = emit_to.take_needed(&mut self.sums);
        let seen = self.seen.finish();
        let (seen, rest) = (seen.slice(0, sums.len()), seen.slice(sums.len(), seen.len() - sums.len()));
        self.seen.append_buffer(&rest);
        let nulls = NullBuffer::new(seen);
        let mut there = sums.iter().zip(nulls.iter()).filter(|(_, seen)| *seen);
        there.try_for_each(|(sum, _)| fitting(*sum, kind).map(|_| ()))?;
        let nulls = (nulls.null_count() > 0).then_some(nulls);
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

impl GroupsAccumulator for Totals {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        only: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        let [values] = values else { return internal_err!("sum of {} columns", values.len()) };
        self.sums.resize(total, 0);
        self.seen.append_n(total.saturating_sub(self.seen.len()), false);
        match values.data_type() {
            DataType::Int64 => self.add(values.as_primitive::<Int64Type>(), groups, only),
            DataType::UInt64 => self.add(values.as_primitive::<UInt64Type>(), groups, only),
            DataType::Decimal128(..) => self.add(values.as_primitive::<Decimal128Type>(), groups, only),
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
        self.sums.capacity() * size_of::<i128>() + self.seen.capacity()
    }
}
