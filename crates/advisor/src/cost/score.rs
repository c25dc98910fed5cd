//! The order of layouts by what they cost.

use crate::cost::estimate::Cost;

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

/// Ranks layouts: those that cannot be served last, before them those with errors, before them those whose keys grow with time,
/// then by the dearer of both monthly prices, then by the bytes that queries see; equal ones in their order. `changed` has the costs
/// of all layouts for each changed workload.
pub fn score<'a>(costs: &[Cost], changed: impl IntoIterator<Item = &'a [Cost]>) -> Vec<Score> {
    let winners: Vec<Option<usize>> = changed.into_iter().map(winner).collect();
    let order = ranked(costs);
    let dominated = |at: usize| {
        let Some(own) = costs.get(at) else { return false };
        costs.iter().any(|other| {
            let cheaper = other.month.1 < own.month.1 || other.bytes_seen < own.bytes_seen;
            let servable = other.unservable.is_none() || own.unservable.is_some();
            servable && cheaper && other.month.1 <= own.month.1 && other.bytes_seen <= own.bytes_seen
        })
    };
    let wins = |at: usize| winners.iter().filter(|winner| **winner == Some(at)).count();
    (0..costs.len())
        .map(|at| Score {
            place: order.iter().position(|own| *own == at).unwrap_or(at) + 1,
            is_pareto: !dominated(at),
            robust: if winners.is_empty() { 0.0 } else { wins(at) as f64 / winners.len() as f64 },
        })
        .collect()
}

/// Index of the best of these costs.
pub fn winner(costs: &[Cost]) -> Option<usize> {
    ranked(costs).first().copied()
}

fn ranked(costs: &[Cost]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..costs.len()).collect();
    let key = |at: &usize| {
        costs.get(*at).map(|cost| {
            let Cost { unservable, errors, is_sequential, .. } = cost;
            (unservable.is_some(), *errors > 0, *is_sequential, cost.month.1, cost.bytes_seen)
        })
    };
    order.sort_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::estimate::Unservable;

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
            unservable: (!served).then_some(Unservable::Row(1.0)),
            errors: 0,
            hot_series: None,
            is_sequential: false,
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
    fn what_cannot_be_served_is_last_and_money_comes_before_bytes() {
        let costs = [cost(1.0, 1.0, false), cost(5.0, 9.0, true), cost(5.0, 3.0, true), cost(4.0, 7.0, true)];
        let other = vec![cost(9.0, 1.0, true), cost(1.0, 1.0, true), cost(5.0, 3.0, true), cost(4.0, 7.0, true)];
        let scores = score(&costs, [costs.as_slice(), other.as_slice()]);
        let places: Vec<usize> = scores.iter().map(|score| score.place).collect();
        assert_eq!(places, [4, 3, 2, 1]);
        assert_eq!(scores.iter().map(|score| score.is_pareto).collect::<Vec<_>>(), [true, false, true, true]);
        assert_eq!(scores.iter().map(|score| score.robust).collect::<Vec<_>>(), [0.0, 0.5, 0.0, 0.5]);
    }
}
