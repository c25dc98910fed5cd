//! Decoding of a group: its head, then the projected columns.

use std::ops::Range;

use tidetable_layout::block::{GroupProjection, Qualifiers};
use tidetable_layout::decode::record_counts;
use tidetable_layout::schema::{QualifierKind, TimestampKind};
use tidetable_layout::{FieldType, Group, GroupBlock, ValueType};

use crate::codec::{front_coding, integer_list};
use crate::coding::Input;
use crate::column;
use crate::column::stream::{PageSource, Stream};
use crate::error::{FilePart, ReadError};
use crate::format::{MODE_EXPLICIT, MODE_GAPS, MODE_PATTERNS};
use crate::group::outliers::{Ends, StoredOutliers};
use crate::group::pattern_table::PatternTable;
use crate::group::{outliers, sums};
use crate::stats::StripeMeta;

/// The decoded head of a group.
#[derive(Debug)]
pub(crate) struct GroupHead {
    /// End of the records of each row.
    pub(crate) ends: Vec<u32>,
    pub(super) dictionary: Option<(usize, Input)>,
    pub(super) layout: RecordLayout,
    pub(crate) columns: Vec<Stream>,
    /// The sums by row of each column, or empty.
    sums: Vec<Option<Stream>>,
    /// Columns whose sums may have wrapped; only in old files.
    wrapped: Vec<usize>,
    /// The outliers of each column, or empty.
    outliers: Vec<Ends<StoredOutliers>>,
    /// The byte range of its pages within the stripe.
    pub(crate) span: Range<u64>,
}

#[derive(Debug)]
pub(super) enum RecordLayout {
    Explicit { codes: Option<Stream>, timestamps: Option<Stream> },
    Patterns { table: PatternTable, ids: Vec<u32>, bases: Option<Stream> },
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
        let (times, codes) = (FilePart::Timestamps { group: index }, FilePart::Qualifiers { group: index });
        let (ends, layout) = match mode {
            MODE_EXPLICIT => {
                let counts = integer_list::read::<u32>(&mut input, rows)?;
                let ends = match is_one_each(&counts, records) {
                    true => (1..=records as u32).collect(),
                    false => ends(counts.iter().copied(), records).ok_or_else(|| input.corrupt())?,
                };
                let codes = dynamic.then(|| Stream::read(&mut input, codes, records, &mut next)).transpose()?;
                let timestamps = stored.then(|| Stream::read(&mut input, times, records, &mut next)).transpose()?;
                (ends, RecordLayout::Explicit { codes, timestamps })
            }
            MODE_PATTERNS | MODE_GAPS => {
                let table = PatternTable::read(&mut input, group, rows, records, mode == MODE_GAPS)?;
                let ids = integer_list::read::<u32>(&mut input, rows)?;
                if ids.iter().any(|id| *id as usize >= table.len()) {
                    return Err(input.corrupt());
                }
                let lens: Vec<u32> = table.lens().collect();
                let ends = match lens.iter().all(|len| *len == 1) && rows == records {
                    true => (1..=records as u32).collect(),
                    false => ends(ids.iter().map(|id| lens[*id as usize]), records).ok_or_else(|| input.corrupt())?,
                };
                let bases = stored.then(|| Stream::read(&mut input, times, rows, &mut next)).transpose()?;
                (ends, RecordLayout::Patterns { table, ids, bases })
            }
            _ => return Err(input.corrupt()),
        };
        let columns = (0..group.columns.len())
            .map(|column| Stream::read(&mut input, FilePart::Values { group: index, column }, records, &mut next))
            .collect::<Result<_, _>>()?;
        let sums = sums::read_entries(&mut input, (index, group), rows, &mut next)?;
        let outliers = outliers::read_entries(&mut input, (index, group), records, &mut next)?;
        input.finish()?;
        // Tall tables have no sums by row.
        let has_sums = sums.iter().any(Option::is_some);
        let most = if has_sums { record_counts(&ends).max().unwrap_or_default() } else { 0 };
        let range = |column: usize| meta.columns.get(index)?.get(column)?.range;
        let wraps = |column: &usize| {
            let integer = matches!(
                group.columns.get(*column).map(|column| column.value),
                Some(ValueType::Field(FieldType::Int64 | FieldType::UInt64))
            );
            integer && !range(*column).is_some_and(|range| sums::fit(range, most))
        };
        let wrapped = (0..sums.len()).filter(wraps).collect();
        Ok(Self { ends, dictionary, layout, columns, sums, wrapped, outliers, span: start..next })
    }

    /// All its streams in the order of their pages.
    pub(crate) fn streams(&self) -> impl Iterator<Item = &Stream> {
        let (first, second) = match &self.layout {
            RecordLayout::Explicit { codes, timestamps } => (codes.as_ref(), timestamps.as_ref()),
            RecordLayout::Patterns { bases, .. } => (bases.as_ref(), None),
        };
        let outliers = self.outliers.iter().flatten().flatten().flat_map(StoredOutliers::streams);
        first.into_iter().chain(second).chain(&self.columns).chain(self.sums.iter().flatten()).chain(outliers)
    }

    /// The outliers of column `column`, if stored.
    pub(crate) fn outliers(&self, column: usize) -> Option<&Ends<StoredOutliers>> {
        self.outliers.get(column)
    }

    /// The sums of column `column` by row, if stored and valid.
    pub(crate) fn sums(&self, column: usize) -> Option<&Stream> {
        self.sums.get(column)?.as_ref().filter(|_| !self.wrapped.contains(&column))
    }

    /// Whether the head proves that no row has two records of one qualifier.
    pub(crate) fn one_version_each(&self) -> bool {
        match &self.layout {
            RecordLayout::Patterns { table, .. } if self.dictionary.is_some() => table.has_distinct_codes(),
            _ => {
                let starts = std::iter::once(0).chain(self.ends.iter().copied());
                self.ends.iter().zip(starts).all(|(end, start)| end.saturating_sub(start) <= 1)
            }
        }
    }

    /// The number of distinct row patterns, if any.
    pub(crate) fn pattern_count(&self) -> Option<usize> {
        match &self.layout {
            RecordLayout::Explicit { .. } => None,
            RecordLayout::Patterns { table, .. } => Some(table.len()),
        }
    }

    /// Decodes the projection `wanted` of `rows`.
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
            block.columns.push(values.then(|| column::read(source, stream, column.value, span.clone())).transpose()?);
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
        let list = front_coding::read(&mut list.clone(), *count)?;
        let codes = match &self.layout {
            RecordLayout::Explicit { codes: Some(codes), .. } => column::read_gapless(source, codes, span)?,
            RecordLayout::Explicit { codes: None, .. } => Vec::new(),
            RecordLayout::Patterns { table, ids, .. } => {
                let mut out = Vec::with_capacity(span.len());
                ids.get(rows).unwrap_or_default().iter().for_each(|id| table.codes_of(*id, &mut out));
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
            RecordLayout::Explicit { timestamps: Some(times), .. } => column::read_gapless(source, times, span),
            RecordLayout::Patterns { table, ids, bases: Some(bases) } => {
                let bases = column::read_gapless::<i64>(source, bases, rows.clone())?;
                let mut out = Vec::with_capacity(span.len());
                for (base, id) in bases.iter().zip(ids.get(rows).unwrap_or_default()) {
                    table.timestamps_of(*id, *base, &mut out);
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

/// Whether each row has one record.
fn is_one_each(counts: &[u32], records: usize) -> bool {
    // Without an early exit the loop runs in vector instructions.
    counts.len() == records && counts.iter().fold(true, |all, count| all & (*count == 1))
}

/// The end of each row. Ends ascend, so if the last one fits all do.
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
