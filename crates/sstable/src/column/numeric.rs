//! Columns of numbers and times.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type,
};
use tidetable_layout::FieldType;

use crate::codec::block_compression;
use crate::codec::lane::Lane;
use crate::codec::numbers::{Decoder, Plan};
use crate::coding::Input;
use crate::column::stream::{Page, PageSource, Stream, Validity};
use crate::column::target::{Nulls, Target};
use crate::error::{ReadError, WriteError};
use crate::format::{Codec, PAGE_RECORDS};

const NARROW: u8 = 0;
const WIDE: u8 = 1;
const WIDE_BYTES: usize = size_of::<i128>();

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

/// Appends the non-null values of a stream whose setup starts with `lead`; returns the number of decimals if scaled.
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
        let (now, later) = rest.split_at(counts[page]);
        rest = later;
        plan.page(now, out)
    })?;
    Ok(decimals)
}

/// Appends a stream without nulls.
pub(crate) fn put_gapless<T: Lane>(target: &mut Target<'_>, values: &[T]) -> Result<(), WriteError> {
    put_dense(target, values, Validity { records: values.len(), nulls: None }, &[]).map(|_| ())
}

/// Plans the encoding of dictionary codes.
pub(super) fn plan_codes(
    target: &Target<'_>,
    codes: &[u32],
    validity: Validity<'_>,
) -> Result<(Plan, Vec<usize>), WriteError> {
    let counts = validity.page_counts();
    let plan = Plan::choose(codes, &counts, true, target.level)?;
    Ok((plan, counts))
}

fn put_decimals(target: &mut Target<'_>, all: &[i128], validity: Validity<'_>) -> Result<Option<u8>, WriteError> {
    let dense = validity.dense(all);
    if let Ok(narrow) = dense.iter().map(|value| i64::try_from(*value)).collect::<Result<Vec<_>, _>>() {
        return put_dense(target, &narrow, validity, &[NARROW]);
    }
    let counts = validity.page_counts();
    let (level, mut rest, mut raw) = (target.level, dense.as_ref(), Vec::new());
    target.pages.put(target.head, Codec::Raw, &[WIDE], validity, |page, out| {
        let (now, later) = rest.split_at(counts[page]);
        rest = later;
        raw.clear();
        now.iter().for_each(|value| raw.extend_from_slice(&value.to_le_bytes()));
        Ok(block_compression::put(out, &raw, level)?)
    })?;
    Ok(None)
}

pub(super) fn read(
    source: &PageSource<'_>,
    stream: &Stream,
    kind: FieldType,
    range: Range<usize>,
) -> Result<ArrayRef, ReadError> {
    match kind {
        FieldType::UInt64 => primitive::<UInt64Type>(source, stream, range),
        FieldType::Int64 => primitive::<Int64Type>(source, stream, range),
        FieldType::Float64 => primitive::<Float64Type>(source, stream, range),
        FieldType::Date => primitive::<Date32Type>(source, stream, range),
        FieldType::Timestamp => {
            let (values, nulls) = read_values(source, stream, stream.setup.clone(), range)?;
            let array = PrimitiveArray::<TimestampMicrosecondType>::new(values.into(), nulls);
            Ok(Arc::new(array.with_timezone("UTC")))
        }
        FieldType::Decimal { precision, scale } => {
            let mut setup = stream.setup.clone();
            let corrupt = setup.corrupt();
            let (values, nulls) = match setup.u8()? {
                NARROW => read_converted::<i64, i128>(source, stream, setup, range, i128::from)?,
                WIDE if stream.codec == Codec::Raw => read_wide(source, stream, range)?,
                _ => return Err(corrupt),
            };
            let array = PrimitiveArray::<Decimal128Type>::new(Vec::into(values), nulls);
            let array = array.with_precision_and_scale(precision, scale.cast_signed());
            Ok(Arc::new(array.map_err(|_| corrupt)?))
        }
        FieldType::Text | FieldType::Bool => Err(stream.setup.corrupt()),
    }
}

/// The number of decimals of a stream of floats, if stored as scaled integers.
pub(crate) fn decimals_of(stream: &Stream) -> Result<Option<u8>, ReadError> {
    match stream.codec {
        Codec::Pfor | Codec::DecimalScaling => Ok(Decoder::<f64>::new(stream.codec, stream.setup.clone())?.decimals()),
        _ => Ok(None),
    }
}

fn primitive<A>(source: &PageSource<'_>, stream: &Stream, range: Range<usize>) -> Result<ArrayRef, ReadError>
where
    A: ArrowPrimitiveType,
    A::Native: Lane,
{
    let (values, nulls) = read_values::<A::Native>(source, stream, stream.setup.clone(), range)?;
    Ok(Arc::new(PrimitiveArray::<A>::new(values.into(), nulls)))
}

/// Reads the records `range` of a stream without nulls.
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
    Ok(read_values(source, stream, stream.setup.clone(), range)?.0)
}

/// Reads the records `range`; nulls have the default value.
fn read_values<T: Lane>(
    source: &PageSource<'_>,
    stream: &Stream,
    setup: Input,
    range: Range<usize>,
) -> Result<(Vec<T>, Option<NullBuffer>), ReadError> {
    read_converted(source, stream, setup, range, |value| value)
}

/// As [`read_values`], for values that are stored as another type. A page is decoded in the cache and converted from there.
fn read_converted<T: Lane, V: Copy + Default>(
    source: &PageSource<'_>,
    stream: &Stream,
    setup: Input,
    range: Range<usize>,
    convert: impl Fn(T) -> V,
) -> Result<(Vec<V>, Option<NullBuffer>), ReadError> {
    let mut decoder = Decoder::<T>::new(stream.codec, setup)?;
    let records = range.len();
    let (mut out, mut nulls, mut scratch) = (Vec::with_capacity(records), Nulls::new(), Vec::new());
    source.pages(stream, range, |page| {
        nulls.add(&page, out.len());
        let some = dense(&mut decoder, &page, &mut scratch)?;
        let Some(mask) = &page.mask else {
            out.extend(some.iter().map(|value| convert(*value)));
            return Ok(());
        };
        let (start, mut rest) = (out.len(), some);
        for (from, to) in mask.set_slices() {
            let (run, later) = rest.split_at_checked(to - from).ok_or(page.corrupt("page range"))?;
            out.resize(start + from, V::default());
            out.extend(run.iter().map(|value| convert(*value)));
            rest = later;
        }
        out.resize(start + mask.len(), V::default());
        Ok(())
    })?;
    if out.len() == records { Ok((out, nulls.finish(records))) } else { Err(stream.setup.corrupt()) }
}

/// The wanted non-null values of a page.
pub(super) fn dense<'s, T: Lane>(
    decoder: &mut Decoder<T>,
    page: &Page,
    scratch: &'s mut Vec<T>,
) -> Result<&'s [T], ReadError> {
    scratch.resize(PAGE_RECORDS, T::default());
    let room = Decoder::<T>::room(page.values.end, page.present);
    let some = scratch.get_mut(..room).ok_or(page.corrupt("numbers"))?;
    let from = page.values.start;
    decoder.read(&page.payload, page.first, page.present, from, some).ok_or(page.corrupt("numbers"))?;
    some.get(page.values.clone()).ok_or(page.corrupt("numbers"))
}

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
