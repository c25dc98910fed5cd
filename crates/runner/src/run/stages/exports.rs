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
                let before = compared.remove(&export.name);
                let tried = self.compare_now(&stage, export, before, &failures).and_then(|compared| {
                    self.note_compared(&compared, plan, &mut failures, record);
                    stage.publish(&compared, &checker, &mut retry, &mut done, &mut record.attempts)?;
                    Ok(compared.tables)
                });
                match tried {
                    Ok(tables) => break Ok(tables),
                    // Parts that are listed are not tried again.
                    Err(error) => {
                        self.store.read_anew();
                        if let Err(error) = retry.after(&export.name, error, &mut record.attempts) {
                            break Err(error);
                        }
                    }
                }
            };

            // Parts that failed are recorded too.
            self.record_parts(done, &mut failures, record);
            let kept = self.keep(&mut failures, &checker);
            read.extend(published?);
            kept?;
            if self.options.fail_fast && record.exports.iter().any(|part| part.state == PartState::Failed) {
                break;
            }
        }

        self.attempts(Stage::Publish, "checks", record, |record| {
            self.check_unread(&checker, &read, &mut failures, record)
        })?;
        // A run of selected parts knows nothing of the others.
        if self.options.select.is_empty() {
            let unread = self.checks_unread(&read);
            failures.of.retain(|of, _| self.job.export(of).is_some() || unread.contains(&of.as_str()));
        }
        self.keep(&mut failures, &checker)?;

        // A check of a table is recorded once, however many exports read the table.
        let mut seen = HashSet::new();
        record.checks.retain(|check| {
            seen.insert((check.check.clone(), check.on.clone(), check.label.clone(), check.rule.clone()))
        });
        Ok(())
    }

    /// Records what became of the parts of an export, and which of them are still to be done.
    fn record_parts(&self, done: PublishDone, failures: &mut Failures, record: &mut RunRecord) {
        for (part, _) in done.parts.values() {
            failures.note(&self.options.run, &part.export, &part.label, part.state);
        }

        let (parts, checks): (Vec<_>, Vec<_>) = done.parts.into_values().unzip();
        record.exports.extend(parts.into_iter().chain(done.log));
        record.damage.extend(done.catalog);
        record.checks.extend(checks.into_iter().flatten());
    }

    /// Stores what is still to be done, and why.
    fn keep(&self, failures: &mut Failures, checker: &Checker<'_>) -> Result<(), RunError> {
        let blobs = self.store.blobs().as_ref();
        failures.save(blobs)?;
        keep_failing_rows(blobs, &self.options.run, &checker.failing())?;
        Ok(())
    }

    /// The comparison of an export as it was planned, or a new one if a table that it reads has changed since.
    fn compare_now<'a>(
        &'a self,
        stage: &PublishStage<'a>,
        export: &'a Export,
        before: Option<ComparedExport<'a>>,
        failures: &Failures,
    ) -> Result<ComparedExport<'a>, RunError> {
        let tables = self.reads(export)?;
        match before {
            Some(compared) if compared.is_current()? => Ok(ComparedExport { tables, ..compared }),
            _ => {
                let wanted = PartSelection::new(self.options, failures.labels(&export.name));
                stage.compare(export, &tables, &wanted, stage.published(export)?)
            }
        }
    }

    /// Notes what a comparison found, and forgets failures of parts that have no records any more.
    fn note_compared(
        &self,
        compared: &ComparedExport<'_>,
        plan: &Plan,
        failures: &mut Failures,
        record: &mut RunRecord,
    ) {
        let export = compared.export.name.as_str();
        for note in &compared.notes {
            self.note(record, note.clone());
        }
        for label in &compared.gone {
            failures.clear(export, label);
        }

        let planned = plan.exports.iter().find(|planned| planned.export == export);
        let Some(planned) = planned.filter(|planned| !planned.unknown) else { return };
        let named: HashSet<&str> = planned.parts.iter().map(|part| part.label.as_str()).collect();
        let labels = compared.parts.iter().map(|part| part.label.as_str());
        let others: Vec<&str> = labels.filter(|label| !named.contains(label)).collect();
        if !others.is_empty() {
            let days = crate::plan::ranges(&others);
            self.note(record, format!("{export}: inputs had rows of other days than planned: {days}"));
        }
    }

    /// Checks tables that no export reads, for the days that the run changed and those whose checks failed
    /// before.
    fn check_unread(
        &self,
        checker: &Checker<'_>,
        read: &HashSet<String>,
        failures: &mut Failures,
        record: &mut RunRecord,
    ) -> Result<(), RunError> {
        let mut found = Vec::new();
        for table in self.checks_unread(read) {
            let failed = |source| RunError::Check { table: table.to_owned(), source: Box::new(source) };
            let days = self.days_to_check(table, failures, record)?;
            if days.is_empty() {
                continue;
            }

            let session = Session::open(self.store, &SessionOptions::default()).map_err(failed)?;
            for day in days {
                if self.options.days.as_ref().is_some_and(|days| !days.contains(&day)) {
                    continue;
                }
                self.options.stop.check()?;
                let (bounds, label) = (day_bounds(self.job.timezone, day), day.to_string());
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

    /// The days of a table that the run changed, and those whose checks failed before.
    fn days_to_check(
        &self,
        table: &str,
        failures: &Failures,
        record: &RunRecord,
    ) -> Result<BTreeSet<NaiveDate>, RunError> {
        let mut days = self.days_to_check_again(table, failures);
        let load = record.loads.iter().find(|load| load.table == table && load.version != load.before);
        if let Some(load) = load {
            let snapshot = self.store.snapshot(table)?;
            let changed = snapshot.version().windows.iter().flat_map(|window| &window.days);
            let changed = changed.filter(|(_, version)| **version > load.before).map(|(day, _)| *day);
            days.extend(changed.flat_map(|day| local_days(self.job.timezone, day)));
        }
        Ok(days)
    }

    /// The tables of the job that have checks and are not in `read`, the tables that exports read.
    pub(crate) fn checks_unread(&self, read: &HashSet<String>) -> Vec<&str> {
        let names = self.job.tables.iter().map(|table| table.spec.name.as_str());
        let checked = names.filter(|name| self.job.checks.iter().any(|check| check.on == *name));
        checked.filter(|name| !read.contains(*name)).collect()
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
