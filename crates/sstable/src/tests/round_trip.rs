//! What is written is what is read.

use proptest::prelude::*;
use tidetable_layout::Projection;
use tidetable_layout::block::GroupProjection;
use tidetable_layout::schema::{Packed, PackedForm};

use crate::error::WriteError;
use crate::file::{Reader, Writer};
use crate::options::{Compression, StripeLimits, WriteOptions};
use crate::stripe::{encode_rows, stripe_splits};

use super::generate::{self, Random};
use super::{assert_rows, open, spell, write};

fn check(seed: u64, rows: usize) {
    let mut random = Random(seed);
    let schema = generate::schema(&mut random);
    let block = generate::block(&schema, rows, &mut random);
    let level = if seed.is_multiple_of(3) { Compression::Dense } else { Compression::Fresh };
    let stripe = StripeLimits { cells: 2000, bytes: 200_000, rows: 150 };
    let options = WriteOptions { uid: u128::from(seed), level, stripe };
    let cuts: Vec<_> = if seed.is_multiple_of(2) {
        std::iter::once(0..rows).collect()
    } else {
        stripe_splits(&schema, &block, &stripe)
    };
    let (bytes, summary) = write(&schema, &block, &cuts, &options);
    let reader = open(&bytes);
    let all = Projection::all(&schema);
    assert_eq!((summary.rows, summary.bytes), (rows as u64, bytes.len() as u64));
    assert_eq!(summary.checksum, xxhash_rust::xxh3::xxh3_128(&bytes));
    assert_eq!((summary.first_key, summary.last_key), (block.keys.get(0), block.keys.get(rows - 1)));
    let verified = reader.verify().unwrap();
    assert_eq!((verified.rows, verified.cells), (summary.rows, summary.cells));
    assert_eq!(summary.cells, generate::cells(&schema, &block));
    assert!((0..rows).all(|row| reader.may_contain(&block.keys.get(row))));
    for (index, cut) in cuts.iter().enumerate() {
        assert_rows(&schema, &reader.read_stripe(index, &all).unwrap(), &block, cut.clone());
        for _ in 0..4 {
            let (a, b) = (random.below(rows as u64) as usize, random.below(rows as u64) as usize);
            let (start, mut end) = (block.keys.get(a.min(b)), block.keys.get(a.max(b)));
            end.push(0);
            let inside = a.min(b).clamp(cut.start, cut.end)..(a.max(b) + 1).clamp(cut.start, cut.end);
            let found = reader.read_rows(index, &start, Some(&end), &all).unwrap();
            assert_rows(&schema, &found, &block, inside.clone());
            let overlaps = reader.stripes_in(&start, Some(&end)).contains(&index);
            assert_eq!(overlaps, !inside.is_empty());
        }
        let wanted = some(&all, &mut random);
        let (stripe, step) = (reader.stripe(index).unwrap(), 1 + random.below(20) as usize);
        let rows: Vec<usize> = (random.below(5) as usize..cut.len()).step_by(step).collect();
        let selected = spell(&stripe.read_selected(&rows, &wanted).unwrap(), 0..rows.len());
        let read = |row: &usize| spell(&stripe.read(*row..row + 1, &wanted).unwrap(), 0..1);
        assert_eq!(selected, rows.iter().flat_map(read).collect::<Vec<_>>());
        let row = cut.start + random.below(cut.len() as u64) as usize;
        let key = block.keys.get(row);
        let found = reader.read_rows(index, &key, Some(&[&key[..], &[0]].concat()), &some(&all, &mut random)).unwrap();
        assert_eq!((found.keys.len(), found.keys.get(0)), (1, key));
    }
    copy(&reader, &schema, &all, &options);
}

/// `all` with some parts left out.
fn some(all: &Projection, random: &mut Random) -> Projection {
    let groups = all.groups.iter().flatten().map(|group| {
        (!random.one_in(3)).then(|| GroupProjection {
            qualifiers: random.one_in(2),
            timestamps: random.one_in(2),
            columns: group.columns.iter().map(|_| random.one_in(2)).collect(),
            sums: false,
        })
    });
    Projection { groups: groups.collect() }
}

/// Stripes copied to another file hold the same rows.
fn copy(reader: &Reader, schema: &tidetable_layout::StoredSchema, all: &Projection, options: &WriteOptions) {
    let options = WriteOptions { uid: !options.uid, ..options.clone() };
    let mut writer = Writer::new(Vec::new(), reader.schema().clone(), options, reader.metadata().clone()).unwrap();
    for index in 0..reader.stripes().len() {
        writer.push(reader.copy_stripe(index).unwrap()).unwrap();
    }
    let copied = open(&writer.finish().unwrap().0.into());
    assert_eq!(copied.verify().unwrap().rows, reader.verify().unwrap().rows);
    for index in 0..reader.stripes().len() {
        let block = reader.read_stripe(index, all).unwrap();
        assert_rows(schema, &copied.read_stripe(index, all).unwrap(), &block, 0..block.keys.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn small_files(seed: u64, rows in 1usize..40) {
        check(seed, rows);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn files_of_many_pages(seed: u64, rows in 200usize..700) {
        check(seed, rows);
    }
}

#[test]
fn filters_of_prefixes_hold_every_key() {
    let schema = tidetable_layout::StoredSchema {
        tail: tidetable_layout::schema::KeyTail { parts: vec![tidetable_layout::schema::TailPart::Digits(8)] },
        groups: vec![],
        upsert: false,
    };
    for prefixes in [1, 2, 50] {
        let mut keys = tidetable_layout::Keys::new(std::sync::Arc::new(schema.tail.clone()));
        for prefix in 0..prefixes {
            (0..100).for_each(|day| keys.push(format!("meter{prefix:04}#").as_bytes(), day));
        }
        let block = tidetable_layout::Block { keys, groups: vec![] };
        let cuts = stripe_splits(&schema, &block, &StripeLimits { rows: 30, ..Default::default() });
        let (bytes, _) = write(&schema, &block, &cuts, &WriteOptions::new(1));
        let reader = open(&bytes);
        reader.verify().unwrap();
        assert_eq!(reader.inspect().unwrap().filter, "prefixes");
        assert!((0..block.keys.len()).all(|row| reader.may_contain(&block.keys.get(row))));
        assert!((60..160).filter(|i| reader.may_contain(format!("meter{i:04}#00000000").as_bytes())).count() < 9);
        assert!(!reader.may_contain(b"short"));
    }
}

#[test]
fn an_empty_file_is_a_file() {
    let schema = tidetable_layout::StoredSchema { tail: Default::default(), groups: vec![], upsert: false };
    let writer = Writer::new(Vec::new(), schema.into(), WriteOptions::new(1), Default::default()).unwrap();
    let (bytes, summary) = writer.finish().unwrap();
    let reader = open(&bytes.into());
    assert_eq!((summary.rows, reader.stripes().len(), reader.verify().unwrap().rows), (0, 0, 0));
}

#[test]
fn what_is_not_in_order_is_refused() {
    let mut random = Random(11);
    let schema = generate::meter_schema();
    let block = generate::meters(4, 3, &mut random);
    let options = WriteOptions::new(1);
    let stripe = |rows| encode_rows(&schema, &options, &block, rows).unwrap();
    let mut writer = Writer::new(Vec::new(), schema.clone().into(), options.clone(), Default::default()).unwrap();
    writer.push(stripe(1..3)).unwrap();
    assert!(matches!(writer.push(stripe(2..4)), Err(WriteError::UnsortedStripes { stripe: 1 })));
    assert!(matches!(writer.push(stripe(0..1)), Err(WriteError::UnsortedStripes { stripe: 1 })));
    let other = tidetable_layout::StoredSchema { groups: vec![], ..schema.clone() };
    let odd = encode_rows(&other, &options, &block, 3..4).unwrap();
    assert!(matches!(writer.push(odd), Err(WriteError::OtherSchema { stripe: 1 })));

    let refused = |change: fn(&mut tidetable_layout::block::GroupBlock)| {
        let mut block = block.clone();
        change(block.groups[1].as_mut().unwrap());
        encode_rows(&schema, &options, &block, 0..4).unwrap_err()
    };
    assert!(matches!(
        refused(|group| group.qualifiers.as_mut().unwrap().codes.swap(4, 5)),
        WriteError::UnsortedRecords { group: 1, row: 1 }
    ));
    assert!(matches!(
        refused(|group| group.qualifiers.as_mut().unwrap().dictionary.swap(0, 1)),
        WriteError::Qualifiers { group: 1 }
    ));
    assert!(matches!(
        refused(|group| group.qualifiers.as_mut().unwrap().codes[11] = 99),
        WriteError::Qualifiers { group: 1 }
    ));
    assert!(matches!(refused(|group| group.timestamps = None), WriteError::Shape { group: 1, .. }));
    assert!(matches!(refused(|group| group.row_ends[2] = 0), WriteError::Shape { group: 1, .. }));
    assert!(matches!(refused(|group| group.columns[0] = None), WriteError::Shape { group: 1, .. }));
    assert!(matches!(encode_rows(&schema, &options, &block, 2..2), Err(WriteError::NoRows)));
}

#[test]
fn meters_cost_little_beside_their_values() {
    let mut random = Random(3);
    let schema = generate::meter_schema();
    let block = generate::meters(683, 96, &mut random);
    let (bytes, _) = write(&schema, &block, std::slice::from_ref(&(0..683)), &WriteOptions::new(1));
    let found = open(&bytes).inspect().unwrap();
    let values = found.stripes[0].chunks.iter().max_by_key(|chunk| chunk.page_bytes).unwrap();
    let beside = bytes.len() as u64 - values.page_bytes - values.setup_bytes as u64;
    assert!((beside as f64) < 0.07 * 683.0 * 96.0, "{beside} bytes beside the values: {found:#?}");
    assert_eq!(found.stripes[0].patterns, [None, Some(1)]);
}

#[test]
fn cuts_stay_within_limits() {
    let mut random = Random(5);
    let (schema, block) = (generate::meter_schema(), generate::meters(1000, 96, &mut random));
    let limits = StripeLimits::default();
    let cuts = stripe_splits(&schema, &block, &limits);
    assert_eq!(cuts, [0..500, 500..1000]);
    let tiny = StripeLimits { cells: 1, ..limits };
    assert!(stripe_splits(&schema, &block, &tiny).iter().enumerate().all(|(row, cut)| *cut == (row..row + 1)));
    assert!(stripe_splits(&schema, &generate::meters(0, 96, &mut random), &limits).is_empty());
}

#[test]
fn records_alike_are_written_only_where_they_are_kept() {
    let mut schema = generate::meter_schema();
    let mut block = generate::meters(4, 8, &mut Random(3));
    // Two records of each qualifier and timestamp.
    let group = block.groups[1].as_mut().unwrap();
    let times = group.timestamps.as_mut().unwrap();
    let codes = &mut group.qualifiers.as_mut().unwrap().codes;
    for at in (1..times.len()).step_by(2) {
        (times[at], codes[at]) = (times[at - 1], codes[at - 1]);
    }
    let options = WriteOptions { uid: 1, level: Compression::Fresh, stripe: StripeLimits::default() };
    let refused = encode_rows(&schema, &options, &block, 0..4).unwrap_err();
    assert!(matches!(refused, WriteError::UnsortedRecords { group: 1, row: 0 }), "{refused}");

    let form = PackedForm::Repeated { fields: Vec::new(), number: 1 };
    schema.groups[1].packed = Some(Packed { family: "METER".to_owned(), qualifier: Vec::new(), form });
    let (bytes, _) = write(&schema, &block, std::slice::from_ref(&(0..4)), &options);
    let reader = open(&bytes);
    reader.verify().unwrap();
    assert_rows(&schema, &reader.read_stripe(0, &Projection::all(&schema)).unwrap(), &block, 0..4);
}
