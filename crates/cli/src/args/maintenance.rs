//! Commands that maintain a store.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use tidetable_source::Location;

use super::parse::{Anywhere, Here, parse_age, parse_memory, parse_time};
use super::run::DEFAULT_MEMORY_TEXT;

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
    /// Only cells of the column from this time on
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_time, requires = "column")]
    pub from: Option<i64>,
    /// Only cells of the column before this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_time, requires = "column")]
    pub to: Option<i64>,
    /// Common options.
    #[command(flatten)]
    pub how: Deleting,
}

/// `tidetable drop-rows`
#[derive(Debug, Args)]
pub struct DropRows {
    /// The table
    pub table: String,
    /// Prefix of the row keys; may not be empty
    #[arg(long, value_name = "PREFIX")]
    pub prefix: String,
    /// Common options.
    #[command(flatten)]
    pub how: Deleting,
}

/// Options of `delete` and `drop-rows`.
#[derive(Debug, Args)]
#[command(next_help_heading = "How it is deleted")]
pub struct Deleting {
    /// Only show what would be hidden
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub yes: bool,
    /// The logical time of the commit [default: the clock]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_time)]
    pub now: Option<i64>,
}

/// `tidetable drop`
#[derive(Debug, Args)]
pub struct Drop {
    /// The table or export
    pub name: String,
    /// Only show what would be removed
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub yes: bool,
}

/// `tidetable compact`
#[derive(Debug, Args)]
pub struct Compact {
    /// The table
    pub table: String,
    /// The logical time for garbage-collection rules [default: the clock]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_time)]
    pub now: Option<i64>,
    /// Also rewrite windows that are as a load wrote them, and would only become denser
    #[arg(long)]
    pub full: bool,
    /// Only show what would be done
    #[arg(long)]
    pub dry_run: bool,
    /// Run the work on other machines: ballista://HOST:PORT of a scheduler, ballista+tls:// with TLS, or `local` for
    /// this process [default: `url` of `cluster` in tidetable.toml, or `local`]
    #[arg(long, value_name = "URL")]
    pub on: Option<String>,
}

/// `tidetable repair`
#[derive(Debug, Args)]
pub struct Repair {
    /// The table
    pub table: String,
    /// Remove this damaged SST, by id; may be given more than once
    #[arg(long, value_name = "SST")]
    pub drop: Vec<String>,
    /// Remove all damaged SSTs
    #[arg(long, short, conflicts_with = "drop")]
    pub yes: bool,
}

/// `tidetable vacuum`
#[derive(Debug, Args)]
pub struct Vacuum {
    /// The table [default: all tables of the store]
    pub table: Option<String>,
    /// Only versions replaced, and files written, at least this long ago: 7d, 36h, 90m or 0s. Half-written files go
    /// after an hour
    #[arg(long, value_name = "AGE", default_value = "7d", value_parser = parse_age)]
    pub older_than: i64,
    /// Keep this many of the newest versions, whatever their age
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub keep_versions: u64,
    /// Remove the files
    #[arg(long, short)]
    pub yes: bool,
}

/// `tidetable verify`
#[derive(Debug, Args)]
pub struct Verify {
    /// The table [default: all tables of the store]
    pub table: Option<String>,
    /// Also the files of older versions
    #[arg(long)]
    pub all_versions: bool,
    /// Check sizes and checksums, not values: faster, and sufficient for files that were written correctly
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
Copies the newest versions of all tables, pinned against vacuum meanwhile, with exports, records of runs and rejected rows. \
Contents are named by their checksums, so each backup copies only what is new. An interrupted one is run again.

  tidetable backup /backups/meters
  tidetable backup /backups/meters --list
  tidetable backup /backups/meters --verify
  tidetable backup s3://plant/backups

Exit codes: 0 done, 1 failed or something is damaged (then all older backups stay), 75 another backup is active.")]
pub struct Backup {
    /// Folder of the backups, or a URL such as s3://bucket/backups, outside of the root; made if it is not there
    #[arg(value_name = "FOLDER", value_parser = Anywhere)]
    pub vault: Location,
    /// Keep this many of the newest backups
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: u32,
    /// List the backups instead of making one
    #[arg(long, conflicts_with = "verify")]
    pub list: bool,
    /// Verify all backups instead of making one
    #[arg(long)]
    pub verify: bool,
}

/// `tidetable restore`
#[derive(Debug, Args)]
#[command(after_help = "\
Every file is verified as it is copied. Run an interrupted restore again to continue it; until it is complete, no other \
command accepts the root as a store. Job files are not part of a backup.

  tidetable restore /backups/meters
  tidetable restore /backups/meters /srv/meters --at 01M81")]
pub struct Restore {
    /// Folder of the backups, or a URL
    #[arg(value_name = "FOLDER", value_parser = Anywhere)]
    pub vault: Location,
    /// The root to restore into, a folder or a URL, which must not hold a store [default: that of the project, or --root]
    #[arg(value_name = "DIR", value_parser = Anywhere)]
    pub into: Option<Location>,
    /// Restore this backup, by its name or a prefix of it [default: the newest]
    #[arg(long, value_name = "BACKUP")]
    pub at: Option<String>,
}

/// `tidetable copy`
#[derive(Debug, Args)]
#[command(after_help = "\
Copies tables with all their versions, exports, records of runs and rejected rows, from a folder or bucket into another. The \
copy is empty at first, or an older copy of the same store: then only what is new is copied. An interrupted one is run \
again. Every file is compared with its checksum as it passes. Jobs may run in the first root meanwhile, not in the copy.

  tidetable copy data s3://meters/prod
  tidetable copy s3://meters/prod /srv/meters

Exit codes: 0 done, 1 failed or something is damaged, 2 the copy holds another store, 75 a job runs in the copy.")]
pub struct Copy {
    /// Root to copy: a folder, or a URL such as s3://bucket/prefix
    #[arg(value_name = "FROM", value_parser = Anywhere)]
    pub from: Location,
    /// Root to copy into
    #[arg(value_name = "TO", value_parser = Anywhere)]
    pub to: Location,
}

/// `tidetable cache`
#[derive(Debug, Args)]
pub struct Cache {
    /// Remove all of it
    #[arg(long)]
    pub empty: bool,
}

/// `tidetable doctor`
#[derive(Debug, Args)]
#[command(after_help = "\
Reads all small files: records of runs, rejected rows, lists of published files, manifests, checkpoints, locks. Of SSTs and \
published files it checks only the existence: `tidetable verify` reads them. --fix moves damaged files to quarantine/ below \
the root, under the path they had.

Exit codes: 0 nothing is damaged (any more), 1 something is.")]
pub struct Doctor {
    /// Move damaged files to quarantine, so that everything else works again; no job may run meanwhile
    #[arg(long)]
    pub fix: bool,
    /// Give up this gone input, which only lost versions of a table hold; also a pattern, `*` for all. May be repeated
    #[arg(long, value_name = "FILE", requires = "fix")]
    pub without: Vec<String>,
}

/// `tidetable clean`
#[derive(Debug, Args)]
pub struct Clean {
    /// Only what is at least this old: 90d, 36h, 90m or 0s. Exports are kept for an hour at least; half-written
    /// files go after it
    #[arg(long, value_name = "AGE", default_value = "90d", value_parser = parse_age)]
    pub older_than: i64,
    /// Keep this many of the newest records of each job, whatever their age
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub keep: usize,
    /// Remove the files
    #[arg(long, short)]
    pub yes: bool,
}

/// `tidetable scheduler`
#[derive(Debug, Args)]
pub struct Scheduler {
    /// Address to listen on; port 0 takes any that is free
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:50050")]
    pub bind: SocketAddr,
    /// Name or address under which executors reach it [default: the address of --bind]
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Time without a heartbeat after which an executor counts as lost and others take its work; several times
    /// --heartbeat of the executors
    #[arg(long, value_name = "DURATION", default_value = "40s", value_parser = parse_age)]
    pub executor_timeout: i64,
    /// Certificates for TLS
    #[command(flatten)]
    pub tls: Certificates,
}

/// `tidetable executor`
#[derive(Debug, Args)]
pub struct Executor {
    /// The scheduler, ballista://HOST:PORT, or ballista+tls://HOST:PORT with TLS [default: `url` of `cluster` in
    /// tidetable.toml]
    #[arg(long, value_name = "URL")]
    pub scheduler: Option<String>,
    /// Units of work at the same time [default: one for each core]
    #[arg(long, value_name = "N")]
    pub slots: Option<usize>,
    /// Address to listen on
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub bind: IpAddr,
    /// Name or address under which the scheduler and runs reach it [default: the address of --bind]
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Port for runs, which fetch answers there [default: any that is free]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Port for the scheduler; with TLS it uses --port, and this one is for this machine [default: any that is free]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub scheduler_port: u16,
    /// Name in records and logs [default: the name of the machine and a number]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Directory of answers until they are fetched; a few kilobytes per unit [default: a folder for temporary files]
    #[arg(long, value_name = "DIR", value_parser = Here("a folder of answers"))]
    pub work_dir: Option<PathBuf>,
    /// Approximate memory budget of a unit of work, such as 1GiB; at least 16MiB
    #[arg(long, value_name = "SIZE", default_value = DEFAULT_MEMORY_TEXT.as_str(), value_parser = parse_memory)]
    pub memory: u64,
    /// Folder for temporary files, which a load writes if its cells take more than that [default: the root if it is a folder,
    /// else the system's folder for temporary files]
    #[arg(long, value_name = "DIR", value_parser = Here("a folder for temporary files"))]
    pub temp_dir: Option<PathBuf>,
    /// Time between two heartbeats to the scheduler
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_age)]
    pub heartbeat: i64,
    /// Certificates for TLS
    #[command(flatten)]
    pub tls: Certificates,
}

/// What the options of TLS name.
const CERTIFICATES: &str = "a file of certificates";

/// Files in PEM.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS")]
pub struct Certificates {
    /// File with the certificate of this server in PEM, with those up to its authority: connections to it are encrypted then.
    /// An executor has those of `cluster` in tidetable.toml, unless one of these options is given
    #[arg(long, value_name = "FILE", requires = "tls_key", value_parser = Here(CERTIFICATES))]
    pub tls_cert: Option<PathBuf>,
    /// File with its private key
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_parser = Here(CERTIFICATES))]
    pub tls_key: Option<PathBuf>,
    /// File with the certificates of the authority that the other processes' certificates are from; then every client needs one,
    /// too [default: those that the system trusts, and clients need none]
    #[arg(long, value_name = "FILE", value_parser = Here(CERTIFICATES))]
    pub tls_ca: Option<PathBuf>,
}
