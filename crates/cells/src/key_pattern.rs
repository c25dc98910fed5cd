//! Regular expressions over row keys, and the key ranges outside of which they match nothing.

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;
use regex_syntax::hir::literal::Extractor;
use tidetable_layout::KeyRange;

/// Greatest number of literals with which matching keys may begin; with more, all keys are read.
const MOST_LITERALS: usize = 64;

/// A regular expression that matches whole row keys. In a key that is UTF-8, `.` is a character; in any other key, a byte. As
/// in Bigtable, `.` does not match a line feed.
#[derive(Debug, Clone)]
pub struct KeyPattern {
    text: Regex,
    /// For keys that are not UTF-8; `None` if the pattern needs Unicode, such as `\p{Greek}`.
    bytes: Option<Regex>,
    /// Disjoint and ascending; all keys if `None`.
    ranges: Option<Vec<KeyRange>>,
}

impl KeyPattern {
    /// Compiles a pattern in the syntax of the crate `regex`.
    ///
    /// # Errors
    /// If it is not a regular expression, or too large.
    pub fn new(pattern: &str) -> Result<Self, regex::Error> {
        let whole = format!("^(?:{pattern})$");
        let text = Regex::new(&whole)?;
        let bytes = RegexBuilder::new(&whole).unicode(false).build().ok();

        let mut ranges = parsed_ranges(pattern, true);
        if bytes.is_some() {
            let of_both = ranges.zip(parsed_ranges(pattern, false));
            ranges = of_both.map(|(one, other)| KeyRange::disjoint([one, other].concat()));
        }
        Ok(Self { text, bytes, ranges })
    }

    /// Whether all of `key` matches.
    pub fn is_match(&self, key: &[u8]) -> bool {
        match &self.bytes {
            Some(bytes) if std::str::from_utf8(key).is_err() => bytes.is_match(key),
            _ => self.text.is_match(key),
        }
    }

    /// The ranges that hold all matching keys: disjoint, ascending; `None` if any key may match.
    pub fn ranges(&self) -> Option<&[KeyRange]> {
        self.ranges.as_deref()
    }
}

fn parsed_ranges(pattern: &str, unicode: bool) -> Option<Vec<KeyRange>> {
    let hir = ParserBuilder::new().unicode(unicode).utf8(false).build().parse(pattern).ok()?;
    literal_ranges(&hir)
}

/// The ranges of keys that begin with the literals of a pattern that matches from the first byte on: disjoint, ascending.
/// `None` if it does not begin with literals, or with too many.
pub fn literal_ranges(pattern: &Hir) -> Option<Vec<KeyRange>> {
    let prefixes = Extractor::new().limit_total(MOST_LITERALS).extract(pattern);
    let mut ranges = Vec::new();
    for literal in prefixes.literals()? {
        ranges.push(match literal.as_bytes() {
            [] => return None,
            key if literal.is_exact() => KeyRange::of_key(key),
            prefix => KeyRange::prefix(prefix),
        });
    }
    Some(KeyRange::disjoint(ranges))
}

/// The keys in both lists of ranges; the ranges of each are disjoint and ascend.
pub fn intersection(left: &[KeyRange], right: &[KeyRange]) -> Vec<KeyRange> {
    let mut shared = Vec::new();
    let (mut lefts, mut rights) = (left.iter().peekable(), right.iter().peekable());
    while let (Some(left), Some(right)) = (lefts.peek(), rights.peek()) {
        let left_ends_first = match (&left.end, &right.end) {
            (Some(left), Some(right)) => left <= right,
            (end, _) => end.is_some(),
        };
        let start = left.start.clone().max(right.start.clone());
        let end = if left_ends_first { left.end.clone() } else { right.end.clone() };
        shared.push(KeyRange { start, end });
        if left_ends_first {
            lefts.next();
        } else {
            rights.next();
        }
    }

    // Drops the empty ones.
    KeyRange::disjoint(shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_matches_by_character_and_other_keys_by_byte() {
        let matches = |pattern: &str, key: &[u8]| KeyPattern::new(pattern).unwrap().is_match(key);
        assert!(matches(".*", b"\xff\x00") && matches("a.b", b"a\xffb") && matches("caf.", "café".as_bytes()));
        assert!(!matches("caf..", "café".as_bytes()) && !matches("a", b"ab") && !matches("b", b"ab"));
        assert!(matches(r"(?-u:\xff)#\d", b"\xff#1") && matches(r"\xff#\d", b"\xff#1"));
        // Over bytes there is no such class: only keys of characters match.
        assert!(matches(r"\p{Greek}+", "αβ".as_bytes()) && !matches(r"\p{Greek}+", b"\xce"));
        assert!(matches("a|b", b"b") && !matches("a|b", b"ab"));
        assert!(!matches(".*", b"a\nb") && matches("(?s).*", b"a\n\xff"));
        assert!(KeyPattern::new("(").is_err());
    }

    #[test]
    fn ranges_hold_all_matches() {
        let ranges = |pattern: &str| KeyPattern::new(pattern).unwrap().ranges().map(<[KeyRange]>::to_vec);
        assert_eq!(ranges("abc"), Some(vec![KeyRange::of_key(b"abc")]));
        assert_eq!(ranges("cd|ab.*"), Some(vec![KeyRange::prefix(b"ab"), KeyRange::of_key(b"cd")]));
        assert_eq!(ranges(".*abc"), None);
        assert_eq!(ranges("(abc)?"), None);
        // U+00FF in text, the byte 255 elsewhere.
        assert_eq!(ranges(r"\xff.*"), Some(vec![KeyRange::prefix("ÿ".as_bytes()), KeyRange::prefix(b"\xff")]));
    }

    #[test]
    fn intersections_hold_the_keys_of_both() {
        let range = |start: &str, end: &str| KeyRange { start: start.into(), end: Some(end.into()) };
        let from = |start: &str| KeyRange { start: start.into(), end: None };
        let shared = intersection(&[range("a", "c"), from("e")], &[range("b", "f"), range("g", "h")]);
        assert_eq!(shared, [range("b", "c"), range("e", "f"), range("g", "h")]);
        assert!(intersection(&[range("a", "b")], &[range("b", "c")]).is_empty());
    }
}
