//! Averages of decimals, rounded half away from zero at the last of their digits.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal128Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal256Type, FieldRef, UInt64Type, i256};
use datafusion::common::{DataFusionError, ScalarValue, exec_datafusion_err, internal_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::average::Avg as Engine;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
};

/// `avg`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Average {
    engine: Engine,
}

impl Average {
    pub(super) fn new() -> Self {
        Self { engine: Engine::new() }
    }
}

impl AggregateUDFImpl for Average {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn aliases(&self) -> &[String] {
        self.engine.aliases()
    }

    fn signature(&self) -> &Signature {
        self.engine.signature()
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        self.engine.return_type(kinds)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.engine.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let (rounds, distinct) = (Rounds::to(args.return_type()), args.is_distinct);
        let inner = self.engine.accumulator(args)?;
        Ok(match rounds {
            Some(rounds) => Box::new(OfAll { inner, rounds, distinct }),
            None => inner,
        })
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let (rounds, distinct) = (Rounds::to(args.return_type()), args.is_distinct);
        let inner = self.engine.create_sliding_accumulator(args)?;
        Ok(match rounds {
            Some(rounds) => Box::new(OfAll { inner, rounds, distinct }),
            None => inner,
        })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.engine.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let rounds = Rounds::to(args.return_type());
        let inner = self.engine.create_groups_accumulator(args)?;
        Ok(match rounds {
            Some(rounds) => Box::new(OfGroups { inner, rounds }),
            None => inner,
        })
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.engine.documentation()
    }
}

/// The decimals that averages are rounded to.
#[derive(Debug, Clone, Copy)]
struct Rounds {
    precision: u8,
    scale: i8,
}

impl Rounds {
    fn to(kind: &DataType) -> Option<Self> {
        match kind {
            DataType::Decimal128(precision, scale) => Some(Self { precision: *precision, scale: *scale }),
            _ => None,
        }
    }

    /// `sum / count`, of a sum that has this scale.
    fn average(self, sum: i256, scale: i8, count: u64) -> Result<i128> {
        let ten = i256::from_i128(10);
        let finer = (self.scale - scale).max(0).cast_unsigned();
        let average = ten.checked_pow(finer.into()).and_then(|unit| sum.checked_mul(unit)).and_then(|sum| {
            let count = i256::from_i128(count.into());
            let (whole, rest) = (sum.checked_div(count)?, sum.checked_rem(count)?.checked_abs()?);
            let up = rest >= count - rest;
            let one = i256::from_i128(if sum.is_negative() { -1 } else { 1 });
            if up { whole.checked_add(one) } else { Some(whole) }
        });
        let average = average.and_then(i256::to_i128).ok_or_else(too_great)?;
        if average.unsigned_abs() < 10_u128.pow(self.precision.min(38).into()) { Ok(average) } else { Err(too_great()) }
    }
}

fn too_great() -> DataFusionError {
    exec_datafusion_err!("an average does not fit into a decimal of 38 digits: CAST what is averaged to DOUBLE")
}

/// Decimals in 256 bits, and their scale.
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

/// The average of all rows, or of those of a window.
#[derive(Debug)]
struct OfAll {
    /// Its state is how many there are and their sum, or the distinct values.
    inner: Box<dyn Accumulator>,
    rounds: Rounds,
    distinct: bool,
}

impl Accumulator for OfAll {
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
        let Rounds { precision, scale } = self.rounds;
        let state = self.inner.state()?;
        let (sum, own, count) = match (state.as_slice(), self.distinct) {
            ([ScalarValue::List(values)], true) => {
                let (values, own) = wide(values.values())?;
                let values = values.as_primitive::<Decimal256Type>();
                let sum = values.iter().flatten().try_fold(i256::ZERO, i256::checked_add).ok_or_else(too_great)?;
                (Some(sum), own, (values.len() - values.null_count()) as u64)
            }
            ([ScalarValue::UInt64(count), sum], false) => {
                let (sum, own) = wide(&sum.to_array()?)?;
                (sum.as_primitive::<Decimal256Type>().iter().next().flatten(), own, count.unwrap_or(0))
            }
            _ => return internal_err!("avg has another state"),
        };
        let average = match sum {
            Some(sum) if count > 0 => Some(self.rounds.average(sum, own, count)?),
            _ => None,
        };
        Ok(ScalarValue::Decimal128(average, precision, scale))
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

/// The averages of groups.
struct OfGroups {
    inner: Box<dyn GroupsAccumulator>,
    rounds: Rounds,
}

impl GroupsAccumulator for OfGroups {
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
