//! Bars of runs, and lines of checks.

use crate::figures::{duration, grouped, measure, time};
use crate::view::{CheckSeries, RunBar};

/// Most runs drawn, the newest.
const MOST_RUNS: usize = 120;
/// Most runs whose bars have their values above them.
const LABELLED: usize = 8;
/// Most values of a check drawn, the newest.
const MOST_POINTS: usize = 120;
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;
/// Part of a bar's place that it takes.
const BAR: f64 = 0.8;

/// Bars of runs: how long they took, and what they read.
#[derive(Default)]
pub(super) struct RunCharts {
    pub(super) charts: Vec<RunChart>,
    pub(super) rows: Vec<RunRow>,
    pub(super) from: String,
    pub(super) until: String,
    /// Number of older runs left out.
    pub(super) older: usize,
}

/// One measure of the runs.
pub(super) struct RunChart {
    pub(super) name: &'static str,
    /// The largest value, the height of the chart.
    pub(super) most: String,
    pub(super) bars: Vec<Bar>,
    /// Whether each bar has its value above it: there are few.
    pub(super) with_values: bool,
}

/// The bar of a run, in units of the drawing.
pub(super) struct Bar {
    pub(super) x: f64,
    pub(super) width: f64,
    pub(super) y: f64,
    pub(super) height: f64,
    pub(super) class: &'static str,
    pub(super) value: String,
    pub(super) says: String,
}

/// A run in the table.
pub(super) struct RunRow {
    pub(super) run: String,
    pub(super) began: String,
    pub(super) outcome: String,
    pub(super) class: &'static str,
    pub(super) seconds: String,
    pub(super) rows: String,
    pub(super) rejected: String,
    pub(super) published: String,
    pub(super) error: String,
}

impl RunCharts {
    /// The charts of runs, the oldest first.
    pub(super) fn of(runs: &[RunBar]) -> Self {
        let older = runs.len().saturating_sub(MOST_RUNS);
        let shown = &runs[older..];
        let duration = RunChart::of("duration", shown, |run| run.seconds.unwrap_or(0.0), duration);
        let rows = RunChart::of("rows read", shown, |run| run.rows as f64, |rows| format!("{} rows", measure(rows)));

        Self {
            charts: vec![duration, rows],
            from: shown.first().map_or(String::new(), |run| time(whole_seconds(run.began))),
            until: shown.last().map_or(String::new(), |run| time(whole_seconds(run.began))),
            rows: shown.iter().rev().map(row).collect(),
            older,
        }
    }
}

fn whole_seconds(micros: i64) -> i64 {
    micros.div_euclid(1_000_000) * 1_000_000
}

/// The class of an outcome: in words it stands in the table, too.
fn class(run: &RunBar) -> &'static str {
    match run.outcome.as_str() {
        "ok" => "good",
        "running" => "info",
        "partial" | "checks" => "warn",
        _ => "error",
    }
}

impl RunChart {
    /// The bars of a figure of each run, with its text.
    fn of(name: &'static str, runs: &[RunBar], of: fn(&RunBar) -> f64, text: fn(f64) -> String) -> Self {
        let most = text(runs.iter().map(of).fold(0.0, f64::max));
        Self { name, most, bars: bars(runs, of, text), with_values: runs.len() <= LABELLED }
    }
}

fn bars(runs: &[RunBar], of: fn(&RunBar) -> f64, text: fn(f64) -> String) -> Vec<Bar> {
    let most = runs.iter().map(of).fold(0.0, f64::max);
    // Few runs do not fill the width: a bar is no block.
    let place = WIDTH / runs.len().max(24) as f64;
    let bars = runs.iter().enumerate().map(|(at, run)| {
        let height = if most > 0.0 { (of(run) / most * HEIGHT).max(1.5) } else { 1.5 };
        Bar {
            x: rounded(place * at as f64),
            width: rounded(place * BAR),
            y: rounded(HEIGHT - height),
            height: rounded(height),
            class: class(run),
            value: text(of(run)).trim_end_matches(" rows").to_owned(),
            says: format!("{}: {}, {}", time(whole_seconds(run.began)), text(of(run)), run.outcome),
        }
    });
    bars.collect()
}

/// A length of a drawing, in hundredths.
fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

fn row(run: &RunBar) -> RunRow {
    RunRow {
        run: run.run.clone(),
        began: time(whole_seconds(run.began)),
        outcome: run.outcome.clone(),
        class: class(run),
        seconds: run.seconds.map_or("–".to_owned(), duration),
        rows: grouped(run.rows),
        rejected: grouped(run.rejected),
        published: grouped(run.published),
        error: run.error.clone().unwrap_or_default(),
    }
}

/// A check as a line.
pub(super) struct CheckText<'a> {
    pub(super) of: &'a CheckSeries,
    pub(super) last: String,
    pub(super) failed: usize,
    /// Points of the line, as SVG has them.
    pub(super) line: String,
    /// Where the line has values that failed.
    pub(super) failures: Vec<(f64, f64)>,
    pub(super) says: String,
}

/// Size of the drawing of a check.
const LINE: (f64, f64) = (240.0, 32.0);
/// Distance from its edge, so that a dot is not cut.
const EDGE: f64 = 4.0;

impl<'a> CheckText<'a> {
    /// The line of a check.
    pub(super) fn of(of: &'a CheckSeries) -> Self {
        let points = &of.points[of.points.len().saturating_sub(MOST_POINTS)..];
        let least = points.iter().map(|point| point.measured).min().unwrap_or(0).min(0);
        let most = points.iter().map(|point| point.measured).max().unwrap_or(0).max(least + 1);

        let mut places: Vec<(f64, f64)> = Vec::with_capacity(points.len());
        for (at, point) in points.iter().enumerate() {
            let x = EDGE + (LINE.0 - 2.0 * EDGE) * at as f64 / points.len().saturating_sub(1).max(1) as f64;
            let part = (point.measured - least) as f64 / (most - least) as f64;
            let y = LINE.1 - EDGE - (LINE.1 - 2.0 * EDGE) * part;
            places.push(((x * 10.0).round() / 10.0, (y * 10.0).round() / 10.0));
        }
        let line: Vec<String> = places.iter().map(|(x, y)| format!("{x},{y}")).collect();
        let failures = places.iter().zip(points).filter(|(_, point)| !point.passed).map(|(place, _)| *place);

        Self {
            last: points.last().map_or("–".to_owned(), |point| signed(point.measured)),
            failed: of.points.iter().filter(|point| !point.passed).count(),
            line: line.join(" "),
            failures: failures.collect(),
            says: format!("{} values from {} to {}", points.len(), signed(least), signed(most)),
            of,
        }
    }
}

/// A number with a minus sign and groups of digits.
fn signed(number: i64) -> String {
    format!("{}{}", if number < 0 { "−" } else { "" }, grouped(number.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::CheckPoint;

    #[test]
    fn the_longest_run_fills_the_height() {
        let run = |seconds, outcome: &str| RunBar { seconds, outcome: outcome.to_owned(), ..RunBar::default() };
        let charts = RunCharts::of(&[run(Some(2.0), "ok"), run(Some(8.0), "failed"), run(None, "killed")]);
        let drawn: Vec<(f64, f64, &str)> =
            charts.charts[0].bars.iter().map(|bar| (bar.y, bar.height, bar.class)).collect();
        assert_eq!(drawn, [(75.0, 25.0, "good"), (0.0, 100.0, "error"), (98.5, 1.5, "error")]);
        assert_eq!((charts.charts[0].most.as_str(), charts.rows[0].outcome.as_str()), ("8.00 s", "killed"));
        assert_eq!(RunCharts::of(&[]).rows.len(), 0);
    }

    #[test]
    fn few_runs_have_their_values_above_them() {
        let run = RunBar { seconds: Some(9_000.0), rows: 1_234_567, rejected: 12_000, ..RunBar::default() };
        let few = RunCharts::of(&vec![run.clone(); LABELLED]);
        let values: Vec<&str> = few.charts.iter().map(|chart| chart.bars[0].value.as_str()).collect();
        assert_eq!((values, few.charts[1].most.as_str()), (vec!["2 h 30 min", "1,234,567"], "1,234,567 rows"));
        assert_eq!((few.rows[0].rows.as_str(), few.rows[0].rejected.as_str()), ("1,234,567", "12,000"));
        assert!(few.charts.iter().all(|chart| chart.with_values));
        let many = RunCharts::of(&vec![run; LABELLED + 1]);
        assert!(many.charts.iter().all(|chart| !chart.with_values && chart.bars.len() == LABELLED + 1));
    }

    #[test]
    fn failures_lie_on_the_line() {
        let point = |measured, passed| CheckPoint { measured, passed, ..CheckPoint::default() };
        let series = CheckSeries { points: vec![point(0, true), point(10, false)], ..CheckSeries::default() };
        let text = CheckText::of(&series);
        assert_eq!((text.line.as_str(), text.failures), ("4,28 236,4", vec![(236.0, 4.0)]));
        assert_eq!((text.last.as_str(), text.failed), ("10", 1));
    }
}
