//! Why a layout is chosen, in sentences with their numbers.

use tidetable_job::workload::{Goal, Query, Workload};

use crate::advice::advised::Advice;
use crate::advice::pairs::{Second, TableLoad};
use crate::cost::{Criterion, Prices, QueryLoad, criterion};
use crate::facts::short;
use crate::growth::KeyShape;
use crate::lint::limits::tables;

/// Values of the salt that is offered for a series that one node does not take.
const LEAST_SALTS: f64 = 2.0;

/// Why a layout is chosen, as sentences with their figures: what `advise` prints below its table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The choice and its price.
    pub choice: String,
    /// What decided, the most costly first.
    pub facts: Vec<String>,
    /// What puts it before the layout that comes next.
    pub order: String,
    /// What to know before it is built.
    pub warnings: Vec<String>,
    /// How many layouts were looked at, and on how many rows.
    pub method: String,
}

impl Advice {
    /// Explains the choice for a workload.
    pub fn explain(&self, workload: &Workload, prices: &Prices) -> Explanation {
        Explanation {
            choice: self.choice(prices),
            facts: self.facts(workload, prices).into_iter().chain(self.kinds()).collect(),
            order: self.order(prices).unwrap_or_default(),
            warnings: [
                self.hot_series(workload, prices),
                self.versions(),
                self.day_tables(prices),
                self.third_table(workload, prices),
            ]
            .into_iter()
            .flatten()
            .collect(),
            method: self.method(),
        }
    }

    fn choice(&self, prices: &Prices) -> String {
        let at = self.chosen();
        let (Some(layout), Some(cost)) = (self.comparison.layouts.get(at), self.economy.costs.get(at)) else {
            return String::new();
        };
        let name = &layout.measured.layout;
        let currency = &prices.currency;

        if let Some(pair) = self.pairs.first() {
            let [first, second] = &pair.names;
            let what = match pair.second {
                Second::Layout(_) => format!("{first} and {second}"),
                Second::Days => format!("{first}, and a table of each day of it ({second})"),
                Second::Newest => {
                    let (key, row_key) = (pair.key.join(" and "), &pair.row_keys[1]);
                    format!("{first}, and a table of the newest row of each {key} ({second}, {row_key})")
                }
            };
            return format!("{what} wins: {:.0} {currency} a month on {}.", pair.month, nodes_text(pair.nodes));
        }

        match (&cost.unservable, cost.errors) {
            (Some(reason), _) => format!("no layout serves this workload; {name} comes closest: {reason}."),
            (None, 1..) => format!("rules refuse every layout; {name} is the cheapest of them."),
            (None, 0) => {
                format!(
                    "{name} ({}) wins: {:.0} {currency} a month on {}.",
                    layout.row_key,
                    cost.month.1,
                    nodes_text(cost.nodes.1)
                )
            }
        }
    }

    /// The loads of writes and of each query in nodes, and storage, the greatest first, then their sum; then the largest row.
    fn facts(&self, workload: &Workload, prices: &Prices) -> Vec<String> {
        let at = self.chosen();
        let Some(cost) = self.economy.costs.get(at) else { return Vec::new() };
        let tables = match self.pairs.first() {
            Some(pair) => pair.names.iter().map(|name| format!("{name} ")).zip(pair.kept).collect(),
            None => vec![(String::new(), TableLoad::of(cost, &self.economy.demand, prices))],
        };
        let mut loads: Vec<(f64, String)> = Vec::new();
        for (name, table) in &tables {
            loads.push((table.write_load, writes_text(name, table, prices)));
            if table.rewrite_load > 0.0 {
                let text =
                    format!("{name}rows that are read to be written again: {} nodes", load_text(table.rewrite_load));
                loads.push((table.rewrite_load, text));
            }
        }
        for (place, (query, load)) in workload.queries.iter().zip(self.loads()).enumerate() {
            let Some(load) = load else { continue };
            let table = self.pairs.first().map(|pair| {
                let [first, second] = &pair.names;
                format!(" in {}", if pair.is_by_second(place) { second } else { first })
            });
            loads.push((load.nodes(prices), query_text(query, &load, &table.unwrap_or_default(), prices)));
        }

        let load: f64 = loads.iter().map(|(nodes, _)| nodes).sum();
        let days = short(self.economy.demand.days());
        for (name, table) in &tables {
            let text = format!("{name}stored: {} GB for {days} days", short(table.stored / 1e9));
            loads.push((table.stored / (prices.node.storage_tb * 1e12), text));
        }
        loads.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut facts: Vec<String> = loads.into_iter().map(|(_, text)| text).collect();
        facts.push(sum_text(load, tables.iter().map(|(_, table)| table.stored).sum(), workload.goal, prices));

        facts.extend(self.largest_row(prices));
        facts
    }

    /// The largest row of all tables that are layouts.
    fn largest_row(&self, prices: &Prices) -> Option<String> {
        let second = self.pairs.first().map(|pair| pair.second);
        let other = if let Some(Second::Layout(at)) = second { Some(at) } else { None };
        let scales = [Some(self.chosen()), other]
            .into_iter()
            .flatten()
            .filter_map(|at| Some((self.comparison.layouts.get(at)?, self.economy.scales.get(at)?)));
        let (layout, scale) = scales.max_by(|(_, one), (_, other)| one.row_bytes.total_cmp(&other.row_bytes))?;

        let growth = scale.row_growth.text();
        let grown = if growth.is_empty() { growth } else { format!("{growth} = {:.0} bytes", scale.row_bytes) };
        let part = 100.0 * scale.row_bytes / prices.limits.row.advised as f64;
        let (name, bytes) = (&layout.measured.layout, layout.measured.largest_row.bytes);
        let of = if other.is_some() { format!(" (of {name})") } else { String::new() };
        Some(format!("largest row{of}: {bytes} bytes{grown}, {} % of the 100 MB advised", short(part)))
    }

    /// What to know of readings that are versions of one cell.
    fn versions(&self) -> Option<String> {
        let second = self.pairs.first().map(|pair| pair.second);
        let other = if let Some(Second::Layout(at)) = second { Some(at) } else { None };
        let mut chosen = [Some(self.chosen()), other].into_iter().flatten();
        let layout = chosen.find_map(|at| {
            let layout = self.comparison.layouts.get(at)?;
            (layout.measured.versions_a_column.max > 1).then_some(layout)
        })?;
        Some(format!(
            "R4: in {} each reading is a version of a cell: garbage collection by number of versions would drop readings, and a reader \
             must ask for all versions",
            layout.measured.layout
        ))
    }

    /// What to know of tables of days, of which an instance takes so many.
    fn day_tables(&self, prices: &Prices) -> Option<String> {
        self.pairs.first().filter(|pair| pair.second == Second::Days)?;
        let days = self.economy.demand.days().ceil();
        let passed = tables(days as u64, prices)?;
        Some(format!(
            "{}: {days:.0} days are {days:.0} tables of one instance, which takes {} at most and should have no more than {}",
            passed.rule, prices.limits.tables.limit, prices.limits.tables.advised
        ))
    }

    /// What a third table, of the newest rows, would change.
    fn third_table(&self, workload: &Workload, prices: &Prices) -> Option<String> {
        let third = self.third.as_ref()?;
        let instead = match self.pairs.first() {
            Some(pair) => {
                let [before, busy] = [pair.busy, third.busy].map(load_text);
                format!(", {busy} of them busy instead of {before}")
            }
            None => String::new(),
        };
        let target = prices.target(workload.goal);
        Some(format!(
            "a third table would help: {} together, the last with the newest row of each {}, take {:.0} {} a month on {}{instead} \
             at {:.0} % of their CPU; no more than two are tried here",
            third.names.join(", "),
            third.key.join(" and "),
            third.month,
            prices.currency,
            nodes_text(third.nodes),
            100.0 * target
        ))
    }

    /// What puts the choice before the layout that comes next: of a pair the best alone, else the second.
    fn order(&self, prices: &Prices) -> Option<String> {
        let place = if self.pairs.is_empty() { 2 } else { 1 };
        let next = self.economy.scores.iter().position(|score| score.place == place)?;
        let (cost, name) = (self.economy.costs.get(next)?, &self.comparison.layouts.get(next)?.measured.layout);
        let currency = &prices.currency;

        if let Some(pair) = self.pairs.first() {
            let alone = match cost.standing() {
                Some(reason) => reason,
                None => format!("{:.0} {currency} a month instead of {:.0}", cost.month.1, pair.month),
            };
            return Some(format!("the best alone is {name}: {alone}."));
        }

        let best = self.economy.costs.get(self.best())?;
        Some(match criterion(best, cost) {
            Some(Criterion::Class) => {
                format!("next comes {name}: {}.", cost.standing().unwrap_or_default())
            }
            Some(Criterion::Month) => {
                // How Bigtable packs is not known, so a price is a range.
                let is_tie = cost.month.0 <= best.month.1 && cost.nodes == best.nodes;
                let [one, other] = [best, cost].map(|cost| format!("{:.0}..{:.0}", cost.month.0, cost.month.1));
                let tie = if is_tie { format!("; {one} and {other} overlap, so it is a tie") } else { String::new() };
                format!(
                    "next comes {name}: {:.0} {currency} a month instead of {:.0}{tie}.",
                    cost.month.1, best.month.1
                )
            }
            Some(Criterion::Busy) => {
                let [busy, of_best] = [cost, best].map(|cost| load_text(cost.load()));
                format!("next comes {name}, alike in price: {busy} of its nodes are busy instead of {of_best}.")
            }
            Some(Criterion::Guides) => format!(
                "next comes {name}, alike in price: the guides' order is what is asked about, then the time in the unit that is asked."
            ),
            Some(Criterion::Rows) => format!(
                "next comes {name}, alike in price: queries see {} rows a second instead of {}.",
                short(cost.rows_seen()),
                short(best.rows_seen())
            ),
            Some(Criterion::Bytes) => format!(
                "next comes {name}, alike in price and rows: queries see {} bytes a second instead of {}.",
                short(cost.bytes_seen),
                short(best.bytes_seen)
            ),
            None => format!("next comes {name}, which costs and reads the same."),
        })
    }

    /// The loads of the queries, in the tables that answer them; `None` for one that none answers.
    fn loads(&self) -> Vec<Option<QueryLoad>> {
        match self.pairs.first() {
            Some(pair) => pair.loads.iter().copied().map(Some).collect(),
            None => self.economy.loads(self.chosen()),
        }
    }

    /// What to know of kinds of events: the tables that the job has of them, or that it could have.
    fn kinds(&self) -> Option<String> {
        let text = self.apart.as_ref()?.text();
        Some(match self.tables_apart() {
            Some(tables) => {
                let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
                format!("{text}: the job has a table of each, {}", names.join(" and "))
            }
            None => format!("{text}: a table of each, with a `where`, would hold nothing that its queries do not want"),
        })
    }

    /// What to know of an entity whose writes pass a node: what a salt would divide, and what each query would then cost.
    fn hot_series(&self, workload: &Workload, prices: &Prices) -> Option<String> {
        let at = self.chosen();
        let (layout, nodes) = (self.comparison.layouts.get(at)?, self.economy.costs.get(at)?.hot_series?);
        let rate = self.economy.scales.get(at)?.series_rate?;
        let shape = KeyShape::of(&layout.layout);
        let source = layout.layout.source();
        let time = source.fields.get(source.time).map(|field| field.name.as_str()).unwrap_or_default();
        let salts = nodes.ceil().max(LEAST_SALTS);

        let mut costs = Vec::new();
        for (place, (query, load)) in workload.queries.iter().zip(self.loads()).enumerate() {
            // A salt of one table changes nothing for the queries that the other answers.
            let is_by_second = self.pairs.first().is_some_and(|pair| pair.is_by_second(place));
            let Some(load) = load.filter(|_| !is_by_second) else { continue };
            let salted = QueryLoad { read_kib: load.read_kib * salts, ..load };
            let more = load_text(salted.nodes(prices) - load.nodes(prices));
            costs.push(format!("{} {more} nodes more than its {}", query.name, load_text(load.nodes(prices))));
        }

        let read = match costs.is_empty() {
            true => String::new(),
            false => format!(", and each query of it then reads {salts:.0} ranges: {}", costs.join(", ")),
        };
        Some(format!(
            "the busiest {} takes {rate:.0} writes a second, {nodes:.1} nodes, and its newest rows are on one: \
             {{salt({time}, {salts:.0})}} in front divides them by {salts:.0}{read}",
            shape.leading().join(" and "),
        ))
    }

    fn method(&self) -> String {
        let [ranked, measured, all] = self.rows;
        let [ranked, measured] = [ranked, measured].map(|rows| match rows {
            rows if rows < all => format!("a sample of {rows} of {all} rows"),
            _ => format!("{all} rows"),
        });
        let (candidates, best) = (self.candidates.len(), self.comparison.layouts.len());
        format!("{candidates} layouts were ranked on {ranked}, the best {best} of them measured on {measured}")
    }
}

/// Nodes with digits enough that a reader's sum of them is the one that is shown.
fn load_text(nodes: f64) -> String {
    if nodes >= 100.0 { format!("{nodes:.1}") } else { short(nodes) }
}

/// `1 node` or `7 nodes`.
fn nodes_text(nodes: f64) -> String {
    if nodes > 1.0 { format!("{nodes:.0} nodes") } else { "1 node".to_owned() }
}

/// `writes: 11111 rows a second x 1.00 KiB / 14000 a node = 0.79 nodes`.
fn writes_text(name: &str, table: &TableLoad, prices: &Prices) -> String {
    format!(
        "{name}writes: {} rows a second x {} KiB / {:.0} a node = {} nodes",
        short(table.writes_per_second),
        short(table.write_kib),
        prices.node.writes_per_second,
        load_text(table.write_load)
    )
}

/// `together: 0.80 nodes at full CPU / 0.6 to use = 1.33; 830 GB stored / 2.5 TB a node = 0.33: 2 nodes`.
fn sum_text(load: f64, stored: f64, goal: Goal, prices: &Prices) -> String {
    let target = prices.target(goal);
    format!(
        "together: {} nodes at full CPU / {target} to use = {}; {} GB stored / {} TB a node = {}: {}",
        load_text(load),
        load_text(load / target),
        short(stored / 1e9),
        prices.node.storage_tb,
        load_text(stored / (prices.node.storage_tb * 1e12)),
        nodes_text(prices.nodes(goal, load, stored))
    )
}

/// `one_day: 50 a second x 1 row, 3264 bytes: 50 / 17000 reads + 0.11 / 220 MB = 0.003 nodes`.
fn query_text(query: &Query, load: &QueryLoad, table: &str, prices: &Prices) -> String {
    format!(
        "{}{table}: {} a second, each {} rows and {} bytes: {} reads a second / {:.0} + {} MB / {:.0} = {} nodes",
        query.name,
        short(query.per_second),
        short(load.rows),
        short(load.bytes),
        short(load.read_kib),
        prices.node.reads_per_second,
        short(load.scan_mb),
        prices.node.scan_mb_per_second,
        load_text(load.nodes(prices))
    )
}
