//! Looks at what there is, and plans what a run does.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use tidetable_sql::{Declared, check_query, read_by};
use tidetable_store::{InputPlan, Published};

use super::error::RunError;
use super::load::{Planned, PlannedSource, taken_out};
use super::params::probe_params;
use super::parts::{Part, Wanted};
use super::publish::tables_read;
use super::{Run, RunOptions};
use crate::day::{MICROS_PER_DAY, days_touched};
use crate::job::{Export, From, Job};
use crate::period::Period;
use crate::plan::{Days, ExportPlan, Plan, PlannedInput, PlannedPart, TablePlan, TableReason};
use tidetable_record::InputState;

impl Run<'_> {
    /// What the run does with `sources`, and with what follows from them.
    pub(super) fn plan(&self, sources: &[PlannedSource<'_>]) -> Result<Plan, RunError> {
        let mut plan = Plan { job: self.job.name.clone(), ..Plan::default() };
        for table in &self.job.tables {
            let planned = sources.iter().flat_map(|source| &source.tables);
            let planned = planned.clone().find(|planned| planned.table.spec.name == table.spec.name);
            plan.tables.push(match (&table.from, planned) {
                (From::Query { shape, .. }, _) => self.derived(&table.spec.name, &shape.reads, &plan.tables)?,
                (From::Source(_), Some(planned)) => self.table(planned),
                (From::Source(_), None) => continue,
            });
        }
        for export in &self.job.exports {
            let planned = self.export(export, &plan.tables)?;
            plan.exports.push(planned);
        }
        Ok(plan)
    }

    fn table(&self, planned: &Planned<'_>) -> TablePlan {
        let Planned { table, base, plan, .. } = planned;
        let reason = match &base.latest {
            None => Some(TableReason::Missing),
            Some(_) if base.reset.is_some() => Some(TableReason::Rebuild),
            Some(_) if planned.plan.changes_rows() => Some(TableReason::InputChanged),
            Some(_) => base.gc.is_some().then_some(TableReason::RulesChanged),
        };
        let inputs = inputs(self.job, plan, self.options);
        let mut days = Days::default();
        let touching = |input: &&PlannedInput| {
            !matches!(input.state, InputState::Gone | InputState::Renamed | InputState::SameContent)
        };
        inputs.iter().filter(touching).for_each(|input| days.add(&input.days));
        if matches!(reason, Some(TableReason::Rebuild | TableReason::RulesChanged))
            && let Some(latest) = &base.latest
        {
            let held = latest.windows.iter().flat_map(|window| window.days.keys());
            days.known.extend(held.flat_map(|day| local_days(self.job, *day)));
        }
        TablePlan {
            table: table.spec.name.clone(),
            reason,
            bytes: inputs.iter().map(|input| input.bytes).sum(),
            unchanged: plan.unchanged.len() - plan.renamed.len(),
            inputs,
            days,
        }
    }

    /// A table that is made from others follows them.
    fn derived(&self, name: &str, reads: &[String], before: &[TablePlan]) -> Result<TablePlan, RunError> {
        let latest = self.store.table(name).latest()?;
        let upstream = || before.iter().filter(|table| reads.contains(&table.table));
        let reason = match latest {
            None => Some(TableReason::Missing),
            Some(_) if self.options.rebuild => Some(TableReason::Rebuild),
            Some(_) => upstream().any(|table| table.reason.is_some()).then_some(TableReason::UpstreamChanged),
        };
        let mut days = Days::default();
        upstream().for_each(|table| days.add(&table.days));
        Ok(TablePlan { table: name.to_owned(), reason, inputs: Vec::new(), unchanged: 0, bytes: 0, days })
    }

    /// What is to be published now, and what will be when its tables have changed.
    fn export(&self, export: &Export, tables: &[TablePlan]) -> Result<ExportPlan, RunError> {
        let reads = self.reads(export)?;
        let stage = self.publish_stage();
        let mut parts: BTreeMap<String, PlannedPart> = BTreeMap::new();
        let mut unchanged = 0;
        let mut there = Vec::new();
        for table in &reads {
            if self.store.table(table).latest()?.is_some() {
                there.push(table.clone());
            }
        }
        let published = Published::load(self.store.blobs().as_ref(), &export.name)?;
        let lost = published.parts.values().flat_map(|part| part.sources.keys());
        let lost = lost.clone().find(|table| reads.contains(table) && !there.contains(table));
        if let Some(table) = lost.filter(|_| !self.options.rebuild) {
            return Err(RunError::TableMissing { export: export.name.clone(), table: table.clone() });
        }
        let wanted = Wanted::new(self.options, self.failed_before(export)?);
        if there.len() == reads.len() {
            let looked = stage.look(export, &there, &wanted)?;
            unchanged = looked.unchanged;
            let planned = looked
                .parts
                .into_iter()
                .map(|Part { label, folder, reason, .. }| (label.clone(), PlannedPart { label, part: folder, reason }));
            parts.extend(planned);
        }
        let mut unknown = false;
        for table in tables.iter().filter(|table| reads.contains(&table.table) && table.reason.is_some()) {
            unknown |= table.days.unknown;
            let tz = self.job.timezone;
            let touched: BTreeSet<Period> =
                table.days.known.iter().flat_map(|day| Period::of_day(export.per, tz, *day)).collect();
            for period in touched {
                let label = period.label();
                let known = published.parts.contains_key(&label);
                if !wanted.takes(&export.name, &period, tz, !known) {
                    continue;
                }
                let reason = if known { format!("{} changed", table.table) } else { "missing".to_owned() };
                let part =
                    PlannedPart { label: label.clone(), part: export.name_template.render_at(period.start), reason };
                parts.entry(label).or_insert(part);
            }
        }
        unknown &= wanted.may_take_unknown();
        let parts: Vec<PlannedPart> = parts.into_values().collect();
        Ok(ExportPlan { export: export.name.clone(), parts, unchanged, unknown })
    }

    /// Plans the query of an export over the tables of the job and of the store.
    pub(super) fn find_reads(&self, export: &Export) -> Result<Vec<String>, RunError> {
        let mut tables: Vec<Declared> = Vec::new();
        for name in self.store.tables()?.into_iter().filter(|name| self.job.table(name).is_none()) {
            tables.push(Declared::new(&name, self.store.snapshot(&name)?.layout()));
        }
        tables.extend(self.job.tables.iter().map(|table| Declared::new(&table.spec.name, &table.layout)));
        let wrong = |error| RunError::Query { export: export.name.clone(), source: Box::new(error) };
        let reads = tables_read(export, read_by(&tables, &export.sql).map_err(wrong)?)?;
        // So that a mistake is told before anything is loaded.
        self.runtime.block_on(check_query(&tables, &export.sql, &probe_params(export))).map_err(wrong)?;
        Ok(reads)
    }
}

/// The days of the job's time zone that a UTC day lies in.
pub(super) fn local_days(job: &Job, utc_day: i32) -> impl Iterator<Item = NaiveDate> {
    let start = i64::from(utc_day) * MICROS_PER_DAY;
    days_touched(job.timezone, start..start + MICROS_PER_DAY)
}

/// What becomes of the inputs that are not as they were.
fn inputs(job: &Job, plan: &InputPlan, options: &RunOptions) -> Vec<PlannedInput> {
    let of_path = |day: Option<NaiveDate>| day.map_or_else(Days::unknown, |day| Days::from_iter([day]));
    let held = |days: &[i32]| days.iter().flat_map(|day| local_days(job, *day)).collect::<Days>();
    let input = |path: &str, state, bytes, days| PlannedInput { path: path.to_owned(), state, bytes, days };
    let brought = plan.new.iter().chain(&plan.resumed);
    let mut inputs: Vec<PlannedInput> =
        brought.map(|(_, file)| input(&file.path, InputState::New, file.size, of_path(file.day))).collect();
    let changed = plan.changed.iter().map(|pair| (options.state_of(&pair.0, &pair.1), pair));
    let grown = plan.grown.iter().map(|pair| (InputState::Grown, pair));
    for (state, (file, old)) in changed.chain(grown) {
        inputs.push({
            let mut days = of_path(file.day);
            days.add(&held(&old.days));
            input(&file.path, state, file.size, days)
        });
    }
    inputs.extend(plan.renamed.iter().map(|(_, now)| input(now, InputState::Renamed, 0, Days::default())));
    inputs.extend(plan.same.iter().map(|(file, _)| input(&file.path, InputState::SameContent, 0, Days::default())));
    let taken_out = taken_out(plan, options).into_iter();
    inputs.extend(taken_out.map(|(path, state, days)| input(path, state, 0, held(days))));
    inputs.extend(plan.vanished.iter().map(|old| input(&old.path, InputState::Gone, 0, held(&old.days))));
    inputs
}
