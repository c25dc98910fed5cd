//! From a job and a workload to layouts, measured and ranked.

use std::collections::BTreeSet;

use tidetable_job::Job;
use tidetable_job::workload::Workload;
use tidetable_layout::SourceSchema;

use crate::advice::advised::Advice;
use crate::advice::apart::Apart;
use crate::advice::generate::{Proposed, proposals, salted_proposals};
use crate::advice::keys::Columns;
use crate::advice::pairs::{Pairs, pairs, third};
use crate::advice::pass::{Asking, Part, Pass};
use crate::advice::refused::Refused;
use crate::advice::wants::wants;
use crate::error::{AdvisorError, Result};
use crate::growth::Demand;
use crate::queries::{draw_specs, profiled_columns};
use crate::trial::Candidate;

/// Layouts that are measured at last.
const FULL: usize = 5;
/// Source rows up to which nothing is sampled.
const ENOUGH: f64 = 10_000.0;
/// Source rows on which all candidates are ranked at most.
const RANKED: f64 = 50_000.0;
/// Source rows on which the best are measured at most.
const MEASURED: f64 = 300_000.0;
/// Draws of a query by which candidates are ranked.
const RANKED_DRAWS: usize = 20;
/// Draws of a query by which the best are measured.
const MEASURED_DRAWS: usize = 60;

/// Generates candidates for the first table of the job, ranks them on a sample, and measures the best on a larger one.
///
/// # Errors
/// If the job has no table that is loaded from files, no row is accepted, no layout can be made for it, or measuring fails.
pub fn advise(asking: Asking<'_>) -> Result<Advice> {
    let first = Candidate::of_job(asking.job, &[])?.remove(0);
    let entity = entity(&first, asking.workload);
    let specs = draw_specs(&asking.workload.queries, &first.schema)?;
    let profiled = profiled_columns([&first.schema], &entity, asking.workload);
    let pass = Pass { asking, specs: &specs, profiled: &profiled, entity: &entity };

    // What the source holds: a pass with a single layout.
    let known = pass.known(&first)?;
    let profile = &known.profile;
    let wants = wants(asking.workload, &first.schema, &specs, &known.draws)?;
    let scale = &asking.workload.scale.entities;
    let columns = Columns { schema: &first.schema, profile, entity: &entity, scale };
    let demand = Demand::new(asking.workload, profile, known.rows);

    let proposed = proposals(&columns, &wants, demand.writes_per_second, demand.kept_rows);
    let mut candidates = compiled(&pass, &first.schema, proposed)?;
    if candidates.is_empty() {
        return Err(AdvisorError::NothingToMeasure { job: asking.job.name.clone() });
    }
    let entities = entity.iter().map(|name| profile.distinct(name)).fold(1.0, f64::max);
    let ranking = RANKED.min(profile.rows as f64 * asking.sample.fraction).max(ENOUGH);
    let ranking = Part::new(profile, entities, ranking);
    let full = Part::new(profile, entities, MEASURED);

    let mut ranked = pass.measured(&first.schema, &candidates, known.rows, &ranking, RANKED_DRAWS)?;
    let mut refused = Vec::new();
    if !ranked.is_served(asking, &columns) {
        refused.extend(pairs(ranked.pairing(asking, &columns)).refused);
        // Promotion comes before a salt.
        let salted = salted_proposals(&columns, &wants, demand.writes_per_second);
        let salted = compiled(&pass, &first.schema, salted)?;
        if !salted.is_empty() {
            candidates.extend(salted);
            candidates.sort_by(|a, b| a.name.cmp(&b.name));
            ranked = pass.measured(&first.schema, &candidates, known.rows, &ranking, RANKED_DRAWS)?;
        }
    }
    let order = ranked.finalists(asking, &columns);
    let ranked_rows = ranked.source_rows();
    refused.extend(ranked.refused.clone());

    let found = if ranking == full && candidates.len() <= FULL {
        ranked
    } else {
        let mut best: Vec<Proposed> = order.iter().take(FULL).filter_map(|at| candidates.get(*at).cloned()).collect();
        best.sort_by(|a, b| a.name.cmp(&b.name));
        pass.measured(&first.schema, &best, known.rows, &full, MEASURED_DRAWS)?
    };

    let pairs = if asking.most_tables > 1 { pairs(found.pairing(asking, &columns)) } else { Pairs::default() };
    refused.extend(pairs.refused);
    let mut seen = BTreeSet::new();
    refused.retain(|refused: &Refused| seen.insert(refused.name.clone()));
    let is_served = found.economy.costs.iter().any(|cost| cost.standing().is_none());
    let third = third(found.pairing(asking, &columns), pairs.found.first(), is_served);
    Ok(Advice {
        candidates: order.into_iter().filter_map(|at| candidates.get(at).cloned()).collect(),
        refused,
        rows: [ranked_rows, found.source_rows(), profile.rows],
        comparison: found.comparison,
        economy: found.economy,
        pairs: pairs.found,
        third,
        apart: Apart::of(known.kinds.as_ref(), &wants, &first.schema),
        most_tables: asking.most_tables,
        schema: first.schema,
    })
}

/// The proposed layouts whose templates and types go together, in the order of their names, in which a file of tables is read.
fn compiled(pass: &Pass<'_>, schema: &SourceSchema, proposed: Vec<Proposed>) -> Result<Vec<Proposed>> {
    let mut candidates = Vec::new();
    for mut proposed in proposed {
        of_source(pass.asking.job, &mut proposed);
        if pass.compiles(&proposed, schema)? {
            candidates.push(proposed);
        }
    }
    candidates.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(candidates)
}

/// The columns that tell what a row is about: those of the job's row key, and those that the workload counts if the row key
/// has none of them. Without these, readings of several entities would share a row.
fn entity(first: &Candidate, workload: &Workload) -> Vec<String> {
    let columns = first.schema.fields.iter().enumerate().filter(|(at, _)| *at != first.schema.time);
    let columns: Vec<&String> = columns.map(|(_, field)| &field.name).collect();
    let mut entity = first.key_columns();
    entity.retain(|name| columns.contains(&name));
    let mut scaled = workload.scaled_columns();
    scaled.retain(|name| columns.contains(&name));

    if scaled.iter().all(|name| !entity.contains(name)) {
        entity.extend(scaled);
    }
    entity
}

/// Adds the `from` and `where` of the first table that is loaded from files: a candidate takes the same source rows.
fn of_source(job: &Job, proposed: &mut Proposed) {
    let Some(table) = job.tables.iter().find(|table| Candidate::of_table(table).is_some()) else { return };
    if let Some(candidate) = Candidate::of_table(table) {
        proposed.section.insert("from".to_owned(), candidate.source.into());
    }
    if let Some(predicate) = &table.predicate {
        proposed.section.insert("where".to_owned(), predicate.clone().into());
    }
}
