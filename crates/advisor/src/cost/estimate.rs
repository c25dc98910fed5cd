//! Nodes and money for a layout under a workload.

use std::fmt;

use tidetable_job::workload::Workload;

use crate::cost::prices::Prices;
use crate::facts::ScaleFacts;
use crate::growth::{Demand, KeyShape, ReadAmount, read_growth};
use crate::measure::Measured;
use crate::queries::Asked;

/// Bytes of a KiB.
pub(crate) const KIB: f64 = 1024.0;
const MEGABYTE: f64 = 1e6;

/// What a layout costs under a workload: its load, the nodes for it, and their price, and what no money mends.
///
/// Pairs are of the packed sizes of [`Measured::packed`]: by zstd, then by Snappy.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// KiB written a second, rows below 1 KiB as 1 KiB.
    pub write_kib: f64,
    /// Reads begun a second, each with its first KiB.
    pub read_kib: f64,
    /// Megabytes read a second behind these, rows below 1 KiB as 1 KiB.
    pub scan_mb: f64,
    /// Part of a node's CPU that writes take; above 1 is more than a node.
    pub write_load: f64,
    /// The same of queries.
    pub read_load: f64,
    /// Bytes stored: packed by zstd, and by Snappy.
    pub stored: (f64, f64),
    /// Nodes of a cluster for these.
    pub nodes: (f64, f64),
    /// Price of a month of all clusters for these, in the currency of the price list.
    pub month: (f64, f64),
    /// A month of the part of nodes that is busy, packed by Snappy: tells apart what whole nodes do not.
    pub busy_month: f64,
    /// Why no number of nodes serves it.
    pub unservable: Option<Unservable>,
    /// Nodes that the writes of the busiest series take, if more than one: those of equal columns before the time.
    pub hot_series: Option<f64>,
    /// Whether keys grow with time. A layout that does comes after all that do not, whatever it costs: its writes go to
    /// one end of the table however many nodes there are.
    pub is_sequential: bool,
    /// How far its row key departs from the order of the guides: columns behind the time, and a bucket of another length than
    /// the ranges of time that are asked for.
    pub departures: u8,
    /// Rules of schema design that it breaks, of severity `error`. A layout with errors comes after all without.
    pub errors: usize,
    /// The loads of the queries that the layout answers, in the order of the workload.
    pub queries: Vec<QueryLoad>,
    /// Bytes that queries see a second.
    pub bytes_seen: f64,
}

impl Cost {
    /// Why it comes after layouts that may cost more; `None` if nothing puts it back.
    pub fn standing(&self) -> Option<String> {
        match &self.unservable {
            Some(reason) => Some(reason.to_string()),
            None if self.errors > 0 => Some("a rule refuses it".to_owned()),
            None => self.is_sequential.then(|| "its keys grow with time".to_owned()),
        }
    }

    /// Nodes at full CPU that writes and queries take.
    pub fn load(&self) -> f64 {
        self.write_load + self.read_load
    }

    /// Rows that queries see a second.
    pub fn rows_seen(&self) -> f64 {
        self.queries.iter().map(|query| query.rows_seen).sum()
    }
}

/// The load that one query puts on the nodes, by how often it is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct QueryLoad {
    /// KiB a second, as of [`Cost::read_kib`].
    pub read_kib: f64,
    /// Megabytes a second, as of [`Cost::scan_mb`].
    pub scan_mb: f64,
    /// Bytes that it sees a second.
    pub bytes_seen: f64,
    /// Rows that it sees a second.
    pub rows_seen: f64,
    /// Rows that it reads each time.
    pub rows: f64,
    /// Bytes that it reads each time.
    pub bytes: f64,
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
        /// Its name in the file of queries.
        query: String,
        /// What it must be and is not, or why the layout cannot answer it.
        problem: String,
    },
}

impl fmt::Display for Unservable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row(nodes) => write!(f, "one row takes the writes of {nodes:.1} nodes, and a row is on one node"),
            Self::Range(nodes) => {
                write!(f, "the time comes first, so one range of keys takes all writes: those of {nodes:.1} nodes")
            }
            Self::Query { query, problem } => write!(f, "query {query}: {problem}"),
        }
    }
}

/// What is known of a layout, from which its cost follows.
#[derive(Debug, Clone, Copy)]
pub struct Costing<'a> {
    /// Its rows, cells and bytes, of the sample that was measured.
    pub measured: &'a Measured,
    /// The parts of its row key.
    pub shape: &'a KeyShape,
    /// Its rows at scale.
    pub scale: &'a ScaleFacts,
    /// Whether its keys come in sequence as time goes by.
    pub is_sequential: bool,
    /// What queries read of it.
    pub asked: &'a [Asked],
}

/// The cost of a layout.
///
/// - A node writes 14,000 rows of at most 1 KiB a second; larger rows count as so many KiB.
/// - A node begins 17,000 reads a second, each with its first KiB; what follows in the same key range is read at 220 MB a
///   second, rows below 1 KiB as 1 KiB. So the load of a query never falls when it reads more.
/// - A message of a whole row is read and written again for each source row.
/// - Nodes: the load by the part of the CPU to use, or what is stored by the capacity of a node, at least 1.
/// - It cannot be served if one row takes more writes than a node, or the time comes first in its keys and all writes do.
pub fn cost(costing: Costing<'_>, demand: &Demand, workload: &Workload, prices: &Prices) -> Cost {
    let Costing { measured, scale, is_sequential, asked, .. } = costing;
    let kib_a_write = scale.write_kib;
    let write_kib = demand.writes_per_second * kib_a_write;
    let queries: Vec<QueryLoad> = asked.iter().map(|asked| query_load(asked, costing, demand)).collect();

    // Each rewritten row is read first.
    let rewritten = if measured.rewrites { demand.writes_per_second } else { 0.0 };
    let read_kib = rewritten + queries.iter().map(|query| query.read_kib).sum::<f64>();
    let reread = rewritten * (kib_a_write - 1.0) * KIB / MEGABYTE;
    let scan_mb = reread + queries.iter().map(|query| query.scan_mb).sum::<f64>();

    let write_load = write_kib / prices.node.writes_per_second;
    let read_load = read_kib / prices.node.reads_per_second + scan_mb / prices.node.scan_mb_per_second;
    let [zstd, snappy] = [measured.packed.zstd, measured.packed.snappy].map(|bytes| {
        let stored = bytes as f64 * measured.factor * demand.factor;
        let nodes = prices.nodes(workload.goal, write_load + read_load, stored);
        Storing { stored, nodes, month: f64::from(workload.clusters) * prices.month(nodes, stored) }
    });

    let row = prices.nodes_above_one(scale.row_rate * kib_a_write);
    let series = scale.series_rate.and_then(|rate| prices.nodes_above_one(rate * kib_a_write));
    let unservable = match (row, series.filter(|_| scale.is_time_first)) {
        (Some(nodes), _) => Some(Unservable::Row(nodes)),
        (None, Some(nodes)) => Some(Unservable::Range(nodes)),
        (None, None) => None,
    };

    Cost {
        write_kib,
        read_kib,
        scan_mb,
        write_load,
        read_load,
        stored: (zstd.stored, snappy.stored),
        nodes: (zstd.nodes, snappy.nodes),
        month: (zstd.month, snappy.month),
        busy_month: prices.month((write_load + read_load) / prices.target(workload.goal), snappy.stored),
        unservable,
        hot_series: series,
        bytes_seen: queries.iter().map(|query| query.bytes_seen).sum(),
        errors: 0,
        is_sequential,
        departures: departures(costing),
        queries,
    }
}

/// How far a row key departs from the order of the guides.
fn departures(costing: Costing<'_>) -> u8 {
    let Costing { shape, asked, .. } = costing;
    let is_behind = shape.leading().len() < shape.columns().len();
    let step = shape.step().filter(|_| !shape.is_by_event());
    let mut ranges = asked.iter().filter_map(|asked| asked.bounds.time).peekable();
    let is_other_unit = ranges.peek().is_some()
        && step.is_some_and(|step| ranges.all(|(first, end)| ((end - first) as f64 / step as f64 - 1.0).abs() > 0.01));
    u8::from(is_behind) + u8::from(is_other_unit)
}

/// What follows from one of both packed sizes: bytes stored, the nodes of a cluster, and the price of a month of all clusters.
struct Storing {
    stored: f64,
    nodes: f64,
    month: f64,
}

/// The load of a query on a layout at scale.
fn query_load(asked: &Asked, costing: Costing<'_>, demand: &Demand) -> QueryLoad {
    let Costing { measured, shape, scale, .. } = costing;
    let growth = read_growth(shape, demand, &asked.bounds, measured.sampled(), scale.row_growth);

    let found = ReadAmount { events: asked.events, rows: asked.rows.mean, bytes: asked.bytes.mean };
    let ReadAmount { mut rows, mut bytes, .. } = growth.at_scale(found);
    // A read ends with the last record it wants, if records come in the order it wants.
    let is_in_order = !asked.newest || (shape.descends() && shape.is_one_series(&asked.bounds));
    if let Some(limit) = asked.limit.filter(|_| is_in_order) {
        let part = (limit as f64 / (asked.matching * growth.matching).max(1.0)).min(1.0);
        let part = part.max(1.0 / rows.max(1.0));
        (rows, bytes) = (rows * part, bytes * part);
    }

    QueryLoad::new(asked.per_second, asked.ranges.mean, rows, bytes)
}

impl QueryLoad {
    /// The part of a node's CPU that it takes.
    pub fn nodes(&self, prices: &Prices) -> f64 {
        self.read_kib / prices.node.reads_per_second + self.scan_mb / prices.node.scan_mb_per_second
    }

    /// A query that is asked `per_second`, and each time reads `rows` and `bytes` in `ranges` of keys.
    pub fn new(per_second: f64, ranges: f64, rows: f64, bytes: f64) -> Self {
        let kib = rows.max(bytes / KIB);
        Self {
            read_kib: per_second * ranges,
            scan_mb: per_second * (kib - ranges).max(0.0) * KIB / MEGABYTE,
            bytes_seen: per_second * bytes,
            rows_seen: per_second * rows,
            rows,
            bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::prices::GIB;
    use crate::growth::tests::{counted, profile, shape, workload};
    use crate::growth::{Grown, QueryBounds, at_scale};
    use crate::measure::PackedSize;
    use crate::queries::Seen;
    use tidetable_job::workload::Need;

    fn asked(per_second: f64, need: Need, rows: f64, bytes: f64) -> Asked {
        let seen = |mean: f64| Seen { mean, ..Seen::default() };
        let none = Seen::default();
        let fixed = if need == Need::Scan { [].into() } else { ["meter".to_owned()].into() };
        Asked {
            query: String::new(),
            per_second,
            need,
            draws: 1,
            ranges: seen(1.0),
            rows: seen(rows),
            events: rows,
            cells: none,
            bytes: seen(bytes),
            records: none,
            values: none,
            value_bytes: none,
            matching: rows,
            bounds: QueryBounds { fixed, time: Some((0, 60_000_000)), is_ended: false },
            limit: None,
            newest: false,
            by_draw: Vec::new(),
        }
    }

    fn of(measured: &Measured, row_key: &str, asked: &[Asked], text: &str, prices: &Prices) -> Cost {
        let workload = workload(text);
        let rows = counted(measured.source_rows as f64, 0, measured.source_rows as i64 - 1);
        let demand = Demand::new(&workload, &profile(&[("meter", 10)]), rows);
        let shape = shape(row_key);
        let (write_kib, rewrites) = (measured.write_kib(), measured.rewrites);
        let scale = at_scale(&shape, &demand, Grown { write_kib, rewrites, ..Grown::default() });
        cost(
            Costing { measured, shape: &shape, scale: &scale, is_sequential: false, asked },
            &demand,
            &workload,
            prices,
        )
    }

    #[test]
    fn dollars_follow_from_the_formula() {
        let prices = Prices::load(None).unwrap();
        // 1,000 rows in 1,000 s, of 2 KiB each, packed to a half or a fourth.
        let measured = Measured {
            factor: 1.0,
            source_rows: 1000,
            bytes_written: 2048 * 1000,
            packed: PackedSize { snappy: 1024 * 1000, zstd: 512 * 1000 },
            ..Measured::default()
        };
        let text = "clusters = 2\nkeep = \"10d\"\n[scale]\nentities = { meter = 280_000 }\nrows_per_second = 28_000";
        let small = asked(17_000.0, Need::Range, 1.0, 100.0);
        // The first KiB is a read, and 220 MB follow it.
        let large = asked(2.0, Need::Range, 5.0, 220e6 + 1024.0);
        let found = of(&measured, "{meter:010}#{ts:ms}", &[small, large], text, &prices);
        assert_eq!(found.write_load, 28_000.0 * 2.0 / 14_000.0);
        assert!((found.read_load - (1.0 + 2.0 / 17_000.0 + 2.0)).abs() < 1e-9, "{found:?}");
        let stored = 1024.0 * 28_000.0 * 864_000.0;
        let nodes = ((4.0 + found.read_load) / 0.6).max(stored / 2.5e12).ceil();
        assert_eq!(found.nodes.1, nodes);
        let month = 2.0 * (nodes * 730.0 * 0.65 + stored / GIB * 0.17);
        assert!((found.month.1 - month).abs() < 1e-6 && found.month.0 < month, "{found:?}");
        assert_eq!(found.unservable, None);
        let node = crate::cost::prices::Node { hour: 6.5, ..prices.node.clone() };
        let dearer = of(&measured, "{meter:010}#{ts:ms}", &[], text, &Prices { node, ..prices });
        assert!(dearer.month.0 > found.month.0);
    }

    #[test]
    fn a_scan_of_the_fleet_grows_with_it() {
        let prices = Prices::load(None).unwrap();
        let measured = Measured { factor: 1.0, source_rows: 1000, ..Measured::default() };
        // A minute of 10 meters is 1 MB; of 10,000 meters 1 GB.
        let minute = asked(1.0, Need::Scan, 10.0, 1e6);
        let text = "[scale]\nentities = { meter = 10_000 }";
        let found = of(&measured, "{ts:ms}#{meter:010}", &[minute], text, &prices);
        assert_eq!(found.bytes_seen, 1e9);
        assert!((found.read_load - 1000.0 / 220.0).abs() < 0.001, "{found:?}");
    }

    #[test]
    fn a_query_that_reads_more_is_never_cheaper() {
        let prices = Prices::load(None).unwrap();
        let load = |ranges: f64, rows: f64, bytes: f64| QueryLoad::new(3.0, ranges, rows, bytes).nodes(&prices);
        let steps: Vec<f64> = (0..60).map(|at| 1.5_f64.powi(at)).collect();
        for ranges in [1.0, 3.0, 100.0] {
            for rows in &steps {
                for bytes in &steps {
                    let here = load(ranges, *rows, *bytes);
                    for more in [1.0 + 1e-9, 1.01, 1.5] {
                        let next = [load(ranges, rows * more, *bytes), load(ranges, *rows, bytes * more)];
                        assert!(next.iter().all(|next| *next >= here), "{ranges} {rows} {bytes}");
                        // Continuous: a little more costs a little more.
                        assert!(more > 1.001 || next.iter().all(|next| *next <= here * (1.0 + 1e-6)), "{rows} {bytes}");
                    }
                }
            }
        }
        // A row of 1 KiB is one of 17,000 reads a second.
        assert!((load(1.0, 1.0, 1024.0) - 3.0 / 17_000.0).abs() < 1e-12);
    }

    #[test]
    fn the_newest_of_a_series_are_read_first_only_where_they_come_first() {
        let prices = Prices::load(None).unwrap();
        let measured = Measured { factor: 1.0, source_rows: 1000, ..Measured::default() };
        let newest = Asked { limit: Some(10), newest: true, ..asked(1.0, Need::Range, 1000.0, 1e6) };
        let seen = |row_key| of(&measured, row_key, std::slice::from_ref(&newest), "", &prices).bytes_seen;
        assert_eq!((seen("{meter:010}#{ts:ms}"), seen("{meter:010}#{ts:ms-reversed}")), (1e6, 1e4));
    }

    #[test]
    fn a_message_of_a_row_is_read_before_it_is_written() {
        let prices = Prices::load(None).unwrap();
        let cells = Measured { factor: 1.0, source_rows: 1000, bytes_written: 2048 * 1000, ..Measured::default() };
        let whole = Measured { rewrites: true, ..cells.clone() };
        let of_day = |measured| of(&measured, "{meter:010}#{ts:%Y%m%d}", &[], "keep = \"1d\"", &prices);
        let [cells, whole] = [cells, whole].map(of_day);
        assert_eq!(cells.read_load, 0.0);
        assert!(whole.read_load > 0.0 && whole.write_load > cells.write_load, "{whole:?}");
    }

    #[test]
    fn a_row_or_a_time_first_above_a_node_cannot_be_served() {
        let prices = Prices::load(None).unwrap();
        let workload = workload("");
        let demand = Demand::new(&workload, &profile(&[]), counted(10.0, 0, 9));
        let measured = Measured { factor: 1.0, source_rows: 10, ..Measured::default() };
        let of = |row_rate: f64, series_rate: f64, is_time_first: bool| {
            let shape = shape("{meter:010}#{ts:ms}");
            let series_rate = Some(series_rate);
            let write_kib = 1.0;
            let scale = ScaleFacts { row_rate, series_rate, is_time_first, write_kib, ..ScaleFacts::default() };
            let costing =
                Costing { measured: &measured, shape: &shape, scale: &scale, is_sequential: false, asked: &[] };
            let found = cost(costing, &demand, &workload, &prices);
            (found.unservable, found.hot_series)
        };
        assert_eq!(of(14_000.0, 14_000.0, true), (None, None));
        assert_eq!(of(28_000.0, 1.0, true), (Some(Unservable::Row(2.0)), None));
        assert_eq!(of(1.0, 28_000.0, true), (Some(Unservable::Range(2.0)), Some(2.0)));
        // A series that passes a node can be salted, and is served until then.
        assert_eq!(of(1.0, 28_000.0, false), (None, Some(2.0)));
    }
}
