//! Facts of a trial.

use tidetable_job::Job;
use tidetable_job::workload::{Need, Query, Workload};
use tidetable_layout::error::RejectReason;

use crate::comparison::{Comparison, Economy, Extent, compare, demand_of, scaled, value_columns};
use crate::error::{AdvisorError, Result};
use crate::facts::{DataFacts, QueryFacts, Reads, RejectFacts, RejectKind, TableFacts};
use crate::growth::{Demand, KeyShape};
use crate::measure::Measured;
use crate::queries::{Asked, Drawn, ask};
use crate::trial::{DrawSpec, Trial, TrialReject, TrialTable};

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
            ask_tables(&measured, query, Drawn { spec, draws }, &values, &mut tables)?;
        }
    }
    Ok(DataFacts { tables })
}

/// The facts of the layouts of a comparison that has them, with what it knows of the answers to queries.
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
    let mut all = Vec::new();
    for (table, compared) in trial.tables.iter().zip(&comparison.layouts) {
        let Some(facts) = &compared.facts else { continue };
        let mut facts = with_rejects(facts.clone(), trial);
        if let Some(demand) = &demand {
            facts.writes.declared = Some(demand.writes_per_second).filter(|_| demand.is_scaled);
            let shape = KeyShape::of(&compared.layout);
            facts.scale = Some(scaled(table, compared, &shape, comparison.axis, demand));
        }
        all.push(facts);
    }
    all
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
    drawn: Drawn<'_>,
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
    QueryFacts {
        name: query.name.clone(),
        reads: asked.need.into(),
        must: query.must.map(Reads::from),
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

impl From<Need> for Reads {
    fn from(need: Need) -> Self {
        match need {
            Need::Point => Self::Point,
            Need::Range => Self::Range,
            Need::Scan => Self::Scan,
        }
    }
}

/// A rejected row as a rule knows it; other reasons are those of the source.
fn reject_of(reject: &TrialReject, table: &str) -> Option<RejectFacts> {
    if reject.layout.as_deref() != Some(table) {
        return None;
    }
    let limits = [
        (RejectReason::KeyTooLong, RejectKind::Key),
        (RejectReason::QualifierTooLong, RejectKind::Qualifier),
        (RejectReason::CellTooLong, RejectKind::Cell),
    ];
    let limit = limits.into_iter().find(|(reason, _)| reject.reason == reason.to_string()).map(|(_, kind)| kind);
    let delimiter = RejectReason::Delimiter { literal: String::new() }.to_string();
    let holds_delimiter = reject.reason.starts_with(delimiter.trim_end_matches('`'));
    let kind = limit.or(holds_delimiter.then_some(RejectKind::Delimiter))?;

    let column = reject.column.clone().unwrap_or_default();
    Some(RejectFacts { kind, column, rows: reject.rows, example: reject.raw.clone() })
}
