//! Files as a whole: round trips, ranges, corruption, the golden file.

mod corruption;
mod gaps;
mod generate;
mod golden;
mod late_materialisation;
mod outliers;
mod round_trip;
mod sums;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Date32Type, Float64Type, TimestampMicrosecondType};
use bytes::Bytes;
use tidetable_layout::schema::{Encoding, KeyTail, QualifierKind, TimestampKind};
use tidetable_layout::{Block, Column, FieldType, Group, GroupBlock, StoredSchema, ValueType};

use crate::file::{FileSummary, Reader, Writer};
use crate::options::WriteOptions;
use crate::stripe::encode_rows;

/// A file of `block` cut at `cuts`.
fn write(schema: &StoredSchema, block: &Block, cuts: &[Range<usize>], options: &WriteOptions) -> (Bytes, FileSummary) {
    let metadata = BTreeMap::from([("table".to_owned(), "SENSOR".to_owned())]);
    let mut writer = Writer::new(Vec::new(), Arc::new(schema.clone()), options.clone(), metadata).unwrap();
    for rows in cuts {
        writer.push(encode_rows(schema, options, block, rows.clone()).unwrap()).unwrap();
    }
    let (bytes, summary) = writer.finish().unwrap();
    (bytes.into(), summary)
}

fn open(bytes: &Bytes) -> Reader {
    Reader::open(Arc::new(bytes.clone())).unwrap()
}

/// A schema of one group of timestamped records, which have a value of each of these types.
fn schema_of(kinds: &[FieldType]) -> StoredSchema {
    let column = |(at, kind): (usize, &FieldType)| Column {
        family: "M".to_owned(),
        qualifier: format!("c{at}").into_bytes(),
        value: ValueType::Field(*kind),
        encoding: Encoding::Text,
        merge: Default::default(),
    };
    let group = Group {
        qualifier: QualifierKind::Constant,
        timestamps: TimestampKind::Stored,
        packed: None,
        columns: kinds.iter().enumerate().map(column).collect(),
    };
    StoredSchema { tail: KeyTail::default(), groups: vec![group], upsert: false }
}

/// One record: qualifier, timestamp, values.
type Record = (Option<Vec<u8>>, Option<i64>, Vec<Option<Option<String>>>);

fn records(group: &GroupBlock, row: usize) -> Vec<Record> {
    let record = |at: usize| {
        let name = group.qualifiers.as_ref().map(|names| names.dictionary[names.codes[at] as usize].to_vec());
        let time = group.timestamps.as_ref().map(|times| times[at]);
        let values = group.columns.iter().map(|array| array.as_ref().map(|array| display(array, at)));
        (name, time, values.collect())
    };
    group.records(row).map(record).collect()
}

fn display(array: &ArrayRef, at: usize) -> Option<String> {
    array.is_valid(at).then(|| match array.data_type() {
        DataType::Float64 => format!("{:016x}", array.as_primitive::<Float64Type>().value(at).to_bits()),
        DataType::Timestamp(..) => array.as_primitive::<TimestampMicrosecondType>().value(at).to_string(),
        DataType::Date32 => array.as_primitive::<Date32Type>().value(at).to_string(),
        _ => arrow::util::display::array_value_to_string(array, at).unwrap(),
    })
}

/// A key and the records of each group.
type Row = (Vec<u8>, Vec<Option<Vec<Record>>>);

/// The rows `rows` of a block, spelled out.
fn spell(block: &Block, rows: Range<usize>) -> Vec<Row> {
    let groups = |row| block.groups.iter().map(|group| group.as_ref().map(|group| records(group, row))).collect();
    rows.map(|row| (block.keys.get(row), groups(row))).collect()
}

/// Panics unless `found` holds the rows `rows` of `block`, with arrays of the types of `schema`.
fn assert_rows(schema: &StoredSchema, found: &Block, block: &Block, rows: Range<usize>) {
    assert_eq!(spell(found, 0..found.keys.len()), spell(block, rows));
    for (group, found) in schema.groups.iter().zip(&found.groups) {
        let Some(found) = found else { continue };
        for (column, array) in group.columns.iter().zip(&found.columns) {
            let Some(array) = array else { continue };
            assert_eq!((array.data_type(), array.len()), (&column.value.arrow(), found.len()));
        }
    }
}
