//! Computes the records of a block: joins the records of its groups.

use std::collections::BTreeSet;

use arrow::array::UInt32Array;

use crate::block::{Block, GroupBlock};
use crate::decode::record_alignment::{Pick, RecordAlignment};
use crate::encode::Dictionary;
use crate::error::DecodeError;
use crate::plan::{GroupPlan, Layout};
use crate::scalar::{ColumnBuilder, ColumnView};
use crate::schema::FieldType;
use crate::template::print::split;
use crate::template::segment::Segment;

/// The fields that distinguish records of a group with one row and timestamp.
pub(super) fn bound_fields(plan: &GroupPlan) -> BTreeSet<usize> {
    let segments = plan.qualifier.as_deref().unwrap_or_default();
    // The instant itself is the cell timestamp.
    segments.iter().filter_map(Segment::field).map(|own| own.field).filter(|field| plan.time != Some(*field)).collect()
}

pub(super) fn group_of(block: &Block, group: usize) -> Result<&GroupBlock, DecodeError> {
    block.groups.get(group).and_then(Option::as_ref).ok_or(DecodeError::NotProjected { group })
}

impl RecordAlignment {
    pub(crate) fn build(layout: &Layout, block: &Block) -> Result<Self, DecodeError> {
        let rows = block.keys.len();
        for (group, found) in block.groups.iter().enumerate() {
            let Some(found) = found else { continue };
            if found.row_ends.len() != rows || any_pair(&found.row_ends, |end, next| end > next) {
                return Err(DecodeError::Shape { group });
            }
        }
        let of_row: Vec<usize> =
            layout.groups.iter().enumerate().filter(|(_, plan)| plan.is_of_row()).map(|(at, _)| at).collect();
        let events: Vec<usize> =
            layout.groups.iter().enumerate().filter(|(_, plan)| !plan.is_of_row()).map(|(at, _)| at).collect();
        let mut alignment = match events.as_slice() {
            [] => {
                let row_ends = (1..=rows as u32).collect();
                Self { count: rows, row_ends, picks: layout.groups.iter().map(|_| Pick::Same).collect() }
            }
            [one] => Self::of_one(layout, block, *one, &of_rows(block, &of_row)?)?,
            many => join(layout, block, many, &of_rows(block, &of_row)?)?,
        };
        for group in of_row {
            // Only needed if values are projected.
            if let Some(Some(found)) = block.groups.get(group)
                && found.columns.iter().any(Option::is_some)
            {
                let pick = alignment.pick_of_row(found);
                if let Some(slot) = alignment.picks.get_mut(group) {
                    *slot = pick;
                }
            }
        }
        Ok(alignment)
    }

    fn of_one(layout: &Layout, block: &Block, group: usize, of_row: &[&GroupBlock]) -> Result<Self, DecodeError> {
        let found = group_of(block, group)?;
        let mut picks: Vec<Pick> = layout.groups.iter().map(|_| Pick::Same).collect();
        let empty_rows =
            found.row_ends.first().is_some_and(|end| *end == 0) || any_pair(&found.row_ends, |end, next| end == next);
        if !empty_rows {
            return Ok(Self { count: found.len(), row_ends: found.row_ends.clone(), picks });
        }
        let mut indices: Vec<Option<u32>> = Vec::with_capacity(found.len() + block.keys.len());
        let mut row_ends = Vec::with_capacity(block.keys.len());
        for row in 0..block.keys.len() {
            let records = found.records(row);
            if records.is_empty() && holds_row(of_row, row) {
                indices.push(None);
            }
            indices.extend(records.map(|record| Some(record as u32)));
            row_ends.push(indices.len() as u32);
        }
        let count = indices.len();
        if let Some(pick) = picks.get_mut(group) {
            *pick = Pick::Take(UInt32Array::from(indices));
        }
        Ok(Self { count, row_ends, picks })
    }
}

/// Whether `is` holds for any two neighbours; without an early exit, so that the loop runs in vector instructions.
fn any_pair(ends: &[u32], is: impl Fn(u32, u32) -> bool) -> bool {
    ends.iter().zip(ends.iter().skip(1)).fold(false, |any, (end, next)| any | is(*end, *next))
}

/// A record under construction.
struct JoinedRecord {
    time: i64,
    /// The group and the qualifier code that created it.
    made_by: (usize, u32),
    picks: Vec<Option<u32>>,
}

struct GroupRecord {
    time: i64,
    bound: u32,
    group: usize,
    record: u32,
}

/// The row-level groups.
fn of_rows<'a>(block: &'a Block, groups: &[usize]) -> Result<Vec<&'a GroupBlock>, DecodeError> {
    groups.iter().map(|group| group_of(block, *group)).collect()
}

/// Whether a row has row-level cells.
fn holds_row(of_row: &[&GroupBlock], row: usize) -> bool {
    of_row.iter().any(|group| !group.records(row).is_empty())
}

/// Joins several groups: cells of a row form a record if timestamp and bound fields agree. A group that binds fewer
/// fields joins every record that agrees on those. In a group that keeps duplicates each becomes a record, with the cells
/// that the other groups have at that timestamp.
fn join(
    layout: &Layout,
    block: &Block,
    events: &[usize],
    of_row: &[&GroupBlock],
) -> Result<RecordAlignment, DecodeError> {
    let groups = layout.groups.len();
    let bound: Vec<BTreeSet<usize>> = layout.groups.iter().map(bound_fields).collect();
    let mut sets: Vec<&BTreeSet<usize>> = events.iter().filter_map(|group| bound.get(*group)).collect();
    sets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    sets.dedup();
    // For each group and each set of fields that it binds: an id of the values that each qualifier has for the set.
    let mut says: Vec<Vec<Option<Vec<u32>>>> = vec![vec![None; sets.len()]; groups];
    for (at, set) in sets.iter().enumerate() {
        let mut known = Dictionary::new();
        for group in events.iter().filter(|group| bound.get(**group).is_some_and(|own| own.is_superset(set))) {
            let ids = if set.is_empty() { Vec::new() } else { ids(layout, block, *group, set, &mut known)? };
            if let Some(slot) = says.get_mut(*group).and_then(|group| group.get_mut(at)) {
                *slot = Some(ids);
            }
        }
    }
    let say = |group: usize, set: usize, code: u32| -> Option<u32> {
        let ids = says.get(group)?.get(set)?.as_ref()?;
        Some(ids.get(code as usize).copied().unwrap_or(0))
    };
    let mut picks: Vec<Vec<Option<u32>>> = vec![Vec::new(); groups];
    let mut row_ends = Vec::with_capacity(block.keys.len());
    let mut count = 0;
    let (mut slots, mut entries): (Vec<JoinedRecord>, Vec<GroupRecord>) = (Vec::new(), Vec::new());
    for row in 0..block.keys.len() {
        slots.clear();
        for (set, fields) in sets.iter().enumerate() {
            entries.clear();
            for group in events.iter().copied().filter(|group| bound.get(*group) == Some(*fields)) {
                let found = group_of(block, group)?;
                for record in found.records(row) {
                    let code = code_of(found, record);
                    let bound = say(group, set, code).unwrap_or(0);
                    let time = time_of(layout, found, group, record)?;
                    entries.push(GroupRecord { time, bound, group, record: record as u32 });
                }
            }
            entries.sort_by_key(|entry| (entry.time, entry.bound, entry.group));
            add(
                &mut slots,
                &entries,
                groups,
                |slot| say(slot.made_by.0, set, slot.made_by.1),
                |entry| group_of(block, entry.group).map_or(0, |found| code_of(found, entry.record as usize)),
            );
        }
        slots.sort_by_key(|slot| slot.time);
        if slots.is_empty() && holds_row(of_row, row) {
            slots.push(JoinedRecord { time: 0, made_by: (0, 0), picks: vec![None; groups] });
        }
        for slot in &slots {
            picks.iter_mut().zip(&slot.picks).for_each(|(out, pick)| out.push(*pick));
        }
        count += slots.len();
        row_ends.push(count as u32);
    }
    let picks = picks.into_iter().map(|pick| Pick::Take(UInt32Array::from(pick))).collect();
    Ok(RecordAlignment { count, row_ends, picks })
}

/// Joins the sorted entries of one set of bound fields with the records of larger sets.
fn add(
    slots: &mut Vec<JoinedRecord>,
    entries: &[GroupRecord],
    groups: usize,
    says: impl Fn(&JoinedRecord) -> Option<u32>,
    code: impl Fn(&GroupRecord) -> u32,
) {
    // New records of this set are appended behind the sorted ones.
    slots.sort_by_key(|slot| slot.time);
    let earlier = slots.len();
    for same in entries.chunk_by(|a, b| (a.time, a.bound) == (b.time, b.bound)) {
        let Some(first) = same.first() else { continue };
        let start = slots.get(..earlier).unwrap_or_default().partition_point(|slot| slot.time < first.time);
        let most = same.chunk_by(|a, b| a.group == b.group).map(<[GroupRecord]>::len).max().unwrap_or(1);
        let mut joined = false;
        for at in start..earlier {
            let Some(slot) = slots.get_mut(at).filter(|slot| slot.time == first.time) else { break };
            if says(slot) == Some(first.bound) {
                let more: Vec<JoinedRecord> = (1..most).map(|nth| slot.with(same, nth)).collect();
                set_picks(slot, same, 0);
                slots.extend(more);
                joined = true;
            }
        }
        if !joined {
            let made_by = (first.group, code(first));
            let mut slot = JoinedRecord { time: first.time, made_by, picks: vec![None; groups] };
            let more: Vec<JoinedRecord> = (1..most).map(|nth| slot.with(same, nth)).collect();
            set_picks(&mut slot, same, 0);
            slots.push(slot);
            slots.extend(more);
        }
    }
}

impl JoinedRecord {
    /// A copy of the record with the `nth` entry of each group.
    fn with(&self, entries: &[GroupRecord], nth: usize) -> Self {
        let mut slot = Self { time: self.time, made_by: self.made_by, picks: self.picks.clone() };
        set_picks(&mut slot, entries, nth);
        slot
    }
}

/// Takes the `nth` entry of each group, or its last.
fn set_picks(slot: &mut JoinedRecord, entries: &[GroupRecord], nth: usize) {
    for own in entries.chunk_by(|a, b| a.group == b.group) {
        if let Some(entry) = own.get(nth).or(own.last())
            && let Some(pick) = slot.picks.get_mut(entry.group)
        {
            *pick = Some(entry.record);
        }
    }
}

fn code_of(group: &GroupBlock, record: usize) -> u32 {
    group.qualifiers.as_ref().and_then(|qualifiers| qualifiers.codes.get(record)).copied().unwrap_or(0)
}

fn time_of(layout: &Layout, found: &GroupBlock, group: usize, record: usize) -> Result<i64, DecodeError> {
    if layout.groups.get(group).is_none_or(|plan| plan.time.is_none()) {
        return Ok(0);
    }
    let times = found.timestamps.as_ref().ok_or(DecodeError::NotProjected { group })?;
    times.get(record).copied().ok_or(DecodeError::Shape { group })
}

/// For each qualifier of the group, an id of its values of the fields `set`.
fn ids(
    layout: &Layout,
    block: &Block,
    group: usize,
    set: &BTreeSet<usize>,
    known: &mut Dictionary,
) -> Result<Vec<u32>, DecodeError> {
    let found = group_of(block, group)?;
    let qualifiers = found.qualifiers.as_ref().ok_or(DecodeError::NotProjected { group })?;
    let segments = layout.groups.get(group).and_then(|plan| plan.qualifier.as_deref()).unwrap_or_default();
    let mut spans = Vec::new();
    let mut out = Vec::with_capacity(qualifiers.dictionary.len());
    let mut key = Vec::new();
    for bytes in &qualifiers.dictionary {
        if !split(segments, bytes, &mut spans) {
            return Err(DecodeError::Qualifier { qualifier: String::from_utf8_lossy(bytes).into_owned() });
        }
        key.clear();
        for field in set {
            let mut own = segments.iter().zip(&spans).filter_map(|(segment, span)| Some((segment.field()?, *span)));
            let Some((segment, span)) = own.find(|(segment, _)| segment.field == *field) else { continue };
            // Two templates may print a value in different forms.
            let value = value_text(segment, span).unwrap_or_else(|| span.to_vec());
            key.extend_from_slice(&(value.len() as u64).to_le_bytes());
            key.extend_from_slice(&value);
        }
        out.push(known.intern(&key));
    }
    Ok(out)
}

fn value_text(segment: &crate::template::segment::FieldSegment, span: &[u8]) -> Option<Vec<u8>> {
    let mut builder = ColumnBuilder::new(segment.kind, 1);
    if segment.kind == FieldType::Text && segment.form == crate::template::form::Form::Text
        || !segment.read(span, &mut builder)
    {
        return None;
    }
    let array = builder.finish().ok()?;
    let mut text = Vec::new();
    ColumnView::new(array.as_ref()).get(0)?.write_text(&mut crate::time::calendar::Calendar::default(), &mut text);
    Some(text)
}
