//! Columns of text and bytes: constant, as a dictionary with codes, or as lengths and bytes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray, GenericByteArray, StringArray};
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::ByteArrayType;
use tidetable_layout::ValueType;
use xxhash_rust::xxh3::xxh3_64;

use crate::codec::front_coding::ByteList;
use crate::codec::numbers::Decoder;
use crate::codec::{block_compression, front_coding};
use crate::coding::{Input, put_block, put_varint};
use crate::column::numeric;
use crate::column::stream::{Page, PageSource, Stream, Validity};
use crate::column::target::{Nulls, Target};
use crate::error::{ReadError, WriteError};
use crate::format::{Codec, MAX_RAW_BYTES, PAGE_RECORDS};

/// The most entries of a dictionary. It is read with the head of its stripe, so it must stay small.
const DICTIONARY_ENTRIES: usize = 4096;
/// The most bytes of the entries of a dictionary together.
const DICTIONARY_BYTES: usize = 64 << 10;

/// Appends the stream of a column of text or bytes.
///
/// # Errors
/// If the values exceed [`MAX_RAW_BYTES`], or an encoder fails.
pub(super) fn put<T: ByteArrayType<Offset = i32>>(
    target: &mut Target<'_>,
    array: &GenericByteArray<T>,
    validity: Validity<'_>,
) -> Result<(), WriteError> {
    let raw = array.value_offsets().last().zip(array.value_offsets().first());
    let raw = raw.map_or(0, |(end, start)| (end - start) as usize);
    if raw > MAX_RAW_BYTES {
        return Err(WriteError::TooLarge { what: "bytes of a column", found: raw, limit: MAX_RAW_BYTES });
    }

    let values: Vec<&[u8]> = match validity.nulls {
        None => (0..array.len()).map(|index| bytes_at(array, index)).collect(),
        Some(nulls) => nulls.valid_indices().map(|index| bytes_at(array, index)).collect(),
    };
    if let Some(first) = values.first()
        && values.iter().all(|value| value == first)
    {
        return target.pages.put(target.head, Codec::Const, first, validity, |_, _| Ok(()));
    }

    match dictionary(&values) {
        Some((entries, codes)) => put_coded(target, &entries, &codes, validity),
        None => put_text(target, &values, validity),
    }
}

/// The bytes of the value at `index`, which is not null.
fn bytes_at<T: ByteArrayType<Offset = i32>>(array: &GenericByteArray<T>, index: usize) -> &[u8] {
    AsRef::<[u8]>::as_ref(array.value(index))
}

/// The sorted distinct values and the code of each value. `None` if there are more than the limits above or than a quarter of the
/// values, or if two of them have one hash.
fn dictionary<'a>(values: &[&'a [u8]]) -> Option<(Vec<&'a [u8]>, Vec<u32>)> {
    let most = DICTIONARY_ENTRIES.min(values.len() / 4);
    let mut known: HashMap<u64, u32> = HashMap::new();
    let mut entries: Vec<&[u8]> = Vec::new();
    let mut codes = Vec::with_capacity(values.len());
    let (mut bytes, mut last) = (0, u32::MAX);

    for value in values {
        // Neighbours are often equal, which saves the hash.
        if entries.get(last as usize) != Some(value) {
            last = *known.entry(xxh3_64(value)).or_insert(entries.len() as u32);
            match entries.get(last as usize) {
                Some(entry) if entry == value => {}
                Some(_) => return None,
                None => {
                    entries.push(value);
                    bytes += value.len();
                    if entries.len() > most || bytes > DICTIONARY_BYTES {
                        return None;
                    }
                }
            }
        }
        codes.push(last);
    }

    // Entries were numbered as they came; codes become ranks in sorted order.
    let mut order: Vec<u32> = (0..entries.len() as u32).collect();
    order.sort_unstable_by_key(|entry| entries[*entry as usize]);
    let mut rank = vec![0; entries.len()];
    order.iter().zip(0..).for_each(|(entry, place)| rank[*entry as usize] = place);
    codes.iter_mut().for_each(|code| *code = rank[*code as usize]);
    entries.sort_unstable();
    Some((entries, codes))
}

/// Appends a stream of codes whose setup has the sorted `entries`.
fn put_coded(
    target: &mut Target<'_>,
    entries: &[&[u8]],
    codes: &[u32],
    validity: Validity<'_>,
) -> Result<(), WriteError> {
    let (mut plan, counts) = numeric::plan_codes(target, codes, validity)?;

    let (mut setup, mut list) = (Vec::new(), Vec::new());
    front_coding::put(&mut list, entries.iter().copied(), target.level)?;
    put_varint(&mut setup, entries.len() as u64);
    put_block(&mut setup, &list);
    setup.push(plan.codec() as u8);
    plan.setup(&mut setup)?;

    let mut rest = codes;
    target.pages.put(target.head, Codec::Dictionary, &setup, validity, |page, out| {
        let (codes, later) = rest.split_at(counts[page]);
        rest = later;
        plan.page(codes, out)
    })
}

/// Appends a stream whose pages have lengths and bytes, compressed by zstd.
fn put_text(target: &mut Target<'_>, values: &[&[u8]], validity: Validity<'_>) -> Result<(), WriteError> {
    let counts = validity.page_counts();
    let (level, mut rest, mut raw) = (target.level, values, Vec::new());
    target.pages.put(target.head, Codec::Text, &[], validity, |page, out| {
        let (values, later) = rest.split_at(counts[page]);
        rest = later;
        raw.clear();
        values.iter().for_each(|value| put_varint(&mut raw, value.len() as u64));
        values.iter().for_each(|value| raw.extend_from_slice(value));
        Ok(block_compression::put(out, &raw, level)?)
    })
}

/// An Arrow array of bytes under construction. `offsets` starts with 0; each value or null appends the end of its bytes in `data`.
struct Values {
    offsets: Vec<i32>,
    data: Vec<u8>,
}

impl Values {
    /// Appends a value; `None` if the array would exceed [`MAX_RAW_BYTES`].
    fn push(&mut self, value: &[u8]) -> Option<()> {
        (self.data.len() + value.len() <= MAX_RAW_BYTES).then_some(())?;
        self.data.extend_from_slice(value);
        self.gap();
        Some(())
    }

    /// Appends a null, or an offset after bytes.
    fn gap(&mut self) {
        self.offsets.push(self.data.len() as i32);
    }

    /// Appends the wanted records of `page`: its nulls, and in between `values` in order. `None` if there are too few or too many bytes.
    fn spread<'v>(&mut self, page: &Page, mut values: impl Iterator<Item = &'v [u8]>) -> Option<()> {
        match &page.mask {
            None => values.try_for_each(|value| self.push(value)),
            Some(mask) => mask.iter().try_for_each(|has| {
                if has {
                    self.push(values.next()?)
                } else {
                    self.gap();
                    Some(())
                }
            }),
        }
    }
}

/// Reads the records `range` of a column of text or, if `kind` says so, of bytes.
///
/// # Errors
/// If the bytes are damaged, or a text is not UTF-8.
pub(super) fn read(
    source: &PageSource<'_>,
    stream: &Stream,
    kind: ValueType,
    range: Range<usize>,
) -> Result<ArrayRef, ReadError> {
    let records = range.len();
    let mut out = Values { offsets: Vec::with_capacity(records + 1), data: Vec::new() };
    out.gap();

    let mut nulls = Nulls::new();
    let mut setup = stream.setup.clone();
    let corrupt = setup.corrupt();

    match stream.codec {
        Codec::Const => {
            let value = setup.rest();
            source.pages(stream, range, |page| {
                nulls.add(&page, out.offsets.len() - 1);
                let values = page.values.clone().map(|_| value.as_ref());
                out.spread(&page, values).ok_or(page.corrupt("text"))
            })?;
        }
        Codec::Dictionary => {
            let (entries, mut decoder) = read_setup(&mut setup)?;
            let mut scratch = Vec::new();
            source.pages(stream, range, |page| {
                nulls.add(&page, out.offsets.len() - 1);
                let codes = numeric::dense(&mut decoder, &page, &mut scratch)?;
                if codes.iter().any(|code| *code as usize >= entries.ends.len()) {
                    return Err(page.corrupt("dictionary codes"));
                }
                let values = codes.iter().map(|code| entries.get(*code as usize).unwrap_or_default());
                out.spread(&page, values).ok_or(page.corrupt("text"))
            })?;
        }
        Codec::Text => source.pages(stream, range, |page| {
            nulls.add(&page, out.offsets.len() - 1);
            read_text(&page, &mut out)
        })?,
        _ => return Err(corrupt),
    }

    if out.offsets.len() != records + 1 {
        return Err(corrupt);
    }
    let nulls = nulls.finish(records);
    let offsets = OffsetBuffer::new(ScalarBuffer::from(out.offsets));
    let data = Buffer::from_vec(out.data);

    if kind == ValueType::Bytes {
        return BinaryArray::try_new(offsets, data, nulls)
            .map(|array| Arc::new(array) as ArrayRef)
            .map_err(|_| corrupt);
    }
    StringArray::try_new(offsets, data, nulls).map(|array| Arc::new(array) as ArrayRef).map_err(|_| corrupt)
}

/// The entries of a dictionary and the decoder of its codes.
fn read_setup(setup: &mut Input) -> Result<(ByteList, Decoder<u32>), ReadError> {
    let count = setup.count(DICTIONARY_ENTRIES)?;
    let mut list = setup.nested("dictionary")?;
    let entries = front_coding::read(&mut list, count)?;

    let codec = setup.u8()?;
    let codec = Codec::of(codec).ok_or(setup.corrupt())?;
    Ok((entries, Decoder::new(codec, setup.clone())?))
}

/// Appends the wanted records of a page of lengths and bytes to `out`.
fn read_text(page: &Page, out: &mut Values) -> Result<(), ReadError> {
    let mut input = Input::new(page.payload.clone(), page.offset, "text");
    let raw = block_compression::read(&mut input, MAX_RAW_BYTES + PAGE_RECORDS * 5)?;
    let mut raw = Input::new(raw, page.offset, "text");

    let mut lengths = Vec::with_capacity(page.present);
    let mut total = 0;
    for _ in 0..page.present {
        let len = raw.count(MAX_RAW_BYTES)?;
        total += len;
        lengths.push(len);
    }
    let bytes = raw.rest();
    if total != bytes.len() {
        return Err(page.corrupt("text"));
    }

    // The lengths add up to the bytes, so no split fails.
    let mut rest = bytes.as_ref();
    let mut values = lengths.iter().map(|len| {
        let (value, later) = rest.split_at_checked(*len).unwrap_or_default();
        rest = later;
        value
    });
    values.by_ref().take(page.values.start).for_each(drop);
    out.spread(page, values.take(page.values.len())).ok_or(page.corrupt("text"))
}
