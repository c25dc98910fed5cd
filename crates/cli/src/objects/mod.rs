//! The objects that commands print with `--output json`: the keys of each, with their types and what they say.
//!
//! These lists are what is promised. Rows of results have their columns from them, what is stored is brought into their
//! form by [`shaped`], and `docs/reference/json-output.md` is written from them. So a stored format may change while what
//! is printed stays.

pub(crate) mod files;
pub(crate) mod record;
pub(crate) mod rows;
#[cfg(test)]
pub(crate) mod tests;

use std::io::Write;

use serde_json::{Map, Value, json};

use crate::commands::{day, time};
use crate::error::CliError;
use crate::output::{bytes_value, key_of};
pub use files::{INSPECTION, MANIFEST};
pub use record::{COMPACTION, RUN};
pub use rows::*;

/// A key of an object. It is there in every object of its kind.
#[derive(Debug)]
pub struct Key {
    /// What programs call it, in snake_case.
    pub name: &'static str,
    /// What holds it in what is stored.
    stored: &'static str,
    kind: Kind,
    #[cfg_attr(not(test), expect(dead_code, reason = "the reference is written by a test"))]
    says: &'static str,
}

/// The type of a value.
#[derive(Debug)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Truth,
    /// RFC 3339 in UTC; stored as microseconds since the epoch.
    Time,
    /// `2026-11-22`; stored as days since the epoch.
    Day,
    /// Text where it is UTF-8, else `{"base64": ".."}`; stored in hexadecimal.
    Bytes,
    /// The value, or null where there is none.
    OrNull(&'static Kind),
    /// Values of a kind.
    List(&'static Kind),
    /// An object with these keys.
    Object(&'static [Key]),
    /// An object whose keys are names, such as those of stages.
    Named(&'static Kind),
}

const fn key(name: &'static str, kind: Kind, says: &'static str) -> Key {
    Key { name, stored: name, kind, says }
}

impl Key {
    /// The same, of a field that has another name where it is stored.
    const fn stored_as(self, stored: &'static str) -> Self {
        Self { stored, ..self }
    }
}

/// The object with these keys that says what a stored one says.
pub fn shaped(stored: Value, keys: &[Key]) -> Value {
    let mut fields = if let Value::Object(fields) = stored { fields } else { Map::new() };
    let shape = |key: &Key| {
        let field = fields.remove(key.stored).unwrap_or_default();
        (key.name.to_owned(), key.kind.shape(field))
    };
    Value::Object(keys.iter().map(shape).collect())
}

impl Kind {
    fn shape(&self, stored: Value) -> Value {
        match (self, stored) {
            (Self::OrNull(_), Value::Null) => Value::Null,
            (Self::OrNull(kind), stored) => kind.shape(stored),
            (Self::Object(keys), stored) => shaped(stored, keys),
            (_, Value::Null) => self.nothing(),
            (Self::Time, Value::Number(micros)) => json!(micros.as_i64().and_then(time)),
            (Self::Day, Value::Number(days)) => {
                json!(days.as_i64().and_then(|days| day(i32::try_from(days).ok()?)))
            }
            (Self::Bytes, Value::String(hex)) => bytes_of(&hex),
            (Self::List(kind), Value::Array(items)) => items.into_iter().map(|item| kind.shape(item)).collect(),
            (Self::Named(kind), Value::Object(fields)) => {
                Value::Object(fields.into_iter().map(|(name, field)| (key_of(&name), kind.shape(field))).collect())
            }
            (_, stored) => stored,
        }
    }

    /// What a field that is not stored says.
    fn nothing(&self) -> Value {
        match self {
            Self::Text => json!(""),
            Self::Integer => json!(0),
            Self::Number => json!(0.0),
            Self::Truth => json!(false),
            Self::List(_) => json!([]),
            Self::Named(_) => json!({}),
            _ => Value::Null,
        }
    }
}

/// Writes an object with these keys on a line.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_object(out: &mut impl Write, stored: Value, keys: &[Key]) -> Result<(), CliError> {
    Ok(writeln!(out, "{}", shaped(stored, keys))?)
}

fn bytes_of(hex: &str) -> Value {
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    let bytes: Option<Vec<u8>> = digits.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect();
    bytes.map_or(Value::Null, |bytes| bytes_value(&bytes))
}
