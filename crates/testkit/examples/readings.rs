//! Writes generated readings: `readings FOLDER METERS DAYS [--per-day 96] [--seed 1] [--ordered]`, one CSV file per day
//! of arrival. Prints their counts and sums.

use std::io::{self, Write, stdout};
use std::path::Path;
use std::process::ExitCode;

use chrono::NaiveDate;
use tidetable_testkit::{Args, Readings};

const USAGE: &str = "usage: readings FOLDER METERS DAYS [--per-day 96] [--seed 1] [--ordered]";

fn main() -> io::Result<ExitCode> {
    let Some(args) = Args::parse(std::env::args().skip(1), &["--per-day"]) else { return usage() };
    let per_day = args.numbers.get("--per-day").copied().unwrap_or(96);
    let (Some(meters), Some(days), Some(first), Some(0)) =
        (args.number(1), args.number(2), NaiveDate::from_ymd_opt(2017, 7, 26), 1440u32.checked_rem(per_day))
    else {
        return usage();
    };
    let readings = Readings { meters, per_day, first, days, seed: args.seed, arrival: args.arrival };
    readings.write_csv(Path::new(&args.words[0]))?.report(&mut stdout())?;
    Ok(ExitCode::SUCCESS)
}

fn usage() -> io::Result<ExitCode> {
    writeln!(io::stderr(), "{USAGE}")?;
    Ok(ExitCode::from(2))
}
