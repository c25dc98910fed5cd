//! What the beginning of a text decides about all of it.

use serde::{Deserialize, Serialize};

use crate::reader_version::ReaderVersion;

/// What the beginning of a text decided when a table first loaded it. It stays so when the text grows: what is appended
/// must not change the records that are there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct TextShape {
    /// Whether lines end with CR: there was no LF.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub returns: bool,
    /// The number of fields of a line of a file without a header, where its path may name other columns; 0 elsewhere.
    #[serde(skip_serializing_if = "is_zero")]
    pub width: u32,
}

impl TextShape {
    /// Whether the beginning of the text has yet to decide, as it does the same way again.
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }
}

/// By which rules a text is read: those of its reader version, and what its beginning decided before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextRules {
    pub reader: ReaderVersion,
    pub shape: TextShape,
}

fn is_zero(width: &u32) -> bool {
    *width == 0
}
