//! How the columns of a file differ from the declared ones, for messages and reasons of rejects.

use std::fmt;

/// Names listed in a message before the rest is counted.
const SHOWN: usize = 8;

/// How the columns of a file differ from the declared ones, as far as the schema mode of the source asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnDiff {
    /// Declared columns that neither the file nor its path has.
    pub missing: Vec<String>,
    /// Columns of the file that the source does not declare.
    pub extra: Vec<String>,
    /// Declared columns that the file has more than once.
    pub twice: Vec<String>,
    /// Columns whose type cannot be converted to the declared one: name and type in the file.
    pub unlike: Vec<(String, String)>,
}

impl ColumnDiff {
    /// Whether the columns match the declaration, in any order.
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.extra.is_empty() && self.twice.is_empty() && self.unlike.is_empty()
    }
}

impl fmt::Display for ColumnDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unlike: Vec<String> = self.unlike.iter().map(|(name, found)| format!("{name} ({found})")).collect();
        let mut parts = Vec::new();
        for (what, names) in [
            ("lacks", &self.missing),
            ("has also", &self.extra),
            ("has more than once", &self.twice),
            ("has in another type", &unlike),
        ] {
            if !names.is_empty() {
                parts.push(format!("{what} {}", listed(names)));
            }
        }
        f.write_str(&parts.join("; "))
    }
}

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(SHOWN) {
        Some(more) if more > 0 => format!("{shown} and {more} more"),
        _ => shown,
    }
}
