//! `tidetable export`: cells of a table or rows of a query in a file, for other programs.

use std::io::Write;

use serde_json::json;
use tidetable_export::{FileFormat, QueryFile};
use tidetable_runner::runtime;
use tidetable_sql::{Session, SessionOptions, name};
use tidetable_store::{Blobs, LocalBlobs};

use super::{store, store_if_any};
use crate::args::{Export, ExportForm, Global, Output};
use crate::error::CliError;
use crate::output::{Rows, stdout};
use crate::progress::{bytes, count};

/// Writes the file and tells what is in it.
pub fn export(global: &Global, args: &Export) -> Result<(), CliError> {
    // A query may read files alone.
    let store = if args.query.is_some() { store_if_any(global)? } else { store(global)? };
    let sql = match (&args.query, &args.table) {
        (Some(query), _) => query.clone(),
        (None, table) => {
            let table = table.as_deref().unwrap_or_default();
            // Says which there are.
            store.snapshot(table)?;
            format!("SELECT * FROM cells.{}", name(table))
        }
    };
    let shown = args.to.display().to_string();
    let file = args.to.file_name().and_then(|file| file.to_str()).filter(|file| !file.starts_with('.'));
    let file = file.ok_or(CliError::Usage("--to names no file: write a path such as sensor.parquet"))?;
    let folder = std::path::absolute(&args.to).map_err(|source| CliError::File { path: shown.clone(), source })?;
    let folder = folder.parent().filter(|folder| folder.is_dir());
    let folder = folder.ok_or(CliError::Usage("the folder of --to is not there: make it first"))?;
    let session = Session::open(&store, &SessionOptions::default())?;
    let query = QueryFile { session: &session, sql: &sql, params: &[], format: form(args.format), name: &shown };
    let (rows, size) = runtime()?.block_on(query.write(LocalBlobs::new(folder.to_owned()).replacer(file)?))?;
    let mut out = stdout();
    match global.output {
        Output::Table => writeln!(out, "wrote {} to {shown}, {}", count(rows, noun(args)), bytes(size))?,
        output => {
            let mut written = Rows::new(&["file", "rows", "bytes"]);
            written.push(vec![json!(shown), json!(rows), json!(size)]);
            written.write(output, &mut out)?;
        }
    }
    out.flush()?;
    Ok(())
}

fn noun(args: &Export) -> &'static str {
    if args.table.is_some() { "cell" } else { "row" }
}

fn form(format: ExportForm) -> FileFormat {
    match format {
        ExportForm::Parquet => FileFormat::Parquet,
        ExportForm::Csv => FileFormat::Csv,
        ExportForm::Arrow => FileFormat::Arrow,
        ExportForm::BigtableParquet => FileFormat::BigtableParquet,
        ExportForm::CbtCsv => FileFormat::CbtCsv,
    }
}
