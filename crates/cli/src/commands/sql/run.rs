//! Running statements.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Instant;

use futures::StreamExt;
use tidetable_export::{FileFormat, QueryFile};
use tidetable_sql::{ExternalTables, Session, SessionOptions, SqlError, Statement};
use tidetable_store::{BlobWriter, Blobs, LocalBlobs, Store};
use tokio::runtime::Runtime;

use super::versions;
use crate::args::{Output, Sql};
use crate::error::CliError;
use crate::output::{BatchWriter, stdout};

/// Runs statements one by one. Each sees the store as it is when it begins.
pub(super) struct Runner<'a> {
    pub(super) store: &'a Store,
    pub(super) args: &'a Sql,
    pub(super) output: Output,
    pub(super) runtime: &'a Runtime,
    pub(super) timing: bool,
    /// Tables over files, which statements before the present one have declared.
    pub(super) external: &'a ExternalTables,
}

impl Runner<'_> {
    /// Runs the statements of a script.
    pub(super) fn run_all(&self, script: &str, statements: &[Statement<'_>]) -> Result<(), CliError> {
        for statement in statements {
            let clock = Instant::now();
            self.run(statement.text).map_err(|error| placed(error, script, statement))?;
            if self.timing {
                let _ = writeln!(io::stderr(), "{:.3} seconds", clock.elapsed().as_secs_f64());
            }
        }
        Ok(())
    }

    /// A session over the store as it is now.
    pub(super) fn session(&self, query: &str) -> Result<Session, CliError> {
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

    fn run(&self, query: &str) -> Result<(), CliError> {
        let session = self.session(query)?;
        if self.runtime.block_on(session.declare(query))?.is_some() {
            return Ok(());
        }
        let Some(path) = &self.args.to else { return self.show(&session, query) };
        let output = match (self.output, path.extension().and_then(|ending| ending.to_str())) {
            (Output::Table, Some("parquet")) => Output::Parquet,
            (Output::Table, Some("arrow" | "ipc" | "feather")) => Output::Arrow,
            (Output::Table, Some("csv")) => Output::Csv,
            (Output::Table, Some("json" | "jsonl" | "ndjson")) => Output::Json,
            (asked, _) => asked,
        };
        let blob = replacer(path)?;
        match form(output) {
            Some(format) => self.write(&session, query, format, &path.display().to_string(), blob),
            None => {
                let mut writer = BatchWriter::new(blob, output);
                self.stream(&session, query, &mut writer)?;
                Ok(writer.into_inner()?.finish()?)
            }
        }
    }

    /// Writes the rows to standard output.
    fn show(&self, session: &Session, query: &str) -> Result<(), CliError> {
        if let Some(format) = form(self.output) {
            if io::stdout().is_terminal() {
                return Err(CliError::Usage("that is no text for a terminal: add -O FILE, or redirect the output"));
            }
            return self.write(session, query, format, "standard output", Box::new(ToStdout));
        }
        let mut writer = BatchWriter::new(stdout(), self.output);
        self.stream(session, query, &mut writer)?;
        writer.finish()
    }

    /// Ctrl-C ends the query; what was written of it before stays.
    fn stream<W: Write>(&self, session: &Session, query: &str, writer: &mut BatchWriter<W>) -> Result<(), CliError> {
        let work = async {
            let mut rows = session.stream(query).await?;
            writer.start(&rows.schema())?;
            while let Some(batch) = rows.next().await {
                writer.write(&batch.map_err(SqlError::from)?)?;
            }
            Ok(())
        };
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
    ) -> Result<(), CliError> {
        let file = QueryFile { session, sql: query, params: &[], format, name };
        self.runtime.block_on(async {
            tokio::select! {
                done = file.write(blob) => Ok(done.map(drop)?),
                _ = tokio::signal::ctrl_c() => Err(CliError::Cancelled),
            }
        })
    }
}

/// An error of a statement, with its place in the script.
pub(super) fn placed(error: CliError, script: &str, statement: &Statement<'_>) -> CliError {
    let CliError::Sql(source) = error else { return error };
    let Some((line, column)) = source.place() else { return CliError::Sql(source) };
    // Places are counted from the beginning of the statement.
    let (first, shift) = statement.at;
    let at = (first + line - 1, if line == 1 { shift + column - 1 } else { column });
    CliError::Statement { text: script.to_owned(), at, source: Box::new(source) }
}

/// A file that takes the place of the one at `path` when it is finished.
fn replacer(path: &Path) -> Result<Box<dyn BlobWriter>, CliError> {
    let failed = |source| CliError::File { path: path.display().to_string(), source };
    let whole = std::path::absolute(path).map_err(failed)?;
    let (folder, name) = (whole.parent(), whole.file_name().and_then(|name| name.to_str()));
    let Some((folder, name)) = folder.filter(|folder| folder.is_dir()).zip(name) else {
        return Err(CliError::Usage("the folder of -O is not there: make it first"));
    };
    Ok(LocalBlobs::new(folder.to_owned()).replacer(name)?)
}

fn form(output: Output) -> Option<FileFormat> {
    match output {
        Output::Parquet => Some(FileFormat::Parquet),
        Output::Arrow => Some(FileFormat::Arrow),
        Output::Table | Output::Json | Output::Csv => None,
    }
}

/// Standard output as a file.
struct ToStdout;

impl Write for ToStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stdout().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

impl BlobWriter for ToStdout {
    fn finish(self: Box<Self>) -> tidetable_store::Result<()> {
        let failed =
            |source| tidetable_store::StoreError::Io { action: "write", path: "standard output".to_owned(), source };
        io::stdout().flush().map_err(failed)
    }
}
