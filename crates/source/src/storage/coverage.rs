//! Which paths the parts of a pattern cover, without a look at the disk.

use crate::format::Format;
use crate::storage::pattern::Part;

/// Beginnings of names of texts that lie beside data.
const NOT_DATA: [&str; 3] = ["readme", "license", "licence"];

/// How a pattern covers a path that it matches as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coverage {
    Outside,
    Read,
    /// Below a name that begins with `_` or `.`, which ends at this byte.
    Work(usize),
    /// In a named folder, with an ending that does not say what the file holds.
    UnknownEnding,
}

/// Whether a name is that of another program's work file.
pub(super) fn is_work_name(name: &[u8]) -> bool {
    name.starts_with(b"_") || name.starts_with(b".")
}

/// Whether a file of a named folder is taken for data; with `any_ending` the job says what all of them hold.
pub(super) fn is_data_name(name: &str, any_ending: bool) -> bool {
    let name = name.to_ascii_lowercase();
    if NOT_DATA.iter().any(|other| name.starts_with(other)) {
        return false;
    }
    any_ending || Format::of_name(&name).is_some() && !Format::may_be_settings(&name)
}

/// Whether a name that a pattern does not match is that of a data file, so that it may be an input with the wrong ending. A
/// `.txt` is as often a text for people.
pub(super) fn is_beside_data(name: &str) -> bool {
    !is_work_name(name.as_bytes()) && is_data_name(name, false) && !name.to_ascii_lowercase().ends_with(".txt")
}

impl Part {
    /// Whether it skips `name`, though its letters match.
    pub fn skips(&self, name: &[u8]) -> bool {
        match self {
            Self::Literal(_) => false,
            Self::Folders | Self::DataFiles => is_work_name(name),
            Self::Glob { dots, underscores, .. } => {
                name.starts_with(b".") && !dots || name.starts_with(b"_") && !underscores
            }
        }
    }
}

/// How `parts` cover `path`, which matches them as a whole. `any_ending` as of [`is_data_name`].
pub(super) fn coverage(parts: &[Part], path: &str, any_ending: bool) -> Coverage {
    let names: Vec<&str> = path.split('/').collect();
    let (literal, reached) = parts.split_at(parts.iter().take_while(|part| matches!(part, Part::Literal(_))).count());
    let is_of_folder = matches!(reached.last(), Some(Part::DataFiles));

    if is_of_folder && !covers(parts, &names, &|_, _| false) {
        return Coverage::Outside;
    }
    if is_of_folder && names.last().is_some_and(|name| !is_data_name(name, any_ending)) {
        let is_work = names.iter().skip(literal.len()).any(|name| is_work_name(name.as_bytes()));
        return if is_work { Coverage::Outside } else { Coverage::UnknownEnding };
    }
    if covers(parts, &names, &|part, name| part.skips(name.as_bytes())) || !covers(parts, &names, &|_, _| false) {
        // Braces with slashes in them cover no path by parts, but match it as a whole.
        return Coverage::Read;
    }

    let work = names.iter().skip(literal.len()).position(|name| is_work_name(name.as_bytes())).unwrap_or_default();
    let length: usize = names.iter().take(literal.len() + work + 1).map(|name| name.len() + 1).sum();
    Coverage::Work(length.saturating_sub(1))
}

/// Whether a walk along `parts` reaches the file below `names`; `skips` says which names a part leaves out. A literal at
/// the end may be a folder, which has all data files below it.
pub(super) fn covers(parts: &[Part], names: &[&str], skips: &dyn Fn(&Part, &str) -> bool) -> bool {
    let Some((part, rest)) = parts.split_first() else { return names.is_empty() };
    let Some((name, below)) = names.split_first() else {
        return matches!(part, Part::Folders) && covers(rest, names, skips);
    };
    match part {
        Part::Folders => covers(rest, names, skips) || !skips(part, name) && covers(parts, below, skips),
        Part::Literal(text) => text == name && covers(rest, below, skips),
        Part::Glob { text, .. } => text.is_match(name) && !skips(part, name) && covers(rest, below, skips),
        Part::DataFiles => !skips(part, name) && below.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::pattern::Pattern;

    fn covered(pattern: &str, path: &str) -> Coverage {
        let pattern = Pattern::new(pattern).unwrap();
        assert!(pattern.is_match(path), "{path}");
        coverage(&pattern.parts, path, false)
    }

    #[test]
    fn names_of_work_files_are_skipped_where_wildcards_reach_them() {
        for path in ["out/_temporary/0/a.csv", "out/_a.csv", "out/x/.a.csv"] {
            assert!(matches!(covered("out/**/*.csv", path), Coverage::Work(_)), "{path}");
        }
        assert_eq!(covered("out/**/*.csv", "out/_temporary/0/a.csv"), Coverage::Work("out/_temporary".len()));
        for (pattern, path) in [
            ("out/_raw/*.csv", "out/_raw/a.csv"),
            ("out/_*.csv", "out/_a.csv"),
            ("out/{_a,b}.csv", "out/_a.csv"),
            ("out/.*.csv", "out/.a.csv"),
            ("_out/**/*.csv", "_out/x/a.csv"),
            ("{a/b,c}/*.csv", "a/b/x.csv"),
        ] {
            assert_eq!(covered(pattern, path), Coverage::Read, "{pattern}");
        }
        assert_eq!(covered("in/**", "in/a.csv.gz"), Coverage::Read);
        assert_eq!(covered("in/**", "in/a.log"), Coverage::UnknownEnding);
        assert_eq!(covered("in/**", "in/_log/a.json"), Coverage::Outside);
    }
}
