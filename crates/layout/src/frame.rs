//! Which records a block holds, and which of its groups' records each of them joins.

use std::collections::BTreeSet;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{ArrowPrimitiveType, Int64Type, TimestampMicrosecondType, UInt64Type};

use crate::block::{Block, GroupBlock};
use crate::dictionary::Dictionary;
use crate::error::DecodeError;
use crate::layout::{GroupPlan, Layout};
use crate::read::Builder;
use crate::segment::{Segment, split};
use crate::value::FieldType;

/// Records of a block, row by row.
pub(crate) struct Frame {
    pub(crate) count: usize,
    /// For each row, the end of its records.
    pub(crate) row_ends: Vec<u32>,
    /// For each group, which of its records each record takes its cells from.
    pub(crate) picks: Vec<Pick>,
}

pub(crate) enum Pick {
    /// Record `i` has the cells of the group's record `i`.
    Same,
    /// Null where the record has none of the group's cells.
    Take(UInt32Array),
}

/// The fields that set records of a group apart within a row and an instant.
pub(crate) fn bound_fields(plan: &GroupPlan) -> BTreeSet<usize> {
    let segments = plan.qualifier.as_deref().unwrap_or_default();
    // The instant itself is the cell timestamp.
    segments.iter().filter_map(Segment::field).map(|own| own.field).filter(|field| plan.time != Some(*field)).collect()
}

pub(crate) fn group_of(block: &Block, group: usize) -> Result<&GroupBlock, DecodeError> {
    block.groups.get(group).and_then(Option::as_ref).ok_or(DecodeError::NotProjected { group })
}

impl Frame {
    /// A record for each of so many rows.
    pub(crate) fn of_rows(rows: usize) -> Self {
        Self { count: rows, row_ends: (1..=rows as u32).collect(), picks: Vec::new() }
    }

    pub(crate) fn build(layout: &Layout, block: &Block) -> Result<Self, DecodeError> {
        let rows = block.keys.len();
        for (group, found) in block.groups.iter().enumerate() {
            let Some(found) = found else { continue };
            if found.row_ends.len() != rows || found.row_ends.windows(2).any(|pair| matches!(pair, [a, b] if a > b)) {
                return Err(DecodeError::Shape { group });
            }
        }
        let of_row: Vec<usize> =
            layout.groups.iter().enumerate().filter(|(_, plan)| plan.is_of_row()).map(|(at, _)| at).collect();
        let events: Vec<usize> =
            layout.groups.iter().enumerate().filter(|(_, plan)| !plan.is_of_row()).map(|(at, _)| at).collect();
        let mut frame = match events.as_slice() {
            [] => {
                let row_ends = (1..=rows as u32).collect();
                Self { count: rows, row_ends, picks: layout.groups.iter().map(|_| Pick::Same).collect() }
            }
            [one] => Self::of_one(layout, block, *one, &of_rows(block, &of_row)?)?,
            many => join(layout, block, many, &of_rows(block, &of_row)?)?,
        };
        for group in of_row {
            // Without values nothing is picked.
            if let Some(Some(found)) = block.groups.get(group)
                && found.columns.iter().any(Option::is_some)
            {
                let pick = frame.pick_of_row(found);
                if let Some(slot) = frame.picks.get_mut(group) {
                    *slot = pick;
                }
            }
        }
        Ok(frame)
    }

    fn of_one(layout: &Layout, block: &Block, group: usize, of_row: &[&GroupBlock]) -> Result<Self, DecodeError> {
        let found = group_of(block, group)?;
        let mut picks: Vec<Pick> = layout.groups.iter().map(|_| Pick::Same).collect();
        let empty_rows = found.row_ends.first().is_some_and(|end| *end == 0)
            || found.row_ends.windows(2).any(|pair| matches!(pair, [a, b] if a == b));
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

    fn pick_of_row(&self, group: &GroupBlock) -> Pick {
        let rows = self.row_ends.len();
        let one_each = |ends: &[u32]| ends.iter().enumerate().all(|(row, end)| *end as usize == row + 1);
        if self.count == rows && group.len() == rows && one_each(&group.row_ends) && one_each(&self.row_ends) {
            return Pick::Same;
        }
        let mut indices: Vec<Option<u32>> = Vec::with_capacity(self.count);
        for (row, end) in self.row_ends.iter().enumerate() {
            let own = group.records(row);
            let pick = (!own.is_empty()).then_some(own.start as u32);
            indices.resize(*end as usize, pick);
        }
        Pick::Take(UInt32Array::from(indices))
    }

    /// Values of a group's records, as values of records.
    pub(crate) fn pick(&self, group: usize, array: &ArrayRef) -> Result<ArrayRef, DecodeError> {
        match self.picks.get(group) {
            Some(Pick::Take(indices)) => Ok(take(array.as_ref(), indices, None)?),
            _ => Ok(std::sync::Arc::clone(array)),
        }
    }

    /// Values that rows have (through `map`, if the array is of something rows point at), as values of records.
    pub(crate) fn spread(&self, array: &ArrayRef, map: Option<&[u32]>) -> Result<ArrayRef, DecodeError> {
        if array.null_count() == 0 {
            if let Some(values) = array.as_primitive_opt::<UInt64Type>() {
                return Ok(self.spread_values(values, map));
            }
            if let Some(values) = array.as_primitive_opt::<Int64Type>() {
                return Ok(self.spread_values(values, map));
            }
            if let Some(values) = array.as_primitive_opt::<TimestampMicrosecondType>() {
                return Ok(self.spread_values(values, map));
            }
        }
        let mut indices = Vec::with_capacity(self.count);
        for (row, end) in self.row_ends.iter().enumerate() {
            let own = map.map_or(Some(row as u32), |map| map.get(row).copied()).unwrap_or(0);
            indices.resize(*end as usize, own);
        }
        Ok(take(array.as_ref(), &UInt32Array::from(indices), None)?)
    }

    fn spread_values<T: ArrowPrimitiveType>(&self, values: &PrimitiveArray<T>, map: Option<&[u32]>) -> ArrayRef {
        let values_of = values.values();
        let mut out: Vec<T::Native> = Vec::with_capacity(self.count);
        for (row, end) in self.row_ends.iter().enumerate() {
            let own = map.map_or(row, |map| map.get(row).map_or(0, |own| *own as usize));
            out.resize(*end as usize, values_of.get(own).copied().unwrap_or_default());
        }
        std::sync::Arc::new(PrimitiveArray::<T>::new(out.into(), None).with_data_type(values.data_type().clone()))
    }

    /// For each record, its row.
    pub(crate) fn rows(&self) -> Vec<u32> {
        let mut out = Vec::with_capacity(self.count);
        for (row, end) in self.row_ends.iter().enumerate() {
            out.resize(*end as usize, row as u32);
        }
        out
    }
}

/// A record being put together.
struct Slot {
    time: i64,
    /// The group and the qualifier code that made it.
    made_by: (usize, u32),
    picks: Vec<Option<u32>>,
}

struct Entry {
    time: i64,
    bound: u32,
    group: usize,
    record: u32,
}

/// The groups of rows as a whole.
fn of_rows<'a>(block: &'a Block, groups: &[usize]) -> Result<Vec<&'a GroupBlock>, DecodeError> {
    groups.iter().map(|group| group_of(block, *group)).collect()
}

/// Whether a row has a cell of its own, apart from its events.
fn holds_row(of_row: &[&GroupBlock], row: usize) -> bool {
    of_row.iter().any(|group| !group.records(row).is_empty())
}

/// Joins several groups: cells of a row belong together if timestamp and bound fields agree. A group that binds
/// fewer fields belongs to every record that agrees on those it binds. Of a group that keeps events of one moment side
/// by side each makes a record, with the cells that the others have for that moment.
fn join(layout: &Layout, block: &Block, events: &[usize], of_row: &[&GroupBlock]) -> Result<Frame, DecodeError> {
    let groups = layout.groups.len();
    let bound: Vec<BTreeSet<usize>> = layout.groups.iter().map(bound_fields).collect();
    let mut sets: Vec<&BTreeSet<usize>> = events.iter().filter_map(|group| bound.get(*group)).collect();
    sets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    sets.dedup();
    // For each group and each set within its own: what each of its qualifiers says of the set.
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
    let (mut slots, mut entries): (Vec<Slot>, Vec<Entry>) = (Vec::new(), Vec::new());
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
                    entries.push(Entry { time, bound, group, record: record as u32 });
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
            slots.push(Slot { time: 0, made_by: (0, 0), picks: vec![None; groups] });
        }
        for slot in &slots {
            picks.iter_mut().zip(&slot.picks).for_each(|(out, pick)| out.push(*pick));
        }
        count += slots.len();
        row_ends.push(count as u32);
    }
    let picks = picks.into_iter().map(|pick| Pick::Take(UInt32Array::from(pick))).collect();
    Ok(Frame { count, row_ends, picks })
}

/// Adds the entries of one set of bound fields, sorted, to the records that groups with more of them made.
fn add(
    slots: &mut Vec<Slot>,
    entries: &[Entry],
    groups: usize,
    says: impl Fn(&Slot) -> Option<u32>,
    code: impl Fn(&Entry) -> u32,
) {
    // Sorted by time already when a smaller set comes; new records of this set go behind.
    slots.sort_by_key(|slot| slot.time);
    let earlier = slots.len();
    for same in entries.chunk_by(|a, b| (a.time, a.bound) == (b.time, b.bound)) {
        let Some(first) = same.first() else { continue };
        let start = slots.get(..earlier).unwrap_or_default().partition_point(|slot| slot.time < first.time);
        let most = same.chunk_by(|a, b| a.group == b.group).map(<[Entry]>::len).max().unwrap_or(1);
        let mut joined = false;
        for at in start..earlier {
            let Some(slot) = slots.get_mut(at).filter(|slot| slot.time == first.time) else { break };
            if says(slot) == Some(first.bound) {
                let more: Vec<Slot> = (1..most).map(|nth| slot.with(same, nth)).collect();
                set_picks(slot, same, 0);
                slots.extend(more);
                joined = true;
            }
        }
        if !joined {
            let made_by = (first.group, code(first));
            let mut slot = Slot { time: first.time, made_by, picks: vec![None; groups] };
            let more: Vec<Slot> = (1..most).map(|nth| slot.with(same, nth)).collect();
            set_picks(&mut slot, same, 0);
            slots.push(slot);
            slots.extend(more);
        }
    }
}

impl Slot {
    /// The record with the `nth` of the entries of each group.
    fn with(&self, entries: &[Entry], nth: usize) -> Self {
        let mut slot = Self { time: self.time, made_by: self.made_by, picks: self.picks.clone() };
        set_picks(&mut slot, entries, nth);
        slot
    }
}

/// Takes the `nth` entry of each group, or its last.
fn set_picks(slot: &mut Slot, entries: &[Entry], nth: usize) {
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

/// For each qualifier of the group, a number for what it says of the fields `set`.
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
            // Two templates may print one value in two forms.
            let value = value_text(segment, span).unwrap_or_else(|| span.to_vec());
            key.extend_from_slice(&(value.len() as u64).to_le_bytes());
            key.extend_from_slice(&value);
        }
        out.push(known.intern(&key));
    }
    Ok(out)
}

fn value_text(segment: &crate::segment::FieldSegment, span: &[u8]) -> Option<Vec<u8>> {
    let mut builder = Builder::new(segment.kind, 1);
    if segment.kind == FieldType::Text && segment.form == crate::template::Form::Text
        || !segment.read(span, &mut builder)
    {
        return None;
    }
    let array = builder.finish().ok()?;
    let mut text = Vec::new();
    crate::datum::View::new(array.as_ref()).get(0)?.write_text(&mut crate::civil::Calendar::default(), &mut text);
    Some(text)
}
