//! Flat JSON objects: names with strings or bare literals, whose digits are kept as they are written.

/// A value of an object: a string, or the text of a number, `true`, `false` or `null`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JsonValue {
    Text(String),
    Bare(String),
}

/// The string that the whole of `text` is, without its quotes and escapes; `None` if it is none.
pub(super) fn string(text: &str) -> Option<String> {
    let mut rest = text.trim();
    let found = take_string(&mut rest)?;
    rest.is_empty().then_some(found)
}

/// The members of an object without nested ones, in their order; `None` if `text` is something else.
pub(super) fn object(text: &str) -> Option<Vec<(String, JsonValue)>> {
    let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    let mut out = Vec::new();
    while !rest.is_empty() {
        let name = take_string(&mut rest)?;
        rest = rest.trim_start().strip_prefix(':')?.trim_start();

        let value = if rest.starts_with('"') {
            JsonValue::Text(take_string(&mut rest)?)
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            let (bare, after) = rest.split_at(end);
            rest = after;
            let bare = bare.trim();
            if bare.is_empty() || bare.contains(['{', '}', '[', ']', '"', ':']) {
                return None;
            }
            JsonValue::Bare(bare.to_owned())
        };
        out.push((name, value));

        rest = rest.trim_start();
        if rest.is_empty() {
            break;
        }
        rest = rest.strip_prefix(',')?.trim_start();
        if rest.is_empty() {
            return None;
        }
    }
    Some(out)
}

/// Takes a string in quotes from the beginning of `rest`, and decodes its escapes.
fn take_string(rest: &mut &str) -> Option<String> {
    let mut out = String::new();
    let mut letters = rest.strip_prefix('"')?.char_indices();

    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => {
                *rest = rest.get(at + 2..)?;
                return Some(out);
            }
            '\\' => match letters.next()?.1 {
                'n' => out.push('\n'),
                'r' => out.push('\r'),
                't' => out.push('\t'),
                'b' => out.push('\u{8}'),
                'f' => out.push('\u{c}'),
                'u' => {
                    let first = code(&mut letters)?;
                    let point = if (0xd800..0xdc00).contains(&first) {
                        if letters.next()?.1 != '\\' || letters.next()?.1 != 'u' {
                            return None;
                        }
                        let second = code(&mut letters)?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
                        0x1_0000 + ((first - 0xd800) << 10) + second
                    } else {
                        first
                    };
                    out.push(char::from_u32(point)?);
                }
                other @ ('"' | '\\' | '/') => out.push(other),
                _ => return None,
            },
            control if control < ' ' => return None,
            other => out.push(other),
        }
    }
    None
}

/// The code unit of four hexadecimal digits.
fn code(letters: &mut std::str::CharIndices<'_>) -> Option<u32> {
    (0..4).try_fold(0, |code, _| Some(code << 4 | letters.next()?.1.to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_read_with_their_digits() {
        let text = r#" { "a": 600.60, "b,{" : "x\"\n\u00e9\ud83d\ude00", "c":null,"d":true } "#;
        let bare = |text: &str| JsonValue::Bare(text.to_owned());
        let expected = [
            ("a", bare("600.60")),
            ("b,{", JsonValue::Text("x\"\né😀".to_owned())),
            ("c", bare("null")),
            ("d", bare("true")),
        ];
        assert_eq!(object(text), Some(expected.map(|(name, value)| (name.to_owned(), value)).to_vec()));
        assert_eq!(object("{}"), Some(Vec::new()));
        for bad in ["", "[]", "{\"a\":}", "{\"a\":1,}", "{\"a\":{\"b\":1}}", "{\"a\" 1}", "{\"a\":\"\\x\"}", "{\"a\":1"]
        {
            assert_eq!(object(bad), None, "{bad}");
        }
        assert_eq!(string("\"\\ud83d\""), None);
    }
}
