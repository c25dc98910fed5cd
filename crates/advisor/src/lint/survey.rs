//! Facts of a trial: each layout is read once, cell by cell.

use rayon::prelude::*;
use tidetable_layout::error::RejectReason;
use tidetable_runner::Job;
use tidetable_runner::workload::{Need, Query, Workload};

use crate::comparison::{Comparison, Economy, value_columns};
use crate::cost::declared_rate;
use crate::error::{AdvisorError, Result};
use crate::measure::{Measured, measure};
use crate::queries::{Asked, ask};
use crate::spread::{Axis, HotRow, Spread, WriteLog, spread};
use crate::trial::{Draw, DrawSpec, Overwritten, Trial, TrialReject, TrialTable};

use super::facts::{DataFacts, QueryFacts, Reads, RejectFacts, RejectKind, TableFacts, WriteFacts};
use super::visit::Survey;

/// What the rows of a job say about those of its tables that a trial has encoded, with what queries read of them: a
/// workload, and what the trial drew for it.
///
/// # Errors
/// If an encoded layout cannot be read, or a query fits no table.
pub fn survey(job: &Job, trial: &Trial, workload: Option<(&Workload, &[DrawSpec])>) -> Result<DataFacts> {
    let Some(axis) = Axis::of_trial(trial, None) else { return Ok(DataFacts::default()) };
    let mut tables = Vec::with_capacity(trial.tables.len());
    for encoded in trial.tables.iter().filter(|encoded| job.table(&encoded.name).is_some()) {
        let spread = spread(&WriteLog::of_table(encoded, axis)?);
        tables.push(survey_table(encoded, axis, &trial.rejects, &spread, encoded.overwritten()?)?);
    }
    if let Some((workload, specs)) = workload {
        let values = value_columns(trial);
        let measured = trial.tables.iter().map(|table| measure(table, false)).collect::<Result<Vec<_>>>()?;
        let measured: Vec<_> = trial.tables.iter().zip(&measured).collect();
        for ((query, spec), draws) in workload.queries.iter().zip(specs).zip(&trial.draws) {
            ask_tables(&measured, query, (spec, draws), &values, &mut tables)?;
        }
        declare(&mut tables, workload);
    }
    Ok(DataFacts { tables })
}

/// The same of the layouts of a comparison, with what it knows of their writes and of the answers to queries.
///
/// # Errors
/// If an encoded layout cannot be read.
pub fn survey_compared(
    trial: &Trial,
    comparison: &Comparison,
    costed: Option<(&Workload, &Economy)>,
) -> Result<DataFacts> {
    let compared = trial.tables.par_iter().zip(&comparison.layouts);
    let facts = compared.map(|(encoded, compared)| {
        let (spread, overwritten) = (&compared.spread, compared.measured.overwritten);
        survey_table(encoded, comparison.axis, &trial.rejects, spread, overwritten)
    });
    let mut tables: Vec<TableFacts> = facts.collect::<Result<_>>()?;
    if let Some((workload, economy)) = costed {
        for (facts, answers) in tables.iter_mut().zip(&economy.answers) {
            let asked = workload.queries.iter().zip(answers);
            facts.queries.extend(asked.filter_map(|(query, answer)| Some(query_facts(query, answer.asked.as_ref()?))));
        }
        declare(&mut tables, workload);
    }
    Ok(DataFacts { tables })
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

fn survey_table(
    encoded: &TrialTable,
    axis: Axis,
    rejects: &[TrialReject],
    spread: &Spread,
    overwritten: Overwritten,
) -> Result<TableFacts> {
    let mut survey = Survey::new(encoded, axis);
    encoded.visit(&mut survey)?;
    let mut facts = survey.finish();
    facts.overwritten = overwritten;
    facts.rejects = rejects.iter().filter_map(|reject| reject_of(reject, &encoded.name)).collect();
    facts.writes = writes(spread, axis, encoded)?;
    Ok(facts)
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

fn writes(spread: &Spread, axis: Axis, encoded: &TrialTable) -> Result<WriteFacts> {
    let mut totals: Vec<u64> = spread.totals.iter().copied().filter(|total| *total > 0).collect();
    totals.sort_unstable();
    let rank = |per_cent: usize| {
        let rank = (totals.len() * per_cent).div_ceil(100).max(1);
        totals.get(rank - 1).copied().unwrap_or_default()
    };
    let (mut hottest_key, mut at) = (Vec::new(), 0);
    encoded.each_key(|key, _| {
        if spread.busiest_row.is_some_and(|HotRow { rank, .. }| rank == at) {
            hottest_key.extend_from_slice(key);
        }
        at += 1;
        Ok(())
    })?;
    Ok(WriteFacts {
        slices: totals.len() as u64,
        cut_slices: spread.few.by_slice.len() as u64,
        top_share: spread.few.quantile(950),
        hottest_rate: spread.busiest_row.map_or(0, |row| row.rows) as f64 / axis.width.max(1) as f64,
        hottest_key,
        median: rank(50),
        high: rank(95),
        declared: None,
    })
}
