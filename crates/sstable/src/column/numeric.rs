//! Columns of numbers and times. Decimals whose values all fit in 64 bits are stored as such, others as 128-bit integers.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanBufferBuilder, PrimitiveArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type,
};
use tidetable_layout::FieldType;

use crate::codec::block_compression;
use crate::codec::lane::Lane;
use crate::codec::numbers::{Decoder, PageExtent, Plan};
use crate::codec::selection::Selector;
use crate::codec::value_range::ValueRange;
use crate::coding::Input;
use crate::column::stream::{Page, PageSource, Stream, Validity};
use crate::column::target::{Nulls, Target};
use crate::error::{ReadError, WriteError};
use crate::format::{Codec, PAGE_RECORDS};

/// First byte of the setup of a decimal stream: values are streamed as `i64`.
const NARROW: u8 = 0;
/// First byte of the setup of a decimal stream: pages are packed `i128`.
const WIDE: u8 = 1;
const WIDE_BYTES: usize = size_of::<i128>();

/// Appends the stream of a column of type `kind`. Returns the number of decimals if values are stored as scaled integers.
pub(super) fn put(
    target: &mut Target<'_>,
    array: &ArrayRef,
    kind: FieldType,
    validity: Validity<'_>,
) -> Result<Option<u8>, WriteError> {
    match kind {
        FieldType::UInt64 => put_values(target, array.as_primitive::<UInt64Type>().values(), validity, &[]),
        FieldType::Float64 => put_values(target, array.as_primitive::<Float64Type>().values(), validity, &[]),
        FieldType::Timestamp => {
            put_values(target, array.as_primitive::<TimestampMicrosecondType>().values(), validity, &[])
        }
        FieldType::Date => put_values(target, array.as_primitive::<Date32Type>().values(), validity, &[]),
        FieldType::Decimal { .. } => put_decimals(target, array.as_primitive::<Decimal128Type>().values(), validity),
        _ => put_values(target, array.as_primitive::<Int64Type>().values(), validity, &[]),
    }
}

fn put_values<T: Lane>(
    target: &mut Target<'_>,
    all: &[T],
    validity: Validity<'_>,
    lead: &[u8],
) -> Result<Option<u8>, WriteError> {
    put_dense(target, &validity.dense(all), validity, lead)
}

/// Appends the non-null values of a stream whose setup starts with `lead`. Returns the number of decimals if they are stored as
/// scaled integers.
fn put_dense<T: Lane>(
    target: &mut Target<'_>,
    dense: &[T],
    validity: Validity<'_>,
    lead: &[u8],
) -> Result<Option<u8>, WriteError> {
    let counts = validity.page_counts();
    let mut plan = Plan::choose(dense, &counts, validity.nulls.is_some(), target.level)?;
    let mut setup = lead.to_vec();
    plan.setup(&mut setup)?;

    let (codec, decimals, mut rest) = (plan.codec(), plan.decimals(), dense);
    target.pages.put(target.head, codec, &setup, validity, |page, out| {
        let (values, later) = rest.split_at(counts[page]);
        rest = later;
        plan.page(values, out)
    })?;
    Ok(decimals)
}

/// Appends a stream of `values` without nulls, such as timestamps or codes.
pub(crate) fn put_gapless<T: Lane>(target: &mut Target<'_>, values: &[T]) -> Result<(), WriteError> {
    put_dense(target, values, Validity { records: values.len(), nulls: None }, &[]).map(|_| ())
}

/// Plans the encoding of dictionary codes. Returns the plan and the number of codes of each page.
pub(super) fn plan_codes(
    target: &Target<'_>,
    codes: &[u32],
    validity: Validity<'_>,
) -> Result<(Plan, Vec<usize>), WriteError> {
    let counts = validity.page_counts();
    let plan = Plan::choose(codes, &counts, true, target.level)?;
    Ok((plan, counts))
}

/// Appends a stream of decimals, narrow if all values fit in 64 bits.
fn put_decimals(target: &mut Target<'_>, all: &[i128], validity: Validity<'_>) -> Result<Option<u8>, WriteError> {
    let dense = validity.dense(all);
    if let Ok(narrow) = dense.iter().map(|value| i64::try_from(*value)).collect::<Result<Vec<_>, _>>() {
        return put_dense(target, &narrow, validity, &[NARROW]);
    }

    let counts = validity.page_counts();
    let (level, mut rest, mut raw) = (target.level, dense.as_ref(), Vec::new());
    target.pages.put(target.head, Codec::Raw, &[WIDE], validity, |page, out| {
        let (values, later) = rest.split_at(counts[page]);
        rest = later;
        raw.clear();
        values.iter().for_each(|value| raw.extend_from_slice(&value.to_le_bytes()));
        Ok(block_compression::put(out, &raw, level)?)
    })?;
    Ok(None)
}

/// Reads the records `range` of a column of type `kind`.
pub(super) fn read(
    source: &PageSource<'_>,
    stream: &Stream,
    kind: FieldType,
    range: Range<usize>,
) -> Result<ArrayRef, ReadError> {
    let numbers = Numbers { source, stream, range };
    let values = match kind {
        FieldType::UInt64 => numbers.read::<UInt64Type>()?,
        FieldType::Int64 => numbers.read::<Int64Type>()?,
        FieldType::Float64 => numbers.read::<Float64Type>()?,
        FieldType::Date => numbers.read::<Date32Type>()?,
        FieldType::Timestamp => numbers.read::<TimestampMicrosecondType>()?,
        FieldType::Decimal { .. } => {
            let mut setup = stream.setup.clone();
            let corrupt = setup.corrupt();
            let (values, nulls) = match setup.u8()? {
                NARROW => numbers.converted::<i64, i128>(setup, i128::from)?,
                WIDE if stream.codec == Codec::Raw => read_wide(source, stream, numbers.range)?,
                _ => return Err(corrupt),
            };
            Arc::new(PrimitiveArray::<Decimal128Type>::new(Vec::into(values), nulls)) as ArrayRef
        }
        FieldType::Text | FieldType::Bool => return Err(stream.setup.corrupt()),
    };

    typed(stream, values, kind)
}

/// As [`crate::column::select`], for a column of numbers or times.
pub(super) fn select(
    source: &PageSource<'_>,
    stream: &Stream,
    kind: FieldType,
    range: Range<usize>,
    wanted: ValueRange,
) -> Result<Option<(BooleanBuffer, ArrayRef)>, ReadError> {
    let numbers = Numbers { source, stream, range };
    let found = match kind {
        FieldType::UInt64 => numbers.select::<UInt64Type>(wanted)?,
        FieldType::Int64 => numbers.select::<Int64Type>(wanted)?,
        FieldType::Float64 => numbers.select::<Float64Type>(wanted)?,
        FieldType::Date => numbers.select::<Date32Type>(wanted)?,
        FieldType::Timestamp => numbers.select::<TimestampMicrosecondType>(wanted)?,
        FieldType::Decimal { .. } => {
            let mut setup = stream.setup.clone();
            if setup.u8()? != NARROW {
                return Ok(None);
            }
            let found = numbers.selected::<i64>(setup, wanted)?;
            found.map(|(mask, values)| {
                let values: Vec<i128> = values.into_iter().map(i128::from).collect();
                (mask, Arc::new(PrimitiveArray::<Decimal128Type>::new(values.into(), None)) as ArrayRef)
            })
        }
        FieldType::Text | FieldType::Bool => None,
    };

    found.map(|(mask, values)| Ok((mask, typed(stream, values, kind)?))).transpose()
}

/// Gives timestamps their zone, and decimals their precision and scale.
fn typed(stream: &Stream, values: ArrayRef, kind: FieldType) -> Result<ArrayRef, ReadError> {
    match kind {
        FieldType::Timestamp => {
            let times = values.as_primitive::<TimestampMicrosecondType>().clone();
            Ok(Arc::new(times.with_timezone("UTC")))
        }
        FieldType::Decimal { precision, scale } => {
            let decimals = values.as_primitive::<Decimal128Type>().clone();
            let decimals = decimals.with_precision_and_scale(precision, scale.cast_signed());
            Ok(Arc::new(decimals.map_err(|_| stream.setup.corrupt())?))
        }
        _ => Ok(values),
    }
}

/// The number of decimals of a stream of floats that are stored as scaled integers; `None` for other codecs.
pub(crate) fn decimals_of(stream: &Stream) -> Result<Option<u8>, ReadError> {
    match stream.codec {
        Codec::Pfor | Codec::DecimalScaling => Ok(Decoder::<f64>::new(stream.codec, stream.setup.clone())?.decimals()),
        _ => Ok(None),
    }
}

/// Reads the records `range` of a stream that [`put_gapless`] appended.
///
/// # Errors
/// If the stream has nulls or is damaged.
pub(crate) fn read_gapless<T: Lane>(
    source: &PageSource<'_>,
    stream: &Stream,
    range: Range<usize>,
) -> Result<Vec<T>, ReadError> {
    if !stream.gapless() {
        return Err(stream.setup.corrupt());
    }
    if range.is_empty() {
        return Ok(Vec::new());
    }
    Ok(Numbers { source, stream, range }.converted::<T, T>(stream.setup.clone(), |value| value)?.0)
}

/// The wanted records of a stream of numbers.
struct Numbers<'a> {
    source: &'a PageSource<'a>,
    stream: &'a Stream,
    range: Range<usize>,
}

impl Numbers<'_> {
    fn read<A: ArrowPrimitiveType<Native: Lane>>(&self) -> Result<ArrayRef, ReadError> {
        let (values, nulls) = self.converted::<A::Native, _>(self.stream.setup.clone(), |value| value)?;
        Ok(Arc::new(PrimitiveArray::<A>::new(values.into(), nulls)))
    }

    fn select<A: ArrowPrimitiveType<Native: Lane>>(
        &self,
        wanted: ValueRange,
    ) -> Result<Option<(BooleanBuffer, ArrayRef)>, ReadError> {
        let found = self.selected::<A::Native>(self.stream.setup.clone(), wanted)?;
        Ok(found.map(|(mask, values)| (mask, Arc::new(PrimitiveArray::<A>::new(values.into(), None)) as ArrayRef)))
    }

    /// The values, stored as `T` and returned as `V`, and the nulls, whose values are the default. Page by page, so that the decoded
    /// values are still in the cache when they are converted.
    fn converted<T: Lane, V: Copy + Default>(
        &self,
        setup: Input,
        convert: impl Fn(T) -> V,
    ) -> Result<(Vec<V>, Option<NullBuffer>), ReadError> {
        let mut decoder = Decoder::<T>::new(self.stream.codec, setup)?;
        let records = self.range.len();
        let (mut out, mut nulls, mut scratch) = (Vec::with_capacity(records), Nulls::new(), Vec::new());

        self.source.pages(self.stream, self.range.clone(), |page| {
            nulls.add(&page, out.len());
            let values = dense(&mut decoder, &page, &mut scratch)?;
            let Some(mask) = &page.mask else {
                out.extend(values.iter().map(|value| convert(*value)));
                return Ok(());
            };

            let (start, mut rest) = (out.len(), values);
            for (from, to) in mask.set_slices() {
                let (run, later) = rest.split_at_checked(to - from).ok_or(page.corrupt("page range"))?;
                out.resize(start + from, V::default());
                out.extend(run.iter().map(|value| convert(*value)));
                rest = later;
            }
            out.resize(start + mask.len(), V::default());
            Ok(())
        })?;

        if out.len() == records { Ok((out, nulls.finish(records))) } else { Err(self.stream.setup.corrupt()) }
    }

    /// Which records have a value in `wanted`, and these values; `None` if that is a range of another type.
    fn selected<T: Lane>(
        &self,
        setup: Input,
        wanted: ValueRange,
    ) -> Result<Option<(BooleanBuffer, Vec<T>)>, ReadError> {
        let Some(mut selector) = Selector::new(Decoder::<T>::new(self.stream.codec, setup)?, wanted) else {
            return Ok(None);
        };

        let records = self.range.len();
        let (mut out, mut bits, mut bytes) = (Vec::new(), BooleanBufferBuilder::new(records), Vec::new());
        self.source.pages(self.stream, self.range.clone(), |page| {
            let extent = PageExtent { first: page.first, present: page.present };
            let words = selector.read(&page.payload, extent, page.values.clone(), &mut out);
            if bits.is_empty() {
                // Reserve for as many of each later page: a growing list would be moved.
                let pages = records.div_ceil(page.values.len().max(1));
                out.reserve(out.len() * pages.saturating_sub(1));
            }

            bytes.clear();
            words.ok_or(page.corrupt("numbers"))?.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
            let Some(mask) = &page.mask else {
                bits.append_packed_range(0..page.values.len(), &bytes);
                return Ok(());
            };

            let (start, mut value) = (bits.len(), 0);
            for (from, to) in mask.set_slices() {
                bits.append_n(start + from - bits.len(), false);
                bits.append_packed_range(value..value + to - from, &bytes);
                value += to - from;
            }
            bits.append_n(start + mask.len() - bits.len(), false);
            Ok(())
        })?;

        let mask = bits.finish();
        if mask.len() == records { Ok(Some((mask, out))) } else { Err(self.stream.setup.corrupt()) }
    }
}

/// Decodes the wanted non-null values of a page into `scratch`, and returns them.
pub(super) fn dense<'s, T: Lane>(
    decoder: &mut Decoder<T>,
    page: &Page,
    scratch: &'s mut Vec<T>,
) -> Result<&'s [T], ReadError> {
    scratch.resize(PAGE_RECORDS, T::default());
    let room = Decoder::<T>::room(page.values.end, page.present);
    let some = scratch.get_mut(..room).ok_or(page.corrupt("numbers"))?;
    let from = page.values.start;
    let extent = PageExtent { first: page.first, present: page.present };
    decoder.read(&page.payload, extent, from, some).ok_or(page.corrupt("numbers"))?;
    some.get(page.values.clone()).ok_or(page.corrupt("numbers"))
}

/// Reads the records `range` of a stream of 128-bit decimals, and its nulls.
fn read_wide(
    source: &PageSource<'_>,
    stream: &Stream,
    range: Range<usize>,
) -> Result<(Vec<i128>, Option<NullBuffer>), ReadError> {
    let records = range.len();
    let (mut out, mut at, mut nulls) = (vec![0i128; records], 0, Nulls::new());

    source.pages(stream, range, |page| {
        nulls.add(&page, at);
        let mut input = Input::new(page.payload.clone(), page.offset, "wide decimals");
        let raw = block_compression::read(&mut input, PAGE_RECORDS * WIDE_BYTES)?;

        let (all, extra) = raw.as_chunks::<WIDE_BYTES>();
        let some = all.get(page.values.clone()).filter(|_| extra.is_empty() && all.len() == page.present);
        let (Some(some), Some(slot)) = (some, out.get_mut(at..at + page.wanted.len())) else {
            return Err(page.corrupt("wide decimals"));
        };
        at += slot.len();

        let values = some.iter().copied().map(i128::from_le_bytes);
        match &page.mask {
            None => slot.iter_mut().zip(values).for_each(|(to, value)| *to = value),
            Some(mask) => mask.set_indices().zip(values).for_each(|(index, value)| slot[index] = value),
        }
        Ok(())
    })?;
    Ok((out, nulls.finish(records)))
}
