//! Tables whose columns are separated by blanks: by one, by runs of them, or at the same places of all lines.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::format::conversion;
use crate::sample::error::SampleError;

/// Lines that are looked at, and the fewest that make a table.
const MOST_LINES: usize = 50;
const FEWEST_LINES: usize = 3;
/// Lines in which a table behind a long preamble is looked for, and fewest of its lines.
const MOST_BEHIND: usize = 400;
const FEWEST_BEHIND: usize = 10;
/// The share of lines (percent) with one number of words that makes those before them a preamble.
const ALIKE: usize = 60;

/// A table whose columns blanks separate.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BlankTable {
    pub blanks: Blanks,
    /// Lines before it.
    before: usize,
    /// The number of a line between its header and its rows, from 1.
    gap: Option<usize>,
}

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

impl BlankTable {
    /// The table of a text, perhaps behind a preamble; `None` if blanks separate no columns.
    pub fn find(bytes: &[u8]) -> Option<Self> {
        let mut lines = Vec::new();
        let mut numbers = Vec::new();
        for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii_end();
            if !line.is_empty() && !line.starts_with(b"#") {
                lines.push(line);
                numbers.push(number);
            }
        }
        let late = Self::behind_text(&lines, &numbers);
        if lines.len() > MOST_LINES {
            lines.truncate(MOST_LINES);
        } else if !bytes.ends_with(b"\n") && lines.len() > FEWEST_LINES {
            // It may be cut.
            lines.pop();
        }

        let start = table_start(&lines);
        let mut table = lines.get(start..)?.to_vec();
        // A line of units below the header has gaps.
        if start > 0
            && table.len() > FEWEST_LINES
            && table.get(1).map(|line| words(line)) != table.first().map(|line| words(line))
        {
            table.remove(1);
        }
        let behind = Blanks::of(&table).filter(|_| start > 0);
        if let Some(blanks) = behind {
            return Some(Self { blanks, before: numbers.get(start).copied().unwrap_or_default(), gap: None });
        }
        Blanks::of(&lines).map(|blanks| Self { blanks, before: 0, gap: None }).or(late)
    }

    /// The table of these lines, with their places in the file from 0, that goes on behind a long text: all lines from some on have
    /// as many words. Its header may have a line of signs below it.
    fn behind_text(lines: &[&[u8]], numbers: &[usize]) -> Option<Self> {
        let lines = lines.get(..lines.len().min(MOST_BEHIND).checked_sub(1)?)?;
        let width = lines.last().map(|line| words(line)).filter(|width| *width > 1)?;
        let text_end = lines.iter().rposition(|line| words(line) != width)?;
        let rows = lines.get(text_end + 1..)?;
        let has_numbers = |line: &&[u8]| line.iter().any(u8::is_ascii_digit);
        if rows.len() < FEWEST_BEHIND || !rows.iter().skip(1).all(has_numbers) {
            return None;
        }

        let blanks = Blanks::of(rows)?;
        let number_of = |at: usize| numbers.get(at).copied();
        let header = text_end.checked_sub(1).filter(|at| lines.get(*at).is_some_and(|line| words(line) == width));
        match header {
            Some(header) => Some(Self { blanks, before: number_of(header)?, gap: Some(number_of(text_end)? + 1) }),
            None => Some(Self { blanks, before: number_of(text_end + 1)?, gap: None }),
        }
    }
}

/// The index of the first line with as many words as most; 0 if no number of words is that of most.
fn table_start(lines: &[&[u8]]) -> usize {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for line in lines {
        *counts.entry(words(line)).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    let most = most.filter(|(width, count)| *width > 1 && count * 100 >= lines.len() * ALIKE);
    let start = most.and_then(|(width, _)| lines.iter().position(|line| words(line) == width));
    start.unwrap_or(0)
}

impl Blanks {
    /// How blanks separate the columns of lines; `None` if they do not.
    fn of(lines: &[&[u8]]) -> Option<Self> {
        if lines.len() < FEWEST_LINES {
            return None;
        }

        let has_commas = lines.iter().any(|line| line.contains(&b','));
        let is_single = |line: &&[u8]| line.split(|byte| *byte == b' ').all(|field| !field.is_empty());
        if are_even(lines, words) {
            return Some(if lines.iter().all(is_single) { Self::Single } else { Self::Runs { has_commas } });
        }
        if are_even(lines, wide_words) {
            return Some(Self::WideRuns { has_commas });
        }
        let columns = places(lines);
        (columns.len() > 1).then_some(Self::Places { columns, has_commas })
    }
}

impl BlankTable {
    /// The error for the file at `path`, with the way on.
    pub fn error(&self, path: &str) -> SampleError {
        let mut cut = if self.before > 0 { format!("1,{}d; ", self.before) } else { String::new() };
        cut.extend(self.gap.map(|gap| format!("{gap}d; ")));
        let (rule, filter) = match &self.blanks {
            Blanks::Single | Blanks::Runs { has_commas: false } => {
                ("no delimiter is", format!("sed -E '{cut}s/^ +//; s/ +/,/g'"))
            }
            Blanks::Runs { .. } => ("no delimiter is", format!("sed -E '{cut}s/^ +//; s/ +/;/g'")),
            Blanks::WideRuns { has_commas } => {
                let mark = mark(*has_commas);
                ("no delimiter is", format!("sed -E '{cut}s/^ +//; s/ {{2,}}/{mark}/g'"))
            }
            Blanks::Places { columns, has_commas } => {
                let mark = mark(*has_commas);
                let mut fields = Vec::with_capacity(columns.len());
                for (at, Range { start, end }) in columns.iter().enumerate() {
                    // The last column is as long as its line.
                    let length = if at + 1 < columns.len() { format!(", {}", end - start) } else { String::new() };
                    fields.push(format!("substr($0, {}{length})", start + 1));
                }
                let line = fields.join(&format!(" \"{mark}\" "));
                let rows = if self.before > 0 { format!("NR > {} ", self.before) } else { String::new() };
                let filter = format!(
                    "awk '{rows}{{ s = {line}; gsub(/ *{mark} */, \"{mark}\", s); gsub(/^ +| +$/, \"\", s); print s }}'"
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
        let of = |text: &str| BlankTable::find(text.as_bytes()).map(|table| table.blanks);
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
    #[test]
    fn lines_before_the_table_are_cut() {
        let rows: String = (1..9).map(|month| format!("   1948   {month}    8.9     3.3    ---\n")).collect();
        let text =
            format!("Heathrow\nMissing data is  ---.\n   yyyy  mm   tmax    tmin      af\n    degC    degC\n{rows}");
        let table = BlankTable::find(text.as_bytes()).unwrap();
        assert_eq!((&table.blanks, table.before), (&Blanks::Runs { has_commas: false }, 2));
        let error = table.error("a.txt").to_string();
        assert!(error.ends_with("sed -E '1,2d; s/^ +//; s/ +/,/g' a.txt > NEW.csv"), "{error}");
    }

    #[test]
    fn a_table_behind_a_long_text_is_found() {
        let text: String = (0..60).map(|at| format!("WR Windrichtung   in {at} m\n{}\n", "*".repeat(60))).collect();
        let rows: String = (10..40).map(|hour| format!(" 1   {hour}    8.9     3.3\n")).collect();
        let command = |text: &str| BlankTable::find(text.as_bytes()).unwrap().error("a.dat").to_string();
        let with_header = command(&format!("{text}\nRG  HH    t    p\n***\n{rows}"));
        assert!(with_header.ends_with("sed -E '1,121d; 123d; s/^ +//; s/ +/,/g' a.dat > NEW.csv"), "{with_header}");
        let bare = command(&format!("{text}\n{rows}"));
        assert!(bare.ends_with("sed -E '1,121d; s/^ +//; s/ +/,/g' a.dat > NEW.csv"), "{bare}");
    }
}
