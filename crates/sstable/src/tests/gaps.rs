//! Rows that lack records of a common pattern.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::compute::take;
use bytes::Bytes;
use tidetable_layout::{Block, Projection};

use super::generate::{self, Random};
use super::{assert_rows, open, write};
use crate::file::Reader;
use crate::format::{PAGE_RECORDS, VERSION};
use crate::io::{FileSource, ReadAt};
use crate::options::{Compression, WriteOptions};

const METERS: usize = 150;

/// A day of meters of which each misses some readings: in half of the rows none, the first one too.
fn block() -> Block {
    let mut block = generate::meters(METERS, 96, &mut Random(7));
    let mut random = Random(8);
    let group = block.groups[1].as_mut().unwrap();
    let (mut records, mut row_ends) = (Vec::new(), Vec::new());
    for row in 0..METERS {
        let has_gaps = row % 2 == 1;
        records.extend(group.records(row).map(|record| record as u32).filter(|_| !(has_gaps && random.one_in(60))));
        row_ends.push(records.len() as u32);
    }
    let qualifiers = group.qualifiers.as_mut().unwrap();
    qualifiers.codes = records.iter().map(|record| qualifiers.codes[*record as usize]).collect();
    let times = group.timestamps.as_ref().unwrap();
    group.timestamps = Some(records.iter().map(|record| times[*record as usize]).collect());
    let values = take(group.columns[0].as_ref().unwrap(), &arrow::array::UInt32Array::from(records), None).unwrap();
    (group.columns[0], group.row_ends) = (Some(values), row_ends);
    block
}

fn encoded(level: Compression) -> Bytes {
    let options = WriteOptions { level, ..WriteOptions::new(5) };
    write(&generate::meter_schema(), &block(), std::slice::from_ref(&(0..METERS)), &options).0
}

#[test]
fn gaps_take_few_bytes() {
    for level in [Compression::Fresh, Compression::Dense] {
        let inspection = open(&encoded(level)).inspect().unwrap();
        let stripe = &inspection.stripes[0];
        assert!(stripe.patterns[1].is_some_and(|patterns| patterns > 40), "{:?}", stripe.patterns);
        let times = stripe.chunks.iter().filter(|chunk| chunk.stream.contains("timestamps"));
        assert!(times.map(|chunk| chunk.page_bytes).sum::<u64>() < 200);
        assert!(stripe.head_bytes - stripe.key_bytes - stripe.qualifier_bytes[1] < 1500, "{}", stripe.head_bytes);
    }
}

#[test]
fn any_rows_are_read_with_their_gaps() {
    let (schema, block) = (generate::meter_schema(), block());
    let all = Projection::all(&schema);
    let reader = open(&encoded(Compression::Fresh));
    reader.verify().unwrap();
    assert_rows(&schema, &reader.read_stripe(0, &all).unwrap(), &block, 0..METERS);
    let stripe = reader.stripe(0).unwrap();
    assert!(block.groups[1].as_ref().unwrap().len() > 3 * PAGE_RECORDS);
    for rows in [3..4, 10..50, 101..METERS] {
        assert_rows(&schema, &stripe.read(rows.clone(), &all).unwrap(), &block, rows);
    }
}

fn golden(version: u32) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("golden/v{version}-gaps.sst"))
}

#[test]
#[ignore = "writes the golden file of rows with gaps of a new version; those of an old version never change"]
fn write_golden_gaps() {
    std::fs::write(golden(VERSION), encoded(Compression::Dense)).unwrap();
}

#[test]
fn golden_gaps_are_what_they_were() {
    for version in 5..=VERSION {
        let source = FileSource::new(std::fs::File::open(golden(version)).unwrap()).unwrap();
        let bytes = source.read_at(0, source.len() as usize).unwrap();
        let (schema, reader) = (generate::meter_schema(), Reader::open(Arc::new(source)).unwrap());
        assert_rows(&schema, &reader.read_stripe(0, &Projection::all(&schema)).unwrap(), &block(), 0..METERS);
        assert!(
            version != VERSION || bytes == encoded(Compression::Dense),
            "a new encode differs from the golden file"
        );
    }
}
