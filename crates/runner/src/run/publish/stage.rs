//! Context of the publish stage.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use tidetable_store::Store;

use crate::job::Job;
use crate::observe::Observer;
use crate::run::options::RunOptions;

/// Directories that other jobs publish, each with its job.
pub(crate) type Others = BTreeMap<String, String>;

/// Context of the publish stage.
pub(crate) struct PublishStage<'a> {
    pub(crate) job: &'a Job,
    pub(crate) store: &'a Store,
    pub(crate) options: &'a RunOptions,
    pub(crate) observer: &'a dyn Observer,
    pub(crate) runtime: &'a tokio::runtime::Handle,
    /// What other jobs publish, read on first use.
    pub(crate) others: OnceLock<Arc<Others>>,
}
