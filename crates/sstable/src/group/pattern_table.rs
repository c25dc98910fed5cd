//! The row patterns of a stripe in the head of a group.

use std::ops::Range;

use tidetable_layout::Group;
use tidetable_layout::schema::{QualifierKind, TimestampKind};

use crate::codec::integer_list;
use crate::coding::{Input, put_varint};
use crate::error::{ReadError, WriteError};
use crate::keys::row_patterns::{Gaps, RowPatterns, spans};
use crate::options::Compression;

/// A range for each pattern.
type Spans = Vec<Range<usize>>;

/// Decoded patterns. Those with gaps are not expanded: of a stripe often few rows are read.
#[derive(Debug)]
pub(crate) struct PatternTable {
    /// For each pattern the range of its template in `codes` and `offsets`.
    spans: Spans,
    /// For each pattern the range in `removed` of the records of the template that it lacks; empty if none has gaps.
    gaps: Spans,
    /// Records, counted from the start of the template.
    removed: Vec<u32>,
    /// Qualifier codes of the templates (dynamic groups).
    codes: Vec<u32>,
    /// Timestamps of the templates relative to the first (stored timestamps).
    offsets: Vec<i64>,
}

/// Appends `patterns`, whose qualifier codes are now `codes`. With gaps, those patterns that lack records of others follow as what
/// they lack.
pub(crate) fn put(
    head: &mut Vec<u8>,
    group: &Group,
    patterns: &RowPatterns,
    codes: &[u32],
    level: Compression,
) -> Result<(), WriteError> {
    put_varint(head, patterns.lens.len() as u64);
    if patterns.has_gaps() {
        let lacking = |gaps: &Option<Gaps>| gaps.as_ref().map_or(0, |gaps| gaps.removed.len() as u32);
        integer_list::put(head, &patterns.gaps.iter().map(lacking).collect::<Vec<u32>>(), level)?;
    }
    let by_itself = || patterns.gaps.iter().map(Option::is_none);
    let lens: Vec<u32> = patterns.lens.iter().zip(by_itself()).filter(|(_, own)| *own).map(|(len, _)| *len).collect();
    integer_list::put(head, &lens, level)?;
    let (dynamic, stored) = kinds(group);
    if dynamic {
        integer_list::put(head, &of_own(codes, patterns), level)?;
    }
    if stored {
        integer_list::put(head, &of_own(&patterns.offsets, patterns), level)?;
    }
    if patterns.has_gaps() {
        // Templates are counted among themselves.
        let ranks: Vec<u32> = by_itself()
            .scan(0, |rank, own| {
                *rank += u32::from(own);
                Some(*rank - u32::from(own))
            })
            .collect();
        let gaps = || patterns.gaps.iter().flatten();
        integer_list::put(head, &gaps().map(|gaps| ranks[gaps.of as usize]).collect::<Vec<u32>>(), level)?;
        let removed: Vec<u32> = gaps().flat_map(|gaps| gaps.removed.iter().copied()).collect();
        integer_list::put(head, &removed, level)?;
    }
    Ok(())
}

/// Whether qualifiers and timestamps are stored.
fn kinds(group: &Group) -> (bool, bool) {
    (group.qualifier == QualifierKind::Dynamic, group.timestamps == TimestampKind::Stored)
}

/// Of values of all patterns, those of patterns that stand by themselves.
fn of_own<T: Copy>(values: &[T], patterns: &RowPatterns) -> Vec<T> {
    let mut start = 0;
    let mut own = Vec::new();
    for (len, gaps) in patterns.lens.iter().zip(&patterns.gaps) {
        let end = start + *len as usize;
        if gaps.is_none() {
            own.extend_from_slice(&values[start..end]);
        }
        start = end;
    }
    own
}

impl PatternTable {
    /// Reads what [`put`] appended for `rows` rows with `records` records.
    pub(crate) fn read(
        input: &mut Input,
        group: &Group,
        rows: usize,
        records: usize,
        with_gaps: bool,
    ) -> Result<Self, ReadError> {
        let count = input.count(rows)?;
        let lacking = match with_gaps {
            true => integer_list::read::<u32>(input, count)?,
            false => vec![0; count],
        };
        let own = lacking.iter().filter(|lacking| **lacking == 0).count();
        let lens = integer_list::read::<u32>(input, own)?;
        let (total, spans) = spans(&lens, records).ok_or_else(|| input.corrupt())?;
        let (dynamic, stored) = kinds(group);
        let codes = if dynamic { integer_list::read::<u32>(input, total)? } else { Vec::new() };
        let offsets = if stored { integer_list::read::<i64>(input, total)? } else { Vec::new() };
        if !with_gaps {
            return Ok(Self { spans, gaps: Vec::new(), removed: Vec::new(), codes, offsets });
        }
        let of = integer_list::read::<u32>(input, count - own)?;
        let total: u64 = lacking.iter().map(|lacking| u64::from(*lacking)).sum();
        if total > records as u64 {
            return Err(input.corrupt());
        }
        let removed = integer_list::read::<u32>(input, total as usize)?;
        let (spans, gaps) = with_templates(&spans, &lacking, &of).ok_or_else(|| input.corrupt())?;
        let table = Self { spans, gaps, removed, codes, offsets };
        if table.is_sound() { Ok(table) } else { Err(input.corrupt()) }
    }

    /// The number of patterns.
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The number of records of each pattern.
    pub(crate) fn lens(&self) -> impl Iterator<Item = u32> {
        self.spans.iter().enumerate().map(|(id, span)| (span.len() - self.lacks(id).len()) as u32)
    }

    /// Whether the codes of every pattern ascend strictly.
    pub(crate) fn has_distinct_codes(&self) -> bool {
        let ascend = |codes: &[u32]| codes.is_sorted_by(|one, next| one < next);
        self.spans.iter().all(|span| self.codes.get(span.clone()).is_some_and(ascend))
    }

    /// Appends the qualifier codes of pattern `id`.
    pub(crate) fn codes_of(&self, id: u32, out: &mut Vec<u32>) {
        self.each_run(id, |run| out.extend_from_slice(self.codes.get(run).unwrap_or_default()));
    }

    /// Appends the timestamps of pattern `id` in a row whose first is `base`.
    pub(crate) fn timestamps_of(&self, id: u32, base: i64, out: &mut Vec<i64>) {
        let mut start = None;
        self.each_run(id, |run| {
            let offsets = self.offsets.get(run).unwrap_or_default();
            let Some(first) = offsets.first() else { return };
            let base = base.wrapping_sub(*start.get_or_insert(*first));
            out.extend(offsets.iter().map(|offset| base.wrapping_add(*offset)));
        });
    }

    fn lacks(&self, id: usize) -> &[u32] {
        self.gaps.get(id).and_then(|gaps| self.removed.get(gaps.clone())).unwrap_or_default()
    }

    /// Calls `each` with the runs of records of a template that pattern `id` has.
    fn each_run(&self, id: u32, mut each: impl FnMut(Range<usize>)) {
        let Some(span) = self.spans.get(id as usize) else { return };
        let mut next = span.start;
        for gap in self.lacks(id as usize) {
            let end = span.start + *gap as usize;
            each(next..end);
            next = end + 1;
        }
        each(next..span.end);
    }

    /// Whether the records that patterns lack ascend and leave some.
    fn is_sound(&self) -> bool {
        self.spans.iter().enumerate().all(|(id, span)| {
            let lacks = self.lacks(id);
            let fit = lacks.is_sorted_by(|one, next| one < next)
                && lacks.last().is_none_or(|last| (*last as usize) < span.len());
            fit && (lacks.is_empty() || lacks.len() < span.len())
        })
    }
}

/// For each pattern its template's span and what it lacks. `lacking`: the number of records; `of`: the templates of those that lack some.
fn with_templates(templates: &[Range<usize>], lacking: &[u32], of: &[u32]) -> Option<(Spans, Spans)> {
    let (mut own, mut of) = (templates.iter(), of.iter());
    let (mut spans, mut gaps, mut end) = (Vec::with_capacity(lacking.len()), Vec::with_capacity(lacking.len()), 0);
    for lacking in lacking {
        spans.push(if *lacking == 0 { own.next()?.clone() } else { templates.get(*of.next()? as usize)?.clone() });
        gaps.push(end..end + *lacking as usize);
        end += *lacking as usize;
    }
    Some((spans, gaps))
}
