//! Options of every command.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tidetable_source::Location;

use crate::args::parse::{AnywhereOrEmpty, Here};

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Folder or bucket of the store [default: `root` of tidetable.toml]
    #[arg(long, global = true, env = "TIDETABLE_ROOT", value_name = "DIR", value_parser = AnywhereOrEmpty)]
    pub root: Option<Location>,
    /// How results are written to standard output
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Output,
    /// How messages are written to standard error
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    pub log: Log,
    /// Show more: causes of errors, steps taken, all figures of a run
    #[arg(long, short, global = true)]
    pub verbose: bool,
    /// Show only errors and warnings: no progress, no notes, no summary of a run
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Work in this folder, as if the command was called there
    #[arg(short = 'C', global = true, value_name = "DIR", value_parser = Here("a folder to work in"))]
    pub folder: Option<PathBuf>,
    /// Whether `--output` was given.
    #[arg(skip)]
    pub output_given: bool,
}

/// How results are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// A table for people.
    #[default]
    Table,
    /// One JSON object a line.
    Json,
    /// CSV with a header.
    Csv,
    /// A table in Markdown.
    Markdown,
    /// A line for each value.
    Line,
    /// Parquet; only for the rows of `sql`.
    Parquet,
    /// Arrow IPC file; only for the rows of `sql`.
    Arrow,
    /// Arrow IPC stream, which a program reads from a pipe while the query runs; only for the rows of `sql`.
    Arrows,
    /// SARIF 2.1.0; only for the findings of `lint`.
    Sarif,
}

/// How messages are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Log {
    /// Sentences.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}
