//! `COPY (query) TO STDOUT`, with which psql's `\copy` writes files.

use crate::error::{Refusal, code};
use crate::statement::lexer::Token;

/// The form of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CopyFormat {
    /// Values between tabs, with escapes.
    #[default]
    Text,
    /// CSV of RFC 4180.
    Csv,
    /// Values as in binary results.
    Binary,
}

/// How values are written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CopyOptions {
    pub(crate) format: CopyFormat,
    pub(crate) has_header: bool,
    /// Between values; a tab in text and a comma in CSV by default.
    pub(crate) delimiter: Option<u8>,
    /// What stands for null; `\N` in text and nothing in CSV by default.
    pub(crate) null: Option<String>,
}

/// The query and the options of a `COPY`.
///
/// # Errors
/// If it reads a file or input, writes a file of the server, or has an unknown option.
pub(crate) fn copy(statement: &str, found: &[(Token, usize)]) -> Result<(String, CopyOptions), Refusal> {
    let unsupported = |why: &str| Refusal::new(code::UNSUPPORTED, why);
    let Source { query, rest } = source(statement, found)?;
    let mut rest = rest.iter().map(|(token, _)| token);

    match rest.next() {
        Some(word) if word.is("TO") => {}
        Some(word) if word.is("FROM") => {
            return Err(unsupported(
                "COPY FROM is refused: the store is served read-only, and `tidetable run` loads files",
            ));
        }
        _ => return Err(Refusal::new(code::SYNTAX, "COPY is served as COPY (query) TO STDOUT")),
    }
    if !rest.next().is_some_and(|word| word.is("STDOUT")) {
        return Err(unsupported(
            "COPY to a file of the server is refused: write COPY (query) TO STDOUT, or psql's \\copy (query) TO 'file'",
        ));
    }
    Ok((query, options(&rest.collect::<Vec<_>>())?))
}

/// What a COPY copies.
struct Source<'a> {
    query: String,
    /// The parts of the statement after the query.
    rest: &'a [(Token, usize)],
}

/// The query of a COPY, and the parts after it.
fn source<'a>(statement: &str, found: &'a [(Token, usize)]) -> Result<Source<'a>, Refusal> {
    let wrong = || Refusal::new(code::SYNTAX, "COPY needs a table or a query in parentheses: COPY (query) TO STDOUT");
    let Some((Token::Sign('('), start)) = found.get(1) else {
        // A table, with columns.
        let end = found.iter().position(|(word, _)| word.is("TO") || word.is("FROM")).ok_or_else(wrong)?;
        let from = found.first().map_or(0, |(_, end)| *end);
        let to = found.get(end - 1).map_or(from, |(_, end)| *end);
        let named = statement.get(from..to).unwrap_or_default().trim();
        let query = match named.split_once('(') {
            Some((table, columns)) => format!("SELECT {} FROM {table}", columns.trim_end_matches(')')),
            None => format!("SELECT * FROM {named}"),
        };
        return Ok(Source { query, rest: found.get(end..).unwrap_or_default() });
    };

    let mut depth = 0_usize;
    for (place, (token, end)) in found.iter().enumerate().skip(1) {
        match token {
            Token::Sign('(') => depth += 1,
            Token::Sign(')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            let query = statement.get(*start..*end - 1).unwrap_or_default().trim().to_owned();
            return Ok(Source { query, rest: found.get(place + 1..).unwrap_or_default() });
        }
    }
    Err(wrong())
}

/// Options in parentheses, or in the older form without them.
fn options(words: &[&Token]) -> Result<CopyOptions, Refusal> {
    let mut options = CopyOptions::default();
    let is_word = |word: &&&Token| !matches!(word, Token::Sign('(' | ')' | ',')) && !word.is("WITH") && !word.is("AS");
    let mut words = words.iter().filter(is_word).peekable();

    while let Some(word) = words.next() {
        let name = word.text().unwrap_or_default();
        match name.as_str() {
            // The older form names the format alone.
            "csv" => options.format = CopyFormat::Csv,
            "binary" => options.format = CopyFormat::Binary,
            "format" => {
                options.format = match words.next().and_then(|word| word.text()).as_deref() {
                    Some("csv") => CopyFormat::Csv,
                    Some("text") => CopyFormat::Text,
                    Some("binary") => CopyFormat::Binary,
                    _ => return Err(wrong("FORMAT", "text, csv or binary")),
                };
            }
            "header" => {
                let value = words.next_if(|word| BOOLEANS.iter().any(|known| word.is(known)) || is_text(word));
                let value = value.and_then(|word| word.text());
                options.has_header = !matches!(value.as_deref(), Some("false" | "off" | "0"));
            }
            "delimiter" => {
                let value = words.next().and_then(|word| word.text()).unwrap_or_default();
                let [byte] = value.as_bytes() else { return Err(wrong("DELIMITER", "one character of ASCII")) };
                options.delimiter = Some(*byte);
            }
            "null" => options.null = Some(words.next().and_then(|word| word.text()).unwrap_or_default()),
            // The defaults are the only ones.
            "quote" | "escape" | "encoding" => drop(words.next()),
            _ => {
                return Err(Refusal::new(
                    code::UNSUPPORTED,
                    format!("COPY has no option {name} here; it has FORMAT, HEADER, DELIMITER and NULL"),
                ));
            }
        }
    }
    Ok(options)
}

const BOOLEANS: [&str; 6] = ["true", "false", "on", "off", "0", "1"];

fn is_text(word: &Token) -> bool {
    matches!(word, Token::Text(_))
}

fn wrong(option: &str, wanted: &str) -> Refusal {
    Refusal::new(code::SYNTAX, format!("{option} of COPY takes {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::lexer::tokens;

    fn read(statement: &str) -> Result<(String, CopyOptions), Refusal> {
        copy(statement, &tokens(statement, 400))
    }

    #[test]
    fn forms_of_copy_are_read() {
        let (query, options) = read("COPY  ( SELECT (1), ')' FROM t ) TO STDOUT with csv header").unwrap();
        assert_eq!(query, "SELECT (1), ')' FROM t");
        assert_eq!((options.format, options.has_header), (CopyFormat::Csv, true));
        let (query, options) =
            read("copy \"T\" (a, b) to stdout (format text, delimiter '|', null '-', header false)").unwrap();
        assert_eq!(query, "SELECT a, b FROM \"T\" ");
        assert_eq!((options.delimiter, options.null.as_deref(), options.has_header), (Some(b'|'), Some("-"), false));
        assert_eq!(read("COPY records.T TO STDOUT").unwrap().0, "SELECT * FROM records.T");
        for (wrong, code) in [
            ("COPY t FROM STDIN", "0A000"),
            ("COPY (SELECT 1) TO '/tmp/x'", "0A000"),
            ("COPY (SELECT 1 TO STDOUT", "42601"),
            ("COPY t TO STDOUT (FORMAT xml)", "42601"),
            ("COPY t TO STDOUT (FREEZE)", "0A000"),
        ] {
            assert_eq!(read(wrong).unwrap_err().code, code, "{wrong}");
        }
    }
}
