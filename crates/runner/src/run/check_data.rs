//! Evaluates the checks of a job on demand, on published parts and on tables.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use chrono::NaiveDate;
use tidetable_job::day::{day_bounds, local_days};
use tidetable_job::{Export, Job, Per, Period, Project};
use tidetable_record::{CheckRecord, FailingRow, keep_failing_rows};
use tidetable_sql::{Session, SessionOptions, SqlError, quoted_name};
use tidetable_store::Store;
use tidetable_store::published::Published;
use tokio::runtime::Handle;

use crate::checks::checker::{CheckScope, Checker};
use crate::checks::presence::holds_records;
use crate::fault::error::RunError;
use crate::run::{open_store, runtime};
use crate::units::params::period_params;

/// What an evaluation of checks found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DataChecks {
    /// A record for each rule in each part and day.
    pub found: Vec<CheckRecord>,
    /// A sample of the rows that broke rules, stored under the name of this evaluation.
    pub failing: Vec<FailingRow>,
}

/// Evaluates the checks of `job`: those of exports on each published part, those of tables on each day with records; if
/// given, only on `days`. `run` names the evaluation, `now` is the value of `$now`.
///
/// # Errors
/// If a query fails, the store cannot be read, or the failing rows cannot be written.
pub fn check_data(
    project: &Project,
    job: &Job,
    days: Option<&RangeInclusive<NaiveDate>>,
    run: &str,
    now: i64,
) -> Result<DataChecks, RunError> {
    let (store, runtime) = (open_store(project)?, runtime()?);
    let checker = Checker::new(job, run);
    let evaluation = Evaluation { job, store: &store, runtime: runtime.handle(), checker: &checker, days, now };

    let mut found = Vec::new();
    for export in job.exports.iter().filter(|export| evaluation.has_checks(&export.name)) {
        found.extend(evaluation.export(export)?);
    }
    for table in job.tables.iter().map(|table| &table.spec.name).filter(|table| evaluation.has_checks(table)) {
        if store.table(table).latest()?.is_some() {
            found.extend(evaluation.table(table)?);
        }
    }

    let failing = checker.failing();
    keep_failing_rows(store.blobs().as_ref(), run, &failing)?;
    Ok(DataChecks { found, failing })
}

/// An evaluation of the checks of a job.
struct Evaluation<'a> {
    job: &'a Job,
    store: &'a Store,
    runtime: &'a Handle,
    checker: &'a Checker<'a>,
    /// Only these days; all if `None`.
    days: Option<&'a RangeInclusive<NaiveDate>>,
    /// Logical time, microseconds since the epoch.
    now: i64,
}

impl Evaluation<'_> {
    /// Whether a table or an export has checks.
    fn has_checks(&self, of: &str) -> bool {
        self.job.checks.iter().any(|check| check.on == of)
    }

    /// Evaluates the checks of an export on its published parts.
    fn export(&self, export: &Export) -> Result<Vec<CheckRecord>, RunError> {
        let failed = |error: SqlError| RunError::Query { export: export.name.clone(), source: Box::new(error) };
        let published = Published::load(self.store.blobs().as_ref(), &export.name)?;
        let session = Session::open(self.store, &SessionOptions::default()).map_err(failed)?;
        let zone = self.job.timezone;

        let mut found = Vec::new();
        for (label, part) in &published.parts {
            let Some(period) = Period::of_label(export.per, label) else { continue };
            if !self.days.is_none_or(|days| period.per != Per::Query && period.overlaps(zone, days)) {
                continue;
            }

            let bounds = period.bounds(zone);
            let params = period_params(&period, &bounds, self.now);
            // Queries of checks see the records of the period only.
            let restricted = session.restricted(bounds);
            let day = CheckScope { session: &restricted, label, params: &params };
            let relation = format!("exports.{}", quoted_name(&part.folder));
            found.extend(self.runtime.block_on(self.checker.published(&day, export, &relation)).map_err(failed)?);
        }
        Ok(found)
    }

    /// Evaluates the checks of a table on its days with records.
    fn table(&self, table: &String) -> Result<Vec<CheckRecord>, RunError> {
        let failed = |source| RunError::Check { table: table.clone(), source: Box::new(source) };
        let session = Session::open(self.store, &SessionOptions::default()).map_err(failed)?;
        let snapshot = self.store.snapshot(table)?;
        let utc = snapshot.version().windows.iter().flat_map(|window| window.days.keys().copied());
        let local: BTreeSet<NaiveDate> = utc.flat_map(|day| local_days(self.job.timezone, day)).collect();

        let mut found = Vec::new();
        for day in local.into_iter().filter(|day| self.days.is_none_or(|days| days.contains(day))) {
            let (bounds, label) = (day_bounds(self.job.timezone, day), day.to_string());
            let measured = self.runtime.block_on(async {
                if !holds_records(&session, std::slice::from_ref(table), bounds.clone()).await? {
                    return Ok(Vec::new());
                }
                let restricted = session.restricted(bounds);
                self.checker.table(&CheckScope { session: &restricted, label: &label, params: &[] }, table).await
            });
            found.extend(measured.map_err(failed)?);
        }
        Ok(found)
    }
}
