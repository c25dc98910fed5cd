//! Late materialisation: evaluates a filter on one column first, and decodes other columns only for records that pass. Rows
//! without such records are omitted. The strategy is described by Abadi et al., "Materialization Strategies in a Column-Oriented
//! DBMS" (ICDE 2007).

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{FilterBuilder, concat, filter, take};
use tidetable_layout::block::{GroupProjection, Qualifiers};
use tidetable_layout::decode::is_one_each;
use tidetable_layout::schema::TimestampKind;
use tidetable_layout::{ColumnRef, FieldType, Group, GroupBlock, ValueType};

use crate::codec::value_range::ValueRange;
use crate::column;
use crate::column::stream::{PageSource, Stream};
use crate::error::ReadError;
use crate::format::{Codec, PAGE_RECORDS};
use crate::group::head::{GroupHead, RecordLayout, StoredDictionary};
use crate::group::outliers::RecordValues;
use crate::stats::Scalar;

/// A filter on records by the values of one column.
pub trait RecordFilter: fmt::Debug + Send + Sync {
    /// The column whose values it evaluates.
    fn column(&self) -> ColumnRef;

    /// The values of the records that pass, if these are exactly the ones in a range; those without a value do not pass then.
    fn range(&self) -> Option<ValueRange> {
        None
    }

    /// For each of these values (null for records without one), whether its record passes.
    fn keep(&self, values: &ArrayRef) -> BooleanBuffer;

    /// Whether a value in this inclusive range may pass. If `false` for the whole range, nulls do not pass either.
    fn may_keep(&self, range: (Scalar, Scalar)) -> bool;
}

/// In records. Wanted records of a PFOR page that are this far apart are read one by one, since blocks in between can be skipped.
const FAR: u32 = 1024;

/// The records of a group that pass a filter, and the rows that have such records.
pub(crate) struct SelectedRecords {
    /// The rows with such records, relative to the first requested row, ascending.
    pub(crate) rows: Vec<u32>,
    /// For each of them, the end of its records.
    ends: Vec<u32>,
    /// The records, relative to the first record of the requested rows.
    records: Vec<u32>,
}

impl GroupHead {
    /// The selection of `records` (ascending, relative to the first record of `rows`), with the rows that have them.
    pub(crate) fn selected(&self, rows: &Range<usize>, records: Vec<u32>) -> SelectedRecords {
        let first = self.span_of(rows).start;
        let ends = self.ends.get(rows.clone()).unwrap_or_default();
        let mut selected = SelectedRecords { rows: Vec::new(), ends: Vec::new(), records };

        let mut row = 0;
        for (at, record) in selected.records.iter().enumerate() {
            while ends.get(row).is_some_and(|end| (*end as usize) - first <= *record as usize) {
                row += 1;
            }
            if selected.rows.last() != Some(&(row as u32)) {
                selected.rows.push(row as u32);
                selected.ends.push(0);
            }
            if let Some(end) = selected.ends.last_mut() {
                *end = at as u32 + 1;
            }
        }
        selected
    }

    /// The selection of all records of `rows`, which ascend and are within `span`.
    pub(crate) fn all_of(&self, span: &Range<usize>, rows: &[usize]) -> SelectedRecords {
        let first = self.span_of(span).start;
        let mut selected = SelectedRecords { rows: Vec::new(), ends: Vec::new(), records: Vec::new() };
        for row in rows {
            let records = self.span_of(&(*row..row + 1));
            selected.records.extend(records.map(|record| (record - first) as u32));
            selected.rows.push((row - span.start) as u32);
            selected.ends.push(selected.records.len() as u32);
        }
        selected
    }

    /// Decodes the selected records of the rows `rows`, and of them what `wanted` names. `known` is a column that is decoded already,
    /// with its values.
    ///
    /// # Errors
    /// If the bytes are damaged or the source fails.
    pub(crate) fn decode_selected(
        &self,
        source: &PageSource<'_>,
        group: &Group,
        rows: &Range<usize>,
        wanted: &GroupProjection,
        selected: &SelectedRecords,
        known: Option<(usize, ArrayRef)>,
    ) -> Result<GroupBlock, ReadError> {
        let span = self.span_of(rows);
        let qualifiers = match &self.dictionary {
            Some(dictionary) if wanted.qualifiers => {
                Some(self.selected_qualifiers(source, dictionary, rows, selected)?)
            }
            _ => None,
        };
        let timestamps = match group.timestamps {
            TimestampKind::Stored if wanted.timestamps => Some(self.selected_timestamps(source, rows, selected)?),
            _ => None,
        };

        let mut columns = Vec::with_capacity(group.columns.len());
        for (index, (stream, column)) in self.columns.iter().zip(&group.columns).enumerate() {
            let known = known.as_ref().filter(|(known, _)| *known == index);
            columns.push(match (wanted.columns.get(index), known) {
                (Some(true), Some((_, values))) => Some(Arc::clone(values)),
                (Some(true), None) => Some(selected_values(source, stream, column.value, &span, &selected.records)?),
                _ => None,
            });
        }
        Ok(GroupBlock { row_ends: selected.ends.clone(), qualifiers, timestamps, columns, sums: Vec::new() })
    }

    fn selected_qualifiers(
        &self,
        source: &PageSource<'_>,
        dictionary: &StoredDictionary,
        rows: &Range<usize>,
        selected: &SelectedRecords,
    ) -> Result<Qualifiers, ReadError> {
        if let RecordLayout::Patterns { table, .. } = &self.layout {
            let codes = self.each_selected(rows, selected, |_, id, out| table.codes_of(id, out));
            // Without records, this reads the dictionary alone.
            let Qualifiers { dictionary, .. } = self.qualifiers(source, dictionary, 0..0, 0..0)?;
            return match codes.iter().all(|code| (*code as usize) < dictionary.len()) {
                true => Ok(Qualifiers { dictionary, codes }),
                false => Err(sizes_differ()),
            };
        }

        let all = self.qualifiers(source, dictionary, rows.clone(), self.span_of(rows))?;
        let codes = selected.records.iter().filter_map(|record| all.codes.get(*record as usize).copied()).collect();
        Ok(Qualifiers { dictionary: all.dictionary, codes })
    }

    fn selected_timestamps(
        &self,
        source: &PageSource<'_>,
        rows: &Range<usize>,
        selected: &SelectedRecords,
    ) -> Result<Vec<i64>, ReadError> {
        let RecordLayout::Patterns { table, bases: Some(bases), .. } = &self.layout else {
            let all = self.timestamps(source, rows.clone(), self.span_of(rows))?;
            return Ok(selected.records.iter().filter_map(|record| all.get(*record as usize).copied()).collect());
        };

        let bases = column::read_gapless::<i64>(source, bases, rows.clone())?;
        Ok(self.each_selected(rows, selected, |row, id, out| {
            table.timestamps_of(id, bases.get(row).copied().unwrap_or_default(), out);
        }))
    }

    /// What row patterns say of the selected records. `pattern(row, id, out)` appends it for all records of a row with pattern `id`; it
    /// is called for each row with selected records.
    fn each_selected<T: Copy>(
        &self,
        rows: &Range<usize>,
        selected: &SelectedRecords,
        pattern: impl Fn(usize, u32, &mut Vec<T>),
    ) -> Vec<T> {
        let RecordLayout::Patterns { ids, .. } = &self.layout else { return Vec::new() };
        let (ids, mut start) = (ids.get(rows.clone()).unwrap_or_default(), 0);
        let (mut out, mut all) = (Vec::with_capacity(selected.records.len()), Vec::new());

        for (row, end) in selected.rows.iter().zip(&selected.ends) {
            let row = *row as usize;
            let first = self.span_of(&(rows.start..rows.start + row)).len();
            all.clear();
            pattern(row, ids.get(row).copied().unwrap_or_default(), &mut all);

            let records = selected.records.get(start..*end as usize).unwrap_or_default();
            out.extend(records.iter().filter_map(|record| all.get((*record as usize).saturating_sub(first)).copied()));
            start = *end as usize;
        }
        out
    }
}

/// Takes the rows `rows` of a group, which ascend, with all their records.
pub(crate) fn take_rows(group: GroupBlock, rows: &[u32]) -> Result<GroupBlock, ReadError> {
    let (mut records, mut row_ends) = (Vec::new(), Vec::with_capacity(rows.len()));
    for row in rows {
        records.extend(group.records(*row as usize).map(|record| record as u32));
        row_ends.push(records.len() as u32);
    }

    let qualifiers = group
        .qualifiers
        .map(|Qualifiers { dictionary, codes }| Qualifiers { dictionary, codes: values_at(&codes, &records) });
    let timestamps = group.timestamps.map(|times| values_at(&times, &records));

    let indices = UInt32Array::from(records);
    let mut columns = Vec::with_capacity(group.columns.len());
    for values in group.columns {
        let taken = values.map(|values| take(values.as_ref(), &indices, None)).transpose();
        columns.push(taken.map_err(|_| sizes_differ())?);
    }
    Ok(GroupBlock { row_ends, qualifiers, timestamps, columns, sums: Vec::new() })
}

/// The values of `records`.
fn values_at<T: Copy>(values: &[T], records: &[u32]) -> Vec<T> {
    records.iter().filter_map(|record| values.get(*record as usize).copied()).collect()
}

/// Evaluates `keep` for the records `span` of its column: a bit for each record, and the values of those that pass.
pub(crate) fn by_value(
    source: &PageSource<'_>,
    stream: &Stream,
    kind: ValueType,
    span: &Range<usize>,
    keep: &dyn RecordFilter,
) -> Result<(BooleanBuffer, ArrayRef), ReadError> {
    if let Some(range) = keep.range()
        && let Some(found) = column::select(source, stream, kind, span.clone(), range)?
    {
        return Ok(found);
    }
    kept(&column::read(source, stream, kind, span.clone())?, keep)
}

/// As [`by_value`], for values that are decoded already.
pub(crate) fn kept(values: &ArrayRef, keep: &dyn RecordFilter) -> Result<(BooleanBuffer, ArrayRef), ReadError> {
    let mask = keep.keep(values);
    let known = filter(values, &BooleanArray::new(mask.clone(), None)).map_err(|_| sizes_differ())?;
    Ok((mask, known))
}

/// Of the records `candidates` of a stripe, those that are in `span` and pass, relative to its start, and their values.
pub(crate) fn chosen_of(
    span: &Range<usize>,
    candidates: &RecordValues,
    keep: &dyn RecordFilter,
) -> Result<(Vec<u32>, ArrayRef), ReadError> {
    let records = &candidates.records;
    let first = records.partition_point(|record| (*record as usize) < span.start);
    let last = records.partition_point(|record| (*record as usize) < span.end);
    let within = records.get(first..last).unwrap_or_default();

    let (mask, known) = kept(&candidates.values.slice(first, within.len()), keep)?;
    let chosen = mask.set_indices().filter_map(|index| within.get(index).map(|record| record - span.start as u32));
    Ok((chosen.collect(), known))
}

/// The rows with records that are set in `mask`, and for each of them the end of these records. `ends` has the end of all records of
/// each row.
pub(crate) fn rows_with(ends: &[u32], mask: &BooleanBuffer) -> (Vec<u32>, Vec<u32>) {
    if is_one_each(ends) {
        let rows: Vec<u32> = mask.set_indices().map(|row| row as u32).collect();
        let row_ends = (1..=rows.len() as u32).collect();
        return (rows, row_ends);
    }

    let (mut rows, mut row_ends) = (Vec::with_capacity(ends.len()), Vec::with_capacity(ends.len()));
    let (mut start, mut records) = (0, 0);

    for (row, end) in ends.iter().enumerate() {
        let count = mask.slice(start, (*end as usize).saturating_sub(start)).count_set_bits() as u32;
        start = *end as usize;
        if count > 0 {
            records += count;
            rows.push(row as u32);
            row_ends.push(records);
        }
    }
    (rows, row_ends)
}

/// The records of a group that are set in `mask`; the rows that keep any end at `row_ends`.
pub(crate) fn filtered(group: GroupBlock, mask: &BooleanBuffer, row_ends: Vec<u32>) -> Result<GroupBlock, ReadError> {
    let qualifiers = group
        .qualifiers
        .map(|Qualifiers { dictionary, codes }| Qualifiers { dictionary, codes: values_in(&codes, mask) });
    let timestamps = group.timestamps.map(|times| values_in(&times, mask));

    // A predicate is a list of all records that pass: not worth building without a column.
    let is_wanted = group.columns.iter().any(Option::is_some);
    let predicate = is_wanted.then(|| FilterBuilder::new(&BooleanArray::new(mask.clone(), None)).optimize().build());
    let mut columns = Vec::with_capacity(group.columns.len());
    for values in group.columns {
        let pair = values.zip(predicate.as_ref());
        let passing = pair.map(|(values, predicate)| predicate.filter(values.as_ref())).transpose();
        columns.push(passing.map_err(|_| sizes_differ())?);
    }
    Ok(GroupBlock { row_ends, qualifiers, timestamps, columns, sums: Vec::new() })
}

/// The values of the records that are set in `mask`.
fn values_in<T: Copy>(values: &[T], mask: &BooleanBuffer) -> Vec<T> {
    let mut out = Vec::with_capacity(mask.count_set_bits());
    mask.set_slices().for_each(|(start, end)| out.extend_from_slice(values.get(start..end).unwrap_or_default()));
    out
}

/// The values of `records`, which ascend and count from the start of `span`. Pages without any are not read.
fn selected_values(
    source: &PageSource<'_>,
    stream: &Stream,
    kind: ValueType,
    span: &Range<usize>,
    records: &[u32],
) -> Result<ArrayRef, ReadError> {
    let mut parts: Vec<ArrayRef> = Vec::new();
    for near in records.chunk_by(|one, next| are_near(stream, kind, span.start, *one, *next)) {
        let (Some(first), Some(last)) = (near.first(), near.last()) else { continue };
        let range = span.start + *first as usize..span.start + *last as usize + 1;
        let values = column::read(source, stream, kind, range.clone())?;
        parts.push(match near.len() == range.len() {
            true => values,
            false => taken(&values, &near.iter().map(|record| record - first).collect::<Vec<u32>>())?,
        });
    }

    match parts.as_slice() {
        [] => column::read(source, stream, kind, span.start..span.start),
        [one] => Ok(Arc::clone(one)),
        _ => concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>()).map_err(|_| sizes_differ()),
    }
}

/// Whether records `one` and `next`, counted from `start`, are better read together than apart.
fn are_near(stream: &Stream, kind: ValueType, start: usize, one: u32, next: u32) -> bool {
    match (kind, stream.codec) {
        // A dictionary is decoded once a read.
        (ValueType::Bytes | ValueType::Field(FieldType::Text), _) => true,
        (_, Codec::Pfor) => next - one < FAR,
        _ => (start + next as usize) / PAGE_RECORDS - (start + one as usize) / PAGE_RECORDS <= 1,
    }
}

fn taken(values: &ArrayRef, records: &[u32]) -> Result<ArrayRef, ReadError> {
    take(values.as_ref(), &UInt32Array::from(records.to_vec()), None).map_err(|_| sizes_differ())
}

/// The error for arrays of unexpected length, which decoding excludes.
pub(crate) fn sizes_differ() -> ReadError {
    ReadError::Corrupt { what: "records", offset: 0 }
}
