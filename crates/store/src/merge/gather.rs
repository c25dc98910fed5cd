//! Builds an output block from a plan: ranges of records for each column group, then columns from ranges.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, MutableArrayData, make_array};
use tidetable_layout::block::Qualifiers;
use tidetable_layout::schema::TimestampKind;
use tidetable_layout::{Block, Group, GroupBlock, Keys, StoredSchema};

use crate::error::Result;
use crate::merge::dedup::Contents;
use crate::merge::fixed;
use crate::merge::operator::{EqualCells, Overflow, merge_cells};
use crate::merge::plan::{BlockPlan, MergeStep};

/// The rows of `block` from `row` on.
pub(crate) fn tail(block: &Block, row: usize) -> Block {
    slice_block(block, row..block.keys.len())
}

/// The rows `rows` of `block`; columns are shared, not copied.
pub fn slice_block(block: &Block, rows: Range<usize>) -> Block {
    let groups = block.groups.iter().map(|group| group.as_ref().map(|group| slice_group(group, &rows))).collect();
    Block { keys: block.keys.slice(rows), groups }
}

fn slice_group(group: &GroupBlock, rows: &Range<usize>) -> GroupBlock {
    let start = if rows.start == 0 { 0 } else { group.row_ends[rows.start - 1] as usize };
    let end = if rows.is_empty() { start } else { group.row_ends[rows.end - 1] as usize };
    GroupBlock {
        row_ends: group.row_ends[rows.clone()].iter().map(|row_end| row_end - start as u32).collect(),
        qualifiers: group.qualifiers.as_ref().map(|qualifiers| Qualifiers {
            dictionary: qualifiers.dictionary.clone(),
            codes: qualifiers.codes[start..end].to_vec(),
        }),
        timestamps: group.timestamps.as_ref().map(|timestamps| timestamps[start..end].to_vec()),
        columns: group.columns.iter().map(|c| c.as_ref().map(|c| c.slice(start, end - start))).collect(),
        sums: group.sums.iter().map(|sums| sums.as_ref().map(|sums| sums.slice(rows.start, rows.len()))).collect(),
    }
}

/// Builds the output block of `plan` from `blocks`.
pub(crate) fn gather(schema: &StoredSchema, blocks: &[&Block], plan: &BlockPlan, overflow: Overflow) -> Result<Block> {
    let keys = gather_keys(blocks, plan);
    let upserted = schema.upsert.then(|| upsert(schema, blocks, plan));
    let mut groups = Vec::with_capacity(schema.groups.len());
    for (at, group) in schema.groups.iter().enumerate() {
        let plan = upserted.as_ref().filter(|_| group.timestamps == TimestampKind::Stored).unwrap_or(plan);
        let parts: Option<Vec<&GroupBlock>> =
            blocks.iter().map(|block| block.groups.get(at).and_then(Option::as_ref)).collect();
        groups.push(match parts {
            Some(parts) => Some(gather_group(group, &parts, plan, &keys, overflow)?),
            None => None,
        });
    }
    Ok(Block { keys, groups })
}

/// The values of `ranges`, which ascend.
pub(crate) fn gather_ranges(values: &ArrayRef, ranges: &[Range<usize>]) -> Result<ArrayRef> {
    let data = values.to_data();
    let mut out = MutableArrayData::new(vec![&data], false, ranges.iter().map(Range::len).sum());
    ranges.iter().try_for_each(|range| out.try_extend(0, range.start, range.end))?;
    Ok(make_array(out.freeze()))
}

/// The plan for timestamped cells of an upsert table: among the sources of a row, the one with the greatest timestamp
/// wins, the newest if several have it.
fn upsert(schema: &StoredSchema, blocks: &[&Block], plan: &BlockPlan) -> BlockPlan {
    let time = |(source, row): (usize, usize)| {
        let stored = schema.groups.iter().zip(&blocks[source].groups);
        let stored = stored.filter(|(group, _)| group.timestamps == TimestampKind::Stored);
        let times = stored.filter_map(|(_, held)| held.as_ref()?.timestamps.as_ref()?.get(held.as_ref()?.records(row)));
        times.flatten().copied().max()
    };
    let step = |step: &MergeStep| match step {
        MergeStep::Copy { source, rows } => MergeStep::Copy { source: *source, rows: rows.clone() },
        // Of equal times the last wins.
        MergeStep::Combine { rows } => {
            MergeStep::Combine { rows: rows.iter().copied().max_by_key(|row| time(*row)).into_iter().collect() }
        }
    };
    BlockPlan { steps: plan.steps.iter().map(step).collect() }
}

fn gather_keys(blocks: &[&Block], plan: &BlockPlan) -> Keys {
    let tail = blocks.first().map(|block| Arc::clone(block.keys.tail_shape())).unwrap_or_default();
    let mut keys = Keys::new(tail);
    let mut push = |source: usize, row: usize| {
        let (prefix, tail) = blocks[source].keys.parts(row);
        keys.push(prefix, tail);
    };
    for step in &plan.steps {
        match step {
            MergeStep::Copy { source, rows } => rows.clone().for_each(|row| push(*source, row)),
            MergeStep::Combine { rows } => rows.first().into_iter().for_each(|(source, row)| push(*source, *row)),
        }
    }
    keys
}

/// The origin of the records of an output group.
#[derive(Debug, Default)]
struct Picks {
    row_ends: Vec<u32>,
    /// Runs of records of one source.
    ranges: Vec<(usize, Range<usize>)>,
    /// Cells from an older source than the rest of their record: (output record, column, source, record), ascending.
    overrides: Vec<(usize, usize, usize, usize)>,
    /// Sets of records whose cells merge.
    folds: EqualCells,
    records: usize,
}

impl Picks {
    fn push(&mut self, source: usize, records: Range<usize>) {
        self.records += records.len();
        match self.ranges.last_mut() {
            Some((last, before)) if *last == source && before.end == records.start => before.end = records.end,
            _ if records.is_empty() => {}
            _ => self.ranges.push((source, records)),
        }
    }

    /// Adds consecutive rows of one source.
    fn push_rows(&mut self, source: usize, part: &GroupBlock, rows: Range<usize>) {
        let start = if rows.start == 0 { 0 } else { part.row_ends[rows.start - 1] };
        let ends = &part.row_ends[rows];
        let base = self.records as u32;
        self.row_ends.extend(ends.iter().map(|end| base + (end - start)));
        self.push(source, start as usize..ends.last().map_or(start, |end| *end) as usize);
    }

    fn end_row(&mut self) {
        self.row_ends.push(self.records as u32);
    }
}

fn gather_group(
    group: &Group,
    parts: &[&GroupBlock],
    plan: &BlockPlan,
    keys: &Keys,
    overflow: Overflow,
) -> Result<GroupBlock> {
    let codes = Codes::merge(parts);
    let mut picks = Picks::default();
    let mut contents = None;
    for step in &plan.steps {
        match step {
            MergeStep::Copy { source, rows } => {
                picks.push_rows(*source, parts[*source], rows.clone());
            }
            MergeStep::Combine { rows } => {
                combine(group, parts, &codes, rows, &mut contents, &mut picks)?;
                picks.end_row();
            }
        }
    }
    let timestamps = (group.timestamps == TimestampKind::Stored).then(|| {
        let all: Option<Vec<&[i64]>> = parts.iter().map(|part| part.timestamps.as_deref()).collect();
        all.map(|all| {
            let mut out = Vec::with_capacity(picks.records);
            picks.ranges.iter().for_each(|(source, range)| out.extend_from_slice(&all[*source][range.clone()]));
            out
        })
    });
    let qualifiers = codes.dictionary.clone().map(|dictionary| {
        let mut out = Vec::with_capacity(picks.records);
        picks.ranges.iter().for_each(|(source, range)| codes.put(parts, *source, range.clone(), &mut out));
        Qualifiers { dictionary, codes: out }
    });
    let mut columns = Vec::with_capacity(group.columns.len());
    for (at, column) in group.columns.iter().enumerate() {
        let arrays: Option<Vec<ArrayRef>> = parts.iter().map(|part| part.columns[at].clone()).collect();
        let gathered = match arrays {
            Some(arrays) if column.merge.is_newest() || picks.folds.is_empty() => {
                Some(gather_column(&arrays, at, &picks)?)
            }
            Some(arrays) => {
                let folded = merge_cells(column.merge, &arrays, &picks.folds, overflow);
                let folded = folded.map_err(|error| error.at(keys, &picks.row_ends, qualifiers.as_ref(), column))?;
                Some(gather_folded(arrays, folded, &picks)?)
            }
            None => None,
        };
        columns.push(gathered);
    }
    Ok(GroupBlock { columns, timestamps: timestamps.flatten(), qualifiers, row_ends: picks.row_ends, sums: Vec::new() })
}

/// Merged qualifier dictionary of several sources.
struct Codes {
    dictionary: Option<Vec<Box<[u8]>>>,
    /// For each source, the merged code of each of its codes; `None` if unchanged.
    maps: Vec<Option<Vec<u32>>>,
}

impl Codes {
    fn merge(parts: &[&GroupBlock]) -> Self {
        let Some(all) = parts.iter().map(|part| part.qualifiers.as_ref()).collect::<Option<Vec<_>>>() else {
            return Self { dictionary: None, maps: Vec::new() };
        };
        // Stripes of one table mostly have the same qualifiers.
        if let Some((first, others)) = all.split_first()
            && others.iter().all(|other| other.dictionary == first.dictionary)
        {
            return Self { dictionary: Some(first.dictionary.clone()), maps: vec![None; all.len()] };
        }
        let names: BTreeSet<&[u8]> = all.iter().flat_map(|q| &q.dictionary).map(AsRef::as_ref).collect();
        let dictionary: Vec<Box<[u8]>> = names.into_iter().map(Box::from).collect();
        let code = |name: &[u8]| dictionary.partition_point(|known| known.as_ref() < name) as u32;
        let maps = all.iter().map(|q| Some(q.dictionary.iter().map(|name| code(name)).collect())).collect();
        Self { dictionary: Some(dictionary), maps }
    }

    /// Appends the merged codes of some records of a source.
    fn put(&self, parts: &[&GroupBlock], source: usize, records: Range<usize>, out: &mut Vec<u32>) {
        let codes = parts[source].qualifiers.as_ref().map_or(&[][..], |q| &q.codes[records]);
        match &self.maps[source] {
            Some(map) => out.extend(codes.iter().map(|code| map[*code as usize])),
            None => out.extend_from_slice(codes),
        }
    }

    fn at(&self, parts: &[&GroupBlock], source: usize, record: usize) -> u32 {
        let code = parts[source].qualifiers.as_ref().map_or(0, |q| q.codes[record]);
        match self.maps.get(source) {
            Some(Some(map)) => map[code as usize],
            _ => code,
        }
    }
}

/// Merges the records of one row of several sources, older first.
fn combine(
    group: &Group,
    parts: &[&GroupBlock],
    codes: &Codes,
    rows: &[(usize, usize)],
    contents: &mut Option<Contents>,
    picks: &mut Picks,
) -> Result<()> {
    let mut cursors: Vec<(usize, Range<usize>)> =
        rows.iter().map(|(source, row)| (*source, parts[*source].records(*row))).collect();
    if let [(source, records)] = cursors.as_slice() {
        picks.push(*source, records.clone());
        return Ok(());
    }
    let key = |source: usize, record: usize| {
        let timestamp = parts[source].timestamps.as_ref().map_or(0, |timestamps| timestamps[record]);
        (codes.at(parts, source, record), std::cmp::Reverse(timestamp))
    };
    let aggregates = group.has_aggregates();
    loop {
        cursors.retain(|(_, records)| !records.is_empty());
        let mut newest: Option<usize> = None;
        let mut alike = Vec::new();
        for (at, (source, records)) in cursors.iter().enumerate() {
            let order = newest.map_or(Ordering::Less, |newest| {
                let (other, others) = &cursors[newest];
                key(*source, records.start).cmp(&key(*other, others.start))
            });
            match order {
                Ordering::Greater => {}
                Ordering::Equal => {
                    alike.push(at);
                    newest = Some(at);
                }
                Ordering::Less => {
                    alike.clear();
                    alike.push(at);
                    newest = Some(at);
                }
            }
        }
        let Some(newest) = newest else { return Ok(()) };
        let (source, record) = (cursors[newest].0, cursors[newest].1.start);
        if group.keeps_duplicates() {
            let common = key(source, record);
            let mut records = Vec::new();
            for at in &alike {
                let (source, left) = &mut cursors[*at];
                let run = left.clone().take_while(|record| key(*source, *record) == common).count();
                records.extend((left.start..left.start + run).map(|record| (*source, record)));
                left.start += run;
            }
            if alike.len() > 1 {
                keep_first(parts, contents, &mut records)?;
            }
            records.iter().for_each(|(source, record)| picks.push(*source, *record..record + 1));
            continue;
        }
        // A packed record is one cell, which replaces older ones as a whole.
        if group.packed.is_none() {
            let older = alike.iter().rev().skip(1).map(|at| (cursors[*at].0, cursors[*at].1.start));
            fill_from_older(group, parts, (source, record), older, picks);
        }
        if aggregates && alike.len() > 1 {
            picks.folds.push(picks.records, alike.iter().map(|at| (cursors[*at].0, cursors[*at].1.start)));
        }
        picks.push(source, record..record + 1);
        alike.iter().for_each(|at| cursors[*at].1.start += 1);
    }
}

/// Removes from `records`, of equal qualifier and timestamp, those equal to an earlier one in every column.
fn keep_first(parts: &[&GroupBlock], contents: &mut Option<Contents>, records: &mut Vec<(usize, usize)>) -> Result<()> {
    if contents.is_none() {
        let columns = |part: &&GroupBlock| part.columns.iter().flatten().cloned().collect::<Vec<_>>();
        *contents = Some(Contents::new(&parts.iter().map(columns).collect::<Vec<_>>())?);
    }
    if let Some(contents) = contents {
        contents.keep_first(records);
    }
    Ok(())
}

/// Takes cells that the newest record lacks from the newest older record that has them.
fn fill_from_older(
    group: &Group,
    parts: &[&GroupBlock],
    newest: (usize, usize),
    older: impl Iterator<Item = (usize, usize)> + Clone,
    picks: &mut Picks,
) {
    let has = |(source, record): (usize, usize), column: usize| {
        parts[source].columns[column].as_ref().is_some_and(|values| values.is_valid(record))
    };
    for (column, own) in group.columns.iter().enumerate() {
        if own.merge.is_newest()
            && !has(newest, column)
            && let Some((source, record)) = older.clone().find(|cell| has(*cell, column))
        {
            picks.overrides.push((picks.records, column, source, record));
        }
    }
}

fn gather_column(arrays: &[ArrayRef], column: usize, picks: &Picks) -> Result<ArrayRef> {
    let overrides = picks.overrides.iter().filter(|(_, at, ..)| *at == column);
    collect(arrays, overrides.map(|(at, _, source, record)| (*at, *source, *record)), picks)
}

/// Gathers a column whose equal cells were merged into `folded`.
fn gather_folded(mut arrays: Vec<ArrayRef>, folded: ArrayRef, picks: &Picks) -> Result<ArrayRef> {
    let last = arrays.len();
    arrays.push(folded);
    let overrides = picks.folds.records().iter().enumerate().map(|(set, record)| (*record, last, set));
    collect(&arrays, overrides, picks)
}

/// Gathers the picked records of a column; `overrides` (output record, array, index) replace theirs.
fn collect(
    arrays: &[ArrayRef],
    overrides: impl Iterator<Item = (usize, usize, usize)>,
    picks: &Picks,
) -> Result<ArrayRef> {
    let mut overrides = overrides.peekable();
    if overrides.peek().is_none()
        && let Some(gathered) = fixed::gather(arrays, &picks.ranges, picks.records)
    {
        return Ok(gathered);
    }
    let nulls = arrays.iter().any(|array| array.null_count() > 0);
    let arrays: Vec<ArrayData> = arrays.iter().map(|array| array.to_data()).collect();
    let mut out = MutableArrayData::new(arrays.iter().collect(), nulls, picks.records);
    let mut written = 0;
    for (source, range) in &picks.ranges {
        let mut range = range.clone();
        while let Some((at, other, record)) = overrides.next_if(|(at, ..)| *at < written + range.len()) {
            let before = at - written;
            out.try_extend(*source, range.start, range.start + before)?;
            out.try_extend(other, record, record + 1)?;
            range.start += before + 1;
            written += before + 1;
        }
        written += range.len();
        out.try_extend(*source, range.start, range.end)?;
    }
    Ok(make_array(out.freeze()))
}
