//! The stage that publishes: each export in turn, and the checks of tables that none reads.

use std::collections::{BTreeSet, HashSet};

use chrono::NaiveDate;
use tidetable_record::{PartState, RunRecord, Runs};
use tidetable_sql::{Session, SessionOptions};

use super::error::RunError;
use super::measure::{Checker, DayOf};
use super::parts::Wanted;
use super::publish::{PublishDone, PublishStage};
use super::retry::Retry;
use super::{Run, look};
use crate::day::day_bounds;
use crate::job::{Export, Stage};
use crate::plan::Plan;

impl Run<'_> {
    /// Publishes what is stale now that the tables have changed.
    pub(super) fn publish(&self, plan: &Plan, record: &mut RunRecord) -> Result<(), RunError> {
        let checker = Checker::new(self.job);
        let mut read: HashSet<String> = HashSet::new();
        for export in &self.job.exports {
            self.options.stop.check()?;
            let mut retry = Retry::new(Stage::Publish, self.job, self.options, self.observer);
            let mut done = PublishDone::default();
            let published = loop {
                match self.publish_one(export, plan, &checker, &mut retry, (&mut done, &mut *record)) {
                    Ok(reads) => break Ok(reads),
                    // Those of its parts that are listed are not tried again.
                    Err(error) => match retry.after(&export.name, error, &mut record.attempts) {
                        Ok(()) => {}
                        Err(error) => break Err(error),
                    },
                }
            };
            // Also of what failed on its way.
            let (parts, checks): (Vec<_>, Vec<_>) = done.parts.into_values().unzip();
            record.exports.extend(parts);
            record.checks.extend(checks.into_iter().flatten());
            read.extend(published?);
            let failed = |part: &&tidetable_record::ExportRecord| part.state == PartState::Failed;
            if self.options.fail_fast && record.exports.iter().any(|part| failed(&part)) {
                break;
            }
        }
        self.attempts((Stage::Publish, "checks"), record, |record| self.check_unread(&checker, &read, record))?;
        // A check of a table speaks once, however many exports read the table.
        let mut seen = HashSet::new();
        record.checks.retain(|check| {
            seen.insert((check.check.clone(), check.on.clone(), check.label.clone(), check.rule.clone()))
        });
        Ok(())
    }

    /// Publishes what is stale of one export. Returns the tables it reads.
    fn publish_one(
        &self,
        export: &Export,
        plan: &Plan,
        checker: &Checker<'_>,
        retry: &mut Retry<'_>,
        (done, record): (&mut PublishDone, &mut RunRecord),
    ) -> Result<Vec<String>, RunError> {
        let wanted = Wanted::new(self.options, self.failed_before(export)?);
        let reads = self.reads(export)?;
        let looked = self.publish_stage().look(export, &reads, &wanted)?;
        let planned = plan.exports.iter().find(|planned| planned.export == export.name);
        if let Some(planned) = planned.filter(|planned| !planned.unknown) {
            let named: HashSet<&str> = planned.parts.iter().map(|part| part.label.as_str()).collect();
            let labels = looked.parts.iter().map(|part| part.label.as_str());
            let others: Vec<&str> = labels.filter(|label| !named.contains(label)).collect();
            if !others.is_empty() {
                let days = crate::plan::ranges(&others);
                self.note(record, format!("{}: inputs had rows of other days than planned: {days}", export.name));
            }
        }
        self.publish_stage().publish(&looked, checker, retry, (done, &mut record.attempts))?;
        Ok(reads)
    }

    /// Measures the checks of tables that no export reads, in the days that the run changed.
    fn check_unread(
        &self,
        checker: &Checker<'_>,
        read: &HashSet<String>,
        record: &mut RunRecord,
    ) -> Result<(), RunError> {
        let checked = |table: &String| self.job.checks.iter().any(|check| check.on == *table) && !read.contains(table);
        let mut found = Vec::new();
        for load in record.loads.iter().filter(|load| load.version != load.before && checked(&load.table)) {
            let failed = |source| RunError::Check { table: load.table.clone(), source: Box::new(source) };
            let session = Session::open(self.store, &SessionOptions::default()).map_err(failed)?;
            let snapshot = self.store.snapshot(&load.table)?;
            let changed = snapshot.version().windows.iter().flat_map(|window| &window.days);
            let changed = changed.filter(|(_, version)| **version > load.before).map(|(day, _)| *day);
            let days: BTreeSet<NaiveDate> = changed.flat_map(|day| look::local_days(self.job, day)).collect();
            let in_range = |day: &&NaiveDate| self.options.days.as_ref().is_none_or(|days| days.contains(day));
            for day in days.iter().filter(in_range) {
                self.options.stop.check()?;
                let restricted = session.restricted(day_bounds(self.job.timezone, *day));
                let label = day.to_string();
                let day = DayOf { session: &restricted, label: &label, params: &[] };
                found.extend(self.runtime.block_on(checker.table(&day, &load.table)).map_err(failed)?);
            }
        }
        record.checks.extend(found);
        Ok(())
    }

    pub(super) fn publish_stage(&self) -> PublishStage<'_> {
        PublishStage {
            job: self.job,
            store: self.store,
            options: self.options,
            observer: self.observer,
            runtime: self.runtime,
        }
    }

    /// The labels of an export that could not be published when they were last tried.
    pub(super) fn failed_before(&self, export: &Export) -> Result<HashSet<String>, RunError> {
        let mut failed = HashSet::new();
        if self.options.only.is_none() {
            return Ok(failed);
        }
        let mut seen = HashSet::new();
        for record in Runs::of(self.store.blobs().as_ref()).newest_first(Some(&self.job.name))? {
            for part in record?.exports.into_iter().filter(|part| part.export == export.name) {
                let missed = matches!(part.state, PartState::Failed | PartState::Checks);
                if seen.insert(part.label.clone()) && missed {
                    failed.insert(part.label);
                }
            }
        }
        Ok(failed)
    }
}
