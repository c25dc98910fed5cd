//! Sorts the events of a window by row key, with a counting sort over ranks.

use std::ops::Range;

use rayon::prelude::*;

use crate::load::sort::chunk::WindowEvents;

/// Up to this many events are sorted on one core.
const SERIAL: usize = 65_536;

/// Events of a window in row-key order; events of one row stay in order of arrival.
#[derive(Debug)]
pub(crate) struct RowOrder {
    /// Event numbers, by (prefix rank, tail).
    pub(crate) events: Vec<u32>,
    /// The rows, each with its range in `events`.
    pub(crate) rows: Vec<Row>,
}

/// A distinct row key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) rank: u32,
    pub(crate) tail: u64,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Row {
    pub(crate) fn events(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl RowOrder {
    /// Sorts the events of a window; ranks are below `prefixes`.
    pub(crate) fn new(window: &WindowEvents, prefixes: usize) -> Self {
        let ranks = window.ranks.as_slice();
        if prefixes / 4 > ranks.len() {
            return Self::compared(window);
        }
        let starts = starts(ranks, prefixes);
        // Each core sorts the events of a range of ranks; every core reads all ranks.
        let cores = if ranks.len() < SERIAL { 1 } else { rayon::current_num_threads() };
        let cuts =
            (0..=cores).map(|core| starts.partition_point(|start| (*start as usize) < ranks.len() * core / cores));
        let cuts: Vec<usize> = cuts.collect();
        let mut events = vec![0; ranks.len()];
        let mut rest = events.as_mut_slice();
        let mut parts = Vec::with_capacity(cores);
        for cut in cuts.windows(2) {
            let (from, to) = (cut[0].min(prefixes), cut[1].min(prefixes));
            let (part, after) = rest.split_at_mut((starts[to] - starts[from]) as usize);
            rest = after;
            parts.push((from..to, part));
        }
        let rows: Vec<Vec<Row>> =
            parts.into_par_iter().map(|(of, events)| order_ranks(window, &starts, of, events)).collect();
        Self { events, rows: rows.concat() }
    }

    /// As [`Self::new`], by comparison: cheaper than clearing the counts for few events and many ranks.
    fn compared(window: &WindowEvents) -> Self {
        let mut events: Vec<u32> = (0..window.ranks.len() as u32).collect();
        events.sort_by_key(|event| window.ranks[*event as usize]);
        let mut rows = Vec::new();
        let mut start = 0;
        while let Some(first) = events.get(start) {
            let rank = window.ranks[*first as usize];
            let end = start + events[start..].iter().take_while(|event| window.ranks[**event as usize] == rank).count();
            order_partition(&mut events[start..end], start, rank, &window.tails, &mut rows);
            start = end;
        }
        Self { events, rows }
    }

    /// Splits the rows into runs of at least `events` events, except the last.
    pub(crate) fn pieces(&self, events: usize) -> Vec<Range<usize>> {
        let mut pieces = Vec::new();
        let mut first = 0;
        for (at, row) in self.rows.iter().enumerate() {
            let begun = self.rows[first].start as usize;
            if row.end as usize - begun >= events {
                pieces.push(first..at + 1);
                first = at + 1;
            }
        }
        if first < self.rows.len() {
            pieces.push(first..self.rows.len());
        }
        pieces
    }

    /// Number of events of some pieces.
    pub(crate) fn events(&self, pieces: &[Range<usize>]) -> u64 {
        let rows = pieces.iter().filter_map(|piece| self.rows.get(piece.clone())).flatten();
        rows.map(|row| u64::from(row.end - row.start)).sum()
    }
}

/// Sorts events by rank and tail, and returns the number of rows; for a benchmark.
#[doc(hidden)]
pub fn order_events(ranks: Vec<u32>, tails: Vec<u64>, prefixes: usize) -> usize {
    let window = WindowEvents { ranks, tails, groups: Vec::new(), units: None };
    RowOrder::new(&window, prefixes).rows.len()
}

/// Start of the events of each rank, and the end of the last.
fn starts(ranks: &[u32], prefixes: usize) -> Vec<u32> {
    let mut starts = vec![0u32; prefixes + 1];
    for rank in ranks {
        starts[*rank as usize + 1] += 1;
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    starts
}

/// Writes the events of the ranks `of` to `events`, sorted by rank and tail, and returns their rows.
fn order_ranks(window: &WindowEvents, starts: &[u32], of: Range<usize>, events: &mut [u32]) -> Vec<Row> {
    let starts = &starts[of.start..=of.end];
    let base = starts[0];
    let mut next = starts.to_vec();
    for (event, rank) in window.ranks.iter().enumerate() {
        // A rank below the range wraps to a number beyond it.
        if let Some(place) = next[..of.len()].get_mut((*rank as usize).wrapping_sub(of.start)) {
            events[(*place - base) as usize] = event as u32;
            *place += 1;
        }
    }
    let mut rows = Vec::new();
    for (rank, bounds) in of.zip(starts.windows(2)).filter(|(_, bounds)| bounds[0] < bounds[1]) {
        let part = &mut events[(bounds[0] - base) as usize..(bounds[1] - base) as usize];
        order_partition(part, bounds[0] as usize, rank as u32, &window.tails, &mut rows);
    }
    rows
}

/// Sorts the events of one prefix by tail (mostly sorted already) and adds its rows; the first event is at `start`.
fn order_partition(events: &mut [u32], start: usize, rank: u32, tails: &[u64], rows: &mut Vec<Row>) {
    if tails.is_empty() {
        rows.push(Row { rank, tail: 0, start: start as u32, end: (start + events.len()) as u32 });
        return;
    }
    if !events.is_sorted_by_key(|event| tails[*event as usize]) {
        events.sort_by_key(|event| tails[*event as usize]);
    }
    let first = rows.len();
    for (at, event) in (start..).zip(events.iter()) {
        let tail = tails[*event as usize];
        match rows[first..].last_mut() {
            Some(last) if last.tail == tail => last.end += 1,
            _ => rows.push(Row { rank, tail, start: at as u32, end: at as u32 + 1 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(ranks: &[u32], tails: &[u64]) -> WindowEvents {
        WindowEvents { ranks: ranks.to_vec(), tails: tails.to_vec(), groups: Vec::new(), units: None }
    }

    #[test]
    fn events_of_a_row_stay_in_the_order_they_came() {
        let order = RowOrder::new(&window(&[1, 0, 1, 0, 1], &[7, 7, 3, 7, 7]), 2);
        assert_eq!(order.events, [1, 3, 2, 0, 4]);
        let rows: Vec<_> = order.rows.iter().map(|row| (row.rank, row.tail, row.events())).collect();
        assert_eq!(rows, [(0, 7, 0..2), (1, 3, 2..3), (1, 7, 3..5)]);
    }

    #[test]
    fn every_way_orders_alike() {
        let mixed = |at: u32| at.wrapping_mul(2_654_435_761) >> 7;
        for (events, prefixes) in [(0, 1), (4, 100), (SERIAL as u32 + 999, 17), (SERIAL as u32, 1), (70_000, 70_000)] {
            let ranks: Vec<u32> = (0..events).map(|at| mixed(at) % prefixes).collect();
            let tails: Vec<u64> = (0..events).map(|at| u64::from(mixed(at + 7) % 5)).collect();
            let window = window(&ranks, &tails);
            let (counted, compared) = (RowOrder::new(&window, prefixes as usize), RowOrder::compared(&window));
            assert_eq!((counted.events, counted.rows), (compared.events, compared.rows));
        }
    }

    #[test]
    fn pieces_end_at_rows() {
        let order = RowOrder::new(&window(&[0, 0, 1, 2, 2, 2, 3], &[]), 4);
        assert_eq!(order.pieces(3), [0..2, 2..3, 3..4]);
        assert_eq!(order.pieces(1), [0..1, 1..2, 2..3, 3..4]);
    }
}
