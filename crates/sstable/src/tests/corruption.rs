//! A corrupt byte gives an error, never a wrong answer or a panic.

use std::ops::Range;

use bytes::Bytes;
use tidetable_layout::{Block, Projection, StoredSchema};

use super::generate::{self, Random};
use super::{open, spell, write};
use crate::error::ReadError;
use crate::file::Reader;
use crate::io::checksum;
use crate::options::WriteOptions;
use crate::stripe::StripeHead;

/// Small files of three patterns: meters, many types, one column of noise in two stripes.
fn files() -> Vec<(StoredSchema, Block, Bytes)> {
    let mut files = Vec::new();
    for (seed, rows) in [(1, 33), (12, 9), (25, 14)] {
        let mut random = Random(seed);
        let (schema, block) = match seed {
            1 => (generate::meter_schema(), generate::meters(rows, 4, &mut random)),
            _ => {
                let mut schema = generate::schema(&mut random);
                while schema.groups.len() < 2 {
                    schema = generate::schema(&mut random);
                }
                let block = generate::block(&schema, rows, &mut random);
                (schema, block)
            }
        };
        let (bytes, _) = write(&schema, &block, &[0..rows / 2, rows / 2..rows], &WriteOptions::new(77));
        files.push((schema, block, bytes));
    }
    files
}

/// Everything a file says, if it can be read.
fn read(bytes: Bytes, schema: &StoredSchema) -> Result<Vec<impl PartialEq + std::fmt::Debug>, ReadError> {
    let reader = Reader::open(std::sync::Arc::new(bytes))?;
    let all = Projection::all(schema);
    let mut rows = Vec::new();
    for index in 0..reader.stripes().len() {
        let block = reader.read_stripe(index, &all)?;
        rows.extend(spell(&block, 0..block.keys.len()));
    }
    Ok(rows)
}

#[test]
fn every_flipped_bit_is_found_or_harmless() {
    for (schema, block, bytes) in files() {
        let expected = spell(&block, 0..block.keys.len());
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let flipped = Bytes::from(flipped);
            if let Ok(found) = read(flipped.clone(), &schema) {
                assert!(format!("{found:?}") == format!("{expected:?}"), "bit {bit} gave a wrong answer");
                let reader = open(&flipped);
                assert!((0..block.keys.len()).all(|row| reader.may_contain(&block.keys.get(row))));
                assert!(reader.verify().is_err(), "verify passes over bit {bit}");
            }
        }
    }
}

#[test]
fn every_truncation_is_an_error() {
    for (_, _, bytes) in files() {
        for len in 0..bytes.len() {
            assert!(Reader::open(std::sync::Arc::new(bytes.slice(..len))).is_err(), "{len} bytes");
        }
    }
}

fn swap(bytes: &[u8], left: Range<usize>, right: Range<usize>) -> Bytes {
    let mut out = bytes.to_vec();
    out[left.clone()].copy_from_slice(&bytes[right.clone()]);
    out[right].copy_from_slice(&bytes[left]);
    out.into()
}

/// Two stripes of equal length, each with one stream of three pages of raw noise.
fn noise(uid: u128) -> (StoredSchema, Bytes) {
    use std::sync::Arc;
    use tidetable_layout::GroupBlock;
    use tidetable_layout::schema::TimestampKind;
    use tidetable_layout::{FieldType, Keys, ValueType};
    let mut schema = generate::meter_schema();
    schema.groups.remove(1);
    schema.groups[0].columns[0].value = ValueType::Field(FieldType::Int64);
    schema.groups[0].timestamps = TimestampKind::Zero;
    let (mut random, rows) = (Random(uid as u64), 20_000);
    let mut keys = Keys::new(Arc::new(schema.tail.clone()));
    (0..rows as u64).for_each(|row| keys.push(if row < 10_000 { b"a#" } else { b"b#" }, row));
    let values: arrow::array::Int64Array = (0..rows).map(|_| random.next() as i64).collect::<Vec<_>>().into();
    let group = GroupBlock {
        row_ends: (1..=rows as u32).collect(),
        qualifiers: None,
        timestamps: None,
        columns: vec![Some(Arc::new(values))],
        sums: Vec::new(),
    };
    let block = Block { keys, groups: vec![Some(group)] };
    let (bytes, _) = write(&schema, &block, &[0..10_000, 10_000..20_000], &WriteOptions::new(uid));
    (schema, bytes)
}

#[test]
fn what_is_misplaced_is_found() {
    let (schema, bytes) = noise(5);
    read(bytes.clone(), &schema).unwrap();
    let reader = open(&bytes);
    let [first, second] = reader.stripes() else { panic!("two stripes") };
    let place = |stripe: &crate::stats::StripeMeta| stripe.offset as usize..(stripe.offset + stripe.len) as usize;
    let (a, b) = (place(first), place(second));
    assert_eq!(a.len(), b.len());
    let found = read(swap(&bytes, a.clone(), b), &schema).unwrap_err();
    assert!(
        matches!(found, ReadError::Checksum { stripe: Some(0), stream: crate::error::FilePart::StripeHead, .. }),
        "{found}"
    );

    let page = crate::format::PAGE_RECORDS * 8;
    let start = a.start + first.head_len as usize;
    let swapped = swap(&bytes, start..start + page, start + page..start + 2 * page);
    let found = read(swapped, &schema).unwrap_err();
    assert!(matches!(found, ReadError::Checksum { stripe: Some(0), page: 0, .. }), "{found}");

    let (_, other) = noise(6);
    let mut mixed = bytes.to_vec();
    mixed[a.clone()].copy_from_slice(&other[a]);
    assert!(read(mixed.into(), &schema).is_err());
}

/// Bytes that lie under right checksums: nothing may panic, whatever the answer.
#[test]
fn sealed_nonsense_never_panics() {
    let mut random = Random(2);
    for round in 0..2000u64 {
        let mut seed = Random(round % 200);
        let schema = generate::schema(&mut seed);
        let rows = 1 + seed.below(40) as usize;
        let block = generate::block(&schema, rows, &mut seed);
        let options = WriteOptions::new(1);
        let stripe = crate::encode_stripe(&schema, &options, &block).unwrap();
        let (mut head, mut pages) = (stripe.head.to_vec(), stripe.pages.to_vec());
        for _ in 0..1 + random.below(3) {
            if round % 2 == 0 || pages.is_empty() {
                let at = random.below(head.len() as u64) as usize;
                head[at] = random.next() as u8;
            } else {
                let at = random.below(pages.len() as u64) as usize;
                pages[at] = random.next() as u8;
            }
        }
        reseal(&stripe, &schema, &mut head, &pages);
        let mut nonsense = stripe.clone();
        (nonsense.head, nonsense.pages) = (head.into(), pages.into());
        let mut writer =
            crate::file::Writer::new(Vec::new(), schema.clone().into(), options, Default::default()).unwrap();
        writer.push(nonsense).unwrap();
        let bytes = Bytes::from(writer.finish().unwrap().0);
        drop(read(bytes.clone(), &schema));
        drop(open(&bytes).verify());
        drop(open(&bytes).inspect());
        drop(open(&bytes).copy_stripe(0));
        let key = block.keys.get(rows / 2);
        drop(open(&bytes).read_rows(0, &key, Some(&[&key[..], b"0"].concat()), &Projection::all(&schema)));
    }
}

/// Puts the checksums of changed pages into the head.
fn reseal(stripe: &crate::stripe::EncodedStripe, schema: &StoredSchema, head: &mut [u8], pages: &[u8]) {
    let tail = std::sync::Arc::new(schema.tail.clone());
    let sound = StripeHead::read(stripe.head.clone(), &stripe.meta, schema, &tail).unwrap();
    for index in 0..schema.groups.len() {
        let group = sound.group(index, schema, &stripe.meta).unwrap();
        for (offset, len) in group.streams().flat_map(crate::column::stream::Stream::places) {
            let place = offset as usize..offset as usize + len;
            let old = checksum::in_stripe(offset, &stripe.pages[place.clone()]).to_le_bytes();
            let new = checksum::in_stripe(offset, &pages[place]).to_le_bytes();
            if let Some(at) = head.windows(8).position(|bytes| bytes == old) {
                head[at..at + 8].copy_from_slice(&new);
            }
        }
    }
}
