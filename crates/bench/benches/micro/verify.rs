//! Verify of SSTs; bytes are those of the files.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use tidetable_bench::Shape;
use tidetable_sstable::Reader;

use crate::files;

/// The SSTs of a table with one load.
fn readers(shape: Shape, name: &str) -> Vec<Reader> {
    let snapshot = files::table(shape, 1, name);
    snapshot.version().ssts().map(|sst| snapshot.reader(sst).unwrap()).collect()
}

/// Every checksum, on one core.
#[divan::bench(args = [Shape::Meter, Shape::Metric], sample_count = 50)]
fn sweep(bencher: Bencher, shape: Shape) {
    let readers = readers(shape, &format!("sweep-{shape:?}"));
    let bytes: u64 = readers.iter().map(Reader::bytes).sum();
    bencher.counter(BytesCount::new(bytes)).bench_local(|| {
        readers.iter().for_each(|reader| assert!(black_box(reader).sweep().damage.is_empty()));
    });
}

/// Full verify, on one core.
#[divan::bench(args = [Shape::Meter, Shape::Metric], sample_count = 20)]
fn verify(bencher: Bencher, shape: Shape) {
    let readers = readers(shape, &format!("verify-{shape:?}"));
    let bytes: u64 = readers.iter().map(Reader::bytes).sum();
    bencher.counter(BytesCount::new(bytes)).bench_local(|| {
        readers.iter().for_each(|reader| {
            black_box(reader).verify().unwrap();
        });
    });
}
