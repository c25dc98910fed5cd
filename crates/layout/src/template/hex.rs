//! Bytes as hexadecimal digits, in templates.

/// Appends the bytes that `text` names; false if it has other characters or an odd number of them.
pub(crate) fn decode(text: &str, out: &mut Vec<u8>) -> bool {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    for pair in text.as_bytes().chunks(2) {
        let [high, low] = pair else { return false };
        let Some(byte) = digit(*high).zip(digit(*low)).and_then(|(high, low)| u8::try_from(high << 4 | low).ok())
        else {
            return false;
        };
        out.push(byte);
    }
    true
}

/// The digits of `bytes`, in lower case.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
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
