//! Context of the publish stage.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use tidetable_job::{Job, Project};
use tidetable_store::Store;

use crate::observe::Observer;
use crate::options::run_options::RunOptions;
use crate::units::tally::Tally;
use crate::units::wire::JobReference;

/// Directories of exports that this job does not declare, each with whose it is.
pub(crate) type Others = BTreeMap<String, ExportOwner>;

/// Whose a directory of a published part is.
#[derive(Debug, Clone)]
pub(crate) struct ExportOwner {
    /// The job; that of the run, if it declared the export before.
    pub(crate) job: String,
    pub(crate) export: String,
}

/// Context of the publish stage.
pub(crate) struct PublishStage<'a> {
    pub(crate) project: &'a Project,
    pub(crate) job: &'a Job,
    pub(crate) store: &'a Store,
    pub(crate) options: &'a RunOptions,
    pub(crate) observer: &'a dyn Observer,
    pub(crate) runtime: &'a tokio::runtime::Handle,
    /// The root as the project names it.
    pub(crate) root: &'a str,
    /// The job as other processes find it; `None` without a carrier.
    pub(crate) reference: Option<&'a JobReference>,
    /// Counts what other processes do for the run.
    pub(crate) tally: &'a Tally,
    /// What is published by other exports than those of the job, read on first use.
    pub(crate) others: OnceLock<Arc<Others>>,
}
