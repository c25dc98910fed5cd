//! Percent-encoding of text in templates, so that a value may hold the literals around it.

/// The hexadecimal digits, by value; percent-encoding uses upper case (RFC 3986).
const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// The bytes that are escaped: `%`, control bytes, and the bytes of the template's literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Escapes([u128; 2]);

impl Default for Escapes {
    fn default() -> Self {
        let mut escapes = Self([0; 2]);
        (0..=0x1f).chain([0x7f, b'%']).for_each(|byte| escapes.add(byte));
        escapes
    }
}

impl Escapes {
    /// Adds a byte to those that are escaped.
    pub(crate) fn add(&mut self, byte: u8) {
        if let Some(half) = self.0.get_mut(usize::from(byte >> 7)) {
            *half |= 1 << (byte & 0x7f);
        }
    }

    fn has(&self, byte: u8) -> bool {
        self.0.get(usize::from(byte >> 7)).is_some_and(|half| half >> (byte & 0x7f) & 1 == 1)
    }

    /// Appends `text` percent-encoded. If one byte of a character is escaped all are, so that the result is UTF-8.
    pub(crate) fn write(&self, text: &str, out: &mut Vec<u8>) {
        let mut buffer = [0; 4];
        for c in text.chars() {
            let bytes = c.encode_utf8(&mut buffer).as_bytes();
            if !bytes.iter().any(|byte| self.has(*byte)) {
                out.extend_from_slice(bytes);
                continue;
            }
            for byte in bytes {
                out.extend_from_slice(&[b'%', hex_digit(byte >> 4), hex_digit(byte & 15)]);
            }
        }
    }
}

fn hex_digit(nibble: u8) -> u8 {
    HEX.get(usize::from(nibble)).copied().unwrap_or(b'0')
}

/// Decodes [`Escapes::write`]; `None` for an incomplete or malformed escape.
pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte == b'%' {
            let (digits, after) = after.split_at_checked(2)?;
            let value =
                digits.iter().try_fold(0, |value, digit| Some(value << 4 | char::from(*digit).to_digit(16)?))?;
            out.push(u8::try_from(value).ok()?);
            rest = after;
        } else {
            out.push(*byte);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_back() {
        let mut escapes = Escapes::default();
        "#é".bytes().for_each(|byte| escapes.add(byte));
        for (text, encoded) in [
            ("a#b", "a%23b"),
            ("100%", "100%25"),
            ("", ""),
            ("\n\u{7f}", "%0A%7F"),
            // It shares a byte with é.
            ("è", "%C3%A8"),
            ("€/ß", "€/%C3%9F"),
        ] {
            let mut out = Vec::new();
            escapes.write(text, &mut out);
            assert_eq!(String::from_utf8(out.clone()).unwrap(), encoded);
            assert_eq!(decode(&out).unwrap(), text.as_bytes());
        }
        for wrong in ["%", "%4", "%4g", "a%"] {
            assert_eq!(decode(wrong.as_bytes()), None);
        }
    }
}
