//! A load holds as much memory for ten times the readings.
//!
//! Alone in its process, since the allocator counts all of it. What C libraries allocate (zstd) is not counted.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use peak_alloc::PeakAlloc;
use tidetable_bench::{Bench, Shape};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Bytes of cells that may wait to be sorted: a fraction of what the smaller load has.
const MEMORY: u64 = 2 << 20;
/// Small, so that the budget of cells and not what is being read and parsed decides.
const CHUNK_BYTES: usize = 32 << 10;
/// How much more the larger load may hold: the list of its SSTs grows, and threads meet differently.
const FACTOR: f64 = 1.25;
/// SSTs that are synced beside the load hold a buffer each; how many meet, and whether the smaller load sees as many, is
/// the disk's to say. Held whole, the larger load's cells would be several times this.
const SYNCING: usize = 5 << 20;

/// Peak bytes of a load of `entities` of `shape` for `steps`, above what was held before.
fn peak(shape: Shape, entities: u32, steps: u32) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let inputs = folder.path().join("inputs");
    let written = shape.write(&inputs, entities, steps).unwrap();
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
    // What is allocated once a process, such as the threads, is there by then.
    peak(shape, entities, steps / 2);
    let (small, large) = (peak(shape, entities, steps), peak(shape, entities, steps * 10));
    let told = format!("{shape:?}: {small} bytes at the peak, {large} with ten times the rows");
    assert!(large as f64 <= (small + SYNCING) as f64 * FACTOR, "{told}");
    assert!(small as u64 >= MEMORY, "the smaller load must reach its budget; {told}");
}

/// One test: others of the process would be counted too.
#[test]
fn ten_times_the_rows_need_no_more_memory() {
    assert_bounded(Shape::Meter, 500, 2);
    assert_bounded(Shape::Metric, 40, 100);
}
