//! Up to when the runs of a job have done what its schedule asks for.

use tidetable_record::Runs;
use tidetable_store::StoreError;

/// The logical time up to which the moments of the schedule of `job` are taken care of, microseconds since the epoch;
/// `None` if the job never ran. Looks at logical times, so a run that a person began counts as one of the schedule's.
///
/// What counts is a run of all days that came to its end, if only with days it could not publish: the next run tries them
/// again. One that failed, was interrupted or killed does not: its moment is made up for, at its logical time. Nor does
/// one whose logical time is still to come.
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
        // Runs before this one began earlier, and none has a logical time after it began: there may be thousands.
        if done.is_some_and(|done| record.started < done) {
            break;
        }
    }
    // The first run of a job, if it failed, is still to be made.
    Ok(done.or_else(|| tried.map(|tried| tried.saturating_sub(1))))
}
