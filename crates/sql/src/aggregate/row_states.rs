//! Aggregate states by row, for functions whose states over a row's records are cheap.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, AsArray, BooleanArray, Decimal128Array, Int64Array, PrimitiveArray,
    RecordBatch, UInt64Array,
};
use arrow::compute::{cast, filter, filter_record_batch, nullif};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Decimal128Type, Float64Type, Int64Type, UInt64Type};
use datafusion::common::DataFusionError;
use datafusion::error::Result;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_plan::PhysicalExpr;
use tidetable_functions::{float_row_states, sum_overflow};
use tidetable_layout::decode::record_counts;

/// Values added or compared in parallel lanes.
const LANES: usize = 8;

/// A function whose states by row are made here; DataFusion merges them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowState {
    /// `count(*)`: the number of records, whatever their values are.
    Records,
    /// `count(x)`: number of records with a value.
    Values,
    /// `sum(x)` in this decimal, which is wide enough for any sum of integers.
    Sum(DataType),
    /// `sum(x)` of floats, in two columns: the sum of those that are decimals, and of all others.
    FloatSum,
    /// `avg(x)`: count, and sum in this decimal.
    Average(DataType),
    /// `avg(x)` of floats: count, and the columns of the sum.
    FloatAverage,
    /// `min(x)` or `max(x)`, `greatest`, of the type of its argument.
    Bound { kind: DataType, greatest: bool },
}

/// An argument of a function, by row.
pub(crate) enum RowArgument<'a> {
    /// The values of all rows, and the end of each row.
    Values(&'a ArrayRef, &'a [u32]),
    /// The sum of each row, without null values, and the end of each row.
    Sums(&'a ArrayRef, &'a [u32]),
}

/// The columns that a row's records share, and the states of each function by row.
pub(crate) struct RowStates {
    pub(crate) rows: RecordBatch,
    pub(crate) states: Vec<Vec<ArrayRef>>,
}

impl RowStates {
    /// The rows set in `kept`.
    pub(crate) fn filter(self, kept: &BooleanArray) -> Result<Self> {
        if kept.true_count() == kept.len() {
            return Ok(self);
        }
        let mut states = Vec::with_capacity(self.states.len());
        for arrays in &self.states {
            states.push(arrays.iter().map(|array| filter(array, kept)).collect::<std::result::Result<_, _>>()?);
        }

        Ok(Self { rows: filter_record_batch(&self.rows, kept)?, states })
    }
}

/// The error of a state whose type differs from the plan's; it cannot occur, because types are checked at planning.
pub(crate) fn type_mismatch() -> DataFusionError {
    DataFusionError::Internal("a state by row has another type".to_owned())
}

impl RowState {
    /// The state of `function` over these arguments, without a filter; `None` for other functions.
    pub(crate) fn of(function: &AggregateFunctionExpr, arguments: &[Arc<dyn PhysicalExpr>]) -> Option<Self> {
        let [argument] = arguments else { return None };
        let states = function.state_fields().ok()?;
        let types: Vec<&DataType> = states.iter().map(|state| state.data_type()).collect();
        match (function.fun().name(), types.as_slice()) {
            ("count", [DataType::Int64]) => match argument.downcast_ref::<Literal>() {
                Some(value) if value.value().is_null() => None,
                Some(_) => Some(Self::Records),
                None => Some(Self::Values),
            },
            ("sum", [kind @ DataType::Decimal128(..)]) => Some(Self::Sum((*kind).clone())),
            ("sum", [DataType::Decimal128(..), DataType::Binary]) => Some(Self::FloatSum),
            ("avg", [DataType::UInt64, kind @ DataType::Decimal128(..)]) => Some(Self::Average((*kind).clone())),
            ("avg", [DataType::UInt64, DataType::Decimal128(..), DataType::Binary]) => Some(Self::FloatAverage),
            (
                name @ ("min" | "max"),
                [kind @ (DataType::Float64 | DataType::Int64 | DataType::UInt64 | DataType::Decimal128(..))],
            ) => Some(Self::Bound { kind: (*kind).clone(), greatest: name == "max" }),
            _ => None,
        }
    }

    /// Whether the sums and counts of rows are all it needs.
    pub(crate) fn is_of_sums(&self) -> bool {
        !matches!(self, Self::Bound { .. })
    }

    /// Whether it needs the values of its argument, and not only how many records there are.
    pub(crate) fn looks_at_values(&self) -> bool {
        *self != Self::Records
    }

    /// The states of each row: counts and sums, null without a value. `ends`: the end of each row's records.
    ///
    /// # Errors
    /// If the argument has another type, or a sum overflows.
    pub(crate) fn states(&self, ends: &[u32], argument: Option<&RowArgument<'_>>) -> Result<Vec<ArrayRef>> {
        let argument = || argument.ok_or_else(type_mismatch);

        Ok(match self {
            Self::Records => vec![count_array(record_counts(ends))],
            Self::Values => vec![count_array(argument()?.counts())],
            Self::Sum(kind) => vec![argument()?.sums(kind)?],
            Self::FloatSum => argument()?.float_sums()?.to_vec(),
            Self::Average(kind) => vec![argument()?.counts_of_average(), argument()?.sums(kind)?],
            Self::FloatAverage => {
                let mut states = vec![argument()?.counts_of_average()];
                states.extend(argument()?.float_sums()?);
                states
            }
            Self::Bound { kind, greatest } => vec![argument()?.bounds(kind, *greatest)?],
        })
    }
}

impl RowArgument<'_> {
    /// Count of the values that are not null, for each row.
    fn counts(&self) -> Vec<usize> {
        match self {
            Self::Sums(_, ends) => record_counts(ends).collect(),
            Self::Values(values, ends) => match values.logical_nulls() {
                Some(nulls) => {
                    rows(ends).map(|row| row.len() - nulls.slice(row.start, row.len()).null_count()).collect()
                }
                None => record_counts(ends).collect(),
            },
        }
    }

    /// The counts in the state of `avg`, which are null without a value, as in DataFusion.
    fn counts_of_average(&self) -> ArrayRef {
        let counts = self.counts().into_iter().map(|count| (count > 0).then_some(count as u64));
        Arc::new(counts.collect::<UInt64Array>())
    }

    /// The exact sums of the floats of each row: of those that are decimals, and of all others.
    fn float_sums(&self) -> Result<[ArrayRef; 2]> {
        match self {
            Self::Values(values, ends) => {
                let floats = values.as_primitive_opt::<Float64Type>().ok_or_else(type_mismatch)?;
                Ok(float_row_states(floats, ends))
            }
            // Stored sums are decimals, or they would not stand for the values.
            Self::Sums(sums, ends) => {
                let sums = nullif(sums, &without_records(ends))?;
                let floats = sums.as_primitive_opt::<Float64Type>().ok_or_else(type_mismatch)?;
                let each: Vec<u32> = (1..=floats.len() as u32).collect();
                Ok(float_row_states(floats, &each))
            }
        }
    }

    /// Sum of the values of each row, of type `kind`; null for a row without values.
    fn sums(&self, kind: &DataType) -> Result<ArrayRef> {
        let sums: ArrayRef = match (self, kind) {
            (Self::Sums(sums, ends), _) => {
                let sums = nullif(sums, &without_records(ends))?;
                if sums.data_type().is_integer() { cast(&sums, kind)? } else { sums }
            }
            (Self::Values(values, ends), DataType::Decimal128(_, scale)) => match values.data_type() {
                DataType::Int64 => add_wide::<Int64Type>(values, ends, *scale)?,
                DataType::UInt64 => add_wide::<UInt64Type>(values, ends, *scale)?,
                _ => add_wide::<Decimal128Type>(values, ends, *scale)?,
            },
            _ => return Err(type_mismatch()),
        };

        if let (DataType::Decimal128(precision, scale), Some(decimals)) =
            (kind, sums.as_primitive_opt::<Decimal128Type>())
        {
            // Planning casts arguments of another scale.
            if decimals.scale() != *scale {
                return Err(type_mismatch());
            }
            return Ok(Arc::new(decimals.clone().with_data_type(DataType::Decimal128(*precision, *scale))));
        }
        if sums.data_type() == kind { Ok(sums) } else { Err(type_mismatch()) }
    }
}

impl RowArgument<'_> {
    /// The least or the greatest value of each row; null for a row without values.
    fn bounds(&self, kind: &DataType, greatest: bool) -> Result<ArrayRef> {
        let Self::Values(values, ends) = self else { return Err(type_mismatch()) };
        if values.data_type() != kind {
            return Err(type_mismatch());
        }
        let found = match kind {
            DataType::Float64 => bounds::<Float64Type>(values, ends, greatest),
            DataType::Int64 => bounds::<Int64Type>(values, ends, greatest),
            DataType::UInt64 => bounds::<UInt64Type>(values, ends, greatest),
            _ => bounds::<Decimal128Type>(values, ends, greatest),
        };
        found.ok_or_else(type_mismatch)
    }
}

/// The least or greatest of the non-null values of each row, in total order: a NaN is the greatest.
fn bounds<T: ArrowPrimitiveType>(values: &ArrayRef, ends: &[u32], greatest: bool) -> Option<ArrayRef> {
    match greatest {
        true => fold::<T>(values, ends, |own| best(own, |a, b| if a.is_lt(b) { b } else { a })),
        false => fold::<T>(values, ends, |own| best(own, |a, b| if b.is_lt(a) { b } else { a })),
    }
}

/// The value of `values` that `better` prefers to all others; the default of `N` without values.
fn best<N: Copy + Default>(values: &[N], better: impl Fn(N, N) -> N) -> N {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let lanes = chunks.iter().copied().reduce(|mut lanes, chunk| {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane = better(*lane, value));
        lanes
    });
    lanes.iter().flatten().chain(rest).copied().reduce(better).unwrap_or_default()
}

/// What `fold` makes of the values of each row that are not null; null for a row without them.
fn fold<T: ArrowPrimitiveType>(
    values: &ArrayRef,
    ends: &[u32],
    fold: impl Fn(&[T::Native]) -> T::Native,
) -> Option<ArrayRef> {
    let array = values.as_primitive_opt::<T>()?;
    let all = array.values();
    let mut present = Vec::new();
    let folded = |row: Range<usize>| {
        if array.null_count() == 0 {
            return (!row.is_empty()).then(|| fold(all.get(row).unwrap_or_default()));
        }
        present.clear();
        present.extend(row.filter(|at| array.is_valid(*at)).filter_map(|at| all.get(at).copied()));
        (!present.is_empty()).then(|| fold(&present))
    };

    let sums: PrimitiveArray<T> = rows(ends).map(folded).collect();
    Some(Arc::new(sums.with_data_type(array.data_type().clone())))
}

/// Adds the values of each row in 128 bits; a sum that does not fit is an error.
fn add_wide<T: ArrowPrimitiveType>(values: &ArrayRef, ends: &[u32], scale: i8) -> Result<ArrayRef>
where
    T::Native: Into<i128>,
{
    let array = values.as_primitive_opt::<T>().ok_or_else(type_mismatch)?;
    let all = array.values();

    let mut sums = Vec::with_capacity(ends.len());
    for row in rows(ends) {
        let (mut sum, mut count) = (0_i128, 0_usize);
        let start = row.start;
        for (at, value) in all.get(row).unwrap_or_default().iter().enumerate() {
            if array.null_count() == 0 || array.is_valid(start + at) {
                sum = sum.checked_add((*value).into()).ok_or_else(sum_overflow)?;
                count += 1;
            }
        }
        sums.push((count > 0).then_some(sum));
    }

    let sums = Decimal128Array::from(sums);
    Ok(Arc::new(sums.with_data_type(match array.data_type() {
        decimal @ DataType::Decimal128(..) => decimal.clone(),
        _ => DataType::Decimal128(38, scale),
    })))
}

/// The rows that have no records.
fn without_records(ends: &[u32]) -> BooleanArray {
    record_counts(ends).map(|count| Some(count == 0)).collect()
}

/// Counts as the state of a function that counts.
fn count_array(counts: impl IntoIterator<Item = usize>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(counts.into_iter().map(|count| count as i64)))
}

/// The range of records of each row; `ends` has the end of each.
fn rows(ends: &[u32]) -> impl Iterator<Item = Range<usize>> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    ends.iter().zip(starts).map(|(end, start)| start as usize..(*end).max(start) as usize)
}
