//! The memory of a compaction does not depend on the number of SSTs.
//!
//! Alone in its process, since the allocator counts the whole process. Allocations of C libraries (zstd) are not
//! counted.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use peak_alloc::PeakAlloc;
use tidetable_bench::{Bench, Shape, Telemetry};
use tidetable_layout::Window;
use tidetable_upkeep::compaction::{CompactionExtent, CompactionPlan};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Days of meters in all SSTs together.
const METER_DAYS: u32 = 30_000;
/// Tolerated growth of memory with the number of SSTs: metadata of each, and thread timing.
const FACTOR: f64 = 1.5;

/// Peak bytes of the compaction of `ssts` overlapping SSTs of one window, above the memory held before.
fn peak(ssts: u32) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let inputs = folder.path().join("inputs");
    // Ordered: each file is one SST, and the number of its rows is known.
    let written = Shape::Meter.write(&inputs, Telemetry::new(METER_DAYS / ssts, ssts).ordered()).unwrap();
    let bench = Bench::new(Shape::Meter, &inputs, &folder.path().join("store")).unwrap();
    let bench = bench.with_window(Window::None).unwrap();
    for path in &written.paths {
        bench.load(&[path.file_name().unwrap().to_str().unwrap()]).unwrap();
    }
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    for _ in 0..3 {
        let snapshot = bench.snapshot().unwrap();
        let plan = CompactionPlan::of_extent(&snapshot, 0, CompactionExtent::Needed).unwrap();
        if plan.is_empty() {
            break;
        }
        bench.compact(&plan).unwrap();
    }
    let peak = ALLOCATOR.peak_usage() - before;
    let version = bench.snapshot().unwrap().version().clone();
    assert_eq!(version.ssts().count(), 1);
    assert_eq!(version.ssts().map(|sst| sst.cells).sum::<u64>(), written.rows + u64::from(METER_DAYS));
    peak
}

#[test]
fn the_same_in_ten_times_as_many_ssts_needs_no_more_memory() {
    // Warm-up: allocations once per process, such as threads.
    peak(10);
    let (few, many) = (peak(50), peak(500));
    assert!(many as f64 <= few as f64 * FACTOR, "{few} bytes at the peak of 50 SSTs, {many} of 500");
}
