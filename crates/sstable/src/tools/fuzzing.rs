//! Parts of a file as bytes, for fuzz targets: each is read, and what could be read is written and read again.

use std::sync::Arc;

use arrow::buffer::{BooleanBuffer, NullBuffer};
use bytes::Bytes;
use tidetable_layout::Keys;
use tidetable_layout::schema::{KeyTail, TailPart};

use crate::codec::lane::Lane;
use crate::codec::numbers::{Decoder, PageExtent};
use crate::codec::{block_compression, front_coding, integer_list};
use crate::coding::Input;
use crate::column::validity;
use crate::error::ReadError;
use crate::file::filter::{KeyFilter, Kind};
use crate::file::footer::Footer;
use crate::file::header;
use crate::file::meta::Meta;
use crate::format::{Codec, MAX_RAW_BYTES, VERSION};
use crate::keys;
use crate::options::Compression;

/// What errors name as the part that was read.
const NAME: &str = "fuzzed";

fn input(bytes: &[u8]) -> Input {
    Input::new(Bytes::copy_from_slice(bytes), 0, NAME)
}

fn level(dense: bool) -> Compression {
    if dense { Compression::Dense } else { Compression::Fresh }
}

/// The ends of a file of `len` bytes. Whether both were read; a footer that was read is the one that is written.
///
/// # Errors
/// If they are malformed.
pub fn ends(first: &[u8], last: &[u8], len: u64) -> Result<bool, ReadError> {
    let (_, uid) = header::decode(Bytes::copy_from_slice(first))?;
    let footer = Footer::decode(&Bytes::copy_from_slice(last), len)?;
    let again = Footer::decode(&Bytes::copy_from_slice(&footer.encode()), len)?;
    Ok(again == footer && header::encode(uid).len() == first.len())
}

/// Schema, metadata and stripe table that lie at `offset`, shown as they are read and as they are read again.
///
/// # Errors
/// If the bytes are malformed.
pub fn index(bytes: &[u8], offset: u64) -> Result<[String; 2], ReadError> {
    let meta = Meta::decode(Bytes::copy_from_slice(bytes), offset, VERSION)?;
    let written = meta.encode().map_err(|_| ReadError::Corrupt { what: "what was read cannot be written", offset })?;
    let again = Meta::decode(written.into(), offset, VERSION)?;
    Ok([format!("{meta:?}"), format!("{again:?}")])
}

/// A filter of whole keys or of prefixes; whether it lets `key` pass.
///
/// # Errors
/// If the bytes are malformed.
pub fn filter(bytes: &[u8], kind: u8, key: &[u8]) -> Result<bool, ReadError> {
    let kind = Kind::of(kind % 3).unwrap_or(Kind::None);
    let filter = KeyFilter::read(kind, Bytes::copy_from_slice(bytes), 0, &tail(kind as u8))?;
    Ok(filter.is_none_or(|filter| filter.may_contain(key)))
}

fn tail(shape: u8) -> KeyTail {
    let parts = match shape % 4 {
        0 => vec![],
        1 => vec![TailPart::Digits(8)],
        2 => vec![TailPart::Digits(3)],
        _ => vec![TailPart::Digits(4), TailPart::Literal("#".to_owned()), TailPart::Digits(2)],
    };
    KeyTail { parts }
}

fn all(keys: &Keys) -> Vec<Vec<u8>> {
    (0..keys.len()).map(|row| keys.get(row)).collect()
}

/// Keys of `rows` rows whose tails have the shape of this number.
///
/// # Errors
/// If the bytes are malformed.
pub fn keys(bytes: &[u8], rows: usize, shape: u8) -> Result<Vec<Vec<u8>>, ReadError> {
    let mut input = input(bytes);
    let keys = keys::read(&mut input, rows, &Arc::new(tail(shape)))?;
    input.finish()?;
    Ok(all(&keys))
}

/// Keys with these prefixes and tails, and as they are read back; `None` if they do not ascend.
pub fn keys_of(prefixes: &[&[u8]], tails: &[u64], shape: u8, dense: bool) -> Option<[Vec<Vec<u8>>; 2]> {
    let tail = Arc::new(tail(shape));
    let mut keys = Keys::new(Arc::clone(&tail));
    for prefix in prefixes {
        for at in if tail.parts.is_empty() { &[0] } else { tails } {
            keys.push(prefix, *at);
        }
    }
    let mut out = Vec::new();
    keys::put(&mut out, &keys, 0..keys.len(), level(dense)).ok()?;
    let read = keys::read(&mut input(&out), keys.len(), &tail).ok();
    Some([all(&keys), read.map(|keys| all(&keys)).unwrap_or_default()])
}

/// A page of `present` values: all of them, and the first `wanted`, as bits. The codec and the type are numbers.
///
/// # Errors
/// If the bytes are malformed.
pub fn numbers(
    [codec, lane]: [u8; 2],
    [present, wanted]: [usize; 2],
    setup: &[u8],
    page: &[u8],
) -> Result<[Vec<u64>; 2], ReadError> {
    match lane % 5 {
        0 => decoded::<u64>(codec, present, wanted, setup, page),
        1 => decoded::<i64>(codec, present, wanted, setup, page),
        2 => decoded::<u32>(codec, present, wanted, setup, page),
        3 => decoded::<i32>(codec, present, wanted, setup, page),
        _ => decoded::<f64>(codec, present, wanted, setup, page),
    }
}

fn decoded<T: Lane>(
    codec: u8,
    present: usize,
    wanted: usize,
    setup: &[u8],
    page: &[u8],
) -> Result<[Vec<u64>; 2], ReadError> {
    let corrupt = || ReadError::Corrupt { what: NAME, offset: 0 };
    let codec = Codec::of(codec % 11).ok_or_else(corrupt)?;
    let mut decoder = Decoder::<T>::new(codec, input(setup))?;
    let page = Bytes::copy_from_slice(page);

    let all = first_values(&mut decoder, &page, present, present).ok_or_else(corrupt)?;
    // What can be read as a whole can be read in part.
    let room = Decoder::<T>::room(wanted.min(present), present);
    Ok([all, first_values(&mut decoder, &page, present, room).unwrap_or_default()])
}

/// The bits of the first `count` of the `present` values of a page.
fn first_values<T: Lane>(decoder: &mut Decoder<T>, page: &Bytes, present: usize, count: usize) -> Option<Vec<u64>> {
    let mut out = vec![T::default(); count];
    decoder.read(page, PageExtent { first: 0, present }, 0, &mut out)?;
    Some(out.iter().map(|value| value.bits()).collect())
}

/// Values and their round trip, as bits; the type is a number.
pub fn numbers_of(lane: u8, bits: &[u64], dense: bool) -> [Vec<u64>; 2] {
    match lane % 5 {
        0 => written::<u64>(bits, dense),
        1 => written::<i64>(bits, dense),
        2 => written::<u32>(bits, dense),
        3 => written::<i32>(bits, dense),
        _ => written::<f64>(bits, dense),
    }
}

fn written<T: Lane>(bits: &[u64], dense: bool) -> [Vec<u64>; 2] {
    let values: Vec<T> = bits.iter().map(|bits| T::of_bits(*bits)).collect();
    let mut out = Vec::new();
    let put = integer_list::put(&mut out, &values, level(dense)).ok();
    let read = put.and_then(|()| integer_list::read::<T>(&mut input(&out), values.len()).ok()).unwrap_or_default();
    [values, read].map(|values| values.iter().map(|value| value.bits()).collect())
}

/// A list of `count` byte strings.
///
/// # Errors
/// If the bytes are malformed.
pub fn list(bytes: &[u8], count: usize) -> Result<Vec<Vec<u8>>, ReadError> {
    let list = front_coding::read(&mut input(bytes), count)?;
    Ok(list.iter().map(<[u8]>::to_vec).collect())
}

/// The round trip of a list.
///
/// # Errors
/// If it cannot be read.
pub fn list_of(list: &[&[u8]], dense: bool) -> Result<Vec<Vec<u8>>, ReadError> {
    let mut out = Vec::new();
    front_coding::put(&mut out, list.iter().copied(), level(dense))
        .map_err(|_| ReadError::Corrupt { what: "a list cannot be written", offset: 0 })?;
    self::list(&out, list.len())
}

/// Which of `records` records have a value.
///
/// # Errors
/// If the bytes are malformed.
pub fn present(bytes: &[u8], records: usize) -> Result<Vec<bool>, ReadError> {
    let bits = validity::read(&mut input(bytes), records)?;
    Ok(bits.map_or_else(|| vec![true; records], |bits| bits.iter().collect()))
}

/// Its round trip.
///
/// # Errors
/// If it cannot be read.
pub fn present_of(records: &[bool]) -> Result<Vec<bool>, ReadError> {
    let mut out = Vec::new();
    validity::put(&mut out, &NullBuffer::new(BooleanBuffer::from(records.to_vec())));
    present(&out, records.len())
}

/// What packed bytes hold.
///
/// # Errors
/// If they are malformed.
pub fn unpacked(bytes: &[u8]) -> Result<Bytes, ReadError> {
    block_compression::read(&mut input(bytes), MAX_RAW_BYTES)
}

/// The round trip of compressed bytes.
///
/// # Errors
/// If they cannot be read.
pub fn packed_of(raw: &[u8], dense: bool) -> Result<Bytes, ReadError> {
    let mut out = Vec::new();
    block_compression::put(&mut out, raw, level(dense))
        .map_err(|_| ReadError::Corrupt { what: "it cannot be packed", offset: 0 })?;
    unpacked(&out)
}
