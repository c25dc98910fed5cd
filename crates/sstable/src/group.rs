//! One group of columns in a stripe: which records each row has, their qualifiers, timestamps and values.

mod kept;

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray};
use tidetable_layout::{Group, GroupBlock, GroupProjection, QualifierKind, Qualifiers, TimestampKind, ValueType};

use crate::byte_list;
use crate::error::{Part, ReadError, WriteError};
use crate::format::{MAX_RECORDS, MODE_EXPLICIT, MODE_SHAPES};
use crate::ints;
use crate::options::Compression;
use crate::shapes::{Records, Shapes, spans};
use crate::stats::{ColumnMeta, measure};
use crate::stream::{PageSource, Pages, Stream};
use crate::sums;
use crate::values::{self, Target};
use crate::wire::{Input, put_block, put_varint};

pub use kept::KeepRecords;

/// What the stripe table needs of a group.
pub(crate) struct GroupMeta {
    pub(crate) records: u64,
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
    sums::put(&mut target, group, records, view.columns.iter().zip(decimals))?;
    Ok(GroupMeta { records: records.len() as u64, timestamps: records.timestamps.and_then(bounds), columns })
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

/// A group as the head of a stripe says it is.
#[derive(Debug)]
pub(crate) struct GroupHead {
    /// End of the records of each row.
    pub(crate) ends: Vec<u32>,
    dictionary: Option<(usize, Input)>,
    layout: Layout,
    pub(crate) columns: Vec<Stream>,
    /// Of each column, or of none: its sums by row.
    sums: Vec<Option<Stream>>,
    /// First and last byte of its pages among the stripe's.
    pub(crate) span: Range<u64>,
}

#[derive(Debug)]
enum Layout {
    Explicit { codes: Option<Stream>, timestamps: Option<Stream> },
    Shapes { spans: Vec<Range<usize>>, codes: Vec<u32>, offsets: Vec<i64>, ids: Vec<u32>, bases: Option<Stream> },
}

impl GroupHead {
    /// Reads the head of a group that has `records` records in `rows` rows.
    pub(crate) fn read(
        mut input: Input,
        (index, group): (usize, &Group),
        rows: usize,
        records: usize,
    ) -> Result<Self, ReadError> {
        let start = input.varint()?;
        let mut next = start;
        let mode = input.u8()?;
        let dynamic = group.qualifier == QualifierKind::Dynamic;
        let stored = group.timestamps == TimestampKind::Stored;
        let dictionary = match dynamic {
            true => Some((input.count(records)?, input.nested("qualifiers")?)),
            false => None,
        };
        let (times, codes) = (Part::Timestamps { group: index }, Part::Qualifiers { group: index });
        let (ends, layout) = match mode {
            MODE_EXPLICIT => {
                let counts = ints::read::<u32>(&mut input, rows)?;
                let ends = ends(counts.iter().copied(), records).ok_or_else(|| input.corrupt())?;
                let codes = dynamic.then(|| Stream::read(&mut input, codes, records, &mut next)).transpose()?;
                let timestamps = stored.then(|| Stream::read(&mut input, times, records, &mut next)).transpose()?;
                (ends, Layout::Explicit { codes, timestamps })
            }
            MODE_SHAPES => {
                let count = input.count(rows)?;
                let lens = ints::read::<u32>(&mut input, count)?;
                let (total, spans) = spans(&lens, records).ok_or_else(|| input.corrupt())?;
                let codes = if dynamic { ints::read::<u32>(&mut input, total)? } else { Vec::new() };
                let offsets = if stored { ints::read::<i64>(&mut input, total)? } else { Vec::new() };
                let ids = ints::read::<u32>(&mut input, rows)?;
                if ids.iter().any(|id| *id as usize >= count) {
                    return Err(input.corrupt());
                }
                let ends = ends(ids.iter().map(|id| lens[*id as usize]), records).ok_or_else(|| input.corrupt())?;
                let bases = stored.then(|| Stream::read(&mut input, times, rows, &mut next)).transpose()?;
                (ends, Layout::Shapes { spans, codes, offsets, ids, bases })
            }
            _ => return Err(input.corrupt()),
        };
        let columns = (0..group.columns.len())
            .map(|column| Stream::read(&mut input, Part::Values { group: index, column }, records, &mut next))
            .collect::<Result<_, _>>()?;
        let sums = sums::read_entries(&mut input, (index, group), rows, &mut next)?;
        input.finish()?;
        Ok(Self { ends, dictionary, layout, columns, sums, span: start..next })
    }

    /// All its streams in the order of their pages.
    pub(crate) fn streams(&self) -> impl Iterator<Item = &Stream> {
        let (first, second) = match &self.layout {
            Layout::Explicit { codes, timestamps } => (codes.as_ref(), timestamps.as_ref()),
            Layout::Shapes { bases, .. } => (bases.as_ref(), None),
        };
        first.into_iter().chain(second).chain(&self.columns).chain(self.sums.iter().flatten())
    }

    /// The sums of column `column` by row, if they are kept.
    pub(crate) fn sums(&self, column: usize) -> Option<&Stream> {
        self.sums.get(column)?.as_ref()
    }

    /// Whether it is certain, from the head alone, that no row has two records of one qualifier.
    pub(crate) fn one_version_each(&self) -> bool {
        match &self.layout {
            Layout::Shapes { spans, codes, .. } if self.dictionary.is_some() => spans
                .iter()
                .all(|span| codes.get(span.clone()).is_some_and(|codes| codes.is_sorted_by(|one, next| one < next))),
            _ => {
                let starts = std::iter::once(0).chain(self.ends.iter().copied());
                self.ends.iter().zip(starts).all(|(end, start)| end.saturating_sub(start) <= 1)
            }
        }
    }

    /// Distinct shapes, if it has any.
    pub(crate) fn shape_count(&self) -> Option<usize> {
        match &self.layout {
            Layout::Explicit { .. } => None,
            Layout::Shapes { spans, .. } => Some(spans.len()),
        }
    }

    /// Decodes what `wanted` asks for of the rows `rows`.
    pub(crate) fn decode(
        &self,
        source: &PageSource<'_>,
        group: &Group,
        rows: Range<usize>,
        wanted: &GroupProjection,
    ) -> Result<GroupBlock, ReadError> {
        let end_before = |row: usize| if row == 0 { 0 } else { self.ends.get(row - 1).copied().unwrap_or(0) };
        let base = end_before(rows.start);
        let span = base as usize..end_before(rows.end) as usize;
        let row_ends = self.ends.get(rows.clone()).unwrap_or_default().iter().map(|end| end - base).collect();
        let qualifiers = match &self.dictionary {
            Some(dictionary) if wanted.qualifiers => {
                Some(self.qualifiers(source, dictionary, rows.clone(), span.clone())?)
            }
            _ => None,
        };
        let timestamps = match group.timestamps {
            TimestampKind::Stored if wanted.timestamps => Some(self.timestamps(source, rows.clone(), span.clone())?),
            _ => None,
        };
        let mut block = GroupBlock { row_ends, qualifiers, timestamps, columns: Vec::new(), sums: Vec::new() };
        for (at, (stream, column)) in self.columns.iter().zip(&group.columns).enumerate() {
            let is_wanted = wanted.columns.get(at) == Some(&true);
            let summed = self.sums(at).filter(|_| is_wanted && wanted.sums);
            let values = is_wanted && summed.is_none();
            block.columns.push(values.then(|| values::read(source, stream, column.value, span.clone())).transpose()?);
            if wanted.sums {
                let sums = summed.map(|stream| sums::read(source, stream, column.value, rows.clone()));
                block.sums.push(sums.transpose()?);
            }
        }
        Ok(block)
    }

    fn qualifiers(
        &self,
        source: &PageSource<'_>,
        (count, list): &(usize, Input),
        rows: Range<usize>,
        span: Range<usize>,
    ) -> Result<Qualifiers, ReadError> {
        let corrupt = list.corrupt();
        let list = byte_list::read(&mut list.clone(), *count)?;
        let codes = match &self.layout {
            Layout::Explicit { codes: Some(codes), .. } => values::read_gapless(source, codes, span)?,
            Layout::Explicit { codes: None, .. } => Vec::new(),
            Layout::Shapes { spans, codes, ids, .. } => {
                let mut out = Vec::with_capacity(span.len());
                for id in ids.get(rows).unwrap_or_default() {
                    let shape = spans.get(*id as usize).and_then(|span| codes.get(span.clone()));
                    out.extend_from_slice(shape.unwrap_or_default());
                }
                out
            }
        };
        if codes.iter().fold(0, |most, code| most.max(*code)) as usize >= *count && !codes.is_empty() {
            return Err(corrupt);
        }
        Ok(Qualifiers { dictionary: list.iter().map(Box::from).collect(), codes })
    }

    fn timestamps(
        &self,
        source: &PageSource<'_>,
        rows: Range<usize>,
        span: Range<usize>,
    ) -> Result<Vec<i64>, ReadError> {
        match &self.layout {
            Layout::Explicit { timestamps: Some(times), .. } => values::read_gapless(source, times, span),
            Layout::Shapes { spans, offsets, ids, bases: Some(bases), .. } => {
                let bases = values::read_gapless::<i64>(source, bases, rows.clone())?;
                let mut out = Vec::with_capacity(span.len());
                for (base, id) in bases.iter().zip(ids.get(rows).unwrap_or_default()) {
                    let shape = spans.get(*id as usize).and_then(|span| offsets.get(span.clone()));
                    out.extend(shape.unwrap_or_default().iter().map(|offset| base.wrapping_add(*offset)));
                }
                Ok(out)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Bytes of the qualifier dictionary.
    pub(crate) fn dictionary_bytes(&self) -> usize {
        self.dictionary.as_ref().map_or(0, |(_, list)| list.left())
    }
}

/// The end of each row. The sum only grows, so if the last end fits, all do.
fn ends(counts: impl Iterator<Item = u32>, records: usize) -> Option<Vec<u32>> {
    let mut end = 0u64;
    let ends: Vec<u32> = counts
        .map(|count| {
            end += u64::from(count);
            end as u32
        })
        .collect();
    (end == records as u64).then_some(ends)
}
