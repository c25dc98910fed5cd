//! Row keys in order, held in little memory.
//!
//! ```text
//! bytes shared with the key before (varint)   bytes that follow (varint)   these bytes | ..
//! ```

use tidetable_layout::varint::{put_varint, take_varint};

/// Bytes that are held at most.
const MOST_BYTES: usize = 96 << 20;

/// Row keys by rank.
#[derive(Debug, Default)]
pub(crate) struct KeyList {
    bytes: Vec<u8>,
    last: Vec<u8>,
}

impl KeyList {
    /// With one more; `None` if the list would be too long.
    pub(crate) fn with(mut self, key: &[u8]) -> Option<Self> {
        let shared = self.last.iter().zip(key).take_while(|(one, other)| one == other).count();
        let rest = key.get(shared..).unwrap_or_default();
        put_varint(&mut self.bytes, shared as u64);
        put_varint(&mut self.bytes, rest.len() as u64);
        self.bytes.extend_from_slice(rest);
        self.last.truncate(shared);
        self.last.extend_from_slice(rest);
        (self.bytes.len() <= MOST_BYTES).then_some(self)
    }

    /// With all of a list whose keys come after.
    pub(crate) fn with_all(mut self, other: &Self) -> Option<Self> {
        // Only the first key of the other is written anew.
        let mut keys = Keys { bytes: &other.bytes, key: Vec::new() };
        if !keys.advance() {
            return Some(self);
        }
        self = self.with(&keys.key)?;
        self.bytes.extend_from_slice(keys.bytes);
        self.last.clone_from(&other.last);
        (self.bytes.len() <= MOST_BYTES).then_some(self)
    }

    /// Calls `visit` for each key, in order.
    pub(crate) fn each(&self, mut visit: impl FnMut(&[u8])) {
        let mut keys = Keys { bytes: &self.bytes, key: Vec::new() };
        while keys.advance() {
            visit(&keys.key);
        }
    }
}

/// Reads the keys of a [`KeyList`] in order; `key` is the one that was read last.
struct Keys<'a> {
    bytes: &'a [u8],
    key: Vec<u8>,
}

impl Keys<'_> {
    fn advance(&mut self) -> bool {
        let Some(shared) = take_varint(&mut self.bytes) else { return false };
        let length = take_varint(&mut self.bytes).unwrap_or_default();
        let Some((rest, bytes)) = self.bytes.split_at_checked(length as usize) else { return false };
        self.key.truncate(shared as usize);
        self.key.extend_from_slice(rest);
        self.bytes = bytes;
        true
    }
}

/// Finds the keys of some ranks, as all keys go by.
#[derive(Debug)]
pub(crate) struct KeysAt<'a> {
    /// The wanted ranks, ascending; one may be wanted twice.
    ranks: &'a [u32],
    keys: Vec<Vec<u8>>,
    rank: u32,
}

impl<'a> KeysAt<'a> {
    pub(crate) fn new(ranks: &'a [u32]) -> Self {
        Self { ranks, keys: Vec::with_capacity(ranks.len()), rank: 0 }
    }

    /// Takes the key of the next rank, and keeps it if that is wanted.
    pub(crate) fn see(&mut self, key: &[u8]) {
        while self.ranks.get(self.keys.len()) == Some(&self.rank) {
            self.keys.push(key.to_vec());
        }
        self.rank += 1;
    }

    /// For each of the ranks its key; fewer, if there were not so many.
    pub(crate) fn into_keys(self) -> Vec<Vec<u8>> {
        self.keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(keys: &[&[u8]]) -> KeyList {
        keys.iter().fold(KeyList::default(), |list, key| list.with(key).unwrap())
    }

    fn all(list: &KeyList) -> Vec<Vec<u8>> {
        let mut seen = Vec::new();
        list.each(|key| seen.push(key.to_vec()));
        seen
    }

    #[test]
    fn keys_come_back() {
        let keys = [&b""[..], b"a", b"ab#1", b"ab#10", b"ab#2", b"b"];
        assert_eq!(all(&list(&keys)), keys);
        for at in 0..=keys.len() {
            let joined = list(&keys[..at]).with_all(&list(&keys[at..])).unwrap();
            assert_eq!(all(&joined.with(b"bc").unwrap()), [&keys[..], &[b"bc"]].concat());
        }
    }

    #[test]
    fn keys_are_held_up_to_a_limit() {
        assert!(list(&[b"a"]).with(&vec![0; MOST_BYTES]).is_none());
        assert!(list(&[b"a"]).with(&vec![0; MOST_BYTES / 2]).unwrap().with(&vec![1; MOST_BYTES / 2]).is_none());
    }

    #[test]
    fn keys_are_found_by_rank() {
        let mut found = KeysAt::new(&[0, 2, 2, 9]);
        list(&[b"a", b"b", b"c", b"d"]).each(|key| found.see(key));
        assert_eq!(found.into_keys(), [b"a", b"c", b"c"]);
    }
}
