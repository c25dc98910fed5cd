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
use crate::merge::place::{RecordRef, RowRef};
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
    for (index, group) in schema.groups.iter().enumerate() {
        let plan = upserted.as_ref().filter(|_| group.timestamps == TimestampKind::Stored).unwrap_or(plan);
        let parts: Option<Vec<&GroupBlock>> =
            blocks.iter().map(|block| block.groups.get(index).and_then(Option::as_ref)).collect();
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
    let mut steps = Vec::with_capacity(plan.steps.len());
    for step in &plan.steps {
        steps.push(match step {
            MergeStep::Copy { source, rows } => MergeStep::Copy { source: *source, rows: rows.clone() },
            // Of equal times the last wins.
            MergeStep::Combine { rows } => {
                let winner = rows.iter().copied().max_by_key(|row| newest_time(schema, blocks, *row));
                MergeStep::Combine { rows: winner.into_iter().collect() }
            }
        });
    }

    BlockPlan { steps }
}

/// The greatest stored timestamp of a row; `None` if it has none.
fn newest_time(schema: &StoredSchema, blocks: &[&Block], RowRef { source, row }: RowRef) -> Option<i64> {
    let groups = schema.groups.iter().zip(&blocks[source].groups);
    let stored = groups.filter(|(group, _)| group.timestamps == TimestampKind::Stored);
    let times = stored.filter_map(|(_, held)| held.as_ref()?.timestamps.as_ref()?.get(held.as_ref()?.records(row)));
    times.flatten().copied().max()
}

fn gather_keys(blocks: &[&Block], plan: &BlockPlan) -> Keys {
    let tail = blocks.first().map(|block| Arc::clone(block.keys.tail_shape())).unwrap_or_default();
    let mut keys = Keys::new(tail);
    for step in &plan.steps {
        let (source, rows) = match step {
            MergeStep::Copy { source, rows } => (*source, rows.clone()),
            MergeStep::Combine { rows } => match rows.first() {
                Some(RowRef { source, row }) => (*source, *row..row + 1),
                None => continue,
            },
        };
        for row in rows {
            let (prefix, tail) = blocks[source].keys.parts(row);
            keys.push(prefix, tail);
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
    /// Cells from an older source than the rest of their record, ascending by output record.
    overrides: Vec<ColumnOverride>,
    /// Sets of records whose cells merge.
    folds: EqualCells,
    /// Output records so far.
    records: usize,
}

/// A cell of one column that does not come from the record that its output record was copied from.
#[derive(Debug)]
struct ColumnOverride {
    /// Index of the column in its group.
    column: usize,
    cell: CellOverride,
}

/// A cell that replaces one of an output record.
#[derive(Debug, Clone, Copy)]
struct CellOverride {
    /// Index of the output record.
    output: usize,
    /// Where the cell comes from.
    from: RecordRef,
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
    let picks = pick_records(group, parts, plan, &codes)?;
    let timestamps = match group.timestamps {
        TimestampKind::Stored => gather_timestamps(parts, &picks),
        TimestampKind::Zero => None,
    };
    let qualifiers = codes.gather(parts, &picks);

    let mut columns = Vec::with_capacity(group.columns.len());
    for (index, column) in group.columns.iter().enumerate() {
        let arrays: Option<Vec<ArrayRef>> = parts.iter().map(|part| part.columns[index].clone()).collect();
        columns.push(match arrays {
            Some(arrays) if column.merge.is_newest() || picks.folds.is_empty() => {
                Some(gather_column(&arrays, index, &picks)?)
            }
            Some(arrays) => {
                let folded = merge_cells(column.merge, &arrays, &picks.folds, overflow);
                let folded = folded.map_err(|error| error.at(keys, &picks.row_ends, qualifiers.as_ref(), column))?;
                Some(gather_folded(arrays, folded, &picks)?)
            }
            None => None,
        });
    }

    Ok(GroupBlock { columns, timestamps, qualifiers, row_ends: picks.row_ends, sums: Vec::new() })
}

/// Which records of the parts of a group the output has.
fn pick_records(group: &Group, parts: &[&GroupBlock], plan: &BlockPlan, codes: &Codes) -> Result<Picks> {
    let mut picks = Picks::default();
    let mut contents = None;
    for step in &plan.steps {
        match step {
            MergeStep::Copy { source, rows } => picks.push_rows(*source, parts[*source], rows.clone()),
            MergeStep::Combine { rows } => {
                combine(group, parts, codes, rows, &mut contents, &mut picks)?;
                picks.end_row();
            }
        }
    }

    Ok(picks)
}

/// The timestamps of the picked records; `None` if they were not read.
fn gather_timestamps(parts: &[&GroupBlock], picks: &Picks) -> Option<Vec<i64>> {
    let all: Vec<&[i64]> = parts.iter().map(|part| part.timestamps.as_deref()).collect::<Option<_>>()?;
    let mut timestamps = Vec::with_capacity(picks.records);
    for (source, range) in &picks.ranges {
        timestamps.extend_from_slice(&all[*source][range.clone()]);
    }

    Some(timestamps)
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
        let mut maps = Vec::with_capacity(all.len());
        for qualifiers in all {
            let names = qualifiers.dictionary.iter();
            maps.push(Some(names.map(|name| dictionary.partition_point(|known| known < name) as u32).collect()));
        }

        Self { dictionary: Some(dictionary), maps }
    }

    /// The qualifiers of the picked records; `None` if they were not read.
    fn gather(&self, parts: &[&GroupBlock], picks: &Picks) -> Option<Qualifiers> {
        let dictionary = self.dictionary.clone()?;
        let mut out = Vec::with_capacity(picks.records);
        for (source, records) in &picks.ranges {
            let codes = parts[*source].qualifiers.as_ref().map_or(&[][..], |q| &q.codes[records.clone()]);
            match &self.maps[*source] {
                Some(map) => out.extend(codes.iter().map(|code| map[*code as usize])),
                None => out.extend_from_slice(codes),
            }
        }

        Some(Qualifiers { dictionary, codes: out })
    }

    fn at(&self, parts: &[&GroupBlock], source: usize, record: usize) -> u32 {
        let code = parts[source].qualifiers.as_ref().map_or(0, |q| q.codes[record]);
        match self.maps.get(source) {
            Some(Some(map)) => map[code as usize],
            _ => code,
        }
    }
}

/// The records of a row that are still to be merged, of one source.
#[derive(Debug)]
struct Cursor {
    source: usize,
    records: Range<usize>,
}

impl Cursor {
    fn first(&self) -> RecordRef {
        RecordRef { source: self.source, record: self.records.start }
    }
}

/// What orders the records of a row: by qualifier, newer ones first.
type RecordKey = (u32, std::cmp::Reverse<i64>);

fn record_key(parts: &[&GroupBlock], codes: &Codes, RecordRef { source, record }: RecordRef) -> RecordKey {
    let timestamp = parts[source].timestamps.as_ref().map_or(0, |timestamps| timestamps[record]);
    (codes.at(parts, source, record), std::cmp::Reverse(timestamp))
}

/// Merges the records of one row of several sources, older first.
fn combine(
    group: &Group,
    parts: &[&GroupBlock],
    codes: &Codes,
    rows: &[RowRef],
    contents: &mut Option<Contents>,
    picks: &mut Picks,
) -> Result<()> {
    let records = |row: &RowRef| Cursor { source: row.source, records: parts[row.source].records(row.row) };
    if let [row] = rows {
        let Cursor { source, records } = records(row);
        picks.push(source, records);
        return Ok(());
    }

    let mut cursors: Vec<Cursor> = rows.iter().map(records).collect();
    let aggregates = group.has_aggregates();
    loop {
        cursors.retain(|cursor| !cursor.records.is_empty());
        let alike = first_alike(parts, codes, &cursors);
        let Some(newest) = alike.last().map(|at| cursors[*at].first()) else { return Ok(()) };
        if group.keeps_duplicates() {
            let mut records = take_equal(parts, codes, &mut cursors, &alike);
            if alike.len() > 1 {
                keep_first(parts, contents, &mut records)?;
            }
            records.iter().for_each(|from| picks.push(from.source, from.record..from.record + 1));
            continue;
        }

        // A packed record is one cell, which replaces older ones as a whole.
        if group.packed.is_none() {
            fill_from_older(group, parts, newest, alike.iter().rev().skip(1).map(|at| cursors[*at].first()), picks);
        }
        if aggregates && alike.len() > 1 {
            picks.folds.push(picks.records, alike.iter().map(|at| cursors[*at].first()));
        }
        picks.push(newest.source, newest.record..newest.record + 1);
        alike.iter().for_each(|at| cursors[*at].records.start += 1);
    }
}

/// Indexes of the cursors whose first records have the least key, older first.
fn first_alike(parts: &[&GroupBlock], codes: &Codes, cursors: &[Cursor]) -> Vec<usize> {
    let mut alike = Vec::new();
    let mut least: Option<RecordKey> = None;
    for (at, cursor) in cursors.iter().enumerate() {
        let key = record_key(parts, codes, cursor.first());
        match least.map_or(Ordering::Less, |least| key.cmp(&least)) {
            Ordering::Greater => continue,
            Ordering::Equal => {}
            Ordering::Less => alike.clear(),
        }
        alike.push(at);
        least = Some(key);
    }

    alike
}

/// Takes all records with the key of the first ones from the cursors `alike`.
fn take_equal(parts: &[&GroupBlock], codes: &Codes, cursors: &mut [Cursor], alike: &[usize]) -> Vec<RecordRef> {
    let mut taken = Vec::new();
    let Some(common) = alike.last().map(|at| record_key(parts, codes, cursors[*at].first())) else { return taken };
    for at in alike {
        let cursor = &mut cursors[*at];
        while !cursor.records.is_empty() && record_key(parts, codes, cursor.first()) == common {
            taken.push(cursor.first());
            cursor.records.start += 1;
        }
    }

    taken
}

/// Removes from `records`, of equal qualifier and timestamp, those equal to an earlier one in every column.
fn keep_first(parts: &[&GroupBlock], contents: &mut Option<Contents>, records: &mut Vec<RecordRef>) -> Result<()> {
    if contents.is_none() {
        let columns: Vec<Vec<ArrayRef>> =
            parts.iter().map(|part| part.columns.iter().flatten().cloned().collect()).collect();
        *contents = Some(Contents::new(&columns)?);
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
    newest: RecordRef,
    older: impl Iterator<Item = RecordRef> + Clone,
    picks: &mut Picks,
) {
    for (index, column) in group.columns.iter().enumerate() {
        if column.merge.is_newest()
            && !has_value(parts, newest, index)
            && let Some(from) = older.clone().find(|cell| has_value(parts, *cell, index))
        {
            let cell = CellOverride { output: picks.records, from };
            picks.overrides.push(ColumnOverride { column: index, cell });
        }
    }
}

fn has_value(parts: &[&GroupBlock], RecordRef { source, record }: RecordRef, column: usize) -> bool {
    parts[source].columns[column].as_ref().is_some_and(|values| values.is_valid(record))
}

fn gather_column(arrays: &[ArrayRef], column: usize, picks: &Picks) -> Result<ArrayRef> {
    let overrides = picks.overrides.iter().filter(|other| other.column == column);
    collect(arrays, overrides.map(|other| other.cell), picks)
}

/// Gathers a column whose equal cells were merged into `folded`.
fn gather_folded(mut arrays: Vec<ArrayRef>, folded: ArrayRef, picks: &Picks) -> Result<ArrayRef> {
    let source = arrays.len();
    arrays.push(folded);
    let overrides = picks.folds.records().iter().enumerate();
    let overrides =
        overrides.map(|(set, output)| CellOverride { output: *output, from: RecordRef { source, record: set } });
    collect(&arrays, overrides, picks)
}

/// Gathers the picked records of a column; `overrides`, ascending by output record, replace theirs.
fn collect(arrays: &[ArrayRef], overrides: impl Iterator<Item = CellOverride>, picks: &Picks) -> Result<ArrayRef> {
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
        while let Some(CellOverride { output, from }) = overrides.next_if(|next| next.output < written + range.len()) {
            let before = output - written;
            out.try_extend(*source, range.start, range.start + before)?;
            out.try_extend(from.source, from.record, from.record + 1)?;
            range.start += before + 1;
            written += before + 1;
        }
        written += range.len();
        out.try_extend(*source, range.start, range.end)?;
    }

    Ok(make_array(out.freeze()))
}
