//! Nodes and money for a layout under a workload.

use std::fmt;

use tidetable_job::workload::{Need, Scale, Workload};
use tidetable_layout::time::{DAY, SECOND};

use crate::cost::prices::Prices;
use crate::heatmap::{Pattern, patterns};
use crate::measure::Measured;
use crate::queries::Asked;
use crate::spread::Spread;

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;
/// Bytes of a GiB.
pub const GIB: f64 = 1024.0 * MIB;
const MEGABYTE: f64 = 1e6;
const TERABYTE: f64 = 1e12;
/// Hours of a month, as prices count them.
const HOURS: f64 = 730.0;
/// Ranges of which the fullest is judged, at least.
const FEW_NODES: f64 = 10.0;

/// How much will be written and kept, in all layouts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Source rows a second.
    pub writes_per_second: f64,
    /// Source rows that are kept.
    pub kept_rows: f64,
    /// By what the measured source rows were multiplied to get these.
    pub factor: f64,
}

impl Demand {
    /// The demand of a workload. `rows` source rows were measured over `seconds` (first and last, since the epoch). Without a
    /// scale their rate is taken, and without `keep` their span.
    pub fn new(workload: &Workload, rows: f64, seconds: (i64, i64)) -> Self {
        let span = (seconds.1 - seconds.0 + 1).max(1) as f64;
        let writes_per_second = declared_rate(&workload.scale).unwrap_or(rows / span);
        let kept = workload.keep.map_or(span, |keep| keep as f64 / SECOND as f64);
        let kept_rows = writes_per_second * kept;
        Self { writes_per_second, kept_rows, factor: if rows > 0.0 { kept_rows / rows } else { 0.0 } }
    }

    /// Days of data that are kept.
    pub fn days(&self) -> f64 {
        self.kept_rows / self.writes_per_second.max(f64::MIN_POSITIVE) * SECOND as f64 / DAY as f64
    }
}

/// Into how many ranges the known keys are thought to be cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ranges {
    /// 10, or 100 for more than 10 nodes.
    #[default]
    ByNodes,
    /// 100.
    Many,
}

/// Source rows a second, if a workload declares how many there will be.
pub fn declared_rate(scale: &Scale) -> Option<f64> {
    let Scale { entities, every, rows_per_second } = scale;
    let number: f64 = entities.iter().map(|(_, number)| number).product();
    let by_entity = every.filter(|_| !entities.is_empty()).map(|every| number * SECOND as f64 / every as f64);
    rows_per_second.or(by_entity)
}

/// What a layout costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// KiB written a second, rows below 1 KiB as 1 KiB.
    pub write_kib: f64,
    /// KiB read a second by queries that see at most 1 MiB, rows below 1 KiB as 1 KiB.
    pub read_kib: f64,
    /// Megabytes read a second by other queries.
    pub scan_mb: f64,
    /// Part of a node's CPU that writes take; above 1 is more than a node.
    pub write_load: f64,
    /// The same of queries.
    pub read_load: f64,
    /// Bytes stored: packed by zstd, and by Snappy.
    pub stored: (f64, f64),
    /// Nodes of a cluster for these.
    pub nodes: (f64, f64),
    /// A month of all clusters for these.
    pub month: (f64, f64),
    /// Why no number of nodes serves it.
    pub unservable: Option<Unservable>,
    /// Whether keys grow with time. A layout that does comes after all that do not, whatever it costs: its writes go to
    /// one end of the table however many nodes there are.
    pub is_sequential: bool,
    /// Rules of schema design that it breaks, of severity `error`. A layout with errors comes after all without.
    pub errors: usize,
    /// For each query.
    pub queries: Vec<QueryLoad>,
    /// Bytes that queries see a second.
    pub bytes_seen: f64,
}

/// What one query costs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct QueryLoad {
    /// KiB a second, as of [`Cost::read_kib`].
    pub read_kib: f64,
    /// Megabytes a second, as of [`Cost::scan_mb`].
    pub scan_mb: f64,
    /// Bytes that it sees a second.
    pub bytes_seen: f64,
}

/// Why no number of nodes serves a layout.
#[derive(Debug, Clone, PartialEq)]
pub enum Unservable {
    /// One row takes the writes of so many nodes.
    Row(f64),
    /// One range of keys does.
    Range(f64),
    /// It does not answer a query as it must.
    Query {
        /// The query.
        query: String,
        /// What is wrong.
        problem: String,
    },
}

impl fmt::Display for Unservable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row(nodes) => write!(f, "one row takes the writes of {nodes:.1} nodes, and a row is on one node"),
            Self::Range(nodes) => {
                write!(f, "one range of keys takes the writes of {nodes:.1} nodes, and new keys go on going there")
            }
            Self::Query { query, problem } => write!(f, "query {query}: {problem}"),
        }
    }
}

/// The cost of a layout.
///
/// - A node writes 14,000 rows of at most 1 KiB a second, and reads 17,000; larger rows count as so many KiB. A query that
///   sees more than 1 MiB reads 220 MB a second instead.
/// - Nodes: the load by the part of the CPU to use, or what is stored by the capacity of a node, at least 1.
/// - It cannot be served if the fullest range of the known keys (95th of 100 slices; 10 ranges, or 100 for more than 10
///   nodes), or one row, takes more than a node's part.
pub fn cost(
    (measured, spread, asked): (&Measured, &Spread, &[Asked]),
    demand: &Demand,
    ranges: Ranges,
    workload: &Workload,
    prices: &Prices,
) -> Cost {
    let source_rows = measured.source_rows.max(1) as f64;
    let kib_a_write = (measured.bytes_written as f64 / source_rows / KIB).max(1.0);
    let write_kib = demand.writes_per_second * kib_a_write;
    // Queries of a key stay as they are when the table grows; only scans grow with it.
    let grown = |asked: &Asked| if asked.need == Need::Scan { measured.factor * demand.factor } else { 1.0 };
    let bytes_seen = |asked: &Asked| asked.bytes.mean * grown(asked);
    let load = |asked: &Asked| {
        let bytes = bytes_seen(asked);
        let by_rows = asked.per_second * (asked.rows.mean * grown(asked)).max(bytes / KIB);
        let is_large = bytes > MIB;
        QueryLoad {
            read_kib: if is_large { 0.0 } else { by_rows },
            scan_mb: if is_large { asked.per_second * bytes / MEGABYTE } else { 0.0 },
            bytes_seen: asked.per_second * bytes,
        }
    };
    let queries: Vec<QueryLoad> = asked.iter().map(load).collect();
    let read_kib: f64 = queries.iter().map(|query| query.read_kib).sum();
    let scan_mb: f64 = queries.iter().map(|query| query.scan_mb).sum();
    let write_load = write_kib / prices.node.writes_per_second;
    let read_load = read_kib / prices.node.reads_per_second + scan_mb / prices.node.scan_mb_per_second;
    let target = prices.target(workload.goal);
    let scaled = |bytes: u64| bytes as f64 * measured.factor * demand.factor;
    let stored = (scaled(measured.packed.zstd), scaled(measured.packed.snappy));
    let nodes_for = |bytes: f64| {
        ((write_load + read_load) / target).max(bytes / (prices.node.storage_tb * TERABYTE)).ceil().max(1.0)
    };
    let month = |bytes: f64| {
        let one = nodes_for(bytes) * HOURS * prices.node.hour + bytes / GIB * prices.storage.gib_month;
        f64::from(workload.clusters) * one
    };
    let nodes = (nodes_for(stored.0), nodes_for(stored.1));
    let is_many = ranges == Ranges::Many || nodes.1 > FEW_NODES;
    let shares = if is_many { &spread.many } else { &spread.few };
    let range = shares.quantile(950) * write_load;
    let row = spread.rows.quantile(950) * write_load;
    let unservable = match (row > target, range > target && nodes.1 > 1.0) {
        (true, _) => Some(Unservable::Row(row)),
        (false, true) => Some(Unservable::Range(range)),
        (false, false) => None,
    };
    Cost {
        write_kib,
        read_kib,
        scan_mb,
        write_load,
        read_load,
        stored,
        nodes,
        month: (month(stored.0), month(stored.1)),
        unservable,
        bytes_seen: queries.iter().map(|query| query.bytes_seen).sum(),
        errors: 0,
        is_sequential: patterns(spread).contains(&Pattern::Sequential),
        queries,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::measure::PackedSize;
    use crate::queries::Seen;
    use crate::spread::Shares;

    fn workload(text: &str) -> Workload {
        Workload::parse(Path::new("q.toml"), text.to_owned()).unwrap()
    }

    fn asked(per_second: f64, need: Need, rows: f64, bytes: f64) -> Asked {
        let seen = |mean: f64| Seen { mean, ..Seen::default() };
        let none = Seen::default();
        let (query, draws) = (String::new(), 1);
        let (rows, bytes) = (seen(rows), seen(bytes));
        Asked {
            query,
            per_second,
            need,
            draws,
            ranges: none,
            rows,
            cells: none,
            bytes,
            records: none,
            values: none,
            value_bytes: none,
            by_draw: Vec::new(),
        }
    }

    #[test]
    fn dollars_follow_from_the_formula() {
        let prices = Prices::load(None).unwrap();
        let workload =
            workload("clusters = 2\nkeep = \"10d\"\n[scale]\nrows_per_second = 28_000\n[query.q]\nwhere = \"true\"");
        // 1,000 rows in 1,000 s, of 2 KiB each, packed to a half or a fourth.
        let demand = Demand::new(&workload, 1000.0, (0, 999));
        assert_eq!((demand.writes_per_second, demand.kept_rows), (28_000.0, 28_000.0 * 864_000.0));
        let measured = Measured {
            factor: 1.0,
            source_rows: 1000,
            bytes_written: 2048 * 1000,
            packed: PackedSize { snappy: 1024 * 1000, zstd: 512 * 1000 },
            ..Measured::default()
        };
        let spread = Spread::default();
        let small = asked(17_000.0, Need::Range, 1.0, 100.0);
        let large = asked(2.0, Need::Range, 5.0, 220e6);
        let found = cost((&measured, &spread, &[small, large]), &demand, Ranges::ByNodes, &workload, &prices);
        assert_eq!((found.write_load, found.read_load), (4.0, 1.0 + 2.0));
        let stored = 1024.0 * 28_000.0 * 864_000.0;
        let nodes = (7.0_f64 / 0.6).max(stored / 2.5e12).ceil();
        assert_eq!(found.nodes.1, nodes);
        let month = 2.0 * (nodes * 730.0 * 0.65 + stored / GIB * 0.17);
        assert!((found.month.1 - month).abs() < 1e-6 && found.month.0 < month, "{found:?}");
        assert_eq!(found.unservable, None);
        let dearer = Prices { region: "x".to_owned(), ..prices.clone() };
        let dearer = Prices { node: crate::cost::prices::Node { hour: 6.5, ..dearer.node.clone() }, ..dearer };
        assert!(cost((&measured, &spread, &[]), &demand, Ranges::ByNodes, &workload, &dearer).month.0 > found.month.0);
    }

    #[test]
    fn a_range_or_a_row_above_a_node_cannot_be_served() {
        let prices = Prices::load(None).unwrap();
        let workload = workload("[scale]\nrows_per_second = 28_000\n[query.q]\nwhere = \"true\"");
        let demand = Demand::new(&workload, 10.0, (0, 9));
        let measured = Measured { factor: 1.0, source_rows: 10, ..Measured::default() };
        let all = |share: f64| Shares { by_slice: vec![(0, share)] };
        let of = |few: f64, rows: f64| {
            let spread = Spread { few: all(few), rows: all(rows), ..Spread::default() };
            cost((&measured, &spread, &[]), &demand, Ranges::ByNodes, &workload, &prices).unservable
        };
        assert_eq!(of(0.1, 0.001), None);
        assert_eq!(of(1.0, 0.001), Some(Unservable::Range(2.0)));
        assert_eq!(of(1.0, 1.0), Some(Unservable::Row(2.0)));
    }

    #[test]
    fn the_scale_of_entities_gives_a_rate() {
        let workload = workload("[scale]\nentities = { meter = 9_000 }\nevery = \"15m\"\n[query.q]\nwhere = \"true\"");
        let demand = Demand::new(&workload, 100.0, (0, 99));
        assert_eq!((demand.writes_per_second, demand.kept_rows, demand.factor), (10.0, 1000.0, 10.0));
    }
}
