//! `tidetable lint`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tidetable_advisor::lint::{RULES, Rule};

use crate::args::parse::Here;

/// `tidetable lint`
#[derive(Debug, Args)]
#[command(
    override_usage = "tidetable lint [OPTIONS] <JOB>\n       tidetable lint --rules\n       tidetable lint --explain <RULE>"
)]
pub struct Lint {
    /// Name of a job in jobs/, or path of a job file
    #[arg(required_unless_present_any = ["rules", "explain"], conflicts_with_all = ["rules", "explain"])]
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
    /// Say what a rule finds and why, as K1
    #[arg(long, value_name = "RULE", conflicts_with = "rules", value_parser = parse_rule)]
    pub explain: Option<&'static Rule>,
}

/// A rule by its id, in letters of either case.
fn parse_rule(id: &str) -> Result<&'static Rule, String> {
    let rule = RULES.iter().copied().find(|rule| rule.id.eq_ignore_ascii_case(id));
    rule.ok_or_else(|| "there is no such rule; `tidetable lint --rules` lists them".to_owned())
}

/// The least severity that `--deny` does not accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Deny {
    /// Warnings and errors.
    Warn,
    /// Errors.
    Error,
}
