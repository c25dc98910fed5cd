//! Errors of commands, with their exit codes.

use std::io;

use miette::Diagnostic;
use tidetable_advisor::AdvisorError;
use tidetable_blobs::BlobError;
#[cfg(feature = "cluster")]
use tidetable_cluster::ClusterError;
use tidetable_export::ExportError;
use tidetable_ingest::MIN_LOAD_MEMORY;
use tidetable_job::scaffold::ProposeError;
use tidetable_job::{JobError, ProjectError, nearest};
use tidetable_layout::error::ShapeError;
use tidetable_runner::backup::BackupError;
use tidetable_runner::run::Stopped;
use tidetable_runner::{DownloadError, RunError};
use tidetable_source::LocationError;
use tidetable_source::panics::Panicked;
use tidetable_sql::SqlError;
use tidetable_sstable::ReadError;
use tidetable_store::StoreError;

/// Why a command failed.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CliError {
    /// No tidetable.toml or jobs/ was found in the current directory or above it, or it cannot be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Project(#[from] ProjectError),
    /// A job file is missing, cannot be read, or has mistakes, each with its line and column.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Job(#[from] JobError),
    /// A run failed, was refused, or was interrupted; its error knows the exit code.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The layouts of `compare`, `advise` or `heatmap` could not be measured.
    #[error(transparent)]
    Advisor(#[from] AdvisorError),
    /// A backup or a restore failed; what it copied before stays.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The store cannot be read or written, or refuses what was asked.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A block of cells that does not match its schema.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A transfer to or from Bigtable, or its server.
    #[cfg(feature = "bigtable")]
    #[error(transparent)]
    Bigtable(#[from] tidetable_bigtable::BigtableError),
    /// The tables that a server reads, or the address that it listens on.
    #[cfg(any(feature = "bigtable", feature = "postgres"))]
    #[error(transparent)]
    Serving(#[from] tidetable_serving::ServingError),
    /// The server of PostgreSQL's clients cannot start.
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    Postgres(#[from] tidetable_postgres::PostgresError),
    /// A table that is not as the one in Bigtable.
    #[cfg(feature = "bigtable")]
    #[error("{table} and {target} differ: `tidetable push {table} --to {target} --compare` writes what differs")]
    Differs {
        table: String,
        /// The table in Bigtable.
        target: String,
    },
    /// A table that is not as the one in Bigtable that it was pulled from.
    #[cfg(feature = "bigtable")]
    #[error(
        "{table} and {target} differ, and {table} was pulled from there: `tidetable pull {target}{raw} --into {job}`, then \
         `tidetable run {job}` bring what the source has now"
    )]
    DiffersFromSource {
        table: String,
        /// The table in Bigtable.
        target: String,
        /// The job that loads it.
        job: String,
        /// The option of a pull that keeps cells as they are, with a space.
        raw: &'static str,
    },
    /// A job file that cannot follow the families of the table that is pulled.
    #[cfg(feature = "bigtable")]
    #[error(
        "job {job} cannot take the families that {table} has now: {source}. The job file is as it was; declare them as \
         `tidetable pull {table} --raw` does for a new job"
    )]
    CannotFollow {
        job: String,
        /// The table in Bigtable.
        table: String,
        /// The mistakes of the file that would follow.
        source: Box<JobError>,
    },
    /// A job that does not keep cells as they are.
    #[cfg(feature = "bigtable")]
    #[error("job {job} does not keep cells as they are: name another job with --into, or pull records, without --raw")]
    NotRaw { job: String },
    /// A job whose source has no place for what is pulled.
    #[cfg(feature = "bigtable")]
    #[error(
        "no pattern of source {source_name} of job {job} takes what is pulled: add one such as \"pulled/{job}/*.parquet\" to its \
         `files`, or name a directory with --dir"
    )]
    NoPlace { job: String, source_name: String },
    /// A query that has no known position in a script failed.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// The query of an export in a job file is invalid.
    #[error("the query of export {export}: {source}")]
    Export { export: String, source: Box<SqlError> },
    /// The result of a query could not be written into a file.
    #[error(transparent)]
    Written(#[from] ExportError),
    /// The query of a check in a job file is invalid.
    #[error("the check {check}: {source}")]
    Check { check: String, source: Box<SqlError> },
    /// An SST that `inspect` was given by its path cannot be read.
    #[error("{path}: {source}")]
    Sst { path: String, source: ReadError },
    /// A file that was given by its path cannot be read.
    #[error("cannot read {path}: {source}")]
    File { path: String, source: io::Error },
    /// The directory of `-C` cannot be entered.
    #[error("cannot work in {path}: {source}")]
    Enter { path: String, source: io::Error },
    /// Standard output cannot be written.
    #[error("cannot write the result: {0}")]
    Output(#[from] io::Error),
    /// A batch cannot be shown.
    #[error("cannot show the result: {0}")]
    Arrow(#[from] arrow::error::ArrowError),
    /// A page cannot be made.
    #[error(transparent)]
    Page(#[from] tidetable_page::PageError),
    /// A result has no JSON form.
    #[error("cannot write the result as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A table whose cells are not protobuf.
    #[error("table {table} has no protobuf cells: a column with `message` or `repeated` makes them")]
    NoMessages { table: String },
    /// A script that cannot be split into statements.
    #[error("{error}{}", caret(text, error.at))]
    Script { text: String, error: tidetable_sql::ScriptError },
    /// An invalid statement with a known position.
    #[error("{}{}", source.without_place(), caret(text, *at))]
    Statement {
        text: String,
        /// Line and column of the mistake, both from 1.
        at: (u64, u64),
        source: Box<SqlError>,
        /// A similar table or column.
        suggestion: Option<String>,
    },
    /// A row key whose digits or escapes are wrong.
    #[error(
        "{option} {text:?} is no row key: bytes are written 0x00ff, with two digits each, or b'a\\x00', with the escapes \\xNN, \\n, \\r, \\t, \\\\ and \\'. Text \
         that begins so is written b'0x..'"
    )]
    NoKey {
        /// The option.
        option: &'static str,
        /// What it was given.
        text: String,
    },
    /// Row keys or times that nothing lies between.
    #[error("no {what} lies between {from} and {to}: the first must come before the second")]
    EmptyRange {
        /// What is selected, such as `row key`.
        what: &'static str,
        /// The beginning, with its option.
        from: String,
        /// The end, with its option.
        to: String,
    },
    /// A file for the rows of several statements.
    #[error("{option} takes the rows of one statement, and there are several: write a file for each by itself")]
    SeveralStatements {
        /// The option of the file.
        option: &'static str,
    },
    /// A person cancelled the query with Ctrl-C.
    #[error("the query was cancelled")]
    Cancelled,
    /// A statement held more than `--memory` allows, in a part that neither counts its memory nor spills.
    #[error(
        "the query does not fit into its memory limit of {limit}: it held {held}, and parts of it cannot spill; raise \
         --memory, or remove it"
    )]
    StatementMemory {
        /// What the statement held when it was ended, with its unit.
        held: String,
        /// The value of `--memory`, with its unit.
        limit: String,
    },
    /// A signal ended a compaction; merges committed before stay.
    #[error("interrupted; {table} is intact, and merges committed before stay: compact again to continue")]
    CompactionStopped {
        table: String,
        /// The number of the signal.
        signal: u8,
    },
    /// The terminal cannot be read.
    #[error("cannot read from the terminal: {0}")]
    Terminal(String),
    /// `verify` found damaged files.
    #[error("{files} damaged: {advice}")]
    Damaged {
        /// Their number, with the noun.
        files: String,
        /// What mends them, with the commands.
        advice: String,
    },
    /// Files missing from a backup, or damaged.
    #[error("{files} damaged, see above; {rest}")]
    Incomplete {
        /// Their number, with noun and verb.
        files: String,
        /// What happened to the files that are intact.
        rest: &'static str,
    },
    /// Files that are still damaged.
    #[error("{files} damaged, see above{advice}")]
    Unsound {
        /// Their number, with noun and verb.
        files: String,
        advice: &'static str,
    },
    /// Some days were not published, or some windows not rebuilt.
    #[error("{missed}, see above; the others are up to date. {again}")]
    Partial {
        /// Their number, with noun and verb.
        missed: String,
        /// How they are done later.
        again: String,
    },
    /// Failed checks kept parts from being published.
    #[error("{failed} failed, see above; the parts that they check were not published, the others were")]
    Checks {
        /// Their number, with the noun.
        failed: String,
    },
    /// Failed checks on existing data.
    #[error("{failed} failed, see above; nothing was changed")]
    DataChecks {
        /// Their number, with the noun.
        failed: String,
    },
    /// No record has this name or prefix, and no job of this name has a recorded run.
    #[error("run {run} has no record: `tidetable history` lists those that have one")]
    NoRun { run: String },
    /// A prefix names several runs.
    #[error("{number} runs begin with {run}: give more of the name, such as {such}")]
    SeveralRuns {
        run: String,
        /// How many runs begin with the prefix.
        number: usize,
        /// The shortest unique prefix of the newest.
        such: String,
    },
    /// A job that neither the project nor a record knows.
    #[error("unknown job {job}: neither a job file nor a record of a run has that name; jobs here: {known}")]
    NoJob { job: String, known: String },
    /// A run without rejected rows.
    #[error("run {run} has no rejected rows{why}: there is nothing to read again{}", other_run(other))]
    NothingRejected {
        run: String,
        /// Why, with a space and brackets.
        why: &'static str,
        /// The newest run of the job that has some.
        other: Option<String>,
    },
    /// Inputs of a replay that are not there.
    #[error(
        "not read again: {files}: no input has that name now; put what was moved or packed back under its name, or correct it where \
         it is, and run the job"
    )]
    NotReadAgain { files: String },
    /// An unknown name in `lineage`.
    #[error(
        "there is no {what} {name}: `tidetable tables` lists tables and exports, `tidetable describe` a table's inputs"
    )]
    NoLineage {
        /// A table, or an input.
        what: &'static str,
        name: String,
        /// All tables and exports, of which a similar one is suggested.
        known: Vec<String>,
    },
    /// `status --fresh` found jobs whose last good run or newest day is too old.
    #[error("{jobs} stale: older than {limit}")]
    Stale {
        /// The jobs, each with the reason, and the verb.
        jobs: String,
        limit: String,
    },
    /// Jobs with a cyclic dependency.
    #[error("jobs depend on each other in a circle: {circle}; take one out of `after`")]
    Circle { circle: String },
    /// A job that depends on an unknown one.
    #[error("job {job} comes after {after}, which is not a job of the project")]
    UnknownAfter { job: String, after: String },
    /// Jobs of the project that did not run, or failed.
    #[error("{failed} of the project failed, see above")]
    Several {
        /// Their number, with the noun.
        failed: String,
        /// The exit code of the first.
        code: u8,
    },
    /// The last of several runs succeeded, an earlier one did not.
    #[error("an earlier run left days unpublished, see above; `tidetable status` lists what is missing")]
    InPart {
        /// The exit code of that run.
        code: u8,
    },
    /// A file or directory that cannot be written.
    #[error("cannot write {path}: {source}")]
    Folder { path: String, source: io::Error },
    /// A path of a directory, or an empty one.
    #[error("{path} names no file: write a path such as sensor.parquet, or - for standard output")]
    NoFileName { path: String },
    /// A file in a missing directory.
    #[error("the folder of {option} {path} does not exist: create it first")]
    NoFolder { option: &'static str, path: String },
    /// A file name without a known extension.
    #[error("{path} does not give the file format: end it in {known}, or add {option}")]
    NoFormat {
        path: String,
        known: String,
        /// The option for the format.
        option: &'static str,
    },
    /// A job without a schedule.
    #[error("job {job} has no `schedule`: add one to its job file")]
    NoSchedule { job: String },
    /// A job is not due: only the exit code tells, so that cron sends no mail.
    #[error("not due")]
    NotDue,
    /// A file of the web could not be taken.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// Files that are too large for a first look.
    #[error(
        "the files have {size}, and `tidetable try` takes {limit}: raise --limit, give fewer files, or propose a job for all with \
         `tidetable new`"
    )]
    TooLargeToTry { size: String, limit: String },
    /// No job could be proposed.
    #[error(transparent)]
    Propose(#[from] ProposeError),
    /// The root that was named does not exist.
    #[error(
        "there is no folder {root}: --root (or TIDETABLE_ROOT) names the root of a store; `tidetable run JOB` creates one"
    )]
    NoRoot { root: String },
    /// The root that was named exists, and has no store.
    #[error(
        "{root} holds no store: it has neither tables nor records of runs. Name another root, or `tidetable run` a job into it"
    )]
    RootEmpty { root: String },
    /// A root that is a file.
    #[error("{root} is not a folder: --root, TIDETABLE_ROOT or `root` of tidetable.toml names the folder of a store")]
    RootNoFolder { root: String },
    /// A project without a store.
    #[error(
        "no job of this project has run yet: its root {root} {state}; `tidetable run JOB` creates it. If jobs have \
         run, check that the disk of the root is mounted, and `root` of tidetable.toml"
    )]
    NothingRan {
        root: String,
        /// What is wrong with it.
        state: &'static str,
    },
    /// A memory budget that is too small to load with.
    #[error("--memory must be at least {}MiB: a load with less would write many small SSTs", MIN_LOAD_MEMORY >> 20)]
    MemoryTooSmall,
    /// A folder for temporary files that cannot be written.
    #[error(
        "--temp-dir {folder}: no temporary file can be made there: {source}; name a folder that exists and can be written"
    )]
    TempDir { folder: String, source: io::Error },
    /// A place that is none, or not for this use.
    #[error(transparent)]
    Place(LocationError),
    /// A library panicked; the message says where, and what to report.
    #[error(transparent)]
    Panicked(#[from] Panicked),
    /// The clock of the machine is before 1970, for which libraries panic.
    #[error(
        "the clock of this machine says {now}: the order of versions and runs is that of their times, so set it first"
    )]
    Clock {
        /// The time, in RFC 3339.
        now: String,
    },
    /// A command that this build does not have.
    #[cfg(not(all(feature = "bigtable", feature = "cluster", feature = "postgres")))]
    #[error(
        "this tidetable is built without the feature {feature}, as `tidetable --version` shows: install the wheel or the Debian \
         package, which have it, or build it from its source with `--features bigtable,cluster,postgres`"
    )]
    NotBuilt {
        /// The feature of cargo.
        feature: &'static str,
    },
    /// A scheduler or an executor failed.
    #[cfg(feature = "cluster")]
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// Findings that `--deny` does not accept.
    #[error(
        "{findings} of severity {severity} or above: change the job file, or give a reason there, as in `lint = {{ K1 = \"..\" }}`"
    )]
    Denied {
        /// Their number, with the noun.
        findings: String,
        /// The least severity that is not accepted.
        severity: &'static str,
    },
    /// Invalid options, or an invalid combination of them.
    #[error("{0}")]
    Usage(&'static str),
}

impl From<BlobError> for CliError {
    fn from(error: BlobError) -> Self {
        Self::Store(error.into())
    }
}

impl CliError {
    /// The exit code of the process.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Cancelled => 130,
            Self::CompactionStopped { signal, .. } => 128 + signal,
            Self::Checks { .. } | Self::DataChecks { .. } | Self::Denied { .. } => 3,
            Self::Partial { .. } => 4,
            Self::Several { code, .. } | Self::InPart { code } => *code,
            #[cfg(not(all(feature = "bigtable", feature = "cluster", feature = "postgres")))]
            Self::NotBuilt { .. } => 2,
            #[cfg(feature = "cluster")]
            Self::Cluster(
                ClusterError::Address { .. }
                | ClusterError::InClear { .. }
                | ClusterError::HalfIdentity { .. }
                | ClusterError::NoCertificate { .. }
                | ClusterError::ExecutorTimeout { .. }
                | ClusterError::Heartbeat,
            ) => 2,
            #[cfg(feature = "postgres")]
            Self::Postgres(error) => error.exit_code(),
            Self::Run(error) => error.exit_code(),
            #[cfg(feature = "bigtable")]
            Self::Bigtable(error) => error.exit_code(),
            #[cfg(feature = "bigtable")]
            Self::NoPlace { .. } | Self::NotRaw { .. } | Self::CannotFollow { .. } => 2,
            Self::Backup(error) => error.exit_code(),
            Self::Advisor(error) => error.exit_code(),
            Self::NoRun { .. }
            | Self::SeveralRuns { .. }
            | Self::Enter { .. }
            | Self::NoJob { .. }
            | Self::NoLineage { .. }
            | Self::NoRoot { .. }
            | Self::RootEmpty { .. }
            | Self::RootNoFolder { .. }
            | Self::NothingRan { .. }
            | Self::NoFileName { .. }
            | Self::NoFolder { .. }
            | Self::NoFormat { .. }
            | Self::EmptyRange { .. }
            | Self::NoKey { .. }
            | Self::SeveralStatements { .. }
            | Self::Circle { .. }
            | Self::UnknownAfter { .. } => 2,
            Self::Place(_) | Self::TooLargeToTry { .. } => 2,
            Self::Download(DownloadError::NoName { .. } | DownloadError::TooLarge { .. }) => 2,
            Self::Download(DownloadError::Stopped(Stopped(signal))) => 128 + signal,
            Self::Propose(ProposeError::Write { .. }) => 1,
            Self::Propose(_) | Self::NoSchedule { .. } => 2,
            Self::Project(_)
            | Self::Job(_)
            | Self::Usage(_)
            | Self::MemoryTooSmall
            | Self::TempDir { .. }
            | Self::NoMessages { .. }
            | Self::Export { .. }
            | Self::Check { .. } => 2,
            Self::Sql(source) if source.is_of_statement() => 2,
            Self::Statement { source, .. } if source.is_of_statement() => 2,
            Self::Written(ExportError::Query { source, .. }) if source.is_of_statement() => 2,
            Self::Script { .. } | Self::Written(ExportError::DuplicateColumn { .. }) => 2,
            Self::Store(StoreError::NoTable { .. }) => 2,
            Self::Store(
                StoreError::DeleteNamesNoRow { .. } | StoreError::NoFamily { .. } | StoreError::UpsertCells { .. },
            ) => 2,
            _ => 1,
        }
    }

    /// A known name similar to the unknown one.
    pub fn suggestion(&self) -> Option<String> {
        match self {
            Self::Store(StoreError::NoTable { name, known, .. }) => nearest(name, known.split(", ")),
            Self::NoJob { job, known } => nearest(job, known.split(", ")),
            Self::NoLineage { name, known, .. } => nearest(name, known.iter().map(String::as_str)),
            Self::Statement { suggestion: Some(suggestion), .. } => Some(suggestion.clone()),
            Self::Statement { source, .. } => suggestion_of_query(source),
            Self::Sql(source) => suggestion_of_query(source),
            Self::Written(ExportError::Query { source, .. }) => suggestion_of_query(source),
            _ => None,
        }
    }

    /// A closed pipe as an error.
    pub fn closed_pipe() -> Self {
        Self::Output(io::ErrorKind::BrokenPipe.into())
    }

    /// Whether the reader of standard output is gone, which is no failure.
    pub fn is_closed_pipe(&self) -> bool {
        let kind = match self {
            Self::Output(error) => Some(error.kind()),
            Self::Json(error) => error.io_error_kind(),
            _ => None,
        };
        kind == Some(io::ErrorKind::BrokenPipe)
    }
}

/// A table or column similar to the one that a query names and that does not exist.
fn suggestion_of_query(source: &SqlError) -> Option<String> {
    // DataFusion suggests similar columns itself.
    let unknown = source.unknown_name().filter(|_| !source.to_string().contains("Did you mean"))?;
    nearest(&unknown.name, unknown.known.iter().map(String::as_str))
}

/// The invalid line of `text`, with a caret under the column.
fn caret(text: &str, (line, column): (u64, u64)) -> String {
    let [row, at] = [line, column].map(|number| usize::try_from(number.saturating_sub(1)).unwrap_or_default());
    let Some(shown) = text.lines().nth(row) else { return String::new() };
    let (shown, at) = excerpt(shown, at);

    let before: String = shown.chars().take(at).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    format!("\n  line {line}, column {column}\n  | {shown}\n  | {before}^")
}

/// Characters of a line that an excerpt shows.
const EXCERPT: usize = 72;

/// The part of a line around the character `at`, and the place of that character in it. What is left out is marked.
fn excerpt(line: &str, at: usize) -> (String, usize) {
    let length = line.chars().count();
    if length <= EXCERPT {
        return (line.to_owned(), at);
    }

    let first = at.saturating_sub(EXCERPT / 2).min(length - EXCERPT);
    let mut shown: Vec<char> = line.chars().skip(first).take(EXCERPT).collect();
    if first > 0 {
        shown[0] = '…';
    }
    if first + EXCERPT < length {
        shown[EXCERPT - 1] = '…';
    }
    (shown.into_iter().collect(), at - first)
}

/// Where to look instead of a run without rejected rows.
fn other_run(other: &Option<String>) -> String {
    other.as_ref().map(|run| format!("; `tidetable replay {run}` reads those of an earlier run")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_of_a_long_line_shows_the_place() {
        let line: String = (0..200).map(|at| char::from(b'a' + at % 26)).collect();
        for at in [0, 10, 40, 100, 199] {
            let (shown, place) = excerpt(&line, at);
            assert_eq!(shown.chars().count(), EXCERPT);
            assert_eq!(shown.chars().nth(place), line.chars().nth(at), "{at}");
        }
        assert_eq!(excerpt("select 1", 7), ("select 1".to_owned(), 7));
    }
}
