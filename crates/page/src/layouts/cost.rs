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

impl Input {
    fn of(name: &'static str, label: &'static str, value: f64, least: &'static str) -> Self {
        Self { name, label, value: value.to_string(), least }
    }
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
        Self {
            region: &prices.region,
            date: &prices.date,
            source: &prices.source,
            node: format!("A node is {}, kept at {} % of its CPU", node.name, decimals(node.target * 100.0, 0)),
            inputs: vec![
                Input::of("node_hour", "a node, $ an hour", prices.node_hour, "0"),
                Input::of("gib_month", "a GiB, $ a month", prices.gib_month, "0"),
                Input::of("clusters", "clusters", f64::from(prices.clusters), "1"),
                Input::of("target", "target, part of CPU", node.target, "0.01"),
                Input::of("writes", "writes a node and second", node.writes, "1"),
                Input::of("reads", "reads a node and second", node.reads, "1"),
                Input::of("scan_mb", "MB scanned a node and second", node.scan_mb, "1"),
                Input::of("stored_tb", "TB stored a node", node.stored_tb, "0.01"),
            ],
            rows: cost.loads.iter().map(|load| row(cost, load)).collect(),
        }
    }
}

fn row(cost: &Cost, load: &Load) -> CostRow {
    let monthly = cost.monthly(load);
    CostRow {
        layout: load.layout.clone(),
        unservable: load.unservable.clone().unwrap_or_default(),
        load: decimals(monthly.load, 3),
        nodes: range(decimals(monthly.nodes.0, 0), decimals(monthly.nodes.1, 0)),
        stored: range(bytes(load.stored.0.round() as u64), bytes(load.stored.1.round() as u64)),
        dollars: range(dollars(monthly.dollars.0), dollars(monthly.dollars.1)),
    }
}
