//! The values of one column: Arrow arrays to streams and back.
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

mod bytes;
mod numeric;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, new_null_array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::util::bit_util;
use tidetable_layout::{FieldType, ValueType};

use crate::error::{ReadError, WriteError};
use crate::format::{Codec, MAX_RECORDS};
use crate::options::Compression;
use crate::stream::{Page, PageSource, Pages, Presence, Stream, page_range};

pub(crate) use numeric::{decimals_of, put_gapless, read_gapless};

/// Where a stream is written: its entry to `head`, its pages to `pages`.
pub(crate) struct Target<'a> {
    pub(crate) head: &'a mut Vec<u8>,
    pub(crate) pages: &'a mut Pages,
    pub(crate) level: Compression,
}

/// Appends the values of a column, which is of the type that `kind` says. Returns how many decimals they have, if they are
/// floats that have so many.
pub(crate) fn put(target: &mut Target<'_>, array: &ArrayRef, kind: ValueType) -> Result<Option<u8>, WriteError> {
    let presence = Presence { records: array.len(), nulls: array.nulls().filter(|nulls| nulls.null_count() > 0) };
    if array.null_count() == array.len() {
        let presence = Presence { nulls: None, ..presence };
        return target.pages.put(target.head, Codec::Absent, &[], presence, |_, _| Ok(())).map(|()| None);
    }
    match kind {
        ValueType::Field(field) if !matches!(field, FieldType::Bool | FieldType::Text) => {
            return numeric::put(target, array, field, presence);
        }
        ValueType::Empty => target.pages.put(target.head, Codec::Unit, &[], presence, |_, _| Ok(())),
        ValueType::Field(FieldType::Bool) => put_bools(target, array.as_boolean(), presence),
        ValueType::Bytes => bytes::put(target, array.as_binary::<i32>(), presence),
        ValueType::Field(_) => bytes::put(target, array.as_string::<i32>(), presence),
    }
    .map(|()| None)
}

fn put_bools(target: &mut Target<'_>, array: &BooleanArray, presence: Presence<'_>) -> Result<(), WriteError> {
    let count = array.true_count();
    let records = presence.records;
    if count == 0 || count == records - array.null_count() {
        let setup = u64::from(count > 0).to_le_bytes();
        return target.pages.put(target.head, Codec::Const, &setup, presence, |_, _| Ok(()));
    }
    target.pages.put(target.head, Codec::Bits, &[], presence, |page, out| {
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

/// Collects which records have no value.
struct Nulls {
    bits: Vec<bool>,
    any: bool,
}

impl Nulls {
    fn new() -> Self {
        Self { bits: Vec::new(), any: false }
    }

    /// The presence of `page`, which follows `done` records.
    fn add(&mut self, page: &Page, done: usize) {
        if let Some(mask) = &page.mask {
            self.any = true;
            self.bits.resize(done, true);
            self.bits.extend(mask.iter());
        }
    }

    fn finish(mut self, records: usize) -> Option<NullBuffer> {
        self.any
            .then(|| {
                self.bits.resize(records, true);
                NullBuffer::new(BooleanBuffer::from(self.bits))
            })
            .filter(|nulls| nulls.null_count() > 0)
    }
}

/// Reads the records `range` of a column of type `kind`.
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
        // In bounds: `index` is below `page.present`.
        let value = |index: usize| constant.unwrap_or_else(|| bit_util::get_bit(&page.payload, index));
        match &page.mask {
            None => bits.extend(page.values.clone().map(value)),
            Some(mask) => {
                let mut next = page.values.start;
                bits.extend(mask.iter().map(|has| {
                    let at = next;
                    next += usize::from(has);
                    has && value(at)
                }));
            }
        }
        Ok(())
    })?;
    Ok(std::sync::Arc::new(BooleanArray::new(BooleanBuffer::from(bits), nulls.finish(records))))
}
