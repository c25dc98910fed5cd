//! Numbers and times.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type,
};
use tidetable_layout::FieldType;

use super::{Nulls, Target};
use crate::error::{ReadError, WriteError};
use crate::format::{Codec, PAGE_RECORDS};
use crate::numbers::{Decoder, Lane, Plan};
use crate::packed;
use crate::stream::{Page, PageSource, Presence, Stream};
use crate::wire::Input;

const NARROW: u8 = 0;
const WIDE: u8 = 1;
const WIDE_BYTES: usize = size_of::<i128>();

pub(super) fn put(
    target: &mut Target<'_>,
    array: &ArrayRef,
    kind: FieldType,
    presence: Presence<'_>,
) -> Result<Option<u8>, WriteError> {
    match kind {
        FieldType::UInt64 => put_values(target, array.as_primitive::<UInt64Type>().values(), presence, &[]),
        FieldType::Float64 => put_values(target, array.as_primitive::<Float64Type>().values(), presence, &[]),
        FieldType::Timestamp => {
            put_values(target, array.as_primitive::<TimestampMicrosecondType>().values(), presence, &[])
        }
        FieldType::Date => put_values(target, array.as_primitive::<Date32Type>().values(), presence, &[]),
        FieldType::Decimal { .. } => put_decimals(target, array.as_primitive::<Decimal128Type>().values(), presence),
        _ => put_values(target, array.as_primitive::<Int64Type>().values(), presence, &[]),
    }
}

fn put_values<T: Lane>(
    target: &mut Target<'_>,
    all: &[T],
    presence: Presence<'_>,
    lead: &[u8],
) -> Result<Option<u8>, WriteError> {
    put_dense(target, &presence.dense(all), presence, lead)
}

/// Appends the present values of a stream whose setup begins with `lead`; returns their decimals, if they are so kept.
fn put_dense<T: Lane>(
    target: &mut Target<'_>,
    dense: &[T],
    presence: Presence<'_>,
    lead: &[u8],
) -> Result<Option<u8>, WriteError> {
    let counts = presence.page_counts();
    let mut plan = Plan::choose(dense, &counts, presence.nulls.is_some(), target.level)?;
    let mut setup = lead.to_vec();
    plan.setup(&mut setup)?;
    let (codec, decimals, mut rest) = (plan.codec(), plan.decimals(), dense);
    target.pages.put(target.head, codec, &setup, presence, |page, out| {
        let (now, later) = rest.split_at(counts[page]);
        rest = later;
        plan.page(now, out)
    })?;
    Ok(decimals)
}

/// Appends a stream that has a value for every record.
pub(crate) fn put_gapless<T: Lane>(target: &mut Target<'_>, values: &[T]) -> Result<(), WriteError> {
    put_dense(target, values, Presence { records: values.len(), nulls: None }, &[]).map(|_| ())
}

/// Appends dictionary codes.
pub(super) fn plan_codes(
    target: &Target<'_>,
    codes: &[u32],
    presence: Presence<'_>,
) -> Result<(Plan, Vec<usize>), WriteError> {
    let counts = presence.page_counts();
    let plan = Plan::choose(codes, &counts, true, target.level)?;
    Ok((plan, counts))
}

fn put_decimals(target: &mut Target<'_>, all: &[i128], presence: Presence<'_>) -> Result<Option<u8>, WriteError> {
    let dense = presence.dense(all);
    if let Ok(narrow) = dense.iter().map(|value| i64::try_from(*value)).collect::<Result<Vec<_>, _>>() {
        return put_dense(target, &narrow, presence, &[NARROW]);
    }
    let counts = presence.page_counts();
    let (level, mut rest, mut raw) = (target.level, dense.as_ref(), Vec::new());
    target.pages.put(target.head, Codec::Raw, &[WIDE], presence, |page, out| {
        let (now, later) = rest.split_at(counts[page]);
        rest = later;
        raw.clear();
        now.iter().for_each(|value| raw.extend_from_slice(&value.to_le_bytes()));
        Ok(packed::put(out, &raw, level)?)
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
                NARROW => {
                    let (values, nulls) = read_values::<i64>(source, stream, setup, range)?;
                    (values.into_iter().map(i128::from).collect(), nulls)
                }
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

/// Decimals of floats of a stream, if they are kept as integers.
pub(crate) fn decimals_of(stream: &Stream) -> Result<Option<u8>, ReadError> {
    match stream.codec {
        Codec::Frames | Codec::Scaled => Ok(Decoder::<f64>::new(stream.codec, stream.setup.clone())?.decimals()),
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

/// The records `range` of a stream that has a value for every record.
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

/// The records `range`; those without a value are the default.
fn read_values<T: Lane>(
    source: &PageSource<'_>,
    stream: &Stream,
    setup: Input,
    range: Range<usize>,
) -> Result<(Vec<T>, Option<NullBuffer>), ReadError> {
    let mut decoder = Decoder::<T>::new(stream.codec, setup)?;
    let records = range.len();
    let (mut out, mut at, mut nulls, mut scratch) = (vec![T::default(); records], 0, Nulls::new(), Vec::new());
    source.pages(stream, range, |page| {
        nulls.add(&page, at);
        let Some(slot) = out.get_mut(at..at + page.wanted.len()) else { return Err(page.corrupt("page range")) };
        at += slot.len();
        if page.mask.is_none() && slot.len() == page.present {
            return decoder.read(&page.payload, page.first, page.present, slot).ok_or(page.corrupt("numbers"));
        }
        let some = dense(&mut decoder, &page, &mut scratch)?;
        match &page.mask {
            None => slot.copy_from_slice(some),
            Some(mask) => mask.set_indices().zip(some).for_each(|(index, value)| slot[index] = *value),
        }
        Ok(())
    })?;
    Ok((out, nulls.finish(records)))
}

/// The wanted present values of a page.
pub(super) fn dense<'s, T: Lane>(
    decoder: &mut Decoder<T>,
    page: &Page,
    scratch: &'s mut Vec<T>,
) -> Result<&'s [T], ReadError> {
    scratch.resize(PAGE_RECORDS, T::default());
    let room = Decoder::<T>::room(page.values.end, page.present);
    let some = scratch.get_mut(..room).ok_or(page.corrupt("numbers"))?;
    decoder.read(&page.payload, page.first, page.present, some).ok_or(page.corrupt("numbers"))?;
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
        let raw = packed::read(&mut input, PAGE_RECORDS * WIDE_BYTES)?;
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
