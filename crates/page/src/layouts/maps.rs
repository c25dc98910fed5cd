//! Heatmaps as they stand in the page, with the JSON that its script reads.

use serde::Serialize;

use crate::embed;
use crate::error::PageError;
use crate::figures::{grouped, measure, time};
use crate::heat::coarse::{CoarseTable, coarse};
use crate::heat::colours::{Scale, palette};
use crate::heat::map::{EncodedMap, encode};
use crate::heat::picture;
use crate::view::{Heatmap, Matrix};

/// Least height of a picture, pixels.
const LEAST_HEIGHT: usize = 256;
const MINUTE: i64 = 60_000_000;

/// The maps of a page.
pub(super) struct Maps {
    pub(super) shown: Vec<ShownMap>,
    pub(super) scales: Vec<ScaleText>,
    pub(super) json: String,
}

/// A map.
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
    pub(super) ticks: Vec<String>,
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
                let same = || heatmaps.iter().filter(|other| other.metric == map.metric);
                let max = same().map(|map| map.values.max()).fold(0.0, f64::max);
                let whole = same().all(|map| matches!(map.values, Matrix::Whole(_)));
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

fn scale_text(metric: &str, scale: &Scale, whole: bool) -> ScaleText {
    let text = |part: f64| {
        let value = scale.value(part);
        measure(if whole || value >= 100.0 { value.round() } else { value })
    };
    let mut ticks: Vec<String> = [0.0, 0.25, 0.5, 0.75, 1.0].map(text).to_vec();
    // The lightest colour but nothing's is that of the least value, not of none.
    if let (Some(first), true) = (ticks.first_mut(), whole) {
        *first = "1".to_owned();
    }
    let ends = (ticks.first().cloned().unwrap_or_default(), ticks.last().cloned().unwrap_or_default());
    ticks.dedup();
    ScaleText { metric: metric.to_owned(), first: ends.0, last: ends.1, ticks }
}

/// A length of time in its largest whole unit: `15 min`.
fn length(micros: i64) -> String {
    let units = [(MINUTE * 60 * 24, "d"), (MINUTE * 60, "h"), (MINUTE, "min"), (MINUTE / 60, "s")];
    let whole = units.iter().find(|(unit, _)| micros % unit == 0);
    whole.map_or(format!("{micros} µs"), |(unit, name)| format!("{} {name}", micros / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_whole_units() {
        assert_eq!([15 * MINUTE, 60 * MINUTE, 48 * 60 * MINUTE].map(length), ["15 min", "1 h", "2 d"]);
        assert_eq!((length(90_000_000), length(1)), ("90 s".to_owned(), "1 µs".to_owned()));
    }

    #[test]
    fn a_scale_of_one_has_one_end() {
        let text = scale_text("rows", &Scale::up_to(1.0), true);
        assert_eq!((text.first.as_str(), text.last.as_str()), ("1", "1"));
    }
}
