//! Errors of a run.

use std::path::PathBuf;

use tidetable_blobs::BlobError;
use tidetable_export::{ExportError, TableLog};
use tidetable_source::SourceError;
use tidetable_source::panics::Panicked;
use tidetable_sql::SqlError;
use tidetable_store::StoreError;

use crate::fault::catalog_failure::CatalogFailure;
use crate::fault::lost_store::LostStore;
use crate::fault::push_failure::PushFailure;
use crate::fault::unit_failure::{CarryError, UnitFailure};

/// Why a run failed. What it committed stays; another run continues from there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The root lacks what former runs wrote.
    #[error(transparent)]
    LostStore(#[from] LostStore),
    /// The marks of a root could not be removed.
    #[error("cannot forget the former store of this root: {0}; remove .tidetable/roots of the project")]
    Marks(std::io::Error),
    /// A table could not be pushed.
    #[error("{source}")]
    Push {
        /// Its name in the job file.
        push: String,
        /// What ended the push.
        source: PushFailure,
    },
    /// An export that is published, and not committed to its catalog.
    #[error("commit {table}: {source}")]
    Catalog {
        /// The table and its catalog.
        table: String,
        /// Why it is not there.
        source: Box<CatalogFailure>,
    },
    /// A push into a table that the rows were pulled from.
    #[error(
        "push {push}: the rows of {table} were pulled from {target}, and a push would replace what is there by what is here; \
         add `to_source = true` if that is meant"
    )]
    PushToSource {
        /// Its name in the job file.
        push: String,
        /// Name of the table here.
        table: String,
        /// The table in Bigtable.
        target: String,
    },
    /// Cells of a family that the job does not load.
    #[error(
        "{directory} holds cells of family {family}, which the job does not load: declare their column `{column}` and the \
         family, or pull {table} again"
    )]
    PulledFamily {
        /// The directory of the pull.
        directory: String,
        /// The family in Bigtable.
        family: String,
        /// The column of its values.
        column: String,
        /// The table that was pulled.
        table: String,
    },
    /// The command cannot push.
    #[error(
        "push {push}: this tidetable is built without the feature bigtable, as `tidetable --version` shows: install the wheel or the \
         Debian package, which have it, or remove [push.{push}]"
    )]
    NoPusher {
        /// Its name in the job file.
        push: String,
    },
    /// More rejected rows than the source allows.
    #[error(
        "{rejected} of {read} {what} of source {source_name} were rejected, more than max_rejected = {limit} allows; \
         nothing was committed. First: {first}. `tidetable rejects {job}` shows the rows and reasons ({log}): fix the source or its columns, \
         or let more pass by `max_rejected` or `rejected_floor` of the source"
    )]
    TooManyRejected {
        /// Name of the source.
        source_name: Box<str>,
        /// Rows rejected, or lines if rejected records go over several.
        rejected: u64,
        /// Rows, or lines, read.
        read: u64,
        /// `rows` or `lines`, whichever was counted.
        what: &'static str,
        /// The limit as in the job file.
        limit: Box<str>,
        /// The first rejected rows: file, line, column and reason of each.
        first: Box<str>,
        /// Name of the job.
        job: Box<str>,
        /// File with the rejected rows.
        log: Box<str>,
    },
    /// More rejected rows of a table's query than allowed.
    #[error(
        "{rejected} of {read} rows that the query of table {table} gave were rejected, more than {limit}; the table is as \
         it was, the tables it reads are up to date. First: {first}. `tidetable rejects {job}` shows the rows and reasons ({log}): fix the \
         query or the layout"
    )]
    TooManyQueryRejected {
        /// Name of the derived table.
        table: String,
        /// Rows that were rejected.
        rejected: u64,
        /// Rows the query gave.
        read: u64,
        /// The limit, as a job file would have it.
        limit: Box<str>,
        /// The first rejected rows: window, row, column and reason of each.
        first: Box<str>,
        /// Name of the job.
        job: String,
        /// File with the rejected rows.
        log: Box<str>,
    },
    /// A rebuild that would lose the rows of missing inputs.
    #[error(
        "rebuilding table {table} would lose the rows of inputs that are missing or empty now: {gone}. Put them back; or write their \
         rows out of the table into a new input first (docs/guide/inputs.md, \"Rows of files that are gone\"), and rebuild with {remove}, \
         which removes the rows of those inputs for good{}",
        only_derived(derived)
    )]
    RebuildGone {
        /// Name of the table.
        table: String,
        /// The inputs; the rest is counted.
        gone: String,
        /// The options that remove their rows.
        remove: String,
        /// The tables of the job that are derived from it.
        derived: Box<[String]>,
    },
    /// A name that an export of another job has.
    #[error(
        "{name} is published by job {owner}; give the export {export} of this job another name or, if the job was renamed, its \
         old name back to the job; what no job declares any more goes by `tidetable drop`"
    )]
    ExportOwned {
        /// Export of this job.
        export: String,
        /// The common name: of the export, or of a part of it.
        name: String,
        /// The job it belongs to.
        owner: String,
    },
    /// A table or export that is to be removed, and that a job declares.
    #[error(
        "{} declares {name}, and its next run would make it again; take it out of the file first",
        file.display()
    )]
    Declared {
        /// The table or export.
        name: String,
        /// The job file, as it is shown.
        file: PathBuf,
    },
    /// A table that is to be removed, and from which something of a job is made.
    #[error(
        "{by} is made from {table}, and would stop the runs of its job; change its query first, and run the job once"
    )]
    DropRead {
        /// The table.
        table: String,
        /// What is made from it.
        by: String,
    },
    /// A table that is to be removed while somebody copies it.
    #[error("{table} is being copied, by a backup or a compaction: wait for its end; nothing was removed")]
    Pinned {
        /// The table.
        table: String,
    },
    /// A table or export that changed between the question and the answer.
    #[error("{name} has changed since it was shown what would be removed: look again; nothing was removed")]
    DropChanged {
        /// The table or export.
        name: String,
    },
    /// Nothing of a name in the store, neither a table nor an export.
    #[error("there is no table or export {name} in the store; `tidetable tables` lists them")]
    NothingToDrop {
        /// The name that was given.
        name: String,
    },
    /// A directory that an export has which the job declared before.
    #[error(
        "{folder} was published by the export {former}, which the job no longer declares; give {export} a `name` that makes other \
         directories, its old name {former} back to the export, or remove what it published by `tidetable drop {former}`"
    )]
    ExportFormer {
        /// The export of the job file.
        export: String,
        /// The directory, inside `exports`.
        folder: String,
        /// The export that published the directory.
        former: String,
    },
    /// A name that exports or tables of two jobs could both have.
    #[error(
        "{name} can have the name {both}, and so can {other} of job {job}: give one of them a name that differs in more than \
         its times and capitals"
    )]
    NameConflict {
        /// The export or table.
        name: String,
        /// A name that both can have.
        both: String,
        /// The export or table of the other job.
        other: String,
        /// Name of the other job.
        job: String,
    },
    /// A query that reads what cannot be restricted to a period, or whose changes cannot be followed.
    #[error(
        "export {export}: {found}; a query for each day, hour or month reads records of tables, such as SENSOR, and one \
         per = \"query\" may read rows.T and cells.T too"
    )]
    NotByPeriod {
        /// Name of the export.
        export: String,
        /// What is wrong with it.
        found: String,
    },
    /// A column in `keys` that the query does not return.
    #[error("export {export}: `keys` names {key}, which is not a column of its query; the columns are {columns}")]
    UnknownKey {
        /// Name of the export.
        export: String,
        /// The column that is missing.
        key: String,
        /// The columns of the query.
        columns: String,
    },
    /// A column that the log of a table cannot describe.
    #[error(
        "{export} has {} = true, and {} has no columns of type {kind}: cast {column} in its query, such as \
         CAST({column} AS VARCHAR) AS {column}", log.key(), log.table()
    )]
    TableType {
        /// Name of the export.
        export: String,
        /// The kind of log.
        log: TableLog,
        /// Name of the column.
        column: String,
        /// Its type, an Arrow data type.
        kind: String,
    },
    /// A query with a column of the name of the day column of an Iceberg table.
    #[error(
        "{export} has iceberg = true, whose files have {column} of the day that they are of, and its query has a column {column} \
         of its own: leave it out, or give it another name with AS"
    )]
    DayColumnTaken {
        /// Name of the export.
        export: String,
        /// Name of the column.
        column: String,
    },
    /// A root that cannot be opened as storage.
    #[error("the store's root: {source}")]
    Root {
        /// Why it cannot be opened.
        source: Box<SourceError>,
    },
    /// A place of the command line that cannot be opened as storage.
    #[error("{place}: {source}")]
    Place {
        /// The place that was given.
        place: String,
        /// Why it cannot be opened.
        source: Box<SourceError>,
    },
    /// Files of a source that cannot be reached as they are named.
    #[error("source {source_name}: {source}")]
    Files {
        /// Name of the source.
        source_name: String,
        /// Why they cannot be reached.
        source: Box<SourceError>,
    },
    /// A library panicked during the run.
    #[error("the run stopped at a fault: {0}")]
    Panicked(#[from] Panicked),
    /// A bucket whose conditional writes are not.
    #[error(
        "{root} cannot be the root of a store: {what}; two runs could overwrite each other's work there. Use a server that \
         honours conditional writes (docs/guide/bucket.md), or a folder"
    )]
    Unconditional {
        /// URL of the bucket.
        root: String,
        /// What it did wrong, as a clause.
        what: &'static str,
    },
    /// A setting of the root's storage that cannot be read.
    #[error("tidetable.toml: `{key}` of the root's storage: {reason}")]
    RootSecret {
        /// The key in `tidetable.toml`.
        key: &'static str,
        /// Why it has no value.
        reason: NoSecret,
    },
    /// A root with an unfinished restore.
    #[error("a restore into {root} is unfinished: `{command}` goes on with it")]
    HalfRestored {
        /// The root as the project names it.
        root: String,
        /// The command that goes on with it.
        command: String,
    },
    /// A table or export that the job does not have.
    #[error("--select {selected}: job {job} has no such {what}; it has {known}")]
    NotSelected {
        /// The name that was given.
        selected: String,
        /// Name of the job.
        job: String,
        /// What it was to be: `table` or `export`.
        what: &'static str,
        /// The names of those that it has.
        known: String,
    },
    /// Another run of the job holds the lock.
    #[error(
        "job {job} is already running (run {run}, {place}): wait for its end, or use --if-locked wait or \
         --if-locked skip"
    )]
    Locked {
        /// Name of the job.
        job: String,
        /// Name of the other run.
        run: String,
        /// Its process and machine.
        place: String,
    },
    /// A job runs during an operation that excludes runs.
    #[error("job {job} is running (run {run}, {place}): wait for its end, nothing was changed")]
    Running {
        /// Name of the job.
        job: String,
        /// Name of the run.
        run: String,
        /// Its process and machine.
        place: String,
    },
    /// A file could not be moved to quarantine.
    #[error("cannot move {path} to quarantine: {source}")]
    Staging {
        /// Path inside the store.
        path: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A secret that the job file refers to is missing.
    #[error("source {source_name}: `{key}` of its storage: {reason}")]
    Secret {
        /// Name of the source.
        source_name: String,
        /// The key of the job file.
        key: &'static str,
        /// Why it has no value.
        reason: NoSecret,
    },
    /// The lock of a job could not be opened.
    #[error("cannot lock {}: {source}", path.display())]
    Lock {
        /// Path of the lock file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The run was asked to stop.
    #[error("interrupted; what was committed and published before stays, run again to continue")]
    Interrupted {
        /// The number of the signal.
        signal: u8,
    },
    /// Published files without the list of the export.
    #[error(
        "exports/{folder} is there, but not the list exports/{export}.json that says what was published; put it back, or \
         run with --adopt to keep those files until their days are published again, or with --force to publish all again"
    )]
    ListMissing {
        /// Name of the export.
        export: String,
        /// One of its directories.
        folder: String,
    },
    /// Published parts of a table that no longer exists.
    #[error(
        "export {export} has days that were made from table {table}, which does not exist any more; put it back, or run with \
         --rebuild to rebuild the table and those days"
    )]
    TableMissing {
        /// Name of the export.
        export: String,
        /// Name of the missing table.
        table: String,
    },
    /// A name of `--without` that matches no input.
    #[error("--without {path}: {who} no input of that name{}", suggestion(near))]
    UnknownInput {
        /// The name that was given.
        path: String,
        /// Whose inputs were searched, with its verb, such as `job meters has`.
        who: String,
        /// The most similar names.
        near: Vec<String>,
    },
    /// The disk of the root is full.
    #[error(
        "{source}: the disk of the root {root} has {free} free. Nothing is lost, and what was committed and published stays: \
         make room there (`tidetable vacuum --older-than 0d --yes` removes all old versions), and the next run goes on"
    )]
    DiskFull {
        /// Path of the root.
        root: String,
        /// Its free space, with unit.
        free: String,
        /// The write that failed.
        source: Box<RunError>,
    },
    /// A window of a table that cannot be read.
    #[error("window {window} of table {table} cannot be read: {reason}")]
    Damaged {
        /// Name of the table.
        table: String,
        /// Name of the window, or of the first and the last.
        window: String,
        /// The file, what is wrong with it, and what to do.
        reason: String,
    },
    /// A rebuild of a derived table that would lose rows.
    #[error(
        "rebuilding table {table} would lose rows, because these windows of the tables that it reads lost cells or cannot \
         be read: {}; `tidetable status` and `tidetable verify` say how to mend them",
        windows.join(", ")
    )]
    RebuildLost {
        /// Name of the derived table.
        table: String,
        /// Names of the windows that cannot be read.
        windows: Vec<String>,
    },
    /// A part or a push of a table that lost cells.
    #[error(
        "window {window} of table {table} lost cells with a damaged SST, so the parts made from it stay unchanged; \
         `tidetable status {job}` says how to load them again"
    )]
    LostCells {
        /// Name of the table.
        table: String,
        /// The job of the table.
        job: String,
        /// Name of the window.
        window: String,
    },
    /// The rejected rows could not be written, so nothing is committed.
    #[error("the rejected rows could not be kept; nothing was committed, run again")]
    RejectLog,
    /// The runtime could not be started.
    #[error("cannot start the runtime: {0}")]
    Runtime(std::io::Error),
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An error of a query.
    #[error("export {export}: {source}")]
    Query {
        /// Name of the export.
        export: String,
        /// The error of its query.
        source: Box<SqlError>,
    },
    /// A query that reads what another job makes, before that ran.
    #[error(
        "export {export} reads {name}, which job {job} makes and has not made yet: run it first with `tidetable run {job}`"
    )]
    NotMade {
        /// Name of the export.
        export: String,
        /// The table or export that it reads.
        name: String,
        /// The job that makes it.
        job: String,
    },
    /// An error of a check.
    #[error("a check of {table}: {source}")]
    Check {
        /// Name of the table.
        table: String,
        /// The error of its query.
        source: Box<SqlError>,
    },
    /// An error of publishing.
    #[error(transparent)]
    Export(Box<ExportError>),
    /// A unit failed in another process.
    #[error(transparent)]
    Unit(#[from] UnitFailure),
    /// Units could not be carried to other processes.
    #[error(transparent)]
    Carry(CarryError),
    /// This program cannot be told from others, so that no other process may run its units.
    #[error("cannot read the program itself: {0}; run it from a place where it can be read")]
    Build(std::io::Error),
    /// A unit is of another root than this process works in.
    #[error("the run is in root {theirs}, this executor works in {own}: start it with --root {theirs}")]
    OtherRoot {
        /// The root of the run.
        theirs: String,
        /// The root of this process.
        own: String,
    },
    /// This executor's root has the same URL as the run's root, but is a different store.
    #[error(
        "{run} is not in {root} as this machine sees it: mount the same directory on all machines; or the run has ended"
    )]
    NotHere {
        /// The run, or what it refers to.
        run: String,
        /// The root of this process.
        root: String,
    },
    /// A unit names what the job does not have.
    #[error("\"{job}\" is not in the job as {} has it: copy the project directory of the run to this machine", dir.display())]
    UnknownJob {
        /// The job, table, source or export that it names.
        job: String,
        /// The project directory of this process.
        dir: PathBuf,
    },
    /// This machine cannot read the job of a unit.
    #[error(
        "job {job} cannot be read in {}: {reason}; copy the project directory of the run to this machine",
        dir.display()
    )]
    JobElsewhere {
        /// Name of the job.
        job: String,
        /// The project directory of this process.
        dir: PathBuf,
        /// Why it cannot be read.
        reason: String,
    },
    /// This machine has another job of the name.
    #[error("job {job} in {} is not that of the run: copy the project directory of the run to this machine", dir.display())]
    OtherJob {
        /// Name of the job.
        job: String,
        /// The project directory of this process.
        dir: PathBuf,
    },
    /// The answer of a unit is of another kind than the unit.
    #[error(
        "executor {executor} answered another unit: use one scheduler for tidetable alone, and the same build everywhere"
    )]
    OtherAnswer {
        /// Name of the executor that answered.
        executor: String,
    },
}

impl From<BlobError> for RunError {
    fn from(error: BlobError) -> Self {
        Self::Store(error.into())
    }
}

/// Why a referenced value could not be read. No message shows a value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoSecret {
    /// No such environment variable.
    #[error("the environment variable {name} is not set; set it where tidetable runs")]
    NoVariable {
        /// Name of the variable.
        name: String,
    },
    /// An environment variable without a value.
    #[error("the environment variable {name} is empty; set it where tidetable runs")]
    EmptyVariable {
        /// Name of the variable.
        name: String,
    },
    /// A file that cannot be read.
    #[error("cannot read {}: {source}; create it, or correct its path in the job file", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file that holds nothing.
    #[error("{} is empty; write the value into it", path.display())]
    EmptyFile {
        /// Path of the file.
        path: PathBuf,
    },
    /// A value that is not UTF-8.
    #[error("{place} does not hold text; write the value as UTF-8")]
    NotText {
        /// The variable or file.
        place: String,
    },
}

impl RunError {
    /// Whether an executor with this error does not fit the run, as one of another root: others may do its units.
    pub(crate) fn is_unfit(&self) -> bool {
        matches!(
            self,
            Self::OtherRoot { .. }
                | Self::NotHere { .. }
                | Self::UnknownJob { .. }
                | Self::JobElsewhere { .. }
                | Self::OtherJob { .. }
        )
    }

    /// The exit code for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Locked { .. }
            | Self::Running { .. }
            | Self::Pinned { .. }
            | Self::DropChanged { .. }
            | Self::Store(StoreError::Blob(BlobError::LeaseLost { .. })) => 75,
            Self::Interrupted { signal } => 128 + signal,
            Self::DiskFull { source, .. } => source.exit_code(),

            Self::Secret { .. }
            | Self::RootSecret { .. }
            | Self::Root { .. }
            | Self::Place { .. }
            | Self::Files { .. }
            | Self::Store(StoreError::Blob(BlobError::Open(SourceError::Location(_) | SourceError::Endpoint { .. })))
            | Self::Store(StoreError::Source(SourceError::Location(_) | SourceError::Endpoint { .. }))
            | Self::NoPusher { .. }
            | Self::Unconditional { .. }
            | Self::HalfRestored { .. }
            | Self::LostStore(_)
            | Self::NotSelected { .. }
            | Self::UnknownInput { .. }
            | Self::ListMissing { .. }
            | Self::TableMissing { .. }
            | Self::NotMade { .. }
            | Self::Store(StoreError::LayoutChanged { .. } | StoreError::OwnedByOtherJob { .. })
            | Self::ExportOwned { .. }
            | Self::ExportFormer { .. }
            | Self::Declared { .. }
            | Self::NothingToDrop { .. }
            | Self::DropRead { .. }
            | Self::NotByPeriod { .. }
            | Self::NameConflict { .. }
            | Self::PushToSource { .. }
            | Self::PulledFamily { .. }
            | Self::UnknownKey { .. }
            | Self::TableType { .. }
            | Self::DayColumnTaken { .. } => 2,

            // Damaged files are not a mistake of the job.
            Self::Query { source, .. } if source.is_of_statement() => 2,
            _ => 1,
        }
    }
}

/// The end of the message that a table cannot be rebuilt: how the tables `derived` from it are.
fn only_derived(derived: &[String]) -> String {
    if derived.is_empty() {
        return String::new();
    }
    let is = if derived.len() == 1 { "is" } else { "are" };
    let (names, options) = (derived.join(" and "), derived.join(",table:"));
    format!(". {names} {is} rebuilt without them by --rebuild --select table:{options}")
}

/// The names that an unknown one may stand for.
fn suggestion(near: &[String]) -> String {
    match near {
        [] => "; its tables have no inputs".to_owned(),
        near => format!("; did you mean {}?", near.join(" or ")),
    }
}

impl From<CarryError> for RunError {
    fn from(error: CarryError) -> Self {
        match error {
            CarryError::Stopped { signal } => Self::Interrupted { signal },
            error => Self::Carry(error),
        }
    }
}

impl From<ExportError> for RunError {
    fn from(error: ExportError) -> Self {
        Self::Export(Box::new(error))
    }
}
