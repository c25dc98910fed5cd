//! Evaluates the checks of a job on demand, on published parts and on tables.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use chrono::NaiveDate;
use tidetable_job::day::day_bounds;
use tidetable_job::day::local_days;
use tidetable_job::{Job, Per, Period, Project};
use tidetable_record::{CheckRecord, FailingRow, keep_failing_rows};
use tidetable_sql::{Session, SessionOptions, SqlError, quoted_name};
use tidetable_store::published::Published;

use crate::checks::checker::{CheckScope, Checker};
use crate::checks::presence::holds_records;
use crate::fault::error::RunError;
use crate::run::{open_store, runtime};
use crate::units::params::period_params;

/// Results of checks.
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
    (run, now): (&str, i64),
) -> Result<DataChecks, RunError> {
    let (store, runtime) = (open_store(project)?, runtime()?);
    let blobs = store.blobs().as_ref();
    let checker = Checker::new(job, run);
    let checked = |of: &str| job.checks.iter().any(|check| check.on == of);
    let mut found = Vec::new();
    for export in job.exports.iter().filter(|export| checked(&export.name)) {
        let failed = |error: SqlError| RunError::Query { export: export.name.clone(), source: Box::new(error) };
        let published = Published::load(blobs, &export.name)?;
        let session = Session::open(&store, &SessionOptions::default()).map_err(failed)?;
        let parts = published
            .parts
            .iter()
            .filter_map(|(label, part)| Some((Period::of_label(export.per, label)?, label, part)));
        for (period, label, part) in parts {
            if !days.is_none_or(|days| period.per != Per::Query && period.overlaps(job.timezone, days)) {
                continue;
            }
            let bounds = period.bounds(job.timezone);
            let params = period_params(&period, &bounds, now);
            // Queries of checks see the records of the period only.
            let restricted = session.restricted(bounds);
            let day = CheckScope { session: &restricted, label, params: &params };
            let relation = format!("exports.{}", quoted_name(&part.folder));
            found.extend(runtime.block_on(checker.published(&day, export, &relation)).map_err(failed)?);
        }
    }
    for table in job.tables.iter().map(|table| &table.spec.name).filter(|table| checked(table)) {
        if store.table(table).latest()?.is_none() {
            continue;
        }
        let failed = |source| RunError::Check { table: table.clone(), source: Box::new(source) };
        let session = Session::open(&store, &SessionOptions::default()).map_err(failed)?;
        let snapshot = store.snapshot(table)?;
        let utc = snapshot.version().windows.iter().flat_map(|window| window.days.keys().copied());
        let local: BTreeSet<NaiveDate> = utc.flat_map(|day| local_days(job.timezone, day)).collect();
        for day in local.into_iter().filter(|day| days.is_none_or(|days| days.contains(day))) {
            let (bounds, label) = (day_bounds(job.timezone, day), day.to_string());
            let measured = runtime.block_on(async {
                if !holds_records(&session, std::slice::from_ref(table), bounds.clone()).await? {
                    return Ok(Vec::new());
                }
                let restricted = session.restricted(bounds);
                checker.table(&CheckScope { session: &restricted, label: &label, params: &[] }, table).await
            });
            found.extend(measured.map_err(failed)?);
        }
    }
    let failing = checker.failing();
    keep_failing_rows(blobs, run, &failing)?;
    Ok(DataChecks { found, failing })
}
