//! Tombstones on blocks, encoded chunks and packed cells.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array};
use tidetable_layout::schema::{
    Encoding, KeyTail, MessageField, Packed, PackedForm, ProtoType, QualifierKind, TimestampKind,
};
use tidetable_layout::{Block, Column, FieldType, Group, GroupBlock, Keys, StoredSchema, ValueType};

use super::{TombstoneFilter, cells_of};
use crate::gc::{GcFilter, GcRule};
use crate::merge::slice_block;
use crate::tombstone::count;
use crate::version::DeleteTarget;

const FIELDS: [&str; 2] = ["a", "b"];

/// One packed group of two fields, with timestamps.
fn schema(form: PackedForm) -> StoredSchema {
    let column = |name: &str| Column {
        family: "F".to_owned(),
        qualifier: name.as_bytes().to_vec(),
        value: ValueType::Field(FieldType::Int64),
        encoding: Encoding::Text,
        merge: Default::default(),
    };
    let packed = Packed { family: "F".to_owned(), qualifier: b"blob".to_vec(), form };
    let group = Group {
        qualifier: QualifierKind::Constant,
        timestamps: TimestampKind::Stored,
        packed: Some(packed),
        columns: FIELDS.map(column).to_vec(),
    };
    StoredSchema { tail: KeyTail::default(), groups: vec![group], upsert: false }
}

fn repeated() -> PackedForm {
    let field = |(at, name): (usize, &&str)| MessageField {
        name: (*name).to_owned(),
        number: at as u32 + 1,
        kind: ProtoType::Int64,
    };
    PackedForm::Repeated { fields: FIELDS.iter().enumerate().map(field).collect(), number: 1 }
}

/// Rows `r0` and `r1`, with records at times 3, 2, 1; only the first of each has field `b`.
fn block() -> Block {
    let mut keys = Keys::new(Arc::default());
    keys.push(b"r0", 0);
    keys.push(b"r1", 0);
    let a: ArrayRef = Arc::new(Int64Array::from(vec![13, 12, 11, 23, 22, 21]));
    let b: ArrayRef = Arc::new(Int64Array::from(vec![Some(3), None, None, Some(3), None, None]));
    let group = GroupBlock {
        row_ends: vec![3, 6],
        qualifiers: None,
        timestamps: Some(vec![3, 2, 1, 3, 2, 1]),
        columns: vec![Some(a), Some(b)],
        sums: Vec::new(),
    };
    Block { keys, groups: vec![Some(group)] }
}

fn column(times: Option<std::ops::Range<i64>>) -> DeleteTarget {
    DeleteTarget::Column { key: b"r0".to_vec(), family: "F".to_owned(), qualifier: b"blob".to_vec(), times }
}

/// The remaining rows, with the times of their records.
fn left(block: &Block) -> Vec<(Vec<u8>, Vec<i64>)> {
    let group = block.groups[0].as_ref().unwrap();
    let times = group.timestamps.as_ref().unwrap();
    (0..block.keys.len()).map(|row| (block.keys.get(row), times[group.records(row)].to_vec())).collect()
}

fn masked(form: PackedForm, target: DeleteTarget) -> Vec<(Vec<u8>, Vec<i64>)> {
    let mask = TombstoneFilter::new([target].iter()).unwrap();
    left(&mask.apply(&schema(form), block()).unwrap())
}

#[test]
fn a_packed_cell_goes_with_all_its_fields() {
    let (r0, r1) = (b"r0".to_vec(), b"r1".to_vec());
    assert_eq!(masked(PackedForm::Json, column(Some(2..3))), [(r0.clone(), vec![3, 1]), (r1.clone(), vec![3, 2, 1])]);
    assert_eq!(masked(PackedForm::Json, column(None)), [(r1.clone(), vec![3, 2, 1])]);
    // One cell for the row, at timestamp 0.
    assert_eq!(masked(repeated(), column(Some(0..1))), [(r1.clone(), vec![3, 2, 1])]);
    assert_eq!(masked(repeated(), column(Some(1..9)))[0], (r0, vec![3, 2, 1]));
    let row = DeleteTarget::Row { key: b"r1".to_vec() };
    assert_eq!(masked(repeated(), row).len(), 1);
}

#[test]
fn packed_cells_are_counted_as_cells() {
    assert_eq!(cells_of(&schema(PackedForm::Json), &block()), 6);
    assert_eq!(cells_of(&schema(repeated()), &block()), 2);
    let row = slice_block(&block(), 0..1);
    assert_eq!(count::hidden(&schema(PackedForm::Json), &row, &column(Some(2..9))), (1, 2));
    assert_eq!(count::hidden(&schema(repeated()), &row, &column(Some(0..9))), (1, 1));
    assert_eq!(count::hidden(&schema(repeated()), &row, &column(Some(1..9))), (0, 0));
}

#[test]
fn rules_judge_packed_cells_as_cells() {
    let collected = |form: PackedForm, rule: &str, now: i64| {
        let (schema, rules) = (schema(form), [("F".to_owned(), GcRule::parse(rule).unwrap())].into());
        let collector = GcFilter::new(&schema, &rules, now).unwrap();
        let block = collector.apply(&schema, block()).unwrap();
        for group in block.groups.iter().flatten() {
            assert!(group.columns.iter().flatten().all(|values| values.len() == group.len()));
        }
        left(&block).into_iter().map(|(_, times)| times).collect::<Vec<_>>()
    };
    // A record is a version, whichever of its fields it has.
    assert_eq!(collected(PackedForm::Json, "maxversions=2", 0), [[3, 2], [3, 2]]);
    assert_eq!(collected(PackedForm::Json, "maxage=1ms", 1002), [[3, 2], [3, 2]]);
    // All records of the row are one version at timestamp 0.
    assert_eq!(collected(repeated(), "maxversions=1", 0).len(), 2);
    assert_eq!(collected(repeated(), "maxage=1ms", 1000), [[3, 2, 1], [3, 2, 1]]);
    assert!(collected(repeated(), "maxage=1ms", 1001).is_empty());
    assert!(collected(repeated(), "maxversions=1 or maxage=1ms", 1001).is_empty());
}

#[test]
fn rows_are_hidden_by_range() {
    let mask = |targets: &[DeleteTarget]| TombstoneFilter::new(targets.iter()).unwrap();
    let prefix = |text: &str| DeleteTarget::Prefix { prefix: text.into() };
    let both = mask(&[prefix("r1"), prefix("r")]);
    assert!(both.hides_all(b"r0", b"r1") && !both.hides_all(b"q", b"r1"));
    assert_eq!(both.apply(&schema(PackedForm::Json), block()).unwrap().keys.len(), 0);
    let one = mask(&[prefix("r0")]).apply(&schema(PackedForm::Json), block()).unwrap();
    assert_eq!(left(&one), [(b"r1".to_vec(), vec![3, 2, 1])]);
    assert!(TombstoneFilter::new([].into_iter()).is_none());
}
