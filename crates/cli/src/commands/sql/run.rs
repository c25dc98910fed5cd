//! Runs SQL statements.

use std::future::Future;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use futures::StreamExt;
use tidetable_export::{FileFormat, QueryFile};
use tidetable_runner::job::nearest;
use tidetable_sql::{ExternalTables, Session, SessionOptions, SqlError, Statement};
use tidetable_store::Store;
use tidetable_store::storage::BlobWriter;
use tokio::runtime::Runtime;

use super::versions::versions;
use crate::args::{Output, Sql};
use crate::commands::sql::summarize;
use crate::error::CliError;
use crate::output::values::count;
use crate::output::{BatchWriter, Destination, Form, OF_ROWS, Screen, form_of};

/// Runs statements one by one. Each sees the current state of the store.
#[derive(Clone)]
pub(crate) struct Runner<'a> {
    pub(crate) store: &'a Store,
    pub(crate) args: &'a Sql,
    pub(crate) runtime: &'a Runtime,
    /// External tables declared by earlier statements.
    pub(crate) external: &'a ExternalTables,
    pub(crate) how: Showing,
}

/// Output options.
#[derive(Debug, Clone)]
pub(crate) struct Showing {
    pub(crate) output: Output,
    /// Whether the format was given, which overrides the file name.
    pub(crate) asked: bool,
    /// The output file.
    pub(crate) to: Option<PathBuf>,
    /// Most rows to show; `None`: the default, 0: all.
    pub(crate) max_rows: Option<u64>,
    /// Whether to report the time of each statement.
    pub(crate) timing: bool,
    /// Whether to report the number of rows: at a prompt.
    pub(crate) counts: bool,
}

impl Runner<'_> {
    /// Runs the statements of a script.
    pub(crate) fn run_all(&self, script: &str, statements: &[Statement<'_>]) -> Result<(), CliError> {
        for statement in statements {
            let clock = Instant::now();
            let rows = self.run(statement.text).map_err(|error| self.placed(error, script, statement))?;
            let took = format!("{:.3} seconds", clock.elapsed().as_secs_f64());
            // A closed standard error is ignored.
            let _ = match (rows.filter(|_| self.how.counts), self.how.timing) {
                (Some(rows), true) => writeln!(io::stderr(), "{}, {took}", count(rows, "row")),
                (Some(rows), false) => writeln!(io::stderr(), "{}", count(rows, "row")),
                (None, true) => writeln!(io::stderr(), "{took}"),
                (None, false) => Ok(()),
            };
        }
        Ok(())
    }

    /// Adds the position in the script and a similar name to an error.
    fn placed(&self, error: CliError, script: &str, statement: &Statement<'_>) -> CliError {
        let CliError::Sql(source) = error else { return error };
        let Some((line, column)) = source.place() else { return CliError::Sql(source) };
        // Positions count from the start of the statement.
        let (first, shift) = statement.at;
        let at = (first + line - 1, if line == 1 { shift + column - 1 } else { column });
        let unknown = source.unknown_name().filter(|unknown| unknown.is_table);
        let tables = unknown.as_ref().and_then(|_| self.store.tables().ok()).unwrap_or_default();
        let near = unknown.and_then(|unknown| nearest(&unknown.name, tables.iter().map(String::as_str)));
        CliError::Statement { text: script.to_owned(), at, source: Box::new(source), near }
    }

    /// A session over the current state of the store.
    pub(crate) fn session(&self, query: &str) -> Result<Session, CliError> {
        let versions = versions(self.store, self.args, query)?;
        let options = SessionOptions {
            versions,
            files: true,
            memory: self.args.memory,
            external: Some(self.external.clone()),
            ..SessionOptions::default()
        };
        Ok(Session::open(self.store, &options)?)
    }

    /// Runs a statement. Returns the number of rows, if it returns rows.
    fn run(&self, query: &str) -> Result<Option<u64>, CliError> {
        if let Some(of) = summarize::asked(query) {
            return self.summarize(of).map(Some);
        }
        let session = self.session(query)?;
        if self.runtime.block_on(session.declare(query))?.is_some() {
            return Ok(None);
        }
        let (to, form) = self.destination()?;
        let done = match form {
            Form::File(_) if to.is_terminal() => {
                return Err(CliError::Usage("binary output needs a file: add -O FILE, or redirect the output"));
            }
            Form::File(format) => self.write(&session, query, format, to.shown(), to.open()?),
            Form::Text(output) => {
                let mut writer = BatchWriter::new(to.open()?, output, self.screen(&to));
                self.stream(&session, query, &mut writer).and_then(|()| {
                    let (out, rows) = writer.finish()?;
                    out.finish()?;
                    Ok(rows)
                })
            }
        };
        if to.is_closed() { Err(CliError::closed_pipe()) } else { done.map(Some) }
    }

    /// The destination and format of rows.
    fn destination(&self) -> Result<(Destination, Form), CliError> {
        let asked = form(self.how.output);
        let Some(path) = &self.how.to else { return Ok((Destination::stdout(), asked)) };
        let destination = Destination::of(path, "-O")?;
        let form = if self.how.asked { asked } else { form_of(path, &destination, OF_ROWS, asked, "--output")? };
        Ok((destination, form))
    }

    fn screen(&self, to: &Destination) -> Screen {
        let limits = if to.is_stdout() { Screen::of_stdout } else { Screen::of_file };
        limits(self.how.max_rows)
    }

    /// Summarises a table or query, a row for each column.
    fn summarize(&self, of: &str) -> Result<u64, CliError> {
        let session = self.session(&summarize::source(of))?;
        let rows = self.cancellable(summarize::summary(&session, of))?;
        let (to, form) = self.destination()?;
        let Form::Text(output) = form else {
            return Err(CliError::Usage("SUMMARIZE gives text: write it as a table, csv or json"));
        };
        let mut out = to.open()?;
        rows.write(output, &mut out)?;
        out.finish()?;
        Ok(rows.len())
    }

    /// Runs a query until Ctrl-C; rows written so far stay.
    fn stream<W: Write>(&self, session: &Session, query: &str, writer: &mut BatchWriter<W>) -> Result<(), CliError> {
        let work = async {
            let mut rows = session.stream(query).await?;
            writer.start(&rows.schema())?;
            while let Some(batch) = rows.next().await {
                if !writer.write(&batch.map_err(SqlError::from)?)? {
                    break;
                }
            }
            Ok(())
        };
        self.cancellable(work)
    }

    /// Runs `work` until Ctrl-C.
    fn cancellable<T>(&self, work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
        self.runtime.block_on(async {
            tokio::select! {
                done = work => done,
                _ = tokio::signal::ctrl_c() => Err(CliError::Cancelled),
            }
        })
    }

    fn write(
        &self,
        session: &Session,
        query: &str,
        format: FileFormat,
        name: &str,
        blob: Box<dyn BlobWriter>,
    ) -> Result<u64, CliError> {
        let file = QueryFile { session, sql: query, params: &[], format, name };
        self.cancellable(async { Ok(file.write(blob).await?.0) })
    }
}

/// The file format for an output format.
pub(crate) fn form(output: Output) -> Form {
    match output {
        Output::Parquet => Form::File(FileFormat::Parquet),
        Output::Arrow => Form::File(FileFormat::Arrow),
        text => Form::Text(text),
    }
}
