//! Job files: located, parsed, validated, and compiled into what the stages need.

pub(crate) mod cron;
pub(crate) mod declaration;
pub(crate) mod error;
pub(crate) mod fields;
pub(crate) mod keys;
pub(crate) mod name_conflict;
pub(crate) mod names;
pub(crate) mod places;
pub(crate) mod problem;
pub(crate) mod schema;
pub(crate) mod sections;
pub(crate) mod stored_names;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod types;
pub(crate) mod words;

pub use crate::calendar::per::Per;
pub use cron::Cron;
pub use declaration::Job;
pub use error::{JobError, ProjectError};
pub(crate) use fields::{Fields, Reader};
pub(crate) use keys::PROJECT;
pub use name_conflict::may_be_folder_of;
pub use name_conflict::{NameConflict, name_conflict};
pub(crate) use names::Id;
pub use places::TablePlaces;
pub use problem::{JobFileError, Problem};
pub use schema::job_schema;
pub use sections::allowance::Allowance;
pub use sections::catch_up::CatchUp;
pub use sections::checks::{Check, Rule};
pub use sections::declared_table::Table;
pub use sections::declared_table::TableInput;
pub use sections::export::{Catalog, Export, ExportMode, FILE_SIZE};
pub use sections::push::Push;
pub use sections::reporting::Reporting;
pub use sections::reporting::hooks::{HookKind, Hooks};
pub use sections::reporting::lineage::{LineageSettings, LineageTarget};
pub use sections::root::{CacheSettings, Cluster, Root};
pub(crate) use sections::root::{read as read_root, read_cluster};
pub use sections::source::Source;
pub use sections::stages::{Retries, Stage, Stages};
pub use sections::storage::{SettingValue, StorageSetting};
pub use words::listed;
pub use words::nearest;
