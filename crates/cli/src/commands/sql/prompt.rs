//! The interactive prompt.

use std::io::Write;
use std::path::{Path, PathBuf};

use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use tidetable_source::Location;
use tidetable_source::panics::catch;
use tidetable_sql::{is_complete, statements};

use crate::args::Output;
use crate::commands::sql::complete::Words;
use crate::commands::sql::run::{OutputOptions, StatementRunner, output_format};
use crate::commands::sql::words::{HELP, Word, word};
use crate::error::CliError;
use crate::log::write_text;
use crate::output::{Destination, HintStyle, ROW_FILE_EXTENSIONS, format_from_extension};

const PROMPT: &str = "tidetable> ";
/// Prompt of continuation lines.
const MORE: &str = "      ...> ";

/// Reads and runs statements until the end of input.
pub(crate) fn prompt(runner: &StatementRunner<'_>) -> Result<(), CliError> {
    let config = Config::builder().build();
    let mut editor: Editor<Words<'_>, FileHistory> = Editor::with_config(config).map_err(|error| failed(&error))?;
    editor.set_helper(Some(Words::new(runner)));
    let history = history();
    if let Some(path) = &history {
        // There is no history before the first time.
        let _ = editor.load_history(path);
    }
    let mut options =
        OutputOptions { print_row_count: true, words: HintStyle::Prompt, ..runner.output_options.clone() };
    let mut stderr = std::io::stderr();
    let _ = writeln!(stderr, "tidetable {}: \\? for help", env!("CARGO_PKG_VERSION"));
    loop {
        let line = match statement(&mut editor) {
            Ok(Some(line)) => line,
            Ok(None) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(failed(&error)),
        };
        let _ = editor.add_history_entry(&line);
        if let Some(path) = &history {
            keep(&mut editor, path);
        }
        match word(&line) {
            Some(Word::Quit) => break,
            Some(asked) => tell(act(runner, &mut options, asked)),
            // A fault ends the statement, not the prompt.
            None => tell(catch(|| run(runner, &options, &line)).unwrap_or_else(|panicked| Err(panicked.into()))),
        }
    }
    Ok(())
}

/// Reads one or more statements over as many lines as needed, or a command. `None` at the end of input.
fn statement(editor: &mut Editor<Words<'_>, FileHistory>) -> Result<Option<String>, ReadlineError> {
    let mut text = String::new();
    loop {
        let line = match editor.readline(if text.is_empty() { PROMPT } else { MORE }) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => return Ok(None),
            Err(error) => return Err(error),
        };
        if text.is_empty() && line.trim().is_empty() {
            return Ok(None);
        }
        // A statement that is not complete is left by \q, as in psql; words such as quit may be part of it.
        let leaves = line.trim_start().starts_with('\\') && matches!(word(&line), Some(Word::Quit));
        if leaves || (text.is_empty() && word(&line).is_some()) {
            return Ok(Some(line));
        }
        text.push_str(&line);
        if is_complete(&text) {
            return Ok(Some(text));
        }
        text.push('\n');
    }
}

/// Carries out a command of the prompt, such as `\timing`, and says what it changed.
fn act(runner: &StatementRunner<'_>, options: &mut OutputOptions, asked: Word) -> Result<(), CliError> {
    let said = match asked {
        Word::Quit => return Ok(()),
        Word::Help => HELP.trim_end().to_owned(),
        Word::Tables(None) => return run(runner, &to_screen(options), "SHOW TABLES"),
        Word::Tables(Some(table)) => return run(runner, &to_screen(options), &describe(&table)),
        Word::Timing(state) => {
            options.timing = state.unwrap_or(!options.timing);
            format!("timing is {}", if options.timing { "on" } else { "off" })
        }
        Word::Expanded(state) => {
            let line = state.unwrap_or(options.output != Output::Line);
            (options.output, options.format_is_explicit) = (if line { Output::Line } else { Output::Table }, line);
            format!("mode is {}", mode(options.output))
        }
        Word::Mode(None) => format!("mode is {}", mode(options.output)),
        Word::Mode(Some(output)) => {
            (options.output, options.format_is_explicit) = (output, output != Output::Table);
            format!("mode is {}", mode(output))
        }
        Word::To(None) => {
            options.to = None;
            "rows go to the screen".to_owned()
        }
        Word::To(Some(to)) => {
            let destination = check(&to, options)?;
            let is_there = to.path().is_some_and(Path::exists);
            let replaced = if destination.is_file() && is_there { ", which the next rows replace" } else { "" };
            let said = format!("rows go into {to}{replaced}, until \\o");
            options.to = Some(to);
            said
        }
        Word::MaxRows(rows) => {
            options.max_rows = Some(rows);
            if rows == 0 { "all rows are shown".to_owned() } else { format!("at most {rows} rows are shown") }
        }
        Word::File(path) => {
            let script = std::fs::read_to_string(&path);
            let script = script.map_err(|source| CliError::File { path: path.display().to_string(), source })?;
            return run(runner, options, &script);
        }
        Word::Unknown(said) => said,
    };

    write_text(&said);
    Ok(())
}

/// The destination of rows; refuses now a file that could not be written later.
fn check(to: &Location, options: &OutputOptions) -> Result<Destination, CliError> {
    let destination = Destination::of(to, "\\o")?;
    if !options.format_is_explicit {
        format_from_extension(to, &destination, ROW_FILE_EXTENSIONS, output_format(options.output), ".mode")?;
    }
    Ok(destination)
}

/// The same options for output on the screen, wherever rows go.
fn to_screen(options: &OutputOptions) -> OutputOptions {
    OutputOptions { to: None, ..options.clone() }
}

fn mode(output: Output) -> String {
    clap::ValueEnum::to_possible_value(&output).map(|value| value.get_name().to_owned()).unwrap_or_default()
}

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

fn run(runner: &StatementRunner<'_>, options: &OutputOptions, script: &str) -> Result<(), CliError> {
    let found = statements(script).map_err(|error| CliError::Script { text: script.to_owned(), error })?;
    StatementRunner { output_options: options.clone(), ..runner.clone() }.run_all(script, &found)
}

/// Reports the error of a statement; the prompt goes on.
fn tell(done: Result<(), CliError>) {
    if let Err(error) = done.or_else(|error| if error.is_closed_pipe() { Ok(()) } else { Err(error) }) {
        write_text(&format!("error: {error}"));
        if let Some(suggestion) = error.suggestion() {
            write_text(&format!("  did you mean {suggestion}?"));
        }
    }
}

/// Path of the history file, in the state directory of the XDG base directories.
fn history() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
    Some(state.join("tidetable/history"))
}

/// Saves the history. Errors are ignored.
fn keep(editor: &mut Editor<Words<'_>, FileHistory>, path: &PathBuf) {
    let made = path.parent().map(std::fs::create_dir_all);
    if matches!(made, Some(Ok(()))) {
        let _ = editor.append_history(path);
    }
}

fn failed(error: &ReadlineError) -> CliError {
    CliError::Terminal(error.to_string())
}
