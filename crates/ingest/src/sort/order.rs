//! Orders the events of a piece by row key, with a counting sort over ranks.

use std::ops::Range;

/// A distinct row key and its events, in order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) rank: u32,
    pub(crate) tail: u64,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Row {
    pub(crate) fn events(&self) -> Range<u32> {
        self.start..self.end
    }
}

/// The tails of events, which order the rows of one prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tails {
    /// All events have this one; 0 if keys have none.
    One(u64),
    Each(Vec<u64>),
}

/// Events in the order of their row keys, and the rows that they make.
#[derive(Debug)]
pub(crate) struct RowOrder {
    /// Event numbers, by (prefix rank, tail, arrival).
    pub(crate) events: Vec<u32>,
    pub(crate) rows: Vec<Row>,
}

impl RowOrder {
    /// Orders events that came in this order, with ranks in `of`.
    pub(crate) fn new(ranks: &[u32], tails: &Tails, of: Range<u32>) -> Self {
        let mut events = if of.len() / 4 > ranks.len() { compared(ranks) } else { counted(ranks, of) };
        let mut rows = Vec::new();
        let mut start = 0;
        while let Some(first) = events.get(start) {
            let rank = ranks[*first as usize];
            let alike = events[start..].iter().take_while(|event| ranks[**event as usize] == rank).count();
            let end = start + alike;
            match tails {
                Tails::One(tail) => rows.push(Row { rank, tail: *tail, start: start as u32, end: end as u32 }),
                Tails::Each(tails) => order_tails(&mut events[start..end], start, rank, tails, &mut rows),
            }
            start = end;
        }
        Self { events, rows }
    }
}

/// Sorts events by rank, with ranks in `of`.
fn counted(ranks: &[u32], of: Range<u32>) -> Vec<u32> {
    let mut next = vec![0u32; of.len() + 1];
    for rank in ranks {
        next[(rank - of.start) as usize + 1] += 1;
    }
    for at in 1..next.len() {
        next[at] += next[at - 1];
    }
    let mut events = vec![0; ranks.len()];
    for (event, rank) in (0u32..).zip(ranks) {
        let place = &mut next[(rank - of.start) as usize];
        events[*place as usize] = event;
        *place += 1;
    }
    events
}

/// The same by comparison: cheaper than clearing the counts for few events and many ranks.
fn compared(ranks: &[u32]) -> Vec<u32> {
    let mut events: Vec<u64> = (0u64..).zip(ranks).map(|(event, rank)| u64::from(*rank) << 32 | event).collect();
    events.sort_unstable();
    events.into_iter().map(|event| event as u32).collect()
}

/// Sorts the events of one prefix by tail (mostly sorted already) and adds its rows; the first event is at `start`.
fn order_tails(events: &mut [u32], start: usize, rank: u32, tails: &[u64], rows: &mut Vec<Row>) {
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

/// Sorts events by rank and tail, and returns the number of rows; for a benchmark.
#[doc(hidden)]
pub fn order_events(ranks: Vec<u32>, tails: Vec<u64>, prefixes: usize) -> usize {
    RowOrder::new(&ranks, &Tails::Each(tails), 0..prefixes as u32).rows.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_row_stay_in_the_order_they_came() {
        let order = RowOrder::new(&[11, 10, 11, 10, 11], &Tails::Each(vec![7, 7, 3, 7, 7]), 10..12);
        assert_eq!(order.events, [1, 3, 2, 0, 4]);
        let rows: Vec<_> = order.rows.iter().map(|row| (row.rank, row.tail, row.events())).collect();
        assert_eq!(rows, [(10, 7, 0..2), (11, 3, 2..3), (11, 7, 3..5)]);
        let order = RowOrder::new(&[11, 10, 11, 10, 11], &Tails::One(7), 10..12);
        assert_eq!(order.events, [1, 3, 0, 2, 4]);
        assert_eq!(order.rows.iter().map(Row::events).collect::<Vec<_>>(), [0..2, 2..5]);
    }

    #[test]
    fn every_way_orders_alike() {
        let mixed = |at: u32| at.wrapping_mul(2_654_435_761) >> 7;
        for (events, prefixes) in [(0, 1), (4, 100), (9999, 17), (65_536, 1), (70_000, 70_000)] {
            let ranks: Vec<u32> = (0..events).map(|at| mixed(at) % prefixes).collect();
            assert_eq!(counted(&ranks, 0..prefixes), compared(&ranks));
        }
    }
}
