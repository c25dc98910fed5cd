use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Fields};
use arrow::util::display::array_value_to_string;

use crate::columnar::{Lists, columns};

/// Hosts with lists of samples, one of which is null, and of marks as long but for the last.
fn batch() -> RecordBatch {
    let fields = Fields::from(vec![Field::new("t", DataType::Int64, true), Field::new("v", DataType::Int64, true)]);
    let times: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
    let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(10), None, Some(30), Some(40)]));
    let samples = StructArray::try_new(fields, vec![times, values], None).unwrap();
    let item = Arc::new(Field::new("item", samples.data_type().clone(), true));
    let nulls = NullBuffer::from(vec![true, true, false, true]);
    let samples =
        ListArray::try_new(item, OffsetBuffer::from_lengths([2, 0, 0, 2]), Arc::new(samples), Some(nulls)).unwrap();
    let item = Arc::new(Field::new("item", DataType::Utf8, true));
    let marks: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c", "d", "e"]));
    let marks = ListArray::try_new(item, OffsetBuffer::from_lengths([2, 0, 0, 3]), marks, None).unwrap();
    let hosts: ArrayRef = Arc::new(StringArray::from(vec!["w", "x", "y", "z"]));
    RecordBatch::try_from_iter_with_nullable([
        ("host", hosts, true),
        ("samples", Arc::new(samples) as ArrayRef, true),
        ("marks", Arc::new(marks) as ArrayRef, true),
    ])
    .unwrap()
}

#[test]
fn elements_of_lists_are_rows() {
    let lists = Lists::new(vec!["samples".to_owned()]);
    let exploded = lists.explode(batch()).unwrap();
    assert_eq!(exploded.records, Some(vec![0, 0, 3, 3]));
    let faults: Vec<_> = exploded.faults.iter().map(|(row, reason)| format!("{row} {reason}")).collect();
    assert_eq!(faults, ["2 there is no list \"samples\", which `each` names"]);
    let names: Vec<_> = columns(&exploded.batch.schema(), None).into_iter().map(|column| column.name).collect();
    assert_eq!(names, ["host", "samples.t", "samples.v", "marks"]);
    assert_eq!(lists.schema(&batch().schema()).unwrap(), exploded.batch.schema());
    let rows = (0..4).map(|row| {
        let text = |column: usize| array_value_to_string(exploded.batch.column(column), row).unwrap();
        format!("{} {}", text(0), text(1))
    });
    assert_eq!(rows.collect::<Vec<_>>(), ["w {t: 1, v: 10}", "w {t: 2, v: }", "z {t: 3, v: 30}", "z {t: 4, v: 40}"]);
}

#[test]
fn lists_go_side_by_side() {
    let lists = Lists::new(vec!["samples".to_owned(), "marks".to_owned()]);
    let exploded = lists.explode(batch()).unwrap();
    assert_eq!(exploded.records, Some(vec![0, 0]));
    let faults: Vec<_> = exploded.faults.iter().map(|(row, reason)| format!("{row} {reason}")).collect();
    assert_eq!(faults[1], "3 the lists of `each` have different lengths: 2 and 3");
    assert_eq!(Lists::new(vec!["host".to_owned()]).missing(&batch().schema()), Some("host"));
    assert!(lists.missing(&batch().schema()).is_none() && lists.is_root("marks") && !lists.is_root("mark"));
}

#[test]
fn lists_inside_structs_and_lists_are_taken_from_the_outside_in() {
    let inner = batch();
    let inner_fields = inner.schema().fields().clone();
    let all = StructArray::try_new(inner_fields, inner.columns().to_vec(), None).unwrap();
    let item = Arc::new(Field::new("item", all.data_type().clone(), true));
    let groups = ListArray::try_new(item, OffsetBuffer::from_lengths([1, 3]), Arc::new(all), None).unwrap();
    let fields = Fields::from(vec![Field::new("groups", groups.data_type().clone(), true)]);
    let site = StructArray::try_new(fields, vec![Arc::new(groups)], None).unwrap();
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![7, 8]));
    let batch =
        RecordBatch::try_from_iter_with_nullable([("id", ids, true), ("site", Arc::new(site) as ArrayRef, true)])
            .unwrap();
    let lists = Lists::new(vec!["site.groups.samples".to_owned()]);
    assert!(lists.missing(&batch.schema()).is_none());
    let exploded = lists.explode(batch).unwrap();
    assert_eq!((exploded.records, exploded.faults.len()), (Some(vec![0, 0, 1, 1]), 1));
    let names: Vec<_> = columns(&exploded.batch.schema(), None).into_iter().map(|column| column.name).collect();
    assert!(names.contains(&"site.groups.samples.v".to_owned()), "{names:?}");
}
