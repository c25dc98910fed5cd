//! `tidetable export`.

use clap::{Args, ValueEnum};
use tidetable_source::Location;

use crate::args::parse::Anywhere;

/// `tidetable export`
#[derive(Debug, Args)]
#[command(
    override_usage = "tidetable export [OPTIONS] --to <FILE> <TABLE>\n       tidetable export [OPTIONS] --to <FILE> -c <QUERY>"
)]
pub struct Export {
    /// The table whose cells are written
    #[arg(required_unless_present = "query")]
    pub table: Option<String>,
    /// Write the rows of this query instead
    #[arg(short = 'c', long = "command", value_name = "QUERY", conflicts_with = "table")]
    pub query: Option<String>,
    /// The format of the file [default: by the ending of its name, else parquet]
    #[arg(long, value_enum)]
    pub format: Option<ExportForm>,
    /// The file, or an object such as s3://bucket/meters.parquet; an existing one is replaced when the new one is complete. - is
    /// standard output
    #[arg(long, short = 'O', value_name = "FILE", value_parser = Anywhere)]
    pub to: Location,
}

/// File formats.
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
    /// Parquet for Dataflow's template "Parquet to Cloud Bigtable".
    BigtableParquet,
    /// Avro for Dataflow's template "Avro to Cloud Bigtable".
    BigtableAvro,
    /// CSV for `cbt import .. timestamp=value-encoded`.
    CbtCsv,
}
