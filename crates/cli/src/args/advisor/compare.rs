//! `tidetable compare`.

use std::path::PathBuf;

use clap::Args;
use tidetable_advisor::spread::parse_slice;
use tidetable_advisor::trial::Sample;
use tidetable_source::Location;

use crate::args::parse::{Anywhere, Here};

/// `tidetable compare`
#[derive(Debug, Args)]
#[command(after_help = "\
Reads the inputs of the job once, encodes them by every layout into a temporary folder (TMPDIR), and measures the result. \
Nothing is committed, and the store is not touched.

top share: before each slice of time, the row keys known so far are cut into 10 (or 100) ranges of equal count; the share of \
the slice's source rows in the fullest one. 0.100 is even, 1.000 is one range taking everything. hottest row: the greatest \
share of one row, which no split helps. travel: how far writes move through the keys, from -1 to 1.")]
pub struct Compare {
    /// Name of a job in jobs/, path of a job file, or files of CSV, JSON lines, Parquet, Arrow or Avro: their paths, a directory, or a pattern
    #[arg(required = true)]
    pub job: Vec<String>,
    /// Tables of the job, separated by commas, or a file of them: [tables.X] as in a job file, ending in .toml
    /// [default: all tables that are loaded from files]
    #[arg(long, value_name = "TABLES", value_delimiter = ',')]
    pub layouts: Vec<String>,
    /// File of queries: what each layout reads for them, and what it costs
    #[arg(long, value_name = "FILE", value_parser = Here("a file of queries"))]
    pub queries: Option<PathBuf>,
    /// File of prices, capacities and limits instead of those of this release
    #[arg(long, value_name = "FILE", value_parser = Here("a file of prices"))]
    pub prices: Option<PathBuf>,
    /// Only a part of the entities, as 1%: all rows of an entity or none. Numbers are then marked ~
    #[arg(long, value_name = "PERCENT", value_parser = parse_sample)]
    pub sample: Option<Sample>,
    /// Width of the slices of time at least: 15m, 1h, 1d [default: the narrowest that gives at most 720]
    #[arg(long, value_name = "WIDTH", value_parser = parse_slice)]
    pub slice: Option<i64>,
    /// Also write an HTML page: figures, heatmaps, queries and cost in one file that needs no network
    #[arg(long, value_name = "FILE", value_parser = Anywhere)]
    pub report: Option<Location>,
}

/// `1%` or `0.5%`: more than 0, less than 100.
pub(super) fn parse_sample(text: &str) -> Result<Sample, String> {
    let number = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    let fraction = number.map(|number| number / 100.0).filter(|fraction| *fraction > 0.0 && *fraction < 1.0);
    let sample = fraction.map(|fraction| Sample { fraction });
    sample.ok_or_else(|| "write a part of more than 0% and less than 100%, as in 1%".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_a_part() {
        assert_eq!(parse_sample("1%"), Ok(Sample { fraction: 0.01 }));
        assert_eq!(parse_sample("12.5%"), Ok(Sample { fraction: 0.125 }));
        for wrong in ["", "%", "1", "0%", "100%", "-1%", "nan%", "inf%", "0.01"] {
            assert!(parse_sample(wrong).is_err(), "{wrong}");
        }
    }
}
