//! Samples of files that have columns with their types: Parquet, Arrow and Avro are judged alike.

use std::collections::HashMap;

use arrow::array::{
    Float64Array, Int64Array, ListArray, StringArray, StringBuilder, StructArray, TimestampMicrosecondArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{Field, Fields};
use arrow_avro::writer::WriterBuilder;
use arrow_avro::writer::format::AvroOcfFormat;
use parquet::arrow::ArrowWriter;

use super::*;
use crate::sample::Sample;

const DAY_START: i64 = 1_704_067_200_000_000;

/// A batch with these columns, in the bytes of each format.
fn files(columns: &[(&str, ArrayRef)]) -> HashMap<&'static str, Vec<u8>> {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.iter().map(|(name, array)| ((*name).to_owned(), Arc::clone(array), true)),
    );
    let batch = batch.unwrap();
    let mut parquet = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    parquet.write(&batch).unwrap();
    let mut arrow = arrow::ipc::writer::FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    arrow.write(&batch).unwrap();
    let mut avro = WriterBuilder::new(batch.schema().as_ref().clone()).build::<_, AvroOcfFormat>(Vec::new()).unwrap();
    avro.write(&batch).unwrap();
    avro.finish().unwrap();
    HashMap::from([
        ("a.parquet", parquet.into_inner().unwrap()),
        ("a.arrow", arrow.into_inner().unwrap()),
        ("a.avro", avro.into_inner()),
    ])
}

/// The sample of a batch with these columns, in each format.
fn samples(columns: &[(&str, ArrayRef)]) -> Vec<(&'static str, Sample)> {
    let samples = files(columns).into_iter().map(|(name, bytes)| {
        let root = TempDir::new().unwrap();
        std::fs::write(root.path().join(name), bytes).unwrap();
        let storage = Storage::new(root.path().to_owned(), None);
        let format = Format::of_name(name).unwrap();
        let input = InputFile::local(&root.path().join(name), format).unwrap();
        (name, storage.sample(&input, None).unwrap())
    });
    samples.collect()
}

fn times(count: usize) -> ArrayRef {
    let times = (0..count as i64).map(|at| DAY_START + at * MINUTE);
    Arc::new(TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC"))
}

fn floats_of(count: usize, value: impl Fn(usize) -> f64) -> ArrayRef {
    Arc::new((0..count).map(|at| Some(value(at))).collect::<Float64Array>())
}

/// Lists of two structs each, with these fields.
fn structs(fields: Vec<(&str, ArrayRef)>) -> ArrayRef {
    let rows = fields[0].1.len() / 2;
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) =
        fields.into_iter().map(|(name, array)| (Field::new(name, array.data_type().clone(), true), array)).unzip();
    let items = StructArray::new(Fields::from(fields), arrays, None);
    let item = Arc::new(Field::new("item", items.data_type().clone(), true));
    Arc::new(ListArray::new(item, OffsetBuffer::from_lengths(vec![2; rows]), Arc::new(items), None))
}

/// Lists of `length` numbers each.
fn numbers(rows: usize, length: usize) -> ArrayRef {
    let item = Arc::new(Field::new("item", DataType::Float64, true));
    let values = floats_of(rows * length, |at| at as f64 / 4.0);
    Arc::new(ListArray::new(item, OffsetBuffer::from_lengths(vec![length; rows]), values, None))
}

fn words(count: usize) -> ArrayRef {
    Arc::new((0..count).map(|at| Some(["a", "b", "c"][at % 3])).collect::<StringArray>())
}

fn lists_of_words(rows: usize) -> ArrayRef {
    let mut lists = arrow::array::ListBuilder::new(StringBuilder::new());
    for _ in 0..rows {
        lists.append_value([Some("x"), Some("y")]);
    }
    Arc::new(lists.finish())
}

#[test]
fn lists_of_labels_and_receivers_are_no_events() {
    let labels = structs(vec![("name", words(24)), ("value", words(24))]);
    let gateways = structs(vec![("id", words(24)), ("rssi", floats_of(24, |at| -(at as f64)))]);
    let columns = [
        ("time", times(12)),
        ("temp", floats_of(12, |at| at as f64 / 2.0)),
        ("tags", lists_of_words(12)),
        ("labels", labels),
        ("gateways", gateways),
        ("axes", numbers(12, 3)),
        ("turns", numbers(12, 3)),
    ];
    for (name, sample) in samples(&columns) {
        assert_eq!(sample.spec.each, [""; 0], "{name}");
        let left_out = sample.left_out.join("; ");
        assert!(left_out.contains("labels (list of struct of name, value"), "{name}: {left_out}");
        assert!(left_out.contains("`each = [\"gateways\"]` makes an event of each item"), "{name}: {left_out}");
        let columns: Vec<&str> = sample.spec.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(columns, ["time", "temp", "tags", "axes", "turns"], "{name}");
    }
}

#[test]
fn lists_of_samples_are_events() {
    let samples_of = || structs(vec![("time", times(24)), ("load", floats_of(24, |at| at as f64 / 2.0))]);
    let of_a_day = structs(vec![("load", floats_of(24, |at| if at == 3 { f64::NAN } else { at as f64 }))]);
    let side_by_side: ArrayRef = {
        let item = Arc::new(Field::new("item", DataType::Int64, true));
        let values: Int64Array = (0..24).map(|at| Some(DAY_START / 1_000_000 + at)).collect();
        Arc::new(ListArray::new(item, OffsetBuffer::from_lengths(vec![2; 12]), Arc::new(values), None))
    };
    for (columns, wanted) in [
        (vec![("host", words(12)), ("samples", samples_of())], vec!["samples"]),
        (vec![("sent", times(12)), ("host", words(12)), ("samples", samples_of())], vec!["samples"]),
        (vec![("time", times(12)), ("host", words(12)), ("metrics", of_a_day)], vec!["metrics"]),
        (vec![("host", words(12)), ("times", side_by_side), ("loads", numbers(12, 2))], vec!["loads", "times"]),
    ] {
        for (name, sample) in samples(&columns) {
            assert_eq!(sample.spec.each, wanted, "{name}");
            assert_eq!(sample.batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 24, "{name}");
        }
    }
}

#[test]
fn lists_that_few_records_fill_are_no_events() {
    let item = || {
        Arc::new(Field::new(
            "item",
            DataType::Struct(Fields::from(vec![Field::new("load", DataType::Float64, true)])),
            true,
        ))
    };
    let fields = Fields::from(vec![Field::new("load", DataType::Float64, true)]);
    let items = StructArray::new(fields, vec![floats_of(4, |at| at as f64)], None);
    let lengths = (0..12).map(|at| if at < 2 { 2 } else { 0 });
    let list = ListArray::new(item(), OffsetBuffer::from_lengths(lengths), Arc::new(items), None);
    for (name, sample) in samples(&[("time", times(12)), ("host", words(12)), ("extras", Arc::new(list))]) {
        assert_eq!(sample.spec.each, [""; 0], "{name}");
        assert!(sample.left_out.join("; ").contains("extras (list of struct of load"), "{name}");
    }
}

#[test]
fn numbers_far_from_the_others_are_noted() {
    let columns = [
        ("time", times(40)),
        ("temp", floats_of(40, |at| if at % 8 == 3 { -999.0 } else { at as f64 / 4.0 })),
        (
            "flow",
            Arc::new((0..40).map(|at| Some(if at == 7 { -9999 } else { at })).collect::<Int64Array>()) as ArrayRef,
        ),
        ("level", floats_of(40, |at| at as f64)),
    ];
    for (name, sample) in samples(&columns) {
        let far = |at: usize| {
            let far = sample.columns[at].far.as_ref()?;
            Some(format!("{} x {} of {} to {}", far.numbers[0].count, far.numbers[0].first, far.least, far.most))
        };
        assert_eq!(far(1).as_deref(), Some("5 x -999.0 of 0.0 to 9.75"), "{name}");
        assert_eq!(far(2).as_deref(), Some("1 x -9999 of 0 to 39"), "{name}");
        assert_eq!((far(0), far(3)), (None, None), "{name}");
    }
}

#[test]
fn epochs_of_another_unit_are_noted() {
    let times = |odd: i64| {
        let value = move |at: i64| if at == 150 { odd } else { 1_704_067_200_000 + at * 60_000 };
        Arc::new((0..200).map(|at| Some(value(at))).collect::<Int64Array>()) as ArrayRef
    };
    for odd in [0, 1_704_067_200] {
        for (name, sample) in samples(&[("ts", times(odd)), ("v", floats_of(200, |at| at as f64))]) {
            assert_eq!(sample.spec.columns[0].format.as_deref(), Some("ms"), "{name}");
            let stray = sample.columns[0].stray.as_ref().unwrap();
            assert_eq!((stray.count, stray.first.as_str(), stray.line), (1, odd.to_string().as_str(), 151), "{name}");
        }
    }
}
