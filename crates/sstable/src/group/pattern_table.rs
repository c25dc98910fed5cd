//! The row patterns of a stripe in the head of a group. Detection is in `keys::row_patterns`; this is their stored form.

use std::ops::Range;

use tidetable_layout::Group;
use tidetable_layout::schema::{QualifierKind, TimestampKind};

use crate::codec::integer_list;
use crate::coding::{Input, put_varint};
use crate::error::{ReadError, WriteError};
use crate::keys::row_patterns::{RowPatterns, spans};
use crate::options::Compression;

/// A range for each pattern, in order of their numbers.
type Spans = Vec<Range<usize>>;

/// Decoded patterns. Those with gaps are not expanded, because often few rows of a stripe are read.
#[derive(Debug)]
pub(crate) struct PatternTable {
    /// For each pattern the range of its template in `codes` and `offsets`.
    spans: Spans,
    /// For each pattern the range in `removed` of the records of the template that it lacks; empty if none has gaps.
    gaps: Spans,
    /// The records that patterns lack, counted from the start of the template.
    removed: Vec<u32>,
    /// The qualifier codes of the templates, in dynamic groups.
    codes: Vec<u32>,
    /// The timestamps of the templates relative to the first of each, in groups that store them.
    offsets: Vec<i64>,
}

/// Appends `patterns`, whose qualifier codes are ranked as `codes`. Patterns that stand by themselves come first; those with gaps follow
/// as what they lack.
///
/// # Errors
/// If an encoder fails.
pub(crate) fn put(
    head: &mut Vec<u8>,
    group: &Group,
    patterns: &RowPatterns,
    codes: &[u32],
    level: Compression,
) -> Result<(), WriteError> {
    let (mut lens, mut lacking, mut ranks) = (Vec::new(), Vec::new(), Vec::new());
    for (len, gaps) in patterns.lens.iter().zip(&patterns.gaps) {
        // Templates are counted among themselves.
        ranks.push(lens.len() as u32);
        lacking.push(gaps.as_ref().map_or(0, |gaps| gaps.removed.len() as u32));
        if gaps.is_none() {
            lens.push(*len);
        }
    }

    put_varint(head, patterns.lens.len() as u64);
    if patterns.has_gaps() {
        integer_list::put(head, &lacking, level)?;
    }
    integer_list::put(head, &lens, level)?;
    if is_dynamic(group) {
        integer_list::put(head, &of_templates(codes, patterns), level)?;
    }
    if has_times(group) {
        integer_list::put(head, &of_templates(&patterns.offsets, patterns), level)?;
    }

    if patterns.has_gaps() {
        let (mut templates, mut removed) = (Vec::new(), Vec::new());
        for gaps in patterns.gaps.iter().flatten() {
            templates.push(ranks[gaps.of as usize]);
            removed.extend_from_slice(&gaps.removed);
        }
        integer_list::put(head, &templates, level)?;
        integer_list::put(head, &removed, level)?;
    }
    Ok(())
}

/// Whether patterns have qualifier codes.
fn is_dynamic(group: &Group) -> bool {
    group.qualifier == QualifierKind::Dynamic
}

/// Whether patterns have timestamps.
fn has_times(group: &Group) -> bool {
    group.timestamps == TimestampKind::Stored
}

/// Of `values`, which all patterns have one after the other, those of the patterns that stand by themselves.
fn of_templates<T: Copy>(values: &[T], patterns: &RowPatterns) -> Vec<T> {
    let mut start = 0;
    let mut out = Vec::new();
    for (len, gaps) in patterns.lens.iter().zip(&patterns.gaps) {
        let end = start + *len as usize;
        if gaps.is_none() {
            out.extend_from_slice(&values[start..end]);
        }
        start = end;
    }
    out
}

impl PatternTable {
    /// Reads what [`put`] appended for a group with `rows` rows and `records` records.
    ///
    /// # Errors
    /// If the bytes are damaged.
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

        let template_count = lacking.iter().filter(|lacking| **lacking == 0).count();
        let lens = integer_list::read::<u32>(input, template_count)?;
        let (total, spans) = spans(&lens, records).ok_or_else(|| input.corrupt())?;
        let codes = if is_dynamic(group) { integer_list::read::<u32>(input, total)? } else { Vec::new() };
        let offsets = if has_times(group) { integer_list::read::<i64>(input, total)? } else { Vec::new() };
        if !with_gaps {
            return Ok(Self { spans, gaps: Vec::new(), removed: Vec::new(), codes, offsets });
        }

        let of = integer_list::read::<u32>(input, count - template_count)?;
        let total: u64 = lacking.iter().map(|lacking| u64::from(*lacking)).sum();
        if total > records as u64 {
            return Err(input.corrupt());
        }
        let removed = integer_list::read::<u32>(input, total as usize)?;
        let (spans, gaps) = with_templates(&spans, &lacking, &of).ok_or_else(|| input.corrupt())?;
        let table = Self { spans, gaps, removed, codes, offsets };
        if table.is_sound() { Ok(table) } else { Err(input.corrupt()) }
    }

    /// The number of patterns, with and without gaps.
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The number of records that each pattern has.
    pub(crate) fn lens(&self) -> impl Iterator<Item = u32> {
        self.spans.iter().enumerate().map(|(id, span)| (span.len() - self.lacks(id).len()) as u32)
    }

    /// Whether the codes of every pattern ascend strictly, so that no row has two records of one qualifier.
    pub(crate) fn has_distinct_codes(&self) -> bool {
        self.spans
            .iter()
            .all(|span| self.codes.get(span.clone()).is_some_and(|codes| codes.is_sorted_by(|one, next| one < next)))
    }

    /// Appends the qualifier codes of the records of pattern `id`.
    pub(crate) fn codes_of(&self, id: u32, out: &mut Vec<u32>) {
        self.each_run(id, |run| out.extend_from_slice(self.codes.get(run).unwrap_or_default()));
    }

    /// Appends the timestamps of pattern `id` in a row whose first timestamp is `base`, in microseconds.
    pub(crate) fn timestamps_of(&self, id: u32, base: i64, out: &mut Vec<i64>) {
        let mut start = None;
        self.each_run(id, |run| {
            let offsets = self.offsets.get(run).unwrap_or_default();
            let Some(first) = offsets.first() else { return };
            let base = base.wrapping_sub(*start.get_or_insert(*first));
            out.extend(offsets.iter().map(|offset| base.wrapping_add(*offset)));
        });
    }

    /// The records of its template that pattern `id` lacks.
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

    /// Whether the records that each pattern lacks ascend, lie in its template and leave some.
    fn is_sound(&self) -> bool {
        self.spans.iter().enumerate().all(|(id, span)| {
            let lacks = self.lacks(id);
            let fit = lacks.is_sorted_by(|one, next| one < next)
                && lacks.last().is_none_or(|last| (*last as usize) < span.len());
            fit && (lacks.is_empty() || lacks.len() < span.len())
        })
    }
}

/// For each pattern the span of its template and the range of what it lacks. `lacking` has the number of records that each lacks, and
/// `of` the template of each that lacks some.
fn with_templates(templates: &[Range<usize>], lacking: &[u32], of: &[u32]) -> Option<(Spans, Spans)> {
    let (mut standalone, mut of) = (templates.iter(), of.iter());
    let (mut spans, mut gaps, mut end) = (Vec::with_capacity(lacking.len()), Vec::with_capacity(lacking.len()), 0);

    for lacking in lacking {
        spans.push(if *lacking == 0 {
            standalone.next()?.clone()
        } else {
            templates.get(*of.next()? as usize)?.clone()
        });
        gaps.push(end..end + *lacking as usize);
        end += *lacking as usize;
    }
    Some((spans, gaps))
}
