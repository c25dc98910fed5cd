//! `tidetable sql`.

use std::path::PathBuf;

use clap::Args;
use tidetable_source::Location;

use super::parse::{Anywhere, Here, parse_memory, parse_time, parse_version};

pub(super) const SHOWN: &str = "How rows are shown";

const VERSIONS: &str = "Older versions";

/// `tidetable sql`
#[derive(Debug, Args)]
pub struct Sql {
    /// Statements, each ended by a semicolon. Without them, they are read from standard input, with a prompt on a
    /// terminal
    #[arg(conflicts_with_all = ["query", "file"])]
    pub statements: Option<String>,
    /// The same
    #[arg(short = 'c', long = "command", value_name = "QUERY", conflicts_with = "file")]
    pub query: Option<String>,
    /// File with statements
    #[arg(short = 'f', long, value_name = "FILE", value_parser = Here("a file of statements"))]
    pub file: Option<PathBuf>,
    /// Approximate memory budget of sorting, grouping and joining, such as 1GiB, on one core; what exceeds it spills to
    /// temporary files, and a statement that holds 100MiB more ends [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    pub memory: Option<u64>,
    /// Refused, with a word on what to do instead
    #[arg(long, value_name = "URL", hide = true)]
    pub on: Option<String>,
    /// Write the rows to this file, or object such as s3://bucket/rows.csv, in the format of --output or of the ending of its
    /// name; an existing one is replaced when the new one is complete. - is standard output
    #[arg(short = 'O', long, value_name = "FILE", help_heading = SHOWN, value_parser = Anywhere)]
    pub to: Option<Location>,
    /// Most rows of a table to show; 0 for all [default: 1000 on a terminal, else all]
    #[arg(long, value_name = "N", help_heading = SHOWN)]
    pub max_rows: Option<u64>,
    /// Show the time of each statement
    #[arg(long, help_heading = SHOWN)]
    pub timing: bool,
    /// Read an older version of a table; may be given more than once. The table's name may be left out if the query
    /// reads only one
    #[arg(long, value_name = "[TABLE=]N", help_heading = VERSIONS, value_parser = parse_version)]
    pub version: Vec<(Option<String>, u64)>,
    /// Read the versions that were the newest at this logical time
    #[arg(long, value_name = "TIME", help_heading = VERSIONS, allow_hyphen_values = true, value_parser = parse_time)]
    pub as_of_commit: Option<i64>,
}
