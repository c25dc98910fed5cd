//! Benchmark of a load, by stage: `load FOLDER [--memory SIZE] [--layout meter|metric]`.
//!
//! FOLDER is a directory of Parquet or CSV files, as written by the examples `readings` and `metrics` of the crate
//! testkit. The store is in a temporary directory beside it, removed at the end; `--keep FOLDER` keeps it there
//! instead. `RAYON_NUM_THREADS` sets the number of threads.

use std::io::{self, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tidetable_bench::{Bench, Done, Result, Shape, line};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const USAGE: &str = "usage: load FOLDER [--memory 384MiB] [--layout meter|metric] [--keep FOLDER]";

struct Args {
    folder: PathBuf,
    shape: Shape,
    memory: u64,
    keep: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let Some(args) = parse(std::env::args().skip(1)) else {
        writeln!(io::stderr(), "{USAGE}")?;
        return Ok(ExitCode::from(2));
    };

    // Not in the system's temporary directory, which may be in memory.
    let temporary = tempfile::tempdir_in(args.folder.parent().unwrap_or(Path::new(".")))?;
    let root = args.keep.as_deref().unwrap_or(temporary.path());

    let mut bench = Bench::new(args.shape, &args.folder, root)?;
    bench.memory = args.memory;
    let parquet = std::fs::read_dir(&args.folder)?
        .any(|entry| entry.is_ok_and(|entry| entry.path().extension().is_some_and(|ending| ending == "parquet")));
    let done = bench.load(&[if parquet { "*.parquet" } else { "*.csv" }])?;
    report(&done, &mut stdout())?;
    Ok(ExitCode::SUCCESS)
}

fn parse(mut args: impl Iterator<Item = String>) -> Option<Args> {
    let mut parsed = Args { folder: PathBuf::new(), shape: Shape::Meter, memory: 384 << 20, keep: None };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--memory" => parsed.memory = size(&args.next()?)?,
            "--layout" => parsed.shape = Shape::named(&args.next()?)?,
            "--keep" => parsed.keep = Some(args.next()?.into()),
            _ if arg.starts_with('-') || !parsed.folder.as_os_str().is_empty() => return None,
            _ => parsed.folder = std::path::absolute(arg).ok()?,
        }
    }
    (!parsed.folder.as_os_str().is_empty()).then_some(parsed)
}

/// Parses a size such as `512MiB` into bytes; a number without a unit is one of bytes.
fn size(text: &str) -> Option<u64> {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10), ("", 0)];
    let (number, shift) = units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)))?;
    number.trim().parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Writes counts with their rates in millions a second of the load, and times in seconds.
fn report(done: &Done, out: &mut impl Write) -> io::Result<()> {
    let Done { version, stats, load, commit } = done;
    let seconds = load.as_secs_f64();
    let rows = stats.rows_accepted as f64;
    let bytes_out = stats.bytes_out as f64;
    line(out, "rows", format!("{} ({:.2} M/s)", stats.rows_accepted, rows / seconds / 1e6))?;
    line(out, "cells", format!("{} ({:.2} M/s)", stats.cells, stats.cells as f64 / seconds / 1e6))?;
    line(out, "bytes in", format!("{} ({:.0} MB/s)", stats.bytes_in, stats.bytes_in as f64 / seconds / 1e6))?;
    line(out, "bytes out", stats.bytes_out)?;
    line(out, "bytes a row read", format!("{:.3}", bytes_out / rows))?;
    line(out, "bytes a cell", format!("{:.3}", bytes_out / stats.cells as f64))?;
    line(out, "SSTs", version.ssts().count())?;

    line(out, "seconds load", format!("{seconds:.3}"))?;
    // Summed over cores, so these may exceed the total.
    line(out, "  waiting for inputs", format!("{:.3}", stats.read.as_secs_f64()))?;
    line(out, "  parsing", format!("{:.3}", stats.parse.as_secs_f64()))?;
    line(out, "  sorting", format!("{:.3}", stats.sort.as_secs_f64()))?;
    line(out, "  encoding", format!("{:.3}", stats.encode.as_secs_f64()))?;
    line(out, "  writing", format!("{:.3}", stats.write.as_secs_f64()))?;
    line(out, "seconds commit", format!("{:.3}", commit.as_secs_f64()))?;
    line(
        out,
        "peak memory",
        peak_memory().map_or("unknown".to_owned(), |kib| format!("{:.0} MiB", kib as f64 / 1024.0)),
    )
}

/// Peak resident memory of this process in KiB, as Linux counts it; `None` elsewhere.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
