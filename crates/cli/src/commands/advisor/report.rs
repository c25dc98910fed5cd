//! The page of a comparison or a heatmap.

use serde_json::Value;
use tidetable_advisor::advice::{Advice, Explanation, Pair, Refused};
use tidetable_advisor::comparison::{Compared, Comparison, Economy};
use tidetable_advisor::heatmap::{Heatmap, Pattern, key_segments};
use tidetable_advisor::spread::Spread;
use tidetable_layout::Layout;
use tidetable_page::view::{self, Figure, LayoutsPage, Matrix, Note, Verdict};

use super::economy::{ORDER, factor_text};
use super::sections::{CHEAPEST, Costed, PARETO, bytes, cost, figures, name, queries};
use super::{micros, pattern_names, rounded, share_text};
use crate::output::values::{count, length};

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
        subtitle: format!("{}{part}; slices of {}", count(most, "source row"), length(comparison.axis.width)),
        command,
        verdict: verdict(comparison, costed),
        comparison: Some(figures(comparison, sampled, costed)),
        bytes: comparison.layouts.iter().map(|layout| bytes(layout, sampled)).collect(),
        heatmaps: comparison.layouts.iter().map(|layout| map_of(layout, sampled)).collect(),
        queries: costed.map(|costed| queries(comparison, sampled, costed)),
        findings: Vec::new(),
        cost: costed.map(|costed| cost(comparison, costed)),
        method: costed.map(scale).into_iter().chain(method()).collect(),
        data,
    }
}

/// The page of advice: the layouts that were measured in full, and the pairs of them that cost less. `data` is what
/// `--output json` prints.
pub fn advice_page(title: String, command: String, advice: &Advice, costed: Costed<'_>, data: Value) -> LayoutsPage {
    let mut page = comparison_page(title, command, &advice.comparison, None, Some(costed), data);
    let Explanation { choice, facts, order, warnings, method } = advice.explain(costed.workload, costed.prices);
    page.verdict.headline = choice;
    page.verdict.reasons = facts.into_iter().chain([order]).chain(warnings).collect();
    if let (Some(figures), Some(pair)) = (&mut page.comparison, advice.pairs.first()) {
        put_first(figures, pair);
    }
    let refused: Vec<String> = advice.refused.iter().map(refused_text).collect();
    let note = |title: &str, text: String| Note { title: title.to_owned(), text };
    page.method.insert(0, note("Ranked", format!("{method}.")));
    if !refused.is_empty() {
        page.method.insert(1, note("Not chosen", refused.join(". ")));
    }
    page
}

/// Puts a chosen pair of tables before the single layouts, of which none is the cheapest then.
fn put_first(figures: &mut view::Comparison, pair: &Pair) {
    for row in &mut figures.rows {
        row.marks.retain(|mark| mark != CHEAPEST && mark != PARETO);
    }
    let known = |column: &view::Column| match column.name.as_str() {
        "month" => Figure::Real(pair.month),
        "busy_month" => Figure::Real(pair.busy_month),
        "rows_seen" => Figure::Real(rounded(pair.loads.iter().map(|load| load.rows_seen).sum())),
        _ => Figure::None,
    };
    let row = view::ComparisonRow {
        layout: pair.names.join(" + "),
        shape: pair.row_keys.join(" + "),
        marks: vec![CHEAPEST.to_owned()],
        sampled: false,
        figures: figures.columns.iter().map(known).collect(),
    };
    figures.rows.insert(0, row);
}

/// A layout that a rule refuses.
pub fn refused_text(refused: &Refused) -> String {
    format!("not chosen: {} ({}): {} {}", refused.name, refused.row_key, refused.rule, refused.message)
}

/// The page of a heatmap.
pub fn heatmap_page(
    (table, layout, metric): (&str, &Layout, &str),
    command: String,
    map: &Heatmap,
    (spread, patterns): (&Spread, &[Pattern]),
    data: Value,
) -> LayoutsPage {
    let seen = seen(spread, patterns);
    LayoutsPage {
        title: format!("Heatmap of {table}"),
        subtitle: format!("{metric}: {}, slices of {}", count(map.keys as u64, "row"), length(map.axis.width)),
        command,
        verdict: Verdict {
            headline: format!("{table}: {}.", pattern_names(patterns).join(", ")),
            ..Verdict::default()
        },
        comparison: None,
        bytes: Vec::new(),
        heatmaps: vec![view_of((table, layout), metric, false, map, spread, seen)],
        queries: None,
        findings: Vec::new(),
        cost: None,
        method: method(),
        data,
    }
}

/// The cheapest, or else the smallest; and for each query the layout that lets it see the fewest bytes.
fn verdict(comparison: &Comparison, costed: Option<Costed<'_>>) -> Verdict {
    let layouts = &comparison.layouts;
    let Some(Costed { workload, economy, prices }) = costed else {
        let least = layouts.iter().min_by_key(|layout| layout.measured.bytes.total());
        let headline = least.map(|layout| {
            format!("{} takes the fewest bytes: {}.", name(layout), grouped(layout.measured.bytes.total()))
        });
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
            "{}: {} {} a month on {}.",
            name(layout),
            range_text(own.month.0, own.month.1),
            prices.currency,
            count(own.nodes.1 as u64, "node")
        ),
    };
    let winners = workload.queries.iter().enumerate().filter_map(|(at, query)| {
        let seen = layouts.iter().zip(&economy.answers).filter_map(|(layout, answers)| {
            let asked = answers.get(at)?.asked.as_ref()?;
            Some((asked.bytes.p50, name(layout)))
        });
        let (bytes, layout) = seen.min()?;
        Some(format!("{} sees the fewest bytes in {layout}: {}.", query.name, grouped(bytes)))
    });
    let robust = format!(
        "It stays the best in {:.0} % of the workloads in which a query or the writes weigh 10 times as much, a query nothing, or rows are kept 10 times as long.",
        score.robust * 100.0
    );
    let turns = std::iter::once(robust).chain(turns(comparison, economy));
    Verdict { headline, reasons: winners.collect(), turns: turns.collect() }
}

/// For each other layout, the changes that make it the best.
pub fn turns(comparison: &Comparison, economy: &Economy) -> Vec<String> {
    let turned = economy.turns();
    let of_layout = |(at, layout): (usize, &Compared)| {
        let changes: Vec<&str> =
            turned.iter().filter(|turn| turn.layout == at).map(|turn| turn.change.as_str()).collect();
        (!changes.is_empty()).then(|| format!("{} would be the best if {}.", name(layout), changes.join(", or if ")))
    };
    comparison.layouts.iter().enumerate().filter_map(of_layout).collect()
}

/// `9,820 bytes`.
fn grouped(bytes: u64) -> String {
    let digits = bytes.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    format!("{} bytes", groups.join(","))
}

/// `475`, or `475 to 512`.
fn range_text(low: f64, high: f64) -> String {
    let [low, high] = [low, high].map(|amount| format!("{amount:.0}"));
    if low == high { low } else { format!("{low} to {high}") }
}

fn map_of(layout: &Compared, sampled: bool) -> view::Heatmap {
    let seen = seen(&layout.spread, &layout.patterns);
    view_of(
        (&layout.measured.layout, &layout.layout),
        "source rows written",
        sampled,
        &layout.heatmap,
        &layout.spread,
        seen,
    )
}

fn view_of(
    (name, layout): (&str, &Layout),
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
        segments: key_segments(layout, key),
        keys: first(at + 1) - first(at),
    };
    let mut top_share = vec![None; map.axis.slices];
    for (slice, share) in &spread.few.by_slice {
        if let Some(slot) = top_share.get_mut(*slice) {
            *slot = Some(*share);
        }
    }
    view::Heatmap {
        layout: name.to_owned(),
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

/// What the costs are of.
fn scale(costed: Costed<'_>) -> Note {
    let demand = &costed.economy.demand;
    let text = format!(
        "{:.1} source rows a second, kept {:.1} days: {} times the rows that were measured. Sizes and rates grow in proportion.",
        demand.writes_per_second,
        demand.days(),
        factor_text(demand.factor)
    );
    Note { title: "Scale".to_owned(), text: format!("{text} {ORDER}") }
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
