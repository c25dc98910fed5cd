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
    let plan = |column| {
        let mut plan = ColumnPlan::new(spec, column, reader)?;
        let looks_like_value = |marker: &Vec<u8>| ColumnBuilder::new(&plan, 1).value(marker).is_ok();
        plan.short = !plan.nulls.iter().any(looks_like_value);
        Ok(plan)
    };
    spec.columns.iter().map(plan).collect()
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
        let wrong =
            |option, byte: u8| SourceError::CsvOption { name: self.name.clone(), option, byte: char::from(byte) };
        let usable = |byte: u8| byte.is_ascii() && byte != b'\n' && byte != b'\r';
        if !usable(delimiter) {
            return Err(wrong("delimiter", delimiter));
        }
        if let Some(quote) = quote.filter(|&quote| !usable(quote) || quote == delimiter) {
            return Err(wrong("quote", quote));
        }
        let has_meaning = |byte: u8| byte == delimiter || Some(byte) == quote;
        if let Some(escape) = escape.filter(|&escape| !usable(escape) || has_meaning(escape)) {
            return Err(wrong("escape", escape));
        }
        if let Some(comment) = comment.filter(|&comment| !usable(comment) || has_meaning(comment)) {
            return Err(wrong("comment", comment));
        }
        column_plans(self, ReaderVersion::CURRENT).map(drop)
    }
}
