//! The compiled patterns of a request.
//!
//! A pattern of ten bytes may take megabytes when it is compiled, and a filter may have thousands. Those that were used last
//! stay compiled; others are compiled again when they are used.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use regex_automata::Input;
use regex_automata::meta::{Cache, Config, Regex};
use regex_syntax::hir::HirKind;
use regex_syntax::{Parser, ParserBuilder};
use tidetable_cells::literal_ranges;
use tidetable_layout::KeyRange;

use crate::serve::filter::regex::translated;

/// Bytes that a compiled pattern may take, as RE2 limits them.
const SIZE_LIMIT: usize = 1 << 22;
/// Bytes of each of the caches of a pattern in use.
const CACHE_LIMIT: usize = 1 << 20;

/// A pattern that was found valid. It matches whole byte strings.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    text: Arc<str>,
    matcher: Matcher,
}

#[derive(Debug, Clone)]
enum Matcher {
    /// The only byte string that matches.
    Literal(Arc<[u8]>),
    /// By its number among the patterns of the request.
    Compiled(usize, Arc<Patterns>),
}

impl Pattern {
    /// Whether all of `bytes` matches.
    pub(crate) fn matches(&self, bytes: &[u8]) -> bool {
        match &self.matcher {
            Matcher::Literal(literal) => **literal == *bytes,
            Matcher::Compiled(number, patterns) => patterns.matches(*number, &self.text, bytes),
        }
    }

    /// The row keys that may match, by the literals that they begin with; `None` if there are none, or many.
    pub(crate) fn key_ranges(&self) -> Option<Vec<KeyRange>> {
        literal_ranges(&parser().parse(&self.text).ok()?)
    }
}

/// The patterns of a request.
pub(crate) struct Patterns {
    /// Bytes that they take together, beside the one in use.
    memory: usize,
    compiled: Mutex<Compiled>,
}

#[derive(Default)]
struct Compiled {
    numbers: HashMap<Arc<str>, usize>,
    /// By number; `None` if it was dropped.
    entries: Vec<Option<Entry>>,
    bytes: usize,
    uses: u64,
}

struct Entry {
    regex: Regex,
    cache: Cache,
    bytes: usize,
    last_use: u64,
}

impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patterns").field("memory", &self.memory).finish_non_exhaustive()
    }
}

impl Patterns {
    /// Patterns that hold `memory` bytes together, beside the one in use.
    pub(crate) fn new(memory: usize) -> Arc<Self> {
        Arc::new(Self { memory, compiled: Mutex::default() })
    }

    /// Compiles a pattern.
    ///
    /// # Errors
    /// The reason why it is not one.
    pub(crate) fn pattern(self: &Arc<Self>, text: &[u8]) -> Result<Pattern, String> {
        let text: Arc<str> = translated(text).into();
        let hir = parser().parse(&text).map_err(|error| last_line(&error))?;
        let literal: Option<Arc<[u8]>> = match hir.kind() {
            HirKind::Empty => Some([].into()),
            HirKind::Literal(literal) => Some(literal.0.as_ref().into()),
            _ => None,
        };
        let matcher = match literal {
            Some(literal) => Matcher::Literal(literal),
            None => Matcher::Compiled(self.number(&text)?, Arc::clone(self)),
        };
        Ok(Pattern { text, matcher })
    }

    /// The number of a pattern, which is compiled if it is new.
    fn number(&self, text: &Arc<str>) -> Result<usize, String> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = compiled.numbers.get(text) {
            return Ok(*number);
        }
        let regex = compile(text)?;
        let number = compiled.entries.len();
        compiled.numbers.insert(Arc::clone(text), number);
        compiled.entries.push(None);
        compiled.insert(number, regex);
        compiled.shrink(self.memory, number);
        Ok(number)
    }

    fn matches(&self, number: usize, text: &str, bytes: &[u8]) -> bool {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(compiled.entries.get(number), Some(Some(_))) {
            // It was compiled before, with the same limits.
            let Ok(regex) = compile(text) else { return false };
            compiled.insert(number, regex);
        }
        let Compiled { entries, bytes: held, uses, .. } = &mut *compiled;
        let Some(Some(entry)) = entries.get_mut(number) else { return false };
        let is_match = entry.regex.search_half_with(&mut entry.cache, &Input::new(bytes).earliest(true)).is_some();

        *uses += 1;
        entry.last_use = *uses;
        let grown = entry.bytes();
        *held = *held - entry.bytes + grown;
        entry.bytes = grown;
        compiled.shrink(self.memory, number);
        is_match
    }

    /// Bytes that compiled patterns take.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.compiled.lock().unwrap().bytes
    }
}

impl Entry {
    /// Bytes that it takes now: caches grow while they are used.
    fn bytes(&self) -> usize {
        self.regex.memory_usage() + self.cache.memory_usage()
    }
}

impl Compiled {
    fn insert(&mut self, number: usize, regex: Regex) {
        self.uses += 1;
        let cache = regex.create_cache();
        let mut entry = Entry { regex, cache, bytes: 0, last_use: self.uses };
        entry.bytes = entry.bytes();
        self.bytes += entry.bytes;
        if let Some(slot) = self.entries.get_mut(number) {
            *slot = Some(entry);
        }
    }

    /// Drops the least recently used patterns until all take `memory` bytes, but not the one in use.
    fn shrink(&mut self, memory: usize, in_use: usize) {
        while self.bytes > memory {
            let others = self.entries.iter().enumerate().filter(|(number, _)| *number != in_use);
            let oldest = others.filter_map(|(number, entry)| Some((entry.as_ref()?.last_use, number))).min();
            let Some((_, number)) = oldest else { return };
            let dropped = self.entries.get_mut(number).and_then(Option::take);
            self.bytes -= dropped.map_or(0, |entry| entry.bytes);
        }
    }
}

fn parser() -> Parser {
    ParserBuilder::new().unicode(false).utf8(false).build()
}

fn compile(text: &str) -> Result<Regex, String> {
    let config = Config::new()
        .utf8_empty(false)
        .nfa_size_limit(Some(SIZE_LIMIT))
        .onepass_size_limit(Some(CACHE_LIMIT))
        .hybrid_cache_capacity(CACHE_LIMIT);
    let hir = parser().parse(&format!(r"\A(?:{text})\z")).map_err(|error| last_line(&error))?;
    Regex::builder().configure(config).build_from_hir(&hir).map_err(|error| match error.size_limit() {
        Some(limit) => format!("compiled it takes more than {limit} bytes"),
        None => error.to_string(),
    })
}

/// The line that says what is wrong, after those that show the pattern.
fn last_line(error: &regex_syntax::Error) -> String {
    error.to_string().lines().last().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern_of(text: &[u8]) -> Result<Pattern, String> {
        Patterns::new(1 << 20).pattern(text)
    }

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
            assert_eq!(pattern_of(pattern).unwrap().matches(text), *expected, "{shown}");
        }
        for wrong in [&b"("[..], b"a**b(", b"[", br"\p{Greek}", br"(a)\1", b"(?<x"] {
            assert!(pattern_of(wrong).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
    }

    #[test]
    fn key_ranges_begin_with_the_literals_of_matches() {
        let of = |pattern: &[u8]| pattern_of(pattern).unwrap().key_ranges();
        assert_eq!(of(b"abc"), Some(vec![KeyRange::of_key(b"abc")]));
        assert_eq!(of(br"ab\C*|cd"), Some(vec![KeyRange::prefix(b"ab"), KeyRange::of_key(b"cd")]));
        assert_eq!(of(b".*abc"), None);
        // Letters of both cases.
        assert!(of(b"(?i)ab").unwrap().iter().any(|range| range.contains(b"Ab")));
    }

    #[test]
    fn patterns_hold_no_more_than_their_memory() {
        const MEMORY: usize = 1 << 20;
        let patterns = Patterns::new(MEMORY);
        let texts: Vec<String> = (0..40).map(|number| format!("[ab]{{{}}}c|x{number}.*", 900 + number)).collect();
        let compiled: Vec<Pattern> = texts.iter().map(|text| patterns.pattern(text.as_bytes()).unwrap()).collect();
        // Without a limit they take more than twice as much.
        let whole = Patterns::new(usize::MAX);
        let held: usize =
            texts.iter().map(|text| whole.pattern(text.as_bytes()).map(|_| whole.held()).unwrap()).max().unwrap();
        assert!(held > 2 * MEMORY, "{held}");
        for round in 0..2 {
            for (number, pattern) in compiled.iter().enumerate() {
                let length = 900 + number;
                assert!(pattern.matches(&[&b"ab".repeat(length)[..length], b"c"].concat()), "{round} {number}");
                assert!(!pattern.matches(&b"ab".repeat(length)[..length]));
                assert!(pattern.matches(format!("x{number}y").as_bytes()));
                // The one in use may take more by itself.
                assert!(patterns.held() <= 2 * MEMORY, "{}", patterns.held());
            }
        }
    }

    #[test]
    fn literals_and_repeated_patterns_take_no_memory_of_their_own() {
        let patterns = Patterns::new(1 << 20);
        let literals: Vec<Pattern> =
            (0..1_000).map(|number| patterns.pattern(format!("q{number}").as_bytes()).unwrap()).collect();
        assert_eq!(patterns.held(), 0);
        assert!(literals[7].matches(b"q7") && !literals[7].matches(b"q77") && !literals[7].matches(b"q"));
        let first = patterns.pattern(b"a+").unwrap();
        let held = patterns.held();
        let second = patterns.pattern(b"a+").unwrap();
        assert!(first.matches(b"aa") && second.matches(b"a") && !second.matches(b"b"));
        assert!(held > 0 && patterns.held() < 2 * held.max(1 << 16), "{held} {}", patterns.held());
    }
}
