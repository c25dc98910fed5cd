//! Builds an output block from a plan: ranges of records for each group, then columns from ranges.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, MutableArrayData, make_array};
use tidetable_layout::{Block, Group, GroupBlock, Keys, Qualifiers, StoredSchema, TimestampKind};

use super::plan::{BlockPlan, Step};
use crate::error::Result;

/// The rows of `block` from `row` on.
pub(super) fn tail(block: Block, row: usize) -> Block {
    let end = block.keys.len();
    slice(&block, row..end)
}

/// The rows `rows` of `block`; columns are shared, not copied.
pub fn slice(block: &Block, rows: Range<usize>) -> Block {
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
    }
}

/// The block that `plan` makes of `blocks`.
pub(super) fn gather(schema: &StoredSchema, blocks: &[&Block], plan: &BlockPlan) -> Result<Block> {
    let mut groups = Vec::with_capacity(schema.groups.len());
    for (at, group) in schema.groups.iter().enumerate() {
        let parts: Option<Vec<&GroupBlock>> =
            blocks.iter().map(|block| block.groups.get(at).and_then(Option::as_ref)).collect();
        groups.push(match parts {
            Some(parts) => Some(gather_group(group, &parts, plan)?),
            None => None,
        });
    }
    Ok(Block { keys: gather_keys(blocks, plan), groups })
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
            Step::Copy { source, rows } => rows.clone().for_each(|row| push(*source, row)),
            Step::Combine { rows } => rows.first().into_iter().for_each(|(source, row)| push(*source, *row)),
        }
    }
    keys
}

/// Where the records of an output group come from.
#[derive(Debug, Default)]
struct Picks {
    row_ends: Vec<u32>,
    /// Runs of records of one source.
    ranges: Vec<(usize, Range<usize>)>,
    /// Cells that come from an older source than the rest of their record:
    /// (output record, column, source, record), ascending.
    overrides: Vec<(usize, usize, usize, usize)>,
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

    fn end_row(&mut self) {
        self.row_ends.push(self.records as u32);
    }
}

fn gather_group(group: &Group, parts: &[&GroupBlock], plan: &BlockPlan) -> Result<GroupBlock> {
    let codes = Codes::merge(parts);
    let mut picks = Picks::default();
    for step in &plan.steps {
        match step {
            Step::Copy { source, rows } => {
                for row in rows.clone() {
                    picks.push(*source, parts[*source].records(row));
                    picks.end_row();
                }
            }
            Step::Combine { rows } => {
                combine(group, parts, &codes, rows, &mut picks);
                picks.end_row();
            }
        }
    }
    let timestamps = (group.timestamps == TimestampKind::Stored).then(|| {
        let all: Option<Vec<&[i64]>> = parts.iter().map(|part| part.timestamps.as_deref()).collect();
        all.map(|all| picks.ranges.iter().flat_map(|(source, range)| &all[*source][range.clone()]).copied().collect())
    });
    let qualifiers = codes.dictionary.is_some().then(|| Qualifiers {
        codes: picks.ranges.iter().flat_map(|(s, range)| codes.of(parts, *s, range.clone())).collect(),
        dictionary: codes.dictionary.clone().unwrap_or_default(),
    });
    let columns = (0..group.columns.len()).map(|column| gather_column(parts, column, &picks));
    Ok(GroupBlock {
        columns: columns.collect::<Result<_>>()?,
        timestamps: timestamps.flatten(),
        qualifiers,
        row_ends: picks.row_ends,
    })
}

/// Qualifier dictionaries of several sources, made one.
struct Codes {
    dictionary: Option<Vec<Box<[u8]>>>,
    /// For each source, the merged code of each of its codes.
    maps: Vec<Vec<u32>>,
}

impl Codes {
    fn merge(parts: &[&GroupBlock]) -> Self {
        let Some(all) = parts.iter().map(|part| part.qualifiers.as_ref()).collect::<Option<Vec<_>>>() else {
            return Self { dictionary: None, maps: Vec::new() };
        };
        let names: BTreeSet<&[u8]> = all.iter().flat_map(|q| &q.dictionary).map(AsRef::as_ref).collect();
        let dictionary: Vec<Box<[u8]>> = names.into_iter().map(Box::from).collect();
        let code = |name: &[u8]| dictionary.partition_point(|known| known.as_ref() < name) as u32;
        let maps = all.iter().map(|q| q.dictionary.iter().map(|name| code(name)).collect()).collect();
        Self { dictionary: Some(dictionary), maps }
    }

    fn of<'a>(
        &'a self,
        parts: &'a [&GroupBlock],
        source: usize,
        records: Range<usize>,
    ) -> impl Iterator<Item = u32> + 'a {
        let codes = parts[source].qualifiers.as_ref().map_or(&[][..], |q| &q.codes[records]);
        codes.iter().map(move |code| self.maps[source][*code as usize])
    }

    fn at(&self, parts: &[&GroupBlock], source: usize, record: usize) -> u32 {
        self.of(parts, source, record..record + 1).next().unwrap_or(0)
    }
}

/// Combines the records of one row of several sources, older first.
fn combine(group: &Group, parts: &[&GroupBlock], codes: &Codes, rows: &[(usize, usize)], picks: &mut Picks) {
    let mut cursors: Vec<(usize, Range<usize>)> =
        rows.iter().map(|(source, row)| (*source, parts[*source].records(*row))).collect();
    let key = |source: usize, record: usize| {
        let timestamp = parts[source].timestamps.as_ref().map_or(0, |timestamps| timestamps[record]);
        (codes.at(parts, source, record), std::cmp::Reverse(timestamp))
    };
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
        let Some(newest) = newest else { return };
        let (source, record) = (cursors[newest].0, cursors[newest].1.start);
        // A packed record is one cell, which replaces another whole.
        if group.packed.is_none() {
            let older = alike.iter().rev().skip(1).map(|at| (cursors[*at].0, cursors[*at].1.start));
            fill_from_older(parts, (source, record), older, picks);
        }
        picks.push(source, record..record + 1);
        alike.iter().for_each(|at| cursors[*at].1.start += 1);
    }
}

/// Cells the newest record lacks come from the newest older record that has them.
fn fill_from_older(
    parts: &[&GroupBlock],
    newest: (usize, usize),
    older: impl Iterator<Item = (usize, usize)> + Clone,
    picks: &mut Picks,
) {
    let has = |(source, record): (usize, usize), column: usize| {
        parts[source].columns[column].as_ref().is_some_and(|values| values.is_valid(record))
    };
    for column in 0..parts[newest.0].columns.len() {
        if !has(newest, column)
            && let Some((source, record)) = older.clone().find(|cell| has(*cell, column))
        {
            picks.overrides.push((picks.records, column, source, record));
        }
    }
}

fn gather_column(parts: &[&GroupBlock], column: usize, picks: &Picks) -> Result<Option<ArrayRef>> {
    let Some(arrays) =
        parts.iter().map(|part| part.columns[column].as_ref().map(|c| c.to_data())).collect::<Option<Vec<ArrayData>>>()
    else {
        return Ok(None);
    };
    let mut out = MutableArrayData::new(arrays.iter().collect(), true, picks.records);
    let mut overrides = picks.overrides.iter().filter(|(_, at, _, _)| *at == column).peekable();
    let mut written = 0;
    for (source, range) in &picks.ranges {
        let mut range = range.clone();
        while let Some((at, _, older, record)) = overrides.next_if(|(at, ..)| *at < written + range.len()) {
            let before = at - written;
            out.try_extend(*source, range.start, range.start + before)?;
            out.try_extend(*older, *record, record + 1)?;
            range.start += before + 1;
            written += before + 1;
        }
        written += range.len();
        out.try_extend(*source, range.start, range.end)?;
    }
    Ok(Some(make_array(out.freeze())))
}
