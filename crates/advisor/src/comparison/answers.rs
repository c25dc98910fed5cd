//! The queries of a workload on all layouts of a trial, and what that costs.

use tidetable_job::workload::{Need, Workload};

use crate::comparison::compare::Comparison;
use crate::comparison::compared::Compared;
use crate::cost::{Cost, Demand, Prices, Ranges, Score, Unservable, cost, score, winner};
use crate::error::{AdvisorError, Result};
use crate::queries::{Asked, ask};
use crate::trial::{DrawSpec, Trial};

/// By what weights are multiplied to see whether the best layout stays the best, and that in words.
const CHANGES: [(f64, &str); 2] = [(10.0, "asked 10 times as often"), (0.0, "not asked")];

/// A query on a layout.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The query.
    pub query: String,
    /// What it reads; `None` if the layout cannot answer it.
    pub asked: Option<Asked>,
    /// Why not, or what is wrong with the answer.
    pub problem: Option<String>,
}

/// What a workload means for the layouts of a comparison.
#[derive(Debug, Clone)]
pub struct Economy {
    /// How much will be written and kept.
    pub demand: Demand,
    /// For each layout, its answers in the order of the queries.
    pub answers: Vec<Vec<Answer>>,
    /// For each layout.
    pub costs: Vec<Cost>,
    /// For each layout.
    pub scores: Vec<Score>,
    /// Changed workloads, in words, each with the costs of all layouts.
    changed: Vec<(String, Vec<Cost>)>,
}

/// A changed workload in which another layout is the best.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The change, as in `if .. were so`.
    pub change: String,
    /// Index of the layout that is the best then.
    pub layout: usize,
}

impl Economy {
    /// The same, with layouts that break so many rules of severity `error`: these come last.
    #[must_use]
    pub fn with_errors(mut self, errors: &[usize]) -> Self {
        let changed = self.changed.iter_mut().map(|(_, costs)| costs);
        for costs in std::iter::once(&mut self.costs).chain(changed) {
            costs.iter_mut().zip(errors).for_each(|(cost, errors)| cost.errors = *errors);
        }
        self.scores = score(&self.costs, self.changed.iter().map(|(_, costs)| costs.as_slice()));
        self
    }

    /// The changes of the workload that would turn the answer.
    pub fn turns(&self) -> Vec<Turn> {
        let best = winner(&self.costs);
        let turned = self.changed.iter().filter_map(|(change, costs)| {
            let layout = winner(costs).filter(|layout| Some(*layout) != best)?;
            Some(Turn { change: change.clone(), layout })
        });
        turned.collect()
    }
}

/// Asks the queries of `workload`, with the rows that the trial drew by `specs`, and estimates what each layout costs.
///
/// # Errors
/// If no layout can answer a query, or reading fails.
pub fn economy(
    trial: &Trial,
    comparison: &Comparison,
    workload: &Workload,
    specs: &[DrawSpec],
    prices: &Prices,
) -> Result<Economy> {
    let values = value_columns(trial);
    let mut answers: Vec<Vec<Answer>> = trial.tables.iter().map(|_| Vec::new()).collect();
    for ((query, spec), draws) in workload.queries.iter().zip(specs).zip(&trial.draws) {
        let mut failed = None;
        for ((table, compared), answers) in trial.tables.iter().zip(&comparison.layouts).zip(&mut answers) {
            let answer = match ask(table, &compared.measured, query, (spec, draws), &values) {
                Ok(asked) => {
                    let worse = query.must.filter(|must| asked.need > *must);
                    let problem =
                        worse.map(|must| format!("it must be a {}, and is a {}", must.name(), asked.need.name()));
                    Answer { query: query.name.clone(), asked: Some(asked), problem }
                }
                Err(error @ AdvisorError::Predicate { .. }) => {
                    let problem = Some(error.to_string());
                    failed = Some(error);
                    Answer { query: query.name.clone(), asked: None, problem }
                }
                Err(error) => return Err(error),
            };
            answers.push(answer);
        }
        let last = || answers.iter().filter_map(|answers| answers.last());
        if let Some(error) = failed.filter(|_| last().all(|answer| answer.asked.is_none())) {
            return Err(error);
        }
        agree(&mut answers);
    }
    let rows = comparison.layouts.iter().map(|it| it.measured.source_rows as f64 * it.measured.factor);
    let seconds = comparison.layouts.iter().filter_map(|it| it.measured.seconds);
    let seconds = seconds.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or_default();
    let demand = Demand::new(workload, rows.fold(0.0, f64::max), seconds);
    let costs = costs_of(comparison, &answers, &demand, Ranges::ByNodes, (workload, prices));
    let mut changed = Vec::new();
    for (weight, change) in CHANGES {
        for (at, query) in workload.queries.iter().enumerate() {
            let mut answers = answers.clone();
            for answer in answers.iter_mut().filter_map(|answers| answers.get_mut(at)?.asked.as_mut()) {
                answer.per_second *= weight;
            }
            let costs = costs_of(comparison, &answers, &demand, Ranges::ByNodes, (workload, prices));
            changed.push((format!("{} were {change}", query.name), costs));
        }
    }
    let writes = Demand { writes_per_second: demand.writes_per_second * 10.0, ..demand };
    let of = |demand, ranges| costs_of(comparison, &answers, demand, ranges, (workload, prices));
    changed.push(("10 times as much were written".to_owned(), of(&writes, Ranges::ByNodes)));
    changed.push(("keys were cut into 100 ranges".to_owned(), of(&demand, Ranges::Many)));
    let scores = score(&costs, changed.iter().map(|(_, costs)| costs.as_slice()));
    Ok(Economy { demand, answers, costs, scores, changed })
}

/// Columns of the source that are values: neither times nor parts of a row key.
pub(crate) fn value_columns(trial: &Trial) -> Vec<String> {
    let Some(first) = trial.tables.first() else { return Vec::new() };
    let keys: Vec<String> = trial.tables.iter().flat_map(|table| table.key_columns()).collect();
    let source = first.layout.source();
    let fields =
        source.fields.iter().enumerate().filter(|(at, field)| *at != source.time && !keys.contains(&field.name));
    fields.map(|(_, field)| field.name.clone()).collect()
}

/// Notes answers to the last query that differ from those of the first layout, in the first draw that does.
fn agree(answers: &mut [Vec<Answer>]) {
    let values = |answers: &Vec<Answer>| Some(answers.last()?.asked.as_ref()?.by_draw.clone());
    let Some(first) = answers.iter().find_map(values) else { return };
    for answers in answers {
        let differs = values(answers).and_then(|own| own.into_iter().zip(&first).find(|(own, first)| own != *first));
        if let (Some((own, first)), Some(answer)) = (differs, answers.last_mut())
            && answer.problem.is_none()
        {
            answer.problem = Some(format!("it returns {own} values where the first layout returns {first}"));
        }
    }
}

fn costs_of(
    comparison: &Comparison,
    answers: &[Vec<Answer>],
    demand: &Demand,
    ranges: Ranges,
    (workload, prices): (&Workload, &Prices),
) -> Vec<Cost> {
    let of = |(compared, answers): (&Compared, &Vec<Answer>)| {
        let asked: Vec<Asked> = answers.iter().filter_map(|answer| answer.asked.clone()).collect();
        let mut cost = cost((&compared.measured, &compared.spread, &asked), demand, ranges, workload, prices);
        let lacks = answers.iter().find(|answer| answer.asked.is_none());
        let worse = answers.iter().find(|answer| {
            let query = workload.queries.iter().find(|query| query.name == answer.query);
            let must = query.and_then(|query| query.must).unwrap_or(Need::Scan);
            answer.asked.as_ref().is_some_and(|asked| asked.need > must)
        });
        if let Some(answer) = lacks.or(worse) {
            let problem = answer.problem.clone().unwrap_or_default();
            cost.unservable = Some(Unservable::Query { query: answer.query.clone(), problem });
        }
        cost
    };
    comparison.layouts.iter().zip(answers).map(of).collect()
}
