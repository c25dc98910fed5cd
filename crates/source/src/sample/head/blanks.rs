//! Tables whose columns are separated by blanks: by one, by runs of them, or at the same places of all lines.

use std::ops::Range;

use crate::format::conversion;
use crate::sample::error::SampleError;

/// Lines that are looked at, and the fewest that make a table.
const MOST_LINES: usize = 50;
const FEWEST_LINES: usize = 3;

/// How blanks separate the columns of a table.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Blanks {
    /// One blank between two columns.
    Single,
    /// Runs of blanks; no value has a blank in it.
    Runs { has_commas: bool },
    /// Runs of two blanks or more; values may have one.
    WideRuns { has_commas: bool },
    /// The same places in all lines, where values may be missing: those of each column, up to the next.
    Places { columns: Vec<Range<usize>>, has_commas: bool },
}

impl Blanks {
    /// How blanks separate the columns of the lines of a text; `None` if they do not.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let mut lines = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            let line = line.trim_ascii_end();
            if !line.is_empty() && !line.starts_with(b"#") {
                lines.push(line);
            }
        }
        if lines.len() > MOST_LINES {
            lines.truncate(MOST_LINES);
        } else if !bytes.ends_with(b"\n") && lines.len() > FEWEST_LINES {
            // It may be cut.
            lines.pop();
        }
        if lines.len() < FEWEST_LINES {
            return None;
        }

        let has_commas = lines.iter().any(|line| line.contains(&b','));
        let is_single = |line: &&[u8]| line.split(|byte| *byte == b' ').all(|field| !field.is_empty());
        if are_even(&lines, words) {
            return Some(if lines.iter().all(is_single) { Self::Single } else { Self::Runs { has_commas } });
        }
        if are_even(&lines, wide_words) {
            return Some(Self::WideRuns { has_commas });
        }
        let columns = places(&lines);
        (columns.len() > 1).then_some(Self::Places { columns, has_commas })
    }

    /// The error for the file at `path`, with the way on.
    pub fn error(&self, path: &str) -> SampleError {
        let (rule, filter) = match self {
            Self::Single | Self::Runs { has_commas: false } => {
                ("no delimiter is", "sed -E 's/^ +//; s/ +/,/g'".to_owned())
            }
            Self::Runs { .. } => ("no delimiter is", "sed -E 's/^ +//; s/ +/;/g'".to_owned()),
            Self::WideRuns { has_commas } => {
                let mark = mark(*has_commas);
                ("no delimiter is", format!("sed -E 's/^ +//; s/ {{2,}}/{mark}/g'"))
            }
            Self::Places { columns, has_commas } => {
                let mark = mark(*has_commas);
                let mut fields = Vec::with_capacity(columns.len());
                for (at, Range { start, end }) in columns.iter().enumerate() {
                    // The last column is as long as its line.
                    let length = if at + 1 < columns.len() { format!(", {}", end - start) } else { String::new() };
                    fields.push(format!("substr($0, {}{length})", start + 1));
                }
                let line = fields.join(&format!(" \"{mark}\" "));
                let filter = format!(
                    "awk '{{ s = {line}; gsub(/ *{mark} */, \"{mark}\", s); gsub(/^ +| +$/, \"\", s); print s }}'"
                );
                ("stand at the same places of all lines", filter)
            }
        };
        SampleError::Blanks { path: path.to_owned(), rule, command: conversion(path, &filter, true) }
    }
}

/// The delimiter that the values of the text do not have.
fn mark(has_commas: bool) -> char {
    if has_commas { ';' } else { ',' }
}

/// Whether all lines have as many fields, and more than one.
fn are_even(lines: &[&[u8]], fields: fn(&[u8]) -> usize) -> bool {
    let first = lines.first().map_or(0, |line| fields(line));
    first > 1 && lines.iter().all(|line| fields(line) == first)
}

/// How many fields of a line runs of blanks separate.
fn words(line: &[u8]) -> usize {
    line.split(|byte| *byte == b' ').filter(|field| !field.is_empty()).count()
}

/// How many fields of a line runs of two blanks or more separate.
fn wide_words(line: &[u8]) -> usize {
    let text = String::from_utf8_lossy(line);
    text.trim_start().split("  ").filter(|field| !field.trim().is_empty()).count()
}

/// The columns between places that are blank in all lines, each up to the start of the next.
fn places(lines: &[&[u8]]) -> Vec<Range<usize>> {
    let width = lines.iter().map(|line| line.len()).max().unwrap_or(0);
    let is_blank = |place: usize| lines.iter().all(|line| line.get(place).is_none_or(|byte| *byte == b' '));
    let mut starts: Vec<usize> = Vec::new();
    for place in 0..width {
        if !is_blank(place) && (place == 0 || is_blank(place - 1)) {
            starts.push(place);
        }
    }

    let ends = starts.iter().skip(1).copied().chain([width]);
    let mut columns: Vec<Range<usize>> = starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect();
    if let Some(first) = columns.first_mut() {
        first.start = 0;
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_between_columns() {
        let of = |text: &str| Blanks::of(text.as_bytes());
        assert_eq!(of("date time temp\n2024-03-01 00:00 1\n2024-03-01 01:00 2\n"), Some(Blanks::Single));
        let runs = " date        temp\n 2024-03-01   1,5\n 2024-03-02  10,5\n";
        assert_eq!(of(runs), Some(Blanks::Runs { has_commas: true }));
        let wide = "site name   temp\nthe old mill  1\nhere   10\n";
        assert_eq!(of(wide), Some(Blanks::WideRuns { has_commas: false }));
        let missing = "site  temp wind\na      1.5    3\nb             4\nc     10.5\n";
        let places = Some(Blanks::Places { columns: vec![0..6, 6..11, 11..15], has_commas: false });
        assert_eq!(of(missing), places);
        for other in
            ["values\n1\n2\n3\n", "one line here\n", "It was a dark night.\nNo one knew of it\nand none did ever\n"]
        {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
