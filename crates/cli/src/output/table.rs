//! Text tables. The first rows decide the widths of columns, within the width of the terminal; later
//! rows are written as they come, so memory does not grow with the table.

use std::io::Write;

use unicode_width::UnicodeWidthStr;

use crate::error::CliError;
use crate::output::columns::{Give, Heading, Layout, Shown};
use crate::output::cut::{Cut, MARK};
use crate::output::screen::Screen;
use crate::output::values::count;
use crate::terminal::wrap::{wrapped, wrapped_lines};

/// Rows buffered to find the widths of columns.
const SAMPLE: usize = 1_000;
/// Most bytes of those rows.
const SAMPLE_BYTES: usize = 4 << 20;
/// Indent of text below its row.
const BELOW: usize = 2;

/// A table in progress.
#[derive(Debug)]
pub struct TableWriter {
    headings: Vec<Heading>,
    screen: Screen,
    held: Vec<Vec<String>>,
    held_bytes: usize,
    rows: u64,
    /// Whether rows were left out.
    more: bool,
    layout: Option<Layout>,
}

impl TableWriter {
    /// A table of these columns; its widths are decided by the first rows that are pushed.
    pub fn new(headings: Vec<Heading>, screen: Screen) -> Self {
        Self { headings, screen, held: Vec::new(), held_bytes: 0, rows: 0, more: false, layout: None }
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
            write_row(out, layout, &self.headings, &row)?;
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
        write_rule(out, layout, ['└', '─', '┴', '┘'])?;

        let mut notes = Vec::new();
        if self.more {
            notes.push(format!(
                "the first {}, and there are more: {} shows all",
                count(self.rows, "row"),
                self.screen.words.all_rows()
            ));
        }
        if layout.left_out > 0 {
            let shown = self.headings.len() - layout.left_out;
            let all = count(self.headings.len() as u64, "column");
            notes.push(format!("{shown} of {all}: {} shows all", self.screen.words.all_columns()));
        }
        if !notes.is_empty() {
            let width = self.screen.width.unwrap_or(usize::MAX);
            wrapped(&notes.join("; "), width).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        Ok(())
    }

    /// Decides the widths and writes the buffered rows.
    fn begin(&mut self, out: &mut impl Write) -> Result<(), CliError> {
        if self.layout.is_some() {
            return Ok(());
        }
        let layout = Layout::of(&self.headings, &self.held, self.screen.width);
        write_rule(out, &layout, ['┌', '─', '┬', '┐'])?;
        write_header(out, &layout, &self.headings)?;
        write_rule(out, &layout, ['╞', '═', '╪', '╡'])?;
        for row in std::mem::take(&mut self.held) {
            write_row(out, &layout, &self.headings, &row)?;
        }
        self.layout = Some(layout);
        Ok(())
    }
}

fn write_rule(out: &mut impl Write, layout: &Layout, [left, dash, cross, right]: [char; 4]) -> Result<(), CliError> {
    let mut text = String::from(left);
    for (place, column) in layout.shown.iter().enumerate() {
        if place > 0 {
            text.push(cross);
        }
        text.extend(std::iter::repeat_n(dash, column.width() + 2));
    }
    text.push(right);
    writeln!(out, "{text}")?;
    Ok(())
}

/// Writes the names of the columns, wrapped where they are wider than the values.
fn write_header(out: &mut impl Write, layout: &Layout, headings: &[Heading]) -> Result<(), CliError> {
    let cells = layout.shown.iter().map(|column| match column {
        Shown::Gap => gap(),
        Shown::Column { index, width, .. } => {
            let name = headings.get(*index).map_or("", |heading| heading.name.as_str());
            let lines = if layout.bounded { wrapped_lines(name, *width) } else { lines_of(name) };
            Cell { lines, width: *width, right: false }
        }
    });
    let cells: Vec<Cell> = cells.collect();
    write_cells(out, &cells)
}

/// Writes a row on as many lines as its values take, and the long text that stands below it.
fn write_row(out: &mut impl Write, layout: &Layout, headings: &[Heading], row: &[String]) -> Result<(), CliError> {
    let cells = layout.shown.iter().map(|column| match column {
        Shown::Gap => gap(),
        Shown::Column { index, width, cut } => {
            let text = row.get(*index).map_or("", String::as_str);
            let lines = match layout.bounded {
                true => value_lines(headings.get(*index), text, *width, *cut),
                false => lines_of(text),
            };
            Cell { lines, width: *width, right: headings.get(*index).is_some_and(|heading| heading.right) }
        }
    });
    let cells: Vec<Cell> = cells.collect();
    write_cells(out, &cells)?;

    let width = layout.inner_width().saturating_sub(BELOW + 2).max(1);
    for index in &layout.below {
        let (Some(heading), Some(text)) = (headings.get(*index), row.get(*index)) else { continue };
        if text.is_empty() {
            continue;
        }
        for line in wrapped_lines(&format!("{}: {text}", heading.name), width) {
            let pad = " ".repeat(width.saturating_sub(line.width()));
            writeln!(out, "│ {}{line}{pad} │", " ".repeat(BELOW))?;
        }
    }
    Ok(())
}

/// A value as shown: its lines, in a width.
#[derive(Debug)]
struct Cell {
    lines: Vec<String>,
    width: usize,
    right: bool,
}

/// The mark of columns that are left out.
fn gap() -> Cell {
    Cell { lines: vec![MARK.to_string()], width: 1, right: false }
}

/// The lines of a value in a column of `width` characters.
fn value_lines(heading: Option<&Heading>, text: &str, width: usize, cut: Cut) -> Vec<String> {
    let has_lines = text.contains('\n');
    if !has_lines && text.width() <= width {
        return lines_of(text);
    }

    match heading.map(|heading| heading.give) {
        Some(Give::Cut) if !has_lines => cut.lines(text, width),
        Some(Give::Prefix) => vec![text.chars().take(width).collect()],
        // Values with line breaks, such as query plans, are text; a number that is wider than those of the first rows
        // goes on in the next line.
        _ => wrapped_lines(text, width),
    }
}

fn write_cells(out: &mut impl Write, cells: &[Cell]) -> Result<(), CliError> {
    let height = cells.iter().map(|cell| cell.lines.len()).max().unwrap_or(1).max(1);
    let mut text = String::new();

    for at in 0..height {
        text.push('│');
        for (place, cell) in cells.iter().enumerate() {
            if place > 0 {
                text.push('┆');
            }
            let shown = cell.lines.get(at).map_or("", String::as_str);
            let pad = cell.width.saturating_sub(shown.width());
            let (before, after) = if cell.right { (pad, 0) } else { (0, pad) };
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

fn lines_of(text: &str) -> Vec<String> {
    text.split('\n').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of text, but for the numbers in `n`, as a query or a command shows it.
    fn shown(screen: Screen, give: Give, names: &[&str], rows: &[Vec<String>]) -> String {
        let last = names.len() - 1;
        let heading = |(at, name): (usize, &&str)| Heading {
            give,
            right: *name == "n",
            rank: if give == Give::Cut { 1 + at.min(last - at) } else { 0 },
            ..Heading::text(name)
        };
        let mut table = TableWriter::new(names.iter().enumerate().map(heading).collect(), screen);
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
        let text = shown(Screen::default(), Give::Cut, &["n", "text"], &rows);
        assert_eq!(
            text,
            "┌──────┬───────┐\n│ n    ┆ text  │\n╞══════╪═══════╡\n│    7 ┆ x     │\n│ 1234 ┆ two   │\n│      ┆ lines │\n\
             └──────┴───────┘\n"
        );
    }

    #[test]
    fn a_long_table_is_written_as_it_comes() {
        let headings = vec![Heading { right: true, ..Heading::text("n") }];
        let mut table = TableWriter::new(headings, Screen::default());
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
        let text = shown(screen, Give::Cut, &["n"], &rows);
        assert!(
            text.ends_with("│ 2 │\n└───┘\nthe first 3 rows, and there are more: --max-rows 0 shows all\n"),
            "{text}"
        );
        assert!(shown(screen, Give::Cut, &["n"], &rows[..3]).ends_with("└───┘\n"));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let names: Vec<String> = (0..40).map(|at| format!("column_{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for columns in [1, 2, 3, 5, 8, 13, 40] {
            for width in [20, 40, 79, 80, 200] {
                let screen = Screen { width: Some(width), ..Screen::default() };
                let rows = [vec!["é日本 ".repeat(20); columns], vec!["x".to_owned(); columns]];
                for give in [Give::Cut, Give::Wrap] {
                    let text = shown(screen, give, &names[..columns], &rows);
                    let fits = text.lines().filter(|line| line.contains(['│', '─'])).all(|line| line.width() <= width);
                    // Columns of commands are never left out, however narrow they become.
                    assert!(fits || (give == Give::Wrap && columns * 6 >= width), "{columns} in {width}:\n{text}");
                }
            }
        }
        // What fits is as without a limit, however narrow its columns are.
        for names in [&["n"][..], &["a", "b", "n"]] {
            let row = [vec!["7".to_owned(); names.len()]];
            let screen = Screen { width: Some(4 * names.len() + 1), ..Screen::default() };
            assert_eq!(shown(screen, Give::Cut, names, &row), shown(Screen::default(), Give::Cut, names, &row));
        }
        let screen = Screen { width: Some(40), ..Screen::default() };
        let text = shown(screen, Give::Cut, &names, &[vec!["1".to_owned(); 40]]);
        assert!(text.ends_with("3 of 40 columns: --output line shows all\n"), "{text}");
    }

    #[test]
    fn keys_that_differ_do_not_look_alike_at_any_width() {
        let keys: Vec<String> = (0..30).map(|n| format!("plant-07/vehicle-{n:04}/front/left/wheel")).collect();
        let rows: Vec<Vec<String>> = keys.iter().map(|key| vec![key.clone(), "z".repeat(60)]).collect();
        for width in 12..=120 {
            let screen = Screen { width: Some(width), ..Screen::default() };
            let text = shown(screen, Give::Cut, &["key", "text"], &rows);
            // Values over several lines show all of themselves.
            let lines: Vec<&str> = text.lines().filter(|line| line.starts_with('│')).skip(1).collect();
            let mut values: Vec<&str> = lines.iter().map(|line| line.split('┆').next().unwrap()).collect();
            if values.len() > keys.len() {
                continue;
            }
            values.sort_unstable();
            values.dedup();
            assert_eq!(values.len(), keys.len(), "{width}:\n{text}");
        }
    }
}
