//! What the queries of a workload want of a row key.

use tidetable_job::workload::Workload;
use tidetable_layout::SourceSchema;

use crate::error::Result;
use crate::growth::QueryBounds;
use crate::queries::source_bounds;
use crate::trial::{Draw, DrawSpec};

/// What a query wants of a layout, from which orders of the row key follow.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Want {
    /// The columns whose values it fixes, and its range of time.
    pub(super) bounds: QueryBounds,
    /// Whether it wants the newest first.
    pub(super) newest: bool,
    /// The columns that it wants; all if empty.
    pub(super) columns: Vec<String>,
}

impl Want {
    /// The columns that it fixes and that a row key can hold.
    pub(super) fn fixed(&self, is_key: impl Fn(&str) -> bool) -> Vec<String> {
        self.bounds.fixed.iter().filter(|name| is_key(name)).cloned().collect()
    }
}

/// What each query of `workload` wants, by the first of its draws.
///
/// # Errors
/// If a query does not fit the columns of the source.
pub(super) fn wants(
    workload: &Workload,
    schema: &SourceSchema,
    specs: &[DrawSpec],
    draws: &[Vec<Draw>],
) -> Result<Vec<Want>> {
    let queries = workload.queries.iter().zip(specs).zip(draws);
    let want = queries.map(|((query, spec), draws)| {
        let bounds = source_bounds(schema, query, &spec.columns, draws)?;
        Ok(Want { bounds, newest: query.newest, columns: query.columns.clone() })
    });
    want.collect()
}
