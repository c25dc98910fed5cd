//! Test fixtures, and a reference loader in place of `tidetable-ingest`: encodes batches and sorts their events into
//! one block. Among equal (row, column, timestamp) the later input event wins. Does not implement aggregate families or
//! `upsert`; orders duplicates by content, not arrival.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, UInt64Array,
};
use arrow::compute::interleave;
use arrow::datatypes::{Field as ArrowField, Schema};

use crate::block::{Block, GroupBlock, Keys, Qualifiers};
use crate::cell::write_cell;
use crate::encode::{EncodedBatch, Encoder};
use crate::plan::Layout;
use crate::scalar::ColumnView;
use crate::schema::FieldType;
use crate::spec::{ColumnSpec, FamilySpec, Field, SourceSchema, TableSpec};

/// Microseconds per millisecond.
pub(super) const MS: i64 = 1000;
/// 2021-03-05T12:00:00Z, a Friday of ISO week 9, in microseconds since the epoch.
pub(super) const NOON: i64 = 1_614_945_600_000_000;

pub(super) fn source(fields: &[(&str, FieldType)], time: &str) -> SourceSchema {
    let fields: Vec<Field> =
        fields.iter().map(|(name, kind)| Field { name: (*name).to_owned(), kind: *kind }).collect();
    let time = fields.iter().position(|field| field.name == time).unwrap();
    SourceSchema { fields, time }
}

pub(super) fn column(qualifier: &str, value: &str) -> ColumnSpec {
    ColumnSpec { qualifier: qualifier.into(), value: value.into(), ..ColumnSpec::default() }
}

pub(super) fn table(row_key: &str, families: &[(&str, &[(&str, &str)])]) -> TableSpec {
    let families = families
        .iter()
        .map(|(name, columns)| FamilySpec {
            name: (*name).to_owned(),
            columns: columns.iter().map(|(qualifier, value)| column(qualifier, value)).collect(),
            ..FamilySpec::default()
        })
        .collect();
    TableSpec { name: "T".into(), row_key: row_key.into(), families, ..TableSpec::default() }
}

/// Instants in microseconds since the epoch.
pub(super) fn times(values: &[i64]) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from(values.to_vec()).with_timezone("UTC"))
}

pub(super) fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

pub(super) fn uints(values: &[u64]) -> ArrayRef {
    Arc::new(UInt64Array::from(values.to_vec()))
}

pub(super) fn ints(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

pub(super) fn floats(values: &[Option<f64>]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

pub(super) fn bools(values: &[bool]) -> ArrayRef {
    Arc::new(BooleanArray::from(values.to_vec()))
}

pub(super) fn decimals(values: &[i128]) -> ArrayRef {
    Arc::new(Decimal128Array::from(values.to_vec()).with_precision_and_scale(10, 2).unwrap())
}

pub(super) fn batch(source: &SourceSchema, columns: Vec<ArrayRef>) -> RecordBatch {
    let fields: Vec<ArrowField> =
        source.fields.iter().map(|field| ArrowField::new(&field.name, field.kind.arrow(), true)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

/// A table with a row for each meter and day, and a column for each time of day; its source has `meter`, `ts` and `kwh`.
pub(super) fn meters() -> (TableSpec, SourceSchema) {
    let spec = table("{meter:010}#{ts:%Y%m%d}", &[("METER", &[("ID", "{meter}"), ("{ts:%H%M}", "{kwh}")])]);
    let fields = [("meter", FieldType::UInt64), ("ts", FieldType::Timestamp), ("kwh", FieldType::Float64)];
    (spec, source(&fields, "ts"))
}

/// The row key of an event: its prefix and the digits of its tail.
pub(super) fn key_of(layout: &Layout, encoder: &Encoder<'_>, encoded: &EncodedBatch, event: usize) -> Vec<u8> {
    let mut key = encoder.prefixes().get(encoded.prefix[event]).to_vec();
    layout.stored().tail.write(encoded.tail.get(event).copied().unwrap_or(0), &mut key);
    key
}

/// Encodes `batches` and sorts their events into one block. Rejected rows are left out.
pub(super) fn load(layout: &Layout, batches: &[RecordBatch]) -> Block {
    let mut encoder = layout.encoder();
    let encoded: Vec<EncodedBatch> = batches.iter().map(|batch| encoder.encode(batch).unwrap()).collect();
    let events: Vec<(usize, usize)> = encoded
        .iter()
        .enumerate()
        .flat_map(|(batch, encoded)| (0..encoded.prefix.len()).map(move |event| (batch, event)))
        .collect();
    let mut rows: BTreeMap<Vec<u8>, (Vec<u8>, u64)> = BTreeMap::new();
    for (batch, event) in &events {
        let prefix = encoder.prefixes().get(encoded[*batch].prefix[*event]).to_vec();
        let tail = encoded[*batch].tail.get(*event).copied().unwrap_or(0);
        rows.insert(key_of(layout, &encoder, &encoded[*batch], *event), (prefix, tail));
    }
    let mut keys = Keys::new(Arc::new(layout.stored().tail.clone()));
    rows.values().for_each(|(prefix, tail)| keys.push(prefix, *tail));
    let row_of: BTreeMap<&Vec<u8>, usize> = rows.keys().enumerate().map(|(row, key)| (key, row)).collect();

    let mut groups = Vec::new();
    for (group, stored) in layout.stored().groups.iter().enumerate() {
        // Maps each record to the (batch, event) that supplies each column; `None` is null. Normally events with equal
        // (row, qualifier, timestamp) form one record. In a group that keeps duplicates, the content is part of the
        // key, so only identical events merge.
        type RecordKey = (usize, Vec<u8>, Reverse<i64>, Vec<u8>);
        let mut records: BTreeMap<RecordKey, Vec<Option<(usize, usize)>>> = BTreeMap::new();
        for (batch, event) in &events {
            let own = &encoded[*batch].groups[group];
            if own.columns.iter().all(|column| column.is_null(*event)) {
                continue;
            }
            let row = row_of[&key_of(layout, &encoder, &encoded[*batch], *event)];
            let qualifier = own
                .qualifier
                .as_ref()
                .map_or_else(Vec::new, |codes| encoder.qualifiers(group).unwrap().get(codes[*event]).to_vec());
            let time = own.timestamps.as_ref().map_or(0, |times| times[*event]);
            let content = if stored.keeps_duplicates() { content(&own.columns, *event) } else { Vec::new() };
            let picks = records
                .entry((row, qualifier, Reverse(time), content))
                .or_insert_with(|| vec![None; stored.columns.len()]);
            // Columns are separate cells, and a null leaves the older value. A packed group is one cell, so the later
            // event replaces all fields.
            for (pick, column) in picks.iter_mut().zip(&own.columns) {
                if column.is_valid(*event) || stored.packed.is_some() {
                    *pick = Some((*batch, *event));
                }
            }
        }
        let columns = (0..stored.columns.len()).map(|column| {
            let nothing = arrow::array::new_null_array(&stored.columns[column].value.arrow(), 1);
            let mut arrays: Vec<&dyn Array> =
                encoded.iter().map(|encoded| encoded.groups[group].columns[column].as_ref()).collect();
            arrays.push(nothing.as_ref());
            let picks: Vec<(usize, usize)> =
                records.values().map(|picks| picks[column].unwrap_or((arrays.len() - 1, 0))).collect();
            Some(interleave(&arrays, &picks).unwrap())
        });
        let columns = columns.collect();
        let mut row_ends = vec![0u32; rows.len()];
        records.keys().for_each(|(row, ..)| row_ends[*row] += 1);
        let mut end = 0;
        for slot in &mut row_ends {
            end += *slot;
            *slot = end;
        }
        let dynamic = encoded.first().is_some_and(|encoded| encoded.groups[group].qualifier.is_some());
        let mut dictionary: Vec<Box<[u8]>> =
            records.keys().map(|(_, qualifier, ..)| qualifier.clone().into()).collect();
        dictionary.sort();
        dictionary.dedup();
        let code = |qualifier: &[u8]| dictionary.binary_search_by(|own| (**own).cmp(qualifier)).unwrap() as u32;
        let codes = records.keys().map(|(_, qualifier, ..)| code(qualifier)).collect();
        let stored_times = encoded.first().is_some_and(|encoded| encoded.groups[group].timestamps.is_some());
        let timestamps = stored_times.then(|| records.keys().map(|(_, _, time, _)| time.0).collect());
        let qualifiers = dynamic.then_some(Qualifiers { dictionary, codes });
        groups.push(Some(GroupBlock { row_ends, qualifiers, timestamps, columns, sums: Vec::new() }));
    }
    Block { keys, groups }
}

/// The values of an event as bytes.
fn content(columns: &[ArrayRef], event: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for column in columns {
        out.push(u8::from(column.is_valid(event)));
        if let Some(scalar) = ColumnView::new(column.as_ref()).get(event) {
            scalar.write_text(&mut crate::time::calendar::Calendar::default(), &mut out);
        }
    }
    out
}

/// The block with only what `layout.projection(fields)` asks for.
pub(super) fn project(layout: &Layout, block: &Block, fields: &[usize]) -> Block {
    let projection = layout.projection(fields);
    let groups = block.groups.iter().zip(&projection.groups).map(|(group, wanted)| {
        let (mut group, wanted) = (group.clone()?, wanted.as_ref()?);
        group.qualifiers = group.qualifiers.filter(|_| wanted.qualifiers);
        group.timestamps = group.timestamps.filter(|_| wanted.timestamps);
        for (column, wanted) in group.columns.iter_mut().zip(&wanted.columns) {
            *column = column.take().filter(|_| *wanted);
        }
        Some(group)
    });
    Block { keys: block.keys.clone(), groups: groups.collect() }
}

/// Every cell as `key family:qualifier=value @ms`, in order.
pub(super) fn cells(layout: &Layout, batch: &RecordBatch) -> Vec<String> {
    let block = load(layout, std::slice::from_ref(batch));
    let mut out = Vec::new();
    for row in 0..block.keys.len() {
        let key = String::from_utf8_lossy(&block.keys.get(row)).into_owned();
        for (group, stored) in block.groups.iter().zip(&layout.stored().groups) {
            let group = group.as_ref().unwrap();
            for record in group.records(row) {
                for (array, column) in group.columns.iter().zip(&stored.columns) {
                    let array = array.as_ref().unwrap();
                    if array.is_null(record) {
                        continue;
                    }
                    let qualifier = match &group.qualifiers {
                        Some(own) => own.dictionary[own.codes[record] as usize].to_vec(),
                        None => column.qualifier.clone(),
                    };
                    let mut value = Vec::new();
                    write_cell(column, array.as_ref(), record, &mut value);
                    let time = group.timestamps.as_ref().map_or(0, |times| times[record]) / MS;
                    let (qualifier, value) = (String::from_utf8_lossy(&qualifier), String::from_utf8_lossy(&value));
                    out.push(format!("{key} {}:{qualifier}={value} @{time}", column.family));
                }
            }
        }
    }
    out
}

/// The rows of a batch as text, nulls as `-`.
pub(super) fn lines(batch: &RecordBatch) -> Vec<String> {
    let views: Vec<ColumnView<'_>> = batch.columns().iter().map(|column| ColumnView::new(column.as_ref())).collect();
    (0..batch.num_rows())
        .map(|row| {
            let values = views.iter().map(|view| match view.get(row) {
                None => "-".to_owned(),
                Some(scalar) => {
                    let mut text = Vec::new();
                    scalar.write_text(&mut crate::time::calendar::Calendar::default(), &mut text);
                    String::from_utf8(text).unwrap()
                }
            });
            values.collect::<Vec<_>>().join(" | ")
        })
        .collect()
}

/// Decodes all records of a block. Checks that decoding no field gives as many records, and decoding each field alone
/// the same values, in any order.
pub(super) fn decode_checked(layout: &Layout, block: &Block) -> RecordBatch {
    let count = layout.records_schema().fields().len();
    let all: Vec<usize> = (0..count).collect();
    let whole = layout.decode(project(layout, block, &all), &all).unwrap();
    assert_eq!(layout.decode(project(layout, block, &[]), &[]).unwrap().num_rows(), whole.num_rows());
    for field in all {
        let one = layout.decode(project(layout, block, &[field]), &[field]).unwrap();
        let expected = whole.project(&[field]).unwrap();
        let (mut one, mut expected) = (lines(&one), lines(&expected));
        one.sort();
        expected.sort();
        assert_eq!(one, expected);
    }
    whole
}
