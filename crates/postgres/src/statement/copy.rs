//! `COPY (query) TO STDOUT`, with which psql's `\copy` writes files. Each option is followed or refused.

use std::iter::Peekable;
use std::slice::Iter;

use tidetable_sql::{PlacedWord, Word};

use crate::error::{Refusal, code};
use crate::statement::settings::is_utf8;

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

/// The columns of CSV whose values are always in quotes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum ForcedQuotes {
    /// No column: values are quoted where they would be read otherwise.
    #[default]
    None,
    /// These.
    Columns(Vec<String>),
    /// All.
    All,
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
    /// Around values of CSV; `"` by default.
    pub(crate) quote: Option<u8>,
    /// Before quotes and itself inside of quotes; the quote by default.
    pub(crate) escape: Option<u8>,
    pub(crate) forced_quotes: ForcedQuotes,
}

/// The query and the options of a `COPY`.
///
/// # Errors
/// If it reads a file or input, writes a file of the server, or has an option that is unknown or cannot be followed.
pub(crate) fn copy(statement: &str, found: &[PlacedWord]) -> Result<(String, CopyOptions), Refusal> {
    let Source { query, rest } = source(statement, found)?;
    let words: Vec<Word> = rest.iter().map(|placed| placed.word.clone()).collect();
    let mut words = words.iter();

    match words.next() {
        Some(word) if word.is("TO") => {}
        Some(word) if word.is("FROM") => {
            return Err(Refusal::new(
                code::READ_ONLY,
                "COPY FROM is refused: the store is served read-only, and `tidetable run` loads files",
            ));
        }
        _ => return Err(Refusal::new(code::SYNTAX, "COPY is served as COPY (query) TO STDOUT")),
    }
    if !words.next().is_some_and(|word| word.is("STDOUT")) {
        return Err(unsupported(
            "COPY to a file of the server is refused: write COPY (query) TO STDOUT, or psql's \\copy (query) TO 'file'",
        ));
    }
    let options = Reader { words: words.as_slice().iter().peekable(), options: CopyOptions::default() }.read()?;
    check(&options)?;
    Ok((query, options))
}

/// What a COPY copies.
struct Source<'a> {
    query: String,
    /// The parts of the statement after the query.
    rest: &'a [PlacedWord],
}

/// The query of a COPY, and the parts after it.
fn source<'a>(statement: &str, found: &'a [PlacedWord]) -> Result<Source<'a>, Refusal> {
    let between = |start: usize, end: usize| {
        let start = found.get(start).map_or(statement.len(), |placed| placed.start);
        let end = found.get(end).map_or(statement.len(), |placed| placed.start);
        statement.get(start..end).unwrap_or_default().trim()
    };
    let wrong = || Refusal::new(code::SYNTAX, "COPY needs a table or a query in parentheses: COPY (query) TO STDOUT");
    let is_sign = |place: usize, sign: &str| found.get(place).is_some_and(|placed| placed.word.is_sign(sign));

    if is_sign(1, "(") {
        let end = closing(found, 1).ok_or_else(wrong)?;
        return Ok(Source { query: between(2, end).to_owned(), rest: found.get(end + 1..).unwrap_or_default() });
    }
    // A table, with columns.
    let end = found.iter().position(|placed| placed.word.is("TO") || placed.word.is("FROM")).ok_or_else(wrong)?;
    let query = match (2..end).find(|place| is_sign(*place, "(")) {
        Some(start) => {
            let close = closing(found, start).filter(|close| *close < end).ok_or_else(wrong)?;
            format!("SELECT {} FROM {}", between(start + 1, close), between(1, start))
        }
        None => format!("SELECT * FROM {}", between(1, end)),
    };
    Ok(Source { query, rest: found.get(end..).unwrap_or_default() })
}

/// The place of the parenthesis that closes the one at `start`.
fn closing(found: &[PlacedWord], start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (place, placed) in found.iter().enumerate().skip(start) {
        if placed.word.is_sign("(") {
            depth += 1;
        } else if placed.word.is_sign(")") {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return Some(place);
            }
        }
    }
    None
}

/// Reads options in parentheses, or in the older form without them.
struct Reader<'a> {
    words: Peekable<Iter<'a, Word>>,
    options: CopyOptions,
}

impl Reader<'_> {
    fn read(mut self) -> Result<CopyOptions, Refusal> {
        self.words.next_if(|word| word.is("WITH"));
        let is_list = self.words.next_if(|word| word.is_sign("(")).is_some();
        let mut seen: Vec<String> = Vec::new();

        while let Some(word) = self.words.next() {
            if is_list && word.is_sign(")") {
                return match self.words.next() {
                    None => Ok(self.options),
                    Some(_) => Err(Refusal::new(code::SYNTAX, "nothing may follow the options of COPY")),
                };
            }
            let name = word.text().unwrap_or_default();
            let name = if !is_list && name == "force" { self.forced()? } else { name };
            if seen.contains(&name) {
                return Err(Refusal::new(code::SYNTAX, format!("COPY has the option {name} twice")));
            }
            self.option(&name, is_list)?;
            seen.push(name);
            if is_list && self.words.next_if(|word| word.is_sign(",")).is_none() && !self.is_closed() {
                return Err(Refusal::new(code::SYNTAX, "options of COPY are separated by commas"));
            }
        }
        match is_list {
            true => Err(Refusal::new(code::SYNTAX, "the options of COPY have no closing parenthesis")),
            false => Ok(self.options),
        }
    }

    fn is_closed(&mut self) -> bool {
        self.words.peek().is_some_and(|word| word.is_sign(")"))
    }

    /// The option that `FORCE ..` of the older form means.
    fn forced(&mut self) -> Result<String, Refusal> {
        match self.words.next() {
            Some(word) if word.is("QUOTE") => Ok("force_quote".to_owned()),
            _ => Err(unsupported("of COPY's FORCE only FORCE QUOTE is served: the others are of COPY FROM")),
        }
    }

    fn option(&mut self, name: &str, is_list: bool) -> Result<(), Refusal> {
        match name {
            // The older form names the format alone.
            "csv" if !is_list => self.options.format = CopyFormat::Csv,
            "binary" if !is_list => self.options.format = CopyFormat::Binary,
            "format" => {
                self.options.format = match self.words.next().and_then(Word::text).as_deref() {
                    Some("csv") => CopyFormat::Csv,
                    Some("text") => CopyFormat::Text,
                    Some("binary") => CopyFormat::Binary,
                    _ => return Err(wrong("FORMAT", "text, csv or binary")),
                };
            }
            "header" => self.options.has_header = self.header()?,
            "delimiter" | "delimiters" => self.options.delimiter = Some(self.byte("DELIMITER")?),
            "quote" => self.options.quote = Some(self.byte("QUOTE")?),
            "escape" => self.options.escape = Some(self.byte("ESCAPE")?),
            "null" => self.options.null = Some(self.text("NULL")?),
            "encoding" => {
                if !is_utf8(&self.text("ENCODING")?) {
                    return Err(unsupported("COPY writes UTF8, the only encoding here"));
                }
            }
            "force_quote" => self.options.forced_quotes = self.columns()?,
            _ => {
                return Err(unsupported(&format!(
                    "COPY TO has no option {name} here; it has FORMAT, HEADER, DELIMITER, NULL, QUOTE, ESCAPE, FORCE_QUOTE and \
                     ENCODING"
                )));
            }
        }
        Ok(())
    }

    /// Whether there is a header: without a value there is.
    fn header(&mut self) -> Result<bool, Refusal> {
        let Some(value) = self.words.next_if(|word| is_value(word)) else { return Ok(true) };
        match value.text().unwrap_or_default().to_ascii_lowercase().as_str() {
            "true" | "on" | "1" => Ok(true),
            "false" | "off" | "0" => Ok(false),
            "match" => Err(unsupported("HEADER MATCH is of COPY FROM")),
            _ => Err(wrong("HEADER", "true or false")),
        }
    }

    /// A text after the name of an option, with `AS` in the older form.
    fn text(&mut self, option: &str) -> Result<String, Refusal> {
        self.words.next_if(|word| word.is("AS"));
        match self.words.next() {
            Some(Word::Text(text)) => Ok(text.clone()),
            Some(Word::Plain(text) | Word::Quoted(text)) => Ok(text.clone()),
            _ => Err(wrong(option, "a text in quotes")),
        }
    }

    fn byte(&mut self, option: &str) -> Result<u8, Refusal> {
        match self.text(option)?.as_bytes() {
            [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0) => Ok(*byte),
            _ => Err(wrong(option, "one character of ASCII, and no end of a line")),
        }
    }

    /// Names of columns, in parentheses or without, or `*`.
    fn columns(&mut self) -> Result<ForcedQuotes, Refusal> {
        if self.words.next_if(|word| word.is_sign("*")).is_some() {
            return Ok(ForcedQuotes::All);
        }
        let is_list = self.words.next_if(|word| word.is_sign("(")).is_some();
        let mut columns = Vec::new();
        loop {
            match self.words.next() {
                // Names keep their case, as everywhere.
                Some(Word::Plain(name) | Word::Quoted(name)) => columns.push(name.clone()),
                _ => return Err(wrong("FORCE_QUOTE", "names of columns, or *")),
            }
            if self.words.next_if(|word| word.is_sign(",")).is_none() {
                break;
            }
        }
        if is_list && self.words.next_if(|word| word.is_sign(")")).is_none() {
            return Err(wrong("FORCE_QUOTE", "names of columns in parentheses"));
        }
        Ok(ForcedQuotes::Columns(columns))
    }
}

/// Whether a word is a value of a boolean option, and not the next option of the older form.
fn is_value(word: &Word) -> bool {
    const VALUES: [&str; 7] = ["true", "false", "on", "off", "0", "1", "match"];
    matches!(word, Word::Text(_)) || VALUES.iter().any(|value| word.is(value))
}

/// Refuses options that do not go together, so that files could not be read back.
fn check(options: &CopyOptions) -> Result<(), Refusal> {
    let is_csv = options.format == CopyFormat::Csv;
    let of_csv = [
        ("QUOTE", options.quote.is_some()),
        ("ESCAPE", options.escape.is_some()),
        ("FORCE_QUOTE", options.forced_quotes != ForcedQuotes::None),
    ];
    if let Some((name, _)) = of_csv.iter().find(|(_, is_given)| *is_given && !is_csv) {
        return Err(unsupported(&format!("{name} of COPY needs FORMAT csv")));
    }
    let of_text =
        [("DELIMITER", options.delimiter.is_some()), ("NULL", options.null.is_some()), ("HEADER", options.has_header)];
    if let Some((name, _)) = of_text.iter().find(|(_, is_given)| *is_given && options.format == CopyFormat::Binary) {
        return Err(Refusal::new(code::SYNTAX, format!("{name} of COPY does not go with FORMAT binary")));
    }

    let quote = options.quote.unwrap_or(b'"');
    let invalid = |text: &str| Err(Refusal::new(code::PARAMETER, text));
    if let Some(delimiter) = options.delimiter {
        if is_csv && delimiter == quote {
            return invalid("DELIMITER and QUOTE of COPY must differ");
        }
        // In text these would be read as parts of escapes.
        if !is_csv
            && (delimiter.is_ascii_lowercase() || delimiter.is_ascii_digit() || matches!(delimiter, b'.' | b'\\'))
        {
            return invalid("DELIMITER of COPY in FORMAT text is no digit, no small letter, no point and no backslash");
        }
    }
    let Some(null) = &options.null else { return Ok(()) };
    let delimiter = options.delimiter.unwrap_or(if is_csv { b',' } else { b'\t' });
    let is_special = |byte: u8| matches!(byte, b'\n' | b'\r') || byte == delimiter || (is_csv && byte == quote);
    match null.bytes().any(is_special) {
        true => invalid("NULL of COPY holds neither the DELIMITER, nor the QUOTE, nor ends of lines"),
        false => Ok(()),
    }
}

fn wrong(option: &str, wanted: &str) -> Refusal {
    Refusal::new(code::SYNTAX, format!("{option} of COPY takes {wanted}"))
}

fn unsupported(why: &str) -> Refusal {
    Refusal::new(code::UNSUPPORTED, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::split::words_of;

    fn read(statement: &str) -> Result<(String, CopyOptions), Refusal> {
        copy(statement, &words_of(statement)?)
    }

    #[test]
    fn forms_of_copy_are_read() {
        let (query, options) = read("COPY  ( SELECT (1), ')' FROM t ) TO STDOUT with csv header").unwrap();
        assert_eq!(query, "SELECT (1), ')' FROM t");
        assert_eq!((options.format, options.has_header), (CopyFormat::Csv, true));
        let (query, options) =
            read("copy \"T\" (a, b) to stdout (format text, delimiter '|', null '-', header false)").unwrap();
        assert_eq!(query, "SELECT a, b FROM \"T\"");
        assert_eq!((options.delimiter, options.null.as_deref(), options.has_header), (Some(b'|'), Some("-"), false));
        assert_eq!(read("COPY records.T TO STDOUT").unwrap().0, "SELECT * FROM records.T");
        assert_eq!(read("COPY \"a (b\" TO STDOUT").unwrap().0, "SELECT * FROM \"a (b\"");

        let long = format!("SELECT {} FROM t", vec!["a"; 2_000].join(", "));
        assert_eq!(read(&format!("COPY ({long}) TO STDOUT (FORMAT csv)")).unwrap().0, long);
    }

    #[test]
    fn options_of_csv_are_read() {
        let (_, options) = read(
            "COPY t TO STDOUT (FORMAT csv, QUOTE '''', ESCAPE E'\\\\', FORCE_QUOTE (\"A\", b), ENCODING 'UTF-8', HEADER 'on')",
        )
        .unwrap();
        assert_eq!((options.quote, options.escape, options.has_header), (Some(b'\''), Some(b'\\'), true));
        assert_eq!(options.forced_quotes, ForcedQuotes::Columns(vec!["A".to_owned(), "b".to_owned()]));
        let (_, options) = read("COPY t TO STDOUT WITH CSV HEADER QUOTE AS '\"' FORCE QUOTE a, b NULL AS 'x'").unwrap();
        assert_eq!((options.quote, options.null.as_deref()), (Some(b'"'), Some("x")));
        assert_eq!(options.forced_quotes, ForcedQuotes::Columns(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(read("COPY t TO STDOUT (FORMAT csv, FORCE_QUOTE *)").unwrap().1.forced_quotes, ForcedQuotes::All);
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        for (wrong, code) in [
            ("COPY t FROM STDIN", "25006"),
            ("COPY (SELECT 1) TO '/tmp/x'", "0A000"),
            ("COPY (SELECT 1 TO STDOUT", "42601"),
            ("COPY t TO STDOUT (FORMAT xml)", "42601"),
            ("COPY t TO STDOUT (FREEZE)", "0A000"),
            ("COPY t TO STDOUT (ENCODING 'LATIN1')", "0A000"),
            ("COPY t TO STDOUT (QUOTE '\"')", "0A000"),
            ("COPY t TO STDOUT (FORCE_QUOTE *)", "0A000"),
            ("COPY t TO STDOUT WITH CSV FORCE NOT NULL a", "0A000"),
            ("COPY t TO STDOUT (HEADER match)", "0A000"),
            ("COPY t TO STDOUT (HEADER 'maybe')", "42601"),
            ("COPY t TO STDOUT (FORMAT csv, QUOTE 'ab')", "42601"),
            ("COPY t TO STDOUT (FORMAT csv, DELIMITER ';', DELIMITER ',')", "42601"),
            ("COPY t TO STDOUT (FORMAT csv DELIMITER ';')", "42601"),
            ("COPY t TO STDOUT (FORMAT csv, DELIMITER '\"')", "22023"),
            ("COPY t TO STDOUT (FORMAT csv, NULL ',')", "22023"),
            ("COPY t TO STDOUT (DELIMITER 'a')", "22023"),
            ("COPY t TO STDOUT (FORMAT binary, HEADER)", "42601"),
            ("COPY t TO STDOUT (FORMAT csv", "42601"),
        ] {
            assert_eq!(read(wrong).err().map(|refusal| refusal.code), Some(code), "{wrong}");
        }
    }
}
