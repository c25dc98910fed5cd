//! The order of a window's events: by row key, placed by counting instead of comparing.

use std::ops::Range;

use super::chunk::WindowEvents;

/// Events of a window in row-key order; those of one row stay in the order they came.
#[derive(Debug)]
pub(super) struct RowOrder {
    /// Event numbers, by (prefix rank, tail).
    pub(super) events: Vec<u32>,
    /// The rows: a prefix rank, a tail, and where their events lie in `events`.
    pub(super) rows: Vec<Row>,
}

/// A distinct row key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) rank: u32,
    pub(super) tail: u64,
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Row {
    pub(super) fn events(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl RowOrder {
    /// Orders the events of a window; ranks are below `prefixes`.
    pub(super) fn new(window: &WindowEvents, prefixes: usize) -> Self {
        let mut events = place_by_rank(&window.ranks, prefixes);
        let mut rows = Vec::new();
        let mut start = 0;
        while start < events.len() {
            let rank = window.ranks[events[start] as usize];
            let end = start + events[start..].iter().take_while(|event| window.ranks[**event as usize] == rank).count();
            order_partition(&mut events, start..end, rank, &window.tails, &mut rows);
            start = end;
        }
        Self { events, rows }
    }

    /// Cuts the rows into runs of at least `events` events, the last maybe fewer.
    pub(super) fn pieces(&self, events: usize) -> Vec<Range<usize>> {
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
}

/// Orders events by rank and tail, for a bench: how many rows that makes.
#[doc(hidden)]
pub fn order_events(ranks: Vec<u32>, tails: Vec<u64>, prefixes: usize) -> usize {
    let window = WindowEvents { ranks, tails, groups: Vec::new(), units: None };
    RowOrder::new(&window, prefixes).rows.len()
}

/// A stable counting sort of event numbers by rank. Few events under many ranks are compared
/// instead: clearing the counts would cost more.
fn place_by_rank(ranks: &[u32], prefixes: usize) -> Vec<u32> {
    if prefixes / 4 > ranks.len() {
        let mut events: Vec<u32> = (0..ranks.len() as u32).collect();
        events.sort_by_key(|event| ranks[*event as usize]);
        return events;
    }
    let mut next = vec![0u32; prefixes + 1];
    for rank in ranks {
        next[*rank as usize + 1] += 1;
    }
    for at in 1..next.len() {
        next[at] += next[at - 1];
    }
    let mut events = vec![0u32; ranks.len()];
    for (event, rank) in ranks.iter().enumerate() {
        let place = &mut next[*rank as usize];
        events[*place as usize] = event as u32;
        *place += 1;
    }
    events
}

/// Orders the events of one prefix by tail (they mostly come so) and notes its rows.
fn order_partition(events: &mut [u32], part: Range<usize>, rank: u32, tails: &[u64], rows: &mut Vec<Row>) {
    let row = |tail, at: usize| Row { rank, tail, start: at as u32, end: at as u32 + 1 };
    if tails.is_empty() {
        rows.push(Row { rank, tail: 0, start: part.start as u32, end: part.end as u32 });
        return;
    }
    let partition = &mut events[part.clone()];
    if !partition.is_sorted_by_key(|event| tails[*event as usize]) {
        partition.sort_by_key(|event| tails[*event as usize]);
    }
    let first = rows.len();
    for (at, event) in partition.iter().enumerate() {
        let tail = tails[*event as usize];
        match rows[first..].last_mut() {
            Some(last) if last.tail == tail => last.end += 1,
            _ => rows.push(row(tail, part.start + at)),
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
    fn few_events_under_many_ranks_are_ordered_alike() {
        let ranks = [90, 3, 90, 41];
        assert_eq!(place_by_rank(&ranks, 100), place_by_rank(&ranks, 91));
        assert_eq!(place_by_rank(&ranks, 100), [1, 3, 0, 2]);
    }

    #[test]
    fn pieces_end_at_rows() {
        let order = RowOrder::new(&window(&[0, 0, 1, 2, 2, 2, 3], &[]), 4);
        assert_eq!(order.pieces(3), [0..2, 2..3, 3..4]);
        assert_eq!(order.pieces(1), [0..1, 1..2, 2..3, 3..4]);
    }
}
