//! Statements that set something: `SET`, `RESET`, `SELECT set_config(..)`; and the options of a first message.

use tidetable_sql::Word;

use crate::error::{Refusal, code};
use crate::statement::settings::known::Known;
use crate::statement::split::words_of;

/// What a statement sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Setting {
    /// A value; several are joined by commas. `None` is that of the start.
    Value { name: String, value: Option<String>, is_local: bool },
    /// All values of the start.
    ResetAll,
    /// What is accepted and does nothing, such as `SET TRANSACTION`.
    Ignored,
}

/// Reads what follows `SET`.
///
/// # Errors
/// If there is no value.
pub(in crate::statement) fn setting(words: &[Word]) -> Result<Setting, Refusal> {
    let is_session = words.first().is_some_and(|word| word.is("SESSION"));
    let is_local = words.first().is_some_and(|word| word.is("LOCAL"));
    let words = if is_session || is_local { words.get(1..).unwrap_or_default() } else { words };
    let wrong = || Refusal::new(code::SYNTAX, "SET needs a name and a value: SET name TO value");

    let first = words.first().ok_or_else(wrong)?;
    let ignored = ["TRANSACTION", "ROLE", "CONSTRAINTS"];
    let of_session = is_session && (first.is("CHARACTERISTICS") || first.is("AUTHORIZATION"));
    if of_session || ignored.iter().any(|word| first.is(word)) {
        return Ok(Setting::Ignored);
    }

    let (name, values) = match (first, words.get(1)) {
        (first, Some(second)) if first.is("TIME") && second.is("ZONE") => ("timezone".to_owned(), words.get(2..)),
        (first, _) if first.is("NAMES") => ("client_encoding".to_owned(), words.get(1..)),
        (first, Some(second)) if second.is("TO") || second.is_sign("=") => {
            (first.text().ok_or_else(wrong)?.to_lowercase(), words.get(2..))
        }
        _ => return Err(wrong()),
    };
    let values = values_of(values.unwrap_or_default());
    if values.is_empty() && name != "client_encoding" {
        return Err(wrong());
    }
    let is_default = matches!(values.as_slice(), [value] if value == "default");
    let value = (!is_default).then(|| values.join(", "));
    Ok(Setting::Value { name, value, is_local })
}

/// The values after a name. A sign belongs to its number.
fn values_of(words: &[Word]) -> Vec<String> {
    let mut values = Vec::new();
    let mut sign = String::new();
    for word in words {
        match word {
            Word::Sign(text) if text == "-" || text == "+" => sign.push_str(text),
            Word::Sign(_) => sign.clear(),
            word => values.extend(word.text().map(|text| format!("{}{text}", std::mem::take(&mut sign)))),
        }
    }
    values
}

/// Reads what follows `RESET`.
pub(in crate::statement) fn reset(words: &[Word]) -> Setting {
    let name = words.iter().filter_map(Word::text).collect::<Vec<_>>().join(" ").to_lowercase();
    let name = match name.as_str() {
        "all" => return Setting::ResetAll,
        "session authorization" | "role" => return Setting::Ignored,
        "time zone" => "timezone".to_owned(),
        _ => name,
    };
    Setting::Value { name, value: None, is_local: false }
}

/// The name of the setting that follows `SHOW`; `None` if that is none.
pub(in crate::statement) fn shown(words: &[Word]) -> Option<String> {
    let text = words.iter().filter_map(Word::text).collect::<Vec<_>>().join(" ").to_lowercase();
    let name = match text.as_str() {
        "transaction isolation level" => "transaction_isolation",
        "time zone" => "timezone",
        "session authorization" => "session_authorization",
        text => text,
    };
    // Those of clients have a point; `COLUMNS FROM a.b` is of several words.
    let is_own = matches!(words, [Word::Plain(name)] if name.contains('.'));
    (name == "all" || is_own || Known::of(name).is_some()).then(|| name.to_owned())
}

/// What `SELECT set_config('name', 'value', is_local)` sets; `None` for another query.
///
/// # Errors
/// If a literal or a comment of the query has no end.
pub(in crate::statement) fn configured(statement: &str) -> Result<Option<Setting>, Refusal> {
    if !statement.to_ascii_lowercase().contains("set_config") {
        return Ok(None);
    }
    let found = words_of(statement)?;
    let words: Vec<&Word> = found.iter().map(|placed| &placed.word).collect();
    let [select, function, open, Word::Text(name), comma, Word::Text(value), other, is_local, close] = words.as_slice()
    else {
        return Ok(None);
    };
    let is_call = select.is("SELECT") && (function.is("set_config") || function.is("pg_catalog.set_config"));
    let has_signs = open.is_sign("(") && comma.is_sign(",") && other.is_sign(",") && close.is_sign(")");
    if !is_call || !has_signs || !(is_local.is("true") || is_local.is("false")) {
        return Ok(None);
    }
    let (name, is_local) = (name.to_lowercase(), is_local.is("true"));
    Ok(Some(Setting::Value { name, value: Some(value.clone()), is_local }))
}

/// Names and values of the options of a first message, as libpq's `options` and PGOPTIONS have them: `-c name=value`, `--name=value`.
/// A backslash takes the character after it as it is.
///
/// # Errors
/// If another option is there.
pub(super) fn command_line(text: &str) -> Result<Vec<(String, String)>, Refusal> {
    let mut found = Vec::new();
    let mut words = arguments(text).into_iter();
    while let Some(word) = words.next() {
        let assigned = match (word.strip_prefix("--"), word.strip_prefix("-c")) {
            (Some(assigned), _) => assigned.to_owned(),
            (None, Some("")) => words.next().unwrap_or_default(),
            (None, Some(assigned)) => assigned.to_owned(),
            (None, None) => String::new(),
        };
        let Some((name, value)) = assigned.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            let text =
                format!("the option {word:?} of the connection is not known: settings are given as -c name=value");
            return Err(Refusal::fatal(code::SYNTAX, text));
        };
        found.push((name.trim().to_lowercase().replace('-', "_"), value.to_owned()));
    }
    Ok(found)
}

/// Splits a command line at blanks.
fn arguments(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut word, mut is_open) = (String::new(), false);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                word.extend(letters.next());
                is_open = true;
            }
            letter if letter.is_ascii_whitespace() => {
                if std::mem::take(&mut is_open) {
                    found.push(std::mem::take(&mut word));
                }
            }
            letter => {
                word.push(letter);
                is_open = true;
            }
        }
    }
    if is_open {
        found.push(word);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Setting {
        let words: Vec<Word> = words_of(text).unwrap().into_iter().map(|placed| placed.word).collect();
        setting(&words).unwrap()
    }

    fn value(name: &str, value: &str) -> Setting {
        Setting::Value { name: name.to_owned(), value: Some(value.to_owned()), is_local: false }
    }

    #[test]
    fn forms_of_set_are_read() {
        assert_eq!(read("extra_float_digits = 3"), value("extra_float_digits", "3"));
        assert_eq!(read("statement_timeout = -1"), value("statement_timeout", "-1"));
        assert_eq!(read("TIME ZONE -7"), value("timezone", "-7"));
        assert_eq!(read("SESSION TIME ZONE 'UTC'"), value("timezone", "UTC"));
        let local =
            Setting::Value { name: "search_path".to_owned(), value: Some("cells, A".to_owned()), is_local: true };
        assert_eq!(read("LOCAL Search_Path TO cells, \"A\""), local);
        assert_eq!(read("NAMES 'utf8'"), value("client_encoding", "utf8"));
        let reset = Setting::Value { name: "statement_timeout".to_owned(), value: None, is_local: false };
        assert_eq!(read("statement_timeout TO DEFAULT"), reset);
        assert_eq!(read("SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"), Setting::Ignored);
        assert_eq!(read("TRANSACTION ISOLATION LEVEL SERIALIZABLE"), Setting::Ignored);
    }

    #[test]
    fn set_config_is_a_statement_that_sets() {
        let of = |text: &str| configured(text).unwrap();
        assert_eq!(of("SELECT set_config('Search_Path', 'cells', false)"), Some(value("search_path", "cells")));
        let local = of("select pg_catalog.set_config('search_path', '', true)");
        assert!(matches!(local, Some(Setting::Value { is_local: true, .. })), "{local:?}");
        assert_eq!(of("SELECT set_config('a', 'b', false) FROM t"), None);
        assert_eq!(of("SELECT 1"), None);
    }

    #[test]
    fn options_of_a_connection_are_read() {
        let found = command_line("-c search_path=cells -cstatement_timeout=5s --application-name=a\\ b").unwrap();
        let pairs = [("search_path", "cells"), ("statement_timeout", "5s"), ("application_name", "a b")];
        assert_eq!(found, pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
        for wrong in ["-d 3", "-c", "-c x", "search_path=cells"] {
            let refusal = command_line(wrong).unwrap_err();
            assert!(refusal.is_fatal && refusal.code == "42601", "{wrong}");
        }
    }
}
