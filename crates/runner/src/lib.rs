//! Job files, and running them.
//!
//! - [`Project`] finds the project's folder, its store and its jobs.
//! - [`Job`] is a job file that was read and found right; [`JobError`] says all that is wrong with one.
//! - [`day_bounds`], [`day_of`] and [`days_touched`] say what a day is in a job's time zone, and
//!   [`DayTemplate`] names things after days.
//! - [`plan_job`] says what a run would do, as a [`Plan`].
//! - [`run`] runs a job, telling an [`Observer`] what it does, and returns its [`RunRecord`]; [`Runs`] reads those of
//!   past runs, and [`holder`] says who runs a job now.
//! - [`compact`] compacts a table; [`run`] does so after a load, where that is due.

mod compact;
mod day;
mod ids;
mod job;
mod observe;
mod order;
mod plan;
mod project;
mod record;
mod run;

pub use compact::{CompactionRecord, compact};
pub use day::{DayTemplate, DayTemplateError, day_bounds, day_of, days_touched};
pub use ids::UlidIds;
pub use job::{
    Check, Export, ExportFormat, ExportMode, HookKind, Hooks, Job, JobError, JobFileError, Per, Problem, ProjectError,
    Rule, SettingValue, Source, StorageSetting, Table,
};
pub use observe::{Event, Observer, Silent};
pub use order::{dependencies, in_dependency_order};
pub use plan::{Days, ExportPlan, Plan, PlannedInput, PlannedPart, TablePlan, TableReason, ranges};
pub use project::Project;
pub use record::{
    Asked, CheckRecord, ExportRecord, InputRecord, InputState, LoadRecord, Outcome, PartState, RunRecord, Runs,
    Severity,
};
pub use run::{
    Holder, IfLocked, NoSecret, Only, RunError, RunOptions, RunReport, Stop, Stopped, check_queries, day_params,
    holder, open_store, plan_job, records_of, run, runtime,
};
