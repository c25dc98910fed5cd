//! Commands at the prompt that are not SQL, including those of psql, DuckDB and SQLite.

use std::ffi::OsStr;
use std::path::PathBuf;

use tidetable_source::Location;

use crate::args::Output;

/// A line at the prompt that is a command and no SQL, as psql, DuckDB and SQLite have them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word {
    Quit,
    Help,
    /// Lists tables, exports and runs, or the columns of a table.
    Tables(Option<String>),
    Timing(Option<bool>),
    /// Shows one line per value, or a table again.
    Expanded(Option<bool>),
    /// Sets the output format, or shows it.
    Mode(Option<Output>),
    /// Sets the output file; the screen if `None`.
    To(Option<Location>),
    MaxRows(u64),
    /// Runs the statements of a file.
    File(PathBuf),
    /// A command that is unknown or lacks a word, with what to write instead.
    Unknown(String),
}

pub(crate) const HELP: &str = "\
\\d, .tables        tables, exports and runs
\\d NAME            columns of one; so does DESCRIBE NAME
SUMMARIZE NAME     least, greatest and distinct values of each column
\\x, .mode MODE     a line for each value; or table, line, markdown, csv, json
\\o FILE, .output   rows go into FILE, in the form its ending says, each statement's in place of the last; \\o ends that.
                   A file that is there is replaced; of a link its target is; a pipe or a device is written to
\\rows N, .maxrows  rows of a table that are shown at most, 0 for all
\\timing            say how long statements take, or no longer
\\i FILE, .read     run the statements of FILE
\\q                 leave (or exit, quit, Ctrl-D)
A statement ends with a semicolon, on any line. Tab completes words. Ctrl-C leaves a line, or ends a query that runs.
";

/// Parses a command; `None` if the line is SQL.
pub(crate) fn word(line: &str) -> Option<Word> {
    let line = line.trim().trim_end_matches(';').trim_end();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let rest = (!rest.is_empty()).then_some(rest);

    match (word.to_ascii_lowercase().as_str(), rest) {
        ("quit" | "exit", None) => return Some(Word::Quit),
        ("help", None) => return Some(Word::Help),
        _ => {}
    }
    if !word.starts_with(['\\', '.']) {
        return None;
    }

    Some(match (word, rest) {
        ("\\q" | ".quit" | ".exit" | ".q", _) => Word::Quit,
        ("\\?" | "\\h" | ".help" | ".h", _) => Word::Help,
        ("\\d" | "\\d+" | "\\dt" | "\\dt+" | ".tables" | ".schema" | ".describe" | ".columns", of) => {
            Word::Tables(of.map(str::to_owned))
        }
        ("\\timing" | ".timer", state) => switch(word, state, Word::Timing),
        ("\\x", state) => switch(word, state, Word::Expanded),
        (".mode", None) => Word::Mode(None),
        (".mode", Some(mode)) => self::mode(mode).map_or_else(
            || unknown(&format!("there is no mode {mode}: write table, line, markdown, csv or json")),
            |mode| Word::Mode(Some(mode)),
        ),
        ("\\o" | ".output" | ".once", None) | (".output", Some("stdout" | "-")) => Word::To(None),
        ("\\o" | ".output" | ".once", Some(path)) => match Location::parse(unquoted(path)) {
            Ok(place) => Word::To(Some(place)),
            Err(error) => unknown(&error.to_string()),
        },
        ("\\rows" | ".maxrows" | "\\maxrows", Some(rows)) => match rows.parse() {
            Ok(rows) => Word::MaxRows(rows),
            Err(_) => unknown(&format!("{rows} is not a number of rows: write {word} 500, or 0 for all")),
        },
        ("\\rows" | ".maxrows" | "\\maxrows", None) => unknown(&format!("write {word} 500, or 0 for all")),
        ("\\i" | "\\ir" | ".read", Some(path)) => {
            match Location::path_of(OsStr::new(unquoted(path)), "a file of statements") {
                Ok(path) => Word::File(path),
                Err(error) => unknown(&error.to_string()),
            }
        }
        ("\\i" | "\\ir" | ".read", None) => unknown(&format!("write {word} FILE")),
        _ => unknown(&format!("there is no {word}: {}", instead(word))),
    })
}

fn unknown(said: &str) -> Word {
    Word::Unknown(said.to_owned())
}

fn switch(word: &str, state: Option<&str>, of: fn(Option<bool>) -> Word) -> Word {
    match state.map(str::to_ascii_lowercase).as_deref() {
        None => of(None),
        Some("on") => of(Some(true)),
        Some("off") => of(Some(false)),
        Some(_) => unknown(&format!("write {word} on, or off")),
    }
}

/// Parses an output format by its name here or in another program.
fn mode(name: &str) -> Option<Output> {
    Some(match name.to_ascii_lowercase().as_str() {
        "table" | "box" | "duckbox" | "column" | "aligned" => Output::Table,
        "line" | "expanded" => Output::Line,
        "markdown" => Output::Markdown,
        "csv" => Output::Csv,
        "json" | "jsonlines" | "ndjson" => Output::Json,
        _ => return None,
    })
}

/// Advice for a command of another program.
fn instead(word: &str) -> &'static str {
    match word {
        "\\l" | "\\c" | "\\connect" | ".open" | ".databases" | ".attach" => {
            "a prompt is for one store; start another with --root DIR"
        }
        "\\dn" | "\\dv" | "\\df" | "\\di" | "\\ds" | "\\du" => "\\d lists tables, exports and runs by schema",
        "\\copy" | ".import" | ".save" | ".backup" => {
            "files are tables by their names in quotes, select * from 'x.csv'; \\o FILE writes one"
        }
        "\\pset" | "\\a" | "\\t" | "\\f" | ".headers" | ".separator" | ".width" | ".nullvalue" => {
            ".mode sets the form of results: table, line, markdown, csv or json"
        }
        "\\e" | ".edit" | "\\g" | "\\p" | "\\r" | "\\w" => {
            "end a statement with a semicolon; the arrow keys bring it back"
        }
        "\\set" | "\\echo" | ".print" | ".echo" | "\\!" | ".shell" | ".system" => "leave with \\q to use the shell",
        _ => "\\? for help",
    }
}

fn unquoted(path: &str) -> &str {
    path.strip_prefix('\'').and_then(|path| path.strip_suffix('\'')).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_several_programs_are_known() {
        for (line, asked) in [
            ("\\q", Word::Quit),
            ("exit;", Word::Quit),
            ("QUIT", Word::Quit),
            (".help", Word::Help),
            ("\\d", Word::Tables(None)),
            (".tables", Word::Tables(None)),
            ("\\d SENSOR;", Word::Tables(Some("SENSOR".to_owned()))),
            (".timer on", Word::Timing(Some(true))),
            ("\\x", Word::Expanded(None)),
            (".mode markdown", Word::Mode(Some(Output::Markdown))),
            (".mode duckbox", Word::Mode(Some(Output::Table))),
            ("\\o 'my file.csv'", Word::To(Some(Location::Path("my file.csv".into())))),
            ("\\o", Word::To(None)),
            (".maxrows 5", Word::MaxRows(5)),
            (".read x.sql", Word::File("x.sql".into())),
        ] {
            assert_eq!(word(line), Some(asked), "{line}");
        }
        for sql in
            ["select 1;", "help me", "exit from x", "describe SENSOR;", "summarize SENSOR;", "-- \\d", "show tables;"]
        {
            assert_eq!(word(sql), None, "{sql}");
        }
        for (line, part) in [
            ("\\copy x", "quotes"),
            ("\\l", "--root"),
            (".mode html", "markdown"),
            ("\\nothing", "\\? for help"),
            (".maxrows", "500"),
            ("\\o s3:/b/x.csv", "s3://b/x.csv"),
            ("\\i s3://b/x.sql", "write a path"),
        ] {
            let Some(Word::Unknown(said)) = word(line) else { panic!("{line}") };
            assert!(said.contains(part), "{said}");
        }
    }
}
