//! The queries of a workload on all layouts of a trial, and what that costs.

use tidetable_job::workload::{Need, Workload};

use crate::comparison::compare::Comparison;
use crate::comparison::compared::Compared;
use crate::comparison::scaled::{is_sequential, scaled};
use crate::cost::{Cost, Costing, Prices, QueryLoad, Score, Unservable, cost, score, winner};
use crate::error::{AdvisorError, Result};
use crate::facts::ScaleFacts;
use crate::growth::{Demand, KeyShape, SourceRows};
use crate::queries::{Asked, Drawn, ask};
use crate::trial::{DrawSpec, Trial, TrialTable};

/// By what writes, and the time that rows are kept, are multiplied to see whether the best layout stays the best.
const MORE: f64 = 10.0;
/// By what weights are multiplied to see whether the best layout stays the best, and that in words.
const CHANGES: [(f64, &str); 2] = [(10.0, "asked 10 times as often"), (0.0, "not asked")];

/// What a query of the workload reads of a layout, or why the layout does not answer it.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Name of the query in the file of queries.
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
    /// For each layout, its loads, nodes and prices, and what keeps it from being chosen.
    pub costs: Vec<Cost>,
    /// The rows of each layout at scale.
    pub scales: Vec<ScaleFacts>,
    /// For each layout, its place by these costs.
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
    /// For each query of the workload, its load on a layout; `None` for one that the layout does not answer.
    pub fn loads(&self, layout: usize) -> Vec<Option<QueryLoad>> {
        let (Some(cost), Some(answers)) = (self.costs.get(layout), self.answers.get(layout)) else { return Vec::new() };
        // Costs are of the answered queries alone.
        let mut loads = cost.queries.iter().copied();
        answers.iter().map(|answer| answer.asked.as_ref().and_then(|_| loads.next())).collect()
    }

    /// The same, with layouts of which so many findings refuse them: these come last.
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
    economy_at(demand_of(trial, comparison, workload, None), trial, comparison, workload, specs, prices)
}

/// The economy of a trial that holds a part of the rows, for the demand of all of them; see [`economy`].
///
/// # Errors
/// As [`economy`].
pub(crate) fn economy_at(
    demand: Demand,
    trial: &Trial,
    comparison: &Comparison,
    workload: &Workload,
    specs: &[DrawSpec],
    prices: &Prices,
) -> Result<Economy> {
    let answers = ask_all(trial, comparison, workload, specs)?;

    let shaped = comparison.layouts.iter().map(|compared| {
        let shape = KeyShape::of(&compared.layout);
        Shaped { is_sequential: is_sequential(&shape, compared), shape }
    });
    let given = Given { trial, comparison, workload, prices, shaped: &shaped.collect::<Vec<_>>() };
    let costs = given.costs(&answers, &demand);
    let scales = given.scales(&demand);

    let mut changed = Vec::new();
    // A workload without any query says nothing of a layout.
    for (weight, change) in CHANGES.into_iter().filter(|(weight, _)| *weight > 0.0 || workload.queries.len() > 1) {
        for (at, query) in workload.queries.iter().enumerate() {
            let mut answers = answers.clone();
            for answer in answers.iter_mut().filter_map(|answers| answers.get_mut(at)?.asked.as_mut()) {
                answer.per_second *= weight;
            }
            changed.push((format!("{} were {change}", query.name), given.costs(&answers, &demand)));
        }
    }
    changed.push(("10 times as much were written".to_owned(), given.costs(&answers, &demand.writing(MORE))));
    changed.push(("rows were kept 10 times as long".to_owned(), given.costs(&answers, &demand.keeping(MORE))));

    let scores = score(&costs, changed.iter().map(|(_, costs)| costs.as_slice()));
    Ok(Economy { demand, answers, costs, scales, scores, changed })
}

/// For each layout, its answers to the queries in their order. A query that no layout can answer is an error.
fn ask_all(
    trial: &Trial,
    comparison: &Comparison,
    workload: &Workload,
    specs: &[DrawSpec],
) -> Result<Vec<Vec<Answer>>> {
    let values = value_columns(trial);
    let mut answers: Vec<Vec<Answer>> = trial.tables.iter().map(|_| Vec::new()).collect();
    for ((query, spec), draws) in workload.queries.iter().zip(specs).zip(&trial.draws) {
        let (mut failed, mut is_answered) = (None, false);
        for ((table, compared), answers) in trial.tables.iter().zip(&comparison.layouts).zip(&mut answers) {
            let drawn = Drawn { spec, draws };
            let (asked, problem) = match ask(table, &compared.measured, query, drawn, &values) {
                Ok(asked) => {
                    let worse = query.must.filter(|must| asked.need > *must);
                    let problem =
                        worse.map(|must| format!("it must be a {}, and is a {}", must.name(), asked.need.name()));
                    is_answered = true;
                    (Some(asked), problem)
                }
                Err(error @ AdvisorError::Predicate { .. }) => {
                    let problem = error.to_string();
                    failed = Some(error);
                    (None, Some(problem))
                }
                Err(error) => return Err(error),
            };
            answers.push(Answer { query: query.name.clone(), asked, problem });
        }

        if let Some(error) = failed.filter(|_| !is_answered) {
            return Err(error);
        }
        let reference = reference(trial, comparison, &answers);
        compare_with(&reference, trial, &mut answers);
    }
    Ok(answers)
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

/// How much will be written and kept of the rows of a trial. `whole` are all rows of its source, where it holds a part of their
/// time.
pub(crate) fn demand_of(
    trial: &Trial,
    comparison: &Comparison,
    workload: &Workload,
    whole: Option<SourceRows>,
) -> Demand {
    let rows = comparison.layouts.iter().map(|it| it.measured.source_rows as f64 * it.measured.factor);
    let seconds = trial.seconds().unwrap_or_default();
    let measured = SourceRows { rows: rows.fold(0.0, f64::max), seconds };
    Demand::of_part(workload, &trial.profile, whole.unwrap_or(measured), measured)
}

/// The values that the last query returns of the source, for each draw, and whether that is certain.
struct Reference {
    by_draw: Vec<u64>,
    is_certain: bool,
}

/// What layouts return that lost no source row; the most that any returns if all did. Those that keep rows that were sent
/// again come after those that do not.
fn reference(trial: &Trial, comparison: &Comparison, answers: &[Vec<Answer>]) -> Reference {
    let (mut whole_once, mut whole, mut any) = (Vec::new(), Vec::new(), Vec::new());
    for ((table, compared), answers) in trial.tables.iter().zip(&comparison.layouts).zip(answers) {
        let Some(asked) = answers.last().and_then(|answer| answer.asked.as_ref()) else { continue };
        raise(&mut any, &asked.by_draw);
        if !is_whole(table, compared) {
            continue;
        }
        raise(&mut whole, &asked.by_draw);
        if !table.keeps_duplicates() {
            raise(&mut whole_once, &asked.by_draw);
        }
    }

    match (whole_once.is_empty(), whole.is_empty()) {
        (false, _) => Reference { by_draw: whole_once, is_certain: true },
        (true, false) => Reference { by_draw: whole, is_certain: true },
        (true, true) => Reference { by_draw: any, is_certain: false },
    }
}

/// Whether a layout lost no source row. Equal rows that were sent again lose nothing to each other.
fn is_whole(table: &TrialTable, compared: &Compared) -> bool {
    table.takes_all && compared.measured.overwritten.rows <= table.repeated.unwrap_or(0)
}

/// Raises each number of `most` to that of `values` at its place, and appends those that it does not have.
fn raise(most: &mut Vec<u64>, values: &[u64]) {
    most.resize(most.len().max(values.len()), 0);
    most.iter_mut().zip(values).for_each(|(most, value)| *most = (*most).max(*value));
}

/// Notes answers to the last query that differ from the source, in the first draw that does.
fn compare_with(reference: &Reference, trial: &Trial, answers: &mut [Vec<Answer>]) {
    for (table, answers) in trial.tables.iter().zip(answers) {
        let Some(answer) = answers.last_mut().filter(|answer| answer.problem.is_none()) else { continue };
        let Some(asked) = &answer.asked else { continue };
        let mut both = asked.by_draw.iter().zip(&reference.by_draw);
        let differs = both.find(|(own, source)| own != source && !(own > source && table.keeps_duplicates()));
        let least = if reference.is_certain { "" } else { "at least " };
        answer.problem =
            differs.map(|(own, source)| format!("it returns {own} values of {least}{source} in the source"));
    }
}

/// What costs follow from, besides answers and demand.
#[derive(Clone, Copy)]
struct Given<'a> {
    trial: &'a Trial,
    comparison: &'a Comparison,
    workload: &'a Workload,
    prices: &'a Prices,
    /// For each layout; no workload changes it.
    shaped: &'a [Shaped],
}

/// The row key of a layout.
struct Shaped {
    shape: KeyShape,
    is_sequential: bool,
}

impl Given<'_> {
    /// The rows of each layout at scale.
    fn scales(&self, demand: &Demand) -> Vec<ScaleFacts> {
        let layouts = self.trial.tables.iter().zip(&self.comparison.layouts).zip(self.shaped);
        let axis = self.comparison.axis;
        layouts.map(|((table, compared), shaped)| scaled(table, compared, &shaped.shape, axis, demand)).collect()
    }

    /// The cost of each layout.
    fn costs(&self, answers: &[Vec<Answer>], demand: &Demand) -> Vec<Cost> {
        let layouts = self.comparison.layouts.iter().zip(self.shaped).zip(self.scales(demand)).zip(answers);
        layouts
            .map(|(((compared, shaped), scale), answers)| {
                let asked: Vec<Asked> = answers.iter().filter_map(|answer| answer.asked.clone()).collect();
                let costing = Costing {
                    measured: &compared.measured,
                    shape: &shaped.shape,
                    scale: &scale,
                    is_sequential: shaped.is_sequential,
                    asked: &asked,
                };
                self.cost(costing, answers, demand)
            })
            .collect()
    }

    fn cost(&self, costing: Costing<'_>, answers: &[Answer], demand: &Demand) -> Cost {
        let mut cost = cost(costing, demand, self.workload, self.prices);

        let lacks = answers.iter().find(|answer| answer.asked.is_none());
        let worse = answers.iter().find(|answer| {
            let query = self.workload.queries.iter().find(|query| query.name == answer.query);
            let must = query.and_then(|query| query.must).unwrap_or(Need::Scan);
            answer.asked.as_ref().is_some_and(|asked| asked.need > must)
        });
        if let Some(answer) = lacks.or(worse) {
            let problem = answer.problem.clone().unwrap_or_default();
            cost.unservable = Some(Unservable::Query { query: answer.query.clone(), problem });
        }
        cost
    }
}
