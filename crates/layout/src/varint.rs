//! Variable-length integers (LEB128, the varint of protobuf): seven bits a byte, least significant first, one to ten bytes.

/// Appends `value`.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes an integer off the front of `input`; `None` if `input` ends first or the integer has more than 64 bits.
#[inline]
pub fn take_varint(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = input.split_first()?;
        *input = rest;

        let part = u64::from(byte & 0x7f);
        if shift == 63 && part > 1 {
            return None;
        }

        value |= part << shift;
        if *byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// A signed integer as an unsigned one that is small if it is near zero (zigzag, as protobuf and Avro have it).
#[inline]
#[must_use]
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// What [`zigzag`] was given.
#[inline]
#[must_use]
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// The bytes that [`put_varint`] appends.
#[must_use]
pub fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_taken_as_they_were_put() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            assert_eq!(bytes.len(), varint_len(value));

            bytes.push(9);
            let mut input = &bytes[..];
            assert_eq!((take_varint(&mut input), input), (Some(value), &[9][..]));
            let mut cut = &bytes[..varint_len(value) - 1];
            assert_eq!(take_varint(&mut cut), None);
        }
    }

    #[test]
    fn zigzag_keeps_every_integer() {
        for (value, written) in [(0, 0), (-1, 1), (1, 2), (i64::MAX, u64::MAX - 1), (i64::MIN, u64::MAX)] {
            assert_eq!((zigzag(value), unzigzag(written)), (written, value));
        }
    }

    #[test]
    fn more_than_64_bits_are_none() {
        let eleven = [0x80; 11];
        let two_in_the_last = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
        for bytes in [&eleven[..], &two_in_the_last] {
            assert_eq!(take_varint(&mut &bytes[..]), None);
        }
    }
}
