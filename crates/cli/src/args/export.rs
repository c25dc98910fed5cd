//! `tidetable export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `tidetable export`
#[derive(Debug, Args)]
#[command(
    override_usage = "tidetable export [OPTIONS] --to <FILE> <TABLE>\n       tidetable export [OPTIONS] --to <FILE> -c <QUERY>"
)]
pub struct Export {
    /// The table, of which all cells are written
    #[arg(required_unless_present = "query")]
    pub table: Option<String>,
    /// Instead, the rows of this query
    #[arg(short = 'c', long = "command", value_name = "QUERY", conflicts_with = "table")]
    pub query: Option<String>,
    /// The form of the file [default: what the ending of its name says, parquet where it has none to say it]
    #[arg(long, value_enum)]
    pub format: Option<ExportForm>,
    /// The file; one that is there is replaced when all is written. - is standard output
    #[arg(long, short = 'O', value_name = "FILE")]
    pub to: PathBuf,
}

/// Forms of files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ExportForm {
    /// Parquet.
    #[default]
    Parquet,
    /// CSV with a header.
    Csv,
    /// One JSON object a line.
    Json,
    /// Arrow IPC.
    Arrow,
    /// The Parquet that Dataflow's template "Parquet to Cloud Bigtable" loads.
    BigtableParquet,
    /// The CSV that `cbt import .. timestamp=value-encoded` reads.
    CbtCsv,
}
