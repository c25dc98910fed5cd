//! The settings that drivers ask for, and the values that each may have.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::error::{Refusal, code};

/// The version of PostgreSQL whose catalogs are served.
pub(crate) const VERSION: &str = "15.0";
const VERSION_NUMBER: &str = "150000";

/// A setting with its value at the start of a session.
pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) start: &'static str,
    /// Whether clients are told of it unasked.
    pub(super) is_reported: bool,
    values: Values,
}

/// The values that a setting may have.
enum Values {
    /// Any text.
    Any,
    /// None but that of the start: the server says something by it.
    Fixed,
    /// Texts that mean the value of the start, which stays; others are refused.
    Only(fn(&str) -> bool),
    /// The same, but others are accepted with a warning, for drivers set them unasked.
    Stays(fn(&str) -> bool, &'static str),
    /// A length of time.
    Time,
    /// A whole number.
    Number(RangeInclusive<i32>),
}

/// What happens to a value that a client sets.
pub(super) enum Checked {
    /// It is kept.
    Kept,
    /// The setting has its value of the start, which means the same.
    Same,
    /// The setting stays as it is, and the client gets a warning.
    Stays(&'static str),
}

const fn known(name: &'static str, start: &'static str, is_reported: bool, values: Values) -> Known {
    Known { name, start, is_reported, values }
}

/// All of them, ascending by whether they are reported and by name.
pub(super) static KNOWN: [Known; 30] = [
    known("application_name", "", true, Values::Any),
    known("client_encoding", "UTF8", true, Values::Only(is_utf8)),
    known("datestyle", "ISO, MDY", true, Values::Only(is_iso)),
    known("default_transaction_read_only", "on", true, Values::Stays(is_on, STAYS_READ_ONLY)),
    known("in_hot_standby", "off", true, Values::Fixed),
    known("integer_datetimes", "on", true, Values::Fixed),
    known("intervalstyle", "postgres", true, Values::Only(is_postgres)),
    known("is_superuser", "off", true, Values::Fixed),
    known("server_encoding", "UTF8", true, Values::Fixed),
    known("server_version", VERSION, true, Values::Fixed),
    known("session_authorization", "", true, Values::Fixed),
    known("standard_conforming_strings", "on", true, Values::Only(is_on)),
    known("timezone", "UTC", true, Values::Stays(is_utc, STAYS_UTC)),
    known("bytea_output", "hex", false, Values::Only(is_hex)),
    known("client_min_messages", "notice", false, Values::Any),
    known("default_transaction_isolation", "read committed", false, Values::Any),
    known("extra_float_digits", "1", false, Values::Number(-15..=3)),
    known("idle_in_transaction_session_timeout", "0", false, Values::Time),
    known("idle_session_timeout", "0", false, Values::Time),
    known("lc_collate", "C", false, Values::Fixed),
    known("lc_ctype", "C", false, Values::Fixed),
    known("lock_timeout", "0", false, Values::Time),
    known("max_identifier_length", "63", false, Values::Fixed),
    known("max_index_keys", "32", false, Values::Fixed),
    known("search_path", "records", false, Values::Any),
    known("server_version_num", VERSION_NUMBER, false, Values::Fixed),
    known("statement_timeout", "0", false, Values::Time),
    known("transaction_isolation", "read committed", false, Values::Any),
    known("transaction_read_only", "on", false, Values::Stays(is_on, STAYS_READ_ONLY)),
    known("transaction_timeout", "0", false, Values::Time),
];

const STAYS_UTC: &str = "the time zone stays UTC: write AT TIME ZONE 'Area/City' in the query for local times";
const STAYS_READ_ONLY: &str = "the store is served read-only, so transactions stay read-only";

impl Known {
    /// The setting of a name; `None` for one that only clients know.
    pub(super) fn of(name: &str) -> Option<&'static Self> {
        KNOWN.iter().find(|known| known.name == name)
    }

    /// The name as clients are told it, where it is not in lower case.
    pub(super) fn shown_name(&self) -> &'static str {
        match self.name {
            "datestyle" => "DateStyle",
            "intervalstyle" => "IntervalStyle",
            "timezone" => "TimeZone",
            name => name,
        }
    }

    /// What happens to a value that a client sets.
    ///
    /// # Errors
    /// If the setting cannot have it.
    pub(super) fn check(&self, value: &str) -> Result<Checked, Refusal> {
        let name = self.name;
        let invalid = |wanted: &str| {
            Err(Refusal::new(code::PARAMETER, format!("invalid value for {name}: {value:?}; it takes {wanted}")))
        };
        match &self.values {
            Values::Any => Ok(Checked::Kept),
            Values::Fixed => Err(Refusal::new(code::PARAMETER, format!("{name} cannot be changed"))),
            Values::Only(means) if means(value) => Ok(Checked::Same),
            Values::Only(_) => invalid(self.start),
            Values::Stays(means, _) if means(value) => Ok(Checked::Same),
            Values::Stays(_, warning) => Ok(Checked::Stays(warning)),
            Values::Time => match duration(value) {
                Some(_) => Ok(Checked::Kept),
                None => invalid("milliseconds from 0 on, or such a number with us, ms, s, min, h or d"),
            },
            Values::Number(range) => match value.trim().parse::<i32>() {
                Ok(number) if range.contains(&number) => Ok(Checked::Kept),
                _ => invalid(&format!("a whole number from {} to {}", range.start(), range.end())),
            },
        }
    }
}

fn is_utc(zone: &str) -> bool {
    let zone = zone.to_ascii_lowercase();
    matches!(
        zone.as_str(),
        "utc" | "etc/utc" | "gmt" | "etc/gmt" | "z" | "zulu" | "0" | "+00" | "+00:00" | "local" | "default"
    )
}

/// Whether a name of an encoding means UTF-8.
pub(crate) fn is_utf8(encoding: &str) -> bool {
    let name: String = encoding.chars().filter(char::is_ascii_alphanumeric).collect();
    // SQL_ASCII is what clients of the locale C ask for: they take bytes as they are.
    matches!(name.to_ascii_lowercase().as_str(), "utf8" | "unicode" | "sqlascii" | "")
}

/// Whether a style is that in which times are written; the order of day and month is that of other styles.
fn is_iso(style: &str) -> bool {
    style.split(',').any(|part| part.trim().eq_ignore_ascii_case("iso"))
}

fn is_postgres(style: &str) -> bool {
    style.trim().eq_ignore_ascii_case("postgres")
}

fn is_hex(form: &str) -> bool {
    form.trim().eq_ignore_ascii_case("hex")
}

fn is_on(value: &str) -> bool {
    matches!(value.trim().to_ascii_lowercase().as_str(), "on" | "true" | "yes" | "1" | "t" | "y")
}

/// A duration as PostgreSQL writes it: a number of milliseconds, or one with a unit.
pub(super) fn duration(text: &str) -> Option<Duration> {
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
