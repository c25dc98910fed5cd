//! `tidetable lint`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::args::parse::Here;

/// `tidetable lint`
#[derive(Debug, Args)]
#[command(override_usage = "tidetable lint [OPTIONS] <JOB>\n       tidetable lint --rules")]
pub struct Lint {
    /// Name of a job in jobs/, or path of a job file
    #[arg(required_unless_present = "rules", conflicts_with = "rules")]
    pub job: Option<String>,
    /// Also read the rows of its sources, for the rules that need them
    #[arg(long)]
    pub data: bool,
    /// With --data: queries that will be asked, for the rules that need them
    #[arg(long, requires = "data", value_name = "FILE", value_parser = Here("a file of queries"))]
    pub queries: Option<PathBuf>,
    /// File of prices, capacities and limits instead of those of this release
    #[arg(long, value_name = "FILE", value_parser = Here("a file of prices"))]
    pub prices: Option<PathBuf>,
    /// Exit with 3 if a finding is at least this severe
    #[arg(long, value_enum, value_name = "SEVERITY")]
    pub deny: Option<Deny>,
    /// List the rules
    #[arg(long)]
    pub rules: bool,
}

/// The least severity that `--deny` does not accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Deny {
    /// Warnings and errors.
    Warn,
    /// Errors.
    Error,
}
