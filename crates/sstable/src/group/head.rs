//! Decoding of a group: its head, then the projected columns.

use std::ops::Range;

use tidetable_layout::block::{GroupProjection, Qualifiers};
use tidetable_layout::decode::record_counts;
use tidetable_layout::schema::{QualifierKind, TimestampKind};
use tidetable_layout::{FieldType, Group, GroupBlock, ValueType};

use crate::codec::{float_decimals, front_coding, integer_list};
use crate::coding::Input;
use crate::column;
use crate::column::stream::{PageSource, Stream};
use crate::error::{FilePart, ReadError};
use crate::format::{MODE_EXPLICIT, MODE_GAPS, MODE_PATTERNS};
use crate::group::outliers::{Ends, StoredOutliers};
use crate::group::pattern_table::PatternTable;
use crate::group::{outliers, sums};
use crate::stats::{ColumnMeta, Scalar, StripeMeta};

/// The decoded head of a group: which records each row has, and where the pages of its streams are.
#[derive(Debug)]
pub(crate) struct GroupHead {
    /// The end of the records of each row; the next row's start there.
    pub(crate) ends: Vec<u32>,
    /// The qualifiers of a dynamic group.
    pub(super) dictionary: Option<StoredDictionary>,
    pub(super) layout: RecordLayout,
    pub(crate) columns: Vec<Stream>,
    /// The sums by row of each column, or empty if there are none.
    sums: Vec<Option<Stream>>,
    /// Columns whose sums may have wrapped; only in files of old builds.
    wrapped: Vec<usize>,
    /// Columns of floats whose sums may have been rounded on the way.
    rounded: Vec<usize>,
    /// The outliers of each column, or empty if there are none.
    outliers: Vec<Ends<StoredOutliers>>,
    /// The byte range of its pages within the stripe.
    pub(crate) span: Range<u64>,
}

/// The qualifier dictionary of a group, decoded when qualifiers are read.
#[derive(Debug)]
pub(super) struct StoredDictionary {
    /// The number of qualifiers.
    count: usize,
    list: Input,
}

/// How a group stores which records its rows have.
#[derive(Debug)]
pub(super) enum RecordLayout {
    /// Record by record: a stream of qualifier codes, and one of timestamps, if the group has them.
    Explicit { codes: Option<Stream>, timestamps: Option<Stream> },
    /// By row patterns: the pattern of each row, and a stream of the rows' first timestamps.
    Patterns { table: PatternTable, ids: Vec<u32>, bases: Option<Stream> },
}

impl RecordLayout {
    /// Reads the layout of group `index` with `rows` rows and `records` records, and the end of the records of each row. `next` is the
    /// offset of the group's next page, which is advanced.
    fn read(
        input: &mut Input,
        index: usize,
        group: &Group,
        mode: u8,
        rows: usize,
        records: usize,
        next: &mut u64,
    ) -> Result<(Self, Vec<u32>), ReadError> {
        let is_dynamic = group.qualifier == QualifierKind::Dynamic;
        let has_times = group.timestamps == TimestampKind::Stored;
        let (times, codes) = (FilePart::Timestamps { group: index }, FilePart::Qualifiers { group: index });

        match mode {
            MODE_EXPLICIT => {
                let counts = integer_list::read::<u32>(input, rows)?;
                let ends = match is_one_each(&counts, records) {
                    true => (1..=records as u32).collect(),
                    false => ends(counts.iter().copied(), records).ok_or_else(|| input.corrupt())?,
                };
                let codes = is_dynamic.then(|| Stream::read(input, codes, records, next)).transpose()?;
                let timestamps = has_times.then(|| Stream::read(input, times, records, next)).transpose()?;
                Ok((Self::Explicit { codes, timestamps }, ends))
            }
            MODE_PATTERNS | MODE_GAPS => {
                let table = PatternTable::read(input, group, rows, records, mode == MODE_GAPS)?;
                let ids = integer_list::read::<u32>(input, rows)?;
                if ids.iter().any(|id| *id as usize >= table.len()) {
                    return Err(input.corrupt());
                }

                let lens: Vec<u32> = table.lens().collect();
                let ends = match lens.iter().all(|len| *len == 1) && rows == records {
                    true => (1..=records as u32).collect(),
                    false => ends(ids.iter().map(|id| lens[*id as usize]), records).ok_or_else(|| input.corrupt())?,
                };
                let bases = has_times.then(|| Stream::read(input, times, rows, next)).transpose()?;
                Ok((Self::Patterns { table, ids, bases }, ends))
            }
            _ => Err(input.corrupt()),
        }
    }
}

impl GroupHead {
    /// Reads the head of group `index` of a stripe with `rows` rows, whose entry in the stripe table is `meta`.
    ///
    /// # Errors
    /// If the bytes are damaged or contradict the stripe table.
    pub(crate) fn read(
        mut input: Input,
        index: usize,
        group: &Group,
        rows: usize,
        meta: &StripeMeta,
    ) -> Result<Self, ReadError> {
        let records = meta.records.get(index).copied().unwrap_or_default() as usize;
        let start = input.varint()?;
        let mut next = start;
        let mode = input.u8()?;
        let dictionary = match group.qualifier == QualifierKind::Dynamic {
            true => Some(StoredDictionary { count: input.count(records)?, list: input.nested("qualifiers")? }),
            false => None,
        };
        let (layout, ends) = RecordLayout::read(&mut input, index, group, mode, rows, records, &mut next)?;

        let columns: Vec<Stream> = (0..group.columns.len())
            .map(|column| Stream::read(&mut input, FilePart::Values { group: index, column }, records, &mut next))
            .collect::<Result<_, _>>()?;
        let sums = sums::read_entries(&mut input, index, group, rows, &mut next)?;
        let outliers = outliers::read_entries(&mut input, index, group, records, &mut next)?;
        input.finish()?;

        // Tall tables have no sums by row.
        let (mut wrapped, mut rounded) = (Vec::new(), Vec::new());
        if sums.iter().any(Option::is_some) {
            let stats = meta.columns.get(index).map_or(&[][..], Vec::as_slice);
            let most = record_counts(&ends).max().unwrap_or_default();
            wrapped = wrapped_sums(group, stats, most);
            rounded = rounded_sums(group, &columns, stats, most)?;
        }
        Ok(Self { ends, dictionary, layout, columns, sums, wrapped, rounded, outliers, span: start..next })
    }

    /// The records of the rows `rows`.
    pub(crate) fn span_of(&self, rows: &Range<usize>) -> Range<usize> {
        self.end_before(rows.start)..self.end_before(rows.end)
    }

    /// The number of records of all rows before `row`.
    fn end_before(&self, row: usize) -> usize {
        row.checked_sub(1).and_then(|row| self.ends.get(row)).copied().unwrap_or(0) as usize
    }

    /// All its streams in the order of their pages, for checks and inspections.
    pub(crate) fn streams(&self) -> impl Iterator<Item = &Stream> {
        let (first, second) = match &self.layout {
            RecordLayout::Explicit { codes, timestamps } => (codes.as_ref(), timestamps.as_ref()),
            RecordLayout::Patterns { bases, .. } => (bases.as_ref(), None),
        };
        let outliers = self.outliers.iter().flatten().flatten().flat_map(StoredOutliers::streams);

        first.into_iter().chain(second).chain(&self.columns).chain(self.sums.iter().flatten()).chain(outliers)
    }

    /// The outliers of column `column`; `None` if the group stores none.
    pub(crate) fn outliers(&self, column: usize) -> Option<&Ends<StoredOutliers>> {
        self.outliers.get(column)
    }

    /// The sums of column `column` by row; `None` if they are not stored or may have wrapped.
    pub(crate) fn sums(&self, column: usize) -> Option<&Stream> {
        self.sums.get(column)?.as_ref().filter(|_| !self.wrapped.contains(&column))
    }

    /// The sums of column `column` by row, if they provably are those of its values: sums of integers, and of floats that are
    /// decimals, as long as no sum on the way needs more digits than a float has.
    fn exact_sums(&self, column: usize) -> Option<&Stream> {
        self.sums(column).filter(|_| !self.rounded.contains(&column))
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

    /// The number of distinct row patterns; `None` if records are stored one by one.
    pub(crate) fn pattern_count(&self) -> Option<usize> {
        match &self.layout {
            RecordLayout::Explicit { .. } => None,
            RecordLayout::Patterns { table, .. } => Some(table.len()),
        }
    }

    /// Decodes the rows `rows`, and of them what `wanted` names. With `wanted.sums`, sums stand in for the values of the columns
    /// that have exact ones.
    ///
    /// # Errors
    /// If the bytes are damaged or the source fails.
    pub(crate) fn decode(
        &self,
        source: &PageSource<'_>,
        group: &Group,
        rows: Range<usize>,
        wanted: &GroupProjection,
    ) -> Result<GroupBlock, ReadError> {
        let span = self.span_of(&rows);
        let base = span.start as u32;
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
        for (index, (stream, column)) in self.columns.iter().zip(&group.columns).enumerate() {
            let is_wanted = wanted.columns.get(index) == Some(&true);
            let summed = self.exact_sums(index).filter(|_| is_wanted && wanted.sums);
            let values = is_wanted && summed.is_none();
            block.columns.push(values.then(|| column::read(source, stream, column.value, span.clone())).transpose()?);
            if wanted.sums {
                let sums = summed.map(|stream| sums::read(source, stream, column.value, rows.clone()));
                block.sums.push(sums.transpose()?);
            }
        }
        Ok(block)
    }

    /// The qualifiers of the rows `rows`, whose records are `span`.
    pub(super) fn qualifiers(
        &self,
        source: &PageSource<'_>,
        dictionary: &StoredDictionary,
        rows: Range<usize>,
        span: Range<usize>,
    ) -> Result<Qualifiers, ReadError> {
        let StoredDictionary { count, list } = dictionary;
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

    /// The timestamps of the rows `rows`, whose records are `span`.
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

    /// The size of the encoded qualifier dictionary in bytes.
    pub(crate) fn dictionary_bytes(&self) -> usize {
        self.dictionary.as_ref().map_or(0, |dictionary| dictionary.list.left())
    }
}

/// Columns of integers of which a row sum may exceed 64 bits, given the range of their values and the records of the fullest row.
/// Builds before the check in [`sums::of_rows`] stored such sums wrapped.
fn wrapped_sums(group: &Group, stats: &[ColumnMeta], most: usize) -> Vec<usize> {
    let mut wrapped = Vec::new();
    for (index, column) in group.columns.iter().enumerate() {
        let is_integer = matches!(column.value, ValueType::Field(FieldType::Int64 | FieldType::UInt64));
        let range = stats.get(index).and_then(|column| column.range);
        if is_integer && !range.is_some_and(|range| sums::fit(range, most)) {
            wrapped.push(index);
        }
    }
    wrapped
}

/// Columns of floats whose row sums may differ from the exact ones: the values are no decimals, or so great that adding them as
/// scaled integers rounds, given their range and the records of the fullest row.
fn rounded_sums(group: &Group, columns: &[Stream], stats: &[ColumnMeta], most: usize) -> Result<Vec<usize>, ReadError> {
    let mut rounded = Vec::new();
    for (index, (column, stream)) in group.columns.iter().zip(columns).enumerate() {
        if column.value != ValueType::Field(FieldType::Float64) {
            continue;
        }
        let range = stats.get(index).and_then(|column| column.range);
        let is_exact = match (column::decimals_of(stream)?, range) {
            (Some(decimals), Some((Scalar::Float64(least), Scalar::Float64(greatest)))) => {
                float_decimals::adds_exactly(least.abs().max(greatest.abs()), decimals, most)
            }
            _ => false,
        };
        if !is_exact {
            rounded.push(index);
        }
    }
    Ok(rounded)
}

/// Whether each row has one record, given the number of each.
fn is_one_each(counts: &[u32], records: usize) -> bool {
    // Without an early exit the loop runs in vector instructions.
    counts.len() == records && counts.iter().fold(true, |all, count| all & (*count == 1))
}

/// The end of the records of each row; `None` if there are not `records` together. Ends ascend, so if the last one fits in 32 bits all
/// do.
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
