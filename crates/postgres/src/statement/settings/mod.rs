//! Settings of a session, which drivers set and ask for.
//!
//! | module | contents |
//! |---|---|
//! | `known` | the settings, and the values that each may have |
//! | `read` | statements that set something, and options of a first message |

mod known;
mod read;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::{Refusal, code};
use crate::statement::settings::known::{Checked, KNOWN, Known, duration};
use crate::statement::settings::read::command_line;

pub(crate) use known::{VERSION, is_utf8};
pub(crate) use read::Setting;
pub(super) use read::{configured, reset, setting, shown};

/// The schemas of a store; tables are in the first one unless a query or the search path says otherwise.
pub(crate) const SCHEMAS: [&str; 5] = ["records", "cells", "rows", "exports", "runs"];

/// Settings of a session at most; drivers set a handful.
const MOST: usize = 200;
/// Bytes of a value at most: all queries of the session carry it.
const MOST_VALUE: usize = 4 << 10;

/// Names and values.
type Values = BTreeMap<String, String>;

/// A warning, which does not end a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Warning {
    pub(crate) code: &'static str,
    pub(crate) text: &'static str,
}

const NO_BLOCK: Warning =
    Warning { code: code::NO_TRANSACTION, text: "SET LOCAL has no effect outside of a block: send BEGIN first" };

/// What a client is told of a setting that it applies.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Names and values of settings that changed, of those that clients are told unasked.
    pub(crate) settings: Vec<(String, String)>,
    /// Why it does not do what the client may expect.
    pub(crate) warning: Option<Warning>,
}

/// The settings of a session.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    start: Values,
    values: Values,
    block: Option<Block>,
}

/// What comes back at the end of a block of statements.
#[derive(Debug, Clone)]
struct Block {
    /// All values before it, if it is given up.
    before: Values,
    /// Those that `SET LOCAL` replaced; `None` where there was none.
    replaced: BTreeMap<String, Option<String>>,
}

impl Default for Settings {
    /// Those that PostgreSQL has before a client says anything.
    fn default() -> Self {
        let start: Values = KNOWN.iter().map(|known| (known.name.to_owned(), known.start.to_owned())).collect();
        Self { values: start.clone(), start, block: None }
    }
}

impl Settings {
    /// The settings of a user's session, as its first message asks for them.
    ///
    /// # Errors
    /// If a setting cannot have the value, or the message has options that are no settings.
    pub(crate) fn new(options: &Values, user: &str) -> Result<Self, Refusal> {
        let mut settings = Self::default();
        settings.values.insert("session_authorization".to_owned(), user.to_owned());
        if let Some(text) = options.get("options") {
            for (name, value) in command_line(text)? {
                settings.set(&name, &value)?;
            }
        }
        for (name, value) in options {
            let name = name.to_lowercase();
            let is_of_start = matches!(name.as_str(), "user" | "database" | "replication" | "options");
            // Those of extensions of the protocol are answered otherwise.
            if !is_of_start && !name.starts_with("_pq_.") {
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
        self.told(|_| true)
    }

    /// Names and values of some of the settings that clients are told unasked.
    fn told(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<(String, String)> {
        let reported = KNOWN.iter().filter(|known| known.is_reported && is_wanted(known.name));
        let value = |known: &Known| self.get(known.name).unwrap_or_default().to_owned();
        reported.map(|known| (known.shown_name().to_owned(), value(known))).collect()
    }

    /// Those that clients are told unasked and that differ from earlier values.
    fn changed_since(&self, before: &Values) -> Vec<(String, String)> {
        self.told(|name| before.get(name) != self.values.get(name))
    }

    /// Begins a block of statements, unless there is one.
    pub(crate) fn begin(&mut self) {
        if self.block.is_none() {
            self.block = Some(Block { before: self.values.clone(), replaced: BTreeMap::new() });
        }
    }

    /// Ends a block: what was set in it for the block alone ends with it, and all that was set in it if it is given up. Returns what
    /// the client is told.
    pub(crate) fn end(&mut self, is_kept: bool) -> Vec<(String, String)> {
        let Some(Block { before, replaced }) = self.block.take() else { return Vec::new() };
        let ended = self.values.clone();
        if is_kept {
            for (name, value) in replaced {
                self.put(&name, value);
            }
        } else {
            self.values = before;
        }
        self.changed_since(&ended)
    }

    fn put(&mut self, name: &str, value: Option<String>) {
        match value {
            Some(value) => drop(self.values.insert(name.to_owned(), value)),
            None => drop(self.values.remove(name)),
        }
    }

    /// Applies a setting. Returns what the client is told of it: settings that changed, and a warning.
    ///
    /// # Errors
    /// If it cannot have that value, or there is no such setting to be reset.
    pub(crate) fn apply(&mut self, setting: &Setting) -> Result<Told, Refusal> {
        let (name, value, is_local) = match setting {
            Setting::Ignored => return Ok(Told::default()),
            Setting::ResetAll => {
                let before = std::mem::replace(&mut self.values, self.start.clone());
                return Ok(Told { settings: self.changed_since(&before), warning: None });
            }
            Setting::Value { name, value, is_local } => (name, value, *is_local),
        };
        if is_local && self.block.is_none() {
            return Ok(Told { settings: Vec::new(), warning: Some(NO_BLOCK) });
        }

        let before = self.values.get(name).cloned();
        let warning = match value {
            Some(value) => self.set(name, value)?,
            None => self.reset(name)?,
        };
        if let Some(block) = &mut self.block {
            if is_local {
                block.replaced.entry(name.clone()).or_insert(before);
            } else {
                block.replaced.remove(name);
            }
        }
        let settings = if warning.is_none() { self.told(|known| known == name) } else { Vec::new() };
        Ok(Told { settings, warning })
    }

    fn reset(&mut self, name: &str) -> Result<Option<Warning>, Refusal> {
        if Known::of(name).is_none() && !self.values.contains_key(name) && !name.contains('.') {
            let text = format!("unrecognized configuration parameter \"{name}\"");
            return Err(Refusal::new(code::SETTING, text));
        }
        self.put(name, self.start.get(name).cloned());
        Ok(None)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<Option<Warning>, Refusal> {
        match Known::of(name).map(|known| (known, known.check(value))) {
            Some((_, Ok(Checked::Kept))) | None => {}
            Some((known, Ok(Checked::Same))) => {
                self.put(name, Some(known.start.to_owned()));
                return Ok(None);
            }
            Some((_, Ok(Checked::Stays(text)))) => return Ok(Some(Warning { code: code::WARNING, text })),
            Some((_, Err(refusal))) => return Err(refusal),
        }
        if value.len() > MOST_VALUE {
            let text = format!("the value of {name} has {} bytes, and {MOST_VALUE} are the most", value.len());
            return Err(Refusal::new(code::LIMIT, text));
        }
        if self.values.len() >= MOST && !self.values.contains_key(name) {
            return Err(Refusal::new(code::LIMIT, format!("a session has {MOST} settings at most")));
        }
        self.put(name, Some(value.to_owned()));
        Ok(None)
    }

    /// The length of time that a setting such as `statement_timeout` has; `None` if it bounds nothing.
    pub(crate) fn time(&self, name: &str) -> Option<Duration> {
        self.get(name).and_then(duration).filter(|limit| !limit.is_zero())
    }

    /// The schema of tables without one: the first of the search path that the store has.
    pub(crate) fn schema(&self) -> &'static str {
        let path = self.get("search_path").unwrap_or_default();
        let mut names = path.split(',').map(|name| name.trim().trim_matches('"'));
        let known = |name: &str| SCHEMAS.iter().find(|schema| **schema == name).copied();
        names.find_map(known).unwrap_or(SCHEMAS[0])
    }
}

#[cfg(test)]
mod tests {
    use tidetable_sql::Word;

    use super::*;
    use crate::statement::split::words_of;

    fn read(text: &str) -> Setting {
        let words: Vec<Word> = words_of(text).unwrap().into_iter().map(|placed| placed.word).collect();
        setting(&words).unwrap()
    }

    fn session() -> Settings {
        Settings::new(&BTreeMap::new(), "ada").unwrap()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn values_are_kept_and_checked() {
        let mut settings = session();
        settings.apply(&read("statement_timeout = '2min'")).unwrap();
        assert_eq!(settings.time("statement_timeout"), Some(Duration::from_secs(120)));
        settings.apply(&read("search_path TO nowhere, \"cells\"")).unwrap();
        assert_eq!(settings.schema(), "cells");
        let told = settings.apply(&read("application_name = 'a'")).unwrap();
        assert_eq!(told.settings, [pair("application_name", "a")]);
        // Whatever is reset is told, too.
        let told = settings.apply(&Setting::ResetAll).unwrap();
        assert_eq!(told.settings, [pair("application_name", "")]);
        assert_eq!((settings.time("statement_timeout"), settings.schema()), (None, "records"));
        for wrong in [
            "client_encoding = 'LATIN1'",
            "statement_timeout = 'soon'",
            "statement_timeout = -1",
            "lock_timeout = -5",
            "extra_float_digits = 4",
            "server_version = '9'",
            "datestyle = 'SQL'",
            "datestyle = 'German, isolated'",
            "intervalstyle = 'iso_8601'",
            "bytea_output = 'escape'",
            "standard_conforming_strings = off",
            "lc_collate = 'de'",
            "session_authorization = 'eve'",
        ] {
            assert_eq!(settings.apply(&read(wrong)).unwrap_err().code, "22023", "{wrong}");
        }
        let long = Setting::Value { name: "a.b".to_owned(), value: Some("x".repeat(5_000)), is_local: false };
        assert_eq!(settings.apply(&long).unwrap_err().code, "53400");
        let unknown = Setting::Value { name: "nothing".to_owned(), value: None, is_local: false };
        assert_eq!(settings.apply(&unknown).unwrap_err().code, "42704");
    }

    #[test]
    fn what_is_shown_is_what_holds() {
        let mut settings = session();
        for (text, name, value) in [
            ("datestyle = 'ISO, DMY'", "datestyle", "ISO, MDY"),
            ("intervalstyle = POSTGRES", "intervalstyle", "postgres"),
            ("client_encoding = 'unicode'", "client_encoding", "UTF8"),
        ] {
            assert!(settings.apply(&read(text)).unwrap().warning.is_none(), "{text}");
            assert_eq!(settings.get(name), Some(value), "{text}");
        }
        let told = settings.apply(&read("default_transaction_read_only = off")).unwrap();
        assert!(told.warning.is_some_and(|warning| warning.text.contains("read-only")));
        assert_eq!(settings.get("default_transaction_read_only"), Some("on"));
    }

    #[test]
    fn times_stay_in_utc() {
        let mut settings = session();
        let Told { settings: told, warning } = settings.apply(&read("timezone = 'Europe/Paris'")).unwrap();
        assert!(told.is_empty() && warning.is_some_and(|warning| warning.text.contains("AT TIME ZONE")));
        assert_eq!(settings.get("TimeZone"), Some("UTC"));
        assert!(settings.apply(&read("timezone = 'utc'")).unwrap().warning.is_none());
    }

    #[test]
    fn local_values_end_with_their_block() {
        let mut settings = session();
        let told = settings.apply(&read("LOCAL search_path TO cells")).unwrap();
        assert_eq!(told.warning.map(|warning| warning.code), Some("25P01"));
        assert_eq!(settings.schema(), "records");

        settings.begin();
        settings.apply(&read("LOCAL application_name TO a")).unwrap();
        settings.apply(&read("LOCAL application_name TO b")).unwrap();
        settings.apply(&read("search_path TO cells")).unwrap();
        assert_eq!(settings.get("application_name"), Some("b"));
        assert_eq!(settings.end(true), [pair("application_name", "")]);
        assert_eq!(settings.schema(), "cells");

        // What is set for the session in the block counts after it.
        settings.begin();
        settings.apply(&read("LOCAL search_path TO rows")).unwrap();
        settings.apply(&read("search_path TO runs")).unwrap();
        settings.end(true);
        assert_eq!(settings.schema(), "runs");

        // A block that is given up leaves nothing.
        settings.begin();
        settings.apply(&read("search_path TO rows")).unwrap();
        settings.apply(&read("application_name TO c")).unwrap();
        assert_eq!(settings.end(false), [pair("application_name", "")]);
        assert_eq!(settings.schema(), "runs");
    }

    #[test]
    fn options_of_a_connection_are_settings() {
        let options = BTreeMap::from([
            pair("options", "-c search_path=cells -c statement_timeout=5s"),
            pair("application_name", "a"),
            pair("_pq_.option", "x"),
            pair("user", "ada"),
        ]);
        let mut settings = Settings::new(&options, "ada").unwrap();
        assert_eq!((settings.schema(), settings.time("statement_timeout")), ("cells", Some(Duration::from_secs(5))));
        assert_eq!((settings.get("_pq_.option"), settings.get("user")), (None, None));
        // Resetting goes back to them.
        settings.apply(&read("search_path TO rows")).unwrap();
        settings.apply(&Setting::ResetAll).unwrap();
        assert_eq!(settings.schema(), "cells");
        let wrong = BTreeMap::from([pair("options", "-c statement_timeout=-1")]);
        assert_eq!(Settings::new(&wrong, "ada").unwrap_err().code, "22023");
    }
}
