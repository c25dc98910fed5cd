//! Jobs: job files, plans, runs, schedules and reports.
//!
//! A [`Project`] is a directory with job files and the root of a store. A [`Job`] is a validated job file;
//! [`plan_job`] computes what a run would do, and [`run()`] does it, reports progress to an [`Observer`], and returns a
//! [`RunReport`].
//!
//! | module | contents |
//! |---|---|
//! | [`job`] | job files, their sections, mistakes and JSON Schema |
//! | [`plan`], [`mod@run`] | what a run will do; options, errors and parts of a run |
//! | [`record`] | records of past runs, and the process that runs a job now |
//! | [`report`] | status, lineage, clean-up, and damage |
//! | [`schedule`], [`day`], [`template`], [`order`] | due and missed runs; days of a time zone; names with dates; dependencies |
//! | [`scaffold`] | job files proposed from data files |
//! | [`backup`] | copies of a store |
//! | [`workload`] | files of queries: what a table will be asked |
//! | [`observe`] | events and progress of a run |
//! | [`units`] | the parts of a run that other processes may do |

pub mod backup;
mod calendar;
mod checks;
mod compact;
mod fault;
mod ids;
pub mod job;
mod load_job;
mod lock;
mod mask;
pub mod observe;
mod options;
pub mod order;
pub mod plan;
mod project;
mod readable;
pub mod report;
mod root;
pub mod run;
pub mod scaffold;
pub mod schedule;
mod secrets;
mod size;
pub mod units;
mod worker;
pub mod workload;

pub use calendar::{day, template};
pub use compact::{compact, compact_elsewhere};
pub use ids::UlidIds;
pub use job::{Job, JobError};
pub use observe::Observer;
pub use plan::Plan;
pub use project::Project;
pub use readable::ReadableTables;
pub use root::{CACHE_SIZE, cache_directory, open_cache, open_location};
pub use run::{RunError, RunOptions, RunReport, Stop, open_store, plan_job, run, runtime};
pub use size::parse_size;
pub use tidetable_record as record;
pub use tidetable_source::Location;
pub use worker::{Worker, WorkerError};
