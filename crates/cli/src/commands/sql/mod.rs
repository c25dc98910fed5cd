//! `tidetable sql`: runs statements and writes their rows.

pub(crate) mod complete;
pub(crate) mod listing;
pub(crate) mod prompt;
pub(crate) mod run;
pub(crate) mod summarize;
pub(crate) mod versions;
pub(crate) mod words;

use std::io::{IsTerminal, Read};

use tidetable_runner::{open_store, runtime};
use tidetable_sql::{ExternalTables, statements};

use super::cluster::{Queries, elsewhere};
use super::root::RootCheck;
use super::{note_if_nothing_ran, project_of_store};
use crate::args::{Global, Sql};
use crate::error::CliError;
use crate::output::HintStyle;
use run::{OutputOptions, StatementRunner};

/// Runs the statements up to the first that fails.
pub fn sql(global: &Global, args: &Sql) -> Result<(), CliError> {
    let project = project_of_store(global)?;
    let root = match RootCheck::begin(global, &project) {
        Ok(root) => root,
        Err(error) => note_if_nothing_ran(global, Err(error)).map(|()| RootCheck::default())?,
    };
    let store = open_store(&project)?;
    let runtime = runtime()?;
    let external = ExternalTables::default();
    let elsewhere = elsewhere(args.on.as_deref(), &project).map(|on| Queries::new(&on, &project.root)).transpose()?;
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
        elsewhere: elsewhere.as_ref(),
        output_options,
    };
    let Some(script) = script(args)? else {
        runner.root_is_there()?;
        return prompt::prompt(&runner);
    };
    let found = statements(&script).map_err(|error| CliError::Script { text: script.clone(), error })?;
    if found.is_empty() {
        return Err(CliError::Usage("there is no statement to run"));
    }
    if found.len() > 1 && args.to.is_some() {
        return Err(CliError::Usage("--to takes the rows of one statement, and there are several"));
    }
    runner.run_all(&script, &found)
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
