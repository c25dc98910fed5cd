//! Writes generated samples of machines: `metrics FOLDER HOSTS INSTANTS`, a hundred metrics each, ten CSV files in
//! time order. Prints the number of rows and the sum of each metric.

use std::io::{self, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use chrono::NaiveDate;
use tidetable_testkit::Metrics;

fn main() -> io::Result<ExitCode> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (Some(folder), Some(hosts), Some(instants), Some(first)) = (
        args.first().map(PathBuf::from),
        args.get(1).and_then(|hosts| hosts.parse().ok()),
        args.get(2).and_then(|instants| instants.parse().ok()),
        NaiveDate::from_ymd_opt(2015, 3, 16),
    ) else {
        return Ok(ExitCode::from(2));
    };
    let metrics = Metrics { hosts, instants, first, seed: 1 };
    metrics.write_csv(&folder)?.report(&mut stdout())?;
    Ok(ExitCode::SUCCESS)
}
