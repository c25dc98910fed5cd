//! Settings of a session, which drivers set and ask for.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::{Refusal, code};
use crate::statement::lexer::Token;

/// The version of PostgreSQL whose catalogs are served.
pub(crate) const VERSION: &str = "15.0";
const VERSION_NUMBER: &str = "150000";

/// Settings that drivers ask for, with what they are at the start, and whether clients are told of them unasked.
const KNOWN: [(&str, &str, bool); 28] = [
    ("application_name", "", true),
    ("client_encoding", "UTF8", true),
    ("datestyle", "ISO, MDY", true),
    ("default_transaction_read_only", "on", true),
    ("in_hot_standby", "off", true),
    ("integer_datetimes", "on", true),
    ("intervalstyle", "postgres", true),
    ("is_superuser", "off", true),
    ("server_encoding", "UTF8", true),
    ("server_version", VERSION, true),
    ("session_authorization", "", true),
    ("standard_conforming_strings", "on", true),
    ("timezone", "UTC", true),
    ("bytea_output", "hex", false),
    ("client_min_messages", "notice", false),
    ("default_transaction_isolation", "read committed", false),
    ("extra_float_digits", "1", false),
    ("idle_in_transaction_session_timeout", "0", false),
    ("lc_collate", "C", false),
    ("lc_ctype", "C", false),
    ("lock_timeout", "0", false),
    ("max_identifier_length", "63", false),
    ("max_index_keys", "32", false),
    ("search_path", "records", false),
    ("server_version_num", VERSION_NUMBER, false),
    ("statement_timeout", "0", false),
    ("transaction_isolation", "read committed", false),
    ("transaction_read_only", "on", false),
];

/// Names as clients are told them, where they are not in lower case.
const SHOWN_NAMES: [(&str, &str); 3] =
    [("datestyle", "DateStyle"), ("intervalstyle", "IntervalStyle"), ("timezone", "TimeZone")];

/// Settings of a session at most; drivers set a handful.
const MOST: usize = 200;

/// What a statement sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Setting {
    /// A value; several are joined by commas.
    Value { name: String, value: String },
    /// The value of the start.
    Reset(String),
    /// All values of the start.
    ResetAll,
    /// What is accepted and does nothing, such as `SET TRANSACTION`.
    Ignored,
}

/// Reads what follows `SET`.
///
/// # Errors
/// If there is no value.
pub(super) fn setting(words: &[Token]) -> Result<Setting, Refusal> {
    let is_scope = |word: &&Token| word.is("SESSION") || word.is("LOCAL");
    let is_session = words.first().is_some_and(|word| word.is("SESSION"));
    let words = if words.first().filter(is_scope).is_some() { words.get(1..).unwrap_or_default() } else { words };
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
        (first, Some(second)) if second.is("TO") || *second == Token::Sign('=') => {
            (first.text().ok_or_else(wrong)?.to_lowercase(), words.get(2..))
        }
        _ => return Err(wrong()),
    };
    let values: Vec<String> = values.unwrap_or_default().iter().filter_map(Token::text).collect();
    if values.is_empty() && name != "client_encoding" {
        return Err(wrong());
    }
    if values.len() == 1 && values.first().is_some_and(|value| value == "default") {
        return Ok(Setting::Reset(name));
    }
    Ok(Setting::Value { name, value: values.join(", ") })
}

/// The name of the setting that follows `SHOW`; `None` if that is none.
pub(super) fn shown(words: &[Token]) -> Option<String> {
    let text = words.iter().filter_map(Token::text).collect::<Vec<_>>().join(" ").to_lowercase();
    let name = match text.as_str() {
        "transaction isolation level" => "transaction_isolation",
        "time zone" => "timezone",
        "session authorization" => "session_authorization",
        "all" => "all",
        text => text,
    };
    let is_known = name == "all" || name.contains('.') || KNOWN.iter().any(|(known, ..)| *known == name);
    is_known.then(|| name.to_owned())
}

/// What a client is told of a setting that it applies.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Name and value of a setting that changed, if clients are told of it unasked.
    pub(crate) setting: Option<(String, String)>,
    /// Why it does not do what the client may expect.
    pub(crate) warning: Option<&'static str>,
}

/// The settings of a session.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    start: BTreeMap<String, String>,
    values: BTreeMap<String, String>,
}

impl Default for Settings {
    /// Those that PostgreSQL has before a client says anything.
    fn default() -> Self {
        let start: BTreeMap<String, String> =
            KNOWN.iter().map(|(name, value, _)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { values: start.clone(), start }
    }
}

impl Settings {
    /// The settings of a user's session, as its first message asks for them.
    ///
    /// # Errors
    /// If it asks for an encoding other than UTF-8.
    pub(crate) fn new(options: &BTreeMap<String, String>, user: &str) -> Result<Self, Refusal> {
        let mut settings = Self::default();
        settings.values.insert("session_authorization".to_owned(), user.to_owned());
        for (name, value) in options {
            let name = name.to_lowercase();
            if !matches!(name.as_str(), "user" | "database" | "replication" | "options" | "timezone") {
                settings.set(&name, value)?;
            }
        }
        settings.start = settings.values.clone();
        Ok(settings)
    }

    /// The value of a setting.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(&name.to_lowercase()).map(String::as_str)
    }

    /// All settings, ascending by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The settings that clients are told at the start, by the names that they know.
    pub(crate) fn reported(&self) -> Vec<(String, String)> {
        KNOWN.iter().filter(|(.., is_told)| *is_told).map(|(name, ..)| self.told(name)).collect()
    }

    /// Name and value of a setting, as a client is told them.
    fn told(&self, name: &str) -> (String, String) {
        let shown = SHOWN_NAMES.iter().find(|(known, _)| *known == name).map_or(name, |(_, shown)| shown);
        (shown.to_owned(), self.get(name).unwrap_or_default().to_owned())
    }

    /// Applies a setting. Returns what the client is told of it: a setting that changed, and a warning.
    ///
    /// # Errors
    /// If it cannot have that value.
    pub(crate) fn apply(&mut self, setting: &Setting) -> Result<Told, Refusal> {
        let name = match setting {
            Setting::Ignored => return Ok(Told::default()),
            Setting::ResetAll => {
                self.values.clone_from(&self.start);
                return Ok(Told::default());
            }
            Setting::Reset(name) => {
                match self.start.get(name) {
                    Some(value) => drop(self.values.insert(name.clone(), value.clone())),
                    None => drop(self.values.remove(name)),
                }
                name
            }
            Setting::Value { name, value } => {
                if name == "timezone" && !is_utc(value) {
                    return Ok(Told { warning: Some(STAYS_UTC), ..Told::default() });
                }
                self.set(name, value)?;
                name
            }
        };
        let is_told = KNOWN.iter().any(|(known, _, is_told)| known == name && *is_told);
        Ok(Told { setting: is_told.then(|| self.told(name)), warning: None })
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Refusal> {
        let invalid = |wanted: &str| {
            Refusal::new(code::PARAMETER, format!("invalid value for {name}: {value:?}; it takes {wanted}"))
        };
        match name {
            "client_encoding" if !is_utf8(value) => return Err(invalid("UTF8")),
            // Names of an encoding mean the same one.
            "client_encoding" | "timezone" => return Ok(()),
            "statement_timeout" if duration(value).is_none() => {
                return Err(invalid("milliseconds, or a number with ms, s, min or h"));
            }
            "datestyle" if !value.to_lowercase().contains("iso") => return Err(invalid("ISO")),
            "datestyle" => return Ok(()),
            "server_version" | "server_encoding" | "server_version_num" | "is_superuser" | "integer_datetimes" => {
                return Err(Refusal::new(code::PARAMETER, format!("{name} cannot be changed")));
            }
            _ => {}
        }
        if self.values.len() >= MOST && !self.values.contains_key(name) {
            return Err(Refusal::new(code::LIMIT, format!("a session has {MOST} settings at most")));
        }
        self.values.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    /// How long a statement may run by the settings; `None` for as long as it takes.
    pub(crate) fn statement_timeout(&self) -> Option<Duration> {
        self.get("statement_timeout").and_then(duration).filter(|limit| !limit.is_zero())
    }

    /// The schema of tables without one: the first of the search path that the store has.
    pub(crate) fn schema(&self) -> &'static str {
        let path = self.get("search_path").unwrap_or_default();
        let mut names = path.split(',').map(|name| name.trim().trim_matches('"'));
        let known = |name: &str| SCHEMAS.iter().find(|schema| **schema == name).copied();
        names.find_map(known).unwrap_or(SCHEMAS[0])
    }
}

/// The schemas of a store; tables are in the first one unless a query says otherwise.
pub(crate) const SCHEMAS: [&str; 5] = ["records", "cells", "rows", "exports", "runs"];

const STAYS_UTC: &str = "the time zone stays UTC: write AT TIME ZONE 'Area/City' in the query for local times";

fn is_utc(zone: &str) -> bool {
    let zone = zone.to_ascii_lowercase();
    matches!(
        zone.as_str(),
        "utc" | "etc/utc" | "gmt" | "etc/gmt" | "z" | "zulu" | "0" | "+00" | "+00:00" | "local" | "default"
    )
}

fn is_utf8(encoding: &str) -> bool {
    let name: String = encoding.chars().filter(char::is_ascii_alphanumeric).collect();
    // SQL_ASCII is what clients of the locale C ask for: they take bytes as they are.
    matches!(name.to_ascii_lowercase().as_str(), "utf8" | "unicode" | "sqlascii" | "")
}

/// A duration as PostgreSQL writes it: a number of milliseconds, or one with a unit.
fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let number: f64 = text.get(..digits)?.parse().ok()?;
    let unit = match text.get(digits..)?.trim() {
        "" | "ms" => 0.001,
        "us" => 0.000_001,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * unit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::lexer::tokens;

    fn read(text: &str) -> Setting {
        let words: Vec<Token> = tokens(text, 100).into_iter().map(|(token, _)| token).collect();
        setting(&words).unwrap()
    }

    fn session() -> Settings {
        Settings::new(&BTreeMap::new(), "ada").unwrap()
    }

    #[test]
    fn forms_of_set_are_read() {
        let value = |name: &str, value: &str| Setting::Value { name: name.to_owned(), value: value.to_owned() };
        assert_eq!(read("extra_float_digits = 3"), value("extra_float_digits", "3"));
        assert_eq!(read("SESSION TIME ZONE 'UTC'"), value("timezone", "UTC"));
        assert_eq!(read("LOCAL Search_Path TO cells, \"A\""), value("search_path", "cells, A"));
        assert_eq!(read("NAMES 'utf8'"), value("client_encoding", "utf8"));
        assert_eq!(read("statement_timeout TO DEFAULT"), Setting::Reset("statement_timeout".to_owned()));
        assert_eq!(read("SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"), Setting::Ignored);
        assert_eq!(read("TRANSACTION ISOLATION LEVEL SERIALIZABLE"), Setting::Ignored);
    }

    #[test]
    fn values_are_kept_and_checked() {
        let mut settings = session();
        settings.apply(&read("statement_timeout = '2min'")).unwrap();
        assert_eq!(settings.statement_timeout(), Some(Duration::from_secs(120)));
        settings.apply(&read("search_path TO nowhere, \"cells\"")).unwrap();
        assert_eq!(settings.schema(), "cells");
        let told = settings.apply(&read("application_name = 'a'")).unwrap();
        assert_eq!(told.setting, Some(("application_name".to_owned(), "a".to_owned())));
        settings.apply(&Setting::ResetAll).unwrap();
        assert_eq!((settings.statement_timeout(), settings.schema()), (None, "records"));
        for wrong in
            ["client_encoding = 'LATIN1'", "statement_timeout = 'soon'", "server_version = '9'", "datestyle = 'SQL'"]
        {
            assert_eq!(settings.apply(&read(wrong)).unwrap_err().code, "22023", "{wrong}");
        }
    }

    #[test]
    fn times_stay_in_utc() {
        let mut settings = session();
        let Told { setting: told, warning } = settings.apply(&read("timezone = 'Europe/Paris'")).unwrap();
        assert!(told.is_none() && warning.is_some_and(|text| text.contains("AT TIME ZONE")));
        assert_eq!(settings.get("TimeZone"), Some("UTC"));
        assert!(settings.apply(&read("timezone = 'utc'")).unwrap().warning.is_none());
    }
}
