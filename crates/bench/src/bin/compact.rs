//! Benchmark of compaction: `compact ENTITIES STEPS [--layout meter|metric]` loads generated telemetry, one load per
//! file, and times the merge of all SSTs. STEPS are days of meters or minutes of machines; meters have a file per day
//! of arrival. There is one window. Then all stripes are copied as bytes, to a sink, on one core.
//!
//! `compact ENTITIES STEPS --daily` loads file after file into daily windows, compacts after each what is due, as a
//! run does, and reads all readings of single meters.
//!
//! Ids and order are random, and some rows are late, twice or missing; `--ordered` is the exception. `--seed N` makes
//! others.
//!
//! Files are in a temporary directory in the current one. `RAYON_NUM_THREADS` sets the number of threads.

use std::collections::BTreeMap;
use std::io::{self, Write, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use tidetable_bench::{Bench, Result, Shape, Telemetry, line};
use tidetable_layout::{KeyRange, Projection, Window};
use tidetable_sstable::{WriteOptions, Writer};
use tidetable_store::Snapshot;
use tidetable_testkit::Written;
use tidetable_upkeep::compaction::{CompactionExtent, CompactionPlan};

const USAGE: &str = "usage: compact ENTITIES STEPS [--layout meter|metric | --daily] [--seed 1] [--ordered]";

/// What the command line asks for: the shape and size of telemetry, and which of the two benchmarks.
struct Args {
    shape: Shape,
    telemetry: Telemetry,
    daily: bool,
}

fn main() -> Result<ExitCode> {
    let Some(args) = parse(std::env::args().skip(1)) else {
        writeln!(io::stderr(), "{USAGE}")?;
        return Ok(ExitCode::from(2));
    };

    let folder = tempfile::tempdir_in(".")?;
    let inputs = folder.path().join("inputs");
    let written = args.shape.write(&inputs, args.telemetry)?;
    let bench = Bench::new(args.shape, &inputs, &folder.path().join("store"))?;
    if args.daily { daily(&bench, &written) } else { once(bench.with_window(Window::None)?, &written) }
}

/// Loads file after file, merges all SSTs, and copies their stripes.
fn once(bench: Bench, written: &Written) -> Result<ExitCode> {
    for path in &written.paths {
        bench.load(&[name_of(path)?])?;
    }
    let plan = CompactionPlan::of_extent(&bench.snapshot()?, 0, CompactionExtent::Full)?;
    let cells: u64 = plan.merges.iter().flat_map(|merge| &merge.ssts).map(|sst| sst.cells).sum();
    let (done, version, took) = bench.compact(&plan)?;

    let out = &mut stdout();
    line(out, "rows read", written.rows)?;
    line(out, "cells", cells)?;
    line(out, "before", format!("{} SSTs of {} bytes", done.before.0, done.before.1))?;
    line(out, "after", format!("{} SSTs of {} bytes", version.ssts().count(), done.after.1))?;
    line(out, "seconds merge", format!("{:.3}", took.as_secs_f64()))?;
    let threads = std::thread::available_parallelism()?.get();
    let rate = cells as f64 / took.as_secs_f64() / 1e6;
    line(out, "M cells a second", format!("{rate:.2} on up to {threads} cores"))?;

    let clock = Instant::now();
    let bytes = copy(&bench.snapshot()?)?;
    line(out, "GB/s copied", format!("{:.2}", bytes as f64 / clock.elapsed().as_secs_f64() / 1e9))?;
    Ok(ExitCode::SUCCESS)
}

/// Loads file after file, compacts what is due after each, and reads up to 50 meters.
fn daily(bench: &Bench, written: &Written) -> Result<ExitCode> {
    let (mut loaded, mut compacted, mut seconds) = (0, 0, 0.0);
    for path in &written.paths {
        loaded += bench.load(&[name_of(path)?])?.stats.bytes_out;
        loop {
            let plan = CompactionPlan::of_extent(&bench.snapshot()?, 0, CompactionExtent::Due)?;
            if plan.is_empty() {
                break;
            }
            let (done, _, took) = bench.compact(&plan)?;
            compacted += done.after.1;
            seconds += took.as_secs_f64();
        }
    }

    let snapshot = bench.snapshot()?;
    let meters = &written.ids[..written.ids.len().min(50)];
    // Warm-up, which opens the files.
    let records = meters.first().map_or(Ok(0), |meter| records_of(&snapshot, *meter))?;
    let clock = Instant::now();
    for meter in meters {
        records_of(&snapshot, *meter)?;
    }
    let mean = clock.elapsed().as_secs_f64() / meters.len() as f64;

    let out = &mut stdout();
    line(out, "rows read", written.rows)?;
    line(out, "SSTs", snapshot.version().ssts().count())?;
    line(out, "written / loaded", format!("{:.2}", (loaded + compacted) as f64 / loaded as f64))?;
    line(out, "seconds compacting", format!("{seconds:.3}"))?;
    line(out, "readings of a meter", records)?;
    line(out, "ms to read them", format!("{:.2}", mean * 1e3))?;
    Ok(ExitCode::SUCCESS)
}

fn name_of(path: &Path) -> Result<&str> {
    Ok(path.file_name().and_then(|name| name.to_str()).ok_or("a file has a name")?)
}

/// Reads all columns of a meter, and counts its readings.
fn records_of(snapshot: &Snapshot, meter: u32) -> Result<usize> {
    let mut records = 0;
    let range = KeyRange::prefix(format!("{meter:010}#").as_bytes());
    for slice in snapshot.scan_ranges(&[range], &(i64::MIN..i64::MAX)) {
        for block in snapshot.scan(&slice, &Projection::all(snapshot.schema()))? {
            records += block?.groups.iter().flatten().map(|group| group.len()).max().unwrap_or(0);
        }
    }
    Ok(records)
}

fn parse(mut args: impl Iterator<Item = String>) -> Option<Args> {
    let (mut shape, mut daily, mut numbers) = (Shape::Meter, false, Vec::new());
    let (mut seed, mut ordered) = (1, false);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--layout" => shape = Shape::named(&args.next()?)?,
            "--daily" => daily = true,
            "--seed" => seed = args.next()?.parse().ok()?,
            "--ordered" => ordered = true,
            _ => numbers.push(arg.parse().ok()?),
        }
    }
    let [entities, steps] = numbers.as_slice() else { return None };
    let telemetry = Telemetry { seed, ..Telemetry::new(*entities, *steps) };
    let telemetry = if ordered { telemetry.ordered() } else { telemetry };
    (shape == Shape::Meter || !daily).then_some(Args { shape, telemetry, daily })
}

/// Copies every stripe into a file that is discarded; returns their bytes.
fn copy(snapshot: &Snapshot) -> Result<u64> {
    let mut bytes = 0;
    for (uid, sst) in snapshot.version().ssts().enumerate() {
        let reader = snapshot.reader(sst)?;
        let schema = Arc::clone(snapshot.schema());
        let mut writer = Writer::new(io::sink(), schema, WriteOptions::new(uid as u128), BTreeMap::new())?;
        for stripe in 0..reader.stripes().len() {
            writer.push(reader.copy_stripe(stripe)?)?;
        }
        bytes += writer.finish()?.1.bytes;
    }
    Ok(bytes)
}
