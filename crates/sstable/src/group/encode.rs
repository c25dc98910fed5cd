//! Encoding of a group: the records of each row, their qualifiers, timestamps and values.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray};
use tidetable_layout::schema::{QualifierKind, TimestampKind};
use tidetable_layout::{Group, GroupBlock, ValueType};

use crate::codec::{front_coding, integer_list};
use crate::coding::{put_block, put_varint};
use crate::column;
use crate::column::Target;
use crate::column::stream::Pages;
use crate::error::WriteError;
use crate::format::{MAX_RECORDS, MODE_EXPLICIT, MODE_GAPS, MODE_PATTERNS};
use crate::group::{outliers, pattern_table, sums};
use crate::keys::row_patterns::{Records, RowPatterns};
use crate::options::Compression;
use crate::stats::{ColumnMeta, column_meta};

/// The statistics of a group for the stripe table.
pub(crate) struct GroupMeta {
    pub(crate) records: u64,
    pub(crate) one_version_each: bool,
    pub(crate) fills_rows: bool,
    pub(crate) timestamps: Option<(i64, i64)>,
    pub(crate) columns: Vec<ColumnMeta>,
}

/// One group of the rows of a block that form a stripe.
struct GroupView<'a> {
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
    let patterns = if stored || records.codes.is_some() { RowPatterns::detect(records) } else { None };
    match &patterns {
        Some(patterns) => check_patterns(index, records, patterns)?,
        None => check_rows(index, records)?,
    }
    let own_codes = patterns.as_ref().map(|patterns| patterns.codes.as_slice()).or(records.codes);
    head.push(match &patterns {
        Some(patterns) if patterns.has_gaps() => MODE_GAPS,
        Some(_) => MODE_PATTERNS,
        None => MODE_EXPLICIT,
    });
    let codes = match own_codes.filter(|_| records.codes.is_some()) {
        Some(codes) => put_dictionary(head, index, view.dictionary, codes, level)?,
        None => Vec::new(),
    };
    match &patterns {
        Some(patterns) => {
            pattern_table::put(head, group, patterns, &codes, level)?;
            integer_list::put(head, &patterns.ids, level)?;
            if stored {
                column::put_gapless(&mut Target { head, pages, level }, &patterns.bases)?;
            }
        }
        None => {
            let counts: Vec<u32> = records.rows().map(|row| row.len() as u32).collect();
            integer_list::put(head, &counts, level)?;
            let mut target = Target { head, pages, level };
            if records.codes.is_some() {
                column::put_gapless(&mut target, &codes)?;
            }
            if let Some(times) = records.timestamps {
                column::put_gapless(&mut target, times)?;
            }
        }
    }
    let mut columns = Vec::with_capacity(group.columns.len());
    let mut decimals = Vec::with_capacity(group.columns.len());
    let mut target = Target { head, pages, level };
    for (array, column) in view.columns.iter().zip(&group.columns) {
        decimals.push(column::put(&mut target, array, column.value)?);
        columns.push(column_meta(array, column.value));
    }
    let sums = sums::of_group(group, records, view.columns.iter().zip(decimals));
    let outliers = outliers::of_group(group, view.columns.iter().zip(&columns));
    // Sections that are absent take no bytes, as in older versions.
    if sums.iter().any(Option::is_some) || !outliers.is_empty() {
        sums::put(&mut target, sums)?;
    }
    outliers::put(&mut target, (index, group), &view.columns, outliers)?;
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

fn view<'a>(
    index: usize,
    group: &Group,
    block: &'a GroupBlock,
    rows: Range<usize>,
) -> Result<GroupView<'a>, WriteError> {
    let mismatch = |what| WriteError::Shape { group: index, what };
    let ends = block.row_ends.get(rows.clone()).ok_or(mismatch("row ends are fewer than the rows"))?;
    let base = if rows.start == 0 { 0 } else { block.row_ends[rows.start - 1] };
    let end = ends.last().copied().unwrap_or(base);
    if base > end || !ends.is_sorted() || ends.first().is_some_and(|first| *first < base) {
        return Err(mismatch("row ends descend"));
    }
    let span = base as usize..end as usize;
    if span.len() > MAX_RECORDS {
        return Err(WriteError::TooLarge { what: "records of a group", found: span.len(), limit: MAX_RECORDS });
    }
    let (mut codes, mut dictionary) = (None, &[][..]);
    if group.qualifier == QualifierKind::Dynamic {
        let qualifiers = block.qualifiers.as_ref().ok_or(mismatch("qualifiers are missing"))?;
        codes = Some(qualifiers.codes.get(span.clone()).ok_or(mismatch("qualifiers are fewer than the records"))?);
        dictionary = &qualifiers.dictionary;
    }
    let timestamps = match (&block.timestamps, group.timestamps) {
        (_, TimestampKind::Zero) => None,
        (Some(times), _) => Some(times.get(span.clone()).ok_or(mismatch("timestamps are fewer than the records"))?),
        (None, _) => return Err(mismatch("timestamps are missing")),
    };
    let mut columns = Vec::with_capacity(group.columns.len());
    if block.columns.len() != group.columns.len() {
        return Err(mismatch("the number of columns differs"));
    }
    for (at, (array, column)) in block.columns.iter().zip(&group.columns).enumerate() {
        let array = array.as_ref().ok_or(mismatch("a column is missing"))?;
        let expected = column.value.arrow();
        if *array.data_type() != expected {
            let found = array.data_type().clone();
            return Err(WriteError::Type { group: index, column: at, expected, found });
        }
        if array.len() < span.end {
            return Err(mismatch("values are fewer than the records"));
        }
        let array = array.slice(span.start, span.len());
        if column.value == ValueType::Empty && array.as_boolean().false_count() > 0 {
            return Err(mismatch("an empty value is false; it is true or null"));
        }
        columns.push(array);
    }
    let ends = ends.iter().map(|end| end - base).collect();
    let keeps_duplicates = group.keeps_duplicates();
    Ok(GroupView { records: Records { ends, codes, timestamps, keeps_duplicates }, dictionary, columns })
}

fn check_rows(index: usize, records: &Records<'_>) -> Result<(), WriteError> {
    match records.rows().position(|row| !records.sorted(row)) {
        Some(row) => Err(WriteError::UnsortedRecords { group: index, row }),
        None => Ok(()),
    }
}

/// Rows with one pattern have the same order, so one of each is checked.
fn check_patterns(index: usize, records: &Records<'_>, patterns: &RowPatterns) -> Result<(), WriteError> {
    let mut next = 0;
    for (row, (range, id)) in records.rows().zip(&patterns.ids).enumerate() {
        if *id == next {
            next += 1;
            if !records.sorted(range) {
                return Err(WriteError::UnsortedRecords { group: index, row });
            }
        }
    }
    Ok(())
}

/// Appends the qualifiers that `codes` use, and returns the remapped codes.
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
    front_coding::put(&mut list, used.into_iter(), level)?;
    put_block(head, &list);
    Ok(codes.iter().map(|code| ranks[*code as usize]).collect())
}
