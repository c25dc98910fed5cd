//! The ends of a field among bytes without quotes.

use crate::number;

/// Without the blanks around it.
pub(crate) fn trimmed(text: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let Some(start) = text.iter().position(|byte| !blank(byte)) else { return &[] };
    let end = text.iter().rposition(|byte| !blank(byte)).map_or(text.len(), |last| last + 1);
    text.get(start..end).unwrap_or_default()
}

/// Whether a field of an unquoted row may end before `rest[at]`.
#[inline]
pub(crate) fn ends_at(rest: &[u8], at: usize, delimiter: u8) -> bool {
    match rest.get(at) {
        Some(b'\n') => true,
        Some(&byte) if byte == delimiter => true,
        Some(b'\r') => rest.get(at + 1) == Some(&b'\n'),
        _ => false,
    }
}

/// Where the field at the start of `rest` ends; `None` if no delimiter or line end follows.
#[inline]
pub(crate) fn field_end(rest: &[u8], delimiter: u8) -> Option<usize> {
    let end = find(rest, delimiter, b'\n')?;
    let carriage_return = rest.get(end) == Some(&b'\n') && end > 0 && rest.get(end - 1) == Some(&b'\r');
    Some(end - usize::from(carriage_return))
}

/// The first of either byte. Most fields are shorter than a call of memchr pays for.
#[inline]
pub(crate) fn find(rest: &[u8], one: u8, other: u8) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
    let zero_bytes = |word: u64| word.wrapping_sub(ONES) & !word & HIGH_BITS;
    let mut at = 0;
    while at < 32
        && let Some(word) = rest.get(at..).and_then(number::word)
    {
        let hits = zero_bytes(word ^ (ONES * u64::from(one))) | zero_bytes(word ^ (ONES * u64::from(other)));
        if hits != 0 {
            return Some(at + (hits.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    memchr::memchr2(one, other, rest.get(at..)?).map(|found| at + found)
}
