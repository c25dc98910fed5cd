//! A heatmap: time by key range.

use serde::{Deserialize, Serialize};

/// Values of slices of time by ranges of row keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Heatmap {
    /// Name of the layout or table.
    pub layout: String,
    /// What is counted, such as `source rows written`.
    pub metric: String,
    /// Whether it is of a sample: values are marked `~`.
    pub sampled: bool,
    /// Ranges of row keys in key order.
    pub buckets: Vec<Bucket>,
    /// Start of the first slice, microseconds since the epoch.
    pub start: i64,
    /// Length of every slice, microseconds. Empty slices between others count, too.
    pub slice: i64,
    /// What was counted in each slice and bucket.
    pub values: Matrix,
    /// Share of a slice's rows in its fullest range of tablets, 0 to 1; `None` where nothing was written. Empty, or
    /// one a slice.
    pub top_share: Vec<Option<f64>>,
    /// What a detector sees, each a sentence with numbers.
    pub seen: Vec<String>,
}

/// A range of row keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// The first row key as text; bytes that are not text are escaped.
    pub key: String,
    /// The same by segment of the key's template, outermost first; equal neighbours share one label. May be empty.
    pub segments: Vec<String>,
    /// Number of row keys in the range.
    pub keys: u64,
}

/// Values by slice, then bucket: that of slice `s` and bucket `b` is at `s * buckets + b`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Matrix {
    /// Counts, such as rows or bytes.
    Whole(Vec<u64>),
    /// Measures, finite and not negative.
    Real(Vec<f64>),
}

impl Matrix {
    /// The number of values, of all slices.
    pub fn len(&self) -> usize {
        match self {
            Self::Whole(values) => values.len(),
            Self::Real(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at `at`; 0 beyond the end. Counts above 2^53 are rounded.
    pub fn at(&self, at: usize) -> f64 {
        match self {
            Self::Whole(values) => values.get(at).map_or(0.0, |value| *value as f64),
            Self::Real(values) => values.get(at).copied().unwrap_or(0.0),
        }
    }

    /// The largest value, 0 without any.
    pub fn max(&self) -> f64 {
        (0..self.len()).map(|at| self.at(at)).fold(0.0, f64::max)
    }
}

impl Heatmap {
    /// The number of slices, empty ones included.
    pub fn slices(&self) -> usize {
        self.values.len().checked_div(self.buckets.len()).unwrap_or(0)
    }

    /// End of the last slice, microseconds since the epoch.
    pub fn end(&self) -> i64 {
        let slices = i64::try_from(self.slices()).unwrap_or(i64::MAX);
        self.start.saturating_add(self.slice.saturating_mul(slices))
    }

    /// The value of a slice and a bucket.
    pub fn at(&self, slice: usize, bucket: usize) -> f64 {
        self.values.at(slice * self.buckets.len() + bucket)
    }

    /// The map with half the slices: each is the sum of two neighbours, the last of one if their number is odd. Top
    /// shares become the greater of two.
    #[must_use]
    pub fn halved(&self) -> Self {
        let width = self.buckets.len().max(1);
        let values = match &self.values {
            Matrix::Whole(values) => Matrix::Whole(pairs(values, width, |a, b| a.saturating_add(b))),
            Matrix::Real(values) => Matrix::Real(pairs(values, width, |a, b| a + b)),
        };
        let shares = self.top_share.chunks(2).map(|pair| pair.iter().flatten().copied().reduce(f64::max)).collect();
        Self { slice: self.slice.saturating_mul(2), values, top_share: shares, ..self.clone() }
    }
}

fn pairs<T: Copy>(values: &[T], width: usize, add: impl Fn(T, T) -> T) -> Vec<T> {
    let mut sums = Vec::with_capacity(values.len() / 2 + width);
    for pair in values.chunks(2 * width) {
        let (first, second) = pair.split_at(width.min(pair.len()));
        sums.extend(
            first.iter().enumerate().map(|(at, value)| second.get(at).map_or(*value, |other| add(*value, *other))),
        );
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_keeps_the_sum() {
        let map = Heatmap {
            layout: "L".to_owned(),
            metric: "rows".to_owned(),
            sampled: false,
            buckets: vec![Bucket::default(); 2],
            start: 100,
            slice: 10,
            values: Matrix::Whole(vec![1, 2, 3, 4, 5, 6]),
            top_share: vec![Some(0.5), Some(0.7), None],
            seen: Vec::new(),
        };
        let half = map.halved();
        assert_eq!(half.values, Matrix::Whole(vec![4, 6, 5, 6]));
        assert_eq!((half.start, half.slice, half.slices(), half.end()), (100, 20, 2, 140));
        assert_eq!(half.top_share, [Some(0.7), None]);
    }
}
