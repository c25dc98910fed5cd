//! The events of a piece of a window, put together in the order of its rows.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use tidetable_store::Result;

use crate::sort::lane::{Lane, Places, gather};
use crate::sort::order::{Row, RowOrder, Tails};
use crate::sort::partition::{Columns, Part, Partition};
use crate::sort::take::pick;

/// The events of a piece by row; those of a row in order of arrival.
#[derive(Debug)]
pub(crate) struct PieceEvents {
    pub(crate) rows: Vec<Row>,
    /// The groups of the layout.
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
    /// The runs of events by arrival: the number of the first; the chunk, and the number of its first event in the window.
    runs: Vec<(u32, usize, u32)>,
    /// By arrival the number of each event in its chunk.
    events: Vec<u32>,
}

impl Origins {
    /// The chunk of an event, and its number there.
    fn of(&self, event: u32) -> (usize, usize) {
        let arrived = self.order[event as usize];
        (self.run(arrived).1, self.events[arrived as usize] as usize)
    }

    /// The number of an event in the window.
    fn number(&self, event: u32) -> u32 {
        let arrived = self.order[event as usize];
        self.run(arrived).2 + self.events[arrived as usize]
    }

    fn run(&self, arrived: u32) -> (u32, usize, u32) {
        let after = self.runs.partition_point(|(first, ..)| *first <= arrived);
        after.checked_sub(1).and_then(|run| self.runs.get(run)).copied().unwrap_or_default()
    }
}

impl PieceEvents {
    /// Puts piece `piece` together.
    ///
    /// # Errors
    /// Only if a column is not of the schema.
    pub(crate) fn collect(partition: &Partition<'_>, piece: usize) -> Result<Self> {
        let parts = partition.parts.iter().enumerate().map(|(chunk, part)| (chunk, part, part.piece(piece)));
        let parts: Vec<(usize, &Part<'_>, Range<usize>)> = parts.filter(|(.., events)| !events.is_empty()).collect();
        let total = partition.events(piece);
        let ranks = concat(total, parts.iter().map(|(_, part, range)| &part.ranks[range.clone()]));
        let RowOrder { events: order, rows } = RowOrder::new(&ranks, &tails(&parts, total), partition.ranks(piece));
        let units = parts.iter().map(|(_, part, range)| Some(&part.units.as_ref()?[range.clone()]));
        let units = units.collect::<Option<Vec<_>>>().map(|units| gather(units.into_iter(), &order));
        let mut first = 0;
        let runs = parts.iter().map(|(chunk, part, range)| {
            let run = (first, *chunk, part.base);
            first += range.len() as u32;
            run
        });
        let runs = runs.collect();
        let events = concat(total, parts.iter().map(|(_, part, range)| &part.events[range.clone()]));
        let origins = Arc::new(Origins { order, runs, events });
        let group = |group: usize| GroupEvents::collect(partition, &parts, &origins, group);
        let groups = (0..partition.schema.groups.len()).map(group).collect::<Result<_>>()?;
        let units = units.filter(|units| !units.is_empty());
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
fn tails(parts: &[(usize, &Part<'_>, Range<usize>)], total: usize) -> Tails {
    let one = match parts.first() {
        Some((_, part, _)) => match part.tails {
            Tails::One(tail) => Some(tail),
            Tails::Each(_) => None,
        },
        None => Some(0),
    };
    if let Some(tail) = one.filter(|tail| parts.iter().all(|(_, part, _)| part.tails == Tails::One(*tail))) {
        return Tails::One(tail);
    }
    let mut all = Vec::with_capacity(total);
    for (_, part, range) in parts {
        match &part.tails {
            Tails::One(tail) => all.resize(all.len() + range.len(), *tail),
            Tails::Each(tails) => all.extend_from_slice(&tails[range.clone()]),
        }
    }
    Tails::Each(all)
}

impl GroupEvents {
    fn collect(
        partition: &Partition<'_>,
        parts: &[(usize, &Part<'_>, Range<usize>)],
        origins: &Arc<Origins>,
        group: usize,
    ) -> Result<Self> {
        let own = || parts.iter().map(|(_, part, range)| (part.events.as_slice(), &part.groups[group], range.clone()));
        let qualifiers = own().map(|(_, part, range)| Some(&part.qualifiers.as_ref()?[range]));
        let qualifiers = qualifiers.collect::<Option<Vec<_>>>().map(|parts| gather(parts.into_iter(), &origins.order));
        let timestamps = own().map(|(_, part, range)| Some(&part.timestamps.as_ref()?[range]));
        let timestamps = timestamps.collect::<Option<Vec<_>>>().map(|parts| gather(parts.into_iter(), &origins.order));
        let columns = partition.schema.groups[group].columns.iter().enumerate();
        if parts.is_empty() || own().any(|(_, part, _)| matches!(part.columns, Columns::Stay)) {
            let of = |at: usize| partition.parts.iter().map(move |part| &part.chunk.encoded.groups[group].columns[at]);
            let columns = columns.map(|(at, _)| of(at).map(Arc::clone).collect()).collect();
            return Ok(Self { qualifiers, timestamps, columns, origins: Some(Arc::clone(origins)) });
        }
        let columns = columns.map(|(at, column)| {
            let lanes = own().filter_map(|(events, part, range)| match &part.columns {
                Columns::Moved(lanes) => Some((lanes.get(at)?, Places::Range(range))),
                Columns::Lanes(lanes) => Some((lanes.get(at)?, Places::Each(&events[range]))),
                Columns::Stay => None,
            });
            let lanes: Vec<(&Lane, Places<'_>)> = lanes.collect();
            Ok(vec![Lane::gather(&lanes, &origins.order).into_array(&column.value.arrow())?])
        });
        Ok(Self { qualifiers, timestamps, columns: columns.collect::<Result<_>>()?, origins: None })
    }

    /// Whether the values are in the order of the events.
    pub(crate) fn is_in_order(&self) -> bool {
        self.origins.is_none()
    }

    /// The array with the values of an event in each column, and its place there.
    pub(crate) fn place(&self, event: u32) -> (usize, usize) {
        self.origins.as_ref().map_or((0, event as usize), |origins| origins.of(event))
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
                let places: Vec<(usize, usize)> = events.map(|event| self.place(event)).collect();
                pick(arrays, &places)
            }
        }
    }

    /// The columns by array.
    pub(crate) fn by_array(&self) -> Vec<Vec<ArrayRef>> {
        let arrays = self.columns.first().map_or(0, Vec::len);
        (0..arrays).map(|array| self.columns.iter().map(|column| Arc::clone(&column[array])).collect()).collect()
    }

    /// The values of a column, by array; those of all columns if there is no such column.
    pub(crate) fn values_of(&self, column: usize) -> Vec<Vec<ArrayRef>> {
        match self.columns.get(column) {
            Some(arrays) => arrays.iter().map(|array| vec![Arc::clone(array)]).collect(),
            None => self.by_array(),
        }
    }

    /// Whether an event has a value in a column.
    pub(crate) fn has(&self, event: u32, column: usize) -> bool {
        let (array, at) = self.place(event);
        self.columns[column][array].is_valid(at)
    }
}
