//! Sums by row are what the values of rows add up to, wherever they are kept.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{Array, AsArray, Decimal128Array, Float64Array, Int64Array, UInt64Array};
use arrow::datatypes::{Decimal128Type, Float64Type, Int64Type, UInt64Type};
use bytes::Bytes;
use tidetable_layout::schema::KeyTail;
use tidetable_layout::{Block, FieldType, GroupBlock, Keys, Projection, StoredSchema};

use super::{open, schema_of, write};
use crate::file::Reader;
use crate::io::FileSource;
use crate::options::{Compression, WriteOptions};

const UID: u128 = 0x5555_0123_4567_89ab_cdef_0011_2233_4455;
const ROWS: usize = 30;
/// Of each row but every fifth, which has none.
const RECORDS: usize = 12;
const KINDS: [FieldType; 6] = [
    FieldType::Float64,
    FieldType::Float64,
    FieldType::Int64,
    FieldType::UInt64,
    FieldType::Decimal { precision: 10, scale: 2 },
    FieldType::Float64,
];

fn schema() -> StoredSchema {
    schema_of(&KINDS)
}

fn block() -> Block {
    let mut keys = Keys::new(Arc::new(KeyTail::default()));
    (0..ROWS).for_each(|row| keys.push(format!("row{row:03}").as_bytes(), 0));
    let (mut row_ends, mut times) = (Vec::new(), Vec::new());
    for row in 0..ROWS {
        let records = if row % 5 == 4 { 0 } else { RECORDS };
        times.extend((0..records).map(|record| (1000 + row * 1000 - record) as i64));
        row_ends.push(times.len() as u32);
    }
    let all = times.len();
    let decimals: Float64Array = (0..all).map(|at| Some(((at * at % 997) as f64 - 100.0) / 1000.0)).collect();
    let fractions: Float64Array = (0..all).map(|at| Some(1.0 / (at + 3) as f64)).collect();
    // Of which a row's sum leaves 64 bits.
    let integers: Int64Array = (0..all as i64).map(|at| Some(at * at * 100_000_000_000_000 - 5)).collect();
    let counts: UInt64Array = (0..all as u64).map(|at| Some(u64::MAX - at)).collect();
    let prices: Decimal128Array = (0..all).map(|at| Some(2890 + (at * 37 % 101) as i128)).collect();
    let gaps: Float64Array = (0..all).map(|at| (at % 7 != 3).then_some(at as f64)).collect();
    let columns = vec![
        Some(Arc::new(decimals) as _),
        Some(Arc::new(fractions) as _),
        Some(Arc::new(integers) as _),
        Some(Arc::new(counts) as _),
        Some(Arc::new(prices.with_precision_and_scale(10, 2).unwrap()) as _),
        Some(Arc::new(gaps) as _),
    ];
    let group = GroupBlock { row_ends, qualifiers: None, timestamps: Some(times), columns, sums: Vec::new() };
    Block { keys, groups: vec![Some(group)] }
}

fn encoded(level: Compression) -> Bytes {
    let options = WriteOptions { level, ..WriteOptions::new(UID) };
    write(&schema(), &block(), &[0..11, 11..ROWS], &options).0
}

fn sums(schema: &StoredSchema) -> Projection {
    let mut projection = Projection::all(schema);
    projection.groups[0].as_mut().unwrap().sums = true;
    projection
}

fn assert_sums(reader: &Reader) {
    let (schema, block) = (schema(), block());
    reader.verify().unwrap();
    let all = block.groups[0].as_ref().unwrap();
    for stripe in 0..2 {
        let rows = if stripe == 0 { 0..11 } else { 11..ROWS };
        let found = reader.read_stripe(stripe, &sums(&schema)).unwrap();
        let group = found.groups[0].as_ref().unwrap();
        assert_eq!(group.sums.len(), KINDS.len());
        let kept: Vec<bool> = group.sums.iter().map(Option::is_some).collect();
        let summed = [true, false, false, false, true, false];
        assert_eq!(
            kept, summed,
            "sums of floats that are no decimals are rounded; a column with gaps has none, nor has one whose sums leave 64 bits"
        );
        let read: Vec<bool> = group.columns.iter().map(Option::is_some).collect();
        assert_eq!(read, summed.map(|summed| !summed), "what has sums is not read");
        let sum = |column: usize| group.sums[column].as_ref().unwrap();
        for (at, row) in rows.enumerate() {
            let records = all.records(row);
            let of = |column: usize| all.columns[column].as_ref().unwrap().slice(records.start, records.len());
            // In thousandths, which add up exactly.
            let thousandths =
                of(0).as_primitive::<Float64Type>().values().iter().map(|v| (v * 1000.0).round()).sum::<f64>();
            assert_eq!(sum(0).as_primitive::<Float64Type>().value(at), thousandths / 1000.0);
            let prices: i128 = of(4).as_primitive::<Decimal128Type>().values().iter().sum();
            assert_eq!(sum(4).as_primitive::<Decimal128Type>().value(at), prices);
            assert_eq!(sum(4).as_primitive::<Decimal128Type>().scale(), 2);
        }
        // A single row.
        let key = block.keys.get(if stripe == 0 { 7 } else { 22 });
        let one = reader.read_rows(stripe, &key, Some(&[&key[..], &[0]].concat()), &sums(&schema)).unwrap();
        let alone = one.groups[0].as_ref().unwrap().sums[0].clone().unwrap();
        let at = if stripe == 0 { 7 } else { 11 };
        assert_eq!(&alone, &sum(0).slice(at, 1));
    }
}

#[test]
fn sums_are_those_of_values() {
    assert_sums(&open(&encoded(Compression::Dense)));
    assert_sums(&open(&encoded(Compression::Fresh)));
}

#[test]
fn sums_of_integers_are_kept_where_they_fit() {
    let (schema, mut block) = (schema(), block());
    let group = block.groups[0].as_mut().unwrap();
    let all = group.timestamps.as_ref().unwrap().len();
    let least: Int64Array = (0..all as i64).map(|at| Some(at - i64::MAX / RECORDS as i64)).collect();
    let most: UInt64Array = (0..all as u64).map(|at| Some(u64::MAX / RECORDS as u64 - at)).collect();
    (group.columns[2], group.columns[3]) = (Some(Arc::new(least) as _), Some(Arc::new(most) as _));
    let (columns, ends) = (group.columns.clone(), group.row_ends.clone());
    let reader = open(&write(&schema, &block, std::slice::from_ref(&(0..ROWS)), &WriteOptions::new(UID)).0);
    let found = reader.read_stripe(0, &sums(&schema)).unwrap();
    let group = found.groups[0].as_ref().unwrap();
    let (least, most) = (group.sums[2].as_ref().unwrap(), group.sums[3].as_ref().unwrap());
    let mut start = 0;
    for (row, end) in ends.iter().enumerate() {
        let of = |column: usize| columns[column].as_ref().unwrap().slice(start, *end as usize - start);
        let sum: i64 = of(2).as_primitive::<Int64Type>().values().iter().sum();
        assert_eq!(least.as_primitive::<Int64Type>().value(row), sum);
        let sum: u64 = of(3).as_primitive::<UInt64Type>().values().iter().sum();
        assert_eq!(most.as_primitive::<UInt64Type>().value(row), sum);
        start = *end as usize;
    }
    reader.verify().unwrap();
}

#[test]
fn rows_of_few_records_have_none() {
    let (schema, block) = (schema(), block());
    let few = {
        let group = block.groups[0].as_ref().unwrap();
        let row_ends: Vec<u32> = (1..=ROWS as u32).collect();
        let columns = group.columns.iter().map(|column| column.as_ref().map(|column| column.slice(0, ROWS))).collect();
        let timestamps = group.timestamps.as_ref().map(|times| times[..ROWS].to_vec());
        let group = GroupBlock { row_ends, qualifiers: None, timestamps, columns, sums: Vec::new() };
        Block { keys: block.keys.clone(), groups: vec![Some(group)] }
    };
    let reader = open(&write(&schema, &few, std::slice::from_ref(&(0..ROWS)), &WriteOptions::new(UID)).0);
    let found = reader.read_stripe(0, &sums(&schema)).unwrap();
    let group = found.groups[0].as_ref().unwrap();
    assert!(group.sums.iter().all(Option::is_none) && group.columns.iter().all(Option::is_some));
    reader.verify().unwrap();
}

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/v3-sums.sst")
}

#[test]
fn golden_sums_are_what_they_were() {
    let source = FileSource::new(std::fs::File::open(golden()).unwrap()).unwrap();
    assert_sums(&Reader::open(Arc::new(source)).unwrap());
}
