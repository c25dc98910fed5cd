//! `readings/{day:%Y-%m-%d}/*.csv`: a glob in which days may be named.

use chrono::NaiveDate;
use globset::{GlobBuilder, GlobMatcher};

use crate::error::SourceError;
use crate::format::Format;

/// A pattern of `files` of a source, compiled: its globs and its days.
#[derive(Debug)]
pub(super) struct Pattern {
    written: String,
    /// The glob, cut at its slashes, along which a walk goes.
    pub parts: Vec<Part>,
    whole: GlobMatcher,
    /// The glob with any ending in place of that of a data file; only where it ends so.
    any_ending: Option<GlobMatcher>,
    /// Globs and the days between them; only where there are days.
    pieces: Vec<Piece>,
}

/// What one component of a pattern matches.
#[derive(Debug, Clone)]
pub(super) enum Part {
    Literal(String),
    /// `**`: any number of directories, also none.
    Folders,
    Glob {
        text: GlobMatcher,
        /// Whether it is written for names that begin with a dot.
        dots: bool,
        /// Whether it is written for names that begin with `_`.
        underscores: bool,
    },
    /// The data files of a folder, by their endings.
    DataFiles,
}

#[derive(Debug)]
enum Piece {
    /// A literal: compared without a regular expression.
    Text(String),
    Glob(GlobMatcher),
    Day(Vec<DayItem>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DayItem {
    Year,
    ShortYear,
    Month,
    Day,
    Literal(char),
}

#[derive(Debug, Clone, Copy, Default)]
struct Found {
    year: Option<i32>,
    month: Option<u32>,
    day: Option<u32>,
}

impl Found {
    fn date(self) -> Option<NaiveDate> {
        NaiveDate::from_ymd_opt(self.year?, self.month?, self.day?)
    }
}

impl Pattern {
    pub fn new(written: &str) -> Result<Self, SourceError> {
        let mut pieces = Vec::new();
        let mut whole = String::new();
        let mut days = Vec::new();
        let mut rest = written;
        while let Some((before, after)) = rest.split_once("{day:") {
            let day = after.split_once('}').and_then(|(format, after)| Some((day_items(format)?, after)));
            let Some((items, after)) = day else { return Err(bad_day(written)) };
            whole.push_str(before);
            items.iter().for_each(|item| whole.push_str(&item.glob()));
            pieces.push(Piece::of(before, written)?);
            days.extend(items.iter().copied());
            pieces.push(Piece::Day(items));
            rest = after;
        }
        whole.push_str(rest);

        if !days.is_empty() {
            pieces.push(Piece::of(rest, written)?);
            let has_year = days.contains(&DayItem::Year) || days.contains(&DayItem::ShortYear);
            if !has_year || !days.contains(&DayItem::Month) || !days.contains(&DayItem::Day) {
                return Err(bad_day(written));
            }
        }

        let mut parts: Vec<Part> =
            components(&whole).into_iter().map(|part| Part::of(part, written)).collect::<Result<_, _>>()?;
        if matches!(parts.last(), Some(Part::Folders)) {
            parts.push(Part::DataFiles);
        }
        let any_ending = match parts.last() {
            Some(Part::Glob { .. }) => {
                Format::stem(&whole).map(|stem| glob(&format!("{stem}.*"), written)).transpose()?
            }
            _ => None,
        };
        Ok(Self { written: written.to_owned(), parts, whole: glob(&whole, written)?, any_ending, pieces })
    }

    /// Whether the glob as a whole matches `path`.
    pub fn is_match(&self, path: &str) -> bool {
        self.whole.is_match(path)
    }

    /// Whether `path`, which the glob does not match, would match if it had another ending.
    pub fn differs_by_ending(&self, path: &str) -> bool {
        self.any_ending.as_ref().is_some_and(|any_ending| any_ending.is_match(path))
    }

    /// Its parts, where the last names a folder, and those of all data files below it.
    pub fn below(&self) -> Vec<Part> {
        self.parts.iter().cloned().chain([Part::Folders, Part::DataFiles]).collect()
    }

    /// The day that a matching path names; `None` if the pattern has none. `shown` is the path for messages.
    pub fn day(&self, path: &str, shown: &str) -> Result<Option<NaiveDate>, SourceError> {
        if self.pieces.is_empty() {
            return Ok(None);
        }
        find_day(&self.pieces, path, Found::default())
            .map(Some)
            .ok_or_else(|| SourceError::DayInPath { path: shown.to_owned(), pattern: self.written.clone() })
    }
}

/// The folders of a pattern before its first wildcard, or all of it without one.
pub fn literal_folders(pattern: &str) -> &str {
    let mut end = 0;
    for part in pattern.split_inclusive('/') {
        if !is_literal(part) {
            break;
        }
        end += part.len();
    }
    &pattern[..end]
}

/// Whether a part of a pattern stands for itself.
fn is_literal(part: &str) -> bool {
    !part.contains(['*', '?', '[', '{', '\\'])
}

impl Part {
    fn of(text: &str, pattern: &str) -> Result<Self, SourceError> {
        if text == "**" {
            return Ok(Self::Folders);
        }
        if is_literal(text) {
            return Ok(Self::Literal(text.to_owned()));
        }
        let (dots, underscores) = (begins_with(text, '.'), begins_with(text, '_'));
        Ok(Self::Glob { text: glob(text, pattern)?, dots, underscores })
    }
}

impl Piece {
    fn of(text: &str, pattern: &str) -> Result<Self, SourceError> {
        match text.contains(['*', '?', '[', ']', '{', '}', '\\']) {
            true => glob(text, pattern).map(Self::Glob),
            false => Ok(Self::Text(text.to_owned())),
        }
    }
}

/// Compiles a glob of `pattern`, in which only `**` matches a slash.
fn glob(text: &str, pattern: &str) -> Result<GlobMatcher, SourceError> {
    match GlobBuilder::new(text).literal_separator(true).build() {
        Ok(glob) => Ok(glob.compile_matcher()),
        Err(source) => Err(SourceError::BadPattern { pattern: pattern.to_owned(), source }),
    }
}

fn bad_day(pattern: &str) -> SourceError {
    SourceError::DayPattern { pattern: pattern.to_owned() }
}

/// Whether a component of a glob is written for names that begin with `letter`.
fn begins_with(part: &str, letter: char) -> bool {
    match part.strip_prefix('{') {
        Some(choices) => choices.split([',', '}']).any(|choice| choice.starts_with(letter)),
        None => part.starts_with(letter),
    }
}

/// Cuts a glob at the slashes outside its braces and brackets.
fn components(glob: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut depth) = (0, 0i32);
    for (at, byte) in glob.bytes().enumerate() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'/' if depth <= 0 => {
                parts.extend(glob.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(glob.get(start..));
    parts.retain(|part| !part.is_empty() && *part != ".");
    parts
}

fn day_items(format: &str) -> Option<Vec<DayItem>> {
    let mut items = Vec::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            items.push(DayItem::Literal(letter));
            continue;
        }
        match letters.next()? {
            'Y' => items.push(DayItem::Year),
            'y' => items.push(DayItem::ShortYear),
            'm' => items.push(DayItem::Month),
            'd' => items.push(DayItem::Day),
            'F' => items.extend(day_items("%Y-%m-%d")?),
            '%' => items.push(DayItem::Literal('%')),
            _ => return None,
        }
    }
    Some(items)
}

impl DayItem {
    fn digits(self) -> usize {
        match self {
            Self::Year => 4,
            Self::ShortYear | Self::Month | Self::Day => 2,
            Self::Literal(_) => 0,
        }
    }

    fn glob(self) -> String {
        match self {
            Self::Literal('/') => "/".to_owned(),
            Self::Literal(letter @ ('*' | '?' | '[' | ']' | '{' | '}' | '\\')) => format!("[{letter}]"),
            Self::Literal(letter) => letter.to_string(),
            digits => "[0-9]".repeat(digits.digits()),
        }
    }
}

/// Tries each way to lay the pieces over `path`; the first that gives a day of the calendar wins.
fn find_day(pieces: &[Piece], path: &str, found: Found) -> Option<NaiveDate> {
    match pieces {
        [Piece::Text(text)] if path == text => found.date(),
        [Piece::Glob(glob)] if glob.is_match(path) => found.date(),
        [Piece::Text(text), Piece::Day(items), rest @ ..] => {
            let mut found = found;
            find_day(rest, read_day(items, path.strip_prefix(text.as_str())?, &mut found)?, found)
        }
        [Piece::Glob(glob), Piece::Day(items), rest @ ..] => path.char_indices().find_map(|(at, _)| {
            let (before, after) = path.split_at_checked(at)?;
            if !glob.is_match(before) {
                return None;
            }
            let mut found = found;
            let after = read_day(items, after, &mut found)?;
            find_day(rest, after, found)
        }),
        _ => None,
    }
}

fn read_day<'a>(items: &[DayItem], mut text: &'a str, found: &mut Found) -> Option<&'a str> {
    for item in items {
        if let DayItem::Literal(letter) = item {
            text = text.strip_prefix(*letter)?;
            continue;
        }
        let (digits, rest) = text.split_at_checked(item.digits())?;
        let number: u32 = digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())??;
        match item {
            DayItem::Year => found.year = Some(number.cast_signed()),
            DayItem::ShortYear => found.year = Some(number.cast_signed() + if number < 69 { 2000 } else { 1900 }),
            DayItem::Month => found.month = Some(number),
            _ => found.day = Some(number),
        }
        text = rest;
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_folders_end_at_a_wildcard() {
        for (pattern, literal) in [
            ("in/*.csv", "in/"),
            ("in/site=*/day-?.parquet", "in/"),
            ("*.csv", ""),
            ("/*.csv", "/"),
            ("/srv/plant/readings.csv", "/srv/plant/readings.csv"),
            ("raw/2024/{path.site}.csv", "raw/2024/"),
        ] {
            assert_eq!(literal_folders(pattern), literal, "{pattern}");
        }
    }

    #[test]
    fn days_are_read_back() {
        let day = |pattern: &str, path: &str| {
            let pattern = Pattern::new(pattern).unwrap();
            assert!(pattern.is_match(path), "{path}");
            pattern.day(path, path)
        };
        let wanted = NaiveDate::from_ymd_opt(2017, 7, 26);
        for (pattern, path) in [
            ("in/{day:%Y-%m-%d}.csv", "in/2017-07-26.csv"),
            ("in/*{day:%Y%m%d}*.csv", "in/99999999-20170726-x.csv"),
            ("in/{day:%Y/%m/%d}/*.csv", "in/2017/07/26/a.csv"),
            ("in/y={day:%Y}/{day:%m%d}.csv", "in/y=2017/0726.csv"),
            ("**/{day:%d.%m.%y}.{csv,txt}", "a/b/26.07.17.txt"),
        ] {
            assert_eq!(day(pattern, path).unwrap(), wanted, "{pattern}");
        }
        assert_eq!(day("in/*.csv", "in/a.csv").unwrap(), None);
        assert!(matches!(day("{day:%F}.csv", "2017-02-30.csv"), Err(SourceError::DayInPath { .. })));
        for bad in ["{day:%Y-%m}.csv", "{day:%Q}", "{day:%F"] {
            assert!(matches!(Pattern::new(bad), Err(SourceError::DayPattern { .. })), "{bad}");
        }
        assert!(matches!(Pattern::new("a[.csv"), Err(SourceError::BadPattern { .. })));
    }
}
