//! The `tidetable` command: parses the command line, calls the libraries, prints the results.

mod activity;
mod allocator;
mod args;
mod commands;
#[cfg(target_arch = "x86_64")]
mod cpu;
mod diagnostics;
mod error;
mod features;
mod log;
mod objects;
mod output;
mod page_file;
mod place;
mod progress;
mod signals;
mod terminal;

use std::io::IsTerminal;
use std::process::ExitCode;

use chrono::SecondsFormat;
use clap::FromArgMatches;
use clap::parser::ValueSource;
use tidetable_layout::time::TIMESTAMP_RANGE;
use tidetable_source::panics::{catch, watch_panics};
use tracing_subscriber::EnvFilter;

use args::{Cli, Command, Global, Log, Output};
use diagnostics::{print_error_in, refuse_usage};
use error::CliError;
use terminal::hints;

/// Libraries of HTTP clients, whose debug logs contain the headers of requests, with credentials.
const CLIENTS: [&str; 8] =
    ["google_cloud_auth", "google_cloud_gax", "h2", "hyper", "hyper_util", "reqwest", "rustls", "tonic"];

/// Folders of a root that hold the files which errors name.
const FOLDERS: [&str; 6] = ["tables/", "exports/", "runs/", "rejected/", "locks/", "seen/"];

/// Runs the command line of the process.
pub fn main() -> ExitCode {
    #[cfg(target_arch = "x86_64")]
    if let Some(code) = cpu::refuse() {
        return code;
    }
    command_line()
}

/// Not inlined, so that no code of it runs before the CPU check.
#[inline(never)]
fn command_line() -> ExitCode {
    let cli = parse().unwrap_or_else(|error| refuse_usage(error));
    if matches!(cli.command, Command::Run(_) | Command::Retry(_) | Command::Replay(_)) {
        log::stamp_lines();
    }

    let is_server = matches!(cli.command, Command::Scheduler(_) | Command::Executor(_));
    if is_server {
        log::stamp_lines_of_server();
    }

    start_log(&cli.global, is_server);
    let log = cli.global.log;
    watch_panics(move |panic| log::print_message(log, false, &format!("warning: {panic}")));

    match catch(|| dispatch(&cli)).unwrap_or_else(|panicked| Err(panicked.into())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error @ CliError::NotDue) => ExitCode::from(error.exit_code()),
        Err(error) => {
            let code = error.exit_code();
            let root = root_to_name(&cli, &error);
            print_error_in(&cli.global, error, root.as_deref());
            ExitCode::from(code)
        }
    }
}

fn parse() -> Result<Cli, clap::Error> {
    let matches = args::command().try_get_matches()?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    let mut is_root_given = false;
    // Options may stand before the command and after it.
    let mut at = Some(&matches);
    while let Some(found) = at {
        cli.global.output_given |= found.value_source("output") == Some(ValueSource::CommandLine);
        is_root_given |= found.value_source("root") == Some(ValueSource::CommandLine);
        at = found.subcommand().map(|(_, inside)| inside);
    }

    hints::set_place(&place_words(&cli.global, is_root_given));
    Ok(cli)
}

/// The options of the command line that say where to work. A root of the environment is still there for the next command.
fn place_words(global: &Global, is_root_given: bool) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(folder) = &global.folder {
        words.extend(["-C".to_owned(), folder.display().to_string()]);
    }
    if let Some(root) = global.root.as_ref().filter(|root| is_root_given && !root.is_empty()) {
        words.extend(["--root".to_owned(), root.to_string()]);
    }
    words
}

/// The root to name beside an error, if that is about files in it and does not name it. Commands with two roots say which.
fn root_to_name(cli: &Cli, error: &CliError) -> Option<String> {
    if matches!(cli.command, Command::Backup(_) | Command::Restore(_) | Command::Copy(_) | Command::Inspect(_)) {
        return None;
    }
    let text = error.to_string();
    let is_of_files = matches!(error, CliError::Damaged { .. } | CliError::Unsound { .. }) || names_file_inside(&text);
    let root = is_of_files.then(|| commands::root_of(&cli.global))??;
    (!text.contains(&root)).then_some(root)
}

/// Whether a message names a file by its path inside a root.
fn names_file_inside(text: &str) -> bool {
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '('));
    words.into_iter().any(|word| FOLDERS.iter().any(|folder| word.starts_with(folder)))
}

fn dispatch(cli: &Cli) -> Result<(), CliError> {
    let global = &cli.global;
    refuse_clock(commands::clock())?;
    if let Some(folder) = &global.folder {
        let entered = std::env::set_current_dir(folder);
        entered.map_err(|source| CliError::Enter { path: folder.display().to_string(), source })?;
    }

    let is_file = matches!(global.output, Output::Parquet | Output::Arrow | Output::Arrows);
    if is_file && !matches!(cli.command, Command::Sql(_)) {
        return Err(CliError::Usage(output::FILES_OF_SQL));
    }
    let lists_findings = matches!(&cli.command, Command::Lint(args) if !args.rules);
    if global.output == Output::Sarif && !lists_findings {
        return Err(CliError::Usage(output::SARIF_OF_LINT));
    }

    // Commands that create a root, need none, or find out by themselves.
    let needs_root = !matches!(
        &cli.command,
        Command::Run(_)
            | Command::Plan(_)
            | Command::Sql(_)
            | Command::Check(args::Check { data: false, .. })
            | Command::New(_)
            | Command::Try(_)
            | Command::Compare(_)
            | Command::Advise(_)
            | Command::Schedule(_)
            | Command::Backup(_)
            | Command::Restore(_)
            | Command::Copy(_)
            | Command::Cache(_)
            | Command::Scheduler(_)
            | Command::Executor(_)
            | Command::Inspect(_)
            | Command::Schema(_)
            | Command::Lint(_)
            | Command::Completions(_)
            | Command::Complete(_)
            | Command::Man(_)
    );
    if needs_root {
        commands::named_root_is_there(global)?;
    }

    match &cli.command {
        Command::Run(args) => commands::run::run(global, args),
        Command::Plan(args) => commands::plan::plan(global, args),
        Command::Retry(args) => commands::run::retry::retry(global, args),
        Command::Status(args) => commands::reports::status::status(global, args),
        Command::Report(args) => commands::reports::overview::report(global, args),
        Command::History(args) => commands::reports::history::history(global, args),
        Command::Lineage(args) => commands::reports::lineage::lineage(global, args),
        Command::Rejects(args) => commands::reports::rejects::rejects(global, args),
        Command::Replay(args) => commands::reports::replay::replay(global, args),
        Command::Clean(args) => commands::maintenance::clean::clean(global, args),
        Command::Sql(args) => commands::sql::sql(global, args),
        Command::Read(args) => commands::read::read(global, args),
        Command::Export(args) => commands::export::export(global, args),
        Command::Serve(args) => commands::serve::serve(global, args),
        Command::Tables => commands::reports::tables::tables(global),
        Command::Describe(args) => commands::reports::describe::describe(global, args),
        Command::Inspect(args) => commands::reports::inspect::inspect(global, args),
        Command::Proto(args) => commands::proto::proto(global, args),
        Command::Push(args) => commands::bigtable::push(global, args),
        Command::Pull(args) => commands::bigtable::pull(global, args),
        Command::Diff(args) => commands::bigtable::diff(global, args),
        Command::Check(args) => commands::check::check(global, args),
        Command::Compare(args) => commands::advisor::compare::compare(global, args),
        Command::Advise(args) => commands::advisor::advise::advise(global, args),
        Command::Heatmap(args) => commands::advisor::heatmap::heatmap(global, args),
        Command::Lint(args) => commands::lint::lint(global, args),
        Command::New(args) => commands::new::new(global, args),
        Command::Try(args) => commands::new::first_look::try_files(global, args),
        Command::Schedule(args) => commands::schedule::schedule(global, args),
        Command::Schema(args) => commands::schema::schema(args),
        Command::Completions(args) => commands::completions::completions(args),
        Command::Complete(args) => commands::completions::complete(args),
        Command::Man(args) => commands::completions::man(args),
        Command::Delete(args) => commands::maintenance::delete::delete(global, args),
        Command::DropRows(args) => commands::maintenance::delete::drop_rows(global, args),
        Command::Drop(args) => commands::maintenance::drop::drop_name(global, args),
        Command::Compact(args) => commands::maintenance::compact::compact(global, args),
        Command::Scheduler(args) => commands::cluster::scheduler(global, args),
        Command::Executor(args) => commands::cluster::executor(global, args),
        Command::Repair(args) => commands::maintenance::repair::repair(global, args),
        Command::Vacuum(args) => commands::maintenance::vacuum::vacuum(global, args),
        Command::Backup(args) => commands::maintenance::backup::backup(global, args),
        Command::Restore(args) => commands::maintenance::backup::restore(global, args),
        Command::Cache(args) => commands::maintenance::cache::cache(global, args),
        Command::Copy(args) => commands::maintenance::copy::copy(global, args),
        Command::Doctor(args) => commands::maintenance::doctor::doctor(global, args),
        Command::Verify(args) => commands::maintenance::verify::verify(global, args),
    }
}

/// Refuses a clock before 1970 or after the year 9999, for which libraries panic.
fn refuse_clock(now: i64) -> Result<(), CliError> {
    if (0..=*TIMESTAMP_RANGE.end()).contains(&now) {
        return Ok(());
    }
    let side = if now < 0 { "a time before 1970" } else { "a time after the year 9999" };
    let now = chrono::DateTime::from_timestamp_micros(now).map(|now| now.to_rfc3339_opts(SecondsFormat::Secs, true));
    Err(CliError::Clock { now: now.unwrap_or_else(|| side.to_owned()) })
}

/// The log of a server: its executors come and go. That a job waits for one is said by its run, and that the answers of one
/// that is gone cannot be removed matters to nobody.
const SERVER_LOG: &str = "tidetable=info,ballista_scheduler::state::executor_manager=error,\
     ballista_scheduler::state::task_manager=error,warn";

/// Starts the log of libraries.
fn start_log(global: &Global, is_server: bool) {
    let level = match (global.verbose, is_server && !global.quiet) {
        (true, _) => "tidetable=debug,info",
        (false, true) => SERVER_LOG,
        (false, false) => "warn",
    };
    let asked = std::env::var("RUST_LOG").ok().filter(|asked| !asked.is_empty());
    let filter = EnvFilter::try_new(asked.as_deref().unwrap_or(level)).unwrap_or_else(|_| EnvFilter::new(level));
    // Their debug logs contain request headers with credentials.
    let filter = CLIENTS
        .iter()
        .filter_map(|client| format!("{client}=info").parse().ok())
        .fold(filter, EnvFilter::add_directive);
    // Internal errors of the log would panic on a closed standard error.
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(log::Lines).log_internal_errors(false);
    match global.log {
        Log::Json => builder.event_format(log::Objects).init(),
        Log::Text if !is_server => {
            builder.with_ansi(use_colour()).event_format(log::Warnings).init();
        }
        Log::Text => builder.with_ansi(use_colour()).without_time().init(),
    }
}

/// Colour only on a terminal, and not with NO_COLOR.
fn use_colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_before_1970_and_after_9999_are_refused() {
        assert!(refuse_clock(0).is_ok());
        for now in [-1, -86_400_000_000, i64::MIN, TIMESTAMP_RANGE.end() + 1, 9_000_000_000_000_000_000, i64::MAX] {
            let error = refuse_clock(now).unwrap_err();
            assert_eq!(error.exit_code(), 1);
            assert!(error.to_string().contains("set it"), "{error}");
        }
        assert!(refuse_clock(-1_000_000).unwrap_err().to_string().contains("1969-12-31T23:59:59Z"));
    }
}
