//! Reads JSON where it lies: values are ranges of the text, whose own digits decide what they are worth.
//!
//! Two liberties: the words `NaN`, `Infinity` and `-Infinity` are numbers, since Python writes them, and strings may hold
//! control characters.

use std::borrow::Cow;
use std::ops::Range;

use crate::number::{ONES, word, zero_bytes};

/// Objects and arrays inside each other that are read.
const DEEPEST: usize = 128;

/// Why a text is not JSON, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Offset of the byte in the text, from 0.
    pub at: usize,
    pub what: &'static str,
}

/// The form of a value in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Number,
    /// The words `NaN`, `Infinity` and `-Infinity`, which Python writes.
    NotFinite,
    /// A string; its range is without the quotes.
    Text {
        has_escapes: bool,
    },
    /// An object or an array, whose range is its whole text.
    Nested,
}

/// A value, and where it is in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value {
    pub kind: Kind,
    pub range: Range<usize>,
}

/// A place in a text, from which values are read in order.
#[derive(Debug, Clone)]
pub(crate) struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a [u8], at: usize) -> Self {
        Self { text, at, depth: 0 }
    }

    pub fn at(&self) -> usize {
        self.at
    }

    /// The bytes of a value, as they are written.
    pub fn text(&self, range: &Range<usize>) -> &'a [u8] {
        self.text.get(range.clone()).unwrap_or_default()
    }

    pub fn fault(&self, what: &'static str) -> Fault {
        let what = if self.at >= self.text.len() {
            "the line ends within the object; write each object on one line, as `jq -c` does"
        } else {
            what
        };
        Fault { at: self.at, what }
    }

    #[inline]
    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.text.get(self.at) {
            self.at += 1;
        }
    }

    /// The next byte that is no blank.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        self.skip_blanks();
        self.text.get(self.at).copied()
    }

    /// Goes past `byte` if it is the next one that is no blank; returns whether it is.
    #[inline]
    pub fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    /// Enters an object or array, behind its bracket.
    #[inline]
    pub fn enter(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Fault { at: self.at, what: "objects and arrays lie more than 128 deep in each other" });
        }
        self.at += 1;
        Ok(())
    }

    /// The key of the next member of an object, behind the value of the one before; `None` behind the last.
    #[inline]
    pub fn key(&mut self, is_first: bool) -> Result<Option<Value>, Fault> {
        if self.take(b'}') {
            if !is_first && self.text.get(..self.at - 1).is_some_and(|before| before.trim_ascii_end().ends_with(b",")) {
                return Err(Fault { at: self.at - 1, what: "a comma stands before `}`" });
            }
            self.depth = self.depth.saturating_sub(1);
            return Ok(None);
        }
        if !is_first && !self.take(b',') {
            return Err(self.fault("`,` or `}` should stand here"));
        }
        if self.peek() != Some(b'"') {
            return Err(self.fault("a key in double quotes should stand here"));
        }
        let key = self.string()?;
        if !self.take(b':') {
            return Err(self.fault("`:` should stand here"));
        }
        Ok(Some(key))
    }

    /// Whether an array has another element, behind the one before.
    #[inline]
    pub fn element(&mut self, is_first: bool) -> Result<bool, Fault> {
        if self.take(b']') {
            self.depth = self.depth.saturating_sub(1);
            return Ok(false);
        }
        if !is_first && !self.take(b',') {
            return Err(self.fault("`,` or `]` should stand here"));
        }
        Ok(true)
    }

    /// The next value; of an object or array the whole text.
    #[inline]
    pub fn value(&mut self) -> Result<Value, Fault> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{' | b'[') => self.nested(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    /// The object or array whose bracket is the next byte.
    fn nested(&mut self) -> Result<Value, Fault> {
        let start = self.at;
        let is_object = self.text.get(start) == Some(&b'{');
        self.enter()?;
        let mut is_first = true;
        loop {
            let has_next = if is_object { self.key(is_first)?.is_some() } else { self.element(is_first)? };
            if !has_next {
                return Ok(Value { kind: Kind::Nested, range: start..self.at });
            }
            self.value()?;
            is_first = false;
        }
    }

    /// Where the next value is as it is written, a string with its quotes.
    pub fn written(&mut self) -> Result<Range<usize>, Fault> {
        self.peek();
        let start = self.at;
        self.value()?;
        Ok(start..self.at)
    }

    /// The end of the text, behind the last value.
    pub fn end(&mut self) -> Result<(), Fault> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(Fault { at: self.at, what: "text follows the object" }),
        }
    }

    /// A string whose quote is the next byte.
    #[inline]
    fn string(&mut self) -> Result<Value, Fault> {
        let start = self.at + 1;
        let mut at = start;
        let mut has_escapes = false;

        loop {
            let rest = self.text.get(at..).unwrap_or_default();
            match quote_or_escape(rest) {
                Ok(place) if rest.get(place) == Some(&b'"') => {
                    self.at = at + place + 1;
                    return Ok(Value { kind: Kind::Text { has_escapes }, range: start..at + place });
                }
                Ok(place) => {
                    has_escapes = true;
                    at += place + 2;
                }
                Err(0) => {
                    self.at = self.text.len();
                    return Err(self.fault("a string is never closed"));
                }
                Err(length) => at += length,
            }
        }
    }

    #[inline]
    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.text.get(self.at) {
            self.at += 1;
        }
        if self.at == start { Err(self.fault("a digit should stand here")) } else { Ok(()) }
    }

    #[inline]
    fn number(&mut self) -> Result<Value, Fault> {
        let start = self.at;
        self.at += usize::from(self.text.get(start) == Some(&b'-'));
        if self.text.get(self.at) == Some(&b'I') {
            self.at = start;
            return self.word();
        }

        let whole = self.at;
        self.digits()?;
        if self.text.get(whole) == Some(&b'0') && self.at > whole + 1 {
            return Err(Fault { at: whole, what: "a number begins with 0: write it in quotes" });
        }

        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            self.at += usize::from(matches!(self.text.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(Value { kind: Kind::Number, range: start..self.at })
    }

    fn word(&mut self) -> Result<Value, Fault> {
        const WORDS: [(&[u8], Kind); 6] = [
            (b"null", Kind::Null),
            (b"true", Kind::Bool),
            (b"false", Kind::Bool),
            (b"NaN", Kind::NotFinite),
            (b"Infinity", Kind::NotFinite),
            (b"-Infinity", Kind::NotFinite),
        ];
        let rest = self.text.get(self.at..).unwrap_or_default();
        let Some((word, kind)) = WORDS.into_iter().find(|(word, _)| rest.starts_with(word)) else {
            return Err(self.fault("a value should stand here"));
        };
        let range = self.at..self.at + word.len();
        self.at = range.end;
        Ok(Value { kind, range })
    }
}

/// The offset of the first quote or backslash, or how many bytes have none of them.
#[inline]
fn quote_or_escape(rest: &[u8]) -> Result<usize, usize> {
    let Some(word) = word(rest) else {
        return rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).ok_or(rest.len());
    };
    let special = zero_bytes(word ^ (ONES * u64::from(b'"'))) | zero_bytes(word ^ (ONES * u64::from(b'\\')));
    (special != 0).then(|| (special.trailing_zeros() / 8) as usize).ok_or(8)
}

/// Where the elements of the array at `start` begin; none if there is no array.
pub(crate) fn elements(text: &[u8], start: usize) -> Result<Vec<usize>, Fault> {
    let mut scanner = Scanner::new(text, start);
    let mut found = Vec::new();
    if scanner.peek() != Some(b'[') {
        return Ok(found);
    }
    scanner.enter()?;
    while scanner.element(found.is_empty())? {
        found.push(scanner.written()?.start);
    }
    Ok(found)
}

/// The text of a string, without its escapes; `None` for an escape that stands for no character.
pub(crate) fn unescaped<'a>(text: &'a [u8], has_escapes: bool) -> Option<Cow<'a, [u8]>> {
    if !has_escapes {
        return Some(Cow::Borrowed(text));
    }

    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = memchr::memchr(b'\\', rest) {
        plain.extend_from_slice(rest.get(..place)?);
        let escape = *rest.get(place + 1)?;
        rest = rest.get(place + 2..)?;

        plain.push(match escape {
            b'"' | b'\\' | b'/' => escape,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let (letter, length) = code_point(rest)?;
                plain.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                rest = rest.get(length..)?;
                continue;
            }
            _ => return None,
        });
    }
    plain.extend_from_slice(rest);
    Some(Cow::Owned(plain))
}

/// The character of `00e9`, or of the pair `d83d\ude00`, and the bytes that it takes.
fn code_point(text: &[u8]) -> Option<(char, usize)> {
    let first = code_unit(text.get(..4)?)?;
    if let Some(Ok(letter)) = char::decode_utf16([first]).next() {
        return Some((letter, 4));
    }
    let second = code_unit(text.get(4..10)?.strip_prefix(b"\\u")?)?;
    let letter = char::decode_utf16([first, second]).next()?.ok()?;
    Some((letter, 10))
}

/// The UTF-16 code unit of four hexadecimal digits.
fn code_unit(digits: &[u8]) -> Option<u16> {
    let digits = Some(digits).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &[u8]) -> Result<(), Fault> {
        let mut scanner = Scanner::new(text, 0);
        scanner.value()?;
        scanner.end()
    }

    #[test]
    fn values_are_told_apart() {
        for (text, kind, value) in [
            (" null ", Kind::Null, "null"),
            ("true", Kind::Bool, "true"),
            ("-1.50e+3", Kind::Number, "-1.50e+3"),
            ("\"a\"", Kind::Text { has_escapes: false }, "a"),
            ("\"a \\\"quoted\\\\\" ", Kind::Text { has_escapes: true }, "a \\\"quoted\\\\"),
            ("-Infinity", Kind::NotFinite, "-Infinity"),
            ("{\"a\": [1, {}, []]} ", Kind::Nested, "{\"a\": [1, {}, []]}"),
        ] {
            let mut scanner = Scanner::new(text.as_bytes(), 0);
            let found = scanner.value().unwrap();
            assert_eq!((found.kind, &text[found.range]), (kind, value), "{text}");
            assert_eq!(scanner.end(), Ok(()), "{text}");
        }
    }

    #[test]
    fn faults_have_their_place() {
        for (text, at) in [
            ("{\"a\":1,}", 7),
            ("{\"a\" 1}", 5),
            ("{a:1}", 1),
            ("{\"a\":1 \"b\":2}", 7),
            ("{\"a\":007}", 5),
            ("{\"a\":1.}", 7),
            ("{\"a\":nul}", 5),
            ("{\"a\":[1,]}", 8),
            ("{} {}", 3),
            ("{\"a\":\"x", 7),
            ("{", 1),
        ] {
            assert_eq!(check(text.as_bytes()).map_err(|fault| fault.at), Err(at), "{text}");
        }
        assert!(check("[".repeat(200).as_bytes()).unwrap_err().what.contains("128 deep"));
    }

    #[test]
    fn escapes_stand_for_characters() {
        let plain =
            |text: &str| unescaped(text.as_bytes(), true).map(|text| String::from_utf8(text.into_owned()).unwrap());
        assert_eq!(plain(r#"a\n\"\\\/\u00e9\ud83d\ude00"#).unwrap(), "a\n\"\\/\u{e9}\u{1F600}");
        for wrong in [r"\x", r"\u12", r"\ud83d", r"\ud83dx", r"\ud83d\u0041", "\\"] {
            assert_eq!(plain(wrong), None, "{wrong}");
        }
    }

    proptest! {
        /// Whatever serde_json reads is read, and its strings are the same.
        #[test]
        fn json_is_what_serde_json_reads(text in r#"[\[\]{}:,"\\ a-e0-9.eE+-]{0,24}|\{"a": ?("[a-z\\nu0-9"]{0,8}"|-?[0-9.]{1,5}|\[[0-9, ]{0,6}\]|null|true)( ,"b":1)?\}"#) {
            let ours = check(text.as_bytes()).is_ok();
            match serde_json::from_str::<serde_json::Value>(&text) {
                Ok(_) => prop_assert!(ours),
                // Escapes are checked where a value is wanted.
                Err(_) => prop_assert!(!ours || text.contains('\\')),
            }
        }

        #[test]
        fn strings_come_back(wanted: String) {
            let text = serde_json::to_string(&wanted).unwrap();
            let mut scanner = Scanner::new(text.as_bytes(), 0);
            let found = scanner.value().unwrap();
            let Kind::Text { has_escapes } = found.kind else { panic!("{text}") };
            let plain = unescaped(&text.as_bytes()[found.range], has_escapes).unwrap();
            prop_assert_eq!(plain.as_ref(), wanted.as_bytes());
        }
    }
}
