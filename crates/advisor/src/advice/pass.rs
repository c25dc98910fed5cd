//! Passes over the inputs of a job, in which candidates are measured.

use std::ops::Range;

use tidetable_job::workload::Workload;
use tidetable_job::{Job, JobError, Project};
use tidetable_layout::SourceSchema;
use tidetable_runner::Stop;
use tidetable_source::Storage;

use crate::advice::generate::Proposed;
use crate::advice::job_text::job_with;
use crate::advice::keys::Columns;
use crate::advice::pairs::{Pairing, Second, pairs};
use crate::advice::refused::Refused;
use crate::comparison::{Comparison, Economy, Extent, compare, demand_of, economy_at};
use crate::cost::Prices;
use crate::error::{AdvisorError, Result};
use crate::growth::SourceRows;
use crate::lint::{lint_apart, survey_compared};
use crate::trial::{Candidate, Draw, DrawSpec, Kinds, Profile, Sample, Trial, TrialOptions};

/// Entities that a sample must have; of fewer, a part of the time is taken.
const FEWEST_ENTITIES: f64 = 10.0;
/// Draws by which it is found out what a query fixes.
const KNOWN_DRAWS: usize = 20;

/// What layouts are proposed for: the inputs of a job, and a workload with its prices.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// Its directory is that of relative paths.
    pub project: &'a Project,
    /// A job that reads the inputs.
    pub job: &'a Job,
    /// The storage of the job's project, from which inputs are read.
    pub storage: &'a Storage,
    /// What the tables will be asked.
    pub workload: &'a Workload,
    /// The price list by which layouts are ranked, with the capacities of a node and the quotas.
    pub prices: &'a Prices,
    /// The part of the entities by which all candidates are ranked, at most.
    pub sample: Sample,
    /// Tables that are wanted at most.
    pub most_tables: usize,
    /// Asked between pieces of input; a pass that is stopped ends with an error.
    pub stop: &'a Stop,
}

/// The part of the source rows that a pass measures; all of them by default.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Part {
    sample: Option<Sample>,
    window: Option<Range<i64>>,
}

impl Part {
    /// A part of about `most` rows: of the entities if there are enough, else of the time.
    pub(super) fn new(profile: &Profile, entities: f64, most: f64) -> Self {
        let fraction = most / profile.rows.max(1) as f64;
        let Some((first, last)) = profile.times.filter(|_| fraction < 1.0) else { return Self::default() };
        if entities * fraction >= FEWEST_ENTITIES {
            return Self { sample: Some(Sample { fraction }), window: None };
        }
        let length = ((last - first) as f64 * fraction) as i64;
        Self { sample: None, window: Some(first..first + length + 1) }
    }
}

/// What a pass with the first layout of the job finds of its source.
pub(super) struct Known {
    pub(super) profile: Profile,
    pub(super) draws: Vec<Vec<Draw>>,
    /// All of its rows.
    pub(super) rows: SourceRows,
    pub(super) kinds: Option<Kinds>,
}

/// Candidates that were measured, with their costs; of those that rules refuse, why.
pub(super) struct Found {
    pub(super) comparison: Comparison,
    pub(super) economy: Economy,
    pub(super) refused: Vec<Refused>,
}

impl Found {
    pub(super) fn pairing<'a>(&'a self, asking: Asking<'a>, columns: &'a Columns<'a>) -> Pairing<'a> {
        let (workload, prices) = (asking.workload, asking.prices);
        Pairing { comparison: &self.comparison, economy: &self.economy, workload, prices, columns }
    }

    /// Whether a layout serves the workload, or a pair if two tables are wanted.
    pub(super) fn is_served(&self, asking: Asking<'_>, columns: &Columns<'_>) -> bool {
        let is_single = self.economy.costs.iter().any(|cost| cost.standing().is_none());
        is_single || (asking.most_tables > 1 && !pairs(self.pairing(asking, columns)).found.is_empty())
    }

    /// Source rows of the layout that took most of them.
    pub(super) fn source_rows(&self) -> u64 {
        self.comparison.layouts.iter().map(|layout| layout.measured.source_rows).max().unwrap_or_default()
    }

    /// Indexes of all layouts: those of the best pair and the best alone first, then for each query the one that reads least for
    /// it, then by place.
    pub(super) fn finalists(&self, asking: Asking<'_>, columns: &Columns<'_>) -> Vec<usize> {
        let scores = &self.economy.scores;
        let mut by_place: Vec<usize> = (0..scores.len()).collect();
        by_place.sort_by_key(|at| scores.get(*at).map_or(usize::MAX, |score| score.place));

        let mut order: Vec<usize> = Vec::new();
        if let Some(pair) = pairs(self.pairing(asking, columns)).found.first().filter(|_| asking.most_tables > 1) {
            order.push(pair.first);
            order.extend(if let Second::Layout(at) = pair.second { Some(at) } else { None });
        }
        order.extend(by_place.first());

        let mut fit = by_place.clone();
        fit.retain(|at| self.economy.costs.get(*at).is_some_and(|cost| cost.errors == 0));
        let loads: Vec<_> = fit.iter().map(|at| (*at, self.economy.loads(*at))).collect();
        for query in 0..asking.workload.queries.len() {
            let mut least: Option<(usize, f64)> = None;
            for (at, loads) in &loads {
                let load = loads.get(query).copied().flatten();
                let nodes = load.map_or(f64::INFINITY, |load| load.nodes(asking.prices));
                if least.is_none_or(|(_, least)| nodes < least) {
                    least = Some((*at, nodes));
                }
            }
            order.extend(least.map(|(at, _)| at));
        }
        order.extend(by_place);

        let mut seen = vec![false; scores.len()];
        order.retain(|at| seen.get_mut(*at).is_some_and(|seen| !std::mem::replace(seen, true)));
        order
    }
}

/// What all passes over the inputs have in common.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) asking: Asking<'a>,
    pub(super) specs: &'a [DrawSpec],
    pub(super) profiled: &'a [String],
    /// Columns that tell entities apart.
    pub(super) entity: &'a [String],
}

impl Pass<'_> {
    fn options(&self, part: &Part, draws: usize) -> TrialOptions {
        let draws = self.specs.iter().map(|spec| DrawSpec { most: spec.most.min(draws), ..spec.clone() });
        TrialOptions {
            sample: part.sample,
            window: part.window.clone(),
            draws: draws.collect(),
            profiled: self.profiled.to_vec(),
            stop: self.asking.stop.clone(),
            ..TrialOptions::default()
        }
    }

    /// What the source holds, by a pass with its first layout.
    pub(super) fn known(&self, first: &Candidate) -> Result<Known> {
        let entity = self.entity.to_vec();
        let options = TrialOptions { kinds: true, entity, ..self.options(&Part::default(), KNOWN_DRAWS) };
        let trial = Trial::load(self.asking.job, self.asking.storage, std::slice::from_ref(first), &options)?;
        let seconds = trial.seconds().ok_or_else(|| trial.no_rows())?;
        let rows = trial.tables.iter().map(|table| table.stats.rows_accepted).max().unwrap_or_default();
        let rows = SourceRows { rows: rows as f64, seconds };
        Ok(Known { profile: trial.profile.clone(), draws: trial.draws.clone(), rows, kinds: trial.kinds })
    }

    /// Whether the templates and types of a candidate's columns go together.
    pub(super) fn compiles(&self, proposed: &Proposed, schema: &SourceSchema) -> Result<bool> {
        match self.job_of(schema, &[proposed]) {
            Ok(_) => Ok(true),
            Err(AdvisorError::Job(JobError::File(_))) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn job_of(&self, schema: &SourceSchema, proposed: &[&Proposed]) -> Result<Job> {
        let job = self.asking.job;
        self.load(&job_with(&job.text, &job.name, schema, proposed)?)
    }

    /// A job from its text, by way of a temporary file: job files are known by the names of their directories.
    fn load(&self, text: &str) -> Result<Job> {
        let folder = tempfile::Builder::new().prefix("tidetable-advice-").tempdir();
        let folder = folder.map_err(AdvisorError::temporary)?;
        let directory = folder.path().join(&self.asking.job.name);
        std::fs::create_dir(&directory).map_err(AdvisorError::temporary)?;
        let path = directory.join("job.toml");
        std::fs::write(&path, text).map_err(AdvisorError::temporary)?;
        Ok(Job::load(self.asking.project, &path.display().to_string())?)
    }

    /// Candidates in the order of their names, measured on a part of the rows, with their cost and what rules find. What is
    /// written and kept follows from all rows of the source, whatever part of them was measured.
    pub(super) fn measured(
        &self,
        schema: &SourceSchema,
        candidates: &[Proposed],
        whole: SourceRows,
        part: &Part,
        draws: usize,
    ) -> Result<Found> {
        let Asking { storage, workload, prices, .. } = self.asking;
        let job = self.job_of(schema, &candidates.iter().collect::<Vec<_>>())?;
        let candidates = Candidate::of_job(&job, &[])?;
        let options = self.options(part, draws);

        let trial = Trial::load(&job, storage, &candidates, &options)?;
        let comparison = compare(&trial, None, Extent::ALL)?;
        let demand = demand_of(&trial, &comparison, workload, Some(whole));
        let economy = economy_at(demand, &trial, &comparison, workload, &options.draws, prices)?;
        let facts = survey_compared(&trial, &comparison, Some((workload, &economy)));
        let reports = lint_apart(&job, &job.tables, &job.text, Some(&facts), prices);

        let (mut counts, mut refused) = (Vec::new(), Vec::new());
        for (layout, report) in comparison.layouts.iter().zip(&reports) {
            counts.push(report.refusals().count());
            refused.extend(report.refusals().next().map(|finding| Refused {
                name: layout.measured.layout.clone(),
                row_key: layout.row_key.clone(),
                rule: finding.rule.id,
                message: finding.message.clone(),
            }));
        }
        Ok(Found { economy: economy.with_errors(&counts), comparison, refused })
    }
}
