//! A heatmap as a table: few spans of time by few ranges of keys.

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

/// Sums a map.
pub(crate) fn coarse(map: &Heatmap) -> CoarseTable {
    let (slices, buckets) = (map.slices(), map.buckets.len());
    let cuts = |all: usize, most: usize| {
        let parts = all.min(most);
        (0..parts).map(move |part| (part * all / parts, (part + 1) * all / parts)).collect::<Vec<_>>()
    };
    let ranges = cuts(buckets, RANGES);
    let span = |(from, to): (usize, usize)| {
        let sum = |(first, last): (usize, usize)| {
            (from..to).flat_map(|slice| (first..last).map(move |bucket| map.at(slice, bucket))).sum::<f64>()
        };
        let share = map.top_share.get(from..to).into_iter().flatten().flatten().copied().reduce(f64::max);
        CoarseSpan {
            start: time(map.start + map.slice * i64::try_from(from).unwrap_or(0)),
            sums: ranges.iter().map(|range| measure(sum(*range))).collect(),
            share: share.map_or("–".to_owned(), |share| format!("{share:.3}")),
        }
    };
    CoarseTable {
        ranges: ranges.iter().filter_map(|(first, _)| Some(visible(&map.buckets.get(*first)?.key))).collect(),
        spans: cuts(slices, SPANS).into_iter().map(span).collect(),
        shares: !map.top_share.is_empty(),
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
