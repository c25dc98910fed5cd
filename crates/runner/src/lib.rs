//! Runs of jobs: plans, runs, reports and backups.
//!
//! Of a job (crate `tidetable-job`), [`plan_job`] computes what a run would do, and [`run()`] does it, reports progress to an
//! [`Observer`], and returns a [`RunReport`].
//!
//! | module | contents |
//! |---|---|
//! | [`plan`], [`mod@run`] | what a run will do; options, errors and parts of a run |
//! | [`record`] | records of past runs, and the process that runs a job now |
//! | [`report`] | status, lineage, clean-up, and damage |
//! | [`backup`] | copies of a store |
//! | [`observe`] | events and progress of a run |
//! | [`units`] | the parts of a run that other processes may do |

pub mod backup;
mod checks;
mod compact;
mod drop;
mod fault;
mod ids;
mod lock;
mod marks;
pub mod observe;
mod options;
pub mod plan;
mod readable;
pub mod report;
mod root;
pub mod run;
mod secrets;
pub mod units;
mod web;
mod worker;

pub use compact::{MergesElsewhere, compact, compact_elsewhere};
pub use drop::{DropLock, DropPlan, DroppedKind};
pub use fault::lost_store::{LostStore, LostTable};
pub use ids::UlidIds;
pub use marks::Marks;
pub use observe::Observer;
pub use plan::Plan;
pub use readable::ReadableTables;
pub use root::{CACHE_SIZE, cache_directory, files_storage, open_cache, open_location};
pub use run::{RunError, RunOptions, RunReport, Stop, open_store, plan_job, run, runtime};
pub use tidetable_record as record;
pub use tidetable_source::{Location, without_passwords};
pub use web::{DownloadError, download};
pub use worker::{Worker, WorkerError, WorkerOptions};
