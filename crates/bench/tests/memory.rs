//! The memory of a load does not depend on the number of readings, nor exceed its budget by more than so much with that of entities.
//!
//! Alone in its process, since the allocator counts the whole process. Allocations of C libraries (zstd) are not
//! counted.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use peak_alloc::PeakAlloc;
use tidetable_bench::{Bench, Shape, Telemetry};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Memory budget, bytes: a fraction of the cells of the smaller load.
const MEMORY: u64 = 2 << 20;
/// Small, so that waiting cells and not read-ahead dominate memory.
const CHUNK_BYTES: usize = 32 << 10;
/// Tolerated growth of memory: the list of SSTs, and thread timing.
const FACTOR: f64 = 1.25;
/// Allowance for the buffers of SSTs being synced, whose number depends on the disk. All cells of the larger load in
/// memory would be several times this.
const SYNCING: usize = 5 << 20;

/// Default of `--memory`.
const DEFAULT_MEMORY: u64 = 384 << 20;
/// What a load may take beside its budget.
const BESIDE: usize = 64 << 20;

/// Peak bytes of a load of `telemetry` within `memory`, in chunks of `chunk` bytes, above the memory held before.
fn peak(shape: Shape, telemetry: Telemetry, memory: u64, chunk: Option<usize>) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let inputs = folder.path().join("inputs");
    let written = shape.write(&inputs, telemetry).unwrap();
    let mut bench = Bench::new(shape, &inputs, &folder.path().join("store")).unwrap();
    if let Some(chunk) = chunk {
        bench = bench.with_chunk_bytes(chunk);
    }
    bench.memory = memory;
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let done = bench.load(&["*.csv"]).unwrap();
    let peak = ALLOCATOR.peak_usage() - before;
    assert_eq!(done.stats.rows_accepted, written.rows);
    peak
}

fn assert_bounded(shape: Shape, entities: u32, steps: u32) {
    // Ordered: late rows would bring the number of open windows into the figure.
    let peak = |steps| peak(shape, Telemetry::new(entities, steps).ordered(), MEMORY, Some(CHUNK_BYTES));
    // Warm-up: allocations once per process, such as threads.
    peak(steps / 2);
    let (small, large) = (peak(steps), peak(steps * 10));
    let told = format!("{shape:?}: {small} bytes at the peak, {large} with ten times the rows");
    assert!(large as f64 <= (small + SYNCING) as f64 * FACTOR, "{told}");
    assert!(small as u64 >= MEMORY, "the smaller load must reach its budget; {told}");
}

/// A load with the default budget takes at most `most` bytes.
fn assert_within(most: usize, entities: u32, per_day: u32) {
    let telemetry = Telemetry::new(entities, 2).readings_per_day(per_day);
    let peak = peak(Shape::Meter, telemetry, DEFAULT_MEMORY, None);
    assert!(peak <= most, "{entities} entities: {peak} bytes at the peak, of {most}");
}

/// One test only: the memory of others would be counted, too.
#[test]
fn the_memory_of_a_load_is_bounded_whatever_its_rows_and_entities() {
    assert_bounded(Shape::Meter, 1500, 2);
    assert_bounded(Shape::Metric, 40, 100);
    let default = DEFAULT_MEMORY as usize;
    assert_within(default + BESIDE, 20_000, 96);
    assert_within(default + BESIDE, 3_000_000, 2);
}
