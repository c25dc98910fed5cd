//! Front coding of sorted byte strings: qualifiers, key prefixes, dictionaries.
//!
//! ```text
//! list    packed: (shared with the one before varint, own length varint) each | own bytes of all
//! ```

use crate::codec::block_compression;
use crate::coding::{Input, put_varint};
use crate::error::{ReadError, WriteError};
use crate::format::MAX_RAW_BYTES;
use crate::options::Compression;

/// Byte strings, concatenated. In memory as in Arrow: one buffer and the end of each string in it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ByteList {
    /// The end of each byte string in `bytes`, ascending; the next one starts there.
    pub(crate) ends: Vec<u32>,
    pub(crate) bytes: Vec<u8>,
}

impl ByteList {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start as usize..*end as usize])
    }

    /// The byte string at `index`; `None` past the end.
    pub(crate) fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)? as usize;
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        self.bytes.get(start..end)
    }
}

/// The length in bytes of the longest common prefix of `left` and `right`.
pub(crate) fn shared(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(a, b)| a == b).count()
}

/// Appends `list`, which should be sorted, to `out` by front coding. The encoded list extends to the end of its block.
///
/// # Errors
/// If the list exceeds [`MAX_RAW_BYTES`] or zstd fails.
pub(crate) fn put<'a>(
    out: &mut Vec<u8>,
    list: impl Iterator<Item = &'a [u8]>,
    level: Compression,
) -> Result<(), WriteError> {
    let (mut raw, mut suffixes) = (Vec::new(), Vec::new());
    let mut previous: &[u8] = &[];
    for item in list {
        let common = shared(previous, item);
        put_varint(&mut raw, common as u64);
        put_varint(&mut raw, (item.len() - common) as u64);
        suffixes.extend_from_slice(&item[common..]);
        previous = item;
    }

    raw.extend_from_slice(&suffixes);
    if raw.len() > MAX_RAW_BYTES {
        return Err(WriteError::TooLarge { what: "bytes of a list", found: raw.len(), limit: MAX_RAW_BYTES });
    }
    Ok(block_compression::put(out, &raw, level)?)
}

/// The two lengths that front coding stores for an item.
struct ItemLengths {
    /// Bytes that it shares with the item before it.
    common: usize,
    /// Bytes that follow those.
    suffix: usize,
}

/// Reads a list of `count` byte strings from the rest of `input`. All lengths are checked before memory is allocated.
///
/// # Errors
/// If the list is damaged, has another number of items, or exceeds [`MAX_RAW_BYTES`].
pub(crate) fn read(input: &mut Input, count: usize) -> Result<ByteList, ReadError> {
    let base = input.offset();
    let raw = block_compression::read(input, MAX_RAW_BYTES)?;
    let mut raw = Input::new(raw, base, "list of byte strings");

    // An item takes at least two bytes.
    if count > raw.left() / 2 {
        return Err(raw.corrupt());
    }
    let mut lengths = Vec::with_capacity(count);
    let (mut total, mut previous) = (0usize, 0usize);
    for _ in 0..count {
        let common = raw.count(previous)?;
        let suffix = raw.count(MAX_RAW_BYTES)?;
        previous = common + suffix;
        total += previous;
        if total > MAX_RAW_BYTES {
            return Err(raw.corrupt());
        }
        lengths.push(ItemLengths { common, suffix });
    }

    let corrupt = raw.corrupt();
    let suffixes = raw.rest();
    let (mut suffixes, mut start) = (suffixes.as_ref(), 0);
    let mut list = ByteList { ends: Vec::with_capacity(count), bytes: Vec::with_capacity(total) };
    for ItemLengths { common, suffix } in lengths {
        let Some((suffix, rest)) = suffixes.split_at_checked(suffix) else { return Err(corrupt) };
        let next = list.bytes.len();
        list.bytes.extend_from_within(start..start + common);
        list.bytes.extend_from_slice(suffix);
        list.ends.push(list.bytes.len() as u32);
        (suffixes, start) = (rest, next);
    }
    if suffixes.is_empty() { Ok(list) } else { Err(corrupt) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_corruption() {
        let items: Vec<Vec<u8>> = (0..200).map(|i| format!("plant#{i:05}#").into_bytes()).collect();
        for items in [&items[..], &items[..1], &[]] {
            let mut out = Vec::new();
            put(&mut out, items.iter().map(Vec::as_slice), Compression::Dense).unwrap();
            let list = read(&mut Input::new(out.clone().into(), 0, "test"), items.len()).unwrap();
            assert!(list.iter().eq(items.iter().map(Vec::as_slice)));
            assert!(read(&mut Input::new(out.clone().into(), 0, "test"), items.len() + 1).is_err());
            out.truncate(out.len() - 1);
            assert!(read(&mut Input::new(out.into(), 0, "test"), items.len()).is_err());
        }
    }
}
