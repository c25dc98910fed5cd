//! `tidetable sql`: runs a query and writes its rows.

use std::collections::BTreeSet;
use std::io::Read;

use futures::StreamExt;
use tidetable_runner::runtime;
use tidetable_sql::{Session, SessionOptions, TableVersions};
use tidetable_store::Store;

use super::store;
use crate::args::{Global, Sql};
use crate::error::CliError;
use crate::output::{BatchWriter, stdout};

/// Runs the query.
pub fn sql(global: &Global, args: &Sql) -> Result<(), CliError> {
    let query = query(args)?;
    let store = store(global)?;
    let versions = versions(&store, args, &query)?;
    let session = Session::open(&store, &SessionOptions { versions, ..SessionOptions::default() })?;
    let runtime = runtime()?;
    let mut writer = BatchWriter::new(stdout(), global.output);
    runtime.block_on(async {
        let mut rows = session.stream(&query).await?;
        writer.start(&rows.schema())?;
        while let Some(batch) = rows.next().await {
            writer.write(&batch.map_err(tidetable_sql::SqlError::from)?)?;
        }
        Ok::<_, CliError>(())
    })?;
    writer.finish()
}

/// The versions to read. A number without a table is for the one that the query reads.
fn versions(store: &Store, args: &Sql, query: &str) -> Result<TableVersions, CliError> {
    let mut versions = TableVersions { as_of: args.as_of_commit, ..TableVersions::default() };
    if args.version.is_empty() {
        return Ok(versions);
    }
    let references = Session::open(store, &SessionOptions::default())?.references(query)?;
    let read: BTreeSet<String> =
        references.into_iter().filter(|(schema, _)| schema != "exports").map(|(_, table)| table).collect();
    for (table, number) in &args.version {
        let table = match (table, read.len()) {
            (Some(table), _) if read.contains(table) => table.clone(),
            (None, 1) => read.first().cloned().unwrap_or_default(),
            _ => {
                return Err(CliError::Usage(
                    "--version must name a table that the query reads, as in --version SENSOR=7",
                ));
            }
        };
        versions.numbers.insert(table, *number);
    }
    Ok(versions)
}

fn query(args: &Sql) -> Result<String, CliError> {
    let failed = |path: String| move |source| CliError::File { path, source };
    match (&args.query, &args.file) {
        (Some(query), _) => Ok(query.clone()),
        (None, Some(path)) => std::fs::read_to_string(path).map_err(failed(path.display().to_string())),
        (None, None) => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(failed("standard input".to_owned()))?;
            Ok(text)
        }
    }
}
