//! How a job is named to other processes, which have its files, too.

use tidetable_job::{Job, Project, TableInput};
use xxhash_rust::xxh3::xxh3_128;

use crate::units::wire::JobReference;

impl JobReference {
    /// The reference of `job`.
    pub(crate) fn of(project: &Project, job: &Job) -> Self {
        let path = job.path.strip_prefix(&project.dir).unwrap_or(&job.path);
        Self { name: job.name.clone(), path: path.to_string_lossy().into_owned(), fingerprint: fingerprint(job) }
    }
}

/// Fingerprint of the job file and of what it reads of other files: queries and messages.
fn fingerprint(job: &Job) -> String {
    let mut parts = vec![job.text.clone()];
    for table in &job.tables {
        let source = match &table.from {
            TableInput::Source(name) => job.source(name),
            TableInput::Query { .. } => None,
        };
        parts.push(table.fingerprint(source));
    }
    parts.extend(job.exports.iter().map(|export| export.sql.clone()));
    parts.extend(job.checks.iter().flat_map(|check| &check.rules).map(ToString::to_string));
    format!("{:032x}", xxh3_128(parts.join("\0").as_bytes()))
}
