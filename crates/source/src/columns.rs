//! Which column of a file is which declared one, and what becomes of a file that has others.

use std::fmt;

use crate::error::{SourceError, nearest};
use crate::plan::ColumnPlan;
use crate::spec::{SchemaMode, SourceSpec};

/// Names that a sentence lists before it only counts them.
const SHOWN: usize = 8;

/// How the columns of a file differ from the declared ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnDiff {
    /// Declared, and not in the file.
    pub missing: Vec<String>,
    /// In the file, and not declared.
    pub extra: Vec<String>,
    /// Declared once, and in the file more than once.
    pub twice: Vec<String>,
    /// Of a type that does not become the declared one: name and type in the file.
    pub unlike: Vec<(String, String)>,
}

impl ColumnDiff {
    /// Whether the columns are the declared ones, in whatever order.
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

/// The columns of one file beside the declared ones.
#[derive(Debug)]
pub(crate) struct Matched {
    /// For each column of the file the declared column it feeds, if any.
    pub steps: Vec<Option<usize>>,
    /// What differs, where the mode of the source asks.
    pub diff: ColumnDiff,
}

impl Matched {
    /// As many columns as declared, by their places.
    pub fn by_place(columns: usize) -> Self {
        Self { steps: (0..columns).map(Some).collect(), diff: ColumnDiff::default() }
    }
}

/// Lays the columns that a file has over the declared ones.
///
/// # Errors
/// [`SourceError::MissingColumn`] and [`SourceError::DuplicateColumn`], where the mode of `spec` does not allow it.
pub(crate) fn match_columns(
    path: &str,
    header: &[String],
    spec: &SourceSpec,
    columns: &[ColumnPlan],
) -> Result<Matched, SourceError> {
    let mut matched = Matched { steps: vec![None; header.len()], diff: ColumnDiff::default() };
    for (index, column) in columns.iter().enumerate() {
        let mut places = header.iter().zip(&mut matched.steps).filter(|(name, _)| **name == column.name);
        let first = places.next();
        let again = places.next().is_some();
        match (first, spec.mode) {
            (Some(_), SchemaMode::Reject) if again => matched.diff.twice.push(column.name.clone()),
            (Some(_), _) if again => {
                return Err(SourceError::DuplicateColumn { path: path.to_owned(), column: column.name.clone() });
            }
            (Some((_, step)), _) => *step = Some(index),
            // Without its time a row belongs to no window: there is nothing that null could stand for.
            (None, SchemaMode::Evolve) if column.name != spec.time => matched.diff.missing.push(column.name.clone()),
            (None, SchemaMode::Reject) => matched.diff.missing.push(column.name.clone()),
            (None, _) => {
                return Err(SourceError::MissingColumn {
                    path: path.to_owned(),
                    column: column.name.clone(),
                    header: header.to_vec(),
                    hint: nearest(&column.name, header),
                });
            }
        }
    }
    if spec.mode != SchemaMode::Freeze {
        let undeclared = header.iter().filter(|name| columns.iter().all(|column| column.name != **name));
        matched.diff.extra.extend(undeclared.cloned());
    }
    Ok(matched)
}
