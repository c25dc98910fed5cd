//! Hexadecimal text of bytes, for serde.

/// For `#[serde(with)]`: row keys and other bytes as hexadecimal text in JSON.
pub mod hex_bytes {
    use serde::{Deserialize, Deserializer, Serializer, de};

    /// Writes bytes as hexadecimal digits.
    ///
    /// # Errors
    /// Of the serializer.
    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}", Hex(bytes)))
    }

    /// Reads bytes from hexadecimal digits.
    ///
    /// # Errors
    /// For other characters, or an odd number of them.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = text.as_bytes().chunks(2).map(byte);
        bytes.collect::<Option<_>>().ok_or_else(|| de::Error::custom("expected hexadecimal digits"))
    }

    /// The byte of two hexadecimal digits.
    fn byte(pair: &[u8]) -> Option<u8> {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    }

    struct Hex<'a>(&'a [u8]);

    impl std::fmt::Display for Hex<'_> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
        }
    }
}
