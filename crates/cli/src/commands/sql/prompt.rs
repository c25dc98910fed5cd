//! Statements at a prompt.

use std::io::Write;
use std::path::PathBuf;

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use tidetable_sql::statements;

use super::complete::Words;
use super::run::Runner;
use crate::error::CliError;

const PROMPT: &str = "tidetable> ";

const HELP: &str = "\
\\d          tables, exports and runs
\\d NAME     columns of one
\\timing     say how long statements take, or no longer
\\q          leave (or Ctrl-D)
A statement ends with a semicolon, on any line. Tab completes words. Ctrl-C leaves a line, or ends a query that runs.
";

/// Asks for statements until there are no more.
pub(super) fn prompt(mut runner: Runner<'_>) -> Result<(), CliError> {
    let mut timing = runner.timing;
    runner.timing = false;
    let config = Config::builder().auto_add_history(true).build();
    let mut editor: Editor<Words<'_>, FileHistory> = Editor::with_config(config).map_err(|error| failed(&error))?;
    let quiet = &runner;
    editor.set_helper(Some(Words::new(quiet)));
    let history = history();
    if let Some(path) = &history {
        // There is none before the first time.
        let _ = editor.load_history(path);
    }
    let mut stderr = std::io::stderr();
    let _ = writeln!(stderr, "tidetable {}: \\? for help", env!("CARGO_PKG_VERSION"));
    loop {
        let line = match editor.readline(PROMPT) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(failed(&error)),
        };
        if let Some(path) = &history {
            keep(&mut editor, path);
        }
        match line.trim().trim_end_matches(';').split_whitespace().collect::<Vec<_>>().as_slice() {
            ["\\q" | "quit" | "exit"] => break,
            ["\\?" | "\\h" | "help"] => drop(write!(stderr, "{HELP}")),
            ["\\timing"] => {
                timing = !timing;
                let _ = writeln!(stderr, "timing is {}", if timing { "on" } else { "off" });
            }
            ["\\d"] => tell(run(quiet, TABLES, false)),
            ["\\d", table] => tell(run(quiet, &describe(table), false)),
            [word, ..] if word.starts_with('\\') => drop(writeln!(stderr, "there is no {word}: \\? for help")),
            _ => tell(run(quiet, &line, timing)),
        }
    }
    Ok(())
}

const TABLES: &str = "SELECT table_schema AS schema, table_name AS name FROM information_schema.tables \
                      WHERE table_schema <> 'information_schema' ORDER BY schema, name";

/// The query for the columns of a table.
fn describe(table: &str) -> String {
    let (schema, table) = table.split_once('.').unwrap_or(("records", table));
    let text = |text: &str| format!("'{}'", text.trim_matches('"').replace('\'', "''"));
    format!(
        "SELECT column_name AS \"column\", data_type AS type, is_nullable AS \"null\" FROM information_schema.columns \
         WHERE table_schema = {} AND table_name = {} ORDER BY ordinal_position",
        text(schema),
        text(table)
    )
}

fn run(runner: &Runner<'_>, script: &str, timing: bool) -> Result<(), CliError> {
    let found = statements(script).map_err(|error| CliError::Script { text: script.to_owned(), error })?;
    let runner = Runner { timing, ..*runner };
    runner.run_all(script, &found)
}

/// A statement that is wrong is told, and the next one asked for.
fn tell(done: Result<(), CliError>) {
    if let Err(error) = done {
        let _ = writeln!(std::io::stderr(), "error: {error}");
    }
}

/// Where the history is kept: in the state folder of the XDG base directories.
fn history() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
    Some(state.join("tidetable/history"))
}

/// A history that cannot be kept is no reason to stop.
fn keep(editor: &mut Editor<Words<'_>, FileHistory>, path: &PathBuf) {
    let made = path.parent().map(std::fs::create_dir_all);
    if matches!(made, Some(Ok(()))) {
        let _ = editor.append_history(path);
    }
}

fn failed(error: &ReadlineError) -> CliError {
    CliError::Terminal(error.to_string())
}
