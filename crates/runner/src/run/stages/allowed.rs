//! How many rows of a load may be rejected.

use tidetable_ingest::RejectedRow;
use tidetable_job::Job;
use tidetable_store::Input;

use crate::fault::error::RunError;
use crate::run::reject_log::first_rejects;
use crate::run::stages::load::Pending;

/// Checks the lines that rejects of a load take away against the limit of its source. `first` are rejected rows of all
/// sources.
pub(crate) fn check_rejected(job: &Job, run: &str, load: &Pending, first: &[RejectedRow]) -> Result<(), RunError> {
    let record = &load.record;
    let Some(source) = job.source(&record.source).map(|source| &source.spec) else { return Ok(()) };

    let more_lines = record.stats.more_lines_rejected + load.held.more_lines;
    // A row that is not rejected counts as a line.
    let rejected = record.stats.rows_rejected + load.held.rejected + more_lines;
    let read = record.stats.rows_read + load.held.read + more_lines;

    let counted = rejected.saturating_sub(load.let_pass);
    let is_floor_kept = counted <= source.rejected_floor && load.inputs_read().all(|input| !is_mostly_rejected(input));

    if !source.max_rejected.exceeded(counted, read) || is_floor_kept {
        return Ok(());
    }

    let of_load = first.iter().filter(|row| record.inputs.iter().any(|input| input.path == row.file));
    Err(RunError::TooManyRejected {
        source_name: source.name.as_str().into(),
        rejected,
        read,
        what: if more_lines > 0 { "lines" } else { "rows" },
        limit: source.max_rejected.to_string().into(),
        first: first_rejects(of_load).into(),
        job: job.name.as_str().into(),
        log: tidetable_record::rejects_path(run, None).into(),
    })
}

/// Whether more than half of the rows of an input are rejected: then it is the input that is wrong, and not single rows.
fn is_mostly_rejected(input: &Input) -> bool {
    input.rejected > input.read / 2
}
