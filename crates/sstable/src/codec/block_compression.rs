//! Blocks of bytes, compressed with zstd where that saves space.
//!
//! ```text
//! packed  kind u8 (0 plain, 1 zstd) | unpacked length varint | the rest of the block
//! ```

use std::cell::RefCell;

use bytes::Bytes;

use crate::coding::{Input, put_varint};
use crate::error::ReadError;
use crate::options::Compression;

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;
/// In bytes. Shorter input is stored as it is: the header of a zstd frame outweighs the gain.
const MIN_COMPRESSED: usize = 64;

thread_local! {
    // A zstd context takes a megabyte, so each thread keeps one per level.
    static COMPRESSORS: RefCell<Vec<(i32, zstd::bulk::Compressor<'static>)>> = const { RefCell::new(Vec::new()) };
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Appends `raw` as a block, compressed by zstd if that saves at least an eighth of its size.
///
/// # Errors
/// If zstd fails, which for input in memory means that it is out of memory.
pub(crate) fn put(out: &mut Vec<u8>, raw: &[u8], level: Compression) -> std::io::Result<()> {
    let packed = if raw.len() >= MIN_COMPRESSED { Some(compress(raw, level.zstd_level())?) } else { None };

    match packed.filter(|packed| packed.len() + raw.len() / 8 < raw.len()) {
        Some(packed) => {
            out.push(ZSTD);
            put_varint(out, raw.len() as u64);
            out.extend_from_slice(&packed);
        }
        None => put_plain(out, raw),
    }
    Ok(())
}

/// Appends `raw` as an uncompressed block, for bytes that are known not to shrink.
pub(crate) fn put_plain(out: &mut Vec<u8>, raw: &[u8]) {
    out.push(PLAIN);
    put_varint(out, raw.len() as u64);
    out.extend_from_slice(raw);
}

fn compress(raw: &[u8], level: i32) -> std::io::Result<Vec<u8>> {
    COMPRESSORS.with_borrow_mut(|compressors| {
        let index = match compressors.iter().position(|(other, _)| *other == level) {
            Some(index) => index,
            None => {
                compressors.push((level, zstd::bulk::Compressor::new(level)?));
                compressors.len() - 1
            }
        };
        compressors[index].1.compress(raw)
    })
}

/// Decompresses the rest of `input`, which is one block. The stated length is checked against `most` before memory is allocated, and
/// against the decompressed bytes.
///
/// # Errors
/// If the block is damaged or decompresses to more than `most` bytes.
pub(crate) fn read(input: &mut Input, most: usize) -> Result<Bytes, ReadError> {
    let kind = input.u8()?;
    let len = input.count(most)?;
    let corrupt = input.corrupt();
    let payload = input.rest();

    match kind {
        PLAIN if payload.len() == len => Ok(payload),
        ZSTD => decompress(&payload, len).filter(|raw| raw.len() == len).map(Bytes::from).ok_or(corrupt),
        _ => Err(corrupt),
    }
}

fn decompress(payload: &[u8], len: usize) -> Option<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = Some(zstd::bulk::Decompressor::new().ok()?);
        }
        slot.as_mut()?.decompress(payload, len).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_plain_and_zstd() {
        for raw in [b"tide".to_vec(), b"abcabcab".repeat(100), Vec::new()] {
            let mut out = Vec::new();
            put(&mut out, &raw, Compression::Dense).unwrap();
            let mut input = Input::new(out.into(), 0, "test");
            assert_eq!(read(&mut input, 1 << 20).unwrap(), raw);
        }
    }

    #[test]
    fn wrong_lengths_are_errors() {
        let mut out = Vec::new();
        put(&mut out, &b"abcabcab".repeat(100), Compression::Fresh).unwrap();
        assert!(read(&mut Input::new(out.clone().into(), 0, "test"), 100).is_err());
        out[1] ^= 1;
        assert!(read(&mut Input::new(out.into(), 0, "test"), 1 << 20).is_err());
    }
}
