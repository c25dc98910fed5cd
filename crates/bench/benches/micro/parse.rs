//! Parsing of a file into typed batches, and encoding of batches into codes, times and columns.

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use tidetable_bench::Shape;

use crate::files;

/// A shape and its file format.
#[derive(Debug, Clone, Copy)]
enum Input {
    MeterCsv,
    MetricCsv,
    MeterParquet,
    MetricParquet,
}

const INPUTS: [Input; 4] = [Input::MeterCsv, Input::MetricCsv, Input::MeterParquet, Input::MetricParquet];

/// Items are fields.
#[divan::bench(args = INPUTS)]
fn parse(bencher: Bencher, input: Input) {
    let (parser, chunk, bytes) = match input {
        Input::MeterCsv => files::chunk(Shape::Meter, "parse-meter"),
        Input::MetricCsv => files::chunk(Shape::Metric, "parse-metric"),
        Input::MeterParquet => files::parquet_chunk(Shape::Meter, "parse-meter-parquet"),
        Input::MetricParquet => files::parquet_chunk(Shape::Metric, "parse-metric-parquet"),
    };
    let batch = parser.parse(chunk.clone()).unwrap().batch;
    let fields = batch.num_rows() * batch.num_columns();
    bencher
        .counter(BytesCount::new(bytes))
        .counter(ItemsCount::new(fields))
        .with_inputs(|| chunk.clone())
        .bench_local_values(|chunk| parser.parse(black_box(chunk)).unwrap());
}

/// With an encoder that has interned the keys; items are values.
#[divan::bench(args = [Shape::Meter, Shape::Metric])]
fn lay_out(bencher: Bencher, shape: Shape) {
    let batch = files::batch(shape, "lay-out");
    let layout = shape.layout().unwrap();
    let mut encoder = layout.encoder();
    let values = batch.num_rows() * (batch.num_columns() - 2);
    encoder.encode(&batch).unwrap();
    bencher.counter(ItemsCount::new(values)).bench_local(|| encoder.encode(black_box(&batch)).unwrap());
}

/// With a new encoder, for which every key is new; items are values.
#[divan::bench(args = [Shape::Meter, Shape::Metric])]
fn lay_out_new_keys(bencher: Bencher, shape: Shape) {
    let batch = files::batch(shape, "lay-out-new");
    let layout = shape.layout().unwrap();
    let values = batch.num_rows() * (batch.num_columns() - 2);
    bencher.counter(ItemsCount::new(values)).bench_local(|| layout.encoder().encode(black_box(&batch)).unwrap());
}
