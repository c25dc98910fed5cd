//! Outliers of a column: its few greatest and least values with their records, stored beside all values.
//!
//! A filter for readings over a high bound would have to decode every page of the column, because nearly every page has one.
//! No record outside the outliers exceeds their bound, so a filter that no value within the bounds can pass is answered
//! from the outliers alone. They are stored for long columns of numbers and times: about one value in 256 at each end,
//! some hundredths of a byte per value.
//!
//! ```text
//! outliers  nothing, or for each column its greatest, then its least:
//!           stored u8 | if 1: bound | count varint | a stream of records | a stream of values
//! ```
//! Records are indices in the group, ascending: exactly those with values greater than the bound (less, for the least). A
//! column with a NaN has no outliers.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, UInt32Array};
use arrow::compute::{concat, take};
use arrow::datatypes::{Date32Type, Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type};
use tidetable_layout::{Column, FieldType, Group, ValueType};

use crate::coding::{Input, put_varint};
use crate::column;
use crate::column::Target;
use crate::column::stream::{PageSource, Stream};
use crate::error::{FilePart, ReadError, WriteError};
use crate::stats::{ColumnMeta, Scalar};

/// Minimum number of values of a column with outliers; smaller columns decode fast anyway.
const MIN_PRESENT: u64 = 16_384;
/// About one value in so many is an outlier at each end.
const SHARE: usize = 256;
/// If more than one value in so many exceeds a bound, the sample was not representative and no outliers are stored.
const MAX_SHARE: usize = 64;
/// Sampled values that determine the bounds.
const SAMPLE: usize = 4096;

/// The outliers at one end of a column.
#[derive(Debug, Clone)]
pub(crate) struct FoundOutliers {
    /// The bound that all outliers exceed.
    bound: Scalar,
    /// Records, ascending.
    places: Vec<u32>,
}

/// The greatest and the least end of a column.
pub(crate) type Ends<T> = [Option<T>; 2];

/// Finds the outliers of each column; empty if no column has any.
pub(crate) fn of_group<'a>(
    group: &Group,
    columns: impl Iterator<Item = (&'a ArrayRef, &'a ColumnMeta)>,
) -> Vec<Ends<FoundOutliers>> {
    let of_column = |((array, meta), column): ((&ArrayRef, &ColumnMeta), &Column)| {
        // A column with a range has no NaN.
        let told = meta.present >= MIN_PRESENT && meta.range.is_some() && column.merge.is_newest();
        if told { of_column(array, column.value) } else { [None, None] }
    };
    let all: Vec<_> = columns.zip(&group.columns).map(of_column).collect();
    if all.iter().flatten().all(Option::is_none) { Vec::new() } else { all }
}

fn of_column(array: &ArrayRef, kind: ValueType) -> Ends<FoundOutliers> {
    let ValueType::Field(kind) = kind else { return [None, None] };
    match kind {
        FieldType::UInt64 => ends(array.as_primitive::<UInt64Type>(), Scalar::UInt64),
        FieldType::Int64 => ends(array.as_primitive::<Int64Type>(), Scalar::Int64),
        FieldType::Float64 => ends(array.as_primitive::<Float64Type>(), Scalar::Float64),
        FieldType::Decimal { .. } => ends(array.as_primitive::<Decimal128Type>(), Scalar::Decimal),
        FieldType::Timestamp => ends(array.as_primitive::<TimestampMicrosecondType>(), Scalar::Timestamp),
        FieldType::Date => ends(array.as_primitive::<Date32Type>(), Scalar::Date),
        FieldType::Text | FieldType::Bool => [None, None],
    }
}

fn ends<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, of: fn(T::Native) -> Scalar) -> Ends<FoundOutliers>
where
    T::Native: PartialOrd,
{
    let sample = sample(array);
    let rank = sample.len() / SHARE;
    let (Some(low), Some(high)) = (sample.get(rank), sample.get(sample.len().saturating_sub(rank + 1))) else {
        return [None, None];
    };
    let kept = |bound: T::Native, places: Vec<u32>| {
        let few = !places.is_empty() && places.len() <= array.len() / MAX_SHARE;
        few.then(|| FoundOutliers { bound: of(bound), places })
    };
    [kept(*high, beyond(array, |value| value > *high)), kept(*low, beyond(array, |value| value < *low))]
}

/// A deterministic sorted sample, spread over the column so that periodic values do not bias it.
fn sample<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> Vec<T::Native>
where
    T::Native: PartialOrd,
{
    let place = |at: u64| {
        // Multiples of the golden ratio, in units of 2^-32 of the column.
        let step = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        ((step * array.len() as u64) >> 32) as usize
    };
    let places = (0..SAMPLE.min(array.len()) as u64).map(place).filter(|place| array.is_valid(*place));
    let mut sample: Vec<T::Native> = places.map(|place| array.value(place)).collect();
    sample.sort_unstable_by(|one, other| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
    sample
}

/// The records whose values satisfy the predicate.
fn beyond<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, passes: impl Fn(T::Native) -> bool) -> Vec<u32> {
    let mut places = Vec::new();
    // Most blocks have none, which is checked first.
    const BLOCK: usize = 64;
    for (block, values) in array.values().chunks(BLOCK).enumerate() {
        if values.iter().fold(false, |any, value| any | passes(*value)) {
            let found = values.iter().enumerate().filter(|(_, value)| passes(**value));
            places.extend(found.map(|(at, _)| (block * BLOCK + at) as u32));
        }
    }
    if array.null_count() > 0 {
        places.retain(|place| array.is_valid(*place as usize));
    }
    places
}

/// Appends the outliers that [`of_group`] found in `columns`.
pub(crate) fn put(
    target: &mut Target<'_>,
    (index, group): (usize, &Group),
    columns: &[ArrayRef],
    all: Vec<Ends<FoundOutliers>>,
) -> Result<(), WriteError> {
    let few = |_| WriteError::Shape { group: index, what: "values are fewer than the records" };
    for ((array, column), ends) in columns.iter().zip(&group.columns).zip(all) {
        for end in ends {
            target.head.push(u8::from(end.is_some()));
            let (Some(end), ValueType::Field(kind)) = (end, column.value) else { continue };
            end.bound.put(target.head, kind);
            put_varint(target.head, end.places.len() as u64);
            column::put_gapless(target, &end.places)?;
            let beyond = take(array.as_ref(), &UInt32Array::from(end.places), None).map_err(few)?;
            column::put(target, &beyond, column.value)?;
        }
    }
    Ok(())
}

/// The decoded entry of the outliers at one end.
#[derive(Debug)]
pub(crate) struct StoredOutliers {
    bound: Scalar,
    places: Stream,
    values: Stream,
}

impl StoredOutliers {
    pub(crate) fn streams(&self) -> [&Stream; 2] {
        [&self.places, &self.values]
    }

    /// The bound of all other values, in either order of zeros.
    fn rest(&self, greatest: bool) -> Scalar {
        match self.bound {
            Scalar::Float64(0.0) => Scalar::Float64(if greatest { 0.0 } else { -0.0 }),
            bound => bound,
        }
    }

    /// Records and their values.
    fn read(
        &self,
        source: &PageSource<'_>,
        kind: ValueType,
        records: usize,
    ) -> Result<(Vec<u32>, ArrayRef), ReadError> {
        let count = self.places.records;
        let places = column::read_gapless::<u32>(source, &self.places, 0..count)?;
        let sound =
            places.is_sorted_by(|one, next| one < next) && places.last().is_none_or(|last| (*last as usize) < records);
        if !sound {
            return Err(self.places.setup.corrupt());
        }
        Ok((places, column::read(source, &self.values, kind, 0..count)?))
    }
}

/// Reads the entries of [`put`] for each column of `group`, or none.
pub(crate) fn read_entries(
    input: &mut Input,
    (index, group): (usize, &Group),
    records: usize,
    next: &mut u64,
) -> Result<Vec<Ends<StoredOutliers>>, ReadError> {
    if input.left() == 0 {
        return Ok(Vec::new());
    }
    let mut entry = |at: usize, column: &Column| match (input.u8()?, column.value) {
        (0, _) => Ok(None),
        (1, ValueType::Field(kind)) => {
            let part = FilePart::Outliers { group: index, column: at };
            let bound = Scalar::read(input, kind)?;
            let count = input.count(records)?;
            let places = Stream::read(input, part, count, next)?;
            let values = Stream::read(input, part, count, next)?;
            Ok(Some(StoredOutliers { bound, places, values }))
        }
        _ => Err(input.corrupt()),
    };
    group.columns.iter().enumerate().map(|(at, column)| Ok([entry(at, column)?, entry(at, column)?])).collect()
}

/// The candidate records of a filter, ascending, with their values, if outliers contain all candidates. `is_transient`: whether a
/// value in a range can pass.
pub(crate) fn passing(
    source: &PageSource<'_>,
    [greatest, least]: &Ends<StoredOutliers>,
    (kind, records): (ValueType, usize),
    (low, high): (Scalar, Scalar),
    is_transient: impl Fn((Scalar, Scalar)) -> bool,
) -> Result<Option<(Vec<u32>, ArrayRef)>, ReadError> {
    let (below, above) = (greatest.as_ref().map(|end| end.rest(true)), least.as_ref().map(|end| end.rest(false)));
    match ((greatest, below), (least, above)) {
        ((Some(greatest), Some(below)), _) if !is_transient((low, below)) => {
            greatest.read(source, kind, records).map(Some)
        }
        (_, (Some(least), Some(above))) if !is_transient((above, high)) => least.read(source, kind, records).map(Some),
        ((Some(greatest), Some(below)), (Some(least), Some(above))) if !is_transient((above, below)) => {
            let (one, other) = (least.read(source, kind, records)?, greatest.read(source, kind, records)?);
            merge(one, other).map(Some).ok_or_else(|| least.places.setup.corrupt())
        }
        _ => Ok(None),
    }
}

/// Merges two lists in record order.
fn merge(one: (Vec<u32>, ArrayRef), other: (Vec<u32>, ArrayRef)) -> Option<(Vec<u32>, ArrayRef)> {
    let all = concat(&[one.1.as_ref(), other.1.as_ref()]).ok()?;
    let places: Vec<u32> = one.0.into_iter().chain(other.0).collect();
    let mut order: Vec<u32> = (0..places.len() as u32).collect();
    order.sort_unstable_by_key(|at| places.get(*at as usize));
    let sorted = order.iter().filter_map(|at| places.get(*at as usize).copied()).collect();
    Some((sorted, take(all.as_ref(), &UInt32Array::from(order), None).ok()?))
}

/// Whether the stored outliers are exactly the values beyond the bounds.
pub(crate) fn hold(
    source: &PageSource<'_>,
    ends: &Ends<StoredOutliers>,
    kind: ValueType,
    values: &ArrayRef,
) -> Result<bool, ReadError> {
    for (at, end) in ends.iter().enumerate() {
        let Some(end) = end else { continue };
        let (places, kept) = end.read(source, kind, values.len())?;
        let expected = all_beyond(values, end.bound, at == 0);
        let alike = take(values.as_ref(), &UInt32Array::from(places.clone()), None).is_ok_and(|found| found == kept);
        if expected != Some(places) || !alike {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The records beyond `bound`; `None` if it is of another type.
fn all_beyond(values: &ArrayRef, bound: Scalar, greatest: bool) -> Option<Vec<u32>> {
    fn all<T: ArrowPrimitiveType>(values: &ArrayRef, bound: T::Native, greatest: bool) -> Option<Vec<u32>>
    where
        T::Native: PartialOrd,
    {
        let array = values.as_primitive_opt::<T>()?;
        Some(if greatest { beyond(array, |value| value > bound) } else { beyond(array, |value| value < bound) })
    }
    match bound {
        Scalar::UInt64(bound) => all::<UInt64Type>(values, bound, greatest),
        Scalar::Int64(bound) => all::<Int64Type>(values, bound, greatest),
        Scalar::Float64(bound) => all::<Float64Type>(values, bound, greatest),
        Scalar::Decimal(bound) => all::<Decimal128Type>(values, bound, greatest),
        Scalar::Timestamp(bound) => all::<TimestampMicrosecondType>(values, bound, greatest),
        Scalar::Date(bound) => all::<Date32Type>(values, bound, greatest),
    }
}
