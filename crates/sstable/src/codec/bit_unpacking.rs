//! Bit unpacking: integers of equal width, least significant bit first, without gaps between them.

/// Integers of a group. Eight integers of `n` bits take exactly `n` bytes, so every group begins at a byte.
const GROUP: usize = 8;
/// The greatest width in bits for which an unaligned load of eight bytes contains the integer, whichever bit it starts at.
const NARROW: u32 = 56;

/// Fills `slots` with `base` plus the integers of `width` bits (at most 64) at the start of `packed`. Missing bytes count as 0; the
/// caller checks the length. One loop is compiled for each width, as in most implementations of bit packing.
pub(crate) fn unpack(packed: &[u8], width: u32, base: i64, slots: &mut [i64]) {
    macro_rules! by_width {
        ($($width:literal)*) => {
            match width {
                0 => slots.fill(base),
                $($width => narrow::<$width>(packed, base, slots),)*
                _ => wide(packed, width, base, slots),
            }
        };
    }
    by_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42
        43 44 45 46 47 48 49 50 51 52 53 54 55 56);
}

/// As [`unpack`] for a width known at compile time: offsets and shifts within a group are constants, and bounds are checked once a
/// group.
fn narrow<const WIDTH: usize>(packed: &[u8], base: i64, slots: &mut [i64]) {
    let mut at = 0;
    for group in slots.chunks_mut(GROUP) {
        let mut room = [0u8; GROUP + NARROW as usize];
        let bytes = match packed.get(at..at + WIDTH + GROUP) {
            Some(bytes) => bytes,
            // The last groups.
            None => {
                let left = packed.get(at..).unwrap_or_default();
                let copied = left.len().min(WIDTH + GROUP);
                room[..copied].copy_from_slice(&left[..copied]);
                &room[..WIDTH + GROUP]
            }
        };

        match group.as_chunks_mut::<GROUP>() {
            ([whole], _) => unpack_group::<WIDTH>(bytes, base, whole),
            (_, partial) => {
                let mut whole = [0; GROUP];
                unpack_group::<WIDTH>(bytes, base, &mut whole);
                partial.copy_from_slice(&whole[..partial.len()]);
            }
        }

        at += WIDTH;
    }
}

#[inline]
fn unpack_group<const WIDTH: usize>(bytes: &[u8], base: i64, slots: &mut [i64; GROUP]) {
    let mask = (1u64 << WIDTH) - 1;
    // One bounds check for the eight loads below.
    let bytes = &bytes[..WIDTH + GROUP];

    for (at, slot) in slots.iter_mut().enumerate() {
        let bit = at * WIDTH;
        let word = bytes[bit / 8..].first_chunk::<8>().map_or(0, |word| u64::from_le_bytes(*word));
        *slot = base.wrapping_add(((word >> (bit % 8)) & mask).cast_signed());
    }
}

/// As [`unpack`] for 57 to 64 bits, whose integers can span nine bytes. Rare, so not unrolled.
fn wide(packed: &[u8], width: u32, base: i64, slots: &mut [i64]) {
    let mask = (1u128 << width) - 1;
    for (at, slot) in slots.iter_mut().enumerate() {
        let bit = at * width as usize;

        let mut word = [0u8; 16];
        let left = packed.get(bit / 8..).unwrap_or_default();
        let copied = left.len().min(16);
        word[..copied].copy_from_slice(&left[..copied]);

        *slot = base.wrapping_add(((u128::from_le_bytes(word) >> (bit % 8)) & mask) as u64 as i64);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packed_integers_come_back(values in prop::collection::vec(any::<u64>(), 0..200), width in 0u32..=64, base: i64) {
            let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
            let mut packed = vec![0u8; (values.len() * width as usize).div_ceil(8)];
            for (at, value) in values.iter().enumerate() {
                for bit in (0..width as usize).filter(|bit| (value & mask) >> bit & 1 == 1) {
                    let place = at * width as usize + bit;
                    packed[place / 8] |= 1 << (place % 8);
                }
            }
            let mut slots = vec![0; values.len()];
            unpack(&packed, width, base, &mut slots);
            let expected: Vec<i64> = values.iter().map(|value| base.wrapping_add((value & mask).cast_signed())).collect();
            prop_assert_eq!(slots, expected);
        }
    }
}
