//! A heatmap in the terminal: half blocks in 256 colours, or plain characters.

use std::io::{self, IsTerminal, Write};

use tidetable_advisor::heatmap::Heatmap;

use crate::output::values::time;

/// From nothing to the greatest count, of equal steps in brightness: readable without telling hues apart.
const COLOURS: [u8; 10] = [16, 17, 18, 54, 90, 126, 162, 203, 215, 229];
const CHARACTERS: [char; 10] = [' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'];
/// Lines of colours; plain text has as many lines of characters.
const LINES: usize = 24;
/// Columns without a terminal.
const COLUMNS: usize = 100;
/// Longest label of a row key.
const LABEL: usize = 24;

/// How to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Canvas {
    /// Columns of the screen.
    pub width: usize,
    /// Whether colours may be used.
    pub colours: bool,
}

impl Canvas {
    /// The standard output: colours only on a terminal, and not with NO_COLOR.
    pub fn of_stdout() -> Self {
        let stdout = io::stdout();
        let colours = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let size = terminal_size::terminal_size_of(&stdout).filter(|_| stdout.is_terminal());
        let width = size.map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0);
        Self { width: width.unwrap_or(COLUMNS), colours }
    }
}

/// Draws the map, with the first row key of each line, the time below, and a legend.
pub fn draw(map: &Heatmap, unit: &str, canvas: Canvas, out: &mut impl Write) -> io::Result<()> {
    let halves = if canvas.colours { 2 } else { 1 };
    let columns = canvas.width.saturating_sub(LABEL + 1).max(10);
    let cells = map.reduced(LINES * halves, columns);
    let most = cells.iter().flatten().copied().max().unwrap_or(0);
    let lines = cells.len();
    for (at, pair) in cells.chunks(halves).enumerate() {
        let bucket = (at * halves * map.buckets.len()).div_ceil(lines.max(1));
        let key = map.buckets.get(bucket).map(|key| label(key)).unwrap_or_default();
        let upper = pair.first().map(Vec::as_slice).unwrap_or_default();
        if !canvas.colours {
            let level = |count: &u64| CHARACTERS.get(level(*count, most)).copied().unwrap_or_default();
            let line: String = upper.iter().map(level).collect();
            writeln!(out, "{}", format!("{key:LABEL$} {line}").trim_end())?;
            continue;
        }
        write!(out, "{key:LABEL$} ")?;
        let colour = |count| COLOURS.get(level(count, most)).copied().unwrap_or_default();
        for (column, count) in upper.iter().enumerate() {
            match pair.get(1).and_then(|lower| lower.get(column)) {
                Some(lower) => write!(out, "\x1b[38;5;{};48;5;{}m▀", colour(*count), colour(*lower))?,
                None => write!(out, "\x1b[38;5;{}m▀", colour(*count))?,
            }
        }
        writeln!(out, "\x1b[0m")?;
    }
    let width = cells.first().map_or(0, Vec::len);
    let [first, last] = [map.axis.start, map.axis.start_of(map.axis.slices)]
        .map(|second| time(super::micros(second)).unwrap_or_default());
    let gap = width.saturating_sub(first.len() + last.len()).max(1);
    writeln!(out, "{:LABEL$} {first}{}{last}", "", " ".repeat(gap))?;
    legend(most, unit, canvas, out)
}

/// Greatest count of each brightness.
fn legend(most: u64, unit: &str, canvas: Canvas, out: &mut impl Write) -> io::Result<()> {
    write!(out, "{:LABEL$} ", "")?;
    let mut before = None;
    for at in 0..COLOURS.len() {
        let greatest = greatest_of(at, most);
        if before == Some(greatest) {
            continue;
        }
        before = Some(greatest);
        match canvas.colours {
            true => write!(out, "\x1b[48;5;{}m  \x1b[0m {greatest} ", COLOURS.get(at).copied().unwrap_or_default())?,
            false => write!(out, "'{}' {greatest} ", CHARACTERS.get(at).copied().unwrap_or_default())?,
        }
    }
    writeln!(out, "{unit} at most")
}

/// Brightness of a count: 0 for none, else by its logarithm.
fn level(count: u64, most: u64) -> usize {
    let brightest = COLOURS.len() - 1;
    (0..brightest).find(|at| count <= greatest_of(*at, most)).unwrap_or(brightest)
}

/// The greatest count of a brightness.
fn greatest_of(level: usize, most: u64) -> u64 {
    let brightest = COLOURS.len() - 1;
    if level == 0 || most == 0 {
        return 0;
    }
    if level >= brightest {
        return most;
    }
    (((most as f64 + 1.0).ln() * level as f64 / brightest as f64).exp_m1()).floor() as u64
}

/// The beginning of a key, printable.
fn label(key: &[u8]) -> String {
    let text: String =
        String::from_utf8_lossy(key).chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    match text.char_indices().nth(LABEL - 1) {
        Some((end, _)) if text.chars().count() > LABEL => format!("{}…", text.get(..end).unwrap_or_default()),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use tidetable_advisor::spread::Axis;

    use super::*;

    fn drawn(colours: bool) -> String {
        let mut map = Heatmap::new(Axis { start: 0, width: 3600, slices: 40 }, 48);
        for rank in 0..48 {
            map.buckets[rank as usize] = format!("key{rank:02}").into_bytes();
            map.add(rank, rank as usize % 40, u64::from(rank) + 1);
        }
        let mut out = Vec::new();
        draw(&map, "rows", Canvas { width: 60, colours }, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn plain_text_has_no_escapes_and_fits() {
        let plain = drawn(false);
        assert!(!plain.contains('\x1b'), "{plain}");
        let lines: Vec<&str> = plain.lines().collect();
        assert_eq!(lines.len(), LINES + 2);
        assert!(lines.iter().take(LINES + 1).all(|line| line.chars().count() <= 66), "{plain}");
        assert!(lines[1].starts_with("key02 "), "{plain}");
        assert!(plain.contains('@') && plain.contains("'@' 83 rows at most"), "{plain}");
    }

    #[test]
    fn colours_show_two_runs_of_keys_a_line() {
        let coloured = drawn(true);
        assert_eq!(coloured.lines().count(), LINES + 2);
        assert!(coloured.lines().take(LINES).all(|line| line.ends_with("\x1b[0m")), "{coloured}");
    }

    #[test]
    fn brightness_grows_with_the_count() {
        for most in [1, 2, 9, 10, 1000, u64::MAX >> 12] {
            assert_eq!((level(0, most), level(most, most)), (0, COLOURS.len() - 1), "{most}");
            let levels: Vec<usize> = (0..=most.min(5000)).map(|count| level(count, most)).collect();
            assert!(levels.is_sorted() && levels[1] > 0, "{most}");
        }
    }
}
