//! The blanks around a field: one set for the reader and for the sampler that proposes a declaration.

/// Whether a character is a blank: Unicode's white space, and marks without width such as a byte order mark.
fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{FEFF}')
}

/// The text without the blanks around it.
pub(crate) fn trimmed_text(text: &str) -> &str {
    text.trim_matches(is_blank)
}

/// The field without surrounding blanks. Bytes that are not UTF-8 are no blanks.
#[inline]
pub(crate) fn trimmed(text: &[u8]) -> &[u8] {
    // Most fields begin and end with a visible letter of ASCII.
    if [text.first(), text.last()].into_iter().all(|byte| byte.is_none_or(|byte| (b'!'..=b'~').contains(byte))) {
        return text;
    }
    match std::str::from_utf8(text) {
        Ok(text) => trimmed_text(text).as_bytes(),
        Err(_) => text.trim_ascii(),
    }
}

/// As [`trimmed`] for inputs of the first reader version: blanks and tabs.
pub(crate) fn trimmed_of_ascii(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_of_blanks_are_trimmed() {
        for blank in [" ", "\t", "\u{A0}", "\u{202F}", "\u{2009}", "\u{200B}", "\u{FEFF}", "\r", "\n", "\u{3000}"] {
            let padded = format!("{blank}{blank}1 5{blank}");
            assert_eq!(trimmed(padded.as_bytes()), b"1 5", "{blank:?}");
            assert_eq!(trimmed_text(&padded), "1 5", "{blank:?}");
        }
        assert_eq!(trimmed(b"\xFF 1 "), b"\xFF 1");
        assert_eq!(trimmed("\u{A0}".as_bytes()), b"");
        assert_eq!(trimmed_of_ascii(b" \t1\r"), b"1\r");
    }
}
