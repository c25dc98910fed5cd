//! The publish stage: publishes each export in turn, then checks tables that no export reads.

use std::collections::{BTreeSet, HashSet};
use std::sync::{OnceLock, PoisonError};

use chrono::NaiveDate;
use tidetable_job::day::{day_bounds, local_days};
use tidetable_job::{Export, Stage};
use tidetable_record::{Failures, PartState, RunRecord, keep_failing_rows};
use tidetable_sql::{Session, SessionOptions};

use crate::checks::checker::{CheckScope, Checker};
use crate::checks::presence::holds_records;
use crate::fault::error::RunError;
use crate::fault::transient::is_transient_chain;
use crate::plan::Plan;
use crate::run::context::Run;
use crate::run::damage::damage_in;
use crate::run::parts::PartSelection;
use crate::run::publish::{ComparedExport, ComparedExports, PublishDone, PublishStage};
use crate::run::retry::Retry;

impl Run<'_> {
    /// Publishes the stale parts after the tables have changed. `compared` are the exports as planned.
    pub(crate) fn publish<'a>(
        &'a self,
        plan: &Plan,
        mut compared: ComparedExports<'a>,
        record: &mut RunRecord,
    ) -> Result<(), RunError> {
        let stage = self.publish_stage();
        let checker = Checker::new(self.job, &self.options.run);
        let mut read: HashSet<String> = HashSet::new();
        let mut failures = self.failures()?;
        for export in &self.job.exports {
            self.options.stop.check()?;
            let mut retry = Retry::new(Stage::Publish, self.job, self.options, self.observer);
            let mut done = PublishDone::default();
            let published = loop {
                let about = (&mut done, &mut failures, &mut *record);
                let before = compared.remove(&export.name);
                match self.publish_one((&stage, export, before), plan, &checker, &mut retry, about) {
                    Ok(reads) => break Ok(reads),
                    // Parts that are listed are not tried again.
                    Err(error) => {
                        self.store.read_anew();
                        match retry.after(&export.name, error, &mut record.attempts) {
                            Ok(()) => {}
                            Err(error) => break Err(error),
                        }
                    }
                }
            };
            // Parts that failed are recorded too.
            for (part, _) in done.parts.values() {
                failures.note(&self.options.run, &part.export, &part.label, part.state);
            }
            let kept = self.keep(&mut failures, &checker);
            let (parts, checks): (Vec<_>, Vec<_>) = done.parts.into_values().unzip();
            record.exports.extend(parts.into_iter().chain(done.log));
            record.damage.extend(done.catalog);
            record.checks.extend(checks.into_iter().flatten());
            read.extend(published?);
            kept?;
            let failed = |part: &&tidetable_record::ExportRecord| part.state == PartState::Failed;
            if self.options.fail_fast && record.exports.iter().any(|part| failed(&part)) {
                break;
            }
        }
        self.attempts((Stage::Publish, "checks"), record, |record| {
            self.check_unread(&checker, &read, (&mut failures, record))
        })?;
        let known = |of: &String| self.job.export(of).is_some() || self.checks_unread(&read).contains(&of.as_str());
        // A run of selected parts knows nothing of the others.
        if self.options.select.is_empty() {
            failures.of.retain(|of, _| known(of));
        }
        self.keep(&mut failures, &checker)?;
        // A check of a table is recorded once, however many exports read the table.
        let mut seen = HashSet::new();
        record.checks.retain(|check| {
            seen.insert((check.check.clone(), check.on.clone(), check.label.clone(), check.rule.clone()))
        });
        Ok(())
    }

    /// Stores what is still to be done, and why.
    fn keep(&self, failures: &mut Failures, checker: &Checker<'_>) -> Result<(), RunError> {
        let blobs = self.store.blobs().as_ref();
        failures.save(blobs)?;
        keep_failing_rows(blobs, &self.options.run, &checker.failing())?;
        Ok(())
    }

    /// Publishes the stale parts of one export. Returns the tables it reads. The comparison is not repeated if nothing
    /// changed since it was planned.
    fn publish_one<'a>(
        &'a self,
        (stage, export, before): (&PublishStage<'a>, &'a Export, Option<ComparedExport<'a>>),
        plan: &Plan,
        checker: &Checker<'_>,
        retry: &mut Retry<'_>,
        (done, failures, record): (&mut PublishDone, &mut Failures, &mut RunRecord),
    ) -> Result<Vec<String>, RunError> {
        let wanted = PartSelection::new(self.options, failures.labels(&export.name));
        let reads = self.reads(export)?;
        let compared = match before {
            Some(compared) if compared.is_current()? => compared,
            _ => stage.compare(export, &reads, &wanted, stage.published(export)?)?,
        };
        compared.notes.iter().for_each(|note| self.note(record, note.clone()));
        compared.gone.iter().for_each(|label| failures.clear(&export.name, label));
        let planned = plan.exports.iter().find(|planned| planned.export == export.name);
        if let Some(planned) = planned.filter(|planned| !planned.unknown) {
            let named: HashSet<&str> = planned.parts.iter().map(|part| part.label.as_str()).collect();
            let labels = compared.parts.iter().map(|part| part.label.as_str());
            let others: Vec<&str> = labels.filter(|label| !named.contains(label)).collect();
            if !others.is_empty() {
                let days = crate::plan::ranges(&others);
                self.note(record, format!("{}: inputs had rows of other days than planned: {days}", export.name));
            }
        }
        stage.publish(&compared, checker, retry, done, &mut record.attempts)?;
        Ok(reads)
    }

    /// Checks tables that no export reads, for the days that the run changed and those whose checks failed
    /// before.
    fn check_unread(
        &self,
        checker: &Checker<'_>,
        read: &HashSet<String>,
        (failures, record): (&mut Failures, &mut RunRecord),
    ) -> Result<(), RunError> {
        let mut found = Vec::new();
        for table in self.checks_unread(read) {
            let failed = |source| RunError::Check { table: table.to_owned(), source: Box::new(source) };
            let mut days: BTreeSet<NaiveDate> = self.days_to_check_again(table, failures);
            let load = record.loads.iter().find(|load| load.table == table && load.version != load.before);
            if let Some(load) = load {
                let snapshot = self.store.snapshot(table)?;
                let changed = snapshot.version().windows.iter().flat_map(|window| &window.days);
                let changed = changed.filter(|(_, version)| **version > load.before).map(|(day, _)| *day);
                days.extend(changed.flat_map(|day| local_days(self.job.timezone, day)));
            }
            let in_range = |day: &&NaiveDate| self.options.days.as_ref().is_none_or(|days| days.contains(day));
            if days.is_empty() {
                continue;
            }
            let session = Session::open(self.store, &SessionOptions::default()).map_err(failed)?;
            for day in days.iter().filter(in_range) {
                self.options.stop.check()?;
                let (bounds, label) = (day_bounds(self.job.timezone, *day), day.to_string());
                let measure = async {
                    // Days without records are not checked.
                    if !holds_records(&session, &[table.to_owned()], bounds.clone()).await? {
                        return Ok(Vec::new());
                    }
                    let restricted = session.restricted(bounds);
                    let day = CheckScope { session: &restricted, label: &label, params: &[] };
                    checker.table(&day, table).await
                };
                match self.runtime.block_on(measure) {
                    Ok(checks) => {
                        failures.note_day(&self.options.run, table, &label, &checks);
                        found.extend(checks);
                    }
                    // A damaged file holds back its own days only; they are checked by the next run.
                    Err(error) if damage_in(&error).is_some() && !is_transient_chain(&error) => {
                        failures.note(&self.options.run, table, &label, PartState::Failed);
                        self.leave_undone(record, format!("check {table} of {label}"), failed(error));
                    }
                    Err(error) => return Err(failed(error)),
                }
            }
        }
        record.checks.extend(found);
        Ok(())
    }

    /// The tables of the job that have checks and are not in `read`, the tables that exports read.
    pub(crate) fn checks_unread(&self, read: &HashSet<String>) -> Vec<&str> {
        let names = self.job.tables.iter().map(|table| table.spec.name.as_str());
        let checked = |name: &&str| self.job.checks.iter().any(|check| check.on == *name);
        names.filter(checked).filter(|name| !read.contains(*name)).collect()
    }

    /// The requested days of a table whose checks failed before.
    pub(crate) fn days_to_check_again(&self, table: &str, failures: &Failures) -> BTreeSet<NaiveDate> {
        let days = failures.labels(table).into_keys().filter_map(|day| day.parse::<NaiveDate>().ok());
        days.filter(|day| self.options.days.as_ref().is_none_or(|days| days.contains(day))).collect()
    }

    pub(crate) fn publish_stage(&self) -> PublishStage<'_> {
        PublishStage {
            project: self.project,
            job: self.job,
            store: self.store,
            options: self.options,
            observer: self.observer,
            runtime: self.runtime,
            root: self.root,
            reference: self.reference,
            tally: &self.tally,
            others: OnceLock::new(),
        }
    }

    /// What is still to be done for the job, from all runs.
    pub(crate) fn failures(&self) -> Result<Failures, RunError> {
        let mut known = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(failures) = known.as_ref() {
            return Ok(failures.clone());
        }
        let failures = Failures::load(self.store.blobs().as_ref(), &self.job.name)?;
        Ok(known.insert(failures).clone())
    }
}
