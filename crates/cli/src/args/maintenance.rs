//! Commands that change, check or copy what is stored.

use std::path::PathBuf;

use clap::Args;

use super::parse::{parse_age, parse_time};

/// `tidetable delete`
#[derive(Debug, Args)]
pub struct Delete {
    /// The table
    pub table: String,
    /// Key of the row
    #[arg(long, value_name = "KEY")]
    pub row: String,
    /// Only this family or column of it
    #[arg(long, value_name = "FAMILY[:QUALIFIER]")]
    pub column: Option<String>,
    /// Of the column, only cells from this time on
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_time, requires = "column")]
    pub from: Option<i64>,
    /// Of the column, only cells before this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_time, requires = "column")]
    pub to: Option<i64>,
    /// Options of both kinds of deleting.
    #[command(flatten)]
    pub how: Deleting,
}

/// `tidetable drop-rows`
#[derive(Debug, Args)]
pub struct DropRows {
    /// The table
    pub table: String,
    /// First bytes of the keys of the rows; may not be empty
    #[arg(long, value_name = "PREFIX")]
    pub prefix: String,
    /// Options of both kinds of deleting.
    #[command(flatten)]
    pub how: Deleting,
}

/// What `delete` and `drop-rows` share.
#[derive(Debug, Args)]
#[command(next_help_heading = "How it is deleted")]
pub struct Deleting {
    /// Only say what would be hidden
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
    /// The logical time of the commit [default: the clock]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_time)]
    pub now: Option<i64>,
}

/// `tidetable compact`
#[derive(Debug, Args)]
pub struct Compact {
    /// The table
    pub table: String,
    /// The logical time at which rules are judged [default: the clock]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_time)]
    pub now: Option<i64>,
    /// Also rewrite windows that would only become denser: those that are as a load wrote them
    #[arg(long)]
    pub full: bool,
    /// Only say what would be done
    #[arg(long)]
    pub dry_run: bool,
}

/// `tidetable repair`
#[derive(Debug, Args)]
pub struct Repair {
    /// The table
    pub table: String,
    /// Take out this damaged SST, by id; may be given more than once
    #[arg(long, value_name = "SST")]
    pub drop: Vec<String>,
    /// Take out all damaged SSTs
    #[arg(long, short, conflicts_with = "drop")]
    pub yes: bool,
}

/// `tidetable vacuum`
#[derive(Debug, Args)]
pub struct Vacuum {
    /// The table; all of the store if none is named
    pub table: Option<String>,
    /// Only versions that were replaced, and files that were written, so long ago: 7d, 36h, 90m or 0s. Half-written
    /// files stay for an hour at least
    #[arg(long, value_name = "AGE", default_value = "7d", value_parser = parse_age)]
    pub older_than: i64,
    /// The newest versions, so many, stay whatever their age
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub keep_versions: u64,
    /// Remove the files
    #[arg(long, short)]
    pub yes: bool,
}

/// `tidetable verify`
#[derive(Debug, Args)]
pub struct Verify {
    /// The table; all of the store if none is named
    pub table: Option<String>,
    /// Also the files of older versions
    #[arg(long)]
    pub all_versions: bool,
    /// Only sizes and checksums, no values: faster, and as good for files that were not written wrong
    #[arg(long)]
    pub checksums: bool,
    /// The files of exports, instead of tables
    #[arg(long, conflicts_with = "table")]
    pub exports: bool,
    /// Tables, exports and the records of runs
    #[arg(long, conflicts_with_all = ["table", "exports"])]
    pub all: bool,
}

/// `tidetable backup`
#[derive(Debug, Args)]
#[command(after_help = "\
Tables are copied at the newest versions of one moment, which a vacuum leaves alone meanwhile; exports, records of runs and \
rejected rows with them. Contents are named by their checksums, so each backup copies what is new, and one that was stopped \
is run again.

  tidetable backup /backups/meters
  tidetable backup /backups/meters --list
  tidetable backup /backups/meters --verify

Exit codes: 0 done, 1 failed or something is damaged (then older backups all stay), 75 another backup goes on.")]
pub struct Backup {
    /// Folder of the backups, outside of the root; made if it is not there
    #[arg(value_name = "FOLDER")]
    pub vault: PathBuf,
    /// The newest backups, so many, stay
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: u32,
    /// List the backups, and make none
    #[arg(long, conflicts_with = "verify")]
    pub list: bool,
    /// Read all backups back, and make none
    #[arg(long)]
    pub verify: bool,
}

/// `tidetable restore`
#[derive(Debug, Args)]
#[command(after_help = "\
Every file is verified as it is copied. A restore that was stopped is run again, and goes on; until it has come to its end \
no other command takes the root for a store. Job files are not part of a backup.

  tidetable restore /backups/meters
  tidetable restore /backups/meters /srv/meters --at 01M81")]
pub struct Restore {
    /// Folder of the backups
    #[arg(value_name = "FOLDER")]
    pub vault: PathBuf,
    /// The root to restore into, which must not hold a store [default: that of the project, or --root]
    #[arg(value_name = "DIR")]
    pub into: Option<PathBuf>,
    /// Restore this backup, by its name or the beginning of it [default: the newest]
    #[arg(long, value_name = "BACKUP")]
    pub at: Option<String>,
}

/// `tidetable doctor`
#[derive(Debug, Args)]
#[command(after_help = "\
Reads everything small: records of runs, rejected rows, lists of published files, manifests, checkpoints, locks. SSTs and \
published files are only looked for: `tidetable verify` reads them. What --fix takes out of the way lies in quarantine/ \
below the root, under the path it had.

Exit codes: 0 nothing is damaged (any more), 1 something is.")]
pub struct Doctor {
    /// Set aside what is damaged, so that all else works again; no job may run meanwhile
    #[arg(long)]
    pub fix: bool,
}

/// `tidetable clean`
#[derive(Debug, Args)]
pub struct Clean {
    /// Only what is so old: 90d, 36h, 90m or 0s. Half-written files and exports stay for an hour at least
    #[arg(long, value_name = "AGE", default_value = "90d", value_parser = parse_age)]
    pub older_than: i64,
    /// The newest records of each job, so many, stay whatever their age
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub keep: usize,
    /// Remove the files
    #[arg(long, short)]
    pub yes: bool,
}
