//! A candidate for a column's declaration, and whether all its values fit.

use std::collections::BTreeSet;

use arrow::array::{Array, StringArray};

use crate::reader_version::ReaderVersion;
use crate::sample::numbers::codes::Codes;
use crate::sample::numbers::forms::at_most;
use crate::spec::{ColumnSpec, CsvOptions, SourceSpec};
use crate::value::ColumnBuilder;
use crate::value::ColumnPlan;
use crate::value::blanks::trimmed_text;

/// Values that are tried before all of them.
const FIRST: usize = 64;

/// A candidate for the declaration of a column, with what is to be said of its values.
#[derive(Debug)]
pub(super) struct Candidate {
    pub spec: ColumnSpec,
    pub markers: BTreeSet<String>,
    /// The first number that a cell writes differently.
    pub rewritten: Option<String>,
    /// Why numbers are names, which are text.
    pub codes: Option<Codes>,
    pub also: Option<String>,
    pub without_offset: bool,
    pub maybe_epoch: Option<&'static str>,
}

impl Candidate {
    pub fn plain(spec: ColumnSpec) -> Self {
        Self {
            spec,
            markers: BTreeSet::new(),
            rewritten: None,
            codes: None,
            also: None,
            without_offset: false,
            maybe_epoch: None,
        }
    }
}

/// Whether every value of a column fits this declaration; a few are tried before all.
pub(super) fn fits(spec: &ColumnSpec, column: &[&StringArray], csv: &CsvOptions) -> bool {
    let Some(plan) = plan(spec, csv) else { return false };
    taken(&plan, values(column).take(FIRST)) && taken(&plan, values(column))
}

/// The indices of values that do not fit this declaration; `None` if there are more than `most`.
pub(super) fn misfits(spec: &ColumnSpec, values: &[&str], csv: &CsvOptions, most: usize) -> Option<Vec<usize>> {
    let plan = plan(spec, csv)?;
    let mut column = ColumnBuilder::new(&plan, FIRST);
    let misfits = values.iter().enumerate().filter(|(_, value)| column.push(value.as_bytes(), false).is_err());
    at_most(misfits.map(|(at, _)| at), most)
}

fn plan(spec: &ColumnSpec, csv: &CsvOptions) -> Option<ColumnPlan> {
    let whole = SourceSpec { csv: csv.clone(), columns: vec![spec.clone()], ..SourceSpec::default() };
    crate::plan::column_plans(&whole, ReaderVersion::CURRENT).ok()?.into_iter().next()
}

fn taken<'a>(plan: &ColumnPlan, mut values: impl Iterator<Item = &'a str>) -> bool {
    let mut column = ColumnBuilder::new(plan, FIRST);
    values.all(|value| column.push(value.as_bytes(), false).is_ok())
}

/// The non-null values of a column, trimmed.
pub(super) fn values<'a>(column: &'a [&StringArray]) -> impl Iterator<Item = &'a str> + Clone + use<'a> {
    column
        .iter()
        .flat_map(|array| (0..array.len()).filter(|row| array.is_valid(*row)).map(|row| trimmed_text(array.value(row))))
}
