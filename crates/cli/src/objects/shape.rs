//! Converts stored JSON to the form that is printed.

use std::io::Write;

use serde_json::{Map, Value, json};

use crate::error::CliError;
use crate::output::key::{Key, Kind};
use crate::output::values::{day, time};
use crate::output::{bytes_value, key_of};

/// Converts a stored object to one with these keys.
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

    /// The value of a missing field.
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
