//! The merge against a model: cells in a BTreeMap, the last written wins.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array};
use arrow::datatypes::Int64Type;
use proptest::prelude::*;
use tidetable_layout::block::Qualifiers;
use tidetable_layout::schema::{Encoding, KeyTail, QualifierKind, TailPart, TimestampKind};
use tidetable_layout::{Block, Column, FieldType, Group, GroupBlock, Keys, StoredSchema, ValueType};

use super::Merge;
use crate::error::Result;
use crate::merge::gather;

/// (prefix, tail), group, qualifier, newest first, column.
type CellKey = ((String, u64), usize, String, Reverse<i64>, usize);
type Cells = BTreeMap<CellKey, i64>;

fn column(qualifier: &str) -> Column {
    Column {
        family: "F".to_owned(),
        qualifier: qualifier.as_bytes().to_vec(),
        value: ValueType::Field(FieldType::Int64),
        encoding: Encoding::Text,
        merge: Default::default(),
    }
}

/// A group at timestamp 0, one with versions, one with qualifiers as data; two columns each.
fn schema() -> StoredSchema {
    let group =
        |qualifier, timestamps| Group { qualifier, timestamps, packed: None, columns: vec![column("a"), column("b")] };
    StoredSchema {
        tail: KeyTail { parts: vec![TailPart::Digits(2)] },
        groups: vec![
            group(QualifierKind::Constant, TimestampKind::Zero),
            group(QualifierKind::Constant, TimestampKind::Stored),
            group(QualifierKind::Dynamic, TimestampKind::Stored),
        ],
        upsert: false,
    }
}

/// Row, qualifier, timestamp, a value for each column.
type Record<'a> = (&'a (String, u64), &'a str, i64, [Option<i64>; 2]);

/// The block that holds `cells`.
fn block(cells: &Cells) -> Block {
    let schema = schema();
    let mut keys = Keys::new(Arc::new(schema.tail.clone()));
    let mut rows: Vec<&(String, u64)> = cells.keys().map(|key| &key.0).collect();
    rows.dedup();
    rows.iter().for_each(|row| keys.push(row.0.as_bytes(), row.1));
    let groups =
        schema.groups.iter().enumerate().map(|(at, group)| Some(group_block(at, group, &rows, cells))).collect();
    Block { keys, groups }
}

fn group_block(at: usize, group: &Group, rows: &[&(String, u64)], cells: &Cells) -> GroupBlock {
    let mut records: Vec<Record<'_>> = Vec::new();
    for ((row, _, qualifier, Reverse(timestamp), column), value) in cells.iter().filter(|(key, _)| key.1 == at) {
        match records.last_mut().filter(|last| (last.0, last.1, last.2) == (row, qualifier.as_str(), *timestamp)) {
            Some(record) => record.3[*column] = Some(*value),
            None => {
                let mut values = [None, None];
                values[*column] = Some(*value);
                records.push((row, qualifier, *timestamp, values));
            }
        }
    }
    let ends = |row: &(String, u64)| records.iter().filter(|record| record.0 <= row).count() as u32;
    let mut dictionary: Vec<Box<[u8]>> = records.iter().map(|record| record.1.as_bytes().into()).collect();
    dictionary.sort();
    dictionary.dedup();
    let code =
        |qualifier: &str| dictionary.iter().position(|name| name.as_ref() == qualifier.as_bytes()).unwrap() as u32;
    let codes = records.iter().map(|record| code(record.1)).collect();
    let values =
        |column: usize| -> ArrayRef { Arc::new(Int64Array::from_iter(records.iter().map(|record| record.3[column]))) };
    GroupBlock {
        row_ends: rows.iter().map(|row| ends(row)).collect(),
        timestamps: (group.timestamps == TimestampKind::Stored).then(|| records.iter().map(|r| r.2).collect()),
        columns: vec![Some(values(0)), Some(values(1))],
        qualifiers: (group.qualifier == QualifierKind::Dynamic).then_some(Qualifiers { dictionary, codes }),
        sums: Vec::new(),
    }
}

/// The cells a block holds.
fn cells(block: &Block) -> Cells {
    let mut cells = Cells::new();
    for row in 0..block.keys.len() {
        let (prefix, tail) = block.keys.parts(row);
        let key = (String::from_utf8(prefix.to_vec()).unwrap(), tail);
        for (at, group) in block.groups.iter().enumerate() {
            let group = group.as_ref().unwrap();
            for record in group.records(row) {
                let qualifier = group.qualifiers.as_ref().map_or("", |qualifiers| {
                    std::str::from_utf8(&qualifiers.dictionary[qualifiers.codes[record] as usize]).unwrap()
                });
                let timestamp = group.timestamps.as_ref().map_or(0, |timestamps| timestamps[record]);
                for (column, values) in group.columns.iter().enumerate() {
                    let values = values.as_ref().unwrap();
                    if values.is_valid(record) {
                        let value = arrow::array::AsArray::as_primitive::<Int64Type>(values).value(record);
                        let cell = (key.clone(), at, qualifier.to_owned(), Reverse(timestamp), column);
                        assert!(cells.insert(cell, value).is_none(), "a cell twice");
                    }
                }
            }
        }
    }
    cells
}

/// Splits a block every `rows` rows, like the stripes of an SST.
fn stripes(block: &Block, rows: usize) -> Vec<Result<Block>> {
    let starts = (0..block.keys.len()).step_by(rows);
    starts.map(|start| Ok(gather::slice_block(block, start..(start + rows).min(block.keys.len())))).collect()
}

fn any_cell() -> impl Strategy<Value = (CellKey, i64)> {
    let key = ("[abc]", 0u64..4, 0usize..3, "[xyz]", 0i64..3, 0usize..2);
    (key, any::<i64>()).prop_map(|((prefix, tail, group, qualifier, timestamp, column), value)| {
        let qualifier = if group == 2 { qualifier } else { String::new() };
        let timestamp = if group == 0 { 0 } else { timestamp * 1000 };
        (((format!("{prefix}#"), tail), group, qualifier, Reverse(timestamp), column), value)
    })
}

proptest! {
    #[test]
    fn a_merge_holds_what_was_written_last(
        sources in prop::collection::vec(prop::collection::vec(any_cell(), 0..40), 1..5),
        rows in 1usize..4,
    ) {
        let mut expected = Cells::new();
        let mut inputs = Vec::new();
        for (order, source) in sources.iter().enumerate() {
            let written: Cells = source.iter().cloned().collect();
            expected.extend(written.clone());
            inputs.push((order as u64, stripes(&block(&written), rows).into_iter()));
        }
        // The sequence number of a source decides, not its position in the list.
        inputs.reverse();
        let mut merged = Cells::new();
        let mut last: Option<Vec<u8>> = None;
        for block in Merge::new(Arc::new(schema()), inputs) {
            let block = block.unwrap();
            for row in 0..block.keys.len() {
                let key = block.keys.get(row);
                prop_assert!(last.as_ref().is_none_or(|last| *last < key), "rows out of order");
                last = Some(key);
            }
            merged.extend(cells(&block));
        }
        prop_assert_eq!(merged, expected);
    }
}
