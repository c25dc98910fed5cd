//! The bytes of a field: where its delimiter is.

use crate::number;

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
