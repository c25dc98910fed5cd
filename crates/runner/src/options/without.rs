//! Names and patterns of `--without`, and the options that a message offers.

use std::collections::{BTreeMap, BTreeSet};

use globset::{GlobBuilder, GlobMatcher};
use tidetable_job::shell_word;

/// Most inputs that a message names, and gives an option each.
const NAMED: usize = 5;
/// Most bytes of options that a message gives.
const LONGEST: usize = 1000;
/// Signs by which a text is a pattern, and not only a name.
const SIGNS: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// What `--without` gives: names of inputs, and patterns (`*` `?` `[..]` `{a,b}`, `**` for any number of folders) of them.
pub(crate) struct Without<'a> {
    given: &'a [String],
    /// Of each of `given`; `None` for a name.
    patterns: Vec<Option<GlobMatcher>>,
}

impl<'a> Without<'a> {
    pub(crate) fn new(given: &'a [String]) -> Self {
        Self { given, patterns: given.iter().map(|given| pattern(given)).collect() }
    }

    /// Whether the input `path` is among those given.
    pub(crate) fn takes(&self, path: &str) -> bool {
        (0..self.given.len()).any(|at| self.takes_by(at, path))
    }

    /// Whether every input is among those given, in whichever folder: by `*` or `**`.
    pub(crate) fn takes_all(&self) -> bool {
        self.given.iter().any(|given| matches!(given.as_str(), "*" | "**"))
    }

    /// Those of what was given that take none of `paths`.
    pub(crate) fn idle(&self, paths: &BTreeSet<&str>) -> impl Iterator<Item = &'a String> {
        let given = self.given.iter().enumerate();
        given.filter(|(at, _)| !paths.iter().any(|path| self.takes_by(*at, path))).map(|(_, given)| given)
    }

    /// Whether the one at `at` takes `path`. A name may hold signs of patterns.
    fn takes_by(&self, at: usize, path: &str) -> bool {
        let is_name = self.given.get(at).is_some_and(|given| given == path);
        is_name || self.patterns.get(at).and_then(Option::as_ref).is_some_and(|pattern| pattern.is_match(path))
    }
}

/// The pattern that `given` is, if it is one.
fn pattern(given: &str) -> Option<GlobMatcher> {
    if !given.contains(SIGNS) {
        return None;
    }
    let glob = GlobBuilder::new(given).literal_separator(true).empty_alternates(true).build();
    glob.ok().map(|glob| glob.compile_matcher())
}

/// The options that remove all of `gone` and no other input: one for each, or for each folder a pattern of its names. `None` if
/// they are too many for a line that a person pastes.
pub(crate) fn options_for(gone: &[String]) -> Option<String> {
    let option = |given: &str| format!("--without {}", shell_word(given));
    if gone.len() <= NAMED {
        return Some(gone.iter().map(|path| option(path)).collect::<Vec<_>>().join(" "));
    }

    let mut folders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for path in gone {
        if path.contains(SIGNS) || path.contains(',') {
            return None;
        }
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        folders.entry(folder).or_default().push(name);
    }

    let patterns = folders.into_iter().map(|(folder, names)| {
        let slash = if folder.is_empty() { "" } else { "/" };
        option(&format!("{folder}{slash}{}", alternatives(&names)))
    });
    let options = patterns.collect::<Vec<_>>().join(" ");
    (options.len() <= LONGEST).then_some(options)
}

/// A pattern of exactly these names: `2020-01-0{1,2}.csv`.
fn alternatives(names: &[&str]) -> String {
    let Some(first) = names.first().filter(|_| names.len() > 1) else { return names.concat() };
    let start = names.iter().map(|name| common(first.chars(), name.chars())).min().unwrap_or_default();
    let rests: Vec<&str> = names.iter().filter_map(|name| name.get(start..)).collect();
    let first_rest = rests.first().copied().unwrap_or_default();
    let end = rests.iter().map(|rest| common(first_rest.chars().rev(), rest.chars().rev())).min().unwrap_or_default();

    let parts: Vec<&str> = rests.iter().filter_map(|rest| rest.get(..rest.len() - end)).collect();
    let before = first.get(..start).unwrap_or_default();
    let after = first.get(first.len() - end..).unwrap_or_default();
    format!("{before}{{{}}}{after}", parts.join(","))
}

/// The number of bytes that two texts have in common from where they begin.
fn common(one: impl Iterator<Item = char>, other: impl Iterator<Item = char>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).map(|(letter, _)| letter.len_utf8()).sum()
}

/// Some of `items`; the rest is counted.
pub(crate) fn some(items: &[String]) -> String {
    let named = items.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match items.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_takes_what_it_matches_and_a_name_itself() {
        let given = ["in/*.csv".to_owned(), "odd[1].csv".to_owned(), "late/**".to_owned()];
        let without = Without::new(&given);
        assert!(without.takes("in/a.csv") && without.takes("odd[1].csv") && without.takes("late/x/y.csv"));
        assert!(!without.takes("in/sub/a.csv") && !without.takes("other.csv"));
        assert_eq!(without.idle(&BTreeSet::from(["in/a.csv", "odd1.csv"])).collect::<Vec<_>>(), ["late/**"]);
    }

    #[test]
    fn options_name_exactly_what_is_gone() {
        let days = |count: u32| (1..=count).map(|day| format!("in/2020-01-{day:02}.csv")).collect::<Vec<_>>();
        assert_eq!(options_for(&days(2)).unwrap(), "--without in/2020-01-01.csv --without in/2020-01-02.csv");

        let mut gone = days(12);
        gone.extend(["in/9.csv", "x.csv", "y.tsv", "ü/é.csv", "ü/éé.csv", "ü/éè.csv"].map(str::to_owned));
        let options = options_for(&gone).unwrap();
        let given: Vec<String> = options.split("--without ").map(|word| word.trim().replace('\'', "")).collect();
        let without = Without::new(&given);
        assert!(gone.iter().all(|path| without.takes(path)), "{options}");
        assert!(
            !["in/2020-01-13.csv", "in/.csv", "in/x.csv", "y.csv"].iter().any(|path| without.takes(path)),
            "{options}"
        );

        assert!(options_for(&days(12)).unwrap().starts_with("--without 'in/2020-01-{01,02,"));
        gone.push("a,b.csv".to_owned());
        assert_eq!(options_for(&gone), None);
    }
}
