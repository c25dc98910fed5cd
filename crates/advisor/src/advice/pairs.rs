//! Two tables instead of one: each query goes to the one in which it sees fewer bytes.

use tidetable_job::workload::Workload;

use crate::comparison::{Comparison, Economy};
use crate::cost::{Cost, Prices, QueryLoad, Unservable};

/// Two tables that hold the same rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Indexes of the layouts, ascending.
    pub layouts: (usize, usize),
    /// For each query, the index of the layout that answers it.
    pub answers: Vec<usize>,
    /// Nodes of a cluster, packed by Snappy.
    pub nodes: f64,
    /// A month of all clusters, packed by Snappy.
    pub month: f64,
    /// Bytes that queries see a second.
    pub bytes_seen: f64,
    /// Bytes stored, as a multiple of those of the smaller table.
    pub duplication: f64,
}

/// The pairs of tables that cost less than the best single one can, cheapest first. Both tables take every write, and each
/// query reads the table in which it sees fewer bytes.
pub fn pairs(comparison: &Comparison, economy: &Economy, workload: &Workload, prices: &Prices) -> Vec<Pair> {
    let servable = |at: &usize| {
        let asked_everywhere =
            economy.answers.get(*at).is_some_and(|answers| answers.iter().all(|it| it.asked.is_some()));
        asked_everywhere && economy.costs.get(*at).is_some()
    };
    let single = economy
        .costs
        .iter()
        .filter(|cost| cost.unservable.is_none() && cost.errors == 0 && !cost.is_sequential)
        .map(|cost| cost.month.1);
    let single = single.fold(f64::INFINITY, f64::min);
    let layouts: Vec<usize> = (0..comparison.layouts.len()).filter(servable).collect();
    let mut found = Vec::new();
    for (at, first) in layouts.iter().enumerate() {
        for second in layouts.iter().skip(at + 1) {
            found.extend(pair(*first, *second, economy, workload, prices));
        }
    }
    found.retain(|pair| pair.month < single);
    found.sort_by(|a, b| a.month.total_cmp(&b.month).then(a.bytes_seen.total_cmp(&b.bytes_seen)));
    found
}

fn pair(first: usize, second: usize, economy: &Economy, workload: &Workload, prices: &Prices) -> Option<Pair> {
    let costs = (economy.costs.get(first)?, economy.costs.get(second)?);
    let is_hot = |cost: &Cost| {
        cost.is_sequential
            || cost.errors > 0
            || matches!(cost.unservable, Some(Unservable::Row(_) | Unservable::Range(_)))
    };
    if is_hot(costs.0) || is_hot(costs.1) {
        return None;
    }
    let better = |one: &QueryLoad, other: &QueryLoad| one.bytes_seen <= other.bytes_seen;
    let both = || costs.0.queries.iter().zip(&costs.1.queries);
    let answers = both().map(|(one, other)| if better(one, other) { first } else { second }).collect();
    let chosen = || both().map(|(one, other)| if better(one, other) { one } else { other });
    let sum = |of: fn(&QueryLoad) -> f64| chosen().map(of).sum::<f64>();
    let node = &prices.node;
    let read_load = sum(|it| it.read_kib) / node.reads_per_second + sum(|it| it.scan_mb) / node.scan_mb_per_second;
    let stored = costs.0.stored.1 + costs.1.stored.1;
    let load = costs.0.write_load + costs.1.write_load + read_load;
    let nodes = prices.nodes(workload.goal, load, stored);
    let least = costs.0.stored.1.min(costs.1.stored.1).max(f64::MIN_POSITIVE);
    Some(Pair {
        layouts: (first, second),
        answers,
        nodes,
        month: f64::from(workload.clusters) * prices.month(nodes, stored),
        bytes_seen: sum(|it| it.bytes_seen),
        duplication: stored / least,
    })
}
