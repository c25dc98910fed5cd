//! Queries planned on a layout: the key ranges of each draw, and which records match.

use tidetable_job::workload::{Params, Query};
use tidetable_layout::{Field, KeyRange, Layout, SourceSchema};
use tidetable_sql::{Predicate, Predicates, field_type};

use crate::error::{AdvisorError, Result};
use crate::growth::QueryBounds;
use crate::queries::parameters::predicates;
use crate::trial::Draw;

/// One draw of a query.
#[derive(Debug)]
pub(crate) struct Planned {
    /// Key ranges that SQL would read, disjoint and ascending.
    pub(crate) ranges: Vec<KeyRange>,
    /// What the records it returns satisfy.
    pub(crate) predicate: Predicate,
}

/// Plans `query` on a layout, once for each draw; the values of `draws` are of `columns`.
///
/// # Errors
/// [`AdvisorError::Predicate`] if it is not a valid predicate over the records of the layout, [`AdvisorError::Parameter`] if a
/// parameter has no value.
pub(crate) fn plan(layout: &Layout, query: &Query, columns: &[String], draws: &[Draw]) -> Result<Vec<Planned>> {
    let predicates_of = Predicates::new(&records_fields(layout));
    let unpivots = !layout.spec().unpivot.is_empty();
    let mut planned = Vec::new();
    for predicate in predicates(query, columns, draws)? {
        let predicate = compiled(&predicates_of, query, &of_columns(&predicate, query, unpivots))?;
        planned.push(Planned { ranges: layout.key_ranges(predicate.bounds()), predicate });
    }
    Ok(planned)
}

/// A predicate of `query`, whose parameters have values.
fn compiled(predicates: &Predicates, query: &Query, predicate: &str) -> Result<Predicate> {
    let compiled = predicates.compile(predicate);
    compiled.map_err(|source| AdvisorError::Predicate { query: query.name.clone(), source })
}

/// What a query fixes of the columns of a source, by the first of its draws; the values of these are of `columns`.
///
/// # Errors
/// As [`plan`].
pub(crate) fn source_bounds(
    schema: &SourceSchema,
    query: &Query,
    columns: &[String],
    draws: &[Draw],
) -> Result<QueryBounds> {
    let Some(predicate) = predicates(query, columns, draws)?.into_iter().next() else {
        return Ok(QueryBounds::default());
    };
    let predicate = compiled(&Predicates::new(&schema.fields), query, &predicate)?;
    let time = schema.fields.get(schema.time).map(|field| field.name.as_str()).unwrap_or_default();
    let age = if let Params::Data { age, .. } = query.params { age } else { None };
    Ok(QueryBounds::of(predicate.bounds(), time, age))
}

/// The columns of the records of a layout, as far as they have a type of a source.
pub(crate) fn records_fields(layout: &Layout) -> Vec<Field> {
    let schema = layout.records_schema();
    let fields = schema.fields().iter().filter_map(|field| {
        let kind = field_type(field.data_type())?;
        Some(Field { name: field.name().clone(), kind })
    });
    fields.collect()
}

/// The predicate, with the names of the wanted columns where they are records of their own.
fn of_columns(predicate: &str, query: &Query, unpivots: bool) -> String {
    if !unpivots || query.columns.is_empty() {
        return predicate.to_owned();
    }
    let names: Vec<String> = query.columns.iter().map(|name| format!("'{}'", name.replace('\'', "''"))).collect();
    format!("({predicate}) and metric in ({})", names.join(", "))
}
