//! Random schemas and blocks, each from one number.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, StringArray,
    TimestampMicrosecondArray, UInt64Array,
};
use tidetable_layout::block::Qualifiers;
use tidetable_layout::schema::{Encoding, KeyTail, Packed, PackedForm, QualifierKind, TailPart, TimestampKind};
use tidetable_layout::{Block, Column, FieldType, Group, GroupBlock, Keys, StoredSchema, ValueType};

/// A small generator of its own, so that a seed means the same block for ever.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `most`.
    pub(super) fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }

    pub(super) fn one_in(&mut self, most: u64) -> bool {
        self.below(most) == 0
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }
}

const TYPES: [ValueType; 12] = [
    ValueType::Empty,
    ValueType::Bytes,
    ValueType::Field(FieldType::UInt64),
    ValueType::Field(FieldType::Int64),
    ValueType::Field(FieldType::Float64),
    ValueType::Field(FieldType::Float64),
    ValueType::Field(FieldType::Decimal { precision: 10, scale: 2 }),
    ValueType::Field(FieldType::Decimal { precision: 38, scale: 5 }),
    ValueType::Field(FieldType::Text),
    ValueType::Field(FieldType::Bool),
    ValueType::Field(FieldType::Timestamp),
    ValueType::Field(FieldType::Date),
];

pub(super) fn schema(random: &mut Random) -> StoredSchema {
    let digits = |n| TailPart::Digits(n);
    let dash = || TailPart::Literal("-".to_owned());
    let tails = [vec![], vec![digits(8)], vec![digits(4), dash(), digits(2)], vec![digits(19)]];
    let groups = (0..random.below(4)).map(|_| {
        let dynamic = random.one_in(2);
        let columns = (0..1 + random.below(3)).map(|_| Column {
            family: "METER".to_owned(),
            qualifier: if dynamic { Vec::new() } else { b"kwh".to_vec() },
            value: random.pick(&TYPES),
            encoding: Encoding::Text,
            merge: Default::default(),
        });
        let columns = columns.collect();
        let timestamps = if random.one_in(3) { TimestampKind::Zero } else { TimestampKind::Stored };
        let form = match random.below(4) {
            0 => Some(PackedForm::Json),
            1 if !dynamic => Some(PackedForm::Repeated { fields: Vec::new(), number: 1 }),
            _ => None,
        };
        Group {
            qualifier: if dynamic { QualifierKind::Dynamic } else { QualifierKind::Constant },
            timestamps,
            packed: form.map(|form| Packed { family: "METER".to_owned(), qualifier: Vec::new(), form }),
            columns,
        }
    });
    StoredSchema { groups: groups.collect(), tail: KeyTail { parts: random.pick(&tails) }, upsert: false }
}

pub(super) fn block(schema: &StoredSchema, rows: usize, random: &mut Random) -> Block {
    let keys = keys(schema, rows, random);
    let groups = schema.groups.iter().map(|group| Some(group_block(group, rows, random))).collect();
    Block { keys, groups }
}

/// Cells of a block: values, or in a packed group records, or rows that have any.
pub(super) fn cells(schema: &StoredSchema, block: &Block) -> u64 {
    let of_group = |(group, block): (&Group, &GroupBlock)| match &group.packed {
        None => block.columns.iter().flatten().map(|array| array.len() - array.null_count()).sum(),
        Some(Packed { form: PackedForm::Repeated { .. }, .. }) => {
            (0..block.row_ends.len()).filter(|row| !block.records(*row).is_empty()).count()
        }
        Some(_) => block.len(),
    };
    schema.groups.iter().zip(block.groups.iter().flatten()).map(of_group).sum::<usize>() as u64
}

fn keys(schema: &StoredSchema, rows: usize, random: &mut Random) -> Keys {
    let mut keys = Keys::new(Arc::new(schema.tail.clone()));
    let counted = random.one_in(2);
    let a_prefix = if schema.tail.parts.is_empty() { 1 } else { 1 + random.below(9) };
    let (mut number, mut left) = (random.below(1000), 0);
    let mut tail = 0;
    for _ in 0..rows {
        if left == 0 {
            (number, left, tail) = (number + 1 + random.below(3), a_prefix, random.below(100));
        }
        let prefix = if counted {
            format!("m{number:08}#")
        } else {
            format!("{number:06}{}#", "xy".repeat(number as usize % 3))
        };
        keys.push(prefix.as_bytes(), tail);
        left -= 1;
        tail += 1 + random.below(5);
    }
    keys
}

fn group_block(group: &Group, rows: usize, random: &mut Random) -> GroupBlock {
    let names: Vec<Box<[u8]>> = (0..40).map(|i| format!("{:04}", i * 15).into_bytes().into()).collect();
    let dynamic = group.qualifier == QualifierKind::Dynamic;
    let stored = group.timestamps == TimestampKind::Stored;
    let (patterned, most) = (random.one_in(2), random.below(31));
    let has_gaps = random.one_in(2);
    let (mut row_ends, mut codes, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..rows {
        let base = random.below(3) as i64 * 1_000_000 + row as i64 * 86_400_000_000;
        let mut list: Vec<(u32, i64)> = (0..if patterned { most } else { random.below(most + 1) })
            .map(|i| match patterned {
                true => (if dynamic { i as u32 } else { 0 }, base - i as i64 * 900_000_000),
                false => (if dynamic { random.below(40) as u32 } else { 0 }, random.next() as i64 >> random.below(50)),
            })
            .collect();
        if random.one_in(10) {
            list.clear();
        }
        if has_gaps {
            list.retain(|_| !random.one_in(20));
        }
        if !stored {
            list.iter_mut().for_each(|record| record.1 = 0);
        }
        list.sort_by_key(|(code, time)| (*code, std::cmp::Reverse(*time)));
        list.dedup();
        codes.extend(list.iter().map(|record| record.0));
        times.extend(list.iter().map(|record| record.1));
        row_ends.push(codes.len() as u32);
    }
    let columns = group.columns.iter().map(|column| Some(array(column.value, codes.len(), random))).collect();
    GroupBlock {
        row_ends,
        qualifiers: dynamic.then_some(Qualifiers { dictionary: names, codes }),
        timestamps: stored.then_some(times),
        columns,
        sums: Vec::new(),
    }
}

/// Values of every kind of distribution that a codec takes.
fn array(kind: ValueType, len: usize, random: &mut Random) -> ArrayRef {
    let style = random.below(5);
    let gaps = random.pick(&[0, 0, 2, 5, 100, 1]);
    let blocks = random.one_in(3);
    let start = random.next() >> random.below(64);
    let mut bits = |index: usize| {
        let absent = gaps > 0 && if blocks { index / 700 % 2 == 1 } else { random.one_in(gaps) };
        let value = match style {
            0 => start,
            1 => start.wrapping_add(7 * index as u64),
            2 => random.below(9),
            3 => random.below(100_000),
            _ => random.next(),
        };
        (!absent).then_some(value)
    };
    let values: Vec<Option<u64>> = (0..len).map(&mut bits).collect();
    let values = values.into_iter();
    match kind {
        ValueType::Empty => Arc::new(values.map(|v| v.map(|_| true)).collect::<BooleanArray>()),
        ValueType::Bytes => {
            let values: Vec<_> = values.map(|v| v.map(|v| v.to_le_bytes()[..v as usize % 9].to_vec())).collect();
            Arc::new(values.iter().map(Option::as_deref).collect::<BinaryArray>())
        }
        ValueType::Field(field) => match field {
            FieldType::UInt64 => Arc::new(values.collect::<UInt64Array>()),
            FieldType::Int64 => Arc::new(values.map(|v| v.map(u64::cast_signed)).collect::<Int64Array>()),
            FieldType::Float64 => Arc::new(
                values
                    .map(|v| v.map(|v| if style == 3 { v as f64 / 1000.0 } else { f64::from_bits(v) }))
                    .collect::<Float64Array>(),
            ),
            FieldType::Decimal { precision, scale } => {
                let wide = precision > 18 && style == 4;
                let value = |v: u64| if wide { i128::from(v) << 40 } else { i128::from(v % 1_000_000) - 500_000 };
                let array = values.map(|v| v.map(value)).collect::<Decimal128Array>();
                Arc::new(array.with_precision_and_scale(precision, scale as i8).unwrap())
            }
            FieldType::Text => Arc::new(values.map(|v| v.map(|v| format!("state {v}"))).collect::<StringArray>()),
            FieldType::Bool => Arc::new(values.map(|v| v.map(|v| v % 3 == 0)).collect::<BooleanArray>()),
            FieldType::Timestamp => {
                let array = values.map(|v| v.map(u64::cast_signed)).collect::<TimestampMicrosecondArray>();
                Arc::new(array.with_timezone("UTC"))
            }
            FieldType::Date => Arc::new(values.map(|v| v.map(|v| v as i32)).collect::<Date32Array>()),
        },
    }
}

/// Meter id at timestamp 0, and a reading for each quarter of an hour.
pub(super) fn meter_schema() -> StoredSchema {
    let column = |qualifier: &[u8], kind| Column {
        family: "METER".to_owned(),
        qualifier: qualifier.to_vec(),
        value: ValueType::Field(kind),
        encoding: Encoding::Text,
        merge: Default::default(),
    };
    StoredSchema {
        tail: KeyTail { parts: vec![TailPart::Digits(8)] },
        groups: vec![
            Group {
                qualifier: QualifierKind::Constant,
                timestamps: TimestampKind::Zero,
                packed: None,
                columns: vec![column(b"ID", FieldType::UInt64)],
            },
            Group {
                qualifier: QualifierKind::Dynamic,
                timestamps: TimestampKind::Stored,
                packed: None,
                columns: vec![column(b"", FieldType::Float64)],
            },
        ],
        upsert: false,
    }
}

/// One day of `meters` meters with `readings` readings each.
pub(super) fn meters(meters: usize, readings: usize, random: &mut Random) -> Block {
    let mut keys = Keys::new(Arc::new(meter_schema().tail));
    (0..meters).for_each(|meter| keys.push(format!("{:010}#", meter + 1).as_bytes(), 20_170_726));
    let names = (0..readings).map(|i| format!("{:02}{:02}", i / 4, i % 4 * 15).into_bytes().into()).collect();
    let all = meters * readings;
    let load = |at: usize| (300.0 + (at % readings * 10) as f64 + random.below(200) as f64) / 1000.0;
    let values: Float64Array = (0..all).map(load).collect::<Vec<_>>().into();
    let start = 1_501_027_200_000_000;
    let id: UInt64Array = (1..=meters as u64).collect::<Vec<_>>().into();
    let ids = GroupBlock {
        row_ends: (1..=meters as u32).collect(),
        qualifiers: None,
        timestamps: None,
        columns: vec![Some(Arc::new(id))],
        sums: Vec::new(),
    };
    let loads = GroupBlock {
        row_ends: (1..=meters).map(|meter| (meter * readings) as u32).collect(),
        qualifiers: Some(Qualifiers { dictionary: names, codes: (0..all).map(|at| (at % readings) as u32).collect() }),
        timestamps: Some((0..all).map(|at| start + (at % readings) as i64 * 900_000_000).collect()),
        columns: vec![Some(Arc::new(values))],
        sums: Vec::new(),
    };
    Block { keys, groups: vec![Some(ids), Some(loads)] }
}
