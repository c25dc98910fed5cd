//! The key filter: a binary fuse filter over hashes of row keys, or of key prefixes if keys share them. It tells a point lookup which
//! files cannot contain a key.
//!
//! Binary fuse filters are by Graf and Lemire, "Binary Fuse Filters: Fast and Smaller Than Xor Filters" (2022): built once from a set,
//! about 9 bits a key at a false-positive rate of 0.4 %, and three memory accesses a lookup. A Bloom filter of that rate needs 12 bits.
//!
//! ```text
//! filter  seed u64 | segment length u32 | segment count length u32 | fingerprints, one byte each
//! ```

use bytes::Bytes;
use tidetable_layout::Keys;
use tidetable_layout::schema::KeyTail;
use xorf::{BinaryFuse8, Descriptor, Filter as _};
use xxhash_rust::xxh3::xxh3_64;

use crate::coding::Input;
use crate::error::ReadError;
use crate::stripe::KeyHashes;

/// Files with fewer rows have no filter; their stripe table suffices.
const MIN_ROWS: u64 = 32;
/// The most hashes that are collected while a file is written, which take 128 MiB. Files with more keys have no filter of them.
const MAX_HASHES: usize = 1 << 24;

/// What a filter has hashes of, as stored in meta.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub(crate) enum Kind {
    /// There is no filter: every key may be contained.
    #[default]
    None = 0,
    /// Hashes of whole row keys.
    Keys = 1,
    /// Hashes of the key prefixes alone, since each occurs with many tails.
    Prefixes = 2,
}

impl Kind {
    /// The kind with this byte, if there is one.
    pub(crate) fn of(byte: u8) -> Option<Self> {
        [Self::None, Self::Keys, Self::Prefixes].into_iter().find(|kind| *kind as u8 == byte)
    }

    /// The name that inspections print.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Keys => "keys",
            Self::Prefixes => "prefixes",
        }
    }
}

/// Collects the hashes of a file, stripe by stripe.
#[derive(Debug)]
pub(crate) struct Builder {
    /// Hashes of keys; `None` once a stripe has only those of prefixes, or there are too many.
    keys: Option<Vec<u64>>,
    /// Hashes of prefixes; `None` once there are too many.
    prefixes: Option<Vec<u64>>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self { keys: Some(Vec::new()), prefixes: Some(Vec::new()) }
    }

    /// Adds the hashes of the next stripe.
    pub(crate) fn add(&mut self, hashes: KeyHashes) {
        extend(&mut self.keys, hashes.keys);
        // A prefix often continues into the next stripe.
        let known = self.prefixes.as_ref().and_then(|all| all.last().copied());
        let skip = usize::from(known.is_some() && known == hashes.prefixes.first().copied());
        extend(&mut self.prefixes, Some(hashes.prefixes.into_iter().skip(skip).collect()));
    }

    /// The kind and the bytes of the filter of a file with `rows` rows.
    pub(crate) fn finish(self, rows: u64) -> (Kind, Vec<u8>) {
        let (kind, mut hashes) = match (self.keys, self.prefixes) {
            _ if rows < MIN_ROWS => return (Kind::None, Vec::new()),
            (Some(keys), _) => (Kind::Keys, keys),
            (None, Some(prefixes)) => (Kind::Prefixes, prefixes),
            (None, None) => return (Kind::None, Vec::new()),
        };

        // Construction requires distinct hashes.
        hashes.sort_unstable();
        hashes.dedup();
        if crate::failpoint!(FilterForgetsKey) {
            hashes.truncate(hashes.len() * 3 / 4);
        }

        match BinaryFuse8::try_from(hashes.as_slice()) {
            Ok(filter) => (kind, encode(&filter)),
            Err(_) => (Kind::None, Vec::new()),
        }
    }
}

/// Appends `more` to `all`; without either, or over the limit, nothing is collected any more.
fn extend(all: &mut Option<Vec<u64>>, more: Option<Vec<u64>>) {
    *all = match (all.take(), more) {
        (Some(mut all), Some(more)) if all.len() + more.len() <= MAX_HASHES => {
            all.extend(more);
            Some(all)
        }
        _ => None,
    };
}

fn encode(filter: &BinaryFuse8) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 + filter.fingerprints.len());
    out.extend_from_slice(&filter.descriptor.seed.to_le_bytes());
    out.extend_from_slice(&filter.descriptor.segment_length.to_le_bytes());
    out.extend_from_slice(&filter.descriptor.segment_count_length.to_le_bytes());
    out.extend_from_slice(&filter.fingerprints);
    out
}

/// A decoded filter, which answers lookups.
#[derive(Debug)]
pub(crate) struct KeyFilter {
    kind: Kind,
    filter: BinaryFuse8,
    /// Bytes of a key's tail, which a filter of prefixes leaves out.
    tail: usize,
}

impl KeyFilter {
    /// Decodes a filter whose checksum has been checked. `None` if the file has no filter.
    ///
    /// # Errors
    /// If the parameters are impossible or do not fit the number of bytes.
    pub(crate) fn read(kind: Kind, bytes: Bytes, offset: u64, tail: &KeyTail) -> Result<Option<Self>, ReadError> {
        let mut input = Input::new(bytes, offset, "filter");
        if kind == Kind::None {
            return input.finish().map(|()| None);
        }

        let (seed, segment_length, segment_count_length) = (input.u64()?, input.u32()?, input.u32()?);
        // Guarantees that every lookup is within the fingerprints.
        let wanted = u64::from(segment_count_length) + 2 * u64::from(segment_length);
        if !segment_length.is_power_of_two()
            || !segment_count_length.is_multiple_of(segment_length)
            || segment_count_length == 0
            || input.left() as u64 != wanted
            || wanted > u64::from(u32::MAX)
        {
            return Err(input.corrupt());
        }

        let descriptor =
            Descriptor { seed, segment_length, segment_length_mask: segment_length - 1, segment_count_length };
        let filter = BinaryFuse8 { descriptor, fingerprints: input.rest().to_vec().into_boxed_slice() };
        Ok(Some(Self { kind, filter, tail: tail.width() }))
    }

    /// Whether the file may contain `key`. False is certain; true is wrong for about 1 absent key in 256.
    pub(crate) fn may_contain(&self, key: &[u8]) -> bool {
        match self.kind {
            Kind::None => true,
            Kind::Keys => self.filter.contains(&xxh3_64(key)),
            Kind::Prefixes => {
                let prefix = key.len().checked_sub(self.tail).and_then(|len| key.get(..len));
                prefix.is_some_and(|prefix| self.filter.contains(&xxh3_64(prefix)))
            }
        }
    }

    /// Whether the filter lets each of `keys` pass, as it must for the keys of its file.
    pub(crate) fn holds(&self, keys: &Keys) -> bool {
        let mut key = Vec::new();
        (0..keys.len()).all(|row| {
            key.clear();
            keys.write(row, &mut key);
            self.may_contain(&key)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_corruption() {
        let hashes: Vec<u64> = (0..1000u64).map(|i| xxh3_64(&i.to_le_bytes())).collect();
        let mut builder = Builder::new();
        builder.add(KeyHashes { keys: Some(hashes), prefixes: vec![1] });
        let (kind, bytes) = builder.finish(1000);
        let tail = KeyTail::default();
        let filter = KeyFilter::read(kind, bytes.clone().into(), 0, &tail).unwrap().unwrap();
        assert!((0..1000u64).all(|i| filter.may_contain(&i.to_le_bytes())));
        assert!((1000..11_000u64).filter(|i| filter.may_contain(&i.to_le_bytes())).count() < 100);
        for at in 8..16 {
            for bit in 0..8 {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << bit;
                assert!(KeyFilter::read(kind, bytes.into(), 0, &tail).is_err());
            }
        }
        assert!(KeyFilter::read(kind, bytes[..bytes.len() - 1].to_vec().into(), 0, &tail).is_err());
    }

    #[test]
    fn few_rows_have_none() {
        let mut builder = Builder::new();
        builder.add(KeyHashes { keys: Some(vec![1]), prefixes: vec![1] });
        assert_eq!(builder.finish(31).0, Kind::None);
    }
}
