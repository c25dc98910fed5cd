//! A group of columns read: its head first, then what a projection asks for.

use std::ops::Range;

use tidetable_layout::{
    FieldType, Group, GroupBlock, GroupProjection, QualifierKind, Qualifiers, TimestampKind, ValueType, record_counts,
};

use crate::byte_list;
use crate::error::{Part, ReadError};
use crate::extremes::{self, Ends, Extreme};
use crate::format::{MODE_EXPLICIT, MODE_SHAPES};
use crate::ints;
use crate::shapes::spans;
use crate::stats::StripeMeta;
use crate::stream::{PageSource, Stream};
use crate::sums;
use crate::values;
use crate::wire::Input;

/// A group as the head of a stripe says it is.
#[derive(Debug)]
pub(crate) struct GroupHead {
    /// End of the records of each row.
    pub(crate) ends: Vec<u32>,
    pub(super) dictionary: Option<(usize, Input)>,
    pub(super) layout: Layout,
    pub(crate) columns: Vec<Stream>,
    /// Of each column, or of none: its sums by row.
    sums: Vec<Option<Stream>>,
    /// Columns whose sums may have left 64 bits when they were written; files of today have none.
    wrapped: Vec<usize>,
    /// Of each column, or of none: its greatest and least values.
    extremes: Vec<Ends<Extreme>>,
    /// First and last byte of its pages among the stripe's.
    pub(crate) span: Range<u64>,
}

#[derive(Debug)]
pub(super) enum Layout {
    Explicit { codes: Option<Stream>, timestamps: Option<Stream> },
    Shapes { spans: Vec<Range<usize>>, codes: Vec<u32>, offsets: Vec<i64>, ids: Vec<u32>, bases: Option<Stream> },
}

impl GroupHead {
    /// Reads the head of a group of a stripe that has `rows` rows.
    pub(crate) fn read(
        mut input: Input,
        (index, group): (usize, &Group),
        rows: usize,
        meta: &StripeMeta,
    ) -> Result<Self, ReadError> {
        let records = meta.records.get(index).copied().unwrap_or_default() as usize;
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
        let extremes = extremes::read_entries(&mut input, (index, group), records, &mut next)?;
        input.finish()?;
        let most = record_counts(&ends).max().unwrap_or_default();
        let range = |column: usize| meta.columns.get(index)?.get(column)?.range;
        let wraps = |column: &usize| {
            let integer = matches!(
                group.columns.get(*column).map(|column| column.value),
                Some(ValueType::Field(FieldType::Int64 | FieldType::UInt64))
            );
            integer && !range(*column).is_some_and(|range| sums::fit(range, most))
        };
        let wrapped = (0..sums.len()).filter(wraps).collect();
        Ok(Self { ends, dictionary, layout, columns, sums, wrapped, extremes, span: start..next })
    }

    /// All its streams in the order of their pages.
    pub(crate) fn streams(&self) -> impl Iterator<Item = &Stream> {
        let (first, second) = match &self.layout {
            Layout::Explicit { codes, timestamps } => (codes.as_ref(), timestamps.as_ref()),
            Layout::Shapes { bases, .. } => (bases.as_ref(), None),
        };
        let extremes = self.extremes.iter().flatten().flatten().flat_map(Extreme::streams);
        first.into_iter().chain(second).chain(&self.columns).chain(self.sums.iter().flatten()).chain(extremes)
    }

    /// The greatest and least values of column `column`, as far as they are kept.
    pub(crate) fn extremes(&self, column: usize) -> Option<&Ends<Extreme>> {
        self.extremes.get(column)
    }

    /// The sums of column `column` by row, if they are kept, and are what its values add up to.
    pub(crate) fn sums(&self, column: usize) -> Option<&Stream> {
        self.sums.get(column)?.as_ref().filter(|_| !self.wrapped.contains(&column))
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

    pub(super) fn qualifiers(
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

    pub(super) fn timestamps(
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
