//! Dictionaries that intern byte strings and integers.

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

/// Distinct byte strings in order of first appearance. The code of a string is its place in that order.
#[derive(Debug, Clone, Default)]
pub struct Dictionary {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The codes below `indexed`, hashed by their bytes.
    table: HashTable<u32>,
    indexed: u32,
}

impl Dictionary {
    /// An empty dictionary.
    pub fn new() -> Self {
        Self::default()
    }

    /// The code of `bytes`, which are added if they are new.
    pub fn intern(&mut self, bytes: &[u8]) -> u32 {
        self.index();
        let hash = xxh3_64(bytes);
        let (arena, ends) = (&self.bytes, &self.ends);
        if let Some(code) = self.table.find(hash, |code| slice(arena, ends, *code) == bytes) {
            return *code;
        }
        let code = self.push(bytes);
        self.index();
        code
    }

    /// Hashes the strings that [`Self::push`] appended.
    fn index(&mut self) {
        let (arena, ends) = (&self.bytes, &self.ends);
        for code in self.indexed..ends.len() as u32 {
            let hash = xxh3_64(slice(arena, ends, code));
            self.table.insert_unique(hash, code, |code| xxh3_64(slice(arena, ends, *code)));
        }
        self.indexed = ends.len() as u32;
    }

    /// Appends bytes known to be distinct, and returns their code. Hashing is deferred until the next [`Self::intern`].
    pub fn push(&mut self, bytes: &[u8]) -> u32 {
        let code = self.ends.len() as u32;
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
        code
    }

    /// The bytes of `code`; empty if there is no such code.
    pub fn get(&self, code: u32) -> &[u8] {
        slice(&self.bytes, &self.ends, code)
    }

    /// The number of distinct strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no string yet.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The strings in order of their codes.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> + '_ {
        (0..self.len() as u32).map(|code| self.get(code))
    }

    /// The number of bytes of all strings together.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The approximate memory use in bytes, with the hash table.
    pub fn memory(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>() + self.table.capacity() * 6
    }
}

fn slice<'a>(bytes: &'a [u8], ends: &[usize], code: u32) -> &'a [u8] {
    let code = code as usize;
    let start = code.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    ends.get(code).and_then(|end| bytes.get(start..*end)).unwrap_or_default()
}

/// Codes of 64-bit values that repeat, often in the same order.
#[derive(Debug, Default)]
pub(crate) struct NumberCodes {
    /// Places in `values`, hashed by the values.
    table: HashTable<u32>,
    /// The values in order of first appearance.
    values: Vec<u64>,
    /// The code of each value; `None` as long as these are the places.
    codes: Option<Vec<u32>>,
    last: usize,
}

/// Multiplicative hash: the multiplication spreads low bits upward, the fold moves them back down.
fn spread(value: u64) -> u64 {
    let product = value.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    product ^ (product >> 29)
}

impl NumberCodes {
    /// The code of a known value. Telemetry repeats its entities in one order, so the successor is tried first.
    #[inline]
    pub(crate) fn find(&mut self, value: u64) -> Option<u32> {
        if self.values.get(self.last) == Some(&value) {
            return self.code(self.last);
        }
        let next = if self.last + 1 >= self.values.len() { 0 } else { self.last + 1 };
        if self.values.get(next) == Some(&value) {
            self.last = next;
            return self.code(next);
        }

        let values = &self.values;
        let place = self.table.find(spread(value), |place| values.get(*place as usize) == Some(&value))?;
        self.last = *place as usize;
        self.code(self.last)
    }

    #[inline]
    fn code(&self, place: usize) -> Option<u32> {
        self.codes.as_ref().map_or(Some(place as u32), |codes| codes.get(place).copied())
    }

    /// Inserts a value that is not known yet, with its code.
    pub(crate) fn insert(&mut self, value: u64, code: u32) {
        self.last = self.values.len();
        let place = self.last as u32;
        if code != place && self.codes.is_none() {
            self.codes = Some((0..place).collect());
        }
        if let Some(codes) = &mut self.codes {
            codes.push(code);
        }
        self.values.push(value);

        let values = &self.values;
        self.table.insert_unique(spread(value), place, |place| {
            spread(values.get(*place as usize).copied().unwrap_or_default())
        });
    }

    /// Knows only this value from now on.
    pub(crate) fn keep_only(&mut self, value: u64, code: u32) {
        self.last = 0;
        self.table.clear();
        self.values.clear();
        self.values.push(value);
        let codes = self.codes.get_or_insert_default();
        codes.clear();
        codes.push(code);
    }

    /// The approximate memory use in bytes, with the hash table.
    pub(crate) fn memory(&self) -> usize {
        let codes = self.codes.as_ref().map_or(0, Vec::capacity) * size_of::<u32>();
        self.values.capacity() * size_of::<u64>() + codes + self.table.capacity() * 6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_have_one_code() {
        let mut dictionary = Dictionary::new();
        assert_eq!(dictionary.intern(b"a"), 0);
        assert_eq!(dictionary.intern(b""), 1);
        assert_eq!(dictionary.intern(b"ab"), 2);
        assert_eq!(dictionary.intern(b""), 1);
        assert_eq!(dictionary.intern(b"a"), 0);
        assert_eq!(dictionary.iter().collect::<Vec<_>>(), [b"a".as_slice(), b"", b"ab"]);
        assert_eq!((dictionary.len(), dictionary.get(9)), (3, b"".as_slice()));
        for n in 0..10_000u32 {
            assert_eq!(dictionary.intern(&n.to_le_bytes()), n + 3);
        }
        assert_eq!(dictionary.intern(&77u32.to_le_bytes()), 80);
    }

    #[test]
    fn numbers_keep_their_codes_in_any_order() {
        let mut codes = NumberCodes::default();
        for n in 0..5000u64 {
            assert_eq!(codes.find(n * 1000), None);
            codes.insert(n * 1000, n as u32 + 7);
        }
        for n in (0..5000u64).rev().chain(0..5000).chain([4999, 4999, 0]) {
            assert_eq!(codes.find(n * 1000), Some(n as u32 + 7));
        }
    }
}
