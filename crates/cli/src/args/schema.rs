//! `tidetable schema`.

use clap::{Args, ValueEnum};

/// `tidetable schema`
#[derive(Debug, Args)]
#[command(after_help = "\
An editor that knows TOML completes and checks a job file that names the schema in its first line:
  #:schema ../job.schema.json")]
pub struct Schema {
    /// The kind of file
    #[arg(value_enum)]
    pub of: File,
}

/// A file with a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum File {
    /// A job file.
    Job,
}
