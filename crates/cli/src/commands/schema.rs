//! `tidetable schema`: the JSON Schema of job files.

use std::io::Write;

use tidetable_job::job_schema;

use crate::args::{File, Schema};
use crate::error::CliError;
use crate::output::stdout;

/// Prints the JSON Schema.
pub fn schema(args: &Schema) -> Result<(), CliError> {
    let File::Job = args.of;
    let mut out = stdout();
    writeln!(out, "{}", serde_json::to_string_pretty(&job_schema())?)?;
    out.flush()?;
    Ok(())
}
