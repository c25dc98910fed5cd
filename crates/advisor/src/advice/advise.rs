//! From a job and a workload to layouts, measured and ranked.

use tidetable_job::JobError;
use tidetable_job::workload::Workload;
use tidetable_job::{Job, Project};
use tidetable_layout::SourceSchema;
use tidetable_runner::Stop;
use tidetable_source::Storage;

use crate::advice::generate::{Proposed, job_with, proposals};
use crate::advice::pairs::{Pair, pairs};
use crate::comparison::{Comparison, Economy, Extent, compare, economy};
use crate::cost::Prices;
use crate::error::{AdvisorError, Result};
use crate::lint::{Severity, lint_apart};
use crate::queries::draw_specs;
use crate::trial::{Candidate, Sample, Trial, TrialOptions};

/// Layouts that are measured in full.
const FULL: usize = 5;
/// Source rows that a sample must have; with fewer, all rows are measured at once.
const ENOUGH: u64 = 10_000;

/// What layouts are proposed for.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// Its directory is that of relative paths.
    pub project: &'a Project,
    /// A job that reads the inputs.
    pub job: &'a Job,
    /// Its storage.
    pub storage: &'a Storage,
    /// What the tables will be asked.
    pub workload: &'a Workload,
    /// Prices and capacities.
    pub prices: &'a Prices,
    /// The part of the entities by which all candidates are ranked.
    pub sample: Sample,
    /// Whether to look for pairs of tables.
    pub with_pairs: bool,
    /// Whether to stop.
    pub stop: &'a Stop,
}

/// Layouts for a workload.
#[derive(Debug, Clone)]
pub struct Advice {
    /// Candidates that were ranked, the best first.
    pub candidates: Vec<Proposed>,
    /// Whether that was done on a sample.
    pub sampled: bool,
    /// The best of them, measured in full.
    pub comparison: Comparison,
    /// What they cost.
    pub economy: Economy,
    /// Pairs of these that cost less than the best alone, cheapest first.
    pub pairs: Vec<Pair>,
    /// Columns of the source.
    schema: SourceSchema,
    /// Those that make the entity.
    entity: Vec<String>,
}

impl Advice {
    /// Index of the best single layout.
    pub fn best(&self) -> usize {
        self.economy.scores.iter().position(|score| score.place == 1).unwrap_or_default()
    }

    /// The names of the layouts that cost least: two, if a pair does.
    pub fn winners(&self) -> Vec<String> {
        let layouts = match self.pairs.first() {
            Some(pair) => vec![pair.layouts.0, pair.layouts.1],
            None => vec![self.best()],
        };
        let name = |at: usize| self.comparison.layouts.get(at).map(|layout| layout.measured.layout.clone());
        layouts.into_iter().filter_map(name).collect()
    }
}

impl Advice {
    /// The job file `text` under another name, with the winners instead of its tables.
    ///
    /// # Errors
    /// If `text` is no TOML.
    pub fn job_of_winners(&self, text: &str, name: &str) -> Result<String> {
        let winners = self.winners();
        let chosen: Vec<&Proposed> = self.candidates.iter().filter(|it| winners.contains(&it.name)).collect();
        job_with(text, name, &self.schema, &self.entity, &chosen)
    }
}

/// Generates candidates for the first table of the job, ranks them on a sample, and measures the best in full.
///
/// # Errors
/// If the job has no table that is loaded from files, no layout can be made for it, or measuring fails.
pub fn advise(asking: Asking<'_>) -> Result<Advice> {
    let first = Candidate::of_job(asking.job, &[])?.remove(0);
    let entity = first.key_columns();
    let compiles = |proposed: &Proposed| {
        let text = job_with(&asking.job.text, &asking.job.name, &first.schema, &entity, &[proposed])?;
        match load(asking, &text) {
            Ok(_) => Ok(true),
            // What the templates or types of the columns do not allow is no candidate.
            Err(AdvisorError::Job(JobError::File(_))) => Ok(false),
            Err(error) => Err(error),
        }
    };
    let mut candidates = Vec::new();
    for proposed in proposals(&first.schema, &entity) {
        if compiles(&proposed)? {
            candidates.push(proposed);
        }
    }
    if candidates.is_empty() {
        return Err(AdvisorError::NothingToMeasure { job: asking.job.name.clone() });
    }
    let text_of = |candidates: &[Proposed]| {
        let all: Vec<&Proposed> = candidates.iter().collect();
        job_with(&asking.job.text, &asking.job.name, &first.schema, &entity, &all)
    };
    let mut sampled = true;
    let mut ranked = match measured(asking, &text_of(&candidates)?, Some(asking.sample)) {
        Ok(found) if rows(&found.0) >= ENOUGH => found,
        Ok(_) | Err(AdvisorError::NoRows { .. }) => {
            sampled = false;
            measured(asking, &text_of(&candidates)?, None)?
        }
        Err(error) => return Err(error),
    };
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    // A file of tables is read in the order of their names.
    candidates.sort_by(|a, b| a.name.cmp(&b.name));
    order.sort_by_key(|at| place(&ranked, candidates.get(*at)));
    let candidates: Vec<Proposed> = order.into_iter().filter_map(|at| candidates.get(at).cloned()).collect();
    let best = candidates.get(..FULL.min(candidates.len())).unwrap_or_default();
    let text = text_of(best)?;
    ranked = if sampled || candidates.len() > FULL { measured(asking, &text, None)? } else { ranked };
    let (comparison, economy) = ranked;
    let pairs =
        if asking.with_pairs { pairs(&comparison, &economy, asking.workload, asking.prices) } else { Vec::new() };
    Ok(Advice { candidates, sampled, comparison, economy, pairs, schema: first.schema, entity })
}

fn rows(comparison: &Comparison) -> u64 {
    comparison.layouts.iter().map(|layout| layout.measured.source_rows).max().unwrap_or_default()
}

/// The place of a layout among those measured.
fn place((comparison, economy): &(Comparison, Economy), proposed: Option<&Proposed>) -> usize {
    let at = comparison.layouts.iter().position(|it| proposed.is_some_and(|own| own.name == it.measured.layout));
    at.and_then(|at| economy.scores.get(at)).map_or(usize::MAX, |score| score.place)
}

/// The tables of a job file, measured.
fn measured(asking: Asking<'_>, text: &str, sample: Option<Sample>) -> Result<(Comparison, Economy)> {
    let job = load(asking, text)?;
    let candidates = Candidate::of_job(&job, &[])?;
    let queries = &asking.workload.queries;
    let specs = candidates.first().map_or(Ok(Vec::new()), |first| draw_specs(queries, &first.schema))?;
    let options = TrialOptions { sample, draws: specs.clone(), stop: asking.stop.clone(), ..TrialOptions::default() };
    let trial = Trial::load(&job, asking.storage, &candidates, &options)?;
    let comparison = compare(&trial, None, Extent::ALL)?;
    let economy = economy(&trial, &comparison, asking.workload, &specs, asking.prices)?;
    let reports = lint_apart(&job, (&job.tables, &job.text), None, asking.prices);
    let errors: Vec<usize> = reports.iter().map(|report| report.count(Severity::Error)).collect();
    Ok((comparison, economy.with_errors(&errors)))
}

/// A job from its text: job files are known by the names of their directories.
fn load(asking: Asking<'_>, text: &str) -> Result<Job> {
    let failed = |source| AdvisorError::Temporary { path: std::env::temp_dir(), source };
    let folder = tempfile::Builder::new().prefix("tidetable-advice-").tempdir().map_err(failed)?;
    let own = folder.path().join(&asking.job.name);
    std::fs::create_dir(&own).map_err(failed)?;
    let path = own.join("job.toml");
    std::fs::write(&path, text).map_err(failed)?;
    Ok(Job::load(asking.project, &path.display().to_string())?)
}
