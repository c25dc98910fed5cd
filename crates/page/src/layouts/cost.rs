//! Nodes and dollars, with the prices that can be changed in the page.

use crate::figures::{bytes, decimals, dollars, range};
use crate::view::{Cost, Load};

/// The costs as text.
pub(super) struct CostTable<'a> {
    pub(super) region: &'a str,
    pub(super) date: &'a str,
    pub(super) source: &'a str,
    /// What a node is, and how busy it may be.
    pub(super) node: String,
    pub(super) inputs: Vec<Input>,
    pub(super) rows: Vec<CostRow>,
}

/// A number that can be changed: `name` is its key in [`Prices`](crate::view::Prices) or
/// [`Capacity`](crate::view::Capacity).
pub(super) struct Input {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) value: String,
    /// The least that is taken: what is divided by cannot be 0.
    pub(super) least: &'static str,
}

/// The cost of a layout.
pub(super) struct CostRow {
    pub(super) layout: String,
    pub(super) unservable: String,
    pub(super) load: String,
    pub(super) nodes: String,
    pub(super) stored: String,
    pub(super) dollars: String,
}

impl<'a> CostTable<'a> {
    /// The table of costs.
    pub(super) fn of(cost: &'a Cost) -> Self {
        let (prices, node) = (&cost.prices, &cost.capacity);
        let input = |name, label, value: f64, least| Input { name, label, value: value.to_string(), least };
        Self {
            region: &prices.region,
            date: &prices.date,
            source: &prices.source,
            node: format!("A node is {}, kept at {} % of its CPU", node.name, decimals(node.target * 100.0, 0)),
            inputs: vec![
                input("node_hour", "a node, $ an hour", prices.node_hour, "0"),
                input("gib_month", "a GiB, $ a month", prices.gib_month, "0"),
                input("clusters", "clusters", f64::from(prices.clusters), "1"),
                input("target", "target, part of CPU", node.target, "0.01"),
                input("writes", "writes a node and second", node.writes, "1"),
                input("reads", "reads a node and second", node.reads, "1"),
                input("scan_mb", "MB scanned a node and second", node.scan_mb, "1"),
                input("stored_tb", "TB stored a node", node.stored_tb, "0.01"),
            ],
            rows: cost.loads.iter().map(|load| row(cost, load)).collect(),
        }
    }
}

fn row(cost: &Cost, load: &Load) -> CostRow {
    let monthly = cost.monthly(load);
    let pair = |text: fn(f64) -> String, (least, most): (f64, f64)| range(text(least), text(most));
    CostRow {
        layout: load.layout.clone(),
        unservable: load.unservable.clone().unwrap_or_default(),
        load: decimals(monthly.load, 3),
        nodes: pair(|nodes| decimals(nodes, 0), monthly.nodes),
        stored: pair(|stored| bytes(stored.round() as u64), load.stored),
        dollars: pair(dollars, monthly.dollars),
    }
}
