//! The page of a comparison or a heatmap.

use std::io::Write;
use std::path::Path;

use serde_json::Value;
use tidetable_advisor::comparison::{Answer, Compared, Comparison, Economy};
use tidetable_advisor::cost::Prices;
use tidetable_advisor::heatmap::{Heatmap, Pattern};
use tidetable_advisor::queries::Asked;
use tidetable_advisor::spread::Spread;
use tidetable_page::layouts_page;
use tidetable_page::view::{self, Better, Figure, LayoutsPage, Matrix, Note, Unit, Verdict};
use tidetable_runner::workload::{Need, Query, Workload};

use super::{micros, pattern_names, rounded, share_text};
use crate::error::CliError;
use crate::output::Destination;

/// The workload of a comparison, with what it means for the layouts.
#[derive(Clone, Copy)]
pub struct Costed<'a> {
    pub workload: &'a Workload,
    pub economy: &'a Economy,
    pub prices: &'a Prices,
}

/// Writes a page to `path`.
///
/// # Errors
/// If it cannot be made or written.
pub fn write(page: &LayoutsPage, path: &Path) -> Result<(), CliError> {
    let html = layouts_page(page)?;
    let mut out = Destination::of(path, "--report")?.open()?;
    out.write_all(html.as_bytes())?;
    Ok(out.finish()?)
}

/// The page of a comparison. `data` is what `--output json` prints.
pub fn comparison_page(
    title: String,
    command: String,
    comparison: &Comparison,
    sample: Option<f64>,
    costed: Option<Costed<'_>>,
    data: Value,
) -> LayoutsPage {
    let sampled = sample.is_some();
    let most = comparison.layouts.iter().map(|layout| layout.measured.source_rows).max().unwrap_or_default();
    let part = sample.map(|part| format!(", a sample of {}% of the entities", part * 100.0)).unwrap_or_default();
    LayoutsPage {
        title,
        subtitle: format!("{most} source rows{part}; slices of {} s", comparison.axis.width),
        command,
        verdict: verdict(comparison, costed),
        comparison: Some(figures(comparison, sampled, costed)),
        bytes: comparison.layouts.iter().map(|layout| bytes(layout, sampled)).collect(),
        heatmaps: comparison.layouts.iter().map(|layout| map_of(layout, sampled)).collect(),
        queries: costed.map(|costed| queries(comparison, sampled, costed)),
        findings: Vec::new(),
        cost: costed.map(|costed| cost(comparison, costed)),
        method: method(),
        data,
    }
}

/// The page of a heatmap.
pub fn heatmap_page(
    (table, metric): (&str, &str),
    command: String,
    map: &Heatmap,
    (spread, patterns): (&Spread, &[Pattern]),
    data: Value,
) -> LayoutsPage {
    let seen = seen(spread, patterns);
    LayoutsPage {
        title: format!("Heatmap of {table}"),
        subtitle: format!("{metric}: {} rows, slices of {} s", map.keys, map.axis.width),
        command,
        verdict: Verdict {
            headline: format!("{table}: {}.", pattern_names(patterns).join(", ")),
            ..Verdict::default()
        },
        comparison: None,
        bytes: Vec::new(),
        heatmaps: vec![view_of(table, metric, false, map, spread, seen)],
        queries: None,
        findings: Vec::new(),
        cost: None,
        method: method(),
        data,
    }
}

fn name(layout: &Compared) -> String {
    layout.measured.layout.clone()
}

/// The cheapest, or else the smallest; and for each query the layout that lets it see the fewest bytes.
fn verdict(comparison: &Comparison, costed: Option<Costed<'_>>) -> Verdict {
    let layouts = &comparison.layouts;
    let Some(Costed { workload, economy, prices }) = costed else {
        let least = layouts.iter().min_by_key(|layout| layout.measured.bytes.total());
        let headline =
            least.map(|layout| format!("{} takes the fewest bytes, {}.", name(layout), layout.measured.bytes.total()));
        let reasons = layouts.iter().map(|layout| {
            format!(
                "{}: writes are {}, top share {}.",
                name(layout),
                pattern_names(&layout.patterns).join(", "),
                share_text(layout.spread.few.quantile(500))
            )
        });
        return Verdict {
            headline: headline.unwrap_or_default(),
            reasons: reasons.collect(),
            turns: vec![
                "Queries decide: --queries says what each layout reads for them, and what it costs.".to_owned(),
            ],
        };
    };
    let best = economy.scores.iter().position(|score| score.place == 1);
    let of_best = best.and_then(|at| Some((layouts.get(at)?, economy.costs.get(at)?, economy.scores.get(at)?)));
    let Some((layout, own, score)) = of_best else { return Verdict::default() };
    let headline = match &own.unservable {
        Some(reason) => format!("No layout serves this; {} comes closest: {reason}.", name(layout)),
        None => format!(
            "{}: {:.0} to {:.0} {} a month on {} nodes.",
            name(layout),
            own.month.0,
            own.month.1,
            prices.currency,
            own.nodes.1
        ),
    };
    let winners = workload.queries.iter().enumerate().filter_map(|(at, query)| {
        let seen = layouts.iter().zip(&economy.answers).filter_map(|(layout, answers)| {
            let asked = answers.get(at)?.asked.as_ref()?;
            Some((asked.bytes.p50, name(layout)))
        });
        let (bytes, layout) = seen.min()?;
        Some(format!("{} sees the fewest bytes in {layout}: {bytes}.", query.name))
    });
    let robust = format!(
        "It stays the best in {:.0} % of the workloads in which a query or the writes weigh 10 times as much, or a query nothing.",
        score.robust * 100.0
    );
    Verdict { headline, reasons: winners.collect(), turns: vec![robust] }
}

fn figures(comparison: &Comparison, sampled: bool, costed: Option<Costed<'_>>) -> view::Comparison {
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
            if cost.unservable.is_some() {
                marks.push("cannot be served".to_owned());
            } else if score.place == 1 {
                marks.push("cheapest".to_owned());
            }
            if score.is_pareto {
                marks.push("on the Pareto front".to_owned());
            }
        }
        Some(view::ComparisonRow { layout: name(layout), shape: layout.row_key.clone(), marks, sampled, figures })
    };
    view::Comparison { columns, rows: order.into_iter().filter_map(row).collect() }
}

fn bytes(layout: &Compared, sampled: bool) -> view::PartBytes {
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
        own: None,
    }
}

fn map_of(layout: &Compared, sampled: bool) -> view::Heatmap {
    let seen = seen(&layout.spread, &layout.patterns);
    view_of(&layout.measured.layout, "source rows written", sampled, &layout.heatmap, &layout.spread, seen)
}

fn view_of(
    layout: &str,
    metric: &str,
    sampled: bool,
    map: &Heatmap,
    spread: &Spread,
    seen: Vec<String>,
) -> view::Heatmap {
    let buckets = map.buckets.len() as u64;
    let first = |bucket: u64| (bucket * u64::from(map.keys)).checked_div(buckets).unwrap_or_default();
    let bucket = |(at, key): (u64, &Vec<u8>)| view::Bucket {
        key: key.escape_ascii().to_string(),
        segments: key.escape_ascii().to_string().split('#').map(str::to_owned).collect(),
        keys: first(at + 1) - first(at),
    };
    let mut top_share = vec![None; map.axis.slices];
    for (slice, share) in &spread.few.by_slice {
        if let Some(slot) = top_share.get_mut(*slice) {
            *slot = Some(*share);
        }
    }
    view::Heatmap {
        layout: layout.to_owned(),
        metric: metric.to_owned(),
        sampled,
        buckets: (0..).zip(&map.buckets).map(bucket).collect(),
        start: micros(map.axis.start),
        slice: micros(map.axis.width),
        values: Matrix::Whole((0..map.axis.slices).flat_map(|slice| map.slice(slice).to_vec()).collect()),
        top_share,
        seen,
    }
}

/// A sentence a pattern.
fn seen(spread: &Spread, patterns: &[Pattern]) -> Vec<String> {
    let share = share_text(spread.few.quantile(500));
    let row = share_text(spread.rows.quantile(500));
    let best = share_text(spread.hindsight.quantile(500));
    let sentence = |pattern: &Pattern| match pattern {
        Pattern::Sequential => {
            format!(
                "Sequential: {share} of a slice's rows go to one of 10 ranges, and move {:.2} of the way.",
                spread.travel
            )
        }
        Pattern::HotRow => format!("Hot row: one row takes {row} of a slice's rows; no split helps."),
        Pattern::HotRange => {
            format!("Hot range: one of 10 ranges takes {share}, where the best cut would give {best}.")
        }
        Pattern::Burst { period: Some(period) } => format!("Bursts, {period} slices apart."),
        Pattern::Burst { period: None } => "Bursts, at no regular distance.".to_owned(),
        Pattern::Even => format!("Even: the fullest of 10 ranges takes {share}."),
    };
    patterns.iter().map(sentence).collect()
}

fn queries(comparison: &Comparison, sampled: bool, costed: Costed<'_>) -> view::QueryMatrix {
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

fn cost(comparison: &Comparison, costed: Costed<'_>) -> view::Cost {
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

/// How it was measured, and what is not known.
fn method() -> Vec<Note> {
    let notes = [
        (
            "Cells",
            "Every source row was encoded by every layout, and each number counts the cells that a run would write. \
             Garbage collection by age holds as of the newest row.",
        ),
        (
            "Spread",
            "Bigtable does not publish where it splits tables. Before each slice the row keys known so far are cut into \
             ranges of equal count, and the fullest range is shown: what holds under any such split.",
        ),
        (
            "Not known",
            "The cost of rows other than 1 KB; whether cells seen count versions that a filter drops; how Bigtable \
             compresses. Rows are taken to arrive at their event time.",
        ),
    ];
    notes.map(|(title, text)| Note { title: title.to_owned(), text: text.to_owned() }).to_vec()
}
