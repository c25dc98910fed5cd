//! Encoding and decoding of a stripe. Items are cells, bytes those of the encoded stripe.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use tidetable_bench::Shape;
use tidetable_layout::{Block, Projection, StoredSchema};
use tidetable_sstable::{Compression, Reader, WriteOptions, Writer, encode_stripe};

use crate::files;

/// The rows of the first stripe of a loaded table.
fn stripe(shape: Shape, name: &str) -> (Arc<StoredSchema>, Block) {
    let snapshot = files::table(shape, 1, name);
    let reader = snapshot.reader(snapshot.version().ssts().next().unwrap()).unwrap();
    let block = reader.read_stripe(0, &Projection::all(reader.schema())).unwrap();
    (Arc::clone(reader.schema()), block)
}

fn options(level: Compression) -> WriteOptions {
    WriteOptions { level, ..WriteOptions::new(1) }
}

fn encode(bencher: Bencher, shape: Shape, level: Compression, name: &str) {
    let (schema, block) = stripe(shape, name);
    let options = options(level);
    let encoded = encode_stripe(&schema, &options, &block).unwrap();
    bencher
        .counter(ItemsCount::new(encoded.meta().cells))
        .counter(BytesCount::new(encoded.len()))
        .bench_local(|| encode_stripe(&schema, &options, black_box(&block)).unwrap());
}

#[divan::bench(args = [Shape::Meter, Shape::Metric], sample_count = 20)]
fn encode_fresh(bencher: Bencher, shape: Shape) {
    encode(bencher, shape, Compression::Fresh, "encode-fresh");
}

#[divan::bench(args = [Shape::Meter, Shape::Metric], sample_count = 20)]
fn encode_dense(bencher: Bencher, shape: Shape) {
    encode(bencher, shape, Compression::Dense, "encode-dense");
}

/// An SST of that stripe only, in memory.
fn file(shape: Shape, level: Compression, name: &str) -> Reader {
    let (schema, block) = stripe(shape, name);
    let options = options(level);
    let mut writer = Writer::new(Vec::new(), Arc::clone(&schema), options.clone(), BTreeMap::new()).unwrap();
    writer.push(encode_stripe(&schema, &options, &block).unwrap()).unwrap();
    Reader::open(Arc::new(Bytes::from(writer.finish().unwrap().0))).unwrap()
}

fn decode(bencher: Bencher, reader: &Reader) {
    let projection = Projection::all(reader.schema());
    let stripe = &reader.stripes()[0];
    bencher
        .counter(ItemsCount::new(stripe.cells))
        .counter(BytesCount::new(stripe.len))
        .bench_local(|| reader.read_stripe(black_box(0), &projection).unwrap());
}

#[divan::bench(args = [Shape::Meter, Shape::Metric])]
fn decode_fresh(bencher: Bencher, shape: Shape) {
    decode(bencher, &file(shape, Compression::Fresh, "decode-fresh"));
}

#[divan::bench(args = [Shape::Meter, Shape::Metric])]
fn decode_dense(bencher: Bencher, shape: Shape) {
    decode(bencher, &file(shape, Compression::Dense, "decode-dense"));
}
