//! A heatmap as the page's script reads it.
//!
//! Values by slice, then bucket. Counts are LEB128 (seven bits a byte, the lowest first), measures are little-endian
//! doubles; both are deflated without a header and written in base64. A million counts so take about as much as their
//! picture.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;

use super::colours::Scale;
use crate::error::PageError;
use crate::view::{Heatmap, Matrix};

/// Most places where labels of one segment change, for them to be kept: beyond that, whole keys say more.
const MOST_CHANGES: usize = 250;

/// A heatmap in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct EncodedMap<'a> {
    layout: &'a str,
    metric: &'a str,
    sampled: bool,
    /// Microseconds since the epoch.
    start: i64,
    /// Length of a slice, microseconds.
    slice: i64,
    slices: usize,
    /// First row key of each bucket.
    keys: Vec<&'a str>,
    /// Number of row keys in each bucket.
    counts: Vec<u64>,
    /// By segment of the key's template: buckets where it changes, and what to.
    changes: Vec<Vec<(usize, &'a str)>>,
    /// How `values` are encoded: `varint` or `f64`.
    encoding: &'static str,
    /// Base64 of the deflated values.
    values: String,
    top_share: &'a [Option<f64>],
    /// Least value of each colour.
    least: &'a [f64],
}

/// Checks that a map is a rectangle.
pub(crate) fn check(map: &Heatmap) -> Result<(), PageError> {
    let (values, buckets, slices) = (map.values.len(), map.buckets.len(), map.slices());
    if slices * buckets != values || map.slice <= 0 {
        return Err(PageError::Matrix { layout: map.layout.clone(), values, buckets });
    }
    let shares = map.top_share.len();
    if shares != 0 && shares != slices {
        return Err(PageError::TopShare { layout: map.layout.clone(), shares, slices });
    }
    Ok(())
}

/// Encodes a map for the script of the page: its values as varints or floats, deflated, in Base64.
pub(crate) fn encode<'a>(map: &'a Heatmap, scale: &'a Scale) -> Result<EncodedMap<'a>, PageError> {
    let (encoding, values) = match &map.values {
        Matrix::Whole(values) => ("varint", varints(values)),
        Matrix::Real(values) => ("f64", values.iter().flat_map(|value| value.to_le_bytes()).collect()),
    };

    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::best());
    deflate.write_all(&values)?;

    Ok(EncodedMap {
        layout: &map.layout,
        metric: &map.metric,
        sampled: map.sampled,
        start: map.start,
        slice: map.slice,
        slices: map.slices(),
        keys: map.buckets.iter().map(|bucket| bucket.key.as_str()).collect(),
        counts: map.buckets.iter().map(|bucket| bucket.keys).collect(),
        changes: changes(map),
        encoding,
        values: STANDARD.encode(deflate.finish()?),
        top_share: &map.top_share,
        least: &scale.least,
    })
}

fn varints(values: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len());
    for value in values {
        let mut rest = *value;
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    }
    bytes
}

/// Where the labels of each segment change; a segment that changes too often ends the list.
fn changes(map: &Heatmap) -> Vec<Vec<(usize, &str)>> {
    let depth = map.buckets.iter().map(|bucket| bucket.segments.len()).max().unwrap_or(0);
    let mut levels = Vec::new();
    for level in 1..=depth {
        let mut found = Vec::new();
        let mut last = None;
        for (at, bucket) in map.buckets.iter().enumerate() {
            // Equal labels under different outer ones are different places.
            let path = bucket.segments.get(..level.min(bucket.segments.len()));
            if last != Some(path) {
                found.push((at, bucket.segments.get(level - 1).map_or("", String::as_str)));
                last = Some(path);
            }
        }
        if found.len() > MOST_CHANGES {
            break;
        }
        levels.push(found);
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Bucket;

    #[test]
    fn counts_are_seven_bits_a_byte() {
        assert_eq!(varints(&[0, 127, 128, 300]), [0, 127, 0x80, 1, 0xac, 2]);
        assert_eq!(varints(&[u64::MAX]).len(), 10);
    }

    #[test]
    fn labels_change_with_outer_ones() {
        let bucket = |a: &str, b: &str| Bucket { segments: vec![a.to_owned(), b.to_owned()], ..Bucket::default() };
        let map = Heatmap {
            layout: String::new(),
            metric: String::new(),
            sampled: false,
            buckets: vec![bucket("A", "1"), bucket("A", "2"), bucket("B", "2")],
            start: 0,
            slice: 1,
            values: Matrix::Whole(vec![0; 3]),
            top_share: Vec::new(),
            seen: Vec::new(),
        };
        assert_eq!(changes(&map), [vec![(0, "A"), (2, "B")], vec![(0, "1"), (1, "2"), (2, "2")]]);
        assert!(check(&map).is_ok());
        assert!(check(&Heatmap { values: Matrix::Whole(vec![0; 4]), ..map.clone() }).is_err());
        assert!(check(&Heatmap { top_share: vec![None; 2], ..map.clone() }).is_err());
        assert!(check(&Heatmap { slice: 0, ..map }).is_err());
    }
}
