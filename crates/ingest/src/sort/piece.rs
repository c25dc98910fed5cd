//! The events of a piece of a window, put together in the order of its rows.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use tidetable_store::Result;
use tidetable_store::merge::RecordRef;

use crate::sort::lane::{Lane, Places, gather};
use crate::sort::order::{Row, RowOrder, Tails};
use crate::sort::partition::{Columns, Part, Partition};
use crate::sort::take::RecordPlaces;

/// The events of a piece by row; those of a row in order of arrival.
#[derive(Debug)]
pub(crate) struct PieceEvents {
    pub(crate) rows: Vec<Row>,
    pub(crate) groups: Vec<GroupEvents>,
    /// The source row of each event, where needed.
    pub(crate) units: Option<Vec<u64>>,
    origins: Arc<Origins>,
    /// The number of the first event of the window, where events are source rows.
    first_unit: u64,
}

/// The values of one column group for each event of a piece.
#[derive(Debug)]
pub(crate) struct GroupEvents {
    /// Rank of the qualifier, for dynamic groups.
    pub(crate) qualifiers: Option<Vec<u32>>,
    /// Cell timestamp, if it is stored.
    pub(crate) timestamps: Option<Vec<i64>>,
    /// Arrays of each column: one in the order of the events, or one for each chunk.
    pub(crate) columns: Vec<Vec<ArrayRef>>,
    /// Where the events are in the chunks, if the values stayed there.
    origins: Option<Arc<Origins>>,
}

/// Where the events of a piece come from.
#[derive(Debug)]
struct Origins {
    /// For each event its number in the order of arrival.
    order: Vec<u32>,
    runs: Vec<ArrivalRun>,
    /// By arrival the number of each event in its chunk.
    events: Vec<u32>,
}

/// The events of a piece that are of one chunk, which arrived together.
#[derive(Debug, Clone, Copy, Default)]
struct ArrivalRun {
    /// The number of the first in the order of arrival.
    first: u32,
    chunk: usize,
    /// The number in the window of the chunk's first event.
    base: u32,
}

impl Origins {
    /// The place of an event: its chunk, and its number there.
    fn of(&self, event: u32) -> RecordRef {
        let arrived = self.order[event as usize];
        RecordRef { source: self.run(arrived).chunk, record: self.events[arrived as usize] as usize }
    }

    /// The number of an event in the window.
    fn number(&self, event: u32) -> u32 {
        let arrived = self.order[event as usize];
        self.run(arrived).base + self.events[arrived as usize]
    }

    fn run(&self, arrived: u32) -> ArrivalRun {
        let after = self.runs.partition_point(|run| run.first <= arrived);
        after.checked_sub(1).and_then(|run| self.runs.get(run)).copied().unwrap_or_default()
    }
}

/// A part of a window with the events that it has of a piece.
struct PiecePart<'a> {
    /// Index of the part, and so of its chunk.
    chunk: usize,
    part: &'a Part<'a>,
    /// Which of the events of the part.
    events: Range<usize>,
}

impl PiecePart<'_> {
    /// What `all` has for these events, if it is there.
    fn slice<'v, T>(&self, all: Option<&'v Vec<T>>) -> Option<&'v [T]> {
        Some(&all?[self.events.clone()])
    }
}

impl PieceEvents {
    /// Puts piece `piece` together.
    ///
    /// # Errors
    /// Only if a column is not of the schema.
    pub(crate) fn collect(partition: &Partition<'_>, piece: usize) -> Result<Self> {
        let mut parts = Vec::with_capacity(partition.parts.len());
        for (chunk, part) in partition.parts.iter().enumerate() {
            let events = part.piece(piece);
            if !events.is_empty() {
                parts.push(PiecePart { chunk, part, events });
            }
        }

        let total = partition.events(piece);
        let ranks = concat(total, parts.iter().map(|piece| &piece.part.ranks[piece.events.clone()]));
        let RowOrder { events: order, rows } = RowOrder::new(&ranks, &tails(&parts, total), partition.ranks(piece));
        let units: Option<Vec<&[u64]>> = parts.iter().map(|piece| piece.slice(piece.part.units.as_ref())).collect();
        let units = units.map(|units| gather(units.into_iter(), &order)).filter(|units| !units.is_empty());

        let mut runs = Vec::with_capacity(parts.len());
        let mut first = 0;
        for PiecePart { chunk, part, events } in &parts {
            runs.push(ArrivalRun { first, chunk: *chunk, base: part.base });
            first += events.len() as u32;
        }
        let events = concat(total, parts.iter().map(|piece| &piece.part.events[piece.events.clone()]));
        let origins = Arc::new(Origins { order, runs, events });

        let mut groups = Vec::with_capacity(partition.schema.groups.len());
        for group in 0..partition.schema.groups.len() {
            groups.push(GroupEvents::collect(partition, &parts, &origins, group)?);
        }
        Ok(Self { rows, groups, units, origins, first_unit: partition.first_unit })
    }

    /// The source row of an event, by a number of the window; each event counts as a row where that is not needed.
    pub(crate) fn unit(&self, event: u32) -> u64 {
        match &self.units {
            Some(units) => units[event as usize],
            None => self.first_unit + u64::from(self.origins.number(event)),
        }
    }
}

fn concat<'a, T: Copy + 'a>(total: usize, parts: impl Iterator<Item = &'a [T]>) -> Vec<T> {
    let mut all = Vec::with_capacity(total);
    parts.for_each(|part| all.extend_from_slice(part));
    all
}

/// The tails of the events by arrival.
fn tails(parts: &[PiecePart<'_>], total: usize) -> Tails {
    let first = parts.first().map_or(&Tails::One(0), |piece| &piece.part.tails);
    if let Tails::One(tail) = first
        && parts.iter().all(|piece| piece.part.tails == *first)
    {
        return Tails::One(*tail);
    }

    let mut all = Vec::with_capacity(total);
    for PiecePart { part, events, .. } in parts {
        match &part.tails {
            Tails::One(tail) => all.resize(all.len() + events.len(), *tail),
            Tails::Each(tails) => all.extend_from_slice(&tails[events.clone()]),
        }
    }
    Tails::Each(all)
}

impl GroupEvents {
    /// Puts the cells of group `group` together, for the events of a piece.
    fn collect(
        partition: &Partition<'_>,
        parts: &[PiecePart<'_>],
        origins: &Arc<Origins>,
        group: usize,
    ) -> Result<Self> {
        let order = &origins.order;
        let qualifiers = parts.iter().map(|piece| piece.slice(piece.part.groups[group].qualifiers.as_ref()));
        let qualifiers: Option<Vec<&[u32]>> = qualifiers.collect();
        let qualifiers = qualifiers.map(|slices| gather(slices.into_iter(), order));
        let timestamps = parts.iter().map(|piece| piece.slice(piece.part.groups[group].timestamps.as_ref()));
        let timestamps: Option<Vec<&[i64]>> = timestamps.collect();
        let timestamps = timestamps.map(|slices| gather(slices.into_iter(), order));

        let mut columns = Vec::new();
        let stay = parts.iter().any(|piece| matches!(piece.part.groups[group].columns, Columns::Stay));
        if parts.is_empty() || stay {
            for column in 0..partition.schema.groups[group].columns.len() {
                let arrays = partition.parts.iter().map(|part| &part.chunk.encoded.groups[group].columns[column]);
                columns.push(arrays.map(Arc::clone).collect());
            }
            return Ok(Self { qualifiers, timestamps, columns, origins: Some(Arc::clone(origins)) });
        }

        for (at, column) in partition.schema.groups[group].columns.iter().enumerate() {
            let values = gather_column(parts, group, at, order);
            columns.push(vec![values.into_array(&column.value.arrow())?]);
        }
        Ok(Self { qualifiers, timestamps, columns, origins: None })
    }

    /// Whether the values are in the order of the events.
    pub(crate) fn is_in_order(&self) -> bool {
        self.origins.is_none()
    }

    /// The array with the values of an event in each column, and its place there.
    pub(crate) fn place(&self, event: u32) -> RecordRef {
        match &self.origins {
            Some(origins) => origins.of(event),
            None => RecordRef { source: 0, record: event as usize },
        }
    }

    /// The values of consecutive events in a column.
    ///
    /// # Errors
    /// If values that stayed in the chunks cannot be put together.
    pub(crate) fn values(&self, column: usize, events: Range<u32>) -> Result<ArrayRef> {
        let arrays = &self.columns[column];
        match arrays.as_slice() {
            [values] if self.is_in_order() => Ok(values.slice(events.start as usize, events.len())),
            _ => {
                let places = events.map(|event| self.place(event)).collect();
                RecordPlaces::new(places).pick(arrays)
            }
        }
    }

    /// The columns by array: all values of a chunk together, as they are compared for duplicates.
    pub(crate) fn by_array(&self) -> Vec<Vec<ArrayRef>> {
        let arrays = self.columns.first().map_or(0, Vec::len);
        (0..arrays).map(|array| self.columns.iter().map(|column| Arc::clone(&column[array])).collect()).collect()
    }

    /// The values of a column, or of all columns, by array.
    pub(crate) fn values_of(&self, column: Option<usize>) -> Vec<Vec<ArrayRef>> {
        match column.and_then(|column| self.columns.get(column)) {
            Some(arrays) => arrays.iter().map(|array| vec![Arc::clone(array)]).collect(),
            None => self.by_array(),
        }
    }

    /// Whether an event has a value in a column.
    pub(crate) fn has(&self, event: u32, column: usize) -> bool {
        let RecordRef { source, record } = self.place(event);
        self.columns[column][source].is_valid(record)
    }
}

/// The values of a column that are moved with the keys, in the order of the events.
fn gather_column(parts: &[PiecePart<'_>], group: usize, column: usize, order: &[u32]) -> Lane {
    let lanes = parts.iter().filter_map(|PiecePart { part, events, .. }| match &part.groups[group].columns {
        Columns::Moved(lanes) => Some((lanes.get(column)?, Places::Range(events.clone()))),
        Columns::Lanes(lanes) => Some((lanes.get(column)?, Places::Each(&part.events[events.clone()]))),
        Columns::Stay => None,
    });
    let lanes: Vec<(&Lane, Places<'_>)> = lanes.collect();
    Lane::gather(&lanes, order)
}
