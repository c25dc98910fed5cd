//! Patterns in the syntax of RE2, matched against whole byte strings.
//!
//! Bigtable's patterns are in RE2's mode of raw bytes: a byte is a character, and `\C` is any byte, also a newline. The
//! engine here is the crate `regex` on bytes, whose syntax differs in little; that is rewritten before it is compiled.

use std::fmt::Write;

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::hir::literal::{Extractor, Literal};

/// Bytes that a compiled pattern may take.
const SIZE_LIMIT: usize = 1 << 22;
/// Greatest number of literals with which the key of a row may begin.
const MOST_PREFIXES: usize = 64;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    regex: Regex,
    text: String,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// The reason why it is not one.
    pub(crate) fn new(pattern: &[u8]) -> Result<Self, String> {
        let text = translated(pattern);
        let regex =
            RegexBuilder::new(&format!(r"\A(?:{text})\z")).unicode(false).size_limit(SIZE_LIMIT).build().map_err(
                |error| match error {
                    regex::Error::Syntax(said) => said.lines().last().unwrap_or_default().trim().to_owned(),
                    error => error.to_string(),
                },
            )?;
        Ok(Self { regex, text })
    }

    /// Whether all of `bytes` matches.
    pub(crate) fn matches(&self, bytes: &[u8]) -> bool {
        self.regex.is_match(bytes)
    }

    /// Literals of which each match begins with one, and whether the match ends there; `None` if there are none, or many.
    pub(crate) fn prefixes(&self) -> Option<Vec<(Vec<u8>, bool)>> {
        let parser = regex_syntax::ParserBuilder::new().unicode(false).utf8(false).build();
        let hir = { parser }.parse(&self.text).ok()?;
        let found = Extractor::new().limit_total(MOST_PREFIXES).extract(&hir);
        let literals = found.literals()?;
        let of = |literal: &Literal| (literal.as_bytes().to_vec(), literal.is_exact());
        let is_wide = literals.iter().any(Literal::is_empty);
        (!is_wide).then(|| literals.iter().map(of).collect())
    }
}

/// The pattern in the syntax of the engine.
fn translated(pattern: &[u8]) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut in_class = false;
    let mut at = 0;
    while let Some(byte) = pattern.get(at).copied() {
        let next = pattern.get(at + 1).copied();
        at += 1;
        match (byte, next) {
            (b'\\', Some(b'C')) if !in_class => {
                out.push_str("(?s-u:.)");
                at += 1;
            }
            (b'\\', Some(b'Q')) => {
                let rest = pattern.get(at + 1..).unwrap_or_default();
                let end = rest.windows(2).position(|pair| pair == br"\E");
                let quoted = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
                quoted.iter().for_each(|byte| literal(*byte, &mut out));
                at += 1 + quoted.len() + if end.is_some() { 2 } else { 0 };
            }
            // One digit other than 0 would refer to a group, which neither engine has.
            (b'\\', Some(b'0'..=b'7')) if next == Some(b'0') || pattern.get(at + 1).is_some_and(is_octal) => {
                let digits = pattern.iter().skip(at).take(3).take_while(|digit| is_octal(digit));
                let digits: Vec<u32> = digits.map(|digit| u32::from(digit - b'0')).collect();
                at += digits.len();
                code(digits.iter().fold(0, |code, digit| code * 8 + digit), &mut out);
            }
            (b'\\', Some(b'x')) if pattern.get(at + 1) == Some(&b'{') => {
                let rest = pattern.get(at + 2..).unwrap_or_default();
                let digits = rest.split(|byte| *byte == b'}').next().unwrap_or_default();
                let text = std::str::from_utf8(digits).unwrap_or_default();
                match u32::from_str_radix(text, 16) {
                    Ok(number) if digits.len() < rest.len() => {
                        at += 3 + digits.len();
                        code(number, &mut out);
                    }
                    // Left to the engine, which says what is wrong.
                    _ => {
                        out.push_str("\\x");
                        at += 1;
                    }
                }
            }
            // RE2's class lacks the vertical tab.
            (b'\\', Some(b's')) => {
                out.push_str(if in_class { r"\t\n\f\r " } else { r"[\t\n\f\r ]" });
                at += 1;
            }
            (b'\\', Some(b'S')) if !in_class => {
                out.push_str(r"[^\t\n\f\r ]");
                at += 1;
            }
            (b'\\', Some(next)) => {
                if next.is_ascii() {
                    out.push('\\');
                    out.push(char::from(next));
                } else {
                    literal(next, &mut out);
                }
                at += 1;
            }
            (b'[', Some(b':')) if in_class => {
                let rest = pattern.get(at..).unwrap_or_default();
                match rest.windows(2).position(|pair| pair == b":]") {
                    Some(end) => {
                        out.push('[');
                        rest.iter().take(end + 2).for_each(|byte| out.push(char::from(*byte)));
                        at += end + 2;
                    }
                    None => out.push_str(r"\["),
                }
            }
            (b'[', _) if !in_class => {
                in_class = true;
                out.push('[');
                if next == Some(b'^') {
                    out.push('^');
                    at += 1;
                }
                // A bracket that comes first is a member.
                if pattern.get(at) == Some(&b']') {
                    out.push_str(r"\]");
                    at += 1;
                }
            }
            (b']', _) if in_class => {
                in_class = false;
                out.push(']');
            }
            // In a class the engine has nested classes and operators of sets.
            (b'[' | b'&' | b'~', _) if in_class => literal(byte, &mut out),
            (b'-', Some(b'-')) if in_class => out.push_str(r"\-"),
            _ if byte.is_ascii() => out.push(char::from(byte)),
            _ => literal(byte, &mut out),
        }
    }
    out
}

/// Appends the character of a code. Above 255 there is none: what the engine makes of it matches no byte.
fn code(code: u32, out: &mut String) {
    let _ = if code <= 0xff { write!(out, "\\x{code:02x}") } else { write!(out, "\\x{{{code:x}}}") };
}

fn is_octal(digit: &u8) -> bool {
    matches!(digit, b'0'..=b'7')
}

/// Appends a byte that stands for itself.
fn literal(byte: u8, out: &mut String) {
    if byte.is_ascii_alphanumeric() {
        out.push(char::from(byte));
    } else {
        let _ = write!(out, "\\x{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_strings_match_as_in_re2() {
        let cases: &[(&[u8], &[u8], bool)] = &[
            (b"abc", b"abc", true),
            (b"abc", b"xabc", false),
            (b"abc", b"abcd", false),
            (b"a|bc", b"bc", true),
            (b"a|bc", b"abc", false),
            (b"", b"", true),
            (b"", b"a", false),
            (b".*", b"a\nb", false),
            (br"\C*", b"a\nb\xff\x00", true),
            (b".", b"\xff", true),
            (b"\xff", b"\xff", true),
            (br"\xff\x00", b"\xff\x00", true),
            (br"[\x80-\xff]+", b"\x80\xff", true),
            (br"\Qa.b\E+", b"a.bb", true),
            (br"\Qa.b", b"a.b", true),
            (br"\Qa.b", b"axb", false),
            (b"(?i)AbC", b"aBc", true),
            (br"\d+#\w*", b"123#a_B9", true),
            (br"\s", b"\x0b", false),
            (br"[\s]", b" ", true),
            (b"[[:digit:]]+", b"42", true),
            (b"[a&&b]+", b"&a", true),
            (b"[[a]+", b"[a", true),
            (b"[]a]+", b"]a", true),
            (b"[^]a]", b"]", false),
            (b"(?s).", b"\n", true),
            (b"a{2,3}", b"aaa", true),
            (b"(?P<name>x)+", b"xx", true),
            (br"\x{ff}\x{41}", b"\xffA", true),
            (br"\0\101[\0-\07]\377", b"\x00A\x07\xff", true),
        ];
        for (pattern, text, expected) in cases {
            let shown = String::from_utf8_lossy(pattern);
            assert_eq!(Pattern::new(pattern).unwrap().matches(text), *expected, "{shown}");
        }
        for wrong in [&b"("[..], b"a**b(", b"[", br"\p{Greek}", br"(a)\1", b"(?<x"] {
            assert!(Pattern::new(wrong).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
    }

    #[test]
    fn prefixes_are_those_of_matches() {
        let of = |pattern: &[u8]| Pattern::new(pattern).unwrap().prefixes();
        assert_eq!(of(b"abc"), Some(vec![(b"abc".to_vec(), true)]));
        assert_eq!(of(b"abc.*"), Some(vec![(b"abc".to_vec(), false)]));
        assert_eq!(of(br"ab\C*|cd"), Some(vec![(b"ab".to_vec(), false), (b"cd".to_vec(), true)]));
        assert_eq!(of(b".*abc"), None);
        assert_eq!(of(b"(abc)?"), None);
        // Letters of both cases, or fewer of them.
        let folded = of(b"(?i)ab").unwrap();
        assert!(folded.iter().any(|(literal, _)| b"Ab".starts_with(literal)), "{folded:?}");
    }
}
