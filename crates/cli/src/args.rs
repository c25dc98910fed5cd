//! The command line.

pub(crate) mod help;
pub(crate) mod look_back;
pub(crate) mod parse;
pub(crate) mod run;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use regex::bytes::Regex;

use crate::commands::completions::{Complete, Completions, Man};
use crate::commands::new::New;
use crate::commands::schedule::Schedule;
use crate::commands::schema::Schema;
pub use help::command;
pub use look_back::{Clean, History, Lineage, Rejects, Replay, Since, Status};
pub use parse::{Day, parse_time, selected_of};
use parse::{parse_age, parse_columns, parse_memory, parse_regex, parse_version};
pub use run::{OnlyDays, Plan, Retry, Run, RunDays, RunHow};

/// Time series in Bigtable's shape: loaded from CSV and Parquet, kept in sorted files, read with SQL.
#[derive(Debug, Parser)]
#[command(name = "tidetable", version, propagate_version = true, after_help = EXIT_CODES)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Headings of options.
const ROWS: &str = "Rows";
const CELLS: &str = "Cells";
const SHOWN: &str = "How rows are shown";
const VERSIONS: &str = "Older versions";

const EXIT_CODES: &str = "\
Exit codes:
    0  done
    1  failed; what was committed before stands, run again
    2  wrong use, or a mistake in the job file
    3  checks failed: what they look at was not published, the rest was
    4  partial: some days could not be published, the others were
   75  another run of the job goes on
  130  interrupted (Ctrl-C); 143 by SIGTERM";

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Folder of the store [default: `root` of tidetable.toml]
    #[arg(long, global = true, env = "TIDETABLE_ROOT", value_name = "DIR")]
    pub root: Option<String>,
    /// How results are written to standard output
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Output,
    /// How messages are written to standard error
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    pub log: Log,
    /// Say more: causes of errors, steps taken, all figures of a run
    #[arg(long, short, global = true)]
    pub verbose: bool,
    /// Say only what went wrong: no progress, no notes, no summary of a run
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Work in this folder, as if the command was called there
    #[arg(short = 'C', global = true, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Whether `output` was asked for, and is not what is usual.
    #[arg(skip)]
    pub output_given: bool,
}

/// How results are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// A table for people.
    #[default]
    Table,
    /// One JSON object a line.
    Json,
    /// CSV with a header.
    Csv,
    /// A table in Markdown.
    Markdown,
    /// A line for each value.
    Line,
    /// Parquet; only for the rows of `sql`.
    Parquet,
    /// Arrow IPC; only for the rows of `sql`.
    Arrow,
}

/// How messages are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Log {
    /// Sentences.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a job: load what is new, publish the days that changed
    Run(Run),
    /// Say what a run of a job would do, and why
    Plan(Plan),
    /// Try again what a run left: the days it could not publish, or all of a run that did not come to its end
    Retry(Retry),
    /// Say how jobs stand: last runs, how new their days are, gaps, failed days, rejected rows
    Status(Status),
    /// List runs, the newest first
    History(History),
    /// Say what came from what: inputs, tables, published days
    Lineage(Lineage),
    /// Show the rows that a run rejected
    Rejects(Rejects),
    /// Read the inputs of a run's rejected rows again, after they or the job were mended
    Replay(Replay),
    /// Remove old records of runs, and files that nothing names; says what that would be unless --yes is given
    Clean(Clean),
    /// Ask SQL of the tables and exports
    #[command(disable_version_flag = true)]
    Sql(Sql),
    /// Read rows of a table, cell by cell
    Read(Read),
    /// Write the cells of a table, or the rows of a query, into a file
    Export(Export),
    /// List the tables and exports of the store
    Tables,
    /// Show a table's layout, windows, inputs and files
    Describe(Describe),
    /// Show what is inside an SST
    Inspect(Inspect),
    /// Print a .proto that reads the protobuf cells of a table
    Proto(Proto),
    /// Check a job file, its SQL, and what its layouts give back
    Check(Check),
    /// Propose a job for a CSV or Parquet file: its columns, a layout with the reasons, a table a day
    New(New),
    /// Print the jobs' schedules for cron or systemd, or what is due
    Schedule(Schedule),
    /// Print the JSON Schema of job files
    Schema(Schema),
    /// Print what completes commands, jobs and tables in a shell
    Completions(Completions),
    /// Print what the last of the words of a line may become
    #[command(hide = true)]
    Complete(Complete),
    /// Print the manual page, or write those of all commands
    Man(Man),
    /// Delete a row of a table, or cells of it
    Delete(Delete),
    /// Delete all rows of a table whose key begins with a prefix
    DropRows(DropRows),
    /// Merge the files of each window of a table, and take out what was deleted or has expired
    Compact(Compact),
    /// Take damaged SSTs out of a table, so that they are loaded again; says what is lost unless told to
    Repair(Repair),
    /// Remove old versions and what killed runs left; says what that would be unless --yes is given
    Vacuum(Vacuum),
    /// Read tables or exports back, every byte, and say whether they are whole
    Verify(Verify),
    /// Copy the store into a folder of backups, verified, while jobs run; what is there from before is not copied again
    Backup(Backup),
    /// Restore a backup into a root that is not there yet
    Restore(Restore),
    /// Find damaged records, lists and manifests, say what that costs, and set them aside if asked to
    Doctor(Doctor),
}

/// `tidetable sql`
#[derive(Debug, Args)]
pub struct Sql {
    /// Statements, each ended by a semicolon. Without them they come from standard input, at a prompt if that is a terminal
    #[arg(conflicts_with_all = ["query", "file"])]
    pub statements: Option<String>,
    /// The same
    #[arg(short = 'c', long = "command", value_name = "QUERY", conflicts_with = "file")]
    pub query: Option<String>,
    /// File with statements
    #[arg(short = 'f', long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Memory that sorting, grouping and joining may take, about, such as 1GiB, on one core: what is more is written to the
    /// folder for temporary files [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    pub memory: Option<u64>,
    /// Write the rows into this file, in the form that --output or the ending of its name says; one that is there is replaced
    /// when all is written. - is standard output
    #[arg(short = 'O', long, value_name = "FILE", help_heading = SHOWN)]
    pub to: Option<PathBuf>,
    /// Rows of a table that are shown at most; 0 for all [default: 1000 on a terminal, else all]
    #[arg(long, value_name = "N", help_heading = SHOWN)]
    pub max_rows: Option<u64>,
    /// Say after each statement how long it took
    #[arg(long, help_heading = SHOWN)]
    pub timing: bool,
    /// Read an older version of a table; may be given more than once. The table's name may be left out where the query
    /// reads one only
    #[arg(long, value_name = "[TABLE=]N", help_heading = VERSIONS, value_parser = parse_version)]
    pub version: Vec<(Option<String>, u64)>,
    /// Read the versions that were the newest at this logical time
    #[arg(long, value_name = "TIME", help_heading = VERSIONS, allow_hyphen_values = true, value_parser = parse_time)]
    pub as_of_commit: Option<i64>,
}

/// `tidetable read`
#[derive(Debug, Args)]
pub struct Read {
    /// The table
    pub table: String,
    /// Only the row with this key
    #[arg(long, value_name = "KEY", help_heading = ROWS, conflicts_with_all = ["prefix", "start", "end"])]
    pub row: Option<String>,
    /// Only rows whose key begins with this
    #[arg(long, value_name = "PREFIX", help_heading = ROWS, conflicts_with_all = ["start", "end"])]
    pub prefix: Option<String>,
    /// Only rows from this key on
    #[arg(long, value_name = "KEY", help_heading = ROWS)]
    pub start: Option<String>,
    /// Only rows before this key
    #[arg(long, value_name = "KEY", help_heading = ROWS)]
    pub end: Option<String>,
    /// Only rows whose whole key this regular expression matches
    #[arg(long, value_name = "REGEX", help_heading = ROWS, value_parser = parse_regex)]
    pub regex: Option<Regex>,
    /// At most so many rows
    #[arg(long, visible_alias = "count", value_name = "N", help_heading = ROWS)]
    pub limit: Option<u64>,
    /// From the last row to the first
    #[arg(long, visible_alias = "reversed", help_heading = ROWS)]
    pub reverse: bool,
    /// Only cells of these columns; several by commas or by repeating it, `\,` is a comma of a name
    #[arg(long, value_name = "FAMILY[:QUALIFIER]", help_heading = CELLS, value_parser = parse_columns)]
    pub columns: Vec<Columns>,
    /// Of each column of a row, only the newest cells, so many
    #[arg(long, value_name = "N", help_heading = CELLS)]
    pub cells_per_column: Option<u64>,
    /// Only cells with a timestamp from this time on
    #[arg(long, value_name = "TIME", help_heading = CELLS, allow_hyphen_values = true, value_parser = parse_time)]
    pub from: Option<i64>,
    /// Only cells with a timestamp before this time
    #[arg(long, value_name = "TIME", help_heading = CELLS, allow_hyphen_values = true, value_parser = parse_time)]
    pub to: Option<i64>,
    /// Row keys without cells
    #[arg(long, help_heading = CELLS)]
    pub keys_only: bool,
    /// Also cells that the table's rules show no more, as far as they are still stored
    #[arg(long, help_heading = CELLS)]
    pub include_expired: bool,
    /// The logical time at which rules are judged [default: that of the last commit]
    #[arg(long, value_name = "TIME", help_heading = CELLS, allow_hyphen_values = true, value_parser = parse_time, conflicts_with = "include_expired")]
    pub now: Option<i64>,
    /// Lines of a table that are shown at most; 0 for all [default: 1000 on a terminal, else all]
    #[arg(long, value_name = "N", help_heading = SHOWN)]
    pub max_rows: Option<u64>,
}

/// Columns whose cells are read, as one option names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns(pub Vec<Column>);

/// A column whose cells are read, or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Of this family; of all if there is none.
    pub family: Option<String>,
    /// With this qualifier; with any if there is none.
    pub qualifier: Option<String>,
}

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

/// `tidetable describe`
#[derive(Debug, Args)]
pub struct Describe {
    /// The table
    pub table: String,
}

/// `tidetable inspect`
#[derive(Debug, Args)]
pub struct Inspect {
    /// An SST
    pub file: PathBuf,
}

/// `tidetable proto`
#[derive(Debug, Args)]
pub struct Proto {
    /// The table
    pub table: String,
}

/// `tidetable check`
#[derive(Debug, Args)]
#[command(override_usage = "tidetable check [OPTIONS] <JOB>\n       tidetable check [OPTIONS] --all")]
pub struct Check {
    /// Name of a job in jobs/, or path of a job file
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub job: Option<String>,
    /// All jobs of the project
    #[arg(long)]
    pub all: bool,
    /// Measure the checks on what is published, and on tables; exit code 3 if one fails. Some of the rows that break them are
    /// kept in runs.failing_rows
    #[arg(long)]
    pub data: bool,
    /// With --data: only this day, as 2018-01-31
    #[arg(long, requires = "data", value_name = "DAY")]
    pub day: Option<chrono::NaiveDate>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }
}
