//! `tidetable check`.

use clap::Args;

/// `tidetable check`
#[derive(Debug, Args)]
#[command(override_usage = "tidetable check [OPTIONS] <JOB>\n       tidetable check [OPTIONS] --all")]
pub struct Check {
    /// Name of a job in jobs/, or path of a job file
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub job: Option<String>,
    /// All jobs of the project
    #[arg(long)]
    pub all: bool,
    /// Evaluate the checks on published parts and on tables; exit code 3 if one fails. A line for each rule, with
    /// --verbose or --day for each part. A sample of the rows that break them is kept in runs.failing_rows
    #[arg(long)]
    pub data: bool,
    /// With --data: only this day, as 2018-01-31
    #[arg(long, requires = "data", value_name = "DAY")]
    pub day: Option<chrono::NaiveDate>,
}
