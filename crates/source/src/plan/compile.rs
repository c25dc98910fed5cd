//! Compiles a source's declaration into the plans of its columns.

use crate::error::SourceError;
use crate::reader_version::ReaderVersion;
use crate::spec::{CsvOptions, SourceSpec};
use crate::value::ColumnBuilder;
use crate::value::column_plan::ColumnPlan;

/// Most lists that are read side by side.
const MOST_LISTS: usize = 64;

/// Plans of all columns of a source, in declared order, for files that are read by the rules of `reader`.
pub(crate) fn column_plans(spec: &SourceSpec, reader: ReaderVersion) -> Result<Vec<ColumnPlan>, SourceError> {
    let mut plans = Vec::with_capacity(spec.columns.len());
    for column in &spec.columns {
        let mut plan = ColumnPlan::new(spec, column, reader)?;
        plan.short = !plan.nulls.iter().any(|marker| ColumnBuilder::new(&plan, 1).value(marker).is_ok());
        plans.push(plan);
    }
    Ok(plans)
}

impl SourceSpec {
    /// Validates the declaration without opening a file.
    ///
    /// # Errors
    /// [`SourceError::DeclaredTwice`], [`SourceError::TooManyLists`], [`SourceError::CsvOption`] or [`SourceError::TimeFormat`].
    pub fn check(&self) -> Result<(), SourceError> {
        for (index, column) in self.columns.iter().enumerate() {
            if self.columns.iter().take(index).any(|earlier| earlier.name == column.name) {
                return Err(SourceError::DeclaredTwice { name: self.name.clone(), column: column.name.clone() });
            }
        }
        if self.each.len() > MOST_LISTS {
            return Err(SourceError::TooManyLists { name: self.name.clone(), most: MOST_LISTS });
        }

        let CsvOptions { delimiter, quote, escape, comment, .. } = self.csv;
        for (option, byte, others) in [
            ("delimiter", Some(delimiter), [None, None]),
            ("quote", quote, [Some(delimiter), None]),
            ("escape", escape, [Some(delimiter), quote]),
            ("comment", comment, [Some(delimiter), quote]),
        ] {
            let Some(byte) = byte else { continue };
            if !byte.is_ascii() || matches!(byte, b'\n' | b'\r') || others.contains(&Some(byte)) {
                return Err(SourceError::CsvOption { name: self.name.clone(), option, byte: char::from(byte) });
            }
        }
        column_plans(self, ReaderVersion::CURRENT).map(drop)
    }
}
