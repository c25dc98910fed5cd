//! A layout of a comparison at the scale of a workload.

use crate::comparison::compared::Compared;
use crate::facts::{FieldFacts, ScaleFacts};
use crate::growth::{Demand, Grown, KeyShape, at_scale};
use crate::heatmap::Pattern;
use crate::spread::Axis;
use crate::trial::TrialTable;

/// The rows of a layout with a key of this shape at scale; its writes were counted in slices of `axis`.
pub(crate) fn scaled(
    table: &TrialTable,
    compared: &Compared,
    shape: &KeyShape,
    axis: Axis,
    demand: &Demand,
) -> ScaleFacts {
    let measured = &compared.measured;
    let busiest = compared.spread.busiest_row.map_or(0, |row| row.rows);
    let facts = compared.facts.as_ref();

    let found = Grown {
        row_bytes: measured.largest_row.bytes,
        row_events: measured.largest_row.source_rows,
        rows: measured.rows,
        events_together: measured.source_rows_together,
        versions: measured.versions_a_column.max,
        versions_kept: table.versions_kept(),
        row_rate: busiest as f64 / axis.width.max(1) as f64,
        row_slices: facts.map_or(0, |facts| facts.rewritten.slices),
        write_kib: measured.write_kib(),
        rewrites: measured.rewrites,
        rate: measured.source_rows as f64 * measured.factor / demand.span,
        fields: facts.map_or(&[], |facts| facts.fields.as_slice()),
        sampled: measured.sampled(),
    };
    at_scale(shape, demand, found)
}

/// Whether row keys come in sequence: with the time first, or with numbers first that are counted up.
pub(crate) fn is_sequential(shape: &KeyShape, compared: &Compared) -> bool {
    if shape.step().is_some() && shape.leading().is_empty() {
        return shape.salts() <= 1.0;
    }
    match &compared.facts {
        Some(facts) => facts.fields.first().is_some_and(FieldFacts::is_sequential),
        None => shape.step().is_none() && compared.patterns.contains(&Pattern::Sequential),
    }
}
