//! Bytes that are zstd'd where that helps.
//!
//! ```text
//! packed  kind u8 (0 plain, 1 zstd) | unpacked length varint | the rest of the block
//! ```

use std::cell::RefCell;

use bytes::Bytes;

use crate::error::ReadError;
use crate::options::Compression;
use crate::wire::{Input, put_varint};

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;
/// Below this a zstd frame's own header eats the gain.
const WORTH_TRYING: usize = 64;

thread_local! {
    // A zstd context is a megabyte to build; one a thread and level serves every page.
    static COMPRESSORS: RefCell<Vec<(i32, zstd::bulk::Compressor<'static>)>> = const { RefCell::new(Vec::new()) };
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Appends `raw`, zstd'd if that saves at least an eighth.
pub(crate) fn put(out: &mut Vec<u8>, raw: &[u8], level: Compression) -> std::io::Result<()> {
    let packed = if raw.len() >= WORTH_TRYING { Some(compress(raw, level.zstd_level())?) } else { None };
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

/// Appends `raw` as it is.
pub(crate) fn put_plain(out: &mut Vec<u8>, raw: &[u8]) {
    out.push(PLAIN);
    put_varint(out, raw.len() as u64);
    out.extend_from_slice(raw);
}

fn compress(raw: &[u8], level: i32) -> std::io::Result<Vec<u8>> {
    COMPRESSORS.with_borrow_mut(|all| {
        let at = match all.iter().position(|(other, _)| *other == level) {
            Some(at) => at,
            None => {
                all.push((level, zstd::bulk::Compressor::new(level)?));
                all.len() - 1
            }
        };
        all[at].1.compress(raw)
    })
}

/// The bytes that the rest of `input` packs; at most `most` of them.
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
