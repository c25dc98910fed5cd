//! Templates from bytes: a layout that compiles lays rows out and reads back what it made.
//!
//! The lines of the input: the row key, then qualifier and value of each column. Before the row key may stand `h` or `n`
//! and a blank: windows of an hour, none; and `u ` for times in microseconds.
#![no_main]

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, UInt64Array,
};
use libfuzzer_sys::fuzz_target;
use tidetable_layout::block::Qualifiers;
use tidetable_layout::encode::{EncodedBatch, Encoder};
use tidetable_layout::spec::{ColumnSpec, FamilySpec, Granularity};
use tidetable_layout::{Block, Field, FieldType, GroupBlock, Keys, Layout, SourceSchema, TableSpec, Window};

fn source() -> SourceSchema {
    let fields = [
        ("u", FieldType::UInt64),
        ("i", FieldType::Int64),
        ("f", FieldType::Float64),
        ("d", FieldType::Decimal { precision: 12, scale: 3 }),
        ("s", FieldType::Text),
        ("b", FieldType::Bool),
        ("t", FieldType::Timestamp),
        ("day", FieldType::Date),
    ];
    let fields = fields.map(|(name, kind)| Field { name: name.to_owned(), kind });
    SourceSchema { fields: fields.to_vec(), time: 6 }
}

/// Rows with the usual and the least and greatest values.
fn rows(source: &SourceSchema) -> RecordBatch {
    let arrays: [ArrayRef; 8] = [
        Arc::new(UInt64Array::from(vec![Some(42), Some(u64::MAX), Some(0), None, Some(7)])),
        Arc::new(Int64Array::from(vec![Some(-42), Some(i64::MIN), Some(i64::MAX), None, Some(7)])),
        Arc::new(Float64Array::from(vec![Some(1.5), Some(-0.0), Some(f64::MAX), None, Some(5e-324)])),
        Arc::new(
            Decimal128Array::from(vec![Some(1500), Some(-999_999_999_999), Some(0), None, Some(7)])
                .with_precision_and_scale(12, 3)
                .expect("these fit"),
        ),
        Arc::new(StringArray::from(vec![Some("drive.google.com"), Some(""), Some("é#|!"), None, Some("a#b")])),
        Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true), Some(false)])),
        Arc::new(
            TimestampMicrosecondArray::from(vec![
                Some(1_501_027_200_000_001),
                Some(-1),
                Some(253_402_300_800_000_000),
                None,
                Some(0),
            ])
            .with_timezone("UTC"),
        ),
        Arc::new(Date32Array::from(vec![Some(17_373), Some(i32::MIN), Some(i32::MAX), None, Some(0)])),
    ];
    let columns = source.fields.iter().map(|field| field.name.as_str()).zip(arrays);
    RecordBatch::try_from_iter(columns).expect("they are as long as each other")
}

fn spec(text: &str) -> TableSpec {
    let mut lines = text.split('\n');
    let mut spec = TableSpec { name: "T".to_owned(), ..TableSpec::default() };
    let mut key = lines.next().unwrap_or_default();
    while let Some((letter, rest)) = key.split_once(' ').filter(|(letter, _)| ["h", "n", "u"].contains(letter)) {
        match letter {
            "h" => spec.window = Window::Hour,
            "n" => spec.window = Window::None,
            _ => spec.granularity = Granularity::Micros,
        }
        key = rest;
    }
    spec.row_key = key.to_owned();
    let mut columns = Vec::new();
    while let (Some(qualifier), value) = (lines.next(), lines.next().unwrap_or_default()) {
        columns.push(ColumnSpec { qualifier: qualifier.to_owned(), value: value.to_owned(), ..ColumnSpec::default() });
    }
    spec.families = vec![FamilySpec { name: "F".to_owned(), columns, ..FamilySpec::default() }];
    spec
}

/// The block of the one event of `laid`.
fn block(layout: &Layout, encoder: &Encoder<'_>, laid: &EncodedBatch) -> Block {
    let stored = layout.stored();
    let mut keys = Keys::new(Arc::new(stored.tail.clone()));
    keys.push(encoder.prefixes().get(laid.prefix[0]), laid.tail.first().copied().unwrap_or(0));
    let groups = laid.groups.iter().enumerate().map(|(at, group)| {
        // An event none of whose columns has a value has no record in the group.
        let present = group.columns.iter().any(|column| column.is_valid(0)) as u32;
        let cut = |column: &ArrayRef| Some(column.slice(0, present as usize));
        Some(GroupBlock {
            sums: Vec::new(),
            row_ends: vec![present],
            qualifiers: group.qualifier.as_ref().map(|codes| Qualifiers {
                // Only those that records have, as in a file.
                dictionary: codes[..present as usize]
                    .iter()
                    .map(|code| encoder.qualifiers(at).expect("it is dynamic").get(*code).into())
                    .collect(),
                codes: vec![0; present as usize],
            }),
            timestamps: group.timestamps.as_ref().map(|times| times[..present as usize].to_vec()),
            columns: group.columns.iter().map(cut).collect(),
        })
    });
    Block { keys, groups: groups.collect() }
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let source = source();
    let Ok(layout) = Layout::compile(&spec(text), &source) else { return };
    let _ = (layout.key_ranges(&[]), layout.record_order(), layout.fingerprint(), layout.rows_lie_in_one_window());
    let (batch, mut encoder) = (rows(&source), layout.encoder());
    let fields: Vec<usize> = (0..layout.records_schema().fields().len()).collect();
    for row in 0..batch.num_rows() {
        let laid = encoder.encode(&batch.slice(row, 1)).expect("the batch is of the source");
        assert_eq!(laid.prefix.len() + laid.rejected.len(), 1);
        if laid.prefix.is_empty() {
            continue;
        }
        let records = layout.decode(block(&layout, &encoder, &laid), &fields).expect("it was made by this layout");
        for name in ["u", "i", "f", "d", "s", "b", "day"] {
            let (Some(found), Some(given)) = (records.column_by_name(name), batch.column_by_name(name)) else {
                continue;
            };
            if records.num_rows() == 1 && found.is_valid(0) {
                assert_eq!(found.as_ref(), given.slice(row, 1).as_ref(), "column {name} of row {row}");
            }
        }
    }
});
