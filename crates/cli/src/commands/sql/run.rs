//! Runs SQL statements.

use std::future::Future;
use std::io::{self, Write};
use std::time::Instant;

use futures::StreamExt;
use tidetable_blobs::BlobWriter;
use tidetable_export::{ExportError, FileFormat, QueryFile};
use tidetable_source::Location;
use tidetable_sql::{ExternalTables, Session, SessionOptions, SqlError, Statement};
use tidetable_store::Store;
use tokio::runtime::Runtime;

use super::memory::MemoryWatch;
use super::suggest::suggested_table;
use super::versions::versions;
use crate::args::{Global, Output, Sql, file_option};
use crate::commands::root::{RootCheck, is_there};
use crate::commands::sql::{listing, summarize};
use crate::commands::{note_if_nothing_ran, project_of_store, warn_of_lost_windows};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::output::destination::CountedFile;
use crate::output::values::{bytes, count};
use crate::output::{
    BatchWriter, Destination, FILES_OF_SQL, HintStyle, OutputFormat, ROW_FILE_EXTENSIONS, ResultRows, Screen,
    format_from_extension, until_reader_is_gone,
};

/// Runs statements one by one. Each sees the current state of the store.
#[derive(Clone)]
pub(crate) struct StatementRunner<'a> {
    pub(crate) store: &'a Store,
    pub(crate) global: &'a Global,
    /// The check of the root, over before anything is shown.
    pub(crate) root: &'a RootCheck,
    pub(crate) args: &'a Sql,
    pub(crate) runtime: &'a Runtime,
    /// External tables declared by earlier statements.
    pub(crate) external: &'a ExternalTables,
    pub(crate) output_options: OutputOptions,
}

/// Where the rows of a statement are written, and how.
#[derive(Debug, Clone)]
pub(crate) struct OutputOptions {
    /// The format on standard output, and in a file if its extension does not select another.
    pub(crate) output: Output,
    /// Whether the format was given explicitly, which overrides the extension of the file.
    pub(crate) format_is_explicit: bool,
    /// The output file; `None` for standard output.
    pub(crate) to: Option<Location>,
    /// Maximum number of rows of a table to show: `None` for the default of the destination, 0 for all rows.
    pub(crate) max_rows: Option<u64>,
    /// Whether to print the time that each statement took.
    pub(crate) timing: bool,
    /// Whether to print the number of rows of each statement: at the prompt.
    pub(crate) print_row_count: bool,
    /// How notes name what shows the rest of a table.
    pub(crate) words: HintStyle,
}

impl StatementRunner<'_> {
    /// Runs the statements of a script.
    pub(crate) fn run_all(&self, script: &str, statements: &[Statement<'_>]) -> Result<(), CliError> {
        for statement in statements {
            let clock = Instant::now();
            let rows = self.run(statement.text).map_err(|error| self.locate_error(error, script, statement))?;
            let took = format!("{:.3} seconds", clock.elapsed().as_secs_f64());
            // A closed standard error is ignored.
            let _ = match (rows.filter(|_| self.output_options.print_row_count), self.output_options.timing) {
                (Some(rows), true) => writeln!(io::stderr(), "{}, {took}", count(rows, "row")),
                (Some(rows), false) => writeln!(io::stderr(), "{}", count(rows, "row")),
                (None, true) => writeln!(io::stderr(), "{took}"),
                (None, false) => Ok(()),
            };
        }
        Ok(())
    }

    /// Adds to an error of a query its line and column in the script, both 1-based, and the name of a table similar to
    /// an unknown one. Errors without a position, and those of other kinds, are returned as they are.
    fn locate_error(&self, error: CliError, script: &str, statement: &Statement<'_>) -> CliError {
        let CliError::Sql(source) = error else { return error };
        let Some((line, column)) = source.place() else { return CliError::Sql(source) };
        // Positions count from the start of the statement.
        let (first_line, first_column) = statement.at;
        let at = (first_line + line - 1, if line == 1 { first_column + column - 1 } else { column });
        let suggestion = suggested_table(self.store, &source);
        CliError::Statement { text: script.to_owned(), at, source: Box::new(source), suggestion }
    }

    /// A session over the current state of the store. A `--version` without a table is that of the only table that
    /// `query` reads.
    pub(crate) fn session(&self, query: &str) -> Result<Session, CliError> {
        let versions = versions(self.store, self.args, query)?;
        let options = SessionOptions {
            versions,
            files: true,
            memory: self.args.memory,
            external: Some(self.external.clone()),
            written_names: true,
            ..SessionOptions::default()
        };
        // In a bucket the session reads what it listed when it was opened: a list less.
        let is_far = self.store.blobs().capabilities().round_trips;
        let following = is_far.then(|| self.store.clone().following_own_commits());
        Ok(Session::open(following.as_ref().unwrap_or(self.store), &options)?)
    }

    /// Waits until the root is known to hold a store.
    pub(crate) fn root_is_there(&self) -> Result<(), CliError> {
        if self.root.is_missing() {
            return is_there(self.global, &project_of_store(self.global)?);
        }
        note_if_nothing_ran(self.global, self.root.finish())
    }

    /// The same, if `query` asks anything of the store: statements that read files, or nothing, need none.
    fn root_is_there_for(&self, session: &Session, query: &str) -> Result<(), CliError> {
        // The error of a statement that cannot be read tells more.
        if session.asks_store(query).unwrap_or(false) { self.root_is_there() } else { Ok(()) }
    }

    /// Runs a statement. Returns the number of rows, if it returns rows.
    fn run(&self, query: &str) -> Result<Option<u64>, CliError> {
        if let Some(of) = summarize::asked(query) {
            return self.summarize(of).map(Some);
        }

        if listing::is_asked(query) && matches!(self.destination()?.1, OutputFormat::Text(_)) {
            self.root_is_there()?;
            return self.show(&listing::tables(self.store, self.external)?).map(Some);
        }

        let session = self.session(query)?;
        let mut watch = MemoryWatch::start(self.args.memory)?;
        // `CREATE EXTERNAL TABLE` returns no rows; later statements see the table.
        let declared = self.cancellable(&mut watch, async { Ok(session.declare(query).await?) })?;
        if declared.is_some() {
            return Ok(None);
        }

        let (to, format) = self.destination()?;
        let done = match format {
            OutputFormat::Binary(_) | OutputFormat::Stream if to.is_terminal() => {
                return Err(CliError::Usage("binary output needs a file: add -O FILE, or redirect the output"));
            }
            OutputFormat::Binary(format) => {
                let file = QueryFile { session: &session, sql: query, params: &[], format, name: to.shown() };
                self.write(&file, &mut watch, to.open()?)
            }
            OutputFormat::Stream => {
                let format = FileFormat::Arrow;
                let file = QueryFile { session: &session, sql: query, params: &[], format, name: to.shown() };
                self.stream_arrow(&file, &mut watch, to.open()?)
            }
            OutputFormat::Text(output) => {
                let mut writer = BatchWriter::new(CountedFile::new(to.open()?), output, self.screen(&to));
                self.stream(&session, query, &mut watch, &mut writer).and_then(|()| {
                    let (out, rows) = writer.finish()?;
                    Ok((rows, out.finish()?))
                })
            }
        };
        warn_of_lost_windows(self.global, &session.opened());

        let (rows, size) = unless_reader_is_gone(&to, done)?;
        self.report_file(&to, rows, size);
        Ok(Some(rows))
    }

    /// Says what was written to a file; rows on standard output speak for themselves.
    fn report_file(&self, to: &Destination, rows: u64, size: u64) {
        if to.is_file() {
            print_message(self.global, &format!("wrote {} to {}, {}", count(rows, "row"), to.shown(), bytes(size)));
        }
    }

    /// The destination and format of rows.
    fn destination(&self) -> Result<(Destination, OutputFormat), CliError> {
        let default = output_format(self.output_options.output);
        let Some(to) = &self.output_options.to else { return Ok((Destination::stdout(), default)) };
        let destination = Destination::of(to, file_option())?;
        let format = match self.output_options.format_is_explicit {
            true => default,
            false => format_from_extension(to, &destination, ROW_FILE_EXTENSIONS, default, "--output")?,
        };
        Ok((destination, format))
    }

    /// Whether rows go to standard output, as they do without a file.
    fn is_to_stdout(&self) -> bool {
        self.output_options.to.as_ref().is_none_or(|to| to.to_string() == "-")
    }

    fn screen(&self, to: &Destination) -> Screen {
        let limits = if to.is_stdout() { Screen::of_stdout } else { Screen::of_file };
        Screen { words: self.output_options.words, ..limits(self.output_options.max_rows) }
    }

    /// Writes statistics of a table or query, one row for each of its columns. Returns the number of rows.
    fn summarize(&self, of: &str) -> Result<u64, CliError> {
        if !matches!(self.destination()?.1, OutputFormat::Text(_)) {
            return Err(CliError::Usage("SUMMARIZE gives text: write it as a table, csv or json"));
        }
        let source = summarize::source(of);
        let session = self.session(&source)?;
        self.root_is_there_for(&session, &source)?;
        let mut watch = MemoryWatch::start(self.args.memory)?;
        let summary = self.cancellable(&mut watch, summarize::summary(&session, of));
        warn_of_lost_windows(self.global, &session.opened());
        self.show(&summary?)
    }

    /// Writes a small result as text. Returns the number of its rows.
    fn show(&self, rows: &ResultRows) -> Result<u64, CliError> {
        let (to, format) = self.destination()?;
        let OutputFormat::Text(output) = format else { return Err(CliError::Usage(FILES_OF_SQL)) };
        let done = to.open().and_then(|out| {
            let mut out = CountedFile::new(out);
            rows.write(output, &mut out)?;
            Ok(out.finish()?)
        });
        let size = unless_reader_is_gone(&to, done)?;
        self.report_file(&to, rows.len(), size);
        Ok(rows.len())
    }

    /// Streams the rows of a query to `writer`; Ctrl-C returns [`CliError::Cancelled`]. A stream keeps what was written.
    /// A regular file appears only after `finish`, so it is left unchanged.
    fn stream<W: Write>(
        &self,
        session: &Session,
        query: &str,
        watch: &mut MemoryWatch,
        writer: &mut BatchWriter<W>,
    ) -> Result<(), CliError> {
        self.cancellable(watch, async {
            let rows = session.stream(query).await;
            self.root_is_there_for(session, query)?;
            let mut rows = rows?;
            writer.start(&rows.schema())?;
            while let Some(batch) = rows.next().await {
                // `false`: the row limit is reached.
                if !writer.write(&batch.map_err(SqlError::from)?)? {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Runs `work`, a part of a statement, until Ctrl-C, which returns [`CliError::Cancelled`], or until the statement that is watched
    /// holds more memory than `--memory` allows, or until the reader of its rows has gone.
    fn cancellable<T>(
        &self,
        watch: &mut MemoryWatch,
        work: impl Future<Output = Result<T, CliError>>,
    ) -> Result<T, CliError> {
        self.runtime.block_on(async {
            tokio::select! {
                done = work => done,
                exceeded = watch.exceeded() => Err(exceeded),
                () = until_reader_is_gone(), if self.is_to_stdout() => Err(CliError::closed_pipe()),
                _ = tokio::signal::ctrl_c() => Err(CliError::Cancelled),
            }
        })
    }

    /// Writes the rows of a query in a binary format. Returns the number of rows and of bytes.
    fn write(
        &self,
        file: &QueryFile<'_>,
        watch: &mut MemoryWatch,
        blob: Box<dyn BlobWriter>,
    ) -> Result<(u64, u64), CliError> {
        self.root_is_there_for(file.session, file.sql)?;
        self.cancellable(watch, async { file.write(blob).await.map_err(of_statement) })
    }

    /// Writes the rows of a query as an Arrow IPC stream, each batch as soon as it is there. Returns the number of rows and
    /// of bytes.
    fn stream_arrow(
        &self,
        file: &QueryFile<'_>,
        watch: &mut MemoryWatch,
        blob: Box<dyn BlobWriter>,
    ) -> Result<(u64, u64), CliError> {
        self.root_is_there_for(file.session, file.sql)?;
        let mut out = CountedFile::new(blob);
        let rows = self.cancellable(watch, async { file.stream(&mut out).await.map_err(of_statement) })?;
        Ok((rows, out.finish()?))
    }
}

/// An error of the query is that of the statement, which is shown with its line.
fn of_statement(error: ExportError) -> CliError {
    match error {
        ExportError::Query { source, .. } => CliError::Sql(*source),
        error => CliError::Written(error),
    }
}

/// The error of a closed pipe if the reader of `to` has gone, which is no failure; else `done`. Errors of the store do
/// not tell whether a pipe was closed, but the destination does.
fn unless_reader_is_gone<T>(to: &Destination, done: Result<T, CliError>) -> Result<T, CliError> {
    if to.reader_is_gone() { Err(CliError::closed_pipe()) } else { done }
}

/// The output format for `--output`.
pub(crate) fn output_format(output: Output) -> OutputFormat {
    match output {
        Output::Parquet => OutputFormat::Binary(FileFormat::Parquet),
        Output::Arrow => OutputFormat::Binary(FileFormat::Arrow),
        Output::Arrows => OutputFormat::Stream,
        text => OutputFormat::Text(text),
    }
}
