//! What tables of a pair are made of.

use tidetable_job::workload::{Need, Query, Workload};

use crate::advice::keys::Columns;
use crate::comparison::{Answer, Comparison, Economy};
use crate::cost::{Cost, Prices, QueryLoad, Unservable};
use crate::growth::Demand;
use crate::measure::Measured;

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

/// A part of a read load that is no more than what sums of such numbers lose.
const LOST_BY_SUMS: f64 = 1e-9;

impl TableLoad {
    /// The load of the table of a layout, without that of its queries.
    pub(in crate::advice) fn of(cost: &Cost, demand: &Demand, prices: &Prices) -> Self {
        let of_queries: f64 = cost.queries.iter().map(|query| query.nodes(prices)).sum();
        let others = cost.read_load - of_queries;
        Self {
            writes_per_second: demand.writes_per_second,
            write_kib: cost.write_kib / demand.writes_per_second.max(f64::MIN_POSITIVE),
            write_load: cost.write_load,
            rewrite_load: if others > cost.read_load * LOST_BY_SUMS { others } else { 0.0 },
            stored: cost.stored.1,
        }
    }

    /// Nodes at full CPU that it takes.
    pub(in crate::advice) fn nodes(&self) -> f64 {
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
#[derive(Debug, Clone)]
pub(super) struct SecondTable {
    pub(super) second: Second,
    pub(super) name: String,
    pub(super) row_key: String,
    /// Columns of its row key.
    pub(super) key: Vec<String>,
    /// For each query, its load; `None` if the table does not answer it as it must.
    pub(super) loads: Vec<Option<QueryLoad>>,
    pub(super) kept: TableLoad,
    /// Whether it holds all rows.
    pub(super) is_whole: bool,
    /// The limit that it passes at scale, and that in words.
    pub(super) passed: Option<(&'static str, String)>,
}

/// Measured layouts, with their costs under a workload.
#[derive(Clone, Copy)]
pub(in crate::advice) struct Pairing<'a> {
    pub(in crate::advice) comparison: &'a Comparison,
    pub(in crate::advice) economy: &'a Economy,
    pub(in crate::advice) workload: &'a Workload,
    pub(in crate::advice) prices: &'a Prices,
    pub(in crate::advice) columns: &'a Columns<'a>,
}

impl Pairing<'_> {
    /// Whether a layout is refused for no other reason than its answers.
    pub(super) fn can_be_part(&self, at: usize) -> bool {
        let Some(cost) = self.economy.costs.get(at) else { return false };
        let is_hot = matches!(cost.unservable, Some(Unservable::Row(_) | Unservable::Range(_)));
        cost.errors == 0 && !cost.is_sequential && !is_hot
    }

    /// The queries, with the answers of a layout.
    pub(super) fn asked(&self, at: usize) -> impl Iterator<Item = (&Query, &Answer)> {
        let answers = self.economy.answers.get(at).map(Vec::as_slice).unwrap_or_default();
        self.workload.queries.iter().zip(answers)
    }

    /// The loads of a layout's queries; `None` for those that it does not answer as they must.
    pub(super) fn loads(&self, at: usize) -> Option<Vec<Option<QueryLoad>>> {
        self.economy.costs.get(at)?;
        let loads = self.asked(at).zip(self.economy.loads(at)).map(|((query, answer), load)| {
            let asked = answer.asked.as_ref()?;
            load.filter(|_| serves(query, asked.need))
        });
        Some(loads.collect())
    }

    /// The table of another layout, which holds all rows, too.
    pub(super) fn layout(&self, at: usize) -> Option<SecondTable> {
        let (layout, cost) = (self.comparison.layouts.get(at)?, self.economy.costs.get(at)?);
        Some(SecondTable {
            second: Second::Layout(at),
            name: layout.measured.layout.clone(),
            row_key: layout.row_key.clone(),
            key: Vec::new(),
            loads: self.loads(at)?,
            kept: TableLoad::of(cost, &self.economy.demand, self.prices),
            is_whole: true,
            passed: None,
        })
    }
}

/// Whether a table that needs so much for a query answers it as it must.
pub(super) fn serves(query: &Query, need: Need) -> bool {
    query.must.is_none_or(|must| need <= must)
}

/// Bytes as cells of a source row.
pub(super) fn event_bytes(measured: &Measured) -> f64 {
    measured.bytes.total() as f64 / measured.source_rows.max(1) as f64
}
