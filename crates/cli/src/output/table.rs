//! Text tables. The first rows decide the widths of columns, within the width of the terminal; later
//! rows are written as they come, so memory does not grow with the table.

use std::io::Write;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::error::CliError;
use crate::output::screen::Screen;
use crate::output::values::count;

/// Rows buffered to find the widths of columns.
const SAMPLE: usize = 1_000;
/// Most bytes of those rows.
const SAMPLE_BYTES: usize = 4 << 20;
/// Columns are left out before any becomes narrower than this.
const NARROW: usize = 8;
/// The mark of truncated values.
const CUT: char = '…';

/// How values that are too wide are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// Wrapped: messages of commands must be readable in full.
    Wrap,
    /// Truncated, and columns in the middle are left out: a row is one line.
    Cut,
}

/// A column.
#[derive(Debug, Clone)]
pub struct Heading {
    /// Its name.
    pub name: String,
    /// Whether its values are right-aligned.
    pub right: bool,
}

/// A table in progress.
#[derive(Debug)]
pub struct TableWriter {
    headings: Vec<Heading>,
    screen: Screen,
    fit: Fit,
    held: Vec<Vec<String>>,
    held_bytes: usize,
    rows: u64,
    /// Whether rows were left out.
    more: bool,
    layout: Option<Layout>,
}

/// Which columns are shown, and how wide.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Layout {
    /// Columns with their width; `None` for left-out columns.
    shown: Vec<Option<(usize, usize)>>,
    /// Whether values are limited to the width; otherwise a wide one makes its line longer.
    bounded: bool,
}

impl TableWriter {
    /// An empty table.
    pub fn new(headings: Vec<Heading>, screen: Screen, fit: Fit) -> Self {
        let (held, rows) = (Vec::new(), 0);
        Self { headings, screen, fit, held, held_bytes: 0, rows, more: false, layout: None }
    }

    /// Adds a row. Returns `false` if the limit is reached.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn push(&mut self, out: &mut impl Write, row: Vec<String>) -> Result<bool, CliError> {
        if self.screen.rows.is_some_and(|most| self.rows >= most) {
            self.more = true;
            return Ok(false);
        }
        self.rows += 1;
        if let Some(layout) = &self.layout {
            line(out, layout, &self.headings, &row, self.fit)?;
            return Ok(true);
        }
        self.held_bytes += row.iter().map(String::len).sum::<usize>();
        self.held.push(row);
        if self.held.len() >= SAMPLE || self.held_bytes >= SAMPLE_BYTES {
            self.begin(out)?;
        }
        Ok(true)
    }

    /// Ends the table, and says what was left out.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn finish(mut self, out: &mut impl Write) -> Result<(), CliError> {
        self.begin(out)?;
        let Some(layout) = &self.layout else { return Ok(()) };
        rule(out, layout, ['└', '─', '┴', '┘'])?;
        let mut notes = Vec::new();
        if self.more {
            notes.push(format!("the first {}, and there are more: --max-rows 0 shows all", count(self.rows, "row")));
        }
        let shown = layout.shown.iter().flatten().count();
        if shown < self.headings.len() {
            let all = count(self.headings.len() as u64, "column");
            notes.push(format!("{shown} of {all}: --output line shows all"));
        }
        if !notes.is_empty() {
            writeln!(out, "{}", notes.join("; "))?;
        }
        Ok(())
    }

    /// Decides the widths and writes the buffered rows.
    fn begin(&mut self, out: &mut impl Write) -> Result<(), CliError> {
        if self.layout.is_some() {
            return Ok(());
        }
        let layout = self.decide();
        rule(out, &layout, ['┌', '─', '┬', '┐'])?;
        let names: Vec<String> = self.headings.iter().map(|heading| heading.name.clone()).collect();
        let plain: Vec<Heading> = names.iter().map(|name| Heading { name: name.clone(), right: false }).collect();
        line(out, &layout, &plain, &names, self.fit)?;
        rule(out, &layout, ['╞', '═', '╪', '╡'])?;
        for row in std::mem::take(&mut self.held) {
            line(out, &layout, &self.headings, &row, self.fit)?;
        }
        self.layout = Some(layout);
        Ok(())
    }

    fn decide(&self) -> Layout {
        let mut widths: Vec<usize> = self.headings.iter().map(|heading| widest(&heading.name)).collect();
        for row in &self.held {
            widths.iter_mut().zip(row).for_each(|(width, cell)| *width = (*width).max(widest(cell)));
        }
        let whole = |widths: &[usize]| Layout {
            shown: widths.iter().copied().enumerate().map(Some).collect(),
            bounded: self.screen.width.is_some(),
        };
        let Some(room) = self.screen.width else { return whole(&widths) };
        // A border and two spaces per column, and the last border.
        let frame = |columns: usize| 3 * columns + 1;
        let inner = room.saturating_sub(frame(widths.len()));
        let least =
            if self.fit == Fit::Wrap { 1 } else { NARROW.min(widths.iter().copied().max().unwrap_or_default()) };
        if let Some(most) = common_width(&widths, inner).filter(|most| *most >= least) {
            let fitted: Vec<usize> = widths.iter().map(|width| (*width).min(most.max(1))).collect();
            return whole(&fitted);
        }
        if self.fit == Fit::Wrap {
            return Layout { bounded: false, ..whole(&widths) };
        }
        // First and last columns in turn, while there is room, and a mark for left-out ones.
        let order = (0..widths.len().div_ceil(2)).flat_map(|at| [at, widths.len() - 1 - at]);
        let mut left = room.saturating_sub(frame(1) + 1);
        let mut kept = Vec::new();
        for at in order {
            let width = widths.get(at).copied().unwrap_or_default().min(2 * NARROW);
            if kept.contains(&(at, width)) || width + 3 > left {
                break;
            }
            left -= width + 3;
            kept.push((at, width));
        }
        if kept.is_empty() {
            // Too narrow for any: the first column takes all.
            kept.extend(widths.first().map(|width| (0, (*width).min(room.saturating_sub(frame(2) + 1).max(1)))));
        }
        kept.sort_unstable();
        let gap = kept.iter().enumerate().position(|(place, (at, _))| place != *at).unwrap_or(kept.len());
        let mut shown: Vec<Option<(usize, usize)>> = kept.into_iter().map(Some).collect();
        shown.insert(gap, None);
        Layout { shown, bounded: true }
    }
}

/// The largest common limit of widths with which all columns fit into `room`.
fn common_width(widths: &[usize], room: usize) -> Option<usize> {
    let fits = |most: usize| widths.iter().map(|width| (*width).min(most)).sum::<usize>() <= room;
    let widest = widths.iter().copied().max().unwrap_or_default();
    let (mut low, mut high) = (0, widest);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    (low > 0 || widest == 0).then_some(low)
}

/// The width of the widest line of a text.
fn widest(text: &str) -> usize {
    text.split('\n').map(UnicodeWidthStr::width).max().unwrap_or_default()
}

fn rule(out: &mut impl Write, layout: &Layout, [left, dash, cross, right]: [char; 4]) -> Result<(), CliError> {
    let mut text = String::from(left);
    for (at, column) in layout.shown.iter().enumerate() {
        if at > 0 {
            text.push(cross);
        }
        text.extend(std::iter::repeat_n(dash, column.map_or(1, |(_, width)| width) + 2));
    }
    text.push(right);
    writeln!(out, "{text}")?;
    Ok(())
}

/// Writes a row, on as many lines as its values take.
fn line(out: &mut impl Write, layout: &Layout, headings: &[Heading], row: &[String], fit: Fit) -> Result<(), CliError> {
    let cells: Vec<Vec<String>> =
        layout.shown.iter().map(|column| lines_of(column, row, layout.bounded, fit)).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(1).max(1);
    let mut text = String::new();
    for at in 0..height {
        text.push('│');
        for (place, (column, lines)) in layout.shown.iter().zip(&cells).enumerate() {
            if place > 0 {
                text.push('┆');
            }
            let shown = lines.get(at).map_or("", String::as_str);
            let (number, width) = column.unwrap_or((usize::MAX, 1));
            let pad = width.saturating_sub(shown.width());
            let right = headings.get(number).is_some_and(|heading| heading.right);
            let (before, after) = if right { (pad, 0) } else { (0, pad) };
            text.push(' ');
            text.extend(std::iter::repeat_n(' ', before));
            text.push_str(shown);
            text.extend(std::iter::repeat_n(' ', after + 1));
        }
        text.push_str("│\n");
    }
    out.write_all(text.as_bytes())?;
    Ok(())
}

/// The lines of one value of a row.
fn lines_of(column: &Option<(usize, usize)>, row: &[String], bounded: bool, fit: Fit) -> Vec<String> {
    let Some((at, width)) = *column else { return vec![CUT.to_string()] };
    let Some(text) = row.get(at) else { return Vec::new() };
    let has_lines = text.contains('\n');
    if !bounded || (!has_lines && text.width() <= width) {
        return text.split('\n').map(str::to_owned).collect();
    }
    // Values with line breaks, such as query plans, are text.
    if fit == Fit::Wrap || has_lines {
        return text.split('\n').flat_map(|line| wrapped(line, width)).collect();
    }
    vec![cut(text, width)]
}

/// Truncates a text to a width.
fn cut(text: &str, width: usize) -> String {
    let mut shown = String::new();
    let mut left = width.saturating_sub(1);
    for c in text.chars() {
        let wide = c.width().unwrap_or_default();
        if wide > left {
            break;
        }
        left -= wide;
        shown.push(c);
    }
    shown.push(CUT);
    shown
}

/// Wraps a line to a width, at spaces where possible.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let (mut lines, mut current, mut taken) = (Vec::new(), String::new(), 0);
    for word in line.split_inclusive(' ') {
        let wide = word.trim_end().width();
        if taken > 0 && taken + wide > width && wide <= width {
            lines.push(std::mem::take(&mut current).trim_end().to_owned());
            taken = 0;
        }
        for c in word.chars() {
            let wide = c.width().unwrap_or_default();
            if taken + wide > width && c != ' ' {
                lines.push(std::mem::take(&mut current).trim_end().to_owned());
                taken = 0;
            }
            current.push(c);
            taken += wide;
        }
    }
    lines.push(current.trim_end().to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(screen: Screen, fit: Fit, names: &[&str], rows: &[Vec<String>]) -> String {
        let headings = names.iter().map(|name| Heading { name: (*name).to_owned(), right: *name == "n" }).collect();
        let mut table = TableWriter::new(headings, screen, fit);
        let mut out = Vec::new();
        for row in rows {
            if !table.push(&mut out, row.clone()).unwrap() {
                break;
            }
        }
        table.finish(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn a_small_table_is_laid_out_as_a_whole() {
        let rows = [row(&["7", "x"]), row(&["1234", "two\nlines"])];
        let text = shown(Screen::default(), Fit::Cut, &["n", "text"], &rows);
        assert_eq!(
            text,
            "┌──────┬───────┐\n│ n    ┆ text  │\n╞══════╪═══════╡\n│    7 ┆ x     │\n│ 1234 ┆ two   │\n│      ┆ lines │\n\
             └──────┴───────┘\n"
        );
    }

    #[test]
    fn a_long_table_is_written_as_it_comes() {
        let headings = vec![Heading { name: "n".to_owned(), right: true }];
        let mut table = TableWriter::new(headings, Screen::default(), Fit::Cut);
        let mut out = Vec::new();
        for n in 0..100_000_u64 {
            assert!(table.push(&mut out, vec![n.to_string()]).unwrap());
            assert!(table.held.len() < SAMPLE && table.held_bytes < SAMPLE_BYTES);
        }
        table.finish(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 100_004);
        // A value wider than those of the first rows is shown whole.
        assert!(text.contains("│ 99999 │\n"));
    }

    #[test]
    fn a_table_ends_at_its_cap_and_says_so() {
        let rows: Vec<Vec<String>> = (0..5).map(|n| vec![n.to_string()]).collect();
        let screen = Screen { rows: Some(3), ..Screen::default() };
        let text = shown(screen, Fit::Cut, &["n"], &rows);
        assert!(
            text.ends_with("│ 2 │\n└───┘\nthe first 3 rows, and there are more: --max-rows 0 shows all\n"),
            "{text}"
        );
        assert!(shown(screen, Fit::Cut, &["n"], &rows[..3]).ends_with("└───┘\n"));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let names: Vec<String> = (0..40).map(|at| format!("column_{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for columns in [1, 2, 3, 5, 8, 13, 40] {
            for width in [20, 40, 79, 80, 200] {
                let screen = Screen { width: Some(width), ..Screen::default() };
                let rows = [vec!["é日本 ".repeat(20); columns], vec!["x".to_owned(); columns]];
                for fit in [Fit::Cut, Fit::Wrap] {
                    let text = shown(screen, fit, &names[..columns], &rows);
                    let fits = text.lines().filter(|line| line.contains(['│', '─'])).all(|line| line.width() <= width);
                    // Columns of commands are never left out, however narrow they become.
                    assert!(fits || (fit == Fit::Wrap && columns * 6 >= width), "{columns} in {width}:\n{text}");
                }
            }
        }
        // What fits is as without a limit, however narrow its columns are.
        for names in [&["n"][..], &["a", "b", "n"]] {
            let row = [vec!["7".to_owned(); names.len()]];
            let screen = Screen { width: Some(4 * names.len() + 1), ..Screen::default() };
            assert_eq!(shown(screen, Fit::Cut, names, &row), shown(Screen::default(), Fit::Cut, names, &row));
        }
        let screen = Screen { width: Some(40), ..Screen::default() };
        let text = shown(screen, Fit::Cut, &names, &[vec!["1".to_owned(); 40]]);
        assert!(text.ends_with("3 of 40 columns: --output line shows all\n"), "{text}");
    }

    #[test]
    fn words_are_kept_together_where_they_fit() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrapped("", 4), [""]);
        assert_eq!(cut("abcdef", 4), "abc…");
    }
}
