//! `tidetable delete` and `tidetable drop-rows`: hide rows and cells of a table.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};

use chrono::NaiveDate;
use chrono_tz::Tz;
use tidetable_job::Job;
use tidetable_job::day::{day_bounds, local_days};
use tidetable_runner::UlidIds;
use tidetable_runner::run::sealed_before;
use tidetable_store::version::DeleteTarget;
use tidetable_store::{DeletePlan, Snapshot};

use crate::args::{Delete, Deleting, DropRows, Global, Output};
use crate::commands::maintenance::agreed;
use crate::commands::ranges::check_times;
use crate::commands::{clock, open_newest, project_if_any, store};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::objects;
use crate::output::values::{count, listed};
use crate::output::{ResultRows, row, sentences};

/// Deletes a row, or cells of it.
pub fn delete(global: &Global, args: &Delete) -> Result<(), CliError> {
    let key = args.row.clone().into_bytes();
    let column = args.column.as_ref().map(|column| column.split_once(':').unwrap_or((column, "")));
    let has_qualifier = args.column.as_ref().is_some_and(|column| column.contains(':'));
    let times = match (args.from, args.to) {
        (None, None) => None,
        (from, to) => Some(from.unwrap_or(i64::MIN)..to.unwrap_or(i64::MAX)),
    };

    if times.is_some() && !has_qualifier {
        return Err(CliError::Usage("--from and --to are for one column: --column FAMILY:QUALIFIER"));
    }
    check_times(args.from, args.to)?;

    let target = match column {
        None => DeleteTarget::Row { key },
        Some((family, _)) if !has_qualifier => DeleteTarget::Family { key, family: family.to_owned() },
        Some((family, qualifier)) => {
            let (family, qualifier) = (family.to_owned(), qualifier.as_bytes().to_vec());
            DeleteTarget::Column { key, family, qualifier, times }
        }
    };
    hide(global, &args.table, target, &args.how)
}

/// Deletes the rows with a prefix.
pub fn drop_rows(global: &Global, args: &DropRows) -> Result<(), CliError> {
    let prefix = args.prefix.clone().into_bytes();
    hide(global, &args.table, DeleteTarget::Prefix { prefix }, &args.how)
}

fn hide(global: &Global, table: &str, target: DeleteTarget, how: &Deleting) -> Result<(), CliError> {
    let asks = std::io::stdin().is_terminal();
    if !how.yes && !how.dry_run && !asks {
        return Err(CliError::Usage(
            "this deletes, and there is no terminal to ask on: give --yes, or --dry-run to see what",
        ));
    }

    let store = store(global)?;
    let snapshot = open_newest(&store, table)?;
    let now = how.now.unwrap_or_else(clock);
    let plan = DeletePlan::new(&snapshot, target)?;

    if how.dry_run {
        return tell(global, &snapshot, &plan, Done::Not { dry_run: true }, now);
    }

    let edit = plan.edit();
    if !edit.is_empty() && !how.yes && !agreed(&question(table, &plan))? {
        return tell(global, &snapshot, &plan, Done::Not { dry_run: false }, now);
    }

    let mut number = snapshot.version().number;
    if !edit.is_empty() {
        number = snapshot.table().commit(snapshot.version().clone(), &edit, &UlidIds::default(), now)?.number;
    }
    tell(global, &snapshot, &plan, Done::Hidden { version: number }, now)
}

/// What is asked before a delete.
fn question(table: &str, plan: &DeletePlan) -> String {
    let (rows, cells) = (count(plan.rows, "row"), count(plan.cells, "cell"));
    match plan.target.takes_rows() {
        true => format!("drop {rows} ({cells}) of {table}: {}", plan.target),
        false => format!("drop {cells} in {rows} of {table}: {}", plan.target),
    }
}

/// What a delete did: it is committed in a version, or nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    Hidden {
        version: u64,
    },
    /// Nothing was changed: a dry run, or not confirmed.
    Not {
        dry_run: bool,
    },
}

/// The days in which cells are hidden, and what a run does with those that are published.
#[derive(Default)]
struct HiddenDays {
    /// Those that a run publishes again.
    published_again: Vec<String>,
    /// Those that a run leaves as published: cells of them may have expired.
    sealed: Vec<String>,
}

impl HiddenDays {
    /// Those of `plan` in a time zone, as a run of the logical time `now` would treat them. The cells are known by the day of UTC,
    /// each of which lies in up to two days of another zone.
    fn of(snapshot: &Snapshot, plan: &DeletePlan, zone: Tz, now: i64) -> Self {
        let sealed_before = sealed_before(snapshot, now).unwrap_or(i64::MIN);
        let days: BTreeSet<NaiveDate> = plan.days.values().flatten().flat_map(|day| local_days(zone, *day)).collect();

        let mut hidden = Self::default();
        for day in days {
            let is_sealed = day_bounds(zone, day).start < sealed_before;
            let of_kind = if is_sealed { &mut hidden.sealed } else { &mut hidden.published_again };
            of_kind.push(day.to_string());
        }
        hidden
    }

    /// Says which runs publish them.
    fn tell(&self, job: &str, out: &mut dyn Write) -> Result<(), CliError> {
        if !self.published_again.is_empty() {
            writeln!(out, "days to publish again: {}\n  tidetable run {job}", listed(&self.published_again))?;
        }

        if let (Some(first), Some(last)) = (self.sealed.first(), self.sealed.last()) {
            let days = listed(&self.sealed);
            writeln!(out, "sealed days, which stay as published since cells of them may have expired: {days}")?;
            writeln!(out, "  tidetable run {job} --from {first} --to {last} --force   # as the table is now")?;
        }
        Ok(())
    }
}

/// The time zone of the days of a job; UTC if its job file cannot be read.
fn zone_of(global: &Global, job: &str) -> Tz {
    let project = project_if_any(global).ok().flatten();
    project.and_then(|project| Job::load(&project, job).ok()).map_or(Tz::UTC, |job| job.timezone)
}

/// Reports what was hidden, or would be, of the version of `snapshot`.
fn tell(global: &Global, snapshot: &Snapshot, plan: &DeletePlan, done: Done, now: i64) -> Result<(), CliError> {
    let (table, job) = (snapshot.table().name(), &snapshot.version().table.job);
    let counts = done != Done::Not { dry_run: false } && !plan.is_empty();
    let days = if counts { HiddenDays::of(snapshot, plan, zone_of(global, job), now) } else { HiddenDays::default() };
    let (rows, cells) = if counts { (plan.rows, plan.cells) } else { (0, 0) };

    let mut out = sentences(global.output);
    match (global.output, done) {
        (Output::Table, Done::Not { dry_run: false }) => writeln!(out, "nothing was deleted")?,
        (Output::Table, done) => {
            let hidden = if matches!(done, Done::Hidden { .. }) { "hidden" } else { "would be hidden" };
            writeln!(out, "{table}: {} {hidden} in {}", count(cells, "cell"), count(rows, "row"))?;
            if plan.is_empty() {
                writeln!(out, "the delete also hides rows that the inputs seen so far deliver later")?;
            }
            days.tell(job, &mut out)?;
        }
        (output, done) => {
            // None: nothing was changed.
            let version = if let Done::Hidden { version } = done { Some(version) } else { None };
            let mut shown = ResultRows::of(objects::DELETED);
            shown.push(row![table, version, rows, cells, days.published_again, days.sealed]);
            shown.write(output, &mut out)?;
        }
    }

    out.flush()?;
    if plan.is_empty() && done != (Done::Not { dry_run: false }) {
        let text = format!(
            "warning: no cell of {table} matches {}: `tidetable read {table}` shows how its keys are written",
            plan.target
        );
        print_message(global, &text);
    }
    Ok(())
}
