//! `tidetable schema`: what a job file may hold, for editors.

use std::io::Write;

use clap::{Args, ValueEnum};
use tidetable_runner::job_schema;

use crate::error::CliError;
use crate::output::stdout;

/// `tidetable schema`
#[derive(Debug, Args)]
#[command(after_help = "\
An editor that knows TOML completes and checks a job file that names the schema in its first line:
  #:schema ../job.schema.json")]
pub struct Schema {
    /// Of which file
    #[arg(value_enum)]
    pub of: File,
}

/// A file with a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum File {
    /// A job file.
    Job,
}

/// Prints the JSON Schema.
pub fn schema(args: &Schema) -> Result<(), CliError> {
    let File::Job = args.of;
    let mut out = stdout();
    writeln!(out, "{}", serde_json::to_string_pretty(&job_schema())?)?;
    out.flush()?;
    Ok(())
}
