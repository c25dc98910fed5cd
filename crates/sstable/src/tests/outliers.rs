//! The greatest and least values of a column answer for all of them.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, Date32Array, Decimal128Array, Float64Array, Int64Array, TimestampMicrosecondArray,
};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{ArrowPrimitiveType, Date32Type, Decimal128Type, Float64Type, Int64Type};
use bytes::Bytes;
use tidetable_layout::schema::KeyTail;
use tidetable_layout::{Block, ColumnRef, FieldType, GroupBlock, Keys, Projection, StoredSchema};

use super::generate::Random;
use super::{open, schema_of, spell, write};
use crate::file::Reader;
use crate::format::VERSION;
use crate::group::RecordFilter;
use crate::io::{FileSource, ReadAt, ReadCounts};
use crate::options::{Compression, WriteOptions};
use crate::stats::Scalar;

const UID: u128 = 0x6666_0123_4567_89ab_cdef_0011_2233_4455;
const ROWS: usize = 250;
const RECORDS: usize = 80;
/// Of each column, and whether it has outliers.
const COLUMNS: [(FieldType, bool); 8] = [
    (FieldType::Float64, true),
    // With gaps.
    (FieldType::Float64, true),
    // With one that is no number.
    (FieldType::Float64, false),
    (FieldType::Int64, true),
    // Of few different values.
    (FieldType::Int64, false),
    (FieldType::Decimal { precision: 30, scale: 2 }, true),
    (FieldType::Date, true),
    (FieldType::Timestamp, true),
];

fn schema() -> StoredSchema {
    schema_of(&COLUMNS.map(|(kind, _)| kind))
}

fn block() -> Block {
    let mut keys = Keys::new(Arc::new(KeyTail::default()));
    (0..ROWS).for_each(|row| keys.push(format!("row{row:03}").as_bytes(), 0));
    let all = ROWS * RECORDS;
    let row_ends = (1..=ROWS as u32).map(|row| row * RECORDS as u32).collect();
    let time = |at: usize| (at / RECORDS * 1_000_000) as i64 - (at % RECORDS) as i64;
    let mut random = Random(7);
    // Few far from the others at either end, zeros of both signs among them.
    let mut skewed = || match random.below(300) {
        0 => 50.0 + random.below(9000) as f64 / 1000.0,
        1 => -3.0 - random.below(700) as f64 / 1000.0,
        2 => -0.0,
        _ => random.below(900) as f64 / 1000.0,
    };
    let floats: Vec<f64> = (0..all).map(|_| skewed()).collect();
    let gaps: Float64Array = (0..all).map(|at| (at % 11 != 4).then(|| floats[all - at - 1])).collect();
    let odd: Float64Array = (0..all).map(|at| Some(if at == 77 { f64::NAN } else { floats[at] })).collect();
    let integers: Int64Array = (0..all as i64).map(|at| Some(at * at % 100_003 - 50_000)).collect();
    let few: Int64Array = (0..all as i64).map(|at| Some(at % 7)).collect();
    // Some of which leave 64 bits.
    let wide: Decimal128Array = (0..all).map(|at| Some((floats[at] * 1e3) as i128 * (1 << 70))).collect();
    let days: Date32Array = (0..all).map(|at| Some((at * at % 8_009) as i32 - 4_000)).collect();
    let seen: TimestampMicrosecondArray = (0..all as i64).map(|at| Some(at * 7_919 % 1_000_003)).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Float64Array::from(floats)),
        Arc::new(gaps),
        Arc::new(odd),
        Arc::new(integers),
        Arc::new(few),
        Arc::new(wide.with_precision_and_scale(30, 2).unwrap()),
        Arc::new(days),
        Arc::new(seen.with_timezone("UTC")),
    ];
    let timestamps = Some((0..all).map(time).collect());
    let columns = columns.into_iter().map(Some).collect();
    Block { keys, groups: vec![Some(GroupBlock { row_ends, qualifiers: None, timestamps, columns, sums: Vec::new() })] }
}

fn encoded(level: Compression) -> Bytes {
    let options = WriteOptions { level, ..WriteOptions::new(UID) };
    write(&schema(), &block(), std::slice::from_ref(&(0..ROWS)), &options).0
}

/// Needs what is less than one value or greater than another.
#[derive(Debug)]
struct Outside {
    column: usize,
    below: Option<f64>,
    above: Option<f64>,
}

fn float(scalar: Scalar) -> f64 {
    match scalar {
        Scalar::Int64(value) | Scalar::Timestamp(value) => value as f64,
        Scalar::UInt64(value) => value as f64,
        Scalar::Float64(value) => value,
        Scalar::Decimal(value) => value as f64,
        Scalar::Date(value) => f64::from(value),
    }
}

fn floats(values: &ArrayRef) -> Vec<Option<f64>> {
    fn all<T: ArrowPrimitiveType>(values: &ArrayRef, float: fn(T::Native) -> f64) -> Option<Vec<Option<f64>>> {
        Some(values.as_primitive_opt::<T>()?.iter().map(|value| value.map(float)).collect())
    }
    all::<Float64Type>(values, |value| value)
        .or_else(|| all::<Int64Type>(values, |value| value as f64))
        .or_else(|| all::<Decimal128Type>(values, |value| value as f64))
        .or_else(|| all::<Date32Type>(values, f64::from))
        .or_else(|| all::<arrow::datatypes::TimestampMicrosecondType>(values, |value| value as f64))
        .unwrap()
}

impl RecordFilter for Outside {
    fn column(&self) -> ColumnRef {
        ColumnRef { group: 0, column: self.column }
    }

    fn keep(&self, values: &ArrayRef) -> BooleanBuffer {
        let passes =
            |value: f64| self.below.is_some_and(|bound| value < bound) || self.above.is_some_and(|bound| value > bound);
        floats(values).into_iter().map(|value| value.is_some_and(passes)).collect()
    }

    fn may_keep(&self, (least, greatest): (Scalar, Scalar)) -> bool {
        self.below.is_some_and(|bound| float(least) < bound) || self.above.is_some_and(|bound| float(greatest) > bound)
    }
}

/// Asks for `rows` by `keep`, and returns the pages that it took.
fn ask(bytes: &Bytes, keep: &Outside, rows: std::ops::Range<usize>) -> u64 {
    let counts = Arc::new(ReadCounts::default());
    let all = Projection::all(&schema());
    let mut wanted = all.clone();
    let columns = &mut wanted.groups[0].as_mut().unwrap().columns;
    columns.iter_mut().enumerate().for_each(|(at, column)| *column = at == keep.column);
    let reader = open(bytes).counted(Arc::clone(&counts));
    let found = reader.stripe(0).unwrap().into_filtered(rows.clone(), &wanted, keep).unwrap();
    let found = found.map_or(Vec::new(), |block| spell(&block, 0..block.keys.len()));

    let block = block();
    let values = floats(block.groups[0].as_ref().unwrap().columns[keep.column].as_ref().unwrap());
    let passes = keep.keep(block.groups[0].as_ref().unwrap().columns[keep.column].as_ref().unwrap());
    let full = spell(&block, rows.clone());
    let mut expected = Vec::new();
    for (row, (key, groups)) in rows.zip(full) {
        let records = groups[0].as_ref().unwrap().iter().enumerate();
        let kept = records.filter(|(at, _)| passes.value(row * RECORDS + at));
        let kept: Vec<_> = kept.map(|(_, (_, time, values))| (*time, values[keep.column].clone())).collect();
        if !kept.is_empty() {
            expected.push((key, kept));
        }
    }
    let found: Vec<_> = found
        .into_iter()
        .map(|(key, groups)| {
            let records = groups[0].as_ref().unwrap().iter();
            (key, records.map(|(_, time, values)| (*time, values[keep.column].clone())).collect::<Vec<_>>())
        })
        .collect();
    let few = expected.iter().map(|(_, kept)| kept.len()).sum::<usize>() <= values.len() / 64;
    assert!(found == expected || !few, "{keep:?}");
    counts.pages()
}

#[test]
fn filters_beyond_all_but_few_values_read_these_alone() {
    for level in [Compression::Dense, Compression::Fresh] {
        let bytes = encoded(level);
        let pages_of_column = (ROWS * RECORDS).div_ceil(crate::format::PAGE_RECORDS) as u64;
        open(&bytes).verify().unwrap();
        for (column, (_, has_extremes)) in COLUMNS.iter().enumerate() {
            let array = block().groups[0].as_ref().unwrap().columns[column].clone().unwrap();
            let mut values: Vec<f64> = floats(&array).into_iter().flatten().filter(|value| !value.is_nan()).collect();
            values.sort_unstable_by(f64::total_cmp);
            let (low, high) = (values[values.len() / 1000], values[values.len() - values.len() / 1000]);
            for (below, above) in [(None, Some(high)), (Some(low), None), (Some(low), Some(high))] {
                let keep = Outside { column, below, above };
                let pages = ask(&bytes, &keep, 0..ROWS);
                let alone = pages < pages_of_column;
                assert_eq!(alone, *has_extremes, "{keep:?} of {level:?} took {pages} pages");
                ask(&bytes, &keep, 3..ROWS - 20);
                ask(&bytes, &keep, 100..101);
            }
            // What is not beyond is read as ever.
            let middle = values[values.len() / 2];
            ask(&bytes, &Outside { column, below: None, above: Some(middle) }, 0..ROWS);
        }
    }
}

#[test]
fn any_bounds_give_what_a_filter_gives() {
    let bytes = encoded(Compression::Fresh);
    let mut random = Random(11);
    for _ in 0..150 {
        let column = random.below(COLUMNS.len() as u64) as usize;
        let array = block().groups[0].as_ref().unwrap().columns[column].clone().unwrap();
        let mut values: Vec<f64> = floats(&array).into_iter().flatten().collect();
        values.sort_unstable_by(f64::total_cmp);
        let mut bound = |from_end: bool| {
            let rank = random.below(200) as usize;
            (random.below(3) > 0).then(|| values[if from_end { values.len() - 1 - rank } else { rank }])
        };
        let (below, above) = (bound(false), bound(true));
        let first = random.below(ROWS as u64) as usize;
        ask(&bytes, &Outside { column, below, above }, first..ROWS);
    }
}

#[test]
fn short_columns_have_none() {
    let (schema, block) = (schema(), block());
    let bytes = write(&schema, &block, &[0..ROWS / 2, ROWS / 2..ROWS], &WriteOptions::new(UID)).0;
    let inspection = open(&bytes).inspect().unwrap();
    let streams = |bytes: &Bytes| {
        let inspection = open(bytes).inspect().unwrap();
        let streams = inspection.stripes.into_iter().flat_map(|stripe| stripe.chunks);
        streams.filter(|chunk| chunk.stream.starts_with("outliers")).count()
    };
    assert_eq!((inspection.stripes.len(), streams(&bytes)), (2, 0));
    // Places and values of the greatest and the least of six columns.
    assert_eq!(streams(&encoded(Compression::Dense)), 24);
}

fn golden(version: u32) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("golden/v{version}-extremes.sst"))
}

#[test]
#[ignore = "writes the golden file of sums and outliers of a new version; those of an old version never change"]
fn write_golden_outliers() {
    std::fs::write(golden(VERSION), encoded(Compression::Dense)).unwrap();
}

#[test]
fn golden_outliers_are_what_they_were() {
    for version in 4..=VERSION {
        let source = FileSource::new(std::fs::File::open(golden(version)).unwrap()).unwrap();
        let bytes = source.read_at(0, source.len() as usize).unwrap();
        Reader::open(Arc::new(source)).unwrap().verify().unwrap();
        ask(&bytes, &Outside { column: 0, below: None, above: Some(50.0) }, 0..ROWS);
        let is_same = version != VERSION || bytes == encoded(Compression::Dense);
        assert!(is_same, "a new encode differs from the golden file");
    }
}
