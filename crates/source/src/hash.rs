//! The fingerprint of a file's bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use xxhash_rust::xxh3::Xxh3Default;

use crate::error::SourceError;

/// XXH3-128 (seed 0) of a file's bytes as stored, before any decompression. Shown as 32 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash(pub u128);

impl fmt::Display for ContentHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", self.0)
    }
}

impl FromStr for ContentHash {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        let hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        u128::from_str_radix(text, 16)
            .ok()
            .filter(|_| hex)
            .map(Self)
            .ok_or_else(|| SourceError::BadHash { text: text.to_owned() })
    }
}

impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Bytes seen so far, and their hash.
#[derive(Default)]
pub(crate) struct Tally {
    hasher: Box<Xxh3Default>,
    bytes: u64,
}

impl Tally {
    pub fn add(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn hash(&self) -> ContentHash {
        ContentHash(self.hasher.digest128())
    }
}
