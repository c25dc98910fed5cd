//! Facts of a trial.

use tidetable_job::Job;
use tidetable_job::workload::{Need, Query, Workload};
use tidetable_layout::error::RejectReason;

use crate::comparison::{Compared, Comparison, Economy, Extent, compare, demand_of, scaled, value_columns};
use crate::error::{AdvisorError, Result};
use crate::facts::{DataFacts, QueryFacts, Reads, RejectFacts, RejectKind, TableFacts};
use crate::growth::{Demand, KeyShape};
use crate::measure::Measured;
use crate::queries::{Asked, ask};
use crate::trial::{Draw, DrawSpec, Trial, TrialReject, TrialTable};

/// What the rows of a job say about those of its tables that a trial has encoded, with what queries read of them: a
/// workload, and what the trial drew for it.
///
/// # Errors
/// [`AdvisorError::NoRows`] if no table holds a row; if an encoded layout cannot be read, or a query fits no table.
pub fn survey(job: &Job, trial: &Trial, workload: Option<(&Workload, &[DrawSpec])>) -> Result<DataFacts> {
    let comparison = compare(trial, None, Extent { packed: false, facts: true })?;
    let mut tables =
        facts_of(trial, &comparison, workload.map(|(workload, _)| demand_of(trial, &comparison, workload, None)));
    tables.retain(|facts| job.table(&facts.name).is_some());
    if let Some((workload, specs)) = workload {
        let values = value_columns(trial);
        let measured: Vec<_> = trial.tables.iter().zip(comparison.layouts.iter().map(|it| &it.measured)).collect();
        for ((query, spec), draws) in workload.queries.iter().zip(specs).zip(&trial.draws) {
            ask_tables(&measured, query, (spec, draws), &values, &mut tables)?;
        }
    }
    Ok(DataFacts { tables })
}

/// The same of the layouts of a comparison with facts, with what it knows of the answers to queries.
pub fn survey_compared(trial: &Trial, comparison: &Comparison, costed: Option<(&Workload, &Economy)>) -> DataFacts {
    let mut tables = facts_of(trial, comparison, costed.map(|(_, economy)| economy.demand.clone()));
    if let Some((workload, economy)) = costed {
        for (facts, answers) in tables.iter_mut().zip(&economy.answers) {
            let asked = workload.queries.iter().zip(answers);
            facts.queries.extend(asked.filter_map(|(query, answer)| Some(query_facts(query, answer.asked.as_ref()?))));
        }
    }
    DataFacts { tables }
}

/// The facts of each layout, with the rows that it could not encode, at the scale of a demand that declares one.
fn facts_of(trial: &Trial, comparison: &Comparison, demand: Option<Demand>) -> Vec<TableFacts> {
    let demand = demand.filter(|demand| demand.is_declared);
    let of = |(table, compared): (&TrialTable, &Compared)| {
        let mut facts = with_rejects(compared.facts.clone()?, trial);
        if let Some(demand) = &demand {
            facts.writes.declared = Some(demand.writes_per_second).filter(|_| demand.is_scaled);
            let shape = KeyShape::of(&compared.layout);
            facts.scale = Some(scaled(table, compared, &shape, comparison.axis, demand));
        }
        Some(facts)
    };
    trial.tables.iter().zip(&comparison.layouts).filter_map(of).collect()
}

/// With the rows that the layout could not encode.
fn with_rejects(mut facts: TableFacts, trial: &Trial) -> TableFacts {
    facts.rejects = trial.rejects.iter().filter_map(|reject| reject_of(reject, &facts.name)).collect();
    facts
}

/// Asks a query of every table that has its columns.
fn ask_tables(
    encoded: &[(&TrialTable, &Measured)],
    query: &Query,
    drawn: (&DrawSpec, &[Draw]),
    values: &[String],
    tables: &mut [TableFacts],
) -> Result<()> {
    let (mut failed, mut answered) = (None, false);
    for (encoded, measured) in encoded {
        let asked = match ask(encoded, measured, query, drawn, values) {
            Err(error @ AdvisorError::Predicate { .. }) => {
                failed = Some(error);
                continue;
            }
            asked => asked?,
        };
        answered = true;
        if let Some(facts) = tables.iter_mut().find(|facts| facts.name == encoded.name) {
            facts.queries.push(query_facts(query, &asked));
        }
    }
    failed.filter(|_| !answered).map_or(Ok(()), Err)
}

fn query_facts(query: &Query, asked: &Asked) -> QueryFacts {
    let reads = |need| match need {
        Need::Point => Reads::Point,
        Need::Range => Reads::Range,
        Need::Scan => Reads::Scan,
    };
    QueryFacts {
        name: query.name.clone(),
        reads: reads(asked.need),
        must: query.must.map(reads),
        columns: query.columns.clone(),
        newest: query.newest,
        atomic: query.atomic,
        rows: asked.rows.p50,
        cells: asked.cells.p50,
        values: asked.values.p50,
        ranges: asked.ranges.p50,
        aggregate: query.aggregate,
    }
}

/// A rejected row as a rule knows it; other reasons are those of the source.
fn reject_of(reject: &TrialReject, table: &str) -> Option<RejectFacts> {
    if reject.layout.as_deref() != Some(table) {
        return None;
    }
    let is = |reason: RejectReason| reject.reason == reason.to_string();
    let delimiter = RejectReason::Delimiter { literal: String::new() }.to_string();
    let kind = if is(RejectReason::KeyTooLong) {
        RejectKind::Key
    } else if is(RejectReason::QualifierTooLong) {
        RejectKind::Qualifier
    } else if is(RejectReason::CellTooLong) {
        RejectKind::Cell
    } else if reject.reason.starts_with(delimiter.trim_end_matches('`')) {
        RejectKind::Delimiter
    } else {
        return None;
    };
    let column = reject.column.clone().unwrap_or_default();
    Some(RejectFacts { kind, column, rows: reject.rows, example: reject.raw.clone() })
}
