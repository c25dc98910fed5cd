//! The syntax of patterns.
//!
//! Bigtable's patterns are in RE2's mode of raw bytes: a byte is a character, and `\C` is any byte, also a newline. The
//! engine here is that of the crate `regex` on bytes, whose syntax differs in little; that is rewritten before it is compiled.

use std::fmt::Write;

/// The pattern in the syntax of the engine.
pub(super) fn translated(pattern: &[u8]) -> String {
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
