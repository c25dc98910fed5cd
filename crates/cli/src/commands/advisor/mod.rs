//! Commands that measure layouts.

pub mod advise;
pub mod compare;
mod data;
mod declared;
mod economy;
mod findings;
pub mod heatmap;
mod raster;
mod report;
mod sections;

use chrono::DateTime;
use serde_json::{Value, json};
use tidetable_advisor::heatmap::Pattern;
use tidetable_advisor::spread::Shares;
use tidetable_advisor::trial::Outliers;
use tidetable_layout::time::SECOND;

use crate::output::values::count;

/// Decimals of shares, in tables and JSON.
const DECIMALS: f64 = 1e6;

/// Microseconds of a second since the epoch.
fn micros(second: i64) -> i64 {
    second.saturating_mul(SECOND)
}

fn rounded(share: f64) -> f64 {
    (share * DECIMALS).round() / DECIMALS
}

fn shares(shares: &Shares) -> Value {
    let quantile = |part| rounded(shares.quantile(part));
    json!({ "p50": quantile(500), "p95": quantile(950), "max": quantile(1000), "mean": rounded(shares.mean()) })
}

/// Three decimals, as in 0.100.
fn share_text(share: f64) -> String {
    format!("{share:.3}")
}

fn pattern_names(patterns: &[Pattern]) -> Vec<&'static str> {
    patterns.iter().map(|pattern| pattern.name()).collect()
}

/// What a person should know of rows whose times are far from those of all others.
fn outliers_text(outliers: Outliers) -> String {
    let time = DateTime::from_timestamp_micros(outliers.farthest).unwrap_or_default();
    let rows = count(outliers.rows, "source row");
    format!(
        "outliers: {rows} far from all others in time, up to {}; shares are of the slices without them.",
        time.format("%Y-%m-%d")
    )
}

/// The command that was given, for pages.
fn command_line() -> String {
    let words = std::env::args().skip(1).collect::<Vec<_>>();
    format!("tidetable {}", words.join(" "))
}
