//! Bytes as hexadecimal digits, in templates.

/// Appends the bytes that `text` names; false if it has other characters or an odd number of them.
pub(crate) fn decode(text: &str, out: &mut Vec<u8>) -> bool {
    for pair in text.as_bytes().chunks(2) {
        let [high, low] = pair else { return false };
        let digits = digit_of(*high).zip(digit_of(*low));
        let Some(byte) = digits.and_then(|(high, low)| u8::try_from(high << 4 | low).ok()) else {
            return false;
        };
        out.push(byte);
    }
    true
}

/// The value of a hexadecimal digit in either case.
fn digit_of(byte: u8) -> Option<u32> {
    char::from(byte).to_digit(16)
}

/// The hexadecimal digits of `bytes`, in lower case.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let nibbles = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    nibbles.map(|nibble| char::from_digit(nibble.into(), 16).unwrap_or('0')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        for bytes in [&b""[..], b"\x00\xff", b"key"] {
            let mut out = Vec::new();
            assert!(decode(&encode(bytes), &mut out));
            assert_eq!(out, bytes);
        }
        let mut out = Vec::new();
        assert!(decode("Ff", &mut out));
        assert_eq!(out, [255]);
        for bad in ["f", "fff", "0x", "é"] {
            assert!(!decode(bad, &mut Vec::new()), "{bad}");
        }
    }
}
