//! Distinct row keys in order, as a prefix dictionary and an integer tail.
//!
//! ```text
//! 0000987654#20170726   prefix "0000987654#" (once for all its days)   tail 20170726
//! ```
//! The prefixes of a table are prefix-free, which layouts guarantee, so (prefix, tail) sorts as the key bytes do.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::schema::{KeyTail, TailPart};

/// Row keys of a block.
#[derive(Debug, Clone)]
pub struct Keys {
    tail: Arc<KeyTail>,
    prefix_ends: Vec<u32>,
    prefix_bytes: Vec<u8>,
    prefix_of: Vec<u32>,
    tails: Vec<u64>,
}

impl KeyTail {
    /// The total number of digits; 0 if there is no tail.
    pub fn digits(&self) -> u32 {
        self.parts.iter().map(|part| if let TailPart::Digits(n) = part { u32::from(*n) } else { 0 }).sum()
    }

    /// Bytes of the rendered tail.
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
    /// No keys yet, with this tail.
    pub fn new(tail: Arc<KeyTail>) -> Self {
        Self { tail, prefix_ends: Vec::new(), prefix_bytes: Vec::new(), prefix_of: Vec::new(), tails: Vec::new() }
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
        (ends_fit && steps_fit && first_fits && last_fits && tails_fit).then_some(Self {
            tail,
            prefix_ends,
            prefix_bytes,
            prefix_of,
            tails,
        })
    }

    /// Appends a key, which must be greater than the last. A prefix equal to the last is shared.
    pub fn push(&mut self, prefix: &[u8], tail: u64) {
        let shared = !self.prefix_of.is_empty() && self.last_prefix() == prefix;
        if !shared {
            self.prefix_bytes.extend_from_slice(prefix);
            self.prefix_ends.push(self.prefix_bytes.len() as u32);
        }
        self.prefix_of.push(self.prefix_ends.len() as u32 - 1);
        if !self.tail.parts.is_empty() {
            self.tails.push(tail);
        }
    }

    fn last_prefix(&self) -> &[u8] {
        self.prefix(self.prefix_ends.len() - 1)
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.prefix_of.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.prefix_of.is_empty()
    }

    /// The schema of the tails.
    pub fn tail_shape(&self) -> &Arc<KeyTail> {
        &self.tail
    }

    /// Distinct prefixes.
    pub fn prefix_count(&self) -> usize {
        self.prefix_ends.len()
    }

    /// Bytes of a distinct prefix.
    pub fn prefix(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.prefix_ends[index - 1] as usize };
        &self.prefix_bytes[start..self.prefix_ends[index] as usize]
    }

    /// For each row, the index of its prefix; ascending by runs.
    pub fn prefix_of(&self) -> &[u32] {
        &self.prefix_of
    }

    /// For each row, its tail; empty if the keys have none.
    pub fn tails(&self) -> &[u64] {
        &self.tails
    }

    /// Prefix bytes and tail of a row (tail 0 if the keys have none).
    pub fn parts(&self, row: usize) -> (&[u8], u64) {
        (self.prefix(self.prefix_of[row] as usize), self.tails.get(row).copied().unwrap_or(0))
    }

    /// Appends the bytes of the key of `row`.
    pub fn write(&self, row: usize, out: &mut Vec<u8>) {
        let (prefix, tail) = self.parts(row);
        out.extend_from_slice(prefix);
        self.tail.write(tail, out);
    }

    /// The bytes of the key of `row`.
    pub fn get(&self, row: usize) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(row, &mut out);
        out
    }

    /// Order of two rows of two blocks of one table, as their key bytes compare.
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

    /// Rows `range` as keys of their own.
    pub fn slice(&self, range: std::ops::Range<usize>) -> Self {
        self.select(range)
    }

    /// These rows, which ascend, as keys of their own.
    pub fn select(&self, rows: impl Iterator<Item = usize>) -> Self {
        let mut out = Self::new(Arc::clone(&self.tail));
        let count = rows.size_hint().0;
        out.prefix_of.reserve(count);
        out.tails.reserve(if self.tails.is_empty() { 0 } else { count });
        let mut last = None;
        for row in rows {
            let own = self.prefix_of[row];
            if last != Some(own) {
                out.prefix_bytes.extend_from_slice(self.prefix(own as usize));
                out.prefix_ends.push(out.prefix_bytes.len() as u32);
                last = Some(own);
            }
            out.prefix_of.push(out.prefix_ends.len() as u32 - 1);
            if !self.tails.is_empty() {
                out.tails.push(self.tails[row]);
            }
        }
        out
    }
}
