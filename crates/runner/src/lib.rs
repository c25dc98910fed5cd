//! Job files, and running them.
//!
//! - [`Project`] finds the project's folder, its store and its jobs.
//! - [`Job`] is a job file that was read and found right; [`JobError`] says all that is wrong with one.
//! - [`day_bounds`], [`day_of`] and [`days_touched`] say what a day is in a job's time zone, and
//!   [`DayTemplate`] names things after days.
//! - [`run`] runs a job, telling an [`Observer`] what it does, and returns its [`RunRecord`].
//! - [`compact`] compacts a table; [`run`] does so after a load, where that is due.

mod compact;
mod day;
mod ids;
mod job;
mod observe;
mod project;
mod run;

pub use compact::{CompactionRecord, compact};
pub use day::{DayTemplate, DayTemplateError, day_bounds, day_of, days_touched};
pub use ids::UlidIds;
pub use job::{
    Export, ExportFormat, ExportMode, Job, JobError, JobFileError, Per, Problem, ProjectError, Source, Table,
};
pub use observe::{Event, Observer, Silent};
pub use project::Project;
pub use run::{
    ExportRecord, InputRecord, LoadRecord, Outcome, RunError, RunOptions, RunRecord, RunReport, open_store, records_of,
    run, runtime,
};
