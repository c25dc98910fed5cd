//! Facts of a trial.

use rayon::prelude::*;
use tidetable_job::Job;
use tidetable_job::workload::{Need, Query, Workload};
use tidetable_layout::error::RejectReason;

use crate::comparison::{Comparison, Economy, Extent, observe, value_columns};
use crate::cost::declared_rate;
use crate::error::{AdvisorError, Result};
use crate::facts::{DataFacts, QueryFacts, Reads, RejectFacts, RejectKind, TableFacts};
use crate::measure::Measured;
use crate::queries::{Asked, ask};
use crate::spread::Axis;
use crate::trial::{Draw, DrawSpec, Trial, TrialReject, TrialTable};

/// What the rows of a job say about those of its tables that a trial has encoded, with what queries read of them: a
/// workload, and what the trial drew for it.
///
/// # Errors
/// If an encoded layout cannot be read, or a query fits no table.
pub fn survey(job: &Job, trial: &Trial, workload: Option<(&Workload, &[DrawSpec])>) -> Result<DataFacts> {
    let Some(axis) = Axis::of_trial(trial, None) else { return Ok(DataFacts::default()) };
    let extent = Extent { facts: true, ..Extent::default() };
    let read = trial.tables.par_iter().map(|table| observe(table, axis, extent)).collect::<Result<Vec<_>>>()?;
    let (measured, facts): (Vec<Measured>, Vec<_>) = read.into_iter().map(|read| (read.measured, read.facts)).unzip();
    let mut tables: Vec<TableFacts> = facts.into_iter().flatten().map(|facts| with_rejects(facts, trial)).collect();
    tables.retain(|facts| job.table(&facts.name).is_some());
    if let Some((workload, specs)) = workload {
        let values = value_columns(trial);
        let measured: Vec<_> = trial.tables.iter().zip(&measured).collect();
        for ((query, spec), draws) in workload.queries.iter().zip(specs).zip(&trial.draws) {
            ask_tables(&measured, query, (spec, draws), &values, &mut tables)?;
        }
        declare(&mut tables, workload);
    }
    Ok(DataFacts { tables })
}

/// The same of the layouts of a comparison with facts, with what it knows of the answers to queries.
pub fn survey_compared(trial: &Trial, comparison: &Comparison, costed: Option<(&Workload, &Economy)>) -> DataFacts {
    let facts = comparison.layouts.iter().filter_map(|compared| compared.facts.clone());
    let mut tables: Vec<TableFacts> = facts.map(|facts| with_rejects(facts, trial)).collect();
    if let Some((workload, economy)) = costed {
        for (facts, answers) in tables.iter_mut().zip(&economy.answers) {
            let asked = workload.queries.iter().zip(answers);
            facts.queries.extend(asked.filter_map(|(query, answer)| Some(query_facts(query, answer.asked.as_ref()?))));
        }
        declare(&mut tables, workload);
    }
    DataFacts { tables }
}

/// With the rows that the layout could not encode.
fn with_rejects(mut facts: TableFacts, trial: &Trial) -> TableFacts {
    facts.rejects = trial.rejects.iter().filter_map(|reject| reject_of(reject, &facts.name)).collect();
    facts
}

/// Notes the rate of writes that a workload declares.
fn declare(tables: &mut [TableFacts], workload: &Workload) {
    let declared = declared_rate(&workload.scale);
    tables.iter_mut().for_each(|facts| facts.writes.declared = declared);
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
