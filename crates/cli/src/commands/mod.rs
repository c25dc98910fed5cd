//! One module per command.

pub(crate) mod advisor;
#[cfg(feature = "bigtable")]
pub(crate) mod bigtable;
#[cfg(not(feature = "bigtable"))]
#[path = "without_bigtable.rs"]
pub(crate) mod bigtable;
pub mod check;
pub(crate) mod cluster;
pub mod completions;
pub mod export;
pub mod lint;
pub(crate) mod maintenance;
pub mod new;
pub mod plan;
pub mod proto;
pub(crate) mod ranges;
pub mod read;
pub(crate) mod reports;
pub(crate) mod root;
pub mod run;
pub mod schedule;
pub mod schema;
pub mod serve;
pub mod sql;

use std::time::SystemTime;

use tidetable_job::{Project, ProjectError};
use tidetable_layout::time::{micros_since_epoch, window_name};
use tidetable_runner::open_store;
use tidetable_runner::plan::ranges;
use tidetable_runner::record::{NewestVersions, RunFound, RunRecord, Runs};
use tidetable_store::{Snapshot, Sst, Store};

use crate::args::Global;
use crate::diagnostics::print_message;
use crate::error::CliError;

/// The project of the current directory, with the root of the command line.
fn project(global: &Global) -> Result<Project, CliError> {
    let here =
        std::env::current_dir().map_err(|source| CliError::File { path: "the current folder".to_owned(), source })?;
    // clap reads TIDETABLE_ROOT as the default of --root.
    Ok(Project::find(&here)?.with_root(global.root.as_ref()))
}

/// The store of the project, or of `--root` without a project. It must exist.
fn store(global: &Global) -> Result<Store, CliError> {
    let project = project_of_store(global)?;
    root::is_there(global, &project)?;
    Ok(open_store(&project)?)
}

/// Like [`store`], for commands that also work on a project without runs; a note says so.
fn store_if_any(global: &Global) -> Result<Store, CliError> {
    let project = project_of_store(global)?;
    note_if_nothing_ran(global, root::is_there(global, &project))?;
    Ok(open_store(&project)?)
}

/// The newest version of a table that must exist, to be read. One that has lost newer versions is refused.
fn open_newest(store: &Store, table: &str) -> Result<Snapshot, CliError> {
    Ok(NewestVersions::default().snapshot(store, table)?)
}

/// Warns of windows that lost a damaged SST: a result without their rows would look complete.
fn warn_of_lost_windows<'a>(global: &Global, snapshots: impl IntoIterator<Item = &'a Snapshot>) {
    for snapshot in snapshots {
        let version = snapshot.version();
        let names = version.lost_windows().into_iter().map(|start| window_name(version.table.spec.window, start));
        let names: Vec<String> = names.collect();
        let windows = match names.as_slice() {
            [] => continue,
            [window] => format!("window {window}"),
            _ => format!("windows {}", ranges(&names.iter().map(String::as_str).collect::<Vec<_>>())),
        };
        let (table, job) = (snapshot.table().name(), &version.table.job);
        let warning = format!(
            "warning: rows are missing from {table}: {windows} lost a damaged SST; `tidetable status {job}` says how to load \
             them again"
        );
        print_message(global, &warning);
    }
}

/// Turns the error for a project without runs into a note.
fn note_if_nothing_ran(global: &Global, root: Result<(), CliError>) -> Result<(), CliError> {
    match root {
        Err(error @ CliError::NothingRan { .. }) => {
            print_message(global, &error.to_string());
            Ok(())
        }
        root => root,
    }
}

/// Notes that a root given by option holds no store yet: it may be mistyped, or the first run will create it.
fn note_if_root_is_new(global: &Global) -> Result<(), CliError> {
    match named_root_is_there(global) {
        Err(CliError::NoRoot { root } | CliError::RootEmpty { root }) => {
            print_message(global, &format!("{root} holds no store yet: the first run creates it"));
            Ok(())
        }
        found => found,
    }
}

/// The project, or one with a root only.
fn project_of_store(global: &Global) -> Result<Project, CliError> {
    match (project(global), &global.root) {
        (Err(CliError::Project(ProjectError::NotFound { .. })), Some(root)) => {
            let here = std::env::current_dir()
                .map_err(|source| CliError::File { path: "the current folder".to_owned(), source })?;
            Ok(Project::of_store(&here, root))
        }
        (project, _) => project,
    }
}

/// The root of the command line or of the project, as people know it; `None` if there is none.
pub fn root_of(global: &Global) -> Option<String> {
    project_of_store(global).ok().map(|project| project.root)
}

/// Refuses a missing root given by option: only commands that create a root take it for empty.
pub fn named_root_is_there(global: &Global) -> Result<(), CliError> {
    match &global.root {
        Some(root) if !root.is_empty() => root::is_there(global, &project_of_store(global)?),
        _ => Ok(()),
    }
}

/// The project, if there is one; reports need only `--root`.
fn project_if_any(global: &Global) -> Result<Option<Project>, CliError> {
    match project(global) {
        Ok(project) => Ok(Some(project)),
        Err(CliError::Project(ProjectError::NotFound { .. })) if global.root.is_some() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The record of the run `asked`: its name, a unique prefix of it, `last`, or a job for its
/// last run.
fn find_run(store: &Store, asked: &str) -> Result<RunRecord, CliError> {
    let runs = Runs::of(store.blobs().as_ref());
    let record = match runs.find(asked)? {
        RunFound::One(run) => runs.known(&run)?,
        RunFound::Several(names) => return Err(several(asked, &names)),
        RunFound::None => runs.known_newest_first(Some(asked))?.find_map(Result::ok),
    };
    record.ok_or_else(|| CliError::NoRun { run: asked.to_owned() })
}

/// The error for an ambiguous prefix, with a sufficient one.
fn several(asked: &str, names: &[String]) -> CliError {
    let newest = names.last().map(String::as_str).unwrap_or_default();
    let before = names.iter().rev().nth(1).map(String::as_str).unwrap_or_default();
    let alike = newest.chars().zip(before.chars()).take_while(|(a, b)| a == b).count();
    let such = newest.chars().take(alike + 1).collect();
    CliError::SeveralRuns { run: asked.to_owned(), number: names.len(), such }
}

/// The tables of a command: the given one, which must exist but may be damaged, or
/// all.
fn table_or_all(store: &Store, given: Option<&str>) -> Result<Vec<String>, CliError> {
    let Some(name) = given else { return Ok(store.tables()?) };
    if store.table(name).version_numbers()?.is_empty() {
        // Fails with a list of the tables.
        store.snapshot(name)?;
    }
    Ok(vec![name.to_owned()])
}

/// The rows, cells and bytes of files together.
fn sums<'a>(ssts: impl Iterator<Item = &'a Sst>) -> [u64; 3] {
    ssts.fold([0; 3], |[rows, cells, bytes], sst| [rows + sst.rows, cells + sst.cells, bytes + sst.bytes])
}

/// The clock, microseconds since the epoch.
pub fn clock() -> i64 {
    micros_since_epoch(SystemTime::now())
}
