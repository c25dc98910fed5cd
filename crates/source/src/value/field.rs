//! The bytes of a field.

use crate::number;

/// The field without surrounding blanks.
pub(crate) fn trimmed(text: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let Some(start) = text.iter().position(|byte| !blank(byte)) else { return &[] };
    let end = text.iter().rposition(|byte| !blank(byte)).map_or(text.len(), |last| last + 1);
    text.get(start..end).unwrap_or_default()
}

/// The offset of the first of either byte. Most fields are too short for memchr to pay off.
#[inline]
pub(crate) fn find(rest: &[u8], one: u8, other: u8) -> Option<usize> {
    let mut at = 0;
    while at < 32
        && let Some(word) = rest.get(at..).and_then(number::word)
    {
        let hits = number::zero_bytes(word ^ (number::ONES * u64::from(one)))
            | number::zero_bytes(word ^ (number::ONES * u64::from(other)));
        if hits != 0 {
            return Some(at + (hits.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    memchr::memchr2(one, other, rest.get(at..)?).map(|found| at + found)
}
