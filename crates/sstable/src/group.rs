//! One group of columns in a stripe: which records each row has, their qualifiers, timestamps and values. Written here, read
//! in `head` and, of some records only, in `kept`.

mod head;
mod kept;

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray};
use tidetable_layout::{Group, GroupBlock, QualifierKind, TimestampKind, ValueType};

use crate::byte_list;
use crate::error::WriteError;
use crate::extremes;
use crate::format::{MAX_RECORDS, MODE_EXPLICIT, MODE_SHAPES};
use crate::ints;
use crate::options::Compression;
use crate::shapes::{Records, Shapes};
use crate::stats::{ColumnMeta, measure};
use crate::stream::Pages;
use crate::sums;
use crate::values::{self, Target};
use crate::wire::{put_block, put_varint};

pub(crate) use head::GroupHead;
pub use kept::KeepRecords;

/// What the stripe table needs of a group.
pub(crate) struct GroupMeta {
    pub(crate) records: u64,
    pub(crate) one_version_each: bool,
    pub(crate) fills_rows: bool,
    pub(crate) timestamps: Option<(i64, i64)>,
    pub(crate) columns: Vec<ColumnMeta>,
}

/// The rows of a block that go into a stripe, one group of them.
struct View<'a> {
    records: Records<'a>,
    dictionary: &'a [Box<[u8]>],
    columns: Vec<ArrayRef>,
}

/// Appends the rows `rows` of `block`, which is group `index` of the schema.
pub(crate) fn put(
    head: &mut Vec<u8>,
    pages: &mut Pages,
    (index, group): (usize, &Group),
    block: &GroupBlock,
    rows: Range<usize>,
    level: Compression,
) -> Result<GroupMeta, WriteError> {
    let view = view(index, group, block, rows)?;
    let records = &view.records;
    let stored = group.timestamps == TimestampKind::Stored;
    put_varint(head, pages.data.len() as u64);
    let shapes = if stored || records.codes.is_some() { Shapes::detect(records) } else { None };
    match &shapes {
        Some(shapes) => check_shapes(index, records, shapes)?,
        None => check_rows(index, records)?,
    }
    let own_codes = shapes.as_ref().map(|shapes| shapes.codes.as_slice()).or(records.codes);
    head.push(if shapes.is_some() { MODE_SHAPES } else { MODE_EXPLICIT });
    let codes = match own_codes.filter(|_| records.codes.is_some()) {
        Some(codes) => put_dictionary(head, index, view.dictionary, codes, level)?,
        None => Vec::new(),
    };
    match &shapes {
        Some(shapes) => {
            put_varint(head, shapes.lens.len() as u64);
            ints::put(head, &shapes.lens, level)?;
            if records.codes.is_some() {
                ints::put(head, &codes, level)?;
            }
            if stored {
                ints::put(head, &shapes.offsets, level)?;
            }
            ints::put(head, &shapes.ids, level)?;
            if stored {
                values::put_gapless(&mut Target { head, pages, level }, &shapes.bases)?;
            }
        }
        None => {
            let counts: Vec<u32> = records.rows().map(|row| row.len() as u32).collect();
            ints::put(head, &counts, level)?;
            let mut target = Target { head, pages, level };
            if records.codes.is_some() {
                values::put_gapless(&mut target, &codes)?;
            }
            if let Some(times) = records.timestamps {
                values::put_gapless(&mut target, times)?;
            }
        }
    }
    let mut columns = Vec::with_capacity(group.columns.len());
    let mut decimals = Vec::with_capacity(group.columns.len());
    let mut target = Target { head, pages, level };
    for (array, column) in view.columns.iter().zip(&group.columns) {
        decimals.push(values::put(&mut target, array, column.value)?);
        columns.push(measure(array, column.value));
    }
    let sums = sums::of_group(group, records, view.columns.iter().zip(decimals));
    let extremes = extremes::of_group(group, view.columns.iter().zip(&columns));
    // What nobody kept takes no byte, as in files that knew of neither.
    if sums.iter().any(Option::is_some) || !extremes.is_empty() {
        sums::put(&mut target, sums)?;
    }
    extremes::put(&mut target, (index, group), &view.columns, extremes)?;
    Ok(GroupMeta {
        records: records.len() as u64,
        one_version_each: records.one_version_each(),
        fills_rows: records.fill_rows(),
        timestamps: records.timestamps.and_then(bounds),
        columns,
    })
}

fn bounds(times: &[i64]) -> Option<(i64, i64)> {
    let first = *times.first()?;
    Some(times.iter().fold((first, first), |(low, high), time| (low.min(*time), high.max(*time))))
}

fn view<'a>(index: usize, group: &Group, block: &'a GroupBlock, rows: Range<usize>) -> Result<View<'a>, WriteError> {
    let shape = |what| WriteError::Shape { group: index, what };
    let ends = block.row_ends.get(rows.clone()).ok_or(shape("row ends are fewer than the rows"))?;
    let base = if rows.start == 0 { 0 } else { block.row_ends[rows.start - 1] };
    let end = ends.last().copied().unwrap_or(base);
    if base > end || !ends.is_sorted() || ends.first().is_some_and(|first| *first < base) {
        return Err(shape("row ends descend"));
    }
    let span = base as usize..end as usize;
    if span.len() > MAX_RECORDS {
        return Err(WriteError::TooLarge { what: "records of a group", found: span.len(), limit: MAX_RECORDS });
    }
    let (mut codes, mut dictionary) = (None, &[][..]);
    if group.qualifier == QualifierKind::Dynamic {
        let qualifiers = block.qualifiers.as_ref().ok_or(shape("qualifiers are missing"))?;
        codes = Some(qualifiers.codes.get(span.clone()).ok_or(shape("qualifiers are fewer than the records"))?);
        dictionary = &qualifiers.dictionary;
    }
    let timestamps = match (&block.timestamps, group.timestamps) {
        (_, TimestampKind::Zero) => None,
        (Some(times), _) => Some(times.get(span.clone()).ok_or(shape("timestamps are fewer than the records"))?),
        (None, _) => return Err(shape("timestamps are missing")),
    };
    let mut columns = Vec::with_capacity(group.columns.len());
    if block.columns.len() != group.columns.len() {
        return Err(shape("the number of columns differs"));
    }
    for (at, (array, column)) in block.columns.iter().zip(&group.columns).enumerate() {
        let array = array.as_ref().ok_or(shape("a column is missing"))?;
        let expected = column.value.arrow();
        if *array.data_type() != expected {
            let found = array.data_type().clone();
            return Err(WriteError::Type { group: index, column: at, expected, found });
        }
        if array.len() < span.end {
            return Err(shape("values are fewer than the records"));
        }
        let array = array.slice(span.start, span.len());
        if column.value == ValueType::Empty && array.as_boolean().false_count() > 0 {
            return Err(shape("an empty value is false; it is true or null"));
        }
        columns.push(array);
    }
    let ends = ends.iter().map(|end| end - base).collect();
    let keeps_alike = group.keeps_alike();
    Ok(View { records: Records { ends, codes, timestamps, keeps_alike }, dictionary, columns })
}

fn check_rows(index: usize, records: &Records<'_>) -> Result<(), WriteError> {
    match records.rows().position(|row| !records.sorted(row)) {
        Some(row) => Err(WriteError::UnsortedRecords { group: index, row }),
        None => Ok(()),
    }
}

/// Rows of one shape are in order alike, so one of each is looked at.
fn check_shapes(index: usize, records: &Records<'_>, shapes: &Shapes) -> Result<(), WriteError> {
    let mut next = 0;
    for (row, (range, id)) in records.rows().zip(&shapes.ids).enumerate() {
        if *id == next {
            next += 1;
            if !records.sorted(range) {
                return Err(WriteError::UnsortedRecords { group: index, row });
            }
        }
    }
    Ok(())
}

/// Appends those qualifiers that `codes` use, and returns the codes among them.
fn put_dictionary(
    head: &mut Vec<u8>,
    index: usize,
    dictionary: &[Box<[u8]>],
    codes: &[u32],
    level: Compression,
) -> Result<Vec<u32>, WriteError> {
    let wrong = || WriteError::Qualifiers { group: index };
    let mut ranks = vec![u32::MAX; dictionary.len()];
    for code in codes {
        *ranks.get_mut(*code as usize).ok_or_else(wrong)? = 0;
    }
    let mut used: Vec<&[u8]> = Vec::new();
    for (rank, name) in ranks.iter_mut().zip(dictionary).filter(|(rank, _)| **rank == 0) {
        *rank = used.len() as u32;
        used.push(name);
    }
    if !used.is_sorted_by(|left, right| left < right) {
        return Err(wrong());
    }
    put_varint(head, used.len() as u64);
    let mut list = Vec::new();
    byte_list::put(&mut list, used.into_iter(), level)?;
    put_block(head, &list);
    Ok(codes.iter().map(|code| ranks[*code as usize]).collect())
}
