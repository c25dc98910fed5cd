//! Heatmaps as they stand in the page, with the JSON that its script reads.

use serde::Serialize;

use crate::embed;
use crate::error::PageError;
use crate::figures::{decimals, grouped, length, time};
use crate::heat::coarse::{CoarseTable, coarse};
use crate::heat::colours::{Scale, palette};
use crate::heat::map::{EncodedMap, encode};
use crate::heat::picture;
use crate::view::{Heatmap, Matrix};

/// Least height of a picture, pixels.
const LEAST_HEIGHT: usize = 256;
/// Where a drawn scale begins, and its width.
const LEFT: f64 = 24.0;
const WIDTH: f64 = 310.0;
/// Pixels between two values beside a scale.
const APART: f64 = 30.0;

/// The maps of a page.
pub(super) struct Maps {
    pub(super) shown: Vec<ShownMap>,
    pub(super) scales: Vec<ScaleText>,
    pub(super) json: String,
}

/// A map as the template shows it: a picture, and what it is in words.
pub(super) struct ShownMap {
    pub(super) layout: String,
    pub(super) metric: String,
    pub(super) sampled: bool,
    pub(super) seen: Vec<String>,
    /// A `data:` URL, empty without values.
    pub(super) picture: String,
    pub(super) height: usize,
    pub(super) slices: usize,
    pub(super) buckets: usize,
    pub(super) from: String,
    pub(super) until: String,
    /// Its size in words.
    pub(super) says: String,
    pub(super) coarse: CoarseTable,
}

/// A scale of colours with what it means.
pub(super) struct ScaleText {
    pub(super) metric: String,
    pub(super) first: String,
    pub(super) last: String,
    pub(super) ticks: Vec<Tick>,
}

/// A value beside a scale.
pub(super) struct Tick {
    pub(super) x: f64,
    pub(super) text: String,
}

#[derive(Serialize)]
struct MapsJson<'a> {
    palette: Vec<u32>,
    /// The axis of time that all maps share, microseconds since the epoch.
    span: (i64, i64),
    maps: Vec<EncodedMap<'a>>,
}

impl Maps {
    /// The maps of a page. Those with the same metric share a scale.
    pub(super) fn of(heatmaps: &[Heatmap]) -> Result<Self, PageError> {
        let mut scales: Vec<(&str, Scale, bool)> = Vec::new();
        for map in heatmaps {
            if !scales.iter().any(|(metric, ..)| *metric == map.metric) {
                let same: Vec<&Heatmap> = heatmaps.iter().filter(|other| other.metric == map.metric).collect();
                let max = same.iter().map(|map| map.values.max()).fold(0.0, f64::max);
                let whole = same.iter().all(|map| matches!(map.values, Matrix::Whole(_)));
                scales.push((&map.metric, Scale::up_to(max), whole));
            }
        }

        let scaled: Vec<(&Heatmap, &Scale)> = heatmaps
            .iter()
            .filter_map(|map| Some((map, &scales.iter().find(|(metric, ..)| *metric == map.metric)?.1)))
            .collect();

        let drawn: Vec<&(&Heatmap, &Scale)> = scaled.iter().filter(|(map, _)| !map.values.is_empty()).collect();
        let json = MapsJson {
            palette: palette().iter().map(|[r, g, b]| u32::from_be_bytes([0, *r, *g, *b])).collect(),
            span: (
                drawn.iter().map(|(map, _)| map.start).min().unwrap_or(0),
                drawn.iter().map(|(map, _)| map.end()).max().unwrap_or(0),
            ),
            maps: scaled.iter().map(|(map, scale)| encode(map, scale)).collect::<Result<_, _>>()?,
        };

        Ok(Self {
            shown: scaled.iter().map(|(map, scale)| shown(map, scale)).collect::<Result<_, _>>()?,
            json: embed::json(&json)?,
            scales: scales.iter().map(|(metric, scale, whole)| scale_text(metric, scale, *whole)).collect(),
        })
    }
}

fn shown(map: &Heatmap, scale: &Scale) -> Result<ShownMap, PageError> {
    let (slices, buckets) = (map.slices(), map.buckets.len());
    let keys: u64 = map.buckets.iter().map(|bucket| bucket.keys).sum();

    Ok(ShownMap {
        layout: map.layout.clone(),
        metric: map.metric.clone(),
        sampled: map.sampled,
        seen: map.seen.clone(),
        picture: if map.values.is_empty() { String::new() } else { picture::url(map, scale)? },
        height: buckets.max(LEAST_HEIGHT),
        slices,
        buckets,
        from: time(map.start),
        until: time(map.end()),
        says: format!(
            "{} slices of {}; {} row keys in {} ranges of about equal number",
            grouped(slices as u64),
            length(map.slice),
            grouped(keys),
            grouped(buckets as u64)
        ),
        coarse: coarse(map),
    })
}

/// The colours of a scale in steps that can be drawn: where each begins, and the colour.
pub(super) fn steps() -> Vec<(f64, String)> {
    let colours = palette().into_iter().skip(1).step_by(4).enumerate();
    colours.map(|(at, [r, g, b])| (LEFT + 5.0 * at as f64, format!("#{r:02x}{g:02x}{b:02x}"))).collect()
}

fn scale_text(metric: &str, scale: &Scale, whole: bool) -> ScaleText {
    let top = scale.max.ln_1p();
    let least = if whole { 1.0 } else { scale.max / 1000.0 };
    // 1, 2, 5, 10, 20, 50 and so on, where there is room; the largest value always.
    let decade = least.log10().floor() as i32;
    let round = (decade..decade + 24).flat_map(|tens| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(tens)));
    let mut ticks: Vec<Tick> = Vec::new();
    for value in round.filter(|value| *value >= least && *value < scale.max) {
        let x = place(value, top);
        let is_free = ticks.last().is_none_or(|last| x - last.x >= APART);
        if is_free && place(scale.max, top) - x >= APART {
            ticks.push(Tick { x, text: short(value) });
        }
    }
    ticks.push(Tick { x: place(scale.max, top), text: short(scale.max) });

    let first = ticks.first().map(|tick| tick.text.clone()).unwrap_or_default();
    ScaleText { metric: metric.to_owned(), first, last: short(scale.max), ticks }
}

/// Where a value stands beside a scale that ends at the logarithm `top`, in pixels with one decimal.
fn place(value: f64, top: f64) -> f64 {
    ((LEFT + WIDTH * value.ln_1p() / top) * 10.0).round() / 10.0
}

/// A value in few letters: `20`, `1.5k`, `0.05`.
fn short(value: f64) -> String {
    let (value, unit) = match value {
        _ if value >= 1e9 => (value / 1e9, "G"),
        _ if value >= 1e6 => (value / 1e6, "M"),
        _ if value >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let places = if value >= 100.0 {
        0
    } else if value >= 1.0 {
        1
    } else {
        3
    };
    let text = decimals(value, places);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_has_round_values_with_room_between() {
        let ticks = |max, whole| -> Vec<(f64, String)> {
            scale_text("rows", &Scale::up_to(max), whole).ticks.into_iter().map(|tick| (tick.x, tick.text)).collect()
        };
        assert_eq!(ticks(1.0, true), [(334.0, "1".to_owned())]);
        let texts: Vec<String> = ticks(36.0, true).into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["1", "2", "5", "10", "20", "36"]);
        for max in [3.0, 50.0, 1234.0, 1e6, 3e12] {
            assert!(ticks(max, true).windows(2).all(|pair| pair[1].0 - pair[0].0 >= APART), "{max}");
        }
        assert_eq!([0.05, 20.0, 1234.0, 15_000.0, 3.2e6].map(short), ["0.05", "20", "1,234", "15k", "3.2M"]);
    }
}
