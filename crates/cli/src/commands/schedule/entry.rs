//! What crontab lines and systemd units are made of.

use tidetable_runner::{Cron, Job};

/// A job that has a schedule.
pub(super) struct Scheduled {
    pub(super) job: Job,
    pub(super) written: String,
    pub(super) cron: Cron,
}

/// What every line and unit names.
pub(super) struct Invocation {
    pub(super) binary: String,
    pub(super) folder: String,
    pub(super) root: Option<String>,
    pub(super) logs: String,
}
