//! Computes the records of a block: joins the records of its groups by timestamp and by the fields that their qualifiers bind.

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

/// The fields that distinguish records of a group with one row and timestamp: those of its qualifier. The instant itself is the cell
/// timestamp.
pub(super) fn bound_fields(plan: &GroupPlan) -> BTreeSet<usize> {
    let segments = plan.qualifier.as_deref().unwrap_or_default();
    let fields = segments.iter().filter_map(Segment::field).map(|segment| segment.field);
    fields.filter(|field| plan.time != Some(*field)).collect()
}

/// The records of a group of `block`, which must be projected.
pub(super) fn group_of(block: &Block, group: usize) -> Result<&GroupBlock, DecodeError> {
    block.groups.get(group).and_then(Option::as_ref).ok_or(DecodeError::NotProjected { group })
}

impl RecordAlignment {
    /// The alignment of the records of `block`, which has the projection of [`Layout::projection`].
    pub(crate) fn build(layout: &Layout, block: &Block) -> Result<Self, DecodeError> {
        let rows = block.keys.len();
        for (group, found) in block.groups.iter().enumerate() {
            let Some(found) = found else { continue };
            if found.row_ends.len() != rows || any_pair(&found.row_ends, |end, next| end > next) {
                return Err(DecodeError::Shape { group });
            }
        }

        let groups = layout.groups.iter().enumerate();
        let (of_row, events): (Vec<_>, Vec<_>) = groups.partition(|(_, plan)| plan.is_of_row());
        let of_row: Vec<usize> = of_row.into_iter().map(|(group, _)| group).collect();
        let events: Vec<usize> = events.into_iter().map(|(group, _)| group).collect();
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

    /// As [`Self::build`], for a layout with one event group: its records are the records, and rows that only have row-level cells
    /// are a record each.
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

/// A record under construction: its time, and the record of each group that it takes its cells from.
struct JoinedRecord {
    time: i64,
    /// The group that created it, and the code of the qualifier that it had there.
    made_by: (usize, u32),
    picks: Vec<Option<u32>>,
}

/// A record of one group that waits to be joined.
struct GroupRecord {
    time: i64,
    /// The id of the values of its bound fields.
    bound: u32,
    group: usize,
    record: u32,
}

/// The row-level groups among those of `block`.
fn of_rows<'a>(block: &'a Block, groups: &[usize]) -> Result<Vec<&'a GroupBlock>, DecodeError> {
    groups.iter().map(|group| group_of(block, *group)).collect()
}

/// Whether a row has row-level cells, so that it is a record even without events.
fn holds_row(of_row: &[&GroupBlock], row: usize) -> bool {
    of_row.iter().any(|group| !group.records(row).is_empty())
}

/// What the qualifiers of each group say of each set of bound fields.
struct BoundValues {
    /// By group and set: for each qualifier code an id of its values, or nothing if the group does not bind the fields.
    ids: Vec<Vec<Option<Vec<u32>>>>,
}

impl BoundValues {
    /// Reads the values of each set in the qualifiers of `events` that bind its fields.
    fn read(
        layout: &Layout,
        block: &Block,
        events: &[usize],
        bound: &[BTreeSet<usize>],
        sets: &[&BTreeSet<usize>],
    ) -> Result<Self, DecodeError> {
        let mut all: Vec<Vec<Option<Vec<u32>>>> = vec![vec![None; sets.len()]; layout.groups.len()];
        for (set_index, set) in sets.iter().enumerate() {
            // Equal values have one id in all groups.
            let mut known = Dictionary::new();
            for group in events.iter().filter(|group| bound.get(**group).is_some_and(|fields| fields.is_superset(set)))
            {
                let ids = if set.is_empty() { Vec::new() } else { ids(layout, block, *group, set, &mut known)? };
                if let Some(slot) = all.get_mut(*group).and_then(|group| group.get_mut(set_index)) {
                    *slot = Some(ids);
                }
            }
        }
        Ok(Self { ids: all })
    }

    /// The id of the values that a qualifier has for a set; `None` if its group does not bind the fields.
    fn id(&self, group: usize, set: usize, code: u32) -> Option<u32> {
        let ids = self.ids.get(group)?.get(set)?.as_ref()?;
        Some(ids.get(code as usize).copied().unwrap_or(0))
    }
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
    let values = BoundValues::read(layout, block, events, &bound, &sets)?;

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
                    let bound = values.id(group, set, code).unwrap_or(0);
                    let time = time_of(layout, found, group, record)?;
                    entries.push(GroupRecord { time, bound, group, record: record as u32 });
                }
            }

            entries.sort_by_key(|entry| (entry.time, entry.bound, entry.group));
            add(
                &mut slots,
                &entries,
                groups,
                |slot| values.id(slot.made_by.0, set, slot.made_by.1),
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

/// Joins the sorted `entries` of one set of bound fields with the records of larger sets. `says` returns the id of the values that a
/// record has for the set, and `code` the qualifier code of an entry.
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
    for same_group in entries.chunk_by(|a, b| a.group == b.group) {
        if let Some(entry) = same_group.get(nth).or(same_group.last())
            && let Some(pick) = slot.picks.get_mut(entry.group)
        {
            *pick = Some(entry.record);
        }
    }
}

/// The qualifier code of a record; 0 in groups without qualifiers.
fn code_of(group: &GroupBlock, record: usize) -> u32 {
    group.qualifiers.as_ref().and_then(|qualifiers| qualifiers.codes.get(record)).copied().unwrap_or(0)
}

/// The timestamp of a record; 0 in groups that store none.
fn time_of(layout: &Layout, found: &GroupBlock, group: usize, record: usize) -> Result<i64, DecodeError> {
    if layout.groups.get(group).is_none_or(|plan| plan.time.is_none()) {
        return Ok(0);
    }
    let times = found.timestamps.as_ref().ok_or(DecodeError::NotProjected { group })?;
    times.get(record).copied().ok_or(DecodeError::Shape { group })
}

/// For each qualifier of the group, an id of its values of the fields `set`. `known` gives equal values of other groups the same id.
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
            let mut fields = segments.iter().zip(&spans).filter_map(|(segment, span)| Some((segment.field()?, *span)));
            let Some((segment, span)) = fields.find(|(segment, _)| segment.field == *field) else { continue };
            // Two templates may print a value in different forms.
            let value = value_text(segment, span).unwrap_or_else(|| span.to_vec());
            key.extend_from_slice(&(value.len() as u64).to_le_bytes());
            key.extend_from_slice(&value);
        }
        out.push(known.intern(&key));
    }
    Ok(out)
}

/// The text of the value that `span` prints; `None` if the printed bytes are that text.
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
