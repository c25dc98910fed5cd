//! Jobs: the project, its job files, their schedules, and the files of queries beside them.
//!
//! A [`Project`] is a directory with job files and the root of a store. [`Job::load`] reads one job file, reports all its
//! mistakes with line and column, and compiles the layouts it declares. Nothing here reads or writes a store; `tidetable-runner`
//! runs what a job declares.
//!
//! | module | contents |
//! |---|---|
//! | [`mod@file`] | the job file: sections, keys, mistakes and JSON Schema |
//! | [`day`], [`template`] | days of a time zone; names with dates |
//! | [`order`], [`schedule`] | jobs after those they depend on; due and missed runs |
//! | [`scaffold`] | job files proposed from data files |
//! | [`workload`] | files of queries: what a table will be asked |

mod calendar;
pub mod file;
mod load;
mod mask;
pub mod order;
mod project;
pub mod scaffold;
pub mod schedule;
mod series;
mod several;

mod size;
pub mod workload;

pub use calendar::period::Period;
pub use calendar::{day, template};
pub use file::{
    Allowance, CacheSettings, Catalog, CatchUp, Check, Cluster, Cron, Export, ExportMode, FILE_SIZE, HookKind, Hooks,
    Job, JobError, JobFileError, LineageSettings, LineageTarget, NameConflict, Per, Problem, ProjectError, Push,
    Reporting, Retries, Root, Rule, SettingValue, Source, Stage, Stages, StorageSetting, Table, TableInput,
    TablePlaces, job_schema, listed, may_be_folder_of, name_conflict, nearest,
};
pub use project::Project;
pub use several::several;
pub use size::parse_size;
pub use tidetable_source::shell_word;
