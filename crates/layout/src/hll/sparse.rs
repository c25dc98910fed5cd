//! Sparse values: the index and rank of one hash in at most 22 bits.
//!
//! ```text
//!   0 | 0 | index: 20 bits                 the register follows from the index: its last 5 bits are not all 0
//!   1 | normal index: 15 bits | zeros: 6   else the number of zeros after the 20 bits, plus 1, stands with it
//! ```

use crate::hll::parameters::{NORMAL_PRECISION, SPARSE_PRECISION};
use crate::varint::varint_len;

/// Bits of the sparse index after the normal one.
const EXTRA: u32 = SPARSE_PRECISION - NORMAL_PRECISION;
const EXTRA_MASK: u32 = (1 << EXTRA) - 1;
const ZEROS_BITS: u32 = 6;
const ZEROS_MASK: u32 = (1 << ZEROS_BITS) - 1;
/// Set in values with an explicit number of zeros.
const FLAG: u32 = 1 << (NORMAL_PRECISION + ZEROS_BITS);
/// The most zeros after the sparse index, plus 1.
const MAX_ZEROS: u32 = 64 - SPARSE_PRECISION + 1;

/// The sparse value of a hash: its index, and where that tells nothing the number of zeros after it.
pub(super) fn encode(hash: u64) -> u32 {
    let index = (hash >> (64 - SPARSE_PRECISION)) as u32;
    if index & EXTRA_MASK != 0 {
        return index;
    }
    let zeros = ((hash << SPARSE_PRECISION).leading_zeros() + 1).min(MAX_ZEROS);
    FLAG | (index >> EXTRA) << ZEROS_BITS | zeros
}

/// Whether some hash encodes to this value.
pub(super) fn is_valid(value: u32) -> bool {
    if value & FLAG == 0 {
        value < 1 << SPARSE_PRECISION && value & EXTRA_MASK != 0
    } else {
        value < FLAG << 1 && (1..=MAX_ZEROS).contains(&(value & ZEROS_MASK))
    }
}

/// The register of a value, and the rank it implies.
fn register(value: u32) -> (usize, u8) {
    if value & FLAG == 0 {
        let after = (value & EXTRA_MASK) << (32 - EXTRA);
        ((value >> EXTRA) as usize, after.leading_zeros() as u8 + 1)
    } else {
        (((value ^ FLAG) >> ZEROS_BITS) as usize, (EXTRA + (value & ZEROS_MASK)) as u8)
    }
}

/// Raises the register of a sparse value to its rank.
#[inline]
pub(super) fn put_register(registers: &mut [u8], value: u32) {
    let (index, rank) = register(value);
    if let Some(slot) = registers.get_mut(index) {
        *slot = (*slot).max(rank);
    }
}

/// The index of a sparse value, with its flag.
fn index(value: u32) -> u32 {
    if value & FLAG == 0 { value } else { value >> ZEROS_BITS | FLAG }
}

/// Keeps the greatest value of each index: the one with the most zeros.
pub(super) fn dedup(sorted: &mut Vec<u32>) {
    let mut kept = 0;
    for at in 0..sorted.len() {
        let value = sorted[at];
        if kept > 0 && index(sorted[kept - 1]) == index(value) {
            sorted[kept - 1] = value;
        } else {
            sorted[kept] = value;
            kept += 1;
        }
    }
    sorted.truncate(kept);
}

/// The encoded size in bytes: varints of the differences.
pub(super) fn bytes(sorted: &[u32]) -> usize {
    let mut last = 0;
    let differences = sorted.iter().map(|value| value - std::mem::replace(&mut last, *value));
    differences.map(|difference| varint_len(difference.into())).sum()
}
