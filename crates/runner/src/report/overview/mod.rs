//! A job at a glance: its days, its runs, the values of its checks, and the way from its inputs to its exports.

mod days;
mod flow;
mod rules;

use std::collections::BTreeMap;

use chrono::NaiveDate;
use chrono_tz::Tz;
use tidetable_job::{Job, Project};
use tidetable_record::{Failures, Outcome, RunRecord, Runs};
use tidetable_store::published::Published;
use tidetable_store::{Store, Version};

use crate::fault::error::RunError;
use crate::report::lineage::Lineage;
use crate::report::status::{OwedOf, statuses};

pub use days::{DayOf, DayState};
pub use flow::{Place, PlaceKind, Step};
pub use rules::{RuleValue, RuleValues};

/// A job at a glance.
#[derive(Debug, Default)]
pub struct Overview {
    /// Days by export, or by table of a job without exports; then ascending.
    pub days: Vec<DayOf>,
    /// The time zone of these days: that of the job for exports, UTC for tables.
    pub zone: Tz,
    /// Readable records, the oldest first.
    pub runs: Vec<RunRecord>,
    /// Values of rules, by check.
    pub rules: Vec<RuleValues>,
    /// Steps from inputs to exports.
    pub steps: Vec<Step>,
    /// Windows of its tables that could not be rebuilt.
    pub owed: Vec<OwedOf>,
}

impl Overview {
    /// Reads the overview of `job`. `clock` is the clock, microseconds since the epoch. `None` if the job has neither runs
    /// nor tables.
    ///
    /// # Errors
    /// If the store cannot be listed. Versions, lists and records that cannot be read are left out.
    pub fn read(store: &Store, project: Option<&Project>, job: &str, clock: i64) -> Result<Option<Self>, RunError> {
        let blobs = store.blobs().as_ref();
        let tz = project.and_then(|project| Job::load(project, job).ok()).map_or(Tz::UTC, |job| job.timezone);

        let mut runs: Vec<RunRecord> = Runs::of(blobs).readable(Some(job))?.collect();
        runs.reverse();
        for run in runs.iter_mut().filter(|run| run.outcome == Outcome::Running) {
            run.add_published(blobs);
        }

        let mut versions: BTreeMap<String, Version> = BTreeMap::new();
        for table in store.tables()? {
            let latest = store.table(&table).latest().ok().flatten();
            versions.extend(latest.filter(|version| version.table.job == job).map(|version| (table, version)));
        }
        if runs.is_empty() && versions.is_empty() {
            return Ok(None);
        }

        let (lists, _) = Published::readable(blobs)?;
        let lists: Vec<Published> = lists.into_iter().filter(|list| list.job == job).collect();
        let status = statuses(store, project, &[job], clock)?.jobs.pop().unwrap_or_default();
        let failures = Failures::load(blobs, job)?;
        let lineage = Lineage::read(store, project)?;

        Ok(Some(Self {
            days: days::days(tz, &runs, &lists, &versions, &failures, &status.gaps),
            zone: if lists.is_empty() { Tz::UTC } else { tz },
            rules: rules::rules(&runs),
            steps: flow::steps(&lineage, &versions, &lists, &runs),
            runs,
            owed: status.owed,
        }))
    }

    /// Days of one export or table that are in a state.
    pub fn in_state<'a>(&'a self, of: &'a str, state: DayState) -> impl Iterator<Item = &'a DayOf> {
        self.days.iter().filter(move |day| day.of == of && day.state == state)
    }

    /// The newest day that is published, of the export furthest behind.
    pub fn newest(&self) -> Option<NaiveDate> {
        let mut newest: BTreeMap<&str, NaiveDate> = BTreeMap::new();
        for day in self.days.iter().filter(|day| !matches!(day.state, DayState::Missing | DayState::Failed)) {
            let known = newest.entry(&day.of).or_insert(day.day);
            *known = day.day.max(*known);
        }
        newest.into_values().min()
    }
}
