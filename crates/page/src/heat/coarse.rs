//! A heatmap as a table: few spans of time by few ranges of keys.

use std::ops::Range;

use crate::figures::{measure, time, visible};
use crate::view::Heatmap;

/// Most rows of the table: spans of time.
const SPANS: usize = 12;
/// Most columns: ranges of keys.
const RANGES: usize = 8;

/// Sums of a heatmap.
#[derive(Debug, PartialEq)]
pub(crate) struct CoarseTable {
    /// First key of each range.
    pub(crate) ranges: Vec<String>,
    /// Start of each span, its sums by range, and the largest top share in it.
    pub(crate) spans: Vec<CoarseSpan>,
    /// Whether the map has top shares.
    pub(crate) shares: bool,
}

/// A span of time.
#[derive(Debug, PartialEq)]
pub(crate) struct CoarseSpan {
    pub(crate) start: String,
    pub(crate) sums: Vec<String>,
    pub(crate) share: String,
}

/// Sums the cells of a map over spans of time and ranges of keys, as a table for readers without pictures.
pub(crate) fn coarse(map: &Heatmap) -> CoarseTable {
    let (slices, buckets) = (map.slices(), map.buckets.len());
    let ranges = cuts(buckets, RANGES);
    let spans = cuts(slices, SPANS);

    CoarseTable {
        ranges: ranges.iter().filter_map(|range| Some(visible(&map.buckets.get(range.start)?.key))).collect(),
        spans: spans.into_iter().map(|slices| span(map, slices, &ranges)).collect(),
        shares: !map.top_share.is_empty(),
    }
}

/// About equal parts of `0..all`, at most `most` of them.
fn cuts(all: usize, most: usize) -> Vec<Range<usize>> {
    let parts = all.min(most);
    (0..parts).map(|part| part * all / parts..(part + 1) * all / parts).collect()
}

/// The sums of a span of slices in each range of buckets, and the greatest top share of its slices.
fn span(map: &Heatmap, slices: Range<usize>, ranges: &[Range<usize>]) -> CoarseSpan {
    let sums = ranges.iter().map(|buckets| {
        let cells = slices.clone().flat_map(|slice| buckets.clone().map(move |bucket| map.at(slice, bucket)));
        measure(cells.sum::<f64>())
    });
    let share = map.top_share.get(slices.clone()).into_iter().flatten().flatten().copied().reduce(f64::max);
    CoarseSpan {
        start: time(map.start + map.slice * i64::try_from(slices.start).unwrap_or(0)),
        sums: sums.collect(),
        share: share.map_or("–".to_owned(), |share| format!("{share:.3}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{Bucket, Matrix};

    #[test]
    fn sums_stay_whatever_the_cuts() {
        let map = Heatmap {
            layout: String::new(),
            metric: String::new(),
            sampled: false,
            buckets: (0..21).map(|at| Bucket { key: format!("k{at}"), ..Bucket::default() }).collect(),
            start: 0,
            slice: 60_000_000,
            values: Matrix::Whole((0..21 * 29).collect()),
            top_share: vec![Some(0.25); 29],
            seen: Vec::new(),
        };
        let table = coarse(&map);
        assert_eq!((table.ranges.len(), table.spans.len()), (RANGES, SPANS));
        let sums = table.spans.iter().flat_map(|span| &span.sums);
        let total: u64 = sums.map(|sum| sum.replace(',', "").parse::<u64>().unwrap()).sum();
        assert_eq!(total, (0..21 * 29).sum::<u64>());
        assert_eq!((table.ranges[1].as_str(), table.spans[1].start.as_str()), ("k2", "1970-01-01 00:02"));
    }
}
