//! What a result is fitted to: the terminal it is shown on, or nothing where another program reads it.

use std::io::{self, IsTerminal};

use crate::output::cell_text::Length;

/// Rows of a table that a terminal shows, unless told otherwise.
const ROWS: u64 = 1_000;

/// Limits of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Screen {
    /// Columns of the terminal; `None`: lines may be of any length.
    pub width: Option<usize>,
    /// Rows that are shown at most.
    pub rows: Option<u64>,
    /// How much is shown of bytes that are no text.
    pub length: Length,
}

impl Screen {
    /// The limits of standard output. `rows` are those asked for, of which 0 stands for all.
    pub fn of_stdout(rows: Option<u64>) -> Self {
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        // A terminal of no size is one of which nothing is known.
        let size = terminal_size::terminal_size_of(&stdout).filter(|_| is_terminal);
        let width = size.map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0);
        let usual = is_terminal.then_some(ROWS);
        let length = if is_terminal { Length::Short } else { Length::Whole };
        Self { width, rows: rows.or(usual).filter(|rows| *rows > 0), length }
    }

    /// The limits of a file: none but those asked for.
    pub fn of_file(rows: Option<u64>) -> Self {
        Self { rows: rows.filter(|rows| *rows > 0), ..Self::default() }
    }
}
