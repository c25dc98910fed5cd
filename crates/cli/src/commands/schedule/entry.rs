//! Data for crontab lines and systemd units.

use tidetable_job::{Cron, Job};

/// A job with a schedule.
pub(super) struct Scheduled {
    pub(super) job: Job,
    pub(super) written: String,
    pub(super) cron: Cron,
}

/// The parts common to all lines and units.
pub(super) struct Invocation {
    pub(super) binary: String,
    pub(super) folder: String,
    pub(super) root: Option<String>,
    pub(super) logs: String,
}
