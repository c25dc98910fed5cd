//! Jobs: job files, plans, runs, schedules and reports.
//!
//! - [`Project`] finds the project directory, its store and its jobs.
//! - [`Job`] is a validated job file; [`JobError`] lists everything that is wrong with one.
//! - [`day_bounds`], [`day_of`] and [`days_touched`] compute the days of a job's time zone, and
//!   [`TimeTemplate`] renders names with dates in them.
//! - [`plan_job`] computes what a run would do, as a [`Plan`].
//! - [`run`] runs a job, reports progress to an [`Observer`], and returns its [`RunRecord`]; [`Runs`] reads the records
//!   of past runs, and [`holder`] names the process that runs a job now.
//! - [`propose`] makes a [`Proposal`] of a job for a data file.
//! - [`moments`], [`missed`] and [`to_run`] evaluate schedules; [`job_schema`] is the JSON Schema of job files.
//! - [`statuses`] reports the state of jobs, [`Lineage`] what was made from what, [`CleanPlan`] which records and files
//!   may be removed, and [`Diagnosis`] what is damaged.
//! - [`Vault`] is a directory of backups of a store.
//! - [`compact`] compacts a table; [`run`] does so after a load, where compaction is due.

mod backup;
mod compact;
mod day;
mod ids;
mod job;
mod observe;
mod order;
mod period;
mod plan;
mod project;
mod readable;
mod report;
mod run;
mod scaffold;
mod schedule;
mod size;
mod template;

pub use backup::{Backup, BackupDone, BackupError, Held, Restored, Vault, VaultReport};
pub use compact::compact;
pub use day::{day_bounds, day_of, days_touched};
pub use ids::UlidIds;
pub use job::{
    CatchUp, Check, Cron, Export, ExportMode, HookKind, Hooks, Job, JobError, JobFileError, NameConflict, Per, Problem,
    ProjectError, Retries, Rule, SettingValue, Source, Stage, Stages, StorageSetting, Table, job_schema, name_conflict,
    nearest,
};
pub use observe::{Event, Observer, Silent, Unit};
pub use order::{dependencies, in_dependency_order};
pub use plan::{CheckPlan, Days, ExportPlan, Plan, PlannedInput, PlannedPart, TablePlan, TableReason, ranges};
pub use project::Project;
pub use readable::ReadableTables;
pub use report::{
    CleanOptions, CleanPlan, Cleaned, CleanedKind, DaysOf, Diagnosis, Finding, FindingKind, Lineage, Link, LinkKind,
    Status, Statuses, statuses,
};
pub use run::{
    DataChecks, IfLocked, NoSecret, Only, RunError, RunOptions, RunReport, Selected, Stop, Stopped, check_data,
    check_keys, check_queries, open_store, plan_job, probe_params, refused, run, runtime, tables_read,
};
pub use scaffold::{Proposal, ProposeError, propose};
pub use schedule::{done_until, is_due, minute_of, minutes_elsewhere, missed, moments, to_run};
pub use size::parse_size;
pub use template::{TimeTemplate, TimeTemplateError, Word};
pub use tidetable_record::{
    Asked, AttemptRecord, CheckRecord, CompactionRecord, ExportRecord, Failures, Holder, InputRecord, InputState,
    LoadRecord, Outcome, PartState, RunFound, RunRecord, Runs, Severity, holder, lock_path, rejected_rows, state_of,
};
