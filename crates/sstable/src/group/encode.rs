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

/// The statistics of a group for the stripe table, see [`crate::StripeMeta`].
pub(crate) struct GroupMeta {
    pub(crate) records: u64,
    pub(crate) one_version_each: bool,
    pub(crate) fills_rows: bool,
    pub(crate) timestamps: Option<(i64, i64)>,
    pub(crate) columns: Vec<ColumnMeta>,
}

/// One group of the rows of a block that form a stripe, checked against the schema.
struct GroupView<'a> {
    records: Records<'a>,
    /// The qualifiers that codes refer to; empty unless the group is dynamic.
    dictionary: &'a [Box<[u8]>],
    /// The values of each column, one per record.
    columns: Vec<ArrayRef>,
}

/// Appends the rows `rows` of `block`, which is group `index` of the schema: its head to `head`, its pages to `pages`.
///
/// # Errors
/// If the block does not fit the schema, its records are not sorted, or an encoder fails.
pub(crate) fn put(
    head: &mut Vec<u8>,
    pages: &mut Pages,
    index: usize,
    group: &Group,
    block: &GroupBlock,
    rows: Range<usize>,
    level: Compression,
) -> Result<GroupMeta, WriteError> {
    let view = view(index, group, block, rows)?;
    put_varint(head, pages.data.len() as u64);
    let mut target = Target { head, pages, level };
    put_records(&mut target, index, group, &view)?;

    let mut columns = Vec::with_capacity(group.columns.len());
    let mut decimals = Vec::with_capacity(group.columns.len());
    for (array, column) in view.columns.iter().zip(&group.columns) {
        decimals.push(column::put(&mut target, array, column.value)?);
        columns.push(column_meta(array, column.value));
    }

    // Sections that are absent take no bytes, as in older versions.
    let records = &view.records;
    let sums = sums::of_group(group, records, view.columns.iter().zip(decimals));
    let outliers = outliers::of_group(group, view.columns.iter().zip(&columns));
    if sums.iter().any(Option::is_some) || !outliers.is_empty() {
        sums::put(&mut target, sums)?;
    }
    outliers::put(&mut target, index, group, &view.columns, outliers)?;

    Ok(GroupMeta {
        records: records.len() as u64,
        one_version_each: records.one_version_each(),
        fills_rows: records.fill_rows(),
        timestamps: records.timestamps.and_then(bounds),
        columns,
    })
}

/// Appends which records the rows have, with their qualifiers and timestamps: as row patterns if these pay.
fn put_records(target: &mut Target<'_>, index: usize, group: &Group, view: &GroupView<'_>) -> Result<(), WriteError> {
    let records = &view.records;
    let has_times = group.timestamps == TimestampKind::Stored;
    let patterns = if has_times || records.codes.is_some() { RowPatterns::detect(records) } else { None };
    let Some(patterns) = patterns else { return put_explicit(target, index, view) };
    check_patterns(index, records, &patterns)?;

    target.head.push(if patterns.has_gaps() { MODE_GAPS } else { MODE_PATTERNS });
    let codes = match records.codes {
        Some(_) => put_dictionary(target, index, view.dictionary, &patterns.codes)?,
        None => Vec::new(),
    };
    pattern_table::put(target.head, group, &patterns, &codes, target.level)?;
    integer_list::put(target.head, &patterns.ids, target.level)?;
    if has_times {
        column::put_gapless(target, &patterns.bases)?;
    }
    Ok(())
}

/// As [`put_records`], record by record.
fn put_explicit(target: &mut Target<'_>, index: usize, view: &GroupView<'_>) -> Result<(), WriteError> {
    let records = &view.records;
    check_rows(index, records)?;

    target.head.push(MODE_EXPLICIT);
    let codes = match records.codes {
        Some(codes) => Some(put_dictionary(target, index, view.dictionary, codes)?),
        None => None,
    };
    let counts: Vec<u32> = records.rows().map(|row| row.len() as u32).collect();
    integer_list::put(target.head, &counts, target.level)?;
    if let Some(codes) = codes {
        column::put_gapless(target, &codes)?;
    }
    if let Some(times) = records.timestamps {
        column::put_gapless(target, times)?;
    }
    Ok(())
}

/// The least and the greatest of `times`.
fn bounds(times: &[i64]) -> Option<(i64, i64)> {
    let first = *times.first()?;
    Some(times.iter().fold((first, first), |(low, high), time| (low.min(*time), high.max(*time))))
}

/// The error for a block that does not have the shape of group `index`.
fn mismatch(index: usize, what: &'static str) -> WriteError {
    WriteError::Shape { group: index, what }
}

/// The rows `rows` of `block`, after checking that all its lists have the lengths and types that the schema requires.
fn view<'a>(
    index: usize,
    group: &Group,
    block: &'a GroupBlock,
    rows: Range<usize>,
) -> Result<GroupView<'a>, WriteError> {
    let ends = block.row_ends.get(rows.clone()).ok_or(mismatch(index, "row ends are fewer than the rows"))?;
    let base = if rows.start == 0 { 0 } else { block.row_ends[rows.start - 1] };
    let end = ends.last().copied().unwrap_or(base);
    if base > end || !ends.is_sorted() || ends.first().is_some_and(|first| *first < base) {
        return Err(mismatch(index, "row ends descend"));
    }
    let span = base as usize..end as usize;
    if span.len() > MAX_RECORDS {
        return Err(WriteError::TooLarge { what: "records of a group", found: span.len(), limit: MAX_RECORDS });
    }

    let (mut codes, mut dictionary) = (None, &[][..]);
    if group.qualifier == QualifierKind::Dynamic {
        let qualifiers = block.qualifiers.as_ref().ok_or(mismatch(index, "qualifiers are missing"))?;
        let found = qualifiers.codes.get(span.clone());
        codes = Some(found.ok_or(mismatch(index, "qualifiers are fewer than the records"))?);
        dictionary = &qualifiers.dictionary;
    }
    let timestamps = match (&block.timestamps, group.timestamps) {
        (_, TimestampKind::Zero) => None,
        (Some(times), _) => {
            Some(times.get(span.clone()).ok_or(mismatch(index, "timestamps are fewer than the records"))?)
        }
        (None, _) => return Err(mismatch(index, "timestamps are missing")),
    };

    let columns = columns_of(index, group, block, span)?;
    let ends = ends.iter().map(|end| end - base).collect();
    let keeps_duplicates = group.keeps_duplicates();
    Ok(GroupView { records: Records { ends, codes, timestamps, keeps_duplicates }, dictionary, columns })
}

/// The values of each column for the records `span`.
fn columns_of(
    index: usize,
    group: &Group,
    block: &GroupBlock,
    span: Range<usize>,
) -> Result<Vec<ArrayRef>, WriteError> {
    if block.columns.len() != group.columns.len() {
        return Err(mismatch(index, "the number of columns differs"));
    }

    let mut columns = Vec::with_capacity(group.columns.len());
    for (column_index, (array, column)) in block.columns.iter().zip(&group.columns).enumerate() {
        let array = array.as_ref().ok_or(mismatch(index, "a column is missing"))?;
        let expected = column.value.arrow();
        if *array.data_type() != expected {
            let found = array.data_type().clone();
            return Err(WriteError::Type { group: index, column: column_index, expected, found });
        }
        if array.len() < span.end {
            return Err(mismatch(index, "values are fewer than the records"));
        }

        let array = array.slice(span.start, span.len());
        if column.value == ValueType::Empty && array.as_boolean().false_count() > 0 {
            return Err(mismatch(index, "an empty value is false; it is true or null"));
        }
        columns.push(array);
    }
    Ok(columns)
}

/// Checks the order of the records of every row.
fn check_rows(index: usize, records: &Records<'_>) -> Result<(), WriteError> {
    match records.rows().position(|row| !records.sorted(row)) {
        Some(row) => Err(WriteError::UnsortedRecords { group: index, row }),
        None => Ok(()),
    }
}

/// As [`check_rows`]: rows with one pattern have the same order, so the first row of each pattern is checked.
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

/// Appends the qualifiers that `codes` use, and returns the codes as ranks among these.
fn put_dictionary(
    target: &mut Target<'_>,
    index: usize,
    dictionary: &[Box<[u8]>],
    codes: &[u32],
) -> Result<Vec<u32>, WriteError> {
    let mut ranks = vec![u32::MAX; dictionary.len()];
    for code in codes {
        *ranks.get_mut(*code as usize).ok_or(WriteError::Qualifiers { group: index })? = 0;
    }

    let mut used: Vec<&[u8]> = Vec::new();
    for (rank, name) in ranks.iter_mut().zip(dictionary).filter(|(rank, _)| **rank == 0) {
        *rank = used.len() as u32;
        used.push(name);
    }
    if !used.is_sorted_by(|left, right| left < right) {
        return Err(WriteError::Qualifiers { group: index });
    }

    put_varint(target.head, used.len() as u64);
    let mut list = Vec::new();
    front_coding::put(&mut list, used.into_iter(), target.level)?;
    put_block(target.head, &list);
    Ok(codes.iter().map(|code| ranks[*code as usize]).collect())
}
