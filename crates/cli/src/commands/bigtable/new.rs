//! `tidetable new --from projects/..`: proposes a job for a table of Bigtable.

use std::path::Path;

use tidetable_bigtable::propose::{propose, sample};
use tidetable_job::scaffold::Proposal;
use tokio::runtime::Handle;

use super::{client, target};
use crate::args::{New, Service};
use crate::error::CliError;

/// How long a failing request is repeated, microseconds.
const PATIENCE: i64 = 60_000_000;

/// The proposal for a table of Bigtable; `None` if `--from` names a file.
pub(crate) fn proposal(args: &New, runtime: &Handle) -> Result<Option<Proposal>, CliError> {
    let [from] = args.from.as_slice() else { return Ok(None) };
    if !from.starts_with("projects/") || Path::new(from).exists() {
        return Ok(None);
    }
    let table = target(from)?.table().map_err(|error| CliError::Bigtable(error.into()))?;
    let client = client(&Service { app_profile: None, parallel: 1, patience: PATIENCE }, runtime)?;
    let schema = runtime.block_on(client.source_schema(&table))?;
    let rows = sample(&client, &table, runtime)?;
    let found = propose(&args.job, &table, &rows, &schema)?;
    Ok(Some(Proposal {
        job: args.job.clone(),
        table: found.table,
        row_key: found.row_key,
        entity: None,
        text: found.text,
        queries: Vec::new(),
        notes: found.notes,
    }))
}
