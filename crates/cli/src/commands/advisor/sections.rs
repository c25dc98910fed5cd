//! Sections of the page of a comparison: figures, bytes, queries and cost.

use tidetable_advisor::comparison::{Answer, Compared, Comparison, Economy};
use tidetable_advisor::cost::Prices;
use tidetable_advisor::queries::Asked;
use tidetable_job::workload::{Need, Query, Workload};
use tidetable_page::view::{self, Better, Figure, Unit};

use super::{pattern_names, rounded};

/// The mark of the layout that comes first.
pub const CHEAPEST: &str = "cheapest";
/// The mark of a layout that none other is better than in price and reads.
pub const PARETO: &str = "on the Pareto front";

/// The workload of a comparison, with what it means for the layouts.
#[derive(Clone, Copy)]
pub struct Costed<'a> {
    pub workload: &'a Workload,
    pub economy: &'a Economy,
    pub prices: &'a Prices,
}

/// The name of a layout.
pub fn name(layout: &Compared) -> String {
    layout.measured.layout.clone()
}

/// Figures of every layout, the best first.
pub fn figures(comparison: &Comparison, sampled: bool, costed: Option<Costed<'_>>) -> view::Comparison {
    let column = |name: &str, unit, better, meaning: &str| view::Column {
        name: name.to_owned(),
        label: name.replace('_', " "),
        unit,
        better,
        meaning: meaning.to_owned(),
    };
    let lower = Some(Better::Lower);
    let mut columns = vec![
        column("rows", Unit::Count, None, ""),
        column("cells", Unit::Count, lower, ""),
        column("bytes_as_cells", Unit::Bytes, lower, "Key, family, qualifier, value and 8 of timestamp, of each cell."),
        column("packed_zstd", Unit::Bytes, lower, "The same, compressed by zstd in blocks of 64 KiB."),
        column("packed_snappy", Unit::Bytes, lower, "The same, compressed by Snappy."),
        column("largest_row", Unit::Bytes, lower, "Bytes as cells of the row of the most."),
        column(
            "top_share_10",
            Unit::Share,
            lower,
            "Share of a slice's rows in the fullest of 10 ranges of the keys known before; median.",
        ),
        column("hottest_row_share", Unit::Share, lower, "Share of a slice's rows that one row takes; median."),
        column("travel", Unit::Ratio, None, "How far writes move through the keys, from -1 to 1."),
        column("writes", Unit::Text, None, "Patterns of the writes."),
    ];
    if costed.is_some() {
        columns.push(column("month", Unit::Dollars, lower, "A month of all clusters, packed by Snappy."));
        let busy = "The same of the part of the nodes that is busy: decides between months that are alike.";
        columns.push(column("busy_month", Unit::Dollars, lower, busy));
        columns.push(column("rows_seen", Unit::Ratio, lower, "Rows that queries see a second: decides next."));
    }
    let mut order: Vec<usize> = (0..comparison.layouts.len()).collect();
    if let Some(costed) = costed {
        order.sort_by_key(|at| costed.economy.scores.get(*at).map(|score| score.place));
    }
    let row = |at: usize| {
        let layout = comparison.layouts.get(at)?;
        let (measured, spread) = (&layout.measured, &layout.spread);
        let scaled = |count: u64| Figure::Whole((count as f64 * measured.factor).round() as u64);
        let mut figures = vec![
            scaled(measured.rows),
            scaled(measured.cells),
            scaled(measured.bytes.total()),
            scaled(measured.packed.zstd),
            scaled(measured.packed.snappy),
            Figure::Whole(measured.largest_row.bytes),
            Figure::Real(rounded(spread.few.quantile(500))),
            Figure::Real(rounded(spread.rows.quantile(500))),
            Figure::Real(rounded(spread.travel)),
            Figure::Text(pattern_names(&layout.patterns).join(", ")),
        ];
        let mut marks = Vec::new();
        if let Some(costed) = costed {
            let (cost, score) = (costed.economy.costs.get(at)?, costed.economy.scores.get(at)?);
            figures.push(Figure::Real(cost.month.1));
            figures.push(Figure::Real(cost.busy_month));
            figures.push(Figure::Real(rounded(cost.rows_seen())));
            if cost.unservable.is_some() {
                marks.push("cannot be served".to_owned());
            } else if score.place == 1 {
                marks.push(CHEAPEST.to_owned());
            }
            if cost.errors > 0 {
                marks.push("breaks a rule".to_owned());
            }
            if score.is_pareto {
                marks.push(PARETO.to_owned());
            }
        }
        Some(view::ComparisonRow { layout: name(layout), shape: layout.row_key.clone(), marks, sampled, figures })
    };
    view::Comparison { columns, rows: order.into_iter().filter_map(row).collect() }
}

/// Bytes of a layout by part.
pub fn bytes(layout: &Compared, sampled: bool) -> view::PartBytes {
    let (bytes, measured) = (layout.measured.bytes, &layout.measured);
    let scaled = |count: u64| (count as f64 * measured.factor).round() as u64;
    let parts = [
        ("key", bytes.key),
        ("family", bytes.family),
        ("qualifier", bytes.qualifier),
        ("value", bytes.value),
        ("timestamp", bytes.timestamp),
    ];
    view::PartBytes {
        layout: name(layout),
        sampled,
        parts: parts.map(|(part, count)| (part.to_owned(), scaled(count))).to_vec(),
        packed: Some((scaled(measured.packed.zstd), scaled(measured.packed.snappy))),
        own: Some(scaled(measured.own_bytes)),
    }
}

/// What each query reads in each layout.
pub fn queries(comparison: &Comparison, sampled: bool, costed: Costed<'_>) -> view::QueryMatrix {
    let draws = |at: usize| {
        let asked = costed.economy.answers.iter().filter_map(|answers| answers.get(at)?.asked.as_ref());
        asked.map(|asked| asked.draws).max().unwrap_or_default() as u64
    };
    let query = |(at, query): (usize, &Query)| view::Query {
        name: query.name.clone(),
        clause: query.predicate.clone(),
        per_second: Some(query.per_second).filter(|per_second| *per_second > 0.0),
        draws: draws(at),
    };
    let row = |(layout, answers): (&Compared, &Vec<Answer>)| view::QueryRow {
        layout: name(layout),
        sampled,
        answers: answers.iter().map(answer).collect(),
    };
    view::QueryMatrix {
        queries: costed.workload.queries.iter().enumerate().map(query).collect(),
        rows: comparison.layouts.iter().zip(&costed.economy.answers).map(row).collect(),
    }
}

fn answer(answer: &Answer) -> view::Answer {
    let Some(Asked { need, ranges, rows, cells, bytes, records, values, value_bytes, .. }) = &answer.asked else {
        return view::Answer { error: answer.problem.clone(), ..view::Answer::default() };
    };
    let shape = match need {
        Need::Point => view::Shape::Point,
        Need::Range => view::Shape::Range,
        Need::Scan => view::Shape::Scan,
    };
    let seen = |seen: u64, returned: u64| view::Seen { seen, returned };
    view::Answer {
        shape,
        ranges: ranges.p50,
        rows: seen(rows.p50, records.p50),
        cells: seen(cells.p50, values.p50),
        bytes: seen(bytes.p50, value_bytes.p50),
        bytes_p95: bytes.p95,
        error: answer.problem.clone(),
    }
}

/// Prices, capacities and the load of each layout.
pub fn cost(comparison: &Comparison, costed: Costed<'_>) -> view::Cost {
    let Costed { workload, economy, prices } = costed;
    let load = |(layout, cost): (&Compared, &tidetable_advisor::cost::Cost)| view::Load {
        layout: name(layout),
        write_kib: cost.write_kib,
        read_kib: cost.read_kib,
        scan_mb: cost.scan_mb,
        stored: cost.stored,
        unservable: cost.unservable.as_ref().map(ToString::to_string),
    };
    view::Cost {
        prices: view::Prices {
            region: prices.region.clone(),
            date: prices.date.clone(),
            source: prices.source.clone(),
            node_hour: prices.node.hour,
            gib_month: prices.storage.gib_month,
            clusters: workload.clusters,
        },
        capacity: view::Capacity {
            name: "Enterprise, SSD".to_owned(),
            writes: prices.node.writes_per_second,
            reads: prices.node.reads_per_second,
            scan_mb: prices.node.scan_mb_per_second,
            stored_tb: prices.node.storage_tb,
            target: prices.target(workload.goal),
        },
        loads: comparison.layouts.iter().zip(&economy.costs).map(load).collect(),
    }
}
