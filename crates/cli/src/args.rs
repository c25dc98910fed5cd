//! The command line.

pub(crate) mod advisor;
pub(crate) mod bigtable;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod export;
pub(crate) mod global;
pub(crate) mod help;
pub(crate) mod lint;
pub(crate) mod maintenance;
pub(crate) mod new;
pub(crate) mod parse;
pub(crate) mod read;
pub(crate) mod reports;
pub(crate) mod run;
pub(crate) mod schedule;
pub(crate) mod schema;
pub(crate) mod sql;

use clap::{Parser, Subcommand};

pub use advisor::{Advise, Compare, Heatmap, HeatmapMetric};
#[cfg(feature = "bigtable")]
pub use bigtable::Service;
pub use bigtable::{Diff, Pull, Push, Serve};
pub use check::Check;
pub use completions::{Complete, Completions, Man, Shell};
pub use export::{Export, ExportForm};
pub use global::{Global, Log, Output};
pub use help::command;
pub use lint::{Deny, Lint};
pub use maintenance::{
    Backup, Cache, Clean, Compact, Copy, Delete, Deleting, Doctor, Drop, DropRows, Executor, Repair, Restore,
    Scheduler, Vacuum, Verify,
};
pub use new::{New, Try};
pub use parse::{Column, Day, file_option, selected_of};
pub use read::Read;
pub use reports::{Describe, History, Inspect, Lineage, Proto, Rejects, Replay, Report, Since, Status};
pub use run::{DEFAULT_MEMORY, OnlyDays, Plan, Retry, Run, RunDays, RunHow};
pub use schedule::{Format, Schedule};
pub use schema::{File, Schema};
pub use sql::Sql;

use crate::features::VERSION;

/// Time series in Bigtable's shape: loaded from files of many formats, kept in sorted files, read with SQL.
#[derive(Debug, Parser)]
#[command(name = "tidetable", version = VERSION.as_str(), propagate_version = true, after_help = EXIT_CODES)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
    0  done
    1  failed; earlier commits are kept, run again
    2  wrong use, or a mistake in the job file
    3  checks failed: the parts they check were not published, the rest was; or lint found what --deny denies
    4  partial: some days could not be published, or windows not rebuilt; the others were
   75  another run of the job is active, or its lease was lost
  130  interrupted (Ctrl-C); 143 by SIGTERM";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a job: load what is new, publish the days that changed
    Run(Run),
    /// Show what a run of a job would do, and why
    Plan(Plan),
    /// Retry what a run left over: days it could not publish, windows it owes, or all of an unfinished run
    Retry(Retry),
    /// Show the status of jobs: last runs, age of their days, gaps, failed days, rejected rows
    Status(Status),
    /// Show a job at a glance: days, runs, checks, lineage; also as a page
    Report(Report),
    /// List runs, newest first
    History(History),
    /// Show what tables and published days were made from, and what an input went into
    Lineage(Lineage),
    /// Show the rows that were rejected and not loaded since
    Rejects(Rejects),
    /// Read the inputs of a run's rejected rows again, after they or the job were fixed
    Replay(Replay),
    /// Remove old records of runs, and unreferenced files; a dry run unless --yes is given
    Clean(Clean),
    /// Query tables and exports with SQL
    #[command(disable_version_flag = true)]
    Sql(Sql),
    /// Read rows of a table, cell by cell
    Read(Read),
    /// Write the cells of a table, or the rows of a query, into a file
    Export(Export),
    /// Answer clients of Bigtable and PostgreSQL, read-only
    Serve(Serve),
    /// List the tables and exports of the store
    Tables,
    /// Show a table's layout, windows, inputs and files
    Describe(Describe),
    /// Show what is inside an SST
    Inspect(Inspect),
    /// Print a .proto that reads the protobuf cells of a table
    Proto(Proto),
    /// Push a table into Bigtable: all of it, or what changed since the last push
    Push(Push),
    /// Pull rows of Bigtable into files that a job loads
    Pull(Pull),
    /// Compare a table with one in Bigtable, cell by cell
    #[command(disable_version_flag = true)]
    Diff(Diff),
    /// Check a job file, its SQL and its layouts
    Check(Check),
    /// Measure the layouts of a job side by side: rows, cells, bytes, and how writes spread; changes nothing
    Compare(Compare),
    /// Propose layouts for a workload: candidates generated, measured, and ranked by what they cost
    Advise(Advise),
    /// Show where in a table's keys its writes went, by time, and the patterns in it
    Heatmap(Heatmap),
    /// Check the tables of a job against the rules of schema design
    Lint(Lint),
    /// Propose a job for data files: columns, a layout with reasons, an export
    New(New),
    /// Try data files: load them into a store of their own, show rows, answers and a page, and forget them
    Try(Try),
    /// Print the jobs' schedules for cron or systemd, or what is due
    Schedule(Schedule),
    /// Print the JSON Schema of job files
    Schema(Schema),
    /// Print the script that completes commands, jobs and tables
    Completions(Completions),
    /// Print completions of the last word of a line
    #[command(hide = true)]
    Complete(Complete),
    /// Print the manual page, or write those of all commands
    Man(Man),
    /// Delete a row of a table, or cells of it
    Delete(Delete),
    /// Delete all rows of a table whose key begins with a prefix
    DropRows(DropRows),
    /// Remove a table or export that no job declares; all its versions and files go
    Drop(Drop),
    /// Merge the files of each window of a table, and remove deleted and expired cells
    Compact(Compact),
    /// Distribute the work of runs to executors; listens until it is stopped
    Scheduler(Scheduler),
    /// Do the work of runs that a scheduler distributes; goes on until it is stopped
    Executor(Executor),
    /// Remove damaged SSTs from a table, so that inputs are loaded again; a dry run without --yes or --drop
    Repair(Repair),
    /// Remove old versions and leftovers of killed runs; a dry run unless --yes is given
    Vacuum(Vacuum),
    /// Verify every byte of tables or exports
    Verify(Verify),
    /// Copy the store into a folder of backups, verified, while jobs run; copies only what is new
    Backup(Backup),
    /// Restore a backup into a new root
    Restore(Restore),
    /// Copy a store, with its versions, between folders and buckets; copies only what is new
    Copy(Copy),
    /// Show the cache of a root in a bucket, or empty it
    Cache(Cache),
    /// Find damaged records, lists and manifests, and move them to quarantine with --fix
    Doctor(Doctor),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }

    /// All arguments of `command` and of its subcommands, each after the words that lead to it.
    fn arguments(command: &clap::Command, words: &str, found: &mut Vec<(String, clap::Arg)>) {
        for argument in command.get_arguments() {
            found.push((format!("{words} {argument}"), argument.clone()));
        }
        for sub in command.get_subcommands() {
            arguments(sub, &format!("{words} {}", sub.get_name()), found);
        }
    }

    #[test]
    fn every_argument_that_is_a_place_refuses_a_malformed_url() {
        // Names of inputs, as lists and records of the store have them, and inputs of `new`, `advise` and `try`, which discovery refuses.
        const OF_INPUTS: [&str; 7] = [
            "--without <FILE>",
            "--input <FILE>",
            "rejects --file <FILE>",
            "new --from <FILE>",
            "advise <FROM>",
            "try <FILE>",
            "reread <FILE>",
        ];

        let mut found = Vec::new();
        let mut whole = command();
        whole.build();
        arguments(&whole, "", &mut found);
        let mut places = 0;

        for (words, argument) in found {
            let names = argument.get_value_names().unwrap_or_default();
            let is_place = names.iter().any(|name| ["FILE", "DIR", "FOLDER", "FROM", "TO"].contains(&name.as_str()));
            if !is_place || OF_INPUTS.iter().any(|of| words.contains(of)) {
                continue;
            }

            let parser = argument.get_value_parser().clone();
            let alone = clap::Command::new("alone").arg(clap::Arg::new("place").value_parser(parser));
            let refused = alone.try_get_matches_from(["alone", "s3:/plant/x"]);
            assert!(refused.is_err_and(|error| error.to_string().contains("s3://plant/x")), "{words}");
            places += 1;
        }
        assert!(places > 20, "{places}");
    }
}
