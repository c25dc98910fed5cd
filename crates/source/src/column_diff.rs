//! How the columns of a file differ from the declared ones.

use std::fmt;

/// Names listed in a message before the rest is counted.
const SHOWN: usize = 8;

/// How the columns of a file differ from the declared ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnDiff {
    /// Declared columns that the file lacks.
    pub missing: Vec<String>,
    /// Undeclared columns of the file.
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
        let mut parts = Vec::new();
        let mut say = |what: &str, names: &[String]| {
            if !names.is_empty() {
                parts.push(format!("{what} {}", listed(names)));
            }
        };
        say("lacks", &self.missing);
        say("has also", &self.extra);
        say("has more than once", &self.twice);
        let unlike: Vec<String> = self.unlike.iter().map(|(name, found)| format!("{name} ({found})")).collect();
        say("has in another type", &unlike);
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
