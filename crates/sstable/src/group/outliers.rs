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
use tidetable_layout::{FieldType, Group, ValueType};

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
/// This many values, spread over the column, are sorted to find the bounds.
const SAMPLE: usize = 4096;
/// In records. Most blocks of this size have no outlier, which is tested first, in vector instructions.
const BLOCK: usize = 64;

/// The outliers that a writer found at one end of a column.
#[derive(Debug, Clone)]
pub(crate) struct FoundOutliers {
    /// The bound that all outliers exceed, and no other value does.
    bound: Scalar,
    /// The indices of their records in the group, ascending.
    records: Vec<u32>,
}

/// Records of a group, ascending, with their values of one column.
pub(crate) struct RecordValues {
    pub(crate) records: Vec<u32>,
    pub(crate) values: ArrayRef,
}

/// The outliers at the greatest and at the least end of a column.
pub(crate) type Ends<T> = [Option<T>; 2];

/// Finds the outliers of each column, given its values and statistics. Empty if no column has any, so that nothing is stored.
pub(crate) fn of_group<'a>(
    group: &Group,
    columns: impl Iterator<Item = (&'a ArrayRef, &'a ColumnMeta)>,
) -> Vec<Ends<FoundOutliers>> {
    let mut found = Vec::with_capacity(group.columns.len());
    for ((array, meta), column) in columns.zip(&group.columns) {
        // A column with a range has no NaN.
        let is_long = meta.present >= MIN_PRESENT && meta.range.is_some() && column.merge.is_newest();
        found.push(if is_long { of_column(array, column.value) } else { [None, None] });
    }
    if found.iter().flatten().all(Option::is_none) { Vec::new() } else { found }
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

    [
        found(array, of(*high), beyond(array, |value| value > *high)),
        found(array, of(*low), beyond(array, |value| value < *low)),
    ]
}

/// The outliers `records` beyond `bound`; `None` if there are none, or too many.
fn found<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, bound: Scalar, records: Vec<u32>) -> Option<FoundOutliers> {
    let are_few = !records.is_empty() && records.len() <= array.len() / MAX_SHARE;
    are_few.then_some(FoundOutliers { bound, records })
}

/// A deterministic sorted sample, spread over the column so that periodic values do not bias it.
fn sample<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> Vec<T::Native>
where
    T::Native: PartialOrd,
{
    let count = SAMPLE.min(array.len());
    let mut sample: Vec<T::Native> = Vec::with_capacity(count);
    for index in 0..count as u64 {
        // Multiples of the golden ratio, in units of 2^-32 of the column.
        let step = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let record = ((step * array.len() as u64) >> 32) as usize;
        if array.is_valid(record) {
            sample.push(array.value(record));
        }
    }
    sample.sort_unstable_by(|one, other| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
    sample
}

/// The non-null records whose values satisfy the predicate, ascending.
fn beyond<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, passes: impl Fn(T::Native) -> bool) -> Vec<u32> {
    let mut records = Vec::new();
    for (block, values) in array.values().chunks(BLOCK).enumerate() {
        if values.iter().fold(false, |any, value| any | passes(*value)) {
            let found = values.iter().enumerate().filter(|(_, value)| passes(**value));
            records.extend(found.map(|(index, _)| (block * BLOCK + index) as u32));
        }
    }

    if array.null_count() > 0 {
        records.retain(|record| array.is_valid(*record as usize));
    }
    records
}

/// Appends the outliers that [`of_group`] found in `columns`, which are those of group `index`.
///
/// # Errors
/// If an encoder fails.
pub(crate) fn put(
    target: &mut Target<'_>,
    index: usize,
    group: &Group,
    columns: &[ArrayRef],
    all: Vec<Ends<FoundOutliers>>,
) -> Result<(), WriteError> {
    for ((array, column), ends) in columns.iter().zip(&group.columns).zip(all) {
        for end in ends {
            target.head.push(u8::from(end.is_some()));
            let (Some(end), ValueType::Field(kind)) = (end, column.value) else { continue };
            end.bound.put(target.head, kind);
            put_varint(target.head, end.records.len() as u64);
            column::put_gapless(target, &end.records)?;

            let beyond = take(array.as_ref(), &UInt32Array::from(end.records), None)
                .map_err(|_| WriteError::Shape { group: index, what: "values are fewer than the records" })?;
            column::put(target, &beyond, column.value)?;
        }
    }
    Ok(())
}

/// The decoded entry of the outliers at one end of a column.
#[derive(Debug)]
pub(crate) struct StoredOutliers {
    bound: Scalar,
    records: Stream,
    values: Stream,
}

impl StoredOutliers {
    /// Reads the entry of one end of a column of type `kind` in a group of `records` records; `None` if it has no outliers.
    fn read_entry(
        input: &mut Input,
        part: FilePart,
        kind: ValueType,
        records: usize,
        next: &mut u64,
    ) -> Result<Option<Self>, ReadError> {
        match (input.u8()?, kind) {
            (0, _) => Ok(None),
            (1, ValueType::Field(kind)) => {
                let bound = Scalar::read(input, kind)?;
                let count = input.count(records)?;
                let records = Stream::read(input, part, count, next)?;
                let values = Stream::read(input, part, count, next)?;
                Ok(Some(Self { bound, records, values }))
            }
            _ => Err(input.corrupt()),
        }
    }

    /// Its streams in the order of their pages.
    pub(crate) fn streams(&self) -> [&Stream; 2] {
        [&self.records, &self.values]
    }

    /// The bound of all other values, in either order of zeros.
    fn rest(&self, greatest: bool) -> Scalar {
        match self.bound {
            Scalar::Float64(0.0) => Scalar::Float64(if greatest { 0.0 } else { -0.0 }),
            bound => bound,
        }
    }

    /// Reads the records and their values, of a column of type `kind` in a group of `records` records.
    fn read(&self, source: &PageSource<'_>, kind: ValueType, records: usize) -> Result<RecordValues, ReadError> {
        let count = self.records.records;
        let found = column::read_gapless::<u32>(source, &self.records, 0..count)?;
        let are_sound =
            found.is_sorted_by(|one, next| one < next) && found.last().is_none_or(|last| (*last as usize) < records);
        if !are_sound {
            return Err(self.records.setup.corrupt());
        }
        Ok(RecordValues { records: found, values: column::read(source, &self.values, kind, 0..count)? })
    }
}

/// Reads the entries that [`put`] appended for each column of group `index`; empty if the section is absent.
///
/// # Errors
/// If the bytes are damaged.
pub(crate) fn read_entries(
    input: &mut Input,
    index: usize,
    group: &Group,
    records: usize,
    next: &mut u64,
) -> Result<Vec<Ends<StoredOutliers>>, ReadError> {
    if input.left() == 0 {
        return Ok(Vec::new());
    }

    let mut all = Vec::with_capacity(group.columns.len());
    for (column_index, column) in group.columns.iter().enumerate() {
        let part = FilePart::Outliers { group: index, column: column_index };
        let greatest = StoredOutliers::read_entry(input, part, column.value, records, next)?;
        let least = StoredOutliers::read_entry(input, part, column.value, records, next)?;
        all.push([greatest, least]);
    }
    Ok(all)
}

/// The records that a filter on a column can let pass, with their values, if outliers contain all of them; otherwise `None`, and the
/// column must be read. `range` has the least and the greatest value of the column, and `may_pass` says whether a value in a range
/// can pass.
///
/// # Errors
/// If the bytes are damaged or the source fails.
pub(crate) fn passing(
    source: &PageSource<'_>,
    ends: &Ends<StoredOutliers>,
    kind: ValueType,
    records: usize,
    range: (Scalar, Scalar),
    may_pass: impl Fn((Scalar, Scalar)) -> bool,
) -> Result<Option<RecordValues>, ReadError> {
    let [greatest, least] = ends;
    let (low, high) = range;
    let (below, above) = (greatest.as_ref().map(|end| end.rest(true)), least.as_ref().map(|end| end.rest(false)));

    match ((greatest, below), (least, above)) {
        ((Some(greatest), Some(below)), _) if !may_pass((low, below)) => greatest.read(source, kind, records).map(Some),
        (_, (Some(least), Some(above))) if !may_pass((above, high)) => least.read(source, kind, records).map(Some),
        ((Some(greatest), Some(below)), (Some(least), Some(above))) if !may_pass((above, below)) => {
            let (one, other) = (least.read(source, kind, records)?, greatest.read(source, kind, records)?);
            merge(one, other).map(Some).ok_or_else(|| least.records.setup.corrupt())
        }
        _ => Ok(None),
    }
}

/// Merges two lists in the order of their records. `None` if lengths differ, which decoding excludes.
fn merge(one: RecordValues, other: RecordValues) -> Option<RecordValues> {
    let values = concat(&[one.values.as_ref(), other.values.as_ref()]).ok()?;
    let records: Vec<u32> = one.records.into_iter().chain(other.records).collect();
    let mut order: Vec<u32> = (0..records.len() as u32).collect();
    order.sort_unstable_by_key(|index| records.get(*index as usize));

    let sorted = order.iter().filter_map(|index| records.get(*index as usize).copied()).collect();
    let values = take(values.as_ref(), &UInt32Array::from(order), None).ok()?;
    Some(RecordValues { records: sorted, values })
}

/// Whether the stored outliers are exactly the values of the column beyond their bounds, for verification.
pub(crate) fn hold(
    source: &PageSource<'_>,
    ends: &Ends<StoredOutliers>,
    kind: ValueType,
    values: &ArrayRef,
) -> Result<bool, ReadError> {
    for (index, end) in ends.iter().enumerate() {
        let Some(end) = end else { continue };
        let stored = end.read(source, kind, values.len())?;
        let expected = all_beyond(values, end.bound, index == 0);
        let found = take(values.as_ref(), &UInt32Array::from(stored.records.clone()), None);
        if expected != Some(stored.records) || !found.is_ok_and(|found| found == stored.values) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The records with values beyond `bound`: greater if `greatest`, otherwise less. `None` if it is of another type than the values.
fn all_beyond(values: &ArrayRef, bound: Scalar, greatest: bool) -> Option<Vec<u32>> {
    match bound {
        Scalar::UInt64(bound) => beyond_bound::<UInt64Type>(values, bound, greatest),
        Scalar::Int64(bound) => beyond_bound::<Int64Type>(values, bound, greatest),
        Scalar::Float64(bound) => beyond_bound::<Float64Type>(values, bound, greatest),
        Scalar::Decimal(bound) => beyond_bound::<Decimal128Type>(values, bound, greatest),
        Scalar::Timestamp(bound) => beyond_bound::<TimestampMicrosecondType>(values, bound, greatest),
        Scalar::Date(bound) => beyond_bound::<Date32Type>(values, bound, greatest),
    }
}

/// As [`all_beyond`], for one type.
fn beyond_bound<T: ArrowPrimitiveType>(values: &ArrayRef, bound: T::Native, greatest: bool) -> Option<Vec<u32>>
where
    T::Native: PartialOrd,
{
    let array = values.as_primitive_opt::<T>()?;
    Some(if greatest { beyond(array, |value| value > bound) } else { beyond(array, |value| value < bound) })
}
