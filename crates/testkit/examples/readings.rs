//! Writes generated readings: `readings FOLDER METERS DAYS`, 96 per meter and day, one CSV file per day. Prints their
//! number and sum.

use std::io::{self, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use chrono::NaiveDate;
use tidetable_testkit::Readings;

fn main() -> io::Result<ExitCode> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (Some(folder), Some(meters), Some(days), Some(first)) = (
        args.first().map(PathBuf::from),
        args.get(1).and_then(|meters| meters.parse().ok()),
        args.get(2).and_then(|days| days.parse().ok()),
        NaiveDate::from_ymd_opt(2017, 7, 26),
    ) else {
        return Ok(ExitCode::from(2));
    };
    let readings = Readings { meters, per_day: 96, first, days, seed: 1 };
    readings.write_csv(&folder)?.report(&mut stdout())?;
    Ok(ExitCode::SUCCESS)
}
