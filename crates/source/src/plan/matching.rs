//! Matches the columns of a file to the declared ones.

use crate::column_diff::ColumnDiff;
use crate::csv::name_wanted_again;
use crate::error::{SourceError, nearest};
use crate::plan::path_values::{PathColumn, path_columns};
use crate::spec::{SchemaMode, SourceSpec};
use crate::value::ColumnBuilder;
use crate::value::column_plan::ColumnPlan;

/// The columns of a file, matched to the declared ones.
#[derive(Debug, Default)]
pub(crate) struct Matched {
    /// For each column of the file, the index of its declared column, if any.
    pub steps: Vec<Option<usize>>,
    /// The differences that the source's schema mode reports.
    pub diff: ColumnDiff,
    /// Declared columns that the file lacks and its path names.
    pub path_columns: Vec<PathColumn>,
}

impl Matched {
    /// Matches as many columns by their position, as in a file without a header.
    pub fn by_place(columns: usize) -> Self {
        Self { steps: (0..columns).map(Some).collect(), diff: ColumnDiff::default(), path_columns: Vec::new() }
    }
}

/// The declared columns, and what a file may lack of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Declaration<'a> {
    pub columns: &'a [ColumnPlan],
    pub mode: SchemaMode,
    /// The name of the event time.
    pub time: &'a str,
}

impl<'a> Declaration<'a> {
    pub fn of(spec: &'a SourceSpec, columns: &'a [ColumnPlan]) -> Self {
        Self { columns, mode: spec.mode, time: &spec.time }
    }
}

/// Matches the columns of a header to the declared ones. The second column of one name is `NAME_2`, where that is declared.
///
/// # Errors
/// [`SourceError::MissingColumn`], [`SourceError::NoHeader`] and [`SourceError::DuplicateColumn`], where the mode does not allow it;
/// [`SourceError::PathValue`].
pub(crate) fn match_columns(
    path: &str,
    header: &[String],
    declaration: Declaration<'_>,
) -> Result<Matched, SourceError> {
    let Declaration { columns, mode, time } = declaration;
    let header = &name_wanted_again(header, |name| columns.iter().any(|column| column.name == name))[..];
    let path_columns = path_columns(path, columns, |name| header.iter().any(|other| other == name))?;
    let mut matched = Matched { steps: vec![None; header.len()], ..Matched::default() };

    for (index, column) in columns.iter().enumerate() {
        let mut places = header.iter().zip(&mut matched.steps).filter(|(name, _)| **name == column.name);
        let first = places.next();
        let again = places.next().is_some();
        match (first, mode) {
            (Some(_), SchemaMode::Reject) if again => matched.diff.twice.push(column.name.clone()),
            (Some(_), _) if again => {
                return Err(SourceError::DuplicateColumn { path: path.to_owned(), column: column.name.clone() });
            }
            (Some((_, step)), _) => *step = Some(index),
            (None, _) if path_columns.iter().any(|of_path| of_path.index == index) => {}
            // The event time cannot be null: it determines the window.
            (None, SchemaMode::Evolve) if column.name != time => matched.diff.missing.push(column.name.clone()),
            (None, SchemaMode::Reject) => matched.diff.missing.push(column.name.clone()),
            (None, _) if is_row(header, columns) => {
                return Err(SourceError::NoHeader { path: path.to_owned(), first: header.to_vec() });
            }
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

    let undeclared = header.iter().filter(|name| columns.iter().all(|column| column.name != **name));
    matched.diff.extra.extend(undeclared.cloned());
    Ok(Matched { path_columns, ..matched })
}

/// Whether the names of a header are values: none is that of a column, and one is a value of a column of times.
fn is_row(names: &[String], columns: &[ColumnPlan]) -> bool {
    let has_name = names.iter().any(|name| columns.iter().any(|column| column.name == *name));
    let times = columns.iter().filter(|column| column.time.is_some());
    let is_time = |column: &ColumnPlan| {
        let mut values = names.iter().filter(|name| !name.is_empty());
        values.any(|name| ColumnBuilder::new(column, 1).value(name.as_bytes()).is_ok())
    };
    !has_name && times.into_iter().any(is_time)
}
