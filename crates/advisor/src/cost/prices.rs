//! Prices of nodes and storage, and what a node does.

use std::path::Path;

use serde::Deserialize;
use tidetable_job::workload::Goal;

use crate::cost::limits::Limits;
use crate::error::{AdvisorError, Result};

/// Bytes of a GiB.
pub const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
const TERABYTE: f64 = 1e12;
/// Hours of a month, as prices count them.
const HOURS: f64 = 730.0;
/// The file of this release.
const OWN: &str = include_str!("prices.toml");

/// A dated list of prices and capacities: `prices.toml` of this release, or a file that a user names with `--prices`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// When they were the list prices.
    pub date: String,
    /// The region of the cloud that has these prices, such as `europe-west1`.
    pub region: String,
    /// The currency of all prices, as results print it.
    pub currency: String,
    /// Where they come from.
    pub source: String,
    /// The price of a node and what it does.
    pub node: Node,
    /// The price of what is stored.
    pub storage: Storage,
    /// The part of the CPU of nodes to use.
    pub target: Target,
    /// Quotas and limits; those of this release if the file has none.
    pub limits: Limits,
}

/// A node: its price, and what it does of one kind alone.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Price of an hour.
    pub hour: f64,
    /// Rows of 1 KiB that it writes a second if it does nothing else.
    pub writes_per_second: f64,
    /// Rows of 1 KiB that it reads a second if it does nothing else.
    pub reads_per_second: f64,
    /// Megabytes that it scans a second if it does nothing else.
    pub scan_mb_per_second: f64,
    /// Terabytes that it stores at most.
    pub storage_tb: f64,
}

/// What storage costs; bytes count as compressed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// Price of a GiB for a month.
    pub gib_month: f64,
}

/// The part of the CPU of nodes to use, 0 to 1.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Where short waits are the goal: Bigtable's guides advise 0.6.
    pub latency: f64,
    /// Where throughput is the goal: Bigtable's guides advise 0.9.
    pub throughput: f64,
}

impl Prices {
    /// The prices of this release, or those in the file at `path`.
    ///
    /// # Errors
    /// [`AdvisorError::Prices`] if the file cannot be read, has other keys, or a number that is not positive.
    pub fn load(path: Option<&Path>) -> Result<Self> {
        let path_or_default = path.unwrap_or_else(|| Path::new("prices.toml"));
        Self::read(path).map_err(|reason| AdvisorError::Prices { path: path_or_default.to_owned(), reason })
    }

    /// As [`Self::load`]; the error is what is wrong with the file.
    fn read(path: Option<&Path>) -> Result<Self, String> {
        let text = match path {
            Some(path) => with_limits(std::fs::read_to_string(path).map_err(|error| error.to_string())?),
            None => OWN.to_owned(),
        };
        let prices: Self = toml::from_str(&text).map_err(|error| error.to_string().trim_end().to_owned())?;

        let Node { hour, writes_per_second, reads_per_second, scan_mb_per_second, storage_tb } = prices.node;
        let Target { latency, throughput } = prices.target;
        let divisors = [
            ("node.writes_per_second", writes_per_second),
            ("node.reads_per_second", reads_per_second),
            ("node.scan_mb_per_second", scan_mb_per_second),
            ("node.storage_tb", storage_tb),
            ("target.latency", latency),
            ("target.throughput", throughput),
        ];
        if let Some((key, _)) = divisors.iter().find(|(_, number)| !(number.is_finite() && *number > 0.0)) {
            return Err(format!("{key} must be greater than 0"));
        }

        let amounts = [("node.hour", hour), ("storage.gib_month", prices.storage.gib_month)];
        if let Some((key, _)) = amounts.iter().find(|(_, number)| !(number.is_finite() && *number >= 0.0)) {
            return Err(format!("{key} must not be negative"));
        }
        Ok(prices)
    }

    /// Nodes of a cluster for a load, in nodes at full CPU, and for bytes stored.
    pub fn nodes(&self, goal: Goal, load: f64, bytes: f64) -> f64 {
        (load / self.target(goal)).max(bytes / (self.node.storage_tb * TERABYTE)).ceil().max(1.0)
    }

    /// What nodes and bytes stored cost a month.
    pub fn month(&self, nodes: f64, bytes: f64) -> f64 {
        nodes * HOURS * self.node.hour + bytes / GIB * self.storage.gib_month
    }

    /// The nodes that so many KiB written a second take, if more than one: what is on one node cannot take them.
    pub fn nodes_above_one(&self, kib_per_second: f64) -> Option<f64> {
        Some(kib_per_second / self.node.writes_per_second).filter(|nodes| *nodes > 1.0)
    }

    /// The part of the CPU to use.
    pub fn target(&self, goal: Goal) -> f64 {
        match goal {
            Goal::Latency => self.target.latency,
            Goal::Throughput => self.target.throughput,
        }
    }
}

/// A file of prices, with the limits of this release at its end if it has none.
fn with_limits(mut text: String) -> String {
    let has_limits = toml::from_str::<toml::Table>(&text).is_ok_and(|file| file.contains_key("limits"));
    if let Some((_, limits)) = OWN.split_once("[limits]").filter(|_| !has_limits) {
        text.push_str("\n[limits]");
        text.push_str(limits);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_prices_are_valid_and_others_replace_them() {
        let own = Prices::load(None).unwrap();
        assert_eq!((own.target(Goal::Latency), own.target(Goal::Throughput)), (0.6, 0.9));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.toml");
        std::fs::write(&path, OWN.replace("hour = 0.65", "hour = 1.5")).unwrap();
        assert_eq!(Prices::load(Some(&path)).unwrap().node.hour, 1.5);
        for (from, to) in [("hour", "hours"), ("0.6", "0"), ("0.65", "-1"), ("17_000", "nan"), ("[node]", "")] {
            std::fs::write(&path, OWN.replacen(from, to, 1)).unwrap();
            let error = Prices::load(Some(&path)).unwrap_err().to_string();
            assert!(error.contains("p.toml"), "{error}");
        }
        assert!(Prices::load(Some(&folder.path().join("none.toml"))).is_err());
        // A file of prices need not know the limits, and may.
        let (prices, limits) = OWN.split_once("[limits]").unwrap();
        std::fs::write(&path, prices).unwrap();
        assert_eq!(Prices::load(Some(&path)).unwrap(), own);
        std::fs::write(&path, format!("{prices}[limits]{}", limits.replace("families = 100", "families = 7"))).unwrap();
        assert_eq!(Prices::load(Some(&path)).unwrap().limits.families, 7);
    }
}
