//! Makes the plan of a run from the state of inputs, tables and exports.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::PoisonError;

use chrono::NaiveDate;
use chrono_tz::Tz;
use tidetable_ingest::{Grown, InputPlan};
use tidetable_job::day::{day_bounds, local_days};
use tidetable_job::{Export, Job, Period, Table, TableInput};
use tidetable_layout::Window;
use tidetable_layout::time::{DAY, window_of};
use tidetable_record::{Failures, InputState, KnownVersions};
use tidetable_sql::{QueryShape, Session, SessionOptions, SqlError, check_query, read_by};
use tidetable_store::Version;
use tidetable_store::published::Published;

use crate::checks::presence::holds_records;
use crate::fault::error::RunError;
use crate::options::run_options::RunOptions;
use crate::options::without::Without;
use crate::plan::{CheckPlan, Days, ExportPlan, Plan, PlannedInput, PlannedPart, TablePlan, TableReason, rows_of};
use crate::readable::{ReadableTables, maker_of_unknown};
use crate::run::context::Run;
use crate::run::damage::damage_in;
use crate::run::parts::{PartSelection, StalePart};
use crate::run::publish::{ComparedExport, ComparedExports, PublishStage, check_columns, tables_read};
use crate::run::stages::load::{
    Planned, PlannedSource, TakenOut, absence, idle_notes, older_rules_note, owed_record, pulls, taken_out,
};
use crate::run::stages::pulled::{check_pushes, origins};
use crate::run::stages::unread::{empty_notes, folder_notes, unmatched_notes, unread_notes};
use crate::units::params::probe_params;

impl Run<'_> {
    /// The plan for `sources` and all that follows from them, with the compared exports.
    pub(crate) fn plan(&self, sources: &[PlannedSource<'_>]) -> Result<(Plan, ComparedExports<'_>), RunError> {
        let mut notes = unmatched_notes(sources);
        notes.extend(unread_notes(sources));
        notes.extend(empty_notes(sources));
        notes.extend(folder_notes(sources));
        notes.extend(idle_notes(&self.options.without, sources));
        notes.extend(sources.iter().flat_map(|source| &source.tables).filter_map(older_rules_note));

        let mut plan = Plan { job: self.job.name.clone(), notes, ..Plan::default() };
        for table in &self.job.tables {
            let planned = sources.iter().flat_map(|source| &source.tables);
            let planned = planned.clone().find(|planned| planned.table.spec.name == table.spec.name);
            plan.tables.push(match (&table.from, planned) {
                (TableInput::Query { shape, .. }, _) => {
                    let mut derived = self.derived(table, shape, &plan.tables)?;
                    plan.notes.extend(self.keep_back(table, shape, &plan.tables, &mut derived)?);
                    derived
                }
                (TableInput::Source(_), Some(planned)) => self.table(planned)?,
                (TableInput::Source(_), None) => continue,
            });
        }

        let failures = self.failures()?;
        let (stage, mut all) = (self.publish_stage(), ComparedExports::new());
        let mut read = HashSet::new();
        for export in &self.job.exports {
            let reads = self.reads(export)?;
            let (planned, compared) = self.export(&stage, export, &reads, &plan.tables, &failures)?;
            plan.exports.push(planned);
            all.extend(compared.map(|compared| (export.name.clone(), compared)));
            read.extend(reads);
        }

        for table in self.checks_unread(&read) {
            let days = self.days_to_check_again(table, &failures);
            // A run of selected parts does not check tables.
            if !days.is_empty() {
                let days = days.iter().map(NaiveDate::to_string).collect();
                plan.checks.push(CheckPlan { table: table.to_owned(), days });
            }
        }

        check_pushes(&self.job.pushes, &origins(self.job, &pulls(sources), self.store)?)?;
        plan.pushes = self.push_plans(&plan.tables)?;
        Ok((plan, all))
    }

    fn table(&self, planned: &Planned<'_>) -> Result<TablePlan, RunError> {
        let Planned { table, base, plan, .. } = planned;
        let reason = match &base.latest {
            None => Some(TableReason::Missing),
            Some(_) if base.reset.is_some() => Some(TableReason::Rebuild),
            Some(_) if planned.plan.only_settles() => Some(TableReason::Owed),
            Some(_) if planned.plan.changes_rows() => Some(TableReason::InputChanged),
            Some(_) => base.gc.is_some().then_some(TableReason::RulesChanged),
        };

        let held = self.held_days(planned)?;
        let owed = if base.reset.is_some() { Vec::new() } else { plan.owed_ahead(&base.version) };
        let stuck = StuckDays { window: table.spec.window, starts: owed.iter().map(|left| left.start).collect() };
        let inputs = inputs(&held, &stuck, plan, self.options);

        let mut days = Days::default();
        for input in &inputs {
            match input.state {
                InputState::Gone | InputState::Empty | InputState::Renamed | InputState::SameContent => {}
                _ => days.add(&input.days),
            }
        }
        if matches!(reason, Some(TableReason::Rebuild | TableReason::RulesChanged))
            && let Some(latest) = &base.latest
        {
            days.add(&held.of(&days_of(latest).collect::<Vec<_>>()));
        }
        for start in plan.settled() {
            days.add(&settled_days(&base.version, table.spec.window, start, &held));
        }

        let lost = owed.iter().filter(|left| left.lost);
        let to_remove = plan.to_remove(&owed);
        Ok(TablePlan {
            rows_to_remove: rows_of(&base.version, &to_remove),
            lost: lost.map(|left| base.version.window_times(left.start)).collect(),
            to_remove,
            owed: owed.iter().map(|left| owed_record(table, left)).collect(),
            table: table.spec.name.clone(),
            reason,
            bytes: inputs.iter().map(|input| input.bytes).sum(),
            unchanged: plan.unchanged.len() - plan.renamed.len(),
            inputs,
            days,
        })
    }

    /// The days of the job's time zone for which a table holds records; inputs are known by UTC days.
    fn held_days(&self, planned: &Planned<'_>) -> Result<HeldDays<'_>, RunError> {
        let mut held = HeldDays { job: self.job, empty: HashSet::new() };
        let Some(latest) = planned.base.latest.as_ref().filter(|_| self.job.timezone != Tz::UTC) else {
            return Ok(held);
        };

        let InputPlan { changed, grown, given_up, vanished, .. } = &planned.plan;
        let without = Without::new(&self.options.without);
        let left_out = vanished.iter().filter(|input| without.takes(&input.path));
        let grown = grown.iter().map(|grown| &grown.held);
        let inputs = changed.iter().map(|(_, old)| old).chain(grown).chain(given_up).chain(left_out);

        let mut utc: BTreeSet<i32> = inputs.flat_map(|input| input.days.iter().copied()).collect();
        if planned.plan.settles() || planned.base.reset.is_some() || planned.base.gc.is_some() {
            utc.extend(days_of(latest));
        }

        let local: BTreeSet<NaiveDate> = utc.into_iter().flat_map(|day| local_days(self.job.timezone, day)).collect();
        let name = &planned.table.spec.name;
        let failed = |source| RunError::Check { table: name.clone(), source: Box::new(source) };
        let session = Session::open(self.store, &SessionOptions::default()).map_err(failed)?;
        for day in local {
            let bounds = day_bounds(self.job.timezone, day);
            let holds = holds_records(&session, std::slice::from_ref(name), bounds);
            match self.runtime.block_on(holds) {
                Ok(true) => {}
                Ok(false) => {
                    held.empty.insert(day);
                }
                // A rebuild must not fail because the former layout or its files cannot be read: the day counts as held.
                Err(SqlError::NoTime { .. }) => {}
                Err(_) if planned.base.reset.is_some() => {}
                // A damaged file holds back its own days only.
                Err(error) if damage_in(&error).is_some() => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(held)
    }

    /// The plan of a derived table: what changed since it was made, and what this run is going to change.
    fn derived(&self, table: &Table, shape: &QueryShape, before: &[TablePlan]) -> Result<TablePlan, RunError> {
        let name = &table.spec.name;
        let upstream: Vec<&TablePlan> = before.iter().filter(|other| shape.reads.contains(&other.table)).collect();
        let mut days = Days::default();
        for other in &upstream {
            days.add(&other.days);
        }
        let mut reason = match self.store.table(name).latest()? {
            None => Some(TableReason::Missing),
            Some(latest) if self.options.rebuilds(name) => {
                days.known.extend(days_of(&latest).flat_map(|day| local_days(self.job.timezone, day)));
                Some(TableReason::Rebuild)
            }
            Some(_) => upstream.iter().any(|other| other.reason.is_some()).then_some(TableReason::UpstreamChanged),
        };

        let mut all_exist = true;
        for read in &shape.reads {
            all_exist &= self.store.table(read).latest()?.is_some();
        }
        if all_exist && !matches!(reason, Some(TableReason::Missing | TableReason::Rebuild)) {
            let stage = self.stage(&|_| {});
            let derived = stage.plan_derived(table, shape, &BTreeSet::new())?;
            if derived.planned.has_work() {
                reason = reason.or(Some(TableReason::UpstreamChanged));
                let changed = derived.changed_days();
                days.known.extend(changed.into_iter().flat_map(|day| local_days(self.job.timezone, day)));
            } else if derived.planned.base.gc.is_some() {
                reason = reason.or(Some(TableReason::RulesChanged));
                let utc = days_of(&derived.planned.base.version);
                days.known.extend(utc.flat_map(|day| local_days(self.job.timezone, day)));
            }
        }

        Ok(TablePlan {
            table: name.clone(),
            reason,
            inputs: Vec::new(),
            unchanged: 0,
            bytes: 0,
            days,
            owed: Vec::new(),
            to_remove: Vec::new(),
            rows_to_remove: 0,
            lost: Vec::new(),
        })
    }

    /// Takes a change out of the plan of a derived table that will stay as it is, because tables that it reads lost cells and will
    /// not be rebuilt. Returns a note that says so.
    fn keep_back(
        &self,
        table: &Table,
        shape: &QueryShape,
        before: &[TablePlan],
        derived: &mut TablePlan,
    ) -> Result<Option<String>, RunError> {
        let mut reads = shape.reads.clone();
        // What is rebuilt lacks nothing after this run.
        reads.retain(|name| !before.iter().any(|other| other.table == *name && other.lost.is_empty()));
        let Some(held_back) = self.held_back(table, &reads)? else { return Ok(None) };

        if held_back.is_whole && derived.reason == Some(TableReason::UpstreamChanged) {
            (derived.reason, derived.days) = (None, Days::default());
        }
        Ok(Some(held_back.note))
    }

    /// The parts to publish now, and after the tables have changed.
    fn export<'a>(
        &self,
        stage: &PublishStage<'a>,
        export: &'a Export,
        reads: &[String],
        tables: &[TablePlan],
        failures: &Failures,
    ) -> Result<(ExportPlan, Option<ComparedExport<'a>>), RunError> {
        let published = stage.published(export)?;
        let existing = self.existing_tables(export, reads, &published)?;

        let wanted = PartSelection::new(self.options, failures.labels(&export.name));
        let all_exist = existing.len() == reads.len();
        let compared = all_exist.then(|| stage.compare(export, &existing, &wanted, published.clone())).transpose();
        let mut read = tables.iter().filter(|table| reads.contains(&table.table));
        let compared = match compared {
            // The export is compared again when its tables are rebuilt.
            Err(RunError::Query { .. }) if read.any(|table| table.reason == Some(TableReason::Rebuild)) => None,
            compared => compared?,
        };

        let mut plan = ExportPlan {
            export: export.name.clone(),
            parts: Vec::new(),
            sealed: Vec::new(),
            owed: Vec::new(),
            unchanged: compared.as_ref().map_or(0, |compared| compared.unchanged),
            unknown: false,
        };
        let mut parts: BTreeMap<String, PlannedPart> = BTreeMap::new();
        for part in compared.iter().flat_map(|compared| &compared.parts) {
            let StalePart { label, folder, reason, .. } = part.clone();
            let planned = PlannedPart { label: label.clone(), part: folder, reason };
            if self.stays_lost(part, tables) {
                plan.owed.push(planned);
            } else if part.sealed {
                plan.sealed.push(planned);
            } else {
                parts.insert(label, planned);
            }
        }

        for table in tables.iter().filter(|table| reads.contains(&table.table) && table.reason.is_some()) {
            plan.unknown |= table.days.unknown;
            for period in self.touched_periods(export, table) {
                let label = period.label();
                let known = published.parts.contains_key(&label);
                if !wanted.takes(&export.name, &period, self.job.timezone, !known)
                    || plan.sealed.iter().chain(&plan.owed).any(|part| part.label == label)
                    || table.loses(&period.bounds(self.job.timezone))
                {
                    continue;
                }
                let reason = if known { format!("{} changed", table.table) } else { "missing".to_owned() };
                let part = export.name_template.render_at(period.start);
                parts.entry(label.clone()).or_insert(PlannedPart { label, part, reason });
            }
        }
        plan.unknown &= wanted.may_take_unknown();
        plan.parts = parts.into_values().collect();
        Ok((plan, compared))
    }

    /// The tables that an export reads, as far as they exist.
    ///
    /// # Errors
    /// If versions of one that the list of the export names are lost, or one that its parts were made from is gone.
    fn existing_tables(
        &self,
        export: &Export,
        reads: &[String],
        published: &Published,
    ) -> Result<Vec<String>, RunError> {
        let mut named = KnownVersions::default();
        named.add_list(published);
        let mut existing = Vec::new();
        for table in reads {
            if let Some(newest) = self.store.table(table).latest()? {
                named.check(self.store, table, &newest)?;
                existing.push(table.clone());
            }
        }

        let mut sources = published.parts.values().flat_map(|part| part.sources.keys());
        let lost = sources.find(|table| reads.contains(table) && !existing.contains(table));
        match lost.filter(|_| !self.options.rebuild) {
            Some(table) => Err(RunError::TableMissing { export: export.name.clone(), table: table.clone() }),
            None => Ok(existing),
        }
    }

    /// Whether a window of a part lost cells that the load of this run does not rebuild.
    fn stays_lost(&self, part: &StalePart, tables: &[TablePlan]) -> bool {
        let Some(lost) = &part.lost else { return false };
        let times = part.period.bounds(self.job.timezone);
        !tables.iter().any(|table| table.table == lost.table && !table.loses(&times))
    }

    /// The periods of an export in which cells of a table are going to change.
    fn touched_periods(&self, export: &Export, table: &TablePlan) -> BTreeSet<Period> {
        let days = table.days.known.iter();
        days.flat_map(|day| Period::of_day(export.per, self.job.timezone, *day)).collect()
    }

    /// The tables that an export reads; some may not exist yet.
    pub(crate) fn reads(&self, export: &Export) -> Result<Vec<String>, RunError> {
        let known = || self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reads) = known().get(&export.name) {
            return Ok(reads.clone());
        }
        let reads = self.find_reads(export)?;
        known().insert(export.name.clone(), reads.clone());
        Ok(reads)
    }

    /// The tables that the query of an export reads, found by planning it over the tables of the job and the store.
    fn find_reads(&self, export: &Export) -> Result<Vec<String>, RunError> {
        let mut readable = ReadableTables::of(self.store, self.job)?;
        let tables = std::mem::take(&mut readable.tables);
        let mut wrong = |error: SqlError| {
            let export_name = export.name.clone();
            if let Some(damaged) = readable.blame(&export.sql) {
                return damaged;
            }
            match maker_of_unknown(self.project, self.job, &error) {
                Some((name, job)) => RunError::NotMade { export: export_name, name, job },
                None => RunError::Query { export: export_name, source: Box::new(error) },
            }
        };
        let reads = tables_read(export, read_by(&tables, &export.sql).map_err(&mut wrong)?)?;
        // Reports a mistake in the query before anything is loaded.
        let checked = self.runtime.block_on(check_query(&tables, &export.sql, &probe_params(export))).map_err(wrong)?;
        check_columns(export, &checked.schema)?;
        Ok(reads)
    }
}

/// The UTC days of a version of a table.
fn days_of(version: &Version) -> impl Iterator<Item = i32> {
    version.windows.iter().flat_map(|window| window.days.keys().copied())
}

/// Days of the job's time zone for which a table holds records.
struct HeldDays<'a> {
    job: &'a Job,
    /// Days without records, although they overlap a UTC day that has some.
    empty: HashSet<NaiveDate>,
}

impl HeldDays<'_> {
    /// Those that overlap the UTC days `utc`.
    fn of(&self, utc: &[i32]) -> Days {
        let local = utc.iter().flat_map(|day| local_days(self.job.timezone, *day));
        local.filter(|day| !self.empty.contains(day)).collect()
    }
}

/// UTC days of windows that stay as they are.
struct StuckDays {
    window: Window,
    starts: BTreeSet<i64>,
}

impl StuckDays {
    /// Whether all of a day stays; a day may have windows of hours.
    fn holds(&self, day: i32) -> bool {
        self.window != Window::Hour && self.starts.contains(&window_of(self.window, i64::from(day) * DAY))
    }
}

/// The days that change when the owed window at `start` is rebuilt.
fn settled_days(version: &Version, window: Window, start: i64, held: &HeldDays<'_>) -> Days {
    let state = version.windows.iter().find(|state| state.start == start);
    let mut utc: Vec<i32> = state.into_iter().flat_map(|state| state.days.keys().copied()).collect();
    let is_known = matches!(window, Window::Hour | Window::Day);
    utc.extend(i32::try_from(start.div_euclid(DAY)).ok().filter(|_| is_known));
    let mut days = held.of(&utc);
    days.unknown = !is_known;
    days
}

/// The planned change of each input that is not as it was. Days of windows that stay as they are do not change.
fn inputs(held: &HeldDays<'_>, stuck: &StuckDays, plan: &InputPlan, options: &RunOptions) -> Vec<PlannedInput> {
    let mut inputs = Vec::new();
    for (_, file) in plan.new.iter().chain(&plan.resumed) {
        inputs.push(planned_input(&file.path, InputState::New, file.size, named_days(file.day, stuck)));
    }
    for (file, old) in &plan.changed {
        let mut days = named_days(file.day, stuck);
        days.add(&changed_days(&old.days, held, stuck));
        inputs.push(planned_input(&file.path, options.state_of(file, old), file.size, days));
    }
    for Grown { file, held: old, from, .. } in &plan.grown {
        let mut days = named_days(file.day, stuck);
        days.add(&changed_days(&old.days, held, stuck));
        inputs.push(planned_input(&file.path, InputState::Grown, file.size - from, days));
    }

    for (_, now) in &plan.renamed {
        inputs.push(planned_input(now, InputState::Renamed, 0, Days::default()));
    }
    for (file, _) in &plan.same {
        inputs.push(planned_input(&file.path, InputState::SameContent, 0, Days::default()));
    }
    for TakenOut { path, state, days } in taken_out(plan) {
        inputs.push(planned_input(path, state, 0, changed_days(days, held, stuck)));
    }
    for old in &plan.vanished {
        inputs.push(planned_input(&old.path, absence(plan, old), 0, changed_days(&old.days, held, stuck)));
    }
    inputs
}

fn planned_input(path: &str, state: InputState, bytes: u64, days: Days) -> PlannedInput {
    PlannedInput { path: path.to_owned(), state, bytes, days, is_told: false }
}

/// The days of a file by the day in its name; unknown without one.
fn named_days(day: Option<NaiveDate>, stuck: &StuckDays) -> Days {
    match day {
        Some(day) if stuck.holds(day.to_epoch_days()) => Days::default(),
        Some(day) => Days::from_iter([day]),
        None => Days::unknown(),
    }
}

/// The days that change with rows of the UTC days `utc`.
fn changed_days(utc: &[i32], held: &HeldDays<'_>, stuck: &StuckDays) -> Days {
    let changed: Vec<i32> = utc.iter().copied().filter(|day| !stuck.holds(*day)).collect();
    held.of(&changed)
}
