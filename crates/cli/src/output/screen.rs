//! Limits of a result: those of a terminal, or none.

use std::io::{self, IsTerminal};

use crate::output::cell_text::Length;

/// Default limit of rows on a terminal.
const ROWS: u64 = 1_000;

/// Limits of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Screen {
    /// Columns of the terminal; `None` for unlimited.
    pub width: Option<usize>,
    /// Maximum number of rows to show.
    pub rows: Option<u64>,
    /// How much is shown of binary values.
    pub length: Length,
    /// How notes below a table name what shows the rest.
    pub words: HintStyle,
}

/// The words of notes: those of the command line, or of the prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HintStyle {
    /// Options of the command.
    #[default]
    Options,
    /// Commands at the prompt.
    Prompt,
}

impl HintStyle {
    /// What shows all rows.
    pub fn all_rows(self) -> &'static str {
        match self {
            Self::Options => "--max-rows 0",
            Self::Prompt => "\\rows 0",
        }
    }

    /// What shows all columns.
    pub fn all_columns(self) -> &'static str {
        match self {
            Self::Options => "--output line",
            Self::Prompt => "\\x",
        }
    }
}

impl Screen {
    /// The limits of standard output. `rows` is the limit from the command line; 0 means all.
    pub fn of_stdout(rows: Option<u64>) -> Self {
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        // A terminal of size 0 has an unknown size.
        let size = terminal_size::terminal_size_of(&stdout).filter(|_| is_terminal);
        let width = size.map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0);
        let default = is_terminal.then_some(ROWS);
        let length = if is_terminal { Length::Short } else { Length::Whole };
        Self { width, rows: rows.or(default).filter(|rows| *rows > 0), length, words: HintStyle::Options }
    }

    /// The limits of a file: only the given ones.
    pub fn of_file(rows: Option<u64>) -> Self {
        Self { rows: rows.filter(|rows| *rows > 0), ..Self::default() }
    }
}
