//! The logical time up to which a job has done its scheduled runs.

use tidetable_record::Runs;
use tidetable_store::StoreError;

/// The logical time up to which the scheduled times of `job` are done, microseconds since the epoch; `None` if the job
/// never ran. Compares logical times, so a run started by hand counts too.
///
/// A finished run of all days counts, even with parts it could not publish: the next run tries those
/// again. A failed, interrupted or killed run does not: it is made up for at its logical time. Nor does
/// one whose logical time is in the future.
///
/// # Errors
/// If the records cannot be listed.
pub fn done_until(runs: Runs<'_>, job: &str, now: i64) -> Result<Option<i64>, StoreError> {
    let (mut done, mut tried): (Option<i64>, Option<i64>) = (None, None);
    for record in runs.readable(Some(job))? {
        if record.now <= now && record.asked.is_whole() {
            if record.outcome.is_open() {
                tried = Some(tried.map_or(record.now, |tried| tried.min(record.now)));
            } else {
                done = done.max(Some(record.now));
            }
        }
        // Earlier runs have earlier logical times, so thousands of records need not be read.
        if done.is_some_and(|done| record.started < done) {
            break;
        }
    }
    // A job whose first run failed has that run still to do.
    Ok(done.or_else(|| tried.map(|tried| tried.saturating_sub(1))))
}
