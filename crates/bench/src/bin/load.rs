//! Benchmark of a load, by stage: `load FOLDER [--memory SIZE] [--layout meter|metric]`.
//!
//! FOLDER is a directory of Parquet or CSV files, as written by the examples `readings` and `metrics` of the crate
//! testkit. The store is in a temporary directory beside it, removed at the end; `--keep FOLDER` keeps it there
//! instead. `RAYON_NUM_THREADS` sets the number of threads.

use std::io::{self, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use tidetable_bench::{Bench, Done, Result, Shape};

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

/// Parses a size such as `512MiB` into bytes.
fn size(text: &str) -> Option<u64> {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10), ("", 0)];
    let (number, shift) = units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)))?;
    number.trim().parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn report(done: &Done, out: &mut impl Write) -> io::Result<()> {
    let Done { version, stats, load, commit } = done;
    let (wall, seconds) = (load.as_secs_f64(), Duration::as_secs_f64);
    let a_second = |count: u64| count as f64 / wall / 1e6;
    let mut line = |what: &str, value: String| writeln!(out, "{what:<20} {value}");
    line("rows", format!("{} ({:.2} M/s)", stats.rows_accepted, a_second(stats.rows_accepted)))?;
    line("cells", format!("{} ({:.2} M/s)", stats.cells, a_second(stats.cells)))?;
    line("bytes in", format!("{} ({:.0} MB/s)", stats.bytes_in, a_second(stats.bytes_in)))?;
    line("bytes out", stats.bytes_out.to_string())?;
    line("bytes a row read", format!("{:.3}", stats.bytes_out as f64 / stats.rows_accepted as f64))?;
    line("bytes a cell", format!("{:.3}", stats.bytes_out as f64 / stats.cells as f64))?;
    line("SSTs", version.ssts().count().to_string())?;
    line("seconds load", format!("{wall:.3}"))?;
    // Summed over cores, so these may exceed the total.
    line("  waiting for inputs", format!("{:.3}", seconds(&stats.read)))?;
    line("  parsing", format!("{:.3}", seconds(&stats.parse)))?;
    line("  sorting", format!("{:.3}", seconds(&stats.sort)))?;
    line("  encoding", format!("{:.3}", seconds(&stats.encode)))?;
    line("  writing", format!("{:.3}", seconds(&stats.write)))?;
    line("seconds commit", format!("{:.3}", seconds(commit)))?;
    line("peak memory", peak_memory().map_or("unknown".to_owned(), |kib| format!("{:.0} MiB", kib as f64 / 1024.0)))
}

/// Peak memory of this process in KiB, on Linux.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
