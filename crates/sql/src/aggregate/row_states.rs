//! States of aggregates by row: what the records of each row add up to, for functions of which that is soon told.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array, PrimitiveArray, RecordBatch, UInt64Array,
};
use arrow::compute::{cast, filter, filter_record_batch, nullif};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Decimal128Type, Float64Type, Int64Type, UInt64Type};
use datafusion::common::DataFusionError;
use datafusion::error::Result;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_plan::PhysicalExpr;
use tidetable_layout::decode::record_counts;

use crate::functions::totals::too_great;

/// Floats that are added side by side.
const LANES: usize = 8;

/// A function whose states by row are made here, and merged as the engine merges states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowState {
    /// How many records there are.
    Records,
    /// How many have a value.
    Values,
    /// The sum, of this type: of integers a decimal, which all sums of them fit into.
    Sum(DataType),
    /// How many floats there are, and their sum.
    Average,
}

/// An argument of a function, by row.
pub(crate) enum RowArgument<'a> {
    /// The values of all rows, and where those of each row end.
    Values(&'a ArrayRef, &'a [u32]),
    /// The sum of each row, none of whose values is null, and where values would end.
    Sums(&'a ArrayRef, &'a [u32]),
}

/// What rows share, and the states of each function for each of them.
pub(crate) struct RowStates {
    pub(crate) rows: RecordBatch,
    pub(crate) states: Vec<Vec<ArrayRef>>,
}

impl RowStates {
    /// The rows that `kept` says.
    pub(crate) fn filter(self, kept: &BooleanArray) -> Result<Self> {
        if kept.true_count() == kept.len() {
            return Ok(self);
        }
        let of_function = |states: &Vec<ArrayRef>| states.iter().map(|array| filter(array, kept)).collect();
        let states = self.states.iter().map(of_function).collect::<std::result::Result<_, _>>()?;
        Ok(Self { rows: filter_record_batch(&self.rows, kept)?, states })
    }
}

/// What cannot be, for types have been looked at.
pub(crate) fn unlike() -> DataFusionError {
    DataFusionError::Internal("a state of rows is of another type".to_owned())
}

impl RowState {
    /// The state of `function` of these arguments, all of whose records count; `None` if it is of another kind.
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
            ("sum", [kind @ (DataType::Float64 | DataType::Decimal128(..))]) => Some(Self::Sum((*kind).clone())),
            ("avg", [DataType::UInt64, DataType::Float64]) => Some(Self::Average),
            _ => None,
        }
    }

    /// Whether an argument must be there.
    pub(crate) fn looks_at_values(&self) -> bool {
        *self != Self::Records
    }

    /// The states of each row, of which `ends` says where its records end: numbers and sums, null where there is no value.
    ///
    /// # Errors
    /// If the argument is of another type, or a sum does not fit.
    pub(crate) fn states(&self, ends: &[u32], argument: Option<&RowArgument<'_>>) -> Result<Vec<ArrayRef>> {
        let numbers = |counts: Vec<usize>| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(counts.iter().map(|count| *count as i64)))
        };
        let argument = || argument.ok_or_else(unlike);
        Ok(match self {
            Self::Records => vec![numbers(record_counts(ends).collect())],
            Self::Values => vec![numbers(argument()?.counts())],
            Self::Sum(kind) => vec![argument()?.sums(kind)?],
            Self::Average => {
                // Where there is no value both are null, as the engine would leave them.
                let counts = argument()?.counts().into_iter().map(|count| (count > 0).then_some(count as u64));
                vec![Arc::new(counts.collect::<UInt64Array>()), argument()?.sums(&DataType::Float64)?]
            }
        })
    }
}

impl RowArgument<'_> {
    /// How many values each row has.
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

    /// The sum of each row.
    fn sums(&self, kind: &DataType) -> Result<ArrayRef> {
        let sums: ArrayRef = match (self, kind) {
            (Self::Sums(sums, ends), _) => {
                let empty = record_counts(ends).map(|count| Some(count == 0)).collect();
                let sums = nullif(sums, &empty)?;
                if sums.data_type().is_integer() { cast(&sums, kind)? } else { sums }
            }
            (Self::Values(values, ends), DataType::Float64) => {
                add::<Float64Type>(values, ends, add_floats).ok_or_else(unlike)?
            }
            (Self::Values(values, ends), DataType::Decimal128(_, scale)) => match values.data_type() {
                DataType::Int64 => add_wide::<Int64Type>(values, ends, *scale)?,
                DataType::UInt64 => add_wide::<UInt64Type>(values, ends, *scale)?,
                _ => add_wide::<Decimal128Type>(values, ends, *scale)?,
            },
            _ => return Err(unlike()),
        };
        if let (DataType::Decimal128(precision, scale), Some(decimals)) =
            (kind, sums.as_primitive_opt::<Decimal128Type>())
        {
            // An argument of another scale would have been cast.
            if decimals.scale() != *scale {
                return Err(unlike());
            }
            return Ok(Arc::new(decimals.clone().with_data_type(DataType::Decimal128(*precision, *scale))));
        }
        if sums.data_type() == kind { Ok(sums) } else { Err(unlike()) }
    }
}

/// Adds the values of each row that are there.
fn add<T: ArrowPrimitiveType>(
    values: &ArrayRef,
    ends: &[u32],
    add: impl Fn(&[T::Native]) -> T::Native,
) -> Option<ArrayRef> {
    let array = values.as_primitive_opt::<T>()?;
    let all = array.values();
    let mut present = Vec::new();
    let sum = |row: Range<usize>| {
        if array.null_count() == 0 {
            return (!row.is_empty()).then(|| add(all.get(row).unwrap_or_default()));
        }
        present.clear();
        present.extend(row.filter(|at| array.is_valid(*at)).filter_map(|at| all.get(at).copied()));
        (!present.is_empty()).then(|| add(&present))
    };
    let sums: PrimitiveArray<T> = rows(ends).map(sum).collect();
    Some(Arc::new(sums.with_data_type(array.data_type().clone())))
}

/// Adds up in 128 bits.
fn add_wide<T: ArrowPrimitiveType>(values: &ArrayRef, ends: &[u32], scale: i8) -> Result<ArrayRef>
where
    T::Native: Into<i128>,
{
    let array = values.as_primitive_opt::<T>().ok_or_else(unlike)?;
    let all = array.values();
    let sum = |row: Range<usize>| {
        let (mut sum, mut count) = (0_i128, 0_usize);
        let start = row.start;
        for (at, value) in all.get(row).unwrap_or_default().iter().enumerate() {
            if array.null_count() == 0 || array.is_valid(start + at) {
                sum = sum.checked_add((*value).into()).ok_or_else(too_great)?;
                count += 1;
            }
        }
        Ok((count > 0).then_some(sum))
    };
    let sums: Decimal128Array = rows(ends).map(sum).collect::<Result<_>>()?;
    Ok(Arc::new(sums.with_data_type(match array.data_type() {
        decimal @ DataType::Decimal128(..) => decimal.clone(),
        _ => DataType::Decimal128(38, scale),
    })))
}

fn add_floats(values: &[f64]) -> f64 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane += value);
    }
    lanes.iter().chain(rest).sum()
}

/// The records of each row.
fn rows(ends: &[u32]) -> impl Iterator<Item = Range<usize>> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    ends.iter().zip(starts).map(|(end, start)| start as usize..(*end).max(start) as usize)
}
