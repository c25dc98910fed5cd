//! Nodes and dollars a month, from loads and prices.

use serde::{Deserialize, Serialize};

/// Hours of a month, as price lists count them.
const HOURS: f64 = 730.0;
const GIB: f64 = (1u64 << 30) as f64;
const TB: f64 = 1e12;

/// Prices, capacities and the load of every layout: all that its dollars are computed from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// What is paid for nodes and bytes.
    pub prices: Prices,
    /// What a node does.
    pub capacity: Capacity,
    /// The load of each layout.
    pub loads: Vec<Load>,
}

/// List prices of one region on one day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// The region they hold in.
    pub region: String,
    /// When they were read, such as `2026-09-30`.
    pub date: String,
    /// Where they come from.
    pub source: String,
    /// US dollars of a node and hour.
    pub node_hour: f64,
    /// US dollars of a GiB and month.
    pub gib_month: f64,
    /// Number of clusters, each with all nodes and all bytes.
    pub clusters: u32,
}

/// What a node of a cluster does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// Its name, such as `Enterprise, SSD`.
    pub name: String,
    /// Writes of 1 KiB a second.
    pub writes: f64,
    /// Reads of 1 KiB a second.
    pub reads: f64,
    /// Megabytes scanned a second.
    pub scan_mb: f64,
    /// Terabytes (10^12 bytes) a node should hold.
    pub stored_tb: f64,
    /// Part of its CPU that should be used, 0 to 1.
    pub target: f64,
}

/// What a layout asks of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Name of the layout.
    pub layout: String,
    /// KiB written a second, in writes of 1 KiB.
    pub write_kib: f64,
    /// KiB read a second, in rows of 1 KiB.
    pub read_kib: f64,
    /// Megabytes a second read by scans.
    pub scan_mb: f64,
    /// Least and most bytes stored, compressed.
    pub stored: (f64, f64),
    /// Why no number of nodes serves it: a range or a row that passes the target of a node.
    pub unservable: Option<String>,
}

/// What a layout costs a month.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Monthly {
    /// Nodes of a cluster kept busy, before the target; a fraction.
    pub load: f64,
    /// Nodes of a cluster for the least and the most bytes.
    pub nodes: (f64, f64),
    /// US dollars for the least and the most bytes.
    pub dollars: (f64, f64),
}

impl Cost {
    /// What a load costs: `load = write_kib/writes + read_kib/reads + scan_mb/scan_mb`,
    /// `nodes = max(1, load/target, stored/stored_tb)` rounded up, and
    /// `dollars = clusters * (nodes * 730 * node_hour + GiB * gib_month)`.
    pub fn monthly(&self, load: &Load) -> Monthly {
        let node = &self.capacity;
        let busy = load.write_kib / node.writes + load.read_kib / node.reads + load.scan_mb / node.scan_mb;
        let [(least_nodes, least), (most_nodes, most)] = [load.stored.0, load.stored.1].map(|stored| {
            let nodes = (busy / node.target).max(stored / (node.stored_tb * TB)).max(1.0).ceil();
            let storage = stored / GIB * self.prices.gib_month;
            (nodes, f64::from(self.prices.clusters) * (nodes * HOURS * self.prices.node_hour + storage))
        });
        Monthly { load: busy, nodes: (least_nodes, most_nodes), dollars: (least, most) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_follow_load_and_bytes() {
        let cost = Cost {
            prices: Prices {
                region: "us-central1".to_owned(),
                date: "2026-09-30".to_owned(),
                source: String::new(),
                node_hour: 0.65,
                gib_month: 0.17,
                clusters: 2,
            },
            capacity: Capacity {
                name: "SSD".to_owned(),
                writes: 14_000.0,
                reads: 17_000.0,
                scan_mb: 220.0,
                stored_tb: 2.5,
                target: 0.6,
            },
            loads: Vec::new(),
        };
        let load = Load { write_kib: 14_000.0, read_kib: 1_700.0, stored: (GIB, 6e12), ..Load::default() };
        let found = cost.monthly(&load);
        assert_eq!((found.load, found.nodes), (1.1, (2.0, 3.0)));
        assert!((found.dollars.0 - 2.0 * (2.0 * 474.5 + 0.17)).abs() < 1e-9);
        let idle = cost.monthly(&Load::default());
        assert_eq!((idle.nodes, idle.dollars), ((1.0, 1.0), (949.0, 949.0)), "a cluster has a node");
    }
}
