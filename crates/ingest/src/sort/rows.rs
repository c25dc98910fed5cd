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
use tidetable_store::merge::{Contents, EqualCells, Overflow, RecordRef, merge_cells};

use crate::sort::chunk::{AllRanks, Prefixes};
use crate::sort::order::Row;
use crate::sort::piece::{GroupEvents, PieceEvents};
use crate::sort::ranks::Ranks;
use crate::sort::take::{RecordPlaces, pick_from};
use crate::sort::upsert::Upserts;

/// A sorted piece of a window, as a block that can be written.
#[derive(Debug)]
pub(crate) struct SortedPiece {
    pub(crate) block: Block,
    /// Cells that later events of the load replaced.
    pub(crate) overwritten: u64,
    /// Those of them that had another value. Cells that an upsert replaced are not compared.
    pub(crate) changed: u64,
    /// The key of the first row with such a cell.
    pub(crate) changed_in_row: Option<Vec<u8>>,
    /// The source rows that lost these cells, by the number of the window; one may occur more than once.
    pub(crate) lost: Vec<u64>,
    /// Whether it has rows without cells, kept for the timestamp of the upsert that emptied them.
    pub(crate) emptied: bool,
}

/// Builds the rows of a piece. `repeats` tells whether a column, by its group and its index there, follows from the row
/// key: then replacing its cells loses nothing and is not counted.
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
    let mut changed_row: Option<usize> = None;
    let mut groups = Vec::with_capacity(schema.groups.len());
    for (at, group) in schema.groups.iter().enumerate() {
        let mut records = Records::new(group, &piece.groups[at], piece.rows.len(), |column| repeats(at, column));
        match upserts.as_ref().filter(|_| group.timestamps == TimestampKind::Stored) {
            Some(upserts) => records.push_upserts(upserts, at, piece.rows.len())?,
            None => piece.rows.iter().try_for_each(|row| records.push_range(row.events()))?,
        }
        overwritten += records.overwritten;
        changed += records.changed;
        changed_row = changed_row.into_iter().chain(records.changed_row).min();
        lost.append(&mut records.lost);
        groups.push(Some(records.into_block(&keys, ranks.qualifiers[at].as_ref())?));
    }
    let changed_in_row = changed_row.map(|row| keys.get(row).to_vec());
    // A row without a value in any cell does not exist.
    let block = Block { keys, groups }.without_empty_rows();
    let emptied = upserts.is_some_and(|upserts| upserts.empties());
    let lost = lost.into_iter().map(|event| piece.unit(event)).collect();
    Ok(SortedPiece { block, overwritten, changed, changed_in_row, lost, emptied })
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
    /// What the record of an event is sorted by.
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
    picks: Vec<u32>,
    /// Rank of the qualifier of each record, for dynamic groups.
    qualifiers: Vec<u32>,
    timestamps: Vec<i64>,
    /// Cells that come from an older event than the rest of their record.
    overrides: Vec<OlderCell>,
    /// Sets of events whose cells merge, if any column is an aggregate.
    folds: Option<EqualCells>,
    /// Content of events, for dedup; built when two events have the same key.
    contents: Option<Contents>,
    /// Columns whose replaced cells are counted.
    counted: Vec<usize>,
    /// The values of each column of which a cell was replaced, for comparison; under `None` those of records that are one cell.
    compared: BTreeMap<Option<usize>, Contents>,
    /// Whether a row has one record, all values of which are those of its last event.
    takes_last: bool,
    overwritten: u64,
    /// Replaced cells that had another value.
    changed: u64,
    /// The first row with such a cell.
    changed_row: Option<usize>,
    /// The events of these cells, one for each cell.
    lost: Vec<u32>,
    /// Buffers of a row, of its places, and of the events of a record, which are kept from row to row.
    scratch: Vec<RecordKey>,
    places: Vec<RecordRef>,
    cells: Vec<u32>,
}

/// A cell of a record that its newest event does not have.
#[derive(Debug, Clone, Copy)]
struct OlderCell {
    record: u32,
    column: usize,
    event: u32,
}

impl<'a> Records<'a> {
    /// Begins a group of `rows` rows. `repeats` tells which of its columns follow from the row key.
    fn new(group: &'a Group, events: &'a GroupEvents, rows: usize, repeats: impl Fn(usize) -> bool) -> Self {
        let mut sparse = Vec::new();
        for (column, arrays) in events.columns.iter().enumerate() {
            if arrays.iter().any(|array| array.null_count() > 0) {
                sparse.push(column);
            }
        }
        let all_sparse = sparse.len() == events.columns.len();

        let newest = (0..group.columns.len()).filter(|column| group.columns[*column].merge.is_newest());
        let counted: Vec<usize> = newest.filter(|column| !repeats(*column)).collect();
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
            changed_row: None,
            lost: Vec::new(),
            scratch: Vec::new(),
            places: Vec::new(),
            cells: Vec::new(),
        }
    }

    /// Adds the records of `rows` rows that upserts leave, in group `group`.
    fn push_upserts(&mut self, upserts: &Upserts, group: usize, rows: usize) -> Result<()> {
        for row in 0..rows {
            match upserts.emptied(row, group) {
                Some(event) => self.push_emptied(event),
                None => self.push_row(upserts.events(row).iter().copied())?,
            }
        }
        Ok(())
    }

    /// As [`Self::push_row`], for consecutive events, which mostly are in order already.
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

    /// Adds the records of a row, which has these events.
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

    /// Whether an event has a value in a column with nulls.
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
        let mut places = std::mem::take(&mut self.places);
        places.clear();
        places.extend(alike.iter().map(|record| self.events.place(record.event)));
        contents.keep_first(&mut places);

        let mut kept = places.iter().copied().peekable();
        for record in alike {
            if kept.next_if_eq(&self.events.place(record.event)).is_some() {
                self.push_record(record);
            }
        }
        self.places = places;
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

        let group = self.events;
        let events = alike.iter().map(|record| record.event);
        for at in 0..self.counted.len() {
            let column = self.counted[at];
            self.count_replaced(Some(column), events.clone().filter(|event| group.has(*event, column)))?;
        }
        if self.all_sparse && !events.clone().any(|event| self.has_any(event)) {
            return Ok(());
        }

        let record = self.picks.len() as u32;
        if let Some(folds) = &mut self.folds {
            folds.push(record as usize, events.map(|event| self.events.place(event)));
        }
        for column in self.sparse.iter().copied() {
            if !self.group.columns[column].merge.is_newest() || self.events.has(newest.event, column) {
                continue;
            }
            if let Some(older) = older.iter().rev().find(|older| self.events.has(older.event, column)) {
                self.overrides.push(OlderCell { record, column, event: older.event });
            }
        }
        self.pick(newest);
        Ok(())
    }

    /// The same where a record is one cell: the last event with any field wins.
    fn push_newest(&mut self, alike: &[RecordKey]) -> Result<()> {
        let mut cells = std::mem::take(&mut self.cells);
        cells.clear();
        let events = alike.iter().map(|record| record.event);
        cells.extend(events.filter(|event| !self.all_sparse || self.has_any(*event)));

        if let Some(newest) = cells.last() {
            if !self.counted.is_empty() {
                self.count_replaced(None, cells.iter().copied())?;
            }
            self.pick(&self.events.record_key(*newest));
        }
        self.cells = cells;
        Ok(())
    }

    /// Counts the cells of a column, or of records that are one cell, that the last of `cells`, events in order of arrival, replaced.
    fn count_replaced(&mut self, column: Option<usize>, cells: impl Iterator<Item = u32>) -> Result<()> {
        let first = self.lost.len();
        self.lost.extend(cells);
        let newest = if self.lost.len() > first { self.lost.pop() } else { None };
        let Some(newest) = newest else { return Ok(()) };
        if self.lost.len() == first {
            return Ok(());
        }

        let contents = match self.compared.entry(column) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(missing) => missing.insert(Contents::new(&self.events.values_of(column))?),
        };
        let newest = self.events.place(newest);
        let replaced = &self.lost[first..];
        let changed = replaced.iter().filter(|cell| !contents.is_equal(self.events.place(**cell), newest)).count();

        if changed > 0 {
            self.changed_row.get_or_insert(self.row_ends.len());
        }
        self.changed += changed as u64;
        self.overwritten += replaced.len() as u64;
        Ok(())
    }

    /// The records as a block. `keys` are those of its rows, for errors; `names` those of the ranks of qualifiers.
    ///
    /// # Errors
    /// If equal cells cannot be merged.
    fn into_block(self, keys: &Keys, names: Option<&Ranks>) -> Result<GroupBlock> {
        let Self { group, events, row_ends, picks, qualifiers, timestamps, overrides, folds, .. } = self;
        let qualifiers = events.qualifiers.as_ref().and(names).map(|names| local(qualifiers, names));
        let timestamps = events.timestamps.as_ref().map(|_| timestamps);
        let folds = folds.filter(|folds| !folds.is_empty());
        let mut columns = Vec::with_capacity(group.columns.len());

        // Values in the order of the events need no places, unless a record is of several events.
        if events.is_in_order() && folds.is_none() && overrides.is_empty() {
            for values in &events.columns {
                columns.push(Some(pick_from(values, &picks)?));
            }
            return Ok(GroupBlock { row_ends, qualifiers, timestamps, columns, sums: Vec::new() });
        }

        let mut places = RecordPlaces::new(picks.iter().map(|event| events.place(*event)).collect());
        for (at, (values, column)) in events.columns.iter().zip(&group.columns).enumerate() {
            if let Some(folds) = folds.as_ref().filter(|_| !column.merge.is_newest()) {
                let folded = merge_cells(column.merge, values, folds, Overflow::Fails);
                let folded = folded.map_err(|error| error.at(keys, &row_ends, qualifiers.as_ref(), column))?;
                columns.push(Some(places.pick_folded(values, folded, folds)?));
                continue;
            }

            let overrides = overrides.iter().filter(|older| older.column == at);
            for OlderCell { record, event, .. } in overrides.clone() {
                places.set(*record as usize, events.place(*event));
            }
            columns.push(Some(places.pick(values)?));
            for OlderCell { record, .. } in overrides {
                places.set(*record as usize, events.place(picks[*record as usize]));
            }
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
