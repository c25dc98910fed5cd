//! `tidetable push`, `pull`, `diff` and `serve`.

mod serve;

use std::path::PathBuf;

use clap::Args;

use crate::args::parse::{Here, parse_age, parse_time};
pub use serve::Serve;

/// Headings of options.
const ROWS: &str = "Rows";
const CELLS: &str = "Cells";
const SERVICE: &str = "Bigtable";

/// `tidetable push`
#[derive(Debug, Args)]
#[command(after_help = "\
The first push writes all cells, later ones what changed since the version that was pushed last, deletes included. A push that \
was killed continues where it stopped. BIGTABLE_EMULATOR_HOST names an emulator; without it, application default credentials are \
used.")]
pub struct Push {
    /// The table
    pub table: String,
    /// The instance, or a table of it: projects/P/instances/I or projects/P/instances/I/tables/T
    #[arg(long, value_name = "TARGET")]
    pub to: String,
    /// Create the table, or families of it, if they are not there; shows a plan unless --yes is given
    #[arg(long)]
    pub create: bool,
    /// Allow writing into the table that the rows were pulled from
    #[arg(long)]
    pub to_source: bool,
    /// Do what the plan shows
    #[arg(long, short)]
    pub yes: bool,
    /// Only show the plan
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// At most this many rows a second, such as 5000/s
    #[arg(long, value_name = "ROWS/s", value_parser = parse_rate)]
    pub rate: Option<f64>,
    /// Only rows whose key begins with this: text, 0x00ff or b'\x00\xff'
    #[arg(long, value_name = "PREFIX", help_heading = ROWS, conflicts_with_all = ["start", "end"])]
    pub prefix: Option<String>,
    /// Only rows from this key on: text, 0x00ff or b'\x00\xff'
    #[arg(long, value_name = "KEY", help_heading = ROWS)]
    pub start: Option<String>,
    /// Only rows before this key: text, 0x00ff or b'\x00\xff'
    #[arg(long, value_name = "KEY", help_heading = ROWS)]
    pub end: Option<String>,
    /// The version that the target holds; what changed since is written [default: the one pushed last]
    #[arg(long, value_name = "VERSION", help_heading = ROWS, conflicts_with = "compare")]
    pub changed_since: Option<u64>,
    /// Read the cells of the target, write those that differ and delete extra ones
    #[arg(long, help_heading = ROWS)]
    pub compare: bool,
    /// Options of the service.
    #[command(flatten)]
    pub service: Service,
}

/// `tidetable pull`
#[derive(Debug, Args)]
#[command(after_help = "\
Writes Parquet files of records, which `tidetable run JOB` then loads: into the directory of the first pattern of the job's \
source that ends with *.parquet. The newest pull is the input of the job: rows of an earlier pull that it no longer has are \
removed by the next run. Rows that the layout cannot have written are listed in rejected.jsonl beside the files. With --raw a job is \
made that keeps every cell as it is, and follows the families of the table.")]
pub struct Pull {
    /// The table: projects/P/instances/I/tables/T
    pub source: String,
    /// The job that loads what is pulled
    #[arg(long, value_name = "JOB")]
    pub into: String,
    /// The table of the job whose layout decodes the rows [default: the one of the same name, or the only one]
    #[arg(long, value_name = "TABLE", conflicts_with = "raw")]
    pub table: Option<String>,
    /// Keep every cell as it is: key, qualifier, timestamp and value
    #[arg(long)]
    pub raw: bool,
    /// The directory of the files [default: that of the source's pattern]
    #[arg(long, value_name = "DIR", value_parser = Here("a folder of pulled files"))]
    pub dir: Option<PathBuf>,
    /// Replace an earlier pull of another table, or of other rows and cells
    #[arg(long)]
    pub replace: bool,
    /// Only rows whose key begins with this: text, 0x00ff or b'\x00\xff'
    #[arg(long, value_name = "PREFIX", help_heading = ROWS, conflicts_with_all = ["start", "end"])]
    pub prefix: Option<String>,
    /// Only rows from this key on: text, 0x00ff or b'\x00\xff'
    #[arg(long, value_name = "KEY", help_heading = ROWS)]
    pub start: Option<String>,
    /// Only rows before this key: text, 0x00ff or b'\x00\xff'
    #[arg(long, value_name = "KEY", help_heading = ROWS)]
    pub end: Option<String>,
    /// A share of the rows at random, such as 0.01
    #[arg(long, value_name = "SHARE", help_heading = ROWS, value_parser = parse_share)]
    pub sample: Option<f64>,
    /// Only cells of this family; may be given more than once
    #[arg(long = "family", value_name = "FAMILY", help_heading = CELLS)]
    pub families: Vec<String>,
    /// Only cells with a timestamp from this time on
    #[arg(long, value_name = "TIME", help_heading = CELLS, allow_hyphen_values = true, value_parser = parse_time)]
    pub from: Option<i64>,
    /// Only cells with a timestamp before this time
    #[arg(long, value_name = "TIME", help_heading = CELLS, allow_hyphen_values = true, value_parser = parse_time)]
    pub to: Option<i64>,
    /// At most this many cells of each column of a row, the newest
    #[arg(long, value_name = "N", help_heading = CELLS, value_parser = clap::value_parser!(u32).range(1..))]
    pub cells_per_column: Option<u32>,
    /// Options of the service.
    #[command(flatten)]
    pub service: Service,
}

/// `tidetable diff`
#[derive(Debug, Args)]
#[command(after_help = "\
Reads both sides in key order and compares cell by cell. Expired cells count on neither side. The exit code is 0 if both are \
equal, and 1 if they differ.")]
pub struct Diff {
    /// The table
    pub table: String,
    /// The table in Bigtable: projects/P/instances/I/tables/T, or an instance for one of the same name
    pub target: String,
    /// The version of the table [default: the newest]
    #[arg(long, value_name = "VERSION")]
    pub version: Option<u64>,
    /// Differences to show
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// The logical time for garbage-collection rules [default: that of the last commit]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_time)]
    pub now: Option<i64>,
    /// Only rows whose key begins with this: text, 0x00ff or b'\x00\xff'
    #[arg(long, value_name = "PREFIX", help_heading = ROWS, conflicts_with_all = ["start", "end"])]
    pub prefix: Option<String>,
    /// Only rows from this key on: text, 0x00ff or b'\x00\xff'
    #[arg(long, value_name = "KEY", help_heading = ROWS)]
    pub start: Option<String>,
    /// Only rows before this key: text, 0x00ff or b'\x00\xff'
    #[arg(long, value_name = "KEY", help_heading = ROWS)]
    pub end: Option<String>,
    /// Options of the service.
    #[command(flatten)]
    pub service: Service,
}

/// Options of all commands that ask Bigtable.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = SERVICE)]
pub struct Service {
    /// The application profile [default: that of the instance]
    #[arg(long, value_name = "PROFILE")]
    pub app_profile: Option<String>,
    /// Requests under way at a time, about
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub parallel: u16,
    /// How long a failing request is repeated without any progress
    #[arg(long, value_name = "AGE", default_value = "5m", value_parser = parse_age)]
    pub patience: i64,
}

/// Parses `5000/s`.
fn parse_rate(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("/s").unwrap_or(text).parse::<f64>().ok();
    number.filter(|rate| rate.is_finite() && *rate > 0.0).ok_or_else(|| "write rows a second, as 5000/s".to_owned())
}

/// Parses a share of the rows.
fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| *share > 0.0 && *share < 1.0);
    share.ok_or_else(|| "write a share between 0 and 1, as 0.01".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_shares() {
        assert_eq!((parse_rate("5000/s"), parse_rate("0.5")), (Ok(5000.0), Ok(0.5)));
        assert!(parse_rate("0").is_err() && parse_rate("-1/s").is_err() && parse_rate("5000/m").is_err());
        assert_eq!(parse_share("0.01"), Ok(0.01));
        assert!(parse_share("1").is_err() && parse_share("0").is_err());
    }
}
