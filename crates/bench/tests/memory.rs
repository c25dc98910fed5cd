//! The memory of a load does not depend on the number of readings.
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

/// Peak bytes of a load of `entities` of `shape` for `steps`, above the memory held before.
fn peak(shape: Shape, entities: u32, steps: u32) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let inputs = folder.path().join("inputs");
    // Ordered: late rows would bring the number of open windows into the figure.
    let written = shape.write(&inputs, Telemetry::new(entities, steps).ordered()).unwrap();
    let mut bench = Bench::new(shape, &inputs, &folder.path().join("store")).unwrap().with_chunk_bytes(CHUNK_BYTES);
    bench.memory = MEMORY;
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let done = bench.load(&["*.csv"]).unwrap();
    let peak = ALLOCATOR.peak_usage() - before;
    assert_eq!(done.stats.rows_accepted, written.rows);
    peak
}

fn assert_bounded(shape: Shape, entities: u32, steps: u32) {
    // Warm-up: allocations once per process, such as threads.
    peak(shape, entities, steps / 2);
    let (small, large) = (peak(shape, entities, steps), peak(shape, entities, steps * 10));
    let told = format!("{shape:?}: {small} bytes at the peak, {large} with ten times the rows");
    assert!(large as f64 <= (small + SYNCING) as f64 * FACTOR, "{told}");
    assert!(small as u64 >= MEMORY, "the smaller load must reach its budget; {told}");
}

/// One test only: the memory of others would be counted, too.
#[test]
fn ten_times_the_rows_need_no_more_memory() {
    assert_bounded(Shape::Meter, 500, 2);
    assert_bounded(Shape::Metric, 40, 100);
}
