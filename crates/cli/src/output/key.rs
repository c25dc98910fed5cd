//! Keys of objects, and the types of their values.

/// A key of an object. Every object of its kind has it.
#[derive(Debug)]
pub struct Key {
    /// Its name in output, in snake_case.
    pub name: &'static str,
    /// Its name in stored JSON.
    pub(crate) stored: &'static str,
    pub(crate) kind: Kind,
    #[cfg_attr(not(test), expect(dead_code, reason = "the reference is written by a test"))]
    pub(crate) says: &'static str,
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
    /// The value, or null.
    OrNull(&'static Kind),
    /// A list.
    List(&'static Kind),
    /// An object with these keys.
    Object(&'static [Key]),
    /// An object whose keys are names, such as those of stages.
    Named(&'static Kind),
}

pub(crate) const fn key(name: &'static str, kind: Kind, says: &'static str) -> Key {
    Key { name, stored: name, kind, says }
}

impl Key {
    /// The same key with another name in stored JSON.
    pub(crate) const fn stored_as(self, stored: &'static str) -> Self {
        Self { stored, ..self }
    }
}
