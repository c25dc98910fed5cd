//! Writes generated samples of machines: `metrics FOLDER HOSTS INSTANTS [--seed 1] [--ordered]`, a hundred metrics each,
//! ten CSV files in order of arrival. Prints the counts of rows and the sums of each metric.

use std::io::{self, Write, stdout};
use std::path::Path;
use std::process::ExitCode;

use chrono::NaiveDate;
use tidetable_testkit::{Args, Metrics};

const USAGE: &str = "usage: metrics FOLDER HOSTS INSTANTS [--seed 1] [--ordered]";

fn main() -> io::Result<ExitCode> {
    let Some(args) = Args::parse(std::env::args().skip(1), &[]) else { return usage() };
    let (Some(hosts), Some(instants), Some(first)) =
        (args.number(1), args.number(2), NaiveDate::from_ymd_opt(2015, 3, 16))
    else {
        return usage();
    };
    let metrics = Metrics { hosts, instants, first, seed: args.seed, arrival: args.arrival };
    metrics.write_csv(Path::new(&args.words[0]))?.report(&mut stdout())?;
    Ok(ExitCode::SUCCESS)
}

fn usage() -> io::Result<ExitCode> {
    writeln!(io::stderr(), "{USAGE}")?;
    Ok(ExitCode::from(2))
}
