//! Builds blocks from the events of a piece: rows, the records of each column group, and values.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::Array;
use tidetable_layout::block::Qualifiers;
use tidetable_layout::encode::KeyNumbers;
use tidetable_layout::schema::TimestampKind;
use tidetable_layout::{Block, Group, GroupBlock, Keys, StoredSchema};
use tidetable_store::Result;
use tidetable_store::merge::Contents;
use tidetable_store::merge::{EqualCells, Overflow, merge_cells};

use crate::sort::chunk::{AllRanks, Prefixes};
use crate::sort::order::Row;
use crate::sort::piece::{GroupEvents, PieceEvents};
use crate::sort::ranks::Ranks;
use crate::sort::take::{pick, pick_folded, pick_from};
use crate::sort::upsert::Upserts;

/// In place of a column: all columns, of records that are one cell.
const WHOLE_RECORD: usize = usize::MAX;

/// A sorted piece of a window.
#[derive(Debug)]
pub(crate) struct SortedPiece {
    pub(crate) block: Block,
    /// Cells that later events of the load replaced.
    pub(crate) overwritten: u64,
    /// Those of them that had another value. Cells that an upsert replaced are not compared.
    pub(crate) changed: u64,
    /// The source rows that lost these cells, by the number of the window; one may occur more than once.
    pub(crate) lost: Vec<u64>,
    /// Whether it has rows without cells, kept for the timestamp of the upsert that emptied them.
    pub(crate) emptied: bool,
}

/// Builds the rows of a piece. `repeats` tells whether a column (group, index in it) follows from the row key: then replacing its
/// cells loses nothing and is not counted.
///
/// # Errors
/// If equal cells cannot be merged.
pub(crate) fn build(
    schema: &StoredSchema,
    piece: &PieceEvents,
    ranks: &AllRanks,
    repeats: &dyn Fn(usize, usize) -> bool,
) -> Result<SortedPiece> {
    let mut keys = Keys::new(Arc::new(schema.tail.clone()));
    match &ranks.prefixes {
        Prefixes::Names(names) => piece.rows.iter().for_each(|row| keys.push(names.name(row.rank), row.tail)),
        Prefixes::Numbers(numbers) => push_numbers(&mut keys, &piece.rows, numbers),
    }
    let upserts = schema.upsert.then(|| Upserts::new(schema, piece));
    let mut overwritten = upserts.as_ref().map_or(0, |upserts| upserts.overwritten);
    let mut lost = upserts.as_ref().map(|upserts| upserts.lost.clone()).unwrap_or_default();
    let mut changed = 0;
    let mut groups = Vec::with_capacity(schema.groups.len());
    for (at, group) in schema.groups.iter().enumerate() {
        let mut records = Records::new(group, &piece.groups[at], piece.rows.len(), |column| repeats(at, column));
        match upserts.as_ref().filter(|_| group.timestamps == TimestampKind::Stored) {
            Some(upserts) => {
                for row in 0..piece.rows.len() {
                    match upserts.emptied(row, at) {
                        Some(event) => records.push_emptied(event),
                        None => records.push_row(upserts.events(row).iter().copied())?,
                    }
                }
            }
            None => piece.rows.iter().try_for_each(|row| records.push_range(row.events()))?,
        }
        overwritten += records.overwritten;
        changed += records.changed;
        lost.append(&mut records.lost);
        groups.push(Some(records.into_block(&keys, ranks.qualifiers[at].as_ref())?));
    }
    // A row without a value in any cell does not exist.
    let block = Block { keys, groups }.without_empty_rows();
    let emptied = upserts.is_some_and(|upserts| upserts.empties());
    let lost = lost.into_iter().map(|event| piece.unit(event)).collect();
    Ok(SortedPiece { block, overwritten, changed, lost, emptied })
}

/// Appends the keys of rows that are numbers.
fn push_numbers(keys: &mut Keys, rows: &[Row], numbers: &KeyNumbers) {
    let mut last = None;
    let mut prefix = Vec::new();
    for row in rows {
        let number = numbers.prefix_number(row.tail);
        if last != Some(number) {
            prefix.clear();
            numbers.write_prefix(row.tail, &mut prefix);
            last = Some(number);
        }
        keys.push(&prefix, numbers.tail(row.tail));
    }
}

/// An event with what its record is sorted by: qualifier, then newest first, then the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RecordKey {
    qualifier: u32,
    timestamp: Reverse<i64>,
    event: u32,
}

impl RecordKey {
    /// Whether two events are of one record.
    fn is_alike(&self, other: &Self) -> bool {
        (self.qualifier, self.timestamp) == (other.qualifier, other.timestamp)
    }
}

impl GroupEvents {
    fn record_key(&self, event: u32) -> RecordKey {
        let qualifier = self.qualifiers.as_ref().map_or(0, |ranks| ranks[event as usize]);
        let timestamp = Reverse(self.timestamps.as_ref().map_or(0, |timestamps| timestamps[event as usize]));
        RecordKey { qualifier, timestamp, event }
    }

    /// Whether each of consecutive events has a record of its own, and these are in order.
    fn ascends(&self, events: Range<usize>) -> bool {
        // No early exit, so that the loops vectorise.
        match (self.qualifiers.as_deref(), self.timestamps.as_deref()) {
            (Some(ranks), Some(times)) => {
                let (ranks, times) = (&ranks[events.clone()], &times[events]);
                let pairs = ranks.windows(2).zip(times.windows(2));
                pairs.fold(true, |all, (rank, time)| {
                    all & ((rank[0] < rank[1]) | ((rank[0] == rank[1]) & (time[0] > time[1])))
                })
            }
            (Some(ranks), None) => ranks[events].windows(2).fold(true, |all, rank| all & (rank[0] < rank[1])),
            (None, Some(times)) => times[events].windows(2).fold(true, |all, time| all & (time[0] > time[1])),
            (None, None) => events.len() <= 1,
        }
    }
}

/// Builds the records of one column group, row by row.
struct Records<'a> {
    group: &'a Group,
    events: &'a GroupEvents,
    /// Columns with nulls; the others need no check.
    sparse: Vec<usize>,
    all_sparse: bool,
    row_ends: Vec<u32>,
    /// The event of each record.
    picks: Vec<u32>,
    /// Rank of the qualifier of each record, for dynamic groups.
    qualifiers: Vec<u32>,
    /// Timestamp of each record, if stored.
    timestamps: Vec<i64>,
    /// Cells that come from an older event than the rest of their record: (record, column, event).
    overrides: Vec<(u32, usize, u32)>,
    /// Sets of events whose cells merge, if any column is an aggregate.
    folds: Option<EqualCells>,
    /// Content of events, for dedup; built when two events have the same key.
    contents: Option<Contents>,
    /// Columns whose replaced cells are counted.
    counted: Vec<usize>,
    /// The values of each column of which a cell was replaced, for comparison.
    compared: BTreeMap<usize, Contents>,
    /// Whether a row has one record, all values of which are those of its last event.
    takes_last: bool,
    overwritten: u64,
    /// Replaced cells that had another value.
    changed: u64,
    /// The events of these cells.
    lost: Vec<u32>,
    scratch: Vec<RecordKey>,
}

impl<'a> Records<'a> {
    fn new(group: &'a Group, events: &'a GroupEvents, rows: usize, repeats: impl Fn(usize) -> bool) -> Self {
        let sparse = |column: &usize| events.columns[*column].iter().any(|array| array.null_count() > 0);
        let sparse: Vec<usize> = (0..events.columns.len()).filter(sparse).collect();
        let all_sparse = sparse.len() == events.columns.len();
        let counted =
            (0..group.columns.len()).filter(|column| group.columns[*column].merge.is_newest() && !repeats(*column));
        let counted: Vec<usize> = counted.collect();
        let one_record = events.qualifiers.is_none() && events.timestamps.is_none() && group.packed.is_none();
        let takes_last = one_record && sparse.is_empty() && counted.is_empty() && !group.has_aggregates();
        Self {
            group,
            events,
            sparse,
            all_sparse,
            row_ends: Vec::with_capacity(rows),
            picks: Vec::new(),
            qualifiers: Vec::new(),
            timestamps: Vec::new(),
            overrides: Vec::new(),
            folds: group.has_aggregates().then(EqualCells::default),
            contents: None,
            counted,
            compared: BTreeMap::new(),
            takes_last,
            overwritten: 0,
            changed: 0,
            lost: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// As [`Self::push_row`], for consecutive events.
    fn push_range(&mut self, events: Range<u32>) -> Result<()> {
        let range = events.start as usize..events.end as usize;
        if self.all_sparse || !self.events.ascends(range.clone()) {
            return if self.takes_last { self.push_last(events) } else { self.push_row(events) };
        }
        self.picks.extend(events);
        if let Some(ranks) = &self.events.qualifiers {
            self.qualifiers.extend_from_slice(&ranks[range.clone()]);
        }
        if let Some(times) = &self.events.timestamps {
            self.timestamps.extend_from_slice(&times[range]);
        }
        self.row_ends.push(self.picks.len() as u32);
        Ok(())
    }

    /// The record of a row with one, of which all values are those of its last event.
    fn push_last(&mut self, events: Range<u32>) -> Result<()> {
        self.picks.extend(events.last());
        self.row_ends.push(self.picks.len() as u32);
        Ok(())
    }

    fn push_row(&mut self, events: impl Iterator<Item = u32>) -> Result<()> {
        let group = self.events;
        let mut row = std::mem::take(&mut self.scratch);
        row.clear();
        row.extend(events.map(|event| group.record_key(event)));
        sort_nearly(&mut row);
        // Telemetry mostly has each record once.
        if row.windows(2).any(|pair| pair[0].is_alike(&pair[1])) {
            for alike in row.chunk_by(RecordKey::is_alike) {
                if self.group.keeps_duplicates() { self.push_each(alike)? } else { self.push_alike(alike)? }
            }
        } else {
            row.iter().for_each(|record| self.push_record(record));
        }
        self.scratch = row;
        self.row_ends.push(self.picks.len() as u32);
        Ok(())
    }

    /// Adds a record without values, for a row that an upsert emptied.
    fn push_emptied(&mut self, event: u32) {
        self.pick(&self.events.record_key(event));
        self.row_ends.push(self.picks.len() as u32);
    }

    /// Adds a record of one event, unless it has no cells.
    fn push_record(&mut self, record: &RecordKey) {
        if !self.all_sparse || self.has_any(record.event) {
            self.pick(record);
        }
    }

    fn pick(&mut self, record: &RecordKey) {
        self.picks.push(record.event);
        if self.events.qualifiers.is_some() {
            self.qualifiers.push(record.qualifier);
        }
        if self.events.timestamps.is_some() {
            self.timestamps.push(record.timestamp.0);
        }
    }

    fn has_any(&self, event: u32) -> bool {
        self.sparse.iter().any(|column| self.events.has(event, *column))
    }

    /// Adds a record for each of several events with one qualifier and timestamp, without duplicates.
    fn push_each(&mut self, alike: &[RecordKey]) -> Result<()> {
        if let [only] = alike {
            self.push_record(only);
            return Ok(());
        }
        if self.contents.is_none() {
            self.contents = Some(Contents::new(&self.events.by_array())?);
        }
        let Some(contents) = &self.contents else { return Ok(()) };
        let place = |record: &RecordKey| self.events.place(record.event);
        let mut places: Vec<(usize, usize)> = alike.iter().map(place).collect();
        contents.keep_first(&mut places);
        let mut kept = places.into_iter().peekable();
        for record in alike {
            if kept.next_if_eq(&self.events.place(record.event)).is_some() {
                self.push_record(record);
            }
        }
        Ok(())
    }

    /// Adds one record for several events with one qualifier and timestamp, in order of arrival: per column the last
    /// value wins, or the merge operator applies.
    fn push_alike(&mut self, alike: &[RecordKey]) -> Result<()> {
        let Some((newest, older)) = alike.split_last() else { return Ok(()) };
        if older.is_empty() {
            self.push_record(newest);
            return Ok(());
        }
        if self.group.packed.is_some() {
            return self.push_newest(alike);
        }

        let events = || alike.iter().map(|record| record.event);
        for at in 0..self.counted.len() {
            let column = self.counted[at];
            self.count_replaced(column, events().filter(|event| self.events.has(*event, column)).collect())?;
        }
        if self.all_sparse && !events().any(|event| self.has_any(event)) {
            return Ok(());
        }

        let at = self.picks.len() as u32;
        if let Some(folds) = &mut self.folds {
            folds.push(at as usize, events().map(|event| self.events.place(event)));
        }
        for column in self.sparse.iter().filter(|column| self.group.columns[**column].merge.is_newest()) {
            let has = |record: &&RecordKey| self.events.has(record.event, *column);
            if let Some(record) = older.iter().rev().find(has).filter(|_| !has(&newest)) {
                self.overrides.push((at, *column, record.event));
            }
        }
        self.pick(newest);
        Ok(())
    }

    /// The same where a record is one cell: the last event with any field wins.
    fn push_newest(&mut self, alike: &[RecordKey]) -> Result<()> {
        let cells = || alike.iter().filter(|record| !self.all_sparse || self.has_any(record.event));
        let newest = cells().next_back();
        if !self.counted.is_empty() {
            self.count_replaced(WHOLE_RECORD, cells().map(|record| record.event).collect())?;
        }
        if let Some(newest) = newest {
            self.pick(newest);
        }
        Ok(())
    }

    /// Counts the cells of a column that the last of `cells`, events in order of arrival, replaced.
    fn count_replaced(&mut self, column: usize, mut cells: Vec<u32>) -> Result<()> {
        let Some(newest) = cells.pop() else { return Ok(()) };
        if cells.is_empty() {
            return Ok(());
        }

        let contents = match self.compared.entry(column) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(missing) => missing.insert(Contents::new(&self.events.values_of(column))?),
        };
        let newest = self.events.place(newest);
        let changed = cells.iter().filter(|cell| !contents.is_equal(self.events.place(**cell), newest)).count();

        self.changed += changed as u64;
        self.overwritten += cells.len() as u64;
        self.lost.append(&mut cells);
        Ok(())
    }

    fn into_block(self, keys: &Keys, names: Option<&Ranks>) -> Result<GroupBlock> {
        let Self { group, events, row_ends, picks, qualifiers, timestamps, overrides, folds, .. } = self;
        let qualifiers = events.qualifiers.as_ref().and(names).map(|names| local(qualifiers, names));
        let timestamps = events.timestamps.as_ref().map(|_| timestamps);
        let folds = folds.filter(|folds| !folds.is_empty());
        // Values in the order of the events need no places, unless a record is of several events.
        let simple = events.is_in_order() && folds.is_none() && overrides.is_empty();
        let mut places: Vec<(usize, usize)> =
            if simple { Vec::new() } else { picks.iter().map(|event| events.place(*event)).collect() };
        let mut columns = Vec::with_capacity(group.columns.len());
        for (at, (values, column)) in events.columns.iter().zip(&group.columns).enumerate() {
            columns.push(Some(match folds.as_ref().filter(|_| !column.merge.is_newest()) {
                _ if simple => pick_from(values, &picks)?,
                Some(folds) => {
                    let folded = merge_cells(column.merge, values, folds, Overflow::Fails);
                    let folded = folded.map_err(|error| error.at(keys, &row_ends, qualifiers.as_ref(), column))?;
                    pick_folded(values, folded, &places, folds)?
                }
                None => {
                    let overrides: Vec<_> = overrides.iter().filter(|(_, column, _)| *column == at).collect();
                    for (record, _, event) in &overrides {
                        places[*record as usize] = events.place(*event);
                    }
                    let picked = pick(values, &places)?;
                    for (record, ..) in overrides {
                        places[*record as usize] = events.place(picks[*record as usize]);
                    }
                    picked
                }
            }));
        }
        Ok(GroupBlock { row_ends, qualifiers, timestamps, columns, sums: Vec::new() })
    }
}

/// Moves of an insertion sort, in records, beyond which a row is sorted in the usual way.
const MAX_MOVES: usize = 256;

/// Sorts the events of a row. Few of them come late, and each of those goes a little to the front.
fn sort_nearly(row: &mut [RecordKey]) {
    let mut moves = 0;
    for at in 1..row.len() {
        let own = row[at];
        let mut place = at;
        while place > 0 && row[place - 1] > own {
            row[place] = row[place - 1];
            place -= 1;
        }
        row[place] = own;
        moves += at - place;
        if moves > MAX_MOVES {
            return row.sort_unstable();
        }
    }
}

/// The qualifiers with these ranks, with a dictionary of those that occur.
fn local(mut ranks: Vec<u32>, names: &Ranks) -> Qualifiers {
    let mut used = vec![false; names.len()];
    ranks.iter().for_each(|rank| used[*rank as usize] = true);
    let mut code_of = vec![0u32; names.len()];
    let mut dictionary = Vec::new();
    for rank in (0..names.len()).filter(|rank| used[*rank]) {
        code_of[rank] = dictionary.len() as u32;
        dictionary.push(names.name(rank as u32).into());
    }
    ranks.iter_mut().for_each(|rank| *rank = code_of[*rank as usize]);
    Qualifiers { codes: ranks, dictionary }
}
