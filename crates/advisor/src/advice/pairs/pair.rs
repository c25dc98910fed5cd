//! The choice of two tables, and what a third would change.

use super::days::days;
use super::newest::newest;
use super::pairing::{Pairing, Second, SecondTable, TableLoad};
use crate::advice::refused::Refused;
use crate::comparison::Answer;
use crate::cost::{ALIKE, BUSY_ALIKE, Cost, LEAST_BUSY, QueryLoad, sorted_alike};

/// By how much less of the nodes must be busy that a third table is worth a word where the price is the same.
const WORTH_A_WORD: f64 = 1.1;

/// Two tables that hold what is written, of which each query asks one: the one that takes less of the nodes for it.
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
    /// Columns of the row key of a table of the newest rows; empty for others.
    pub key: Vec<String>,
    /// For each query, whether the second answers it.
    pub by_second: Vec<bool>,
    /// For each query, its load on the table that answers it.
    pub loads: Vec<QueryLoad>,
    /// What writes and storage take of both.
    pub kept: [TableLoad; 2],
    /// Nodes that are busy, at the part of the CPU to use.
    pub busy: f64,
    /// Nodes of a cluster, packed by Snappy.
    pub nodes: f64,
    /// Price of a month of all clusters, in the currency of the price list, packed by Snappy.
    pub month: f64,
    /// A month of the part of the nodes that is busy, packed by Snappy.
    pub busy_month: f64,
    /// Bytes that queries see a second.
    pub bytes_seen: f64,
    /// Bytes stored, as a multiple of those of the smaller table that holds all rows.
    pub duplication: f64,
}

impl Pair {
    /// Whether the second table answers the query at this place.
    pub(in crate::advice) fn is_by_second(&self, place: usize) -> bool {
        self.by_second.get(place).copied().unwrap_or_default()
    }

    fn is_made_daily(&self) -> bool {
        self.second == Second::Days
    }
}

/// Pairs of tables that cost less than the best alone.
#[derive(Debug, Clone, Default)]
pub(in crate::advice) struct Pairs {
    /// Ascending by their price of a month.
    pub(in crate::advice) found: Vec<Pair>,
    /// Tables that would be the second of one, and pass a limit.
    pub(in crate::advice) refused: Vec<Refused>,
}

/// A table of the newest rows as a third one, and what all three cost.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::advice) struct Third {
    /// Names of all tables.
    pub(in crate::advice) names: Vec<String>,
    /// Columns of the row key of the third.
    pub(in crate::advice) key: Vec<String>,
    pub(in crate::advice) month: f64,
    pub(in crate::advice) nodes: f64,
    /// Nodes that are busy, at the part of the CPU to use.
    pub(in crate::advice) busy: f64,
}

/// The pairs of tables that cost less than the best single one can, or as much with fewer of the nodes busy, cheapest first. Both
/// tables take every write, and each query reads the table that takes less of the nodes for it, of those that answer it as it
/// must.
pub(in crate::advice) fn pairs(pairing: Pairing<'_>) -> Pairs {
    let costs = &pairing.economy.costs;
    let fit = costs.iter().filter(|cost| cost.unservable.is_none() && cost.errors == 0 && !cost.is_sequential);
    let single = fit.min_by(|one, other| one.month.1.total_cmp(&other.month.1));
    let busy_of_single = costs
        .iter()
        .filter(|cost| single.is_some_and(|single| cost.month.1 <= single.month.1 * ALIKE) && cost.standing().is_none())
        .map(Cost::load)
        .fold(f64::INFINITY, f64::min)
        / pairing.prices.target(pairing.workload.goal);

    let (mut found, mut refused): (Vec<Pair>, Vec<Refused>) = (Vec::new(), Vec::new());
    for first in (0..costs.len()).filter(|at| pairing.can_be_part(*at)) {
        for second in seconds(&pairing, first) {
            let passed = second.passed.clone();
            let Some(pair) = pairing.pair(first, second) else { continue };
            let is_better = single.is_none_or(|single| match single.month.1 {
                month if pair.month * ALIKE < month => true,
                month => pair.month <= month * ALIKE && (pair.busy + LEAST_BUSY) * ALIKE < busy_of_single + LEAST_BUSY,
            });
            match passed.filter(|_| is_better) {
                None if is_better => found.push(pair),
                None => {}
                Some((rule, message)) => {
                    let ([_, name], [_, row_key]) = (pair.names, pair.row_keys);
                    refused.push(Refused { name, row_key, rule, message });
                }
            }
        }
    }

    rank(&mut found, &pairing);
    Pairs { found, refused }
}

/// The tables that can be the second beside a layout.
fn seconds(pairing: &Pairing<'_>, first: usize) -> Vec<SecondTable> {
    let others = (first + 1..pairing.economy.costs.len()).filter(|at| pairing.can_be_part(*at));
    let layouts = others.filter_map(|at| pairing.layout(at));
    layouts.chain(days(pairing, first)).chain(newest(pairing, first)).collect()
}

/// The cheapest three tables of which one is of the newest rows, if they cost less than what is chosen: `best`, or nothing if no
/// one or two tables serve the workload.
pub(in crate::advice) fn third(pairing: Pairing<'_>, best: Option<&Pair>, is_served: bool) -> Option<Third> {
    let mut found: Option<Third> = None;
    for first in (0..pairing.economy.costs.len()).filter(|at| pairing.can_be_part(*at)) {
        let newest = newest(&pairing, first);
        for second in seconds(&pairing, first).into_iter().filter(|second| second.passed.is_none()) {
            for third in
                newest.iter().filter(|third| third.passed.is_none() && third.name_and_key() != second.name_and_key())
            {
                let Some(tables) = pairing.tables(first, &[&second, third]) else { continue };
                // Each of them must answer something, or two are enough.
                if !(1..=2).all(|place| tables.by.contains(&place)) {
                    continue;
                }
                if found.as_ref().is_none_or(|found| (tables.month, tables.busy) < (found.month, found.busy)) {
                    let first = pairing.comparison.layouts.get(first)?.measured.layout.clone();
                    found = Some(Third {
                        names: vec![first, second.name.clone(), third.name.clone()],
                        key: third.key.clone(),
                        month: tables.month,
                        nodes: tables.nodes,
                        busy: tables.busy,
                    });
                }
            }
        }
    }
    found.filter(|third| match best {
        Some(pair) => {
            third.month * ALIKE < pair.month
                || (third.month <= pair.month * ALIKE && third.busy * WORTH_A_WORD < pair.busy)
        }
        None => !is_served,
    })
}

/// Sorts pairs by price. Of those that cost alike, tables of days that answer a query which fixes a column come last: a table
/// with this column first is one table. Then counts how busy they keep nodes, then the order of the guides, then that another layout
/// is no table a day, then the bytes that queries see.
fn rank(pairs: &mut [Pair], pairing: &Pairing<'_>) {
    pairs.sort_by(|a, b| a.month.total_cmp(&b.month).then(a.bytes_seen.total_cmp(&b.bytes_seen)));

    let target = pairing.prices.target(pairing.workload.goal);
    let least = pairs.first().map_or(0.0, |pair| pair.month);
    let alike = pairs.partition_point(|pair| pair.month <= least * ALIKE);
    let Some(alike) = pairs.get_mut(..alike) else { return };
    alike.sort_by_cached_key(|pair| pairing.is_daily_for_some(pair));
    for of_kind in alike.chunk_by_mut(|one, other| pairing.is_daily_for_some(one) == pairing.is_daily_for_some(other)) {
        for alike in sorted_alike(of_kind, BUSY_ALIKE, |pair| pair.busy * target + LEAST_BUSY) {
            alike.sort_by(|one, other| {
                let guides = pairing.departures(one).cmp(&pairing.departures(other));
                let daily = one.is_made_daily().cmp(&other.is_made_daily());
                guides.then(daily).then(one.bytes_seen.total_cmp(&other.bytes_seen))
            });
        }
    }
}

/// The load of several tables, and what they cost.
struct Tables {
    /// For each query, the place of the table that answers it.
    by: Vec<usize>,
    loads: Vec<QueryLoad>,
    stored: f64,
    busy: f64,
    nodes: f64,
    month: f64,
}

impl SecondTable {
    fn name_and_key(&self) -> (&str, &[String]) {
        (&self.name, &self.key)
    }
}

impl Pairing<'_> {
    /// Whether tables of days answer a query that fixes a column which a row key can begin with.
    fn is_daily_for_some(&self, pair: &Pair) -> bool {
        let fixes = |answer: &Answer| {
            let asked = answer.asked.as_ref();
            asked.is_some_and(|asked| asked.bounds.fixed.iter().any(|name| self.columns.is_key(name)))
        };
        let mut answers = self.asked(pair.first).zip(&pair.by_second);
        pair.is_made_daily() && answers.any(|((_, answer), is_second)| *is_second && fixes(answer))
    }

    /// How far the row keys of both depart from the order of the guides.
    fn departures(&self, pair: &Pair) -> u8 {
        let second = if let Second::Layout(at) = pair.second { Some(at) } else { None };
        let costs = [Some(pair.first), second].into_iter().flatten().filter_map(|at| self.economy.costs.get(at));
        costs.map(|cost| cost.departures).sum()
    }

    /// What a layout and `others` beside it cost; `None` if no one of them answers a query as it must.
    fn tables(&self, first: usize, others: &[&SecondTable]) -> Option<Tables> {
        let cost = self.economy.costs.get(first)?;
        let (mut by, mut loads) = (Vec::new(), Vec::new());
        for (query, own) in self.loads(first)?.into_iter().enumerate() {
            let others = others.iter().map(|other| other.loads.get(query).copied().flatten());
            let answers = std::iter::once(own).chain(others).enumerate();
            let mut best: Option<(usize, QueryLoad)> = None;
            for (place, load) in answers.filter_map(|(place, load)| Some((place, load?))) {
                if best.as_ref().is_none_or(|(_, best)| load.nodes(self.prices) < best.nodes(self.prices)) {
                    best = Some((place, load));
                }
            }
            let (place, load) = best?;
            by.push(place);
            loads.push(load);
        }

        let own = TableLoad::of(cost, &self.economy.demand, self.prices);
        let kept = std::iter::once(own).chain(others.iter().map(|other| other.kept));
        let (mut load, mut stored) = (loads.iter().map(|load| load.nodes(self.prices)).sum::<f64>(), 0.0);
        for table in kept {
            load += table.nodes();
            stored += table.stored;
        }
        let nodes = self.prices.nodes(self.workload.goal, load, stored);
        let month = f64::from(self.workload.clusters) * self.prices.month(nodes, stored);
        Some(Tables { by, loads, stored, busy: load / self.prices.target(self.workload.goal), nodes, month })
    }

    fn pair(&self, first: usize, second: SecondTable) -> Option<Pair> {
        let (layout, cost) = (self.comparison.layouts.get(first)?, self.economy.costs.get(first)?);
        let tables = self.tables(first, &[&second]).filter(|tables| tables.by.contains(&1))?;
        let least = if second.is_whole { cost.stored.1.min(second.kept.stored) } else { cost.stored.1 };
        Some(Pair {
            first,
            second: second.second,
            names: [layout.measured.layout.clone(), second.name],
            row_keys: [layout.row_key.clone(), second.row_key],
            key: second.key,
            by_second: tables.by.iter().map(|place| *place == 1).collect(),
            busy: tables.busy,
            nodes: tables.nodes,
            month: tables.month,
            busy_month: self.prices.month(tables.busy, tables.stored),
            bytes_seen: tables.loads.iter().map(|load| load.bytes_seen).sum(),
            duplication: tables.stored / least.max(f64::MIN_POSITIVE),
            loads: tables.loads,
            kept: [TableLoad::of(cost, &self.economy.demand, self.prices), second.kept],
        })
    }
}
