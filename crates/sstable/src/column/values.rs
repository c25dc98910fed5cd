//! The values of one column: Arrow arrays to streams and back, by type.
//!
//! ```text
//! setup   numbers, times   const: bits u64 | step: first u64, step u64 | pco: header and chunk meta | raw: none
//!         decimals         0 and as numbers, of i64 | 1: pages are packed i128
//!         bool             const: bits u64 | bits: none
//!         text, bytes      const: the bytes | text: none
//!                          dictionary: count varint | list block | codec u8 of the codes and its setup
//! page    numbers          pco page | the values' bytes
//!         bool             a bitmap
//!         text, bytes      codes as numbers | packed: lengths (varints), then bytes
//! ```

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, new_null_array};
use arrow::buffer::BooleanBuffer;
use arrow::util::bit_util;
use tidetable_layout::{FieldType, ValueType};

use crate::codec::value_range::ValueRange;
use crate::column::stream::{PageSource, Stream, Validity, page_range};
use crate::column::target::{Nulls, Target};
use crate::column::{bytes, numeric};
use crate::error::{ReadError, WriteError};
use crate::format::{Codec, MAX_RECORDS};

/// Appends the values of a column of type `kind` as a stream. Returns the number of decimals if they are floats stored as scaled
/// integers.
///
/// # Errors
/// If the values exceed a limit of the format, or an encoder fails.
pub(crate) fn put(target: &mut Target<'_>, array: &ArrayRef, kind: ValueType) -> Result<Option<u8>, WriteError> {
    let validity = Validity { records: array.len(), nulls: array.nulls().filter(|nulls| nulls.null_count() > 0) };
    if array.null_count() == array.len() {
        let validity = Validity { nulls: None, ..validity };
        return target.pages.put(target.head, Codec::Absent, &[], validity, |_, _| Ok(())).map(|()| None);
    }

    match kind {
        ValueType::Field(field) if !matches!(field, FieldType::Bool | FieldType::Text) => {
            return numeric::put(target, array, field, validity);
        }
        ValueType::Empty => target.pages.put(target.head, Codec::Unit, &[], validity, |_, _| Ok(())),
        ValueType::Field(FieldType::Bool) => put_bools(target, array.as_boolean(), validity),
        ValueType::Bytes => bytes::put(target, array.as_binary::<i32>(), validity),
        ValueType::Field(_) => bytes::put(target, array.as_string::<i32>(), validity),
    }
    .map(|()| None)
}

/// Appends a stream of booleans, constant or as bits.
fn put_bools(target: &mut Target<'_>, array: &BooleanArray, validity: Validity<'_>) -> Result<(), WriteError> {
    let count = array.true_count();
    let records = validity.records;
    if count == 0 || count == records - array.null_count() {
        let setup = u64::from(count > 0).to_le_bytes();
        return target.pages.put(target.head, Codec::Const, &setup, validity, |_, _| Ok(()));
    }

    target.pages.put(target.head, Codec::Bits, &[], validity, |page, out| {
        let start = out.len();
        let present = page_range(page, records).filter(|index| array.is_valid(*index));
        for (at, index) in present.enumerate() {
            if at % 8 == 0 {
                out.push(0);
            }
            if array.value(index) {
                bit_util::set_bit(&mut out[start..], at);
            }
        }
        Ok(())
    })
}

/// Reads the records `range` of a column of type `kind` as an array of its Arrow type.
///
/// # Errors
/// If the codec is not one for this type, or the bytes are damaged.
pub(crate) fn read(
    source: &PageSource<'_>,
    stream: &Stream,
    kind: ValueType,
    range: std::ops::Range<usize>,
) -> Result<ArrayRef, ReadError> {
    if range.len() > MAX_RECORDS {
        return Err(stream.setup.corrupt());
    }
    if stream.codec == Codec::Absent {
        return Ok(new_null_array(&kind.arrow(), range.len()));
    }

    match kind {
        ValueType::Empty if stream.codec == Codec::Unit => read_bools(source, stream, range),
        ValueType::Field(FieldType::Bool) if stream.codec != Codec::Unit => read_bools(source, stream, range),
        ValueType::Bytes | ValueType::Field(FieldType::Text) => bytes::read(source, stream, kind, range),
        ValueType::Field(field) if field != FieldType::Bool => numeric::read(source, stream, field, range),
        _ => Err(stream.setup.corrupt()),
    }
}

/// Which of the records `range` have a value in `wanted`, and these values, without decoding the others. `None` if the type or its
/// encoding has no such path; then the caller reads all values.
///
/// # Errors
/// As [`read`].
pub(crate) fn select(
    source: &PageSource<'_>,
    stream: &Stream,
    kind: ValueType,
    range: std::ops::Range<usize>,
    wanted: ValueRange,
) -> Result<Option<(BooleanBuffer, ArrayRef)>, ReadError> {
    if range.len() > MAX_RECORDS {
        return Err(stream.setup.corrupt());
    }

    match kind {
        _ if stream.codec == Codec::Absent => {
            Ok(Some((BooleanBuffer::new_unset(range.len()), new_null_array(&kind.arrow(), 0))))
        }
        ValueType::Field(field) => numeric::select(source, stream, field, range, wanted),
        _ => Ok(None),
    }
}

/// Reads booleans, or for the codec `Unit` a true for each record with a value.
fn read_bools(source: &PageSource<'_>, stream: &Stream, range: std::ops::Range<usize>) -> Result<ArrayRef, ReadError> {
    let mut setup = stream.setup.clone();
    let constant = match stream.codec {
        Codec::Unit => Some(true),
        Codec::Const => Some(setup.u64()? != 0),
        Codec::Bits => None,
        _ => return Err(setup.corrupt()),
    };
    setup.finish()?;

    let mut nulls = Nulls::new();
    let mut bits: Vec<bool> = Vec::with_capacity(range.len());
    let records = range.len();
    source.pages(stream, range, |page| {
        nulls.add(&page, bits.len());
        if constant.is_none() && page.payload.len() != page.present.div_ceil(8) {
            return Err(page.corrupt("bits"));
        }
        match &page.mask {
            None => bits.extend(page.values.clone().map(|index| bool_at(constant, &page.payload, index))),
            Some(mask) => {
                let mut next = page.values.start;
                bits.extend(mask.iter().map(|has| {
                    let index = next;
                    next += usize::from(has);
                    has && bool_at(constant, &page.payload, index)
                }));
            }
        }
        Ok(())
    })?;
    Ok(std::sync::Arc::new(BooleanArray::new(BooleanBuffer::from(bits), nulls.finish(records))))
}

/// Value `index` of a page: the constant of the stream, or a bit. `index` is in bounds, see the check of the length.
fn bool_at(constant: Option<bool>, payload: &[u8], index: usize) -> bool {
    constant.unwrap_or_else(|| bit_util::get_bit(payload, index))
}
