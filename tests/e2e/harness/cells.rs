//! Cells as `read` prints them in JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// A time in JSON, in microseconds since the epoch.
pub fn micros(time: &Value) -> i64 {
    chrono::DateTime::parse_from_rfc3339(time.as_str().unwrap()).unwrap().timestamp_micros()
}

/// The bytes of a value: text, or base64 where they are not UTF-8.
pub fn cell_bytes(value: &Value) -> Vec<u8> {
    match value.as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => STANDARD.decode(value["base64"].as_str().unwrap_or_else(|| panic!("no bytes: {value}"))).unwrap(),
    }
}

/// The integer of a value of eight bytes.
pub fn cell_integer(value: &Value) -> i64 {
    i64::from_be_bytes(cell_bytes(value).try_into().unwrap())
}
