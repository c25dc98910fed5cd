//! Distinct row keys in order, as a prefix dictionary and an integer tail.
//!
//! ```text
//! 0000987654#20170726   prefix "0000987654#" (once for all its days)   tail 20170726
//! ```
//! The prefixes of a table are prefix-free, which layouts guarantee, so (prefix, tail) sorts as the key bytes do.

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

use arrow::buffer::BooleanBuffer;

use crate::schema::{KeyTail, TailPart};

/// The row keys of a block, in order. Cheap to search, and cheap to restrict to some rows.
#[derive(Debug, Clone)]
pub struct Keys {
    tail: Arc<KeyTail>,
    parts: Parts,
    /// Which of these are the keys; `None` if all of them are.
    kept: Option<Kept>,
}

/// Keys in columns. Prefixes are distinct and concatenated; `prefix_of` and `tails` have an entry per row.
#[derive(Debug, Clone, Default)]
struct Parts {
    prefix_ends: Vec<u32>,
    prefix_bytes: Vec<u8>,
    prefix_of: Vec<u32>,
    tails: Vec<u64>,
}

/// Rows whose keys are taken out when they are first looked at: most filtered scans never look at them.
#[derive(Debug, Clone)]
struct Kept {
    /// The row that the first bit of the mask stands for.
    first: usize,
    mask: BooleanBuffer,
    count: usize,
    found: OnceLock<Parts>,
}

impl KeyTail {
    /// The total number of digits; 0 if there is no tail.
    pub fn digits(&self) -> u32 {
        self.parts.iter().map(|part| if let TailPart::Digits(n) = part { u32::from(*n) } else { 0 }).sum()
    }

    /// The size of the printed tail in bytes.
    pub fn width(&self) -> usize {
        self.parts
            .iter()
            .map(|part| match part {
                TailPart::Digits(n) => usize::from(*n),
                TailPart::Literal(text) => text.len(),
            })
            .sum()
    }

    /// Appends the bytes of the tail `value` to `out`. Digits past the tail's width are dropped.
    pub fn write(&self, value: u64, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + self.width(), b'0');
        let mut at = out.len();
        let mut rest = value;

        for part in self.parts.iter().rev() {
            match part {
                TailPart::Literal(text) => {
                    at -= text.len();
                    out[at..at + text.len()].copy_from_slice(text.as_bytes());
                }
                TailPart::Digits(n) => {
                    for _ in 0..*n {
                        at -= 1;
                        out[at] = b'0' + (rest % 10) as u8;
                        rest /= 10;
                    }
                }
            }
        }
    }

    /// Parses a whole tail; `None` if `bytes` is malformed.
    pub fn read(&self, bytes: &[u8]) -> Option<u64> {
        if bytes.len() != self.width() {
            return None;
        }
        let mut value = 0u64;
        let mut at = 0;

        for part in &self.parts {
            match part {
                TailPart::Literal(text) => {
                    if !bytes[at..].starts_with(text.as_bytes()) {
                        return None;
                    }
                    at += text.len();
                }
                TailPart::Digits(n) => {
                    for _ in 0..*n {
                        let digit = bytes[at].wrapping_sub(b'0');
                        if digit > 9 {
                            return None;
                        }
                        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
                        at += 1;
                    }
                }
            }
        }
        Some(value)
    }
}

impl Keys {
    /// An empty list of keys whose tails have this shape.
    pub fn new(tail: Arc<KeyTail>) -> Self {
        Self { tail, parts: Parts::default(), kept: None }
    }

    /// Keys of columns that a reader has decoded: the end of each distinct prefix in `prefix_bytes`, the prefix of
    /// each row, and each row's tail (none if `tail` has no parts). `None` if the lengths or indexes do not fit
    /// together. The caller guarantees the order of the keys.
    pub fn from_parts(
        tail: Arc<KeyTail>,
        prefix_ends: Vec<u32>,
        prefix_bytes: Vec<u8>,
        prefix_of: Vec<u32>,
        tails: Vec<u64>,
    ) -> Option<Self> {
        let bytes = u32::try_from(prefix_bytes.len()).ok()?;

        let ends_fit = prefix_ends.is_sorted() && prefix_ends.last().copied().unwrap_or(0) == bytes;
        let steps_fit = prefix_of.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) <= 1);
        let first_fits = prefix_of.first().is_none_or(|first| *first == 0);
        let last_fits = prefix_of.last().map_or(0, |last| *last as usize + 1) == prefix_ends.len();
        let tails_fit = tails.len() == if tail.parts.is_empty() { 0 } else { prefix_of.len() };

        let parts = Parts { prefix_ends, prefix_bytes, prefix_of, tails };
        (ends_fit && steps_fit && first_fits && last_fits && tails_fit).then_some(Self { tail, parts, kept: None })
    }

    /// The keys in columns, without the rows that are left out.
    #[inline]
    fn kept_parts(&self) -> &Parts {
        match &self.kept {
            None => &self.parts,
            Some(kept) => kept.found.get_or_init(|| kept.of(&self.parts)),
        }
    }

    fn kept_parts_mut(&mut self) -> &mut Parts {
        if let Some(mut kept) = self.kept.take() {
            self.parts = kept.found.take().unwrap_or_else(|| kept.of(&self.parts));
        }
        &mut self.parts
    }

    /// Appends a key, which must be greater than the last. A prefix equal to the last is shared.
    pub fn push(&mut self, prefix: &[u8], tail: u64) {
        let has_tail = !self.tail.parts.is_empty();
        let parts = self.kept_parts_mut();
        if parts.prefix_ends.len().checked_sub(1).is_none_or(|last| parts.prefix(last) != prefix) {
            parts.prefix_bytes.extend_from_slice(prefix);
            parts.prefix_ends.push(parts.prefix_bytes.len() as u32);
        }
        parts.prefix_of.push(parts.prefix_ends.len() as u32 - 1);
        if has_tail {
            parts.tails.push(tail);
        }
    }

    /// The number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.kept.as_ref().map_or(self.parts.prefix_of.len(), |kept| kept.count)
    }

    /// Whether there is no row in the block.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shape of the tails, as the schema has it.
    pub fn tail_shape(&self) -> &Arc<KeyTail> {
        &self.tail
    }

    /// The number of distinct prefixes.
    pub fn prefix_count(&self) -> usize {
        self.kept_parts().prefix_ends.len()
    }

    /// The bytes of the distinct prefix `index`.
    #[inline]
    pub fn prefix(&self, index: usize) -> &[u8] {
        self.kept_parts().prefix(index)
    }

    /// For each row, the index of its prefix; ascending by runs.
    #[inline]
    pub fn prefix_of(&self) -> &[u32] {
        &self.kept_parts().prefix_of
    }

    /// For each row, its tail; empty if the keys have none.
    #[inline]
    pub fn tails(&self) -> &[u64] {
        &self.kept_parts().tails
    }

    /// Prefix bytes and tail of a row (tail 0 if the keys have none).
    #[inline]
    pub fn parts(&self, row: usize) -> (&[u8], u64) {
        let parts = self.kept_parts();
        (parts.prefix(parts.prefix_of[row] as usize), parts.tails.get(row).copied().unwrap_or(0))
    }

    /// Appends the bytes of the key of `row` to `out`.
    pub fn write(&self, row: usize, out: &mut Vec<u8>) {
        let (prefix, tail) = self.parts(row);
        out.extend_from_slice(prefix);
        self.tail.write(tail, out);
    }

    /// The bytes of the key of `row`. In loops use [`Self::write`], which reuses a buffer.
    pub fn get(&self, row: usize) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(row, &mut out);
        out
    }

    /// Order of two rows of two blocks of one table, as their key bytes compare.
    #[inline]
    pub fn compare(&self, row: usize, other: &Self, other_row: usize) -> Ordering {
        self.parts(row).cmp(&other.parts(other_row))
    }

    /// The first row whose key is not less than `bytes` (any bytes, not only whole keys).
    pub fn lower_bound(&self, bytes: &[u8]) -> usize {
        let mut scratch = Vec::new();
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            scratch.clear();
            self.write(middle, &mut scratch);
            if scratch.as_slice() < bytes { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The keys of the rows `range`, as a list of their own.
    pub fn slice(&self, range: std::ops::Range<usize>) -> Self {
        self.select(range)
    }

    /// These rows, which ascend, as keys of their own.
    pub fn select(&self, rows: impl Iterator<Item = usize>) -> Self {
        Self { tail: Arc::clone(&self.tail), parts: self.kept_parts().select(rows), kept: None }
    }

    /// The rows from `first` on that are set in `mask`; they are taken out when they are first looked at.
    pub fn into_kept(mut self, first: usize, mask: BooleanBuffer) -> Self {
        self.kept_parts_mut();
        let count = mask.count_set_bits();
        Self { kept: Some(Kept { first, mask, count, found: OnceLock::new() }), ..self }
    }
}

impl Kept {
    #[cold]
    fn of(&self, all: &Parts) -> Parts {
        all.select(self.mask.set_indices().map(|row| self.first + row))
    }
}

impl Parts {
    /// The bytes of the distinct prefix `index`.
    #[inline]
    fn prefix(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.prefix_ends[index - 1] as usize };
        &self.prefix_bytes[start..self.prefix_ends[index] as usize]
    }

    fn select(&self, rows: impl Iterator<Item = usize>) -> Self {
        let mut out = Self::default();
        let count = rows.size_hint().0;
        out.prefix_of.reserve(count);
        out.tails.reserve(if self.tails.is_empty() { 0 } else { count });

        let mut last = None;
        for row in rows {
            let prefix = self.prefix_of[row];
            if last != Some(prefix) {
                out.prefix_bytes.extend_from_slice(self.prefix(prefix as usize));
                out.prefix_ends.push(out.prefix_bytes.len() as u32);
                last = Some(prefix);
            }
            out.prefix_of.push(out.prefix_ends.len() as u32 - 1);
            if !self.tails.is_empty() {
                out.tails.push(self.tails[row]);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_keys_are_those_selected() {
        let mut keys = Keys::new(Arc::new(KeyTail { parts: vec![TailPart::Digits(2)] }));
        let rows: [(&[u8], u64); 6] = [(b"a#", 1), (b"a#", 7), (b"b#", 0), (b"c#", 3), (b"c#", 4), (b"d#", 9)];
        rows.iter().for_each(|(prefix, tail)| keys.push(prefix, *tail));
        let kept = keys.clone().into_kept(1, BooleanBuffer::from(vec![true, false, true, true, false]));
        let selected = keys.select([1, 3, 4].into_iter());
        assert_eq!((kept.len(), kept.prefix_count()), (3, 2));
        let all = |keys: &Keys| (0..keys.len()).map(|row| keys.get(row)).collect::<Vec<_>>();
        assert_eq!(all(&kept), [b"a#07", b"c#03", b"c#04"]);
        assert_eq!(all(&selected), all(&kept));
        let mut again = kept.into_kept(0, BooleanBuffer::from(vec![false, true, true]));
        again.push(b"e#", 5);
        assert_eq!(all(&again), [b"c#03", b"c#04", b"e#05"]);
        assert!(keys.into_kept(0, BooleanBuffer::new_unset(6)).is_empty());
    }
}
