//! Late materialisation: evaluates a filter on one column first, and decodes other columns only for records that pass. Rows
//! without such records are omitted.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{FilterBuilder, concat, filter, take};
use tidetable_layout::block::{GroupProjection, Qualifiers};
use tidetable_layout::decode::is_one_each;
use tidetable_layout::schema::TimestampKind;
use tidetable_layout::{FieldType, Group, GroupBlock, ValueType};

use crate::codec::value_range::ValueRange;
use crate::coding::Input;
use crate::column;
use crate::column::stream::{PageSource, Stream};
use crate::error::ReadError;
use crate::format::{Codec, PAGE_RECORDS};
use crate::group::head::{GroupHead, RecordLayout};
use crate::stats::Scalar;

/// A filter on records by the values of one column.
pub trait RecordFilter: fmt::Debug + Send + Sync {
    /// The group and the column that it evaluates.
    fn column(&self) -> (usize, usize);

    /// The values of the records that pass, if these are exactly the ones in a range; those without a value do not pass then.
    fn range(&self) -> Option<ValueRange> {
        None
    }

    /// For each of these values (null for records without one), whether its record passes.
    fn keep(&self, values: &ArrayRef) -> BooleanBuffer;

    /// Whether a value in this inclusive range may pass. If `false` for the whole range, nulls do not pass either.
    fn may_keep(&self, range: (Scalar, Scalar)) -> bool;
}

/// Records of PFOR pages so far apart are read one by one, since blocks between them are passed over.
const FAR: u32 = 1024;

/// The records that pass.
pub(crate) struct SelectedRecords {
    /// Rows with such records.
    pub(crate) rows: Vec<u32>,
    /// For each of them, the end of its records.
    ends: Vec<u32>,
    /// The records, relative to the first record of the requested rows.
    records: Vec<u32>,
}

impl GroupHead {
    /// The records of the rows `rows`.
    pub(crate) fn span_of(&self, rows: &Range<usize>) -> Range<usize> {
        let end_before = |row: usize| row.checked_sub(1).and_then(|row| self.ends.get(row)).copied().unwrap_or(0);
        end_before(rows.start) as usize..end_before(rows.end) as usize
    }

    /// The rows of `rows` with some of `records`, which ascend.
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

    /// All records of `rows`, which are within `span`.
    pub(crate) fn all_of(&self, span: &Range<usize>, rows: &[usize]) -> SelectedRecords {
        let first = self.span_of(span).start;
        let mut selected = SelectedRecords { rows: Vec::new(), ends: Vec::new(), records: Vec::new() };
        for row in rows {
            let own = self.span_of(&(*row..row + 1));
            selected.records.extend(own.map(|record| (record - first) as u32));
            selected.rows.push((row - span.start) as u32);
            selected.ends.push(selected.records.len() as u32);
        }
        selected
    }

    /// Decodes the selected records; `known` is a column that is decoded already, with its values.
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
        for (at, (stream, own)) in self.columns.iter().zip(&group.columns).enumerate() {
            let known = known.as_ref().filter(|(column, _)| *column == at);
            columns.push(match (wanted.columns.get(at), known) {
                (Some(true), Some((_, values))) => Some(Arc::clone(values)),
                (Some(true), None) => Some(selected_values(source, (stream, own.value), &span, &selected.records)?),
                _ => None,
            });
        }
        Ok(GroupBlock { row_ends: selected.ends.clone(), qualifiers, timestamps, columns, sums: Vec::new() })
    }

    fn selected_qualifiers(
        &self,
        source: &PageSource<'_>,
        dictionary: &(usize, Input),
        rows: &Range<usize>,
        selected: &SelectedRecords,
    ) -> Result<Qualifiers, ReadError> {
        if let RecordLayout::Patterns { table, .. } = &self.layout {
            let codes = self.each_selected(rows, selected, |_, id, out| table.codes_of(id, out));
            // No record: the dictionary alone.
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
        let base = |row: usize| bases.get(row).copied().unwrap_or_default();
        Ok(self.each_selected(rows, selected, |row, id, out| table.timestamps_of(id, base(row), out)))
    }

    /// What `pattern` appends for the selected records, called with the rows that have any and their row patterns.
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

/// Takes the rows `rows` of a group, which ascend.
pub(crate) fn take_rows(group: GroupBlock, rows: &[u32]) -> Result<GroupBlock, ReadError> {
    let (mut records, mut row_ends) = (Vec::new(), Vec::with_capacity(rows.len()));
    for row in rows {
        records.extend(group.records(*row as usize).map(|record| record as u32));
        row_ends.push(records.len() as u32);
    }
    let codes = |qualifiers: Qualifiers| Qualifiers {
        codes: records.iter().filter_map(|record| qualifiers.codes.get(*record as usize).copied()).collect(),
        dictionary: qualifiers.dictionary,
    };
    let indices = UInt32Array::from(records.clone());
    let column = |values: Option<ArrayRef>| values.map(|values| take(values.as_ref(), &indices, None)).transpose();
    Ok(GroupBlock {
        row_ends,
        qualifiers: group.qualifiers.map(codes),
        timestamps: group
            .timestamps
            .map(|times| records.iter().filter_map(|record| times.get(*record as usize).copied()).collect()),
        columns: group.columns.into_iter().map(column).collect::<Result<_, _>>().map_err(|_| sizes_differ())?,
        sums: Vec::new(),
    })
}

/// A bit for each of the records `span`, whether it passes, and the values of those that do.
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

/// A bit for each of `values`, whether its record passes, and the values of those that do.
pub(crate) fn kept(values: &ArrayRef, keep: &dyn RecordFilter) -> Result<(BooleanBuffer, ArrayRef), ReadError> {
    let mask = keep.keep(values);
    let known = filter(values, &BooleanArray::new(mask.clone(), None)).map_err(|_| sizes_differ())?;
    Ok((mask, known))
}

/// The records that pass of the records `places` of a stripe, restricted to `span` and relative to its start, and their values.
pub(crate) fn chosen_of(
    span: &Range<usize>,
    places: &[u32],
    values: &ArrayRef,
    keep: &dyn RecordFilter,
) -> Result<(Vec<u32>, ArrayRef), ReadError> {
    let first = places.partition_point(|place| (*place as usize) < span.start);
    let last = places.partition_point(|place| (*place as usize) < span.end);
    let within = places.get(first..last).unwrap_or_default();
    let (mask, known) = kept(&values.slice(first, within.len()), keep)?;
    let of_place = |at: usize| within.get(at).map(|place| place - span.start as u32);
    Ok((mask.set_indices().filter_map(of_place).collect(), known))
}

/// The rows with records that are set in `mask`, and for each of them the end of these.
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

/// The records of a group that are set in `mask`, in rows that end at `row_ends`.
pub(crate) fn filtered(group: GroupBlock, mask: &BooleanBuffer, row_ends: Vec<u32>) -> Result<GroupBlock, ReadError> {
    fn some<T: Copy>(values: &[T], mask: &BooleanBuffer) -> Vec<T> {
        let mut out = Vec::with_capacity(mask.count_set_bits());
        mask.set_slices().for_each(|(start, end)| out.extend_from_slice(values.get(start..end).unwrap_or_default()));
        out
    }
    let is_wanted = group.columns.iter().any(Option::is_some);
    // It makes a list of all records, which counts where there is no column.
    let predicate = is_wanted.then(|| FilterBuilder::new(&BooleanArray::new(mask.clone(), None)).optimize().build());
    let column = |values: Option<ArrayRef>| {
        values.zip(predicate.as_ref()).map(|(values, predicate)| predicate.filter(values.as_ref())).transpose()
    };
    Ok(GroupBlock {
        row_ends,
        qualifiers: group
            .qualifiers
            .map(|Qualifiers { dictionary, codes }| Qualifiers { dictionary, codes: some(&codes, mask) }),
        timestamps: group.timestamps.map(|times| some(&times, mask)),
        columns: group.columns.into_iter().map(column).collect::<Result<_, _>>().map_err(|_| sizes_differ())?,
        sums: Vec::new(),
    })
}

/// The values of `records`, which ascend and count from the start of `span`. Pages without any are not read.
fn selected_values(
    source: &PageSource<'_>,
    (stream, kind): (&Stream, ValueType),
    span: &Range<usize>,
    records: &[u32],
) -> Result<ArrayRef, ReadError> {
    let mut parts: Vec<ArrayRef> = Vec::new();
    let page = |record: u32| (span.start + record as usize) / PAGE_RECORDS;
    let is_near = |one: &u32, next: &u32| match (kind, stream.codec) {
        // A dictionary is decoded once.
        (ValueType::Bytes | ValueType::Field(FieldType::Text), _) => true,
        (_, Codec::Pfor) => next - one < FAR,
        _ => page(*next) - page(*one) <= 1,
    };
    for near in records.chunk_by(is_near) {
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

fn taken(values: &ArrayRef, records: &[u32]) -> Result<ArrayRef, ReadError> {
    take(values.as_ref(), &UInt32Array::from(records.to_vec()), None).map_err(|_| sizes_differ())
}

/// The error for arrays of unexpected length, which decoding excludes.
pub(crate) fn sizes_differ() -> ReadError {
    ReadError::Corrupt { what: "records", offset: 0 }
}
