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

/// Concatenated byte strings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ByteList {
    pub(crate) ends: Vec<u32>,
    pub(crate) bytes: Vec<u8>,
}

impl ByteList {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start as usize..*end as usize])
    }

    /// The byte string at `index`.
    pub(crate) fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)? as usize;
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        self.bytes.get(start..end)
    }
}

/// Length of the common prefix of `left` and `right`.
pub(crate) fn shared(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(a, b)| a == b).count()
}

/// Appends the list to `out`. It extends to the end of `out`.
pub(crate) fn put<'a>(
    out: &mut Vec<u8>,
    list: impl Iterator<Item = &'a [u8]>,
    level: Compression,
) -> Result<(), WriteError> {
    let (mut raw, mut own) = (Vec::new(), Vec::new());
    let mut last: &[u8] = &[];
    for item in list {
        let common = shared(last, item);
        put_varint(&mut raw, common as u64);
        put_varint(&mut raw, (item.len() - common) as u64);
        own.extend_from_slice(&item[common..]);
        last = item;
    }
    raw.extend_from_slice(&own);
    if raw.len() > MAX_RAW_BYTES {
        return Err(WriteError::TooLarge { what: "bytes of a list", found: raw.len(), limit: MAX_RAW_BYTES });
    }
    Ok(block_compression::put(out, &raw, level)?)
}

/// Reads a list of `count` from the rest of `input`.
pub(crate) fn read(input: &mut Input, count: usize) -> Result<ByteList, ReadError> {
    let base = input.offset();
    let raw = block_compression::read(input, MAX_RAW_BYTES)?;
    let mut raw = Input::new(raw, base, "list of byte strings");
    // Each takes at least two bytes; checked before allocating.
    if count > raw.left() / 2 {
        return Err(raw.corrupt());
    }
    let mut lengths = Vec::with_capacity(count);
    let (mut total, mut previous) = (0usize, 0usize);
    for _ in 0..count {
        let common = raw.count(previous)?;
        let own = raw.count(MAX_RAW_BYTES)?;
        previous = common + own;
        total += previous;
        if total > MAX_RAW_BYTES {
            return Err(raw.corrupt());
        }
        lengths.push((common, own));
    }
    let mut list = ByteList { ends: Vec::with_capacity(count), bytes: Vec::with_capacity(total) };
    let corrupt = raw.corrupt();
    let own = raw.rest();
    let (mut own, mut start) = (own.as_ref(), 0);
    for (common, len) in lengths {
        let Some((item, rest)) = own.split_at_checked(len) else { return Err(corrupt) };
        let next = list.bytes.len();
        list.bytes.extend_from_within(start..start + common);
        list.bytes.extend_from_slice(item);
        list.ends.push(list.bytes.len() as u32);
        (own, start) = (rest, next);
    }
    if own.is_empty() { Ok(list) } else { Err(corrupt) }
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
