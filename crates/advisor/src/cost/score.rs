//! The order of layouts by what they cost.

use crate::cost::estimate::{Cost, Unservable};

/// Prices up to so many times the least are alike.
pub(crate) const ALIKE: f64 = 1.01;
/// Nodes that are busy up to so many times the least are alike, beside [`LEAST_BUSY`].
pub(crate) const BUSY_ALIKE: f64 = 1.1;
/// What is busy of nodes is compared beside one node more: less than a tenth of a node tells nothing apart.
pub(crate) const LEAST_BUSY: f64 = 1.0;

/// The place of a layout among others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// From 1, the best.
    pub place: usize,
    /// Whether no other costs less and lets queries see less.
    pub is_pareto: bool,
    /// The part of the changed workloads in which it is the best.
    pub robust: f64,
}

/// What puts a layout before another, in the order in which they are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Criterion {
    /// Whether it is served, breaks no rule, and its keys do not grow with time.
    Class,
    /// The price of a month.
    Month,
    /// The nodes that are busy.
    Busy,
    /// The order of the guides: the entity before the time, and the unit of time that is asked.
    Guides,
    /// Rows that queries see.
    Rows,
    /// Bytes that they see.
    Bytes,
}

/// What tells two layouts apart, the first in order; `None` if nothing does.
pub fn criterion(one: &Cost, other: &Cost) -> Option<Criterion> {
    let criteria = [
        (Criterion::Class, class(one) != class(other)),
        (Criterion::Month, !are_alike(one.month.1, other.month.1, ALIKE)),
        (Criterion::Busy, !are_alike(one.load() + LEAST_BUSY, other.load() + LEAST_BUSY, BUSY_ALIKE)),
        (Criterion::Guides, one.departures != other.departures),
        (Criterion::Rows, one.rows_seen() != other.rows_seen()),
        (Criterion::Bytes, one.bytes_seen != other.bytes_seen),
    ];
    criteria.into_iter().find(|(_, differs)| *differs).map(|(criterion, _)| criterion)
}

fn are_alike(one: f64, other: f64, alike: f64) -> bool {
    one.max(other) <= one.min(other) * alike
}

/// Ranks layouts: those that no number of nodes serves last, before them those that rules refuse, before them those that do not
/// answer a query as they must, before them those whose keys grow with time; then by the dearer of both monthly prices. Prices
/// within 1 % are alike, and whole nodes hide what is busy of them: of these, by the nodes that are busy, and if these are alike,
/// too, by how far they depart from the order of the guides, then by the rows and bytes that queries see, equal ones in their order. `changed` has the costs of all layouts for each changed
/// workload.
pub fn score<'a>(costs: &[Cost], changed: impl IntoIterator<Item = &'a [Cost]>) -> Vec<Score> {
    let winners: Vec<Option<usize>> = changed.into_iter().map(winner).collect();
    let order = ranked(costs);

    let mut scores = Vec::with_capacity(costs.len());
    for (at, cost) in costs.iter().enumerate() {
        let wins = winners.iter().filter(|winner| **winner == Some(at)).count();
        scores.push(Score {
            place: order.iter().position(|ranked| *ranked == at).unwrap_or(at) + 1,
            is_pareto: cost.unservable.is_none() && !costs.iter().any(|other| dominates(other, cost)),
            robust: if winners.is_empty() { 0.0 } else { wins as f64 / winners.len() as f64 },
        });
    }
    scores
}

/// Whether a layout costs less than another and lets queries see no more, or the other way round. One that is not served
/// dominates none that is.
fn dominates(cost: &Cost, other: &Cost) -> bool {
    let is_less = cost.month.1 < other.month.1 || cost.bytes_seen < other.bytes_seen;
    let is_servable = cost.unservable.is_none() || other.unservable.is_some();
    is_servable && is_less && cost.month.1 <= other.month.1 && cost.bytes_seen <= other.bytes_seen
}

/// Index of the best of these costs.
pub fn winner(costs: &[Cost]) -> Option<usize> {
    ranked(costs).first().copied()
}

fn ranked(costs: &[Cost]) -> Vec<usize> {
    let mut order: Vec<(usize, &Cost)> = costs.iter().enumerate().collect();
    order.sort_by_key(|(_, cost)| class(cost));
    for of_class in order.chunk_by_mut(|one, other| class(one.1) == class(other.1)) {
        for alike in sorted_alike(of_class, ALIKE, |(_, cost)| cost.month.1) {
            for alike in sorted_alike(alike, BUSY_ALIKE, |(_, cost)| cost.load() + LEAST_BUSY) {
                alike.sort_by(|(at, one), (other_at, other)| {
                    let rows = one.rows_seen().total_cmp(&other.rows_seen());
                    one.departures
                        .cmp(&other.departures)
                        .then(rows)
                        .then(one.bytes_seen.total_cmp(&other.bytes_seen))
                        .then(at.cmp(other_at))
                });
            }
        }
    }
    order.into_iter().map(|(at, _)| at).collect()
}

/// Sorts by a price, and cuts where what follows costs more than `alike` times the least of its group.
pub(crate) fn sorted_alike<T>(items: &mut [T], alike: f64, price: impl Fn(&T) -> f64) -> Vec<&mut [T]> {
    items.sort_by(|one, other| price(one).total_cmp(&price(other)));

    let mut groups = Vec::new();
    let mut rest = items;
    while let Some(least) = rest.first().map(&price) {
        let count = rest.partition_point(|item| price(item) <= least * alike).max(1);
        let (group, others) = rest.split_at_mut(count);
        groups.push(group);
        rest = others;
    }
    groups
}

/// What comes before price, from best to worst.
fn class(cost: &Cost) -> (u8, bool) {
    let rank = match &cost.unservable {
        Some(Unservable::Row(_) | Unservable::Range(_)) => 3,
        _ if cost.errors > 0 => 2,
        Some(Unservable::Query { .. }) => 1,
        None => 0,
    };
    (rank, cost.is_sequential)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::estimate::QueryLoad;

    fn cost(month: f64, bytes_seen: f64, served: bool) -> Cost {
        Cost {
            write_kib: 0.0,
            read_kib: 0.0,
            scan_mb: 0.0,
            write_load: 0.0,
            read_load: 0.0,
            stored: (0.0, 0.0),
            nodes: (1.0, 1.0),
            month: (month, month),
            busy_month: month,
            unservable: (!served).then_some(Unservable::Row(1.0)),
            errors: 0,
            hot_series: None,
            is_sequential: false,
            departures: 0,
            queries: Vec::new(),
            bytes_seen,
        }
    }

    #[test]
    fn keys_that_grow_with_time_come_after_all_others() {
        let costs = [Cost { is_sequential: true, ..cost(1.0, 1.0, true) }, cost(9.0, 9.0, true), cost(1.0, 1.0, false)];
        assert_eq!(score(&costs, []).iter().map(|score| score.place).collect::<Vec<_>>(), [2, 1, 3]);
    }

    #[test]
    fn layouts_with_errors_come_after_those_without() {
        let costs = [Cost { errors: 2, ..cost(1.0, 1.0, true) }, cost(9.0, 9.0, true), cost(1.0, 1.0, false)];
        assert_eq!(score(&costs, []).iter().map(|score| score.place).collect::<Vec<_>>(), [2, 1, 3]);
    }

    #[test]
    fn a_query_that_is_not_answered_comes_before_a_rule_that_is_broken() {
        let problem = Unservable::Query { query: "day".to_owned(), problem: String::new() };
        let costs =
            [Cost { errors: 1, ..cost(1.0, 1.0, true) }, Cost { unservable: Some(problem), ..cost(9.0, 9.0, true) }];
        assert_eq!(score(&costs, []).iter().map(|score| score.place).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn the_first_criterion_that_differs_decides() {
        let rows = |rows_seen: f64| vec![QueryLoad { rows_seen, ..QueryLoad::default() }];
        let own = Cost { queries: rows(10.0), ..cost(100.0, 5.0, true) };
        for (other, decides) in [
            (Cost { errors: 1, ..own.clone() }, Some(Criterion::Class)),
            (Cost { month: (1.0, 102.0), write_load: 5.0, ..own.clone() }, Some(Criterion::Month)),
            (Cost { month: (1.0, 100.5), write_load: 0.5, departures: 1, ..own.clone() }, Some(Criterion::Busy)),
            (Cost { write_load: 1e-6, departures: 1, queries: rows(11.0), ..own.clone() }, Some(Criterion::Guides)),
            (Cost { write_load: 1e-6, queries: rows(11.0), ..own.clone() }, Some(Criterion::Rows)),
            (Cost { bytes_seen: 6.0, ..own.clone() }, Some(Criterion::Bytes)),
            (own.clone(), None),
        ] {
            assert_eq!(criterion(&own, &other), decides, "{other:?}");
        }
    }

    #[test]
    fn whole_nodes_do_not_hide_what_is_busy() {
        let costs = [(474.6, 0.3), (474.5, 0.6), (480.0, 0.1)];
        let costs = costs.map(|(month, write_load)| Cost { write_load, ..cost(month, 1.0, true) });
        assert_eq!(score(&costs, []).iter().map(|score| score.place).collect::<Vec<_>>(), [1, 2, 3]);
        // Of what keeps as much of them busy, the order of the guides.
        let tenant = |month: f64, departures: u8| Cost { departures, write_load: 0.3, ..cost(month, 1.0, true) };
        let costs = [tenant(474.5, 1), tenant(477.0, 0)];
        assert_eq!(score(&costs, []).iter().map(|score| score.place).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn what_cannot_be_served_is_last_and_money_comes_before_bytes() {
        let costs = [cost(1.0, 1.0, false), cost(5.0, 9.0, true), cost(5.0, 3.0, true), cost(4.0, 7.0, true)];
        let other = vec![cost(9.0, 1.0, true), cost(1.0, 1.0, true), cost(5.0, 3.0, true), cost(4.0, 7.0, true)];
        let scores = score(&costs, [costs.as_slice(), other.as_slice()]);
        let places: Vec<usize> = scores.iter().map(|score| score.place).collect();
        assert_eq!(places, [4, 3, 2, 1]);
        assert_eq!(scores.iter().map(|score| score.is_pareto).collect::<Vec<_>>(), [false, false, true, true]);
        assert_eq!(scores.iter().map(|score| score.robust).collect::<Vec<_>>(), [0.0, 0.5, 0.0, 0.5]);
    }
}
