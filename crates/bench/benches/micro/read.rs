//! Scans that merge several SSTs, and point lookups.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use tidetable_bench::Shape;
use tidetable_layout::{KeyRange, Projection};
use tidetable_store::Snapshot;
use tidetable_testkit::Seeded;

use crate::files;

/// Every row is in `ssts` SSTs; items are cells.
fn merge(bencher: Bencher, shape: Shape, ssts: usize, name: &str) {
    let snapshot = files::table(shape, ssts, &format!("{name}-{ssts}"));
    let projection = Projection::all(snapshot.schema());
    let all = snapshot.whole(&KeyRange::all()).unwrap();
    let cells: u64 = snapshot.version().ssts().map(|sst| sst.cells).sum();
    bencher.counter(ItemsCount::new(cells)).bench_local(|| {
        let blocks = snapshot.scan(black_box(&all), &projection).unwrap();
        blocks.map(|block| block.unwrap().keys.len()).sum::<usize>()
    });
}

/// Rows of a day, which are in all SSTs.
#[divan::bench(args = [1, 2, 8], sample_count = 20)]
fn merge_meter(bencher: Bencher, ssts: usize) {
    merge(bencher, Shape::Meter, ssts, "merge-meter");
}

/// Rows of an instant, each in one of the SSTs.
#[divan::bench(args = [1, 2, 8], sample_count = 20)]
fn merge_metric(bencher: Bencher, ssts: usize) {
    merge(bencher, Shape::Metric, ssts, "merge-metric");
}

/// Existing row keys, shuffled.
fn keys(snapshot: &Snapshot) -> Vec<Vec<u8>> {
    let (all, projection) = (snapshot.whole(&KeyRange::all()).unwrap(), Projection::all(snapshot.schema()));
    let mut random = Seeded::new(1);
    let mut keys: Vec<(u64, Vec<u8>)> = Vec::new();
    for block in snapshot.scan(&all, &projection).unwrap() {
        let block = block.unwrap();
        keys.extend((0..block.keys.len()).map(|row| (random.bits(), block.keys.get(row))));
    }
    keys.sort_unstable();
    keys.into_iter().map(|(_, key)| key).collect()
}

/// Point lookup of a row with all its cells in `ssts` SSTs, with open files and loaded key filters. Cycles through
/// all rows.
fn point(bencher: Bencher, shape: Shape, ssts: usize, name: &str) {
    let snapshot = files::table(shape, ssts, &format!("{name}-{ssts}"));
    let projection = Projection::all(snapshot.schema());
    let keys = keys(&snapshot);
    let mut next = keys.iter().cycle();
    bencher
        .counter(ItemsCount::new(1usize))
        .bench_local(|| snapshot.row(black_box(next.next().unwrap()), &projection).unwrap().unwrap());
}

#[divan::bench(args = [1, 8])]
fn point_read_meter(bencher: Bencher, ssts: usize) {
    point(bencher, Shape::Meter, ssts, "point-meter");
}

#[divan::bench(args = [1, 8])]
fn point_read_metric(bencher: Bencher, ssts: usize) {
    point(bencher, Shape::Metric, ssts, "point-metric");
}
