//! The `tidetable` command: reads the command line, calls the libraries, shows what they return.

mod args;
mod commands;
mod error;
mod output;
mod progress;
mod signals;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use tidetable_runner::JobError;
use tracing_subscriber::EnvFilter;

use args::{Cli, Command, Global, Log, Output};
use error::CliError;

/// Runs the command line of the process.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    start_log(&cli.global);
    match dispatch(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error @ CliError::NotDue) => ExitCode::from(error.exit_code()),
        Err(error) => {
            let code = error.exit_code();
            tell(&cli.global, error);
            ExitCode::from(code)
        }
    }
}

fn dispatch(cli: &Cli) -> Result<(), CliError> {
    let global = &cli.global;
    let is_file = matches!(global.output, Output::Parquet | Output::Arrow);
    if is_file && !matches!(cli.command, Command::Sql(_)) {
        return Err(CliError::Usage(output::FILES_OF_SQL));
    }
    match &cli.command {
        Command::Run(args) => commands::run::run(global, args),
        Command::Plan(args) => commands::plan::plan(global, args),
        Command::Retry(args) => commands::run::retry(global, args),
        Command::Status(args) => commands::status::status(global, args),
        Command::History(args) => commands::history::history(global, args),
        Command::Lineage(args) => commands::lineage::lineage(global, args),
        Command::Rejects(args) => commands::rejects::rejects(global, args),
        Command::Replay(args) => commands::replay::replay(global, args),
        Command::Clean(args) => commands::clean::clean(global, args),
        Command::Sql(args) => commands::sql::sql(global, args),
        Command::Read(args) => commands::read::read(global, args),
        Command::Export(args) => commands::export::export(global, args),
        Command::Tables => commands::tables::tables(global),
        Command::Describe(args) => commands::describe::describe(global, args),
        Command::Inspect(args) => commands::inspect::inspect(global, args),
        Command::Proto(args) => commands::proto::proto(global, args),
        Command::Check(args) => commands::check::check(global, args),
        Command::New(args) => commands::new::new(global, args),
        Command::Schedule(args) => commands::schedule::schedule(global, args),
        Command::Schema(args) => commands::schema::schema(args),
        Command::Completions(args) => commands::completions::completions(args),
        Command::Complete(args) => commands::completions::complete(args),
        Command::Man(args) => commands::completions::man(args),
        Command::Delete(args) => commands::delete::delete(global, args),
        Command::DropRows(args) => commands::delete::drop_rows(global, args),
        Command::Compact(args) => commands::compact::compact(global, args),
        Command::Repair(args) => commands::repair::repair(global, args),
        Command::Vacuum(args) => commands::vacuum::vacuum(global, args),
        Command::Verify(args) => commands::verify::verify(global, args),
    }
}

fn start_log(global: &Global) {
    let level = if global.verbose { "tidetable=debug,info" } else { "warn" };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match global.log {
        Log::Json => builder.json().init(),
        Log::Text => builder.with_ansi(use_colour()).without_time().init(),
    }
}

/// Colour only on a terminal, and not where NO_COLOR asks for none.
fn use_colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Tells of an error on standard error. If even that is closed there is nobody to tell.
fn tell(global: &Global, error: CliError) {
    let text = match global.log {
        Log::Json => objects(&error),
        Log::Text => render(error, global.verbose),
    };
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Tells a sentence on standard error.
fn tell_line(global: &Global, text: &str) {
    let text = match global.log {
        Log::Json => serde_json::json!({ "level": "info", "message": text }).to_string(),
        Log::Text => text.to_owned(),
    };
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// An error as JSON, one object a line: of a job file, one for each mistake.
fn objects(error: &CliError) -> String {
    let CliError::Job(JobError::File(file)) = error else {
        return format!("{}\n", serde_json::json!({ "level": "error", "message": error.to_string() }));
    };
    let mistakes = file.problems().iter().map(|problem| {
        let (line, column) = problem.line_column(file.text());
        let object = serde_json::json!({
            "level": "error",
            "message": problem.to_string(),
            "help": problem.advice(),
            "file": file.path().display().to_string(),
            "line": line,
            "column": column,
        });
        format!("{object}\n")
    });
    mistakes.collect()
}

fn render(error: CliError, verbose: bool) -> String {
    if matches!(error, CliError::Job(_) | CliError::Project(_)) {
        return format!("{:?}", miette::Report::new(error));
    }
    let mut text = format!("error: {error}\n");
    let mut cause = std::error::Error::source(&error);
    while let Some(source) = cause.filter(|_| verbose) {
        text.push_str(&format!("  caused by: {source}\n"));
        cause = source.source();
    }
    text
}
