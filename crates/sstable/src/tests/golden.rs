//! A file of each version, which every later build must read, and write bit for bit if the version is its own.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{
    BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, StringArray,
    TimestampMicrosecondArray, UInt64Array,
};
use bytes::Bytes;
use tidetable_layout::block::Qualifiers;
use tidetable_layout::schema::{Encoding, KeyTail, QualifierKind, TailPart, TimestampKind};
use tidetable_layout::{Block, Column, FieldType, Group, GroupBlock, Keys, Projection, StoredSchema, ValueType};

use super::{assert_rows, open, write};
use crate::file::Reader;
use crate::format::{OLDEST_VERSION, VERSION};
use crate::io::{FileSource, ReadAt};
use crate::options::{Compression, WriteOptions};
use crate::stats::Scalar;

const UID: u128 = 0x0123_4567_89ab_cdef_0011_2233_4455_6677;
const ROWS: usize = 40;

/// Version 1 has files of one level only.
fn files() -> impl Iterator<Item = (u32, Compression)> {
    let levels = |version| [Compression::Dense, Compression::Fresh].into_iter().map(move |level| (version, level));
    (OLDEST_VERSION..=VERSION).flat_map(levels).filter(|file| *file != (1, Compression::Fresh))
}

fn path((version, level): (u32, Compression)) -> PathBuf {
    let level = if level == Compression::Fresh { "-fresh" } else { "" };
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("golden/v{version}{level}.sst"))
}

fn schema() -> StoredSchema {
    let column = |qualifier: &str, value| Column {
        family: "M".to_owned(),
        qualifier: qualifier.as_bytes().to_vec(),
        value,
        encoding: Encoding::Text,
        merge: Default::default(),
    };
    let field = |qualifier, kind| column(qualifier, ValueType::Field(kind));
    let parts = vec![TailPart::Digits(4), TailPart::Literal("-".to_owned()), TailPart::Digits(2)];
    StoredSchema {
        tail: KeyTail { parts },
        groups: vec![
            Group {
                qualifier: QualifierKind::Constant,
                timestamps: TimestampKind::Zero,
                packed: None,
                columns: vec![field("id", FieldType::UInt64), field("place", FieldType::Text)],
            },
            Group {
                qualifier: QualifierKind::Dynamic,
                timestamps: TimestampKind::Stored,
                packed: None,
                columns: vec![
                    field("", FieldType::Float64),
                    field("", FieldType::Decimal { precision: 10, scale: 2 }),
                    field("", FieldType::Decimal { precision: 38, scale: 0 }),
                ],
            },
            Group {
                qualifier: QualifierKind::Constant,
                timestamps: TimestampKind::Stored,
                packed: None,
                columns: vec![
                    field("count", FieldType::Int64),
                    field("on", FieldType::Bool),
                    field("seen", FieldType::Timestamp),
                    field("day", FieldType::Date),
                    column("raw", ValueType::Bytes),
                ],
            },
            Group {
                qualifier: QualifierKind::Dynamic,
                timestamps: TimestampKind::Zero,
                packed: None,
                columns: vec![column("", ValueType::Empty)],
            },
        ],
        upsert: false,
    }
}

fn block() -> Block {
    let schema = schema();
    let mut keys = Keys::new(Arc::new(schema.tail));
    (0..ROWS as u64).for_each(|row| keys.push(format!("meter{:03}#", row / 2).as_bytes(), 201_700 + row % 2));
    let names = |all: &[&str]| all.iter().map(|name| name.as_bytes().into()).collect::<Vec<_>>();
    let ends = |a_row: u32| (1..=ROWS as u32).map(|row| row * a_row).collect::<Vec<_>>();

    let ids: UInt64Array = (0..ROWS as u64).map(|row| row * row).collect::<Vec<_>>().into();
    let places: StringArray = (0..ROWS).map(|row| Some(["north", "south", "østre"][row % 3])).collect();
    let constant = GroupBlock {
        row_ends: ends(1),
        qualifiers: None,
        timestamps: None,
        columns: vec![Some(Arc::new(ids)), Some(Arc::new(places))],
        sums: Vec::new(),
    };

    let readings = ROWS * 3;
    let odd = [f64::from_bits(0x7ff8_0000_0000_0123), -0.0, 0.0, f64::NEG_INFINITY, 0.1];
    let loads: Float64Array =
        (0..readings).map(|i| if i < 5 { odd[i] } else { (i * i % 997) as f64 / 1000.0 }).collect::<Vec<_>>().into();
    let prices: Decimal128Array =
        (0..readings).map(|i| (i % 7 != 3).then_some(2890 + (i * 37 % 101) as i128)).collect();
    let wide: Decimal128Array = (0..readings as i128).map(|i| Some((i << 70) - 5)).collect();
    let patterned = GroupBlock {
        row_ends: ends(3),
        qualifiers: Some(Qualifiers {
            dictionary: names(&["0000", "0015", "0030", "unused"]),
            codes: (0..readings as u32).map(|i| i % 3).collect(),
        }),
        timestamps: Some((0..readings as i64).map(|i| i / 3 * 86_400_000_000 + i % 3 * 900_000_000).collect()),
        columns: vec![
            Some(Arc::new(loads)),
            Some(Arc::new(prices.with_precision_and_scale(10, 2).unwrap())),
            Some(Arc::new(wide.with_precision_and_scale(38, 0).unwrap())),
        ],
        sums: Vec::new(),
    };

    // Rows of 0, 1, 2, 0, 1, 2, .. records, newest first, at odd times.
    let mut end = 0;
    let row_ends: Vec<u32> = (0..ROWS as u32)
        .map(|row| {
            end += row % 3;
            end
        })
        .collect();
    let all = end as usize;
    let times = (0..ROWS as i64).flat_map(|row| (0..row % 3).map(move |i| row * 7_000_001 - i * i * 13 - i * row));
    let counts: Int64Array = (0..all as i64).map(|i| Some(i * 3 - 50)).collect();
    let on: BooleanArray = (0..all).map(|i| (i % 5 != 0).then_some(i % 2 == 0)).collect();
    let seen: TimestampMicrosecondArray = (0..all as i64).map(|i| Some(i * i * 1_000)).collect();
    let days: Date32Array = (0..all as i32).map(|i| (i > 20).then_some(17_000 + i / 2)).collect();
    let raw: BinaryArray = (0..all).map(|i| Some([i as u8, 0xff, (i * 7) as u8])).collect();
    let versions = GroupBlock {
        row_ends,
        qualifiers: None,
        timestamps: Some(times.collect()),
        columns: vec![
            Some(Arc::new(counts)),
            Some(Arc::new(on)),
            Some(Arc::new(seen.with_timezone("UTC"))),
            Some(Arc::new(days)),
            Some(Arc::new(raw)),
        ],
        sums: Vec::new(),
    };

    let tags = GroupBlock {
        row_ends: ends(1),
        qualifiers: Some(Qualifiers {
            dictionary: names(&["blue", "green", "red"]),
            codes: (0..ROWS as u32).map(|i| i * i % 3).collect(),
        }),
        timestamps: None,
        columns: vec![Some(Arc::new(BooleanArray::from(vec![true; ROWS])))],
        sums: Vec::new(),
    };
    Block { keys, groups: vec![Some(constant), Some(patterned), Some(versions), Some(tags)] }
}

fn encoded(level: Compression) -> Bytes {
    let options = WriteOptions { level, ..WriteOptions::new(UID) };
    write(&schema(), &block(), &[0..25, 25..ROWS], &options).0
}

#[test]
#[ignore = "writes the golden files of a new version; those of an old version never change"]
fn write_golden_files() {
    for file in files().filter(|(version, _)| *version == VERSION) {
        std::fs::write(path(file), encoded(file.1)).unwrap();
    }
}

#[test]
fn golden_files_hold_what_they_held() {
    files().for_each(assert_golden);
}

fn assert_golden((version, level): (u32, Compression)) {
    let source = FileSource::new(std::fs::File::open(path((version, level))).unwrap()).unwrap();
    let bytes = source.read_at(0, source.len() as usize).unwrap();
    let reader = Reader::open(Arc::new(source)).unwrap();
    let (schema, block) = (schema(), block());
    assert_eq!((reader.uid(), reader.schema().as_ref()), (UID, &schema));
    assert_eq!(reader.metadata().get("table").map(String::as_str), Some("SENSOR"));
    let verified = reader.verify().unwrap();
    assert_eq!((verified.stripes, verified.rows, verified.records), (2, 40, 239));
    let all = Projection::all(&schema);
    assert_rows(&schema, &reader.read_stripe(0, &all).unwrap(), &block, 0..25);
    assert_rows(&schema, &reader.read_stripe(1, &all).unwrap(), &block, 25..ROWS);
    assert_eq!(reader.stripes()[1].columns[0][0].range, Some((Scalar::UInt64(625), Scalar::UInt64(1521))));
    assert_eq!(reader.stripes()[0].columns[1][0].range, None, "a NaN is among them");
    assert_eq!(reader.stripes()[1].first_key, "meter012#2017-01");
    assert_eq!(open(&bytes).verify().unwrap(), verified);
    assert_eq!(reader.inspect().unwrap().version, version);
    assert!(version != VERSION || bytes == encoded(level), "a new encode differs from the golden file");
}
