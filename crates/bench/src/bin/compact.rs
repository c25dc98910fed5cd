//! Loads generated telemetry in as many runs as there are files, and tells how long it takes to merge them into one:
//! `compact ENTITIES STEPS [--layout meter|metric]`. STEPS are days of meters or minutes of machines; meters have a file a
//! day. All of it lies in one window. Then all stripes are copied as bytes, to nowhere, on one core.
//!
//! Files lie in a temporary folder of the current one. `RAYON_NUM_THREADS` sets the number of threads.

use std::collections::BTreeMap;
use std::io::{self, Write, stdout};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use tidetable_bench::{Bench, Result, Shape};
use tidetable_layout::Window;
use tidetable_sstable::{WriteOptions, Writer};
use tidetable_store::{CompactionExtent, CompactionPlan, Snapshot};

const USAGE: &str = "usage: compact ENTITIES STEPS [--layout meter|metric]";

fn main() -> Result<ExitCode> {
    let Some((shape, entities, steps)) = parse(std::env::args().skip(1)) else {
        writeln!(io::stderr(), "{USAGE}")?;
        return Ok(ExitCode::from(2));
    };
    let folder = tempfile::tempdir_in(".")?;
    let inputs = folder.path().join("inputs");
    let written = shape.write(&inputs, entities, steps)?;
    let bench = Bench::new(shape, &inputs, &folder.path().join("store"))?.with_window(Window::None)?;
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

fn parse(mut args: impl Iterator<Item = String>) -> Option<(Shape, u32, u32)> {
    let (mut shape, mut numbers) = (Shape::Meter, Vec::new());
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--layout" => shape = Shape::named(&args.next()?)?,
            _ => numbers.push(arg.parse().ok()?),
        }
    }
    if let [entities, steps] = numbers.as_slice() { Some((shape, *entities, *steps)) } else { None }
}

/// Copies every stripe into a file that is kept nowhere; bytes of them.
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
