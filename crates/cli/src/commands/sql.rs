//! `tidetable sql`: runs a query and writes its rows.

use std::io::Read;

use futures::StreamExt;
use tidetable_runner::runtime;
use tidetable_sql::{Session, SessionOptions};

use super::store;
use crate::args::{Global, Sql};
use crate::error::CliError;
use crate::output::{BatchWriter, stdout};

/// Runs the query.
pub fn sql(global: &Global, args: &Sql) -> Result<(), CliError> {
    let query = query(args)?;
    let store = store(global)?;
    let session = Session::open(&store, &SessionOptions::default())?;
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
