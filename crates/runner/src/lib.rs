//! Job files, and running them.
//!
//! - [`Project`] finds the project's folder, its store and its jobs.
//! - [`Job`] is a job file that was read and found right; [`JobError`] says all that is wrong with one.
//! - [`day_bounds`], [`day_of`] and [`days_touched`] say what a day is in a job's time zone, and
//!   [`TimeTemplate`] names things after days.
//! - [`plan_job`] says what a run would do, as a [`Plan`].
//! - [`run`] runs a job, telling an [`Observer`] what it does, and returns its [`RunRecord`]; [`Runs`] reads those of
//!   past runs, and [`holder`] says who runs a job now.
//! - [`propose`] makes a [`Proposal`] of a job for a file of which nothing is declared.
//! - [`moments`], [`missed`] and [`to_run`] say when a job runs, and [`job_schema`] what its file may hold.
//! - [`statuses`] says how jobs stand, [`Lineage`] what came from what, [`CleanPlan`] what may be cleaned away,
//!   and a [`Diagnosis`] what is damaged.
//! - [`Vault`] is a folder of backups of a store.
//! - [`compact`] compacts a table; [`run`] does so after a load, where that is due.

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
    CatchUp, Check, Cron, Export, ExportMode, HookKind, Hooks, Job, JobError, JobFileError, NamesMeet, Per, Problem,
    ProjectError, Retries, Rule, SettingValue, Source, Stage, Stages, StorageSetting, Table, job_schema,
    names_that_meet, nearest,
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
