//! `tidetable export`: writes the cells of a table or the rows of a query to a file.

use std::io::Write;

use arrow::error::ArrowError;
use tidetable_blobs::BlobWriter;
use tidetable_export::{ExportError, FileFormat, QueryFile};
use tidetable_runner::runtime;
use tidetable_sql::{Session, SessionOptions, quoted_name};
use tidetable_store::Store;

use super::sql::suggest::suggested_table;
use super::{store, store_if_any, warn_of_lost_windows};
use crate::args::{Export, ExportForm, Global, Output, file_option};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::objects;
use crate::output::destination::CountedFile;
use crate::output::values::{bytes, count};
use crate::output::{
    BatchWriter, Destination, EXPORT_FILE_EXTENSIONS, OutputFormat, ResultRows, Screen, format_from_extension, row,
    sentences,
};

/// Writes the file and reports its contents.
pub fn export(global: &Global, args: &Export) -> Result<(), CliError> {
    let destination = Destination::of(&args.to, file_option())?;
    let format = match args.format {
        Some(format) => output_format(format),
        None => {
            let default = OutputFormat::Binary(FileFormat::Parquet);
            format_from_extension(&args.to, &destination, EXPORT_FILE_EXTENSIONS, default, "--format")?
        }
    };
    if matches!(format, OutputFormat::Binary(_) | OutputFormat::Stream) && destination.is_terminal() {
        return Err(CliError::Usage("binary output needs a file: give --to a file, or add --format csv"));
    }
    // A query may read only files.
    let store = if args.query.is_some() { store_if_any(global)? } else { store(global)? };
    let sql = match (&args.query, &args.table) {
        (Some(query), _) => query.clone(),
        (None, table) => {
            let table = table.as_deref().unwrap_or_default();
            // Fails with a list of the tables.
            store.snapshot(table)?;
            format!("SELECT * FROM cells.{}", quoted_name(table))
        }
    };
    let session = Session::open(&store, &SessionOptions::default())?;
    let file_format = if let OutputFormat::Binary(format) = format { format } else { FileFormat::Csv };
    let query = QueryFile { session: &session, sql: &sql, params: &[], format: file_format, name: destination.shown() };
    let out = destination.open()?;
    let written = match format {
        OutputFormat::Binary(_) => runtime()?.block_on(query.write(out)).map_err(CliError::from),
        OutputFormat::Stream => stream(&query, out),
        OutputFormat::Text(output) => text(&query, output, out),
    };
    warn_of_lost_windows(global, &session.opened());
    let (rows, size) = match written {
        Err(_) if destination.reader_is_gone() => return Err(CliError::closed_pipe()),
        Err(error) => return Err(located(error, args, &store)),
        Ok(written) => written,
    };
    tell(global, args, &destination, rows, size)
}

/// Writes rows as an Arrow IPC stream. Returns the number of rows and of bytes.
fn stream(query: &QueryFile<'_>, out: Box<dyn BlobWriter>) -> Result<(u64, u64), CliError> {
    let mut out = CountedFile::new(out);
    let rows = runtime()?.block_on(query.stream(&mut out))?;
    Ok((rows, out.finish()?))
}

/// Writes rows as text. Returns the number of rows and of bytes.
fn text(query: &QueryFile<'_>, output: Output, out: Box<dyn BlobWriter>) -> Result<(u64, u64), CliError> {
    let mut writer = BatchWriter::new(CountedFile::new(out), output, Screen::of_file(None));
    let runtime = runtime()?;
    let schema = runtime.block_on(query.session.sql(query.sql))?.schema().as_arrow().clone();
    writer.start(&schema)?;
    let mut failed = None;
    let done = runtime.block_on(query.each(|batch| {
        writer.write(batch).map(drop).map_err(|error| {
            let said = error.to_string();
            failed = Some(error);
            ArrowError::ExternalError(said.into())
        })
    }));
    // The error of the sink is the cause of the other.
    let rows = match (done, failed) {
        (Err(ExportError::Write { .. }), Some(error)) => return Err(error),
        (done, _) => done?,
    };
    let (out, _) = writer.finish()?;
    Ok((rows, out.finish()?))
}

/// An error of the query with the line of its text, if it has a place there.
fn located(error: CliError, args: &Export, store: &Store) -> CliError {
    let source = match error {
        CliError::Written(ExportError::Query { source, .. }) => source,
        CliError::Sql(source) => Box::new(source),
        error => return error,
    };
    match (&args.query, source.place()) {
        (Some(query), Some(at)) => {
            let suggestion = suggested_table(store, &source);
            CliError::Statement { text: query.clone(), at, source, suggestion }
        }
        _ => CliError::Sql(*source),
    }
}

fn tell(global: &Global, args: &Export, destination: &Destination, rows: u64, size: u64) -> Result<(), CliError> {
    let said = format!("wrote {} to {}, {}", count(rows, noun(args)), destination.shown(), bytes(size));
    if destination.is_stdout() {
        // Standard output holds the data.
        print_message(global, &said);
        return Ok(());
    }
    let mut out = sentences(global.output);
    match global.output {
        Output::Table => writeln!(out, "{said}")?,
        output => {
            let mut written = ResultRows::of(objects::WRITTEN);
            written.push(row![destination.shown(), rows, size]);
            written.write(output, &mut out)?;
        }
    }
    out.flush()?;
    Ok(())
}

fn noun(args: &Export) -> &'static str {
    if args.table.is_some() { "cell" } else { "row" }
}

fn output_format(format: ExportForm) -> OutputFormat {
    match format {
        ExportForm::Parquet => OutputFormat::Binary(FileFormat::Parquet),
        ExportForm::Csv => OutputFormat::Text(Output::Csv),
        ExportForm::Json => OutputFormat::Text(Output::Json),
        ExportForm::Arrow => OutputFormat::Binary(FileFormat::Arrow),
        ExportForm::BigtableParquet => OutputFormat::Binary(FileFormat::BigtableParquet),
        ExportForm::BigtableAvro => OutputFormat::Binary(FileFormat::BigtableAvro),
        ExportForm::CbtCsv => OutputFormat::Binary(FileFormat::CbtCsv),
    }
}
