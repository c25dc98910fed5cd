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
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use tidetable_bench::{Bench, Result, Shape, Telemetry};
use tidetable_layout::{KeyRange, Projection, Window};
use tidetable_sstable::{WriteOptions, Writer};
use tidetable_store::Snapshot;
use tidetable_testkit::Written;
use tidetable_upkeep::compaction::{CompactionExtent, CompactionPlan};

const USAGE: &str = "usage: compact ENTITIES STEPS [--layout meter|metric | --daily] [--seed 1] [--ordered]";

/// Command-line arguments.
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

/// Loads file after file, and merges all SSTs.
fn once(bench: Bench, written: &Written) -> Result<ExitCode> {
    for path in &written.paths {
        let name = path.file_name().and_then(|name| name.to_str()).ok_or("a file has a name")?;
        bench.load(&[name])?;
    }
    let plan = CompactionPlan::of_extent(&bench.snapshot()?, 0, CompactionExtent::Full)?;
    let cells: u64 = plan.merges.iter().flat_map(|merge| &merge.ssts).map(|sst| sst.cells).sum();
    let (done, version, took) = bench.compact(&plan)?;
    let mut out = stdout();
    let mut line = |what: &str, value: String| writeln!(out, "{what:<20} {value}");
    line("rows read", written.rows.to_string())?;
    line("cells", cells.to_string())?;
    line("before", format!("{} SSTs of {} bytes", done.before.0, done.before.1))?;
    line("after", format!("{} SSTs of {} bytes", version.ssts().count(), done.after.1))?;
    line("seconds merge", format!("{:.3}", took.as_secs_f64()))?;
    let threads = std::thread::available_parallelism()?.get();
    let each = cells as f64 / took.as_secs_f64() / 1e6;
    line("M cells a second", format!("{each:.2} on up to {threads} cores"))?;
    let clock = Instant::now();
    let bytes = copy(&bench.snapshot()?)?;
    line("GB/s copied", format!("{:.2}", bytes as f64 / clock.elapsed().as_secs_f64() / 1e9))?;
    Ok(ExitCode::SUCCESS)
}

/// Loads file after file, compacts what is due after each, and reads meters.
fn daily(bench: &Bench, written: &Written) -> Result<ExitCode> {
    let (mut loaded, mut compacted, mut seconds) = (0, 0, 0.0);
    for path in &written.paths {
        let name = path.file_name().and_then(|name| name.to_str()).ok_or("a file has a name")?;
        loaded += bench.load(&[name])?.stats.bytes_out;
        loop {
            let plan = CompactionPlan::of_extent(&bench.snapshot()?, 0, CompactionExtent::Due)?;
            if plan.is_empty() {
                break;
            }
            let (done, _, took) = bench.compact(&plan)?;
            (compacted, seconds) = (compacted + done.after.1, seconds + took.as_secs_f64());
        }
    }
    let snapshot = bench.snapshot()?;
    let meters = &written.ids[..written.ids.len().min(50)];
    let key = |meter: u32| KeyRange::prefix(format!("{meter:010}#").as_bytes());
    let read = |meter: u32| -> Result<(usize, f64)> {
        let clock = Instant::now();
        let mut records = 0;
        for slice in snapshot.scan_ranges(&[key(meter)], &(i64::MIN..i64::MAX)) {
            for block in snapshot.scan(&slice, &Projection::all(snapshot.schema()))? {
                records += block?.groups.iter().flatten().map(|group| group.len()).max().unwrap_or(0);
            }
        }
        Ok((records, clock.elapsed().as_secs_f64()))
    };
    // Warm-up, which opens the files.
    meters.first().map(|&meter| read(meter)).transpose()?;
    let times: Vec<(usize, f64)> = meters.iter().map(|&meter| read(meter)).collect::<Result<_>>()?;
    let mean = times.iter().map(|(_, seconds)| seconds).sum::<f64>() / times.len() as f64;
    let mut out = stdout();
    let mut line = |what: &str, value: String| writeln!(out, "{what:<20} {value}");
    line("rows read", written.rows.to_string())?;
    line("SSTs", snapshot.version().ssts().count().to_string())?;
    line("written / loaded", format!("{:.2}", (loaded + compacted) as f64 / loaded as f64))?;
    line("seconds compacting", format!("{seconds:.3}"))?;
    line("readings of a meter", times.first().map_or(0, |(records, _)| *records).to_string())?;
    line("ms to read them", format!("{:.2}", mean * 1e3))?;
    Ok(ExitCode::SUCCESS)
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
