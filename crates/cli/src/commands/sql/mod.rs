//! `tidetable sql`: runs statements and writes their rows.

pub(crate) mod complete;
pub(crate) mod listing;
pub(crate) mod memory;
pub(crate) mod prompt;
pub(crate) mod run;
pub(crate) mod suggest;
pub(crate) mod summarize;
pub(crate) mod versions;
pub(crate) mod words;

use std::io::{IsTerminal, Read};

use tidetable_job::{Project, ProjectError};
use tidetable_runner::{open_store, runtime};
use tidetable_source::Location;
use tidetable_sql::{ExternalTables, statements};

use super::root::RootCheck;
use super::{note_if_nothing_ran, project_of_store};
use crate::args::{Global, Sql, file_option};
use crate::error::CliError;
use crate::output::HintStyle;
use run::{OutputOptions, StatementRunner};

/// The answer to `--on`, which scripts for runs on a cluster may pass on.
const ONE_PROCESS: &str = "queries run in this process: leave out --on; to ask a cluster, query the published tables with an \
                           engine of your own (docs/guide/cluster.md)";

/// The root where there is neither a project nor `--root`.
const NO_STORE: &str = ".tidetable-no-store";

/// Runs the statements up to the first that fails.
pub fn sql(global: &Global, args: &Sql) -> Result<(), CliError> {
    if args.on.is_some() {
        return Err(CliError::Usage(ONE_PROCESS));
    }

    let project = project_or_files_alone(global)?;
    let root = check_of_root(global, &project)?;
    let store = open_store(&project)?;
    let runtime = runtime()?;
    let external = ExternalTables::default();
    let output_options = OutputOptions {
        output: global.output,
        format_is_explicit: global.output_given,
        to: args.to.clone(),
        max_rows: args.max_rows,
        timing: args.timing,
        print_row_count: false,
        words: HintStyle::Options,
    };
    let runner = StatementRunner {
        store: &store,
        global,
        root: &root,
        args,
        runtime: &runtime,
        external: &external,
        output_options,
    };
    let has_root = global.root.is_some() || project.root_is_url();
    let done = run_statements(&runner, args, has_root);
    // What was interrupted may take long until it notices, and ends with the process.
    runtime.shutdown_background();
    done
}

/// Runs the statements of the command line, or those of the prompt. `has_root`: whether a store is named, which must be there;
/// outside a project the prompt is for files.
fn run_statements(runner: &StatementRunner<'_>, args: &Sql, has_root: bool) -> Result<(), CliError> {
    let Some(script) = script(args)? else {
        if has_root {
            runner.root_is_there()?;
        }
        return prompt::prompt(runner);
    };
    let found = statements(&script).map_err(|error| CliError::Script { text: script.clone(), error })?;
    if found.is_empty() {
        return Err(CliError::Usage("there is no statement to run"));
    }
    if found.len() > 1 && args.to.is_some() {
        return Err(CliError::SeveralStatements { option: file_option() });
    }
    runner.run_all(&script, &found)
}

/// The check of the root. Without a store, statements fail that ask one; a project in which nothing ran is noted and taken
/// for empty.
fn check_of_root(global: &Global, project: &Project) -> Result<RootCheck, CliError> {
    match RootCheck::begin(global, project) {
        Err(CliError::NoRoot { .. } | CliError::RootEmpty { .. }) => Ok(RootCheck::missing()),
        Err(_) if project_of_store(global).is_err() => Ok(RootCheck::missing()),
        Err(error) => note_if_nothing_ran(global, Err(error)).map(|()| RootCheck::default()),
        begun => begun,
    }
}

/// The project; outside of one, a root that is never there, for statements that read files or nothing.
fn project_or_files_alone(global: &Global) -> Result<Project, CliError> {
    match project_of_store(global) {
        Err(CliError::Project(ProjectError::NotFound { start })) => {
            Ok(Project::of_store(&start, &Location::Path(NO_STORE.into())))
        }
        project => project,
    }
}

/// The script to run; `None` for the prompt.
fn script(args: &Sql) -> Result<Option<String>, CliError> {
    let failed = |path: String| move |source| CliError::File { path, source };
    match (args.statements.as_ref().or(args.query.as_ref()), &args.file) {
        (Some(query), _) => Ok(Some(query.clone())),
        (None, Some(path)) => std::fs::read_to_string(path).map(Some).map_err(failed(path.display().to_string())),
        (None, None) if std::io::stdin().is_terminal() && args.to.is_none() => Ok(None),
        (None, None) => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(failed("standard input".to_owned()))?;
            Ok(Some(text))
        }
    }
}
