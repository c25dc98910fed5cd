//! Two tables instead of one: each query goes to the one in which it sees fewer bytes.
//!
//! The second table is another layout of the same rows, a table for each day, or one of the newest row of each entity.

use tidetable_job::workload::{Query, Workload};
use tidetable_layout::time::{DAY, SECOND};

use crate::advice::job_text::without_time;
use crate::advice::keys::Columns;
use crate::advice::refused::Refused;
use crate::comparison::{Answer, Comparison, Economy};
use crate::cost::{ALIKE, Cost, Prices, QueryLoad, Unservable, sorted_alike};
use crate::growth::{Demand, KeyShape};
use crate::lint::limits::{row_bytes, row_writes, writes_text};
use crate::measure::Measured;
use crate::queries::Asked;

/// Days of which tables are read for one query at most.
const MOST_DAYS: f64 = 7.0;
const SECONDS_A_DAY: f64 = (DAY / SECOND) as f64;
const KIB: f64 = 1024.0;

/// Two tables that hold what is written, of which each query asks one: the one in which it sees fewer bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Index of the layout of the first.
    pub first: usize,
    /// What the second table is made from.
    pub second: Second,
    /// Names of the first table and of the second.
    pub names: [String; 2],
    /// Templates of the row keys of these.
    pub row_keys: [String; 2],
    /// For each query, whether the second answers it.
    pub by_second: Vec<bool>,
    /// For each query, its load on the table that answers it.
    pub loads: Vec<QueryLoad>,
    /// What writes and storage take of both.
    pub kept: [TableLoad; 2],
    /// Nodes of a cluster, packed by Snappy.
    pub nodes: f64,
    /// Price of a month of all clusters, in the currency of the price list, packed by Snappy.
    pub month: f64,
    /// Bytes that queries see a second.
    pub bytes_seen: f64,
    /// Bytes stored, as a multiple of those of the smaller table that holds all rows.
    pub duplication: f64,
}

impl Pair {
    /// Whether the second table answers the query at this place.
    pub(super) fn is_by_second(&self, place: usize) -> bool {
        self.by_second.get(place).copied().unwrap_or_default()
    }

    fn is_made_daily(&self) -> bool {
        self.second == Second::Days
    }

    /// Nodes that the queries of both tables take.
    fn read_load(&self, prices: &Prices) -> f64 {
        self.loads.iter().map(|load| load.nodes(prices)).sum()
    }
}

/// What a table takes of the nodes beside its queries.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TableLoad {
    /// Rows written a second.
    pub writes_per_second: f64,
    /// KiB of each, at least 1.
    pub write_kib: f64,
    /// Nodes that writes take.
    pub write_load: f64,
    /// Nodes that reading rows takes which are written again.
    pub rewrite_load: f64,
    /// Bytes stored, packed by Snappy.
    pub stored: f64,
}

impl TableLoad {
    /// The load of the table of a layout, without that of its queries.
    pub(super) fn of(cost: &Cost, demand: &Demand, prices: &Prices) -> Self {
        let of_queries: f64 = cost.queries.iter().map(|query| query.nodes(prices)).sum();
        Self {
            writes_per_second: demand.writes_per_second,
            write_kib: cost.write_kib / demand.writes_per_second.max(f64::MIN_POSITIVE),
            write_load: cost.write_load,
            rewrite_load: (cost.read_load - of_queries).max(0.0),
            stored: cost.stored.1,
        }
    }

    /// Nodes at full CPU that it takes.
    pub(super) fn nodes(&self) -> f64 {
        self.write_load + self.rewrite_load
    }
}

/// What the second of two tables is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Second {
    /// Another layout, by its index.
    Layout(usize),
    /// A table for each day of the first, made once a day.
    Days,
    /// The newest row of each entity.
    Newest,
}

/// A table that can be the second.
struct Candidate {
    second: Second,
    name: String,
    row_key: String,
    /// For each query, its load; `None` if the table does not answer it as it must.
    loads: Vec<Option<QueryLoad>>,
    kept: TableLoad,
    /// Whether it holds all rows.
    is_whole: bool,
    /// The limit that its rows pass at scale, and that in words.
    passed: Option<(&'static str, String)>,
}

/// Pairs of tables that cost less than the best alone.
#[derive(Debug, Clone, Default)]
pub(super) struct Pairs {
    /// Ascending by their price of a month.
    pub(super) found: Vec<Pair>,
    /// Tables that would be the second of one, and pass a limit.
    pub(super) refused: Vec<Refused>,
}

/// What pairs are made of: measured layouts, with their costs under a workload.
#[derive(Clone, Copy)]
pub(super) struct Pairing<'a> {
    pub(super) comparison: &'a Comparison,
    pub(super) economy: &'a Economy,
    pub(super) workload: &'a Workload,
    pub(super) prices: &'a Prices,
    pub(super) columns: &'a Columns<'a>,
}

/// The pairs of tables that cost less than the best single one can, cheapest first. Both tables take every write, and each
/// query reads the table in which it sees fewer bytes of those that answer it as it must.
pub(super) fn pairs(pairing: Pairing<'_>) -> Pairs {
    let costs = &pairing.economy.costs;
    let single = costs.iter().filter(|cost| cost.unservable.is_none() && cost.errors == 0 && !cost.is_sequential);
    let single = single.map(|cost| cost.month.1).fold(f64::INFINITY, f64::min);

    let (mut found, mut refused): (Vec<Pair>, Vec<Refused>) = (Vec::new(), Vec::new());
    for first in (0..costs.len()).filter(|at| pairing.can_be_part(*at)) {
        let others = (first + 1..costs.len()).filter(|at| pairing.can_be_part(*at));
        let others = others.filter_map(|at| pairing.layout(at)).chain(pairing.days(first)).chain(pairing.newest(first));
        for second in others {
            let passed = second.passed.clone();
            let Some(pair) = pairing.pair(first, second).filter(|pair| pair.month < single) else { continue };
            match passed {
                None => found.push(pair),
                Some((rule, message)) => {
                    let ([_, name], [_, row_key]) = (pair.names, pair.row_keys);
                    refused.push(Refused { name, row_key, rule, message });
                }
            }
        }
    }

    rank(&mut found, pairing.prices);
    Pairs { found, refused }
}

/// Sorts pairs by price. Of those that cost alike, another layout comes before tables that are made once a day, then the bytes
/// that queries see count, then how busy they keep nodes.
fn rank(pairs: &mut [Pair], prices: &Prices) {
    pairs.sort_by(|a, b| a.month.total_cmp(&b.month).then(a.bytes_seen.total_cmp(&b.bytes_seen)));

    let least = pairs.first().map_or(0.0, |pair| pair.month);
    let alike = pairs.partition_point(|pair| pair.month <= least * ALIKE);
    let Some(alike) = pairs.get_mut(..alike) else { return };
    alike.sort_by_key(Pair::is_made_daily);
    for of_kind in alike.chunk_by_mut(|one, other| one.is_made_daily() == other.is_made_daily()) {
        for alike in sorted_alike(of_kind, |pair| pair.bytes_seen) {
            alike.sort_by(|one, other| one.read_load(prices).total_cmp(&other.read_load(prices)));
        }
    }
}

impl Pairing<'_> {
    /// Whether a layout is refused for no other reason than its answers.
    fn can_be_part(&self, at: usize) -> bool {
        let Some(cost) = self.economy.costs.get(at) else { return false };
        let is_hot = matches!(cost.unservable, Some(Unservable::Row(_) | Unservable::Range(_)));
        cost.errors == 0 && !cost.is_sequential && !is_hot
    }

    /// The queries, with the answers of a layout.
    fn asked(&self, at: usize) -> impl Iterator<Item = (&Query, &Answer)> {
        let answers = self.economy.answers.get(at).map(Vec::as_slice).unwrap_or_default();
        self.workload.queries.iter().zip(answers)
    }

    /// The loads of a layout's queries; `None` for those that it does not answer as they must.
    fn loads(&self, at: usize) -> Option<Vec<Option<QueryLoad>>> {
        self.economy.costs.get(at)?;
        let loads = self.asked(at).zip(self.economy.loads(at)).map(|((query, answer), load)| {
            let asked = answer.asked.as_ref()?;
            load.filter(|_| query.must.is_none_or(|must| asked.need <= must))
        });
        Some(loads.collect())
    }

    /// The table of another layout, which holds all rows, too.
    fn layout(&self, at: usize) -> Option<Candidate> {
        let (layout, cost) = (self.comparison.layouts.get(at)?, self.economy.costs.get(at)?);
        Some(Candidate {
            second: Second::Layout(at),
            name: layout.measured.layout.clone(),
            row_key: layout.row_key.clone(),
            loads: self.loads(at)?,
            kept: TableLoad::of(cost, &self.economy.demand, self.prices),
            is_whole: true,
            passed: None,
        })
    }

    /// A table for each day of a layout: a range of days is read by its tables alone.
    fn days(&self, at: usize) -> Option<Candidate> {
        let (layout, cost) = (self.comparison.layouts.get(at)?, self.economy.costs.get(at)?);
        let demand = &self.economy.demand;
        let shape = KeyShape::of(&layout.layout);
        let measured = &layout.measured;
        let of_day = measured.factor * demand.factor / demand.days().max(f64::MIN_POSITIVE);
        let bytes = measured.bytes.total() as f64 * of_day;
        let scale = self.economy.scales.get(at)?;
        let rows = measured.rows as f64 * of_day / scale.row_growth.factor();

        let loads = self.asked(at).map(|(query, answer)| {
            let asked = answer.asked.as_ref()?;
            let seconds = asked.bounds.covered(DAY)?;
            let days = (seconds / SECONDS_A_DAY).ceil().max(1.0);
            if days > MOST_DAYS || shape.is_one_series(&asked.bounds) {
                return None;
            }
            let part = self.part(&shape, asked);
            Some(QueryLoad::new(query.per_second, days, rows * days * part, bytes * days * part))
        });

        let kib_a_row = (bytes / rows.max(1.0) / KIB).max(1.0);
        let kept = TableLoad {
            writes_per_second: rows / SECONDS_A_DAY,
            write_kib: kib_a_row,
            write_load: rows / SECONDS_A_DAY * kib_a_row / self.prices.node.writes_per_second,
            rewrite_load: 0.0,
            stored: cost.stored.1,
        };

        let event = event_bytes(measured);
        let passed = scale.entity_rate.and_then(|rate| {
            let passed = row_bytes(rate * SECONDS_A_DAY * event, self.prices)?;
            let message = format!(
                "the largest row of a day will have {:.0} bytes: {rate:.1} rows a second x {SECONDS_A_DAY:.0} x {event:.0} bytes",
                passed.measured
            );
            Some((passed.rule, message))
        });

        Some(Candidate {
            second: Second::Days,
            name: format!("{}_{{day:%Y%m%d}}", measured.layout),
            row_key: without_time(&layout.layout),
            loads: loads.collect(),
            kept,
            is_whole: true,
            passed,
        })
    }

    /// The newest row of each entity, which each write replaces.
    fn newest(&self, at: usize) -> Option<Candidate> {
        let (layout, cost) = (self.comparison.layouts.get(at)?, self.economy.costs.get(at)?);
        let demand = &self.economy.demand;
        let shape = KeyShape::of(&layout.layout);
        let columns = shape.columns();
        if columns.is_empty() || shape.step().is_none() {
            return None;
        }

        let measured = &layout.measured;
        let entities = columns.iter().map(|name| self.columns.number(name)).fold(1.0, f64::max);
        let event = event_bytes(measured);
        let loads = self.asked(at).map(|(query, answer)| {
            let asked = answer.asked.as_ref()?;
            if !asked.newest || columns.iter().all(|name| asked.bounds.fixed.contains(*name)) {
                return None;
            }
            let rows = entities * self.part(&shape, asked);
            Some(QueryLoad::new(query.per_second, 1.0, rows, rows * event))
        });

        let write_kib = (event / KIB).max(1.0);
        let kept = TableLoad {
            writes_per_second: demand.writes_per_second,
            write_kib,
            write_load: demand.writes_per_second * write_kib / self.prices.node.writes_per_second,
            rewrite_load: 0.0,
            stored: cost.stored.1 / demand.kept_rows.max(1.0) * entities,
        };

        // Every write of an entity replaces its one row.
        let passed = self.economy.scales.get(at)?.entity_rate.and_then(|rate| {
            let passed = row_writes(rate, write_kib, self.prices)?;
            let busiest = format!("those of the busiest {}", columns.join(" and "));
            Some((passed.rule, format!("one row takes {}: {busiest}", writes_text(rate, write_kib))))
        });

        Some(Candidate {
            second: Second::Newest,
            name: format!("{}_newest", measured.layout),
            row_key: without_time(&layout.layout),
            loads: loads.collect(),
            kept,
            is_whole: false,
            passed,
        })
    }

    /// The part of the keys that the columns at the beginning of a key leave, where a query fixes them.
    fn part(&self, shape: &KeyShape, asked: &Asked) -> f64 {
        let columns = shape.columns().into_iter();
        let fixed = columns.take_while(|name| asked.bounds.fixed.contains(*name));
        fixed.map(|name| 1.0 / self.columns.number(name)).product()
    }

    fn pair(&self, first: usize, second: Candidate) -> Option<Pair> {
        let (layout, cost) = (self.comparison.layouts.get(first)?, self.economy.costs.get(first)?);
        let (mut by_second, mut loads) = (Vec::new(), Vec::new());
        for both in self.loads(first)?.into_iter().zip(&second.loads) {
            let (is_second, load) = match both {
                (Some(one), Some(other)) if other.bytes_seen < one.bytes_seen => (true, *other),
                (Some(one), _) => (false, one),
                (None, Some(other)) => (true, *other),
                (None, None) => return None,
            };
            by_second.push(is_second);
            loads.push(load);
        }
        if !by_second.contains(&true) {
            return None;
        }

        let read_load: f64 = loads.iter().map(|load| load.nodes(self.prices)).sum();
        let kept = [TableLoad::of(cost, &self.economy.demand, self.prices), second.kept];
        let load = kept.iter().map(TableLoad::nodes).sum::<f64>() + read_load;
        let stored: f64 = kept.iter().map(|table| table.stored).sum();
        let nodes = self.prices.nodes(self.workload.goal, load, stored);
        let least = if second.is_whole { cost.stored.1.min(second.kept.stored) } else { cost.stored.1 };
        Some(Pair {
            first,
            second: second.second,
            names: [layout.measured.layout.clone(), second.name],
            row_keys: [layout.row_key.clone(), second.row_key],
            by_second,
            nodes,
            month: f64::from(self.workload.clusters) * self.prices.month(nodes, stored),
            bytes_seen: loads.iter().map(|load| load.bytes_seen).sum(),
            duplication: stored / least.max(f64::MIN_POSITIVE),
            loads,
            kept,
        })
    }
}

/// Bytes as cells of a source row.
fn event_bytes(measured: &Measured) -> f64 {
    measured.bytes.total() as f64 / measured.source_rows.max(1) as f64
}
