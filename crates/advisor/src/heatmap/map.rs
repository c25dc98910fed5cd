//! The matrix of a heatmap.

use crate::error::Result;
use crate::spread::{Axis, WriteLog};

/// Most buckets of row keys.
pub const MOST_BUCKETS: u32 = 1000;

/// A matrix of counts by bucket of row keys and slice of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heatmap {
    /// The slices.
    pub axis: Axis,
    /// Row keys.
    pub keys: u32,
    /// First row key of each bucket; bucket b of B holds the ranks from `floor(b * keys / B)` to before
    /// `floor((b + 1) * keys / B)`.
    pub buckets: Vec<Vec<u8>>,
    /// By slice, then by bucket.
    counts: Vec<u64>,
}

impl Heatmap {
    /// An empty heatmap of so many row keys.
    pub fn new(axis: Axis, keys: u32) -> Self {
        let buckets = keys.min(MOST_BUCKETS) as usize;
        Self { axis, keys, buckets: vec![Vec::new(); buckets], counts: vec![0; buckets * axis.slices] }
    }

    /// The writes of a log. `each_key` passes the row keys in order, of which the first of each bucket are kept.
    ///
    /// # Errors
    /// Those of `each_key`.
    pub fn of_log(log: &WriteLog, each_key: impl FnOnce(&mut dyn FnMut(&[u8])) -> Result<()>) -> Result<Self> {
        let mut map = Self::new(log.axis, log.keys);
        for (slice, writes) in log.slices.iter().enumerate() {
            writes.rows.iter().for_each(|(rank, rows)| map.add(*rank, slice, u64::from(*rows)));
        }
        let mut rank = 0;
        each_key(&mut |key| {
            map.name(rank, key);
            rank += 1;
        })?;
        Ok(map)
    }

    /// The bucket of a rank.
    pub fn bucket_of(&self, rank: u32) -> usize {
        let (buckets, keys) = (self.buckets.len() as u64, u64::from(self.keys.max(1)));
        (((u64::from(rank) + 1) * buckets).saturating_sub(1) / keys) as usize
    }

    /// Adds to the cell of a row key and a slice.
    pub fn add(&mut self, rank: u32, slice: usize, count: u64) {
        let at = slice * self.buckets.len() + self.bucket_of(rank);
        if let Some(cell) = self.counts.get_mut(at) {
            *cell += count;
        }
    }

    /// Keeps the key of a rank if it is the first of its bucket.
    pub fn name(&mut self, rank: u32, key: &[u8]) {
        let bucket = self.bucket_of(rank);
        if let Some(name) = self.buckets.get_mut(bucket).filter(|name| name.is_empty()) {
            name.extend_from_slice(key);
        }
    }

    /// The counts of a slice, by bucket.
    pub fn slice(&self, slice: usize) -> &[u64] {
        let buckets = self.buckets.len();
        self.counts.get(slice * buckets..(slice + 1) * buckets).unwrap_or_default()
    }

    /// The sum of all cells.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Sums over at most `lines` runs of buckets and `columns` runs of slices: by line, then by column.
    pub fn reduced(&self, lines: usize, columns: usize) -> Vec<Vec<u64>> {
        let (buckets, slices) = (self.buckets.len(), self.axis.slices);
        let (lines, columns) = (lines.min(buckets), columns.min(slices));
        let mut out = vec![vec![0; columns]; lines];
        for slice in 0..slices {
            for (bucket, count) in self.slice(slice).iter().enumerate() {
                let line = out.get_mut(bucket * lines / buckets.max(1));
                if let Some(cell) = line.and_then(|line| line.get_mut(slice * columns / slices.max(1))) {
                    *cell += count;
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_equal_counts_and_nothing_is_lost() {
        let axis = Axis { start: 0, width: 1, slices: 7 };
        for keys in [1_u32, 3, 999, 1000, 1001, 2500, 12_345] {
            let mut map = Heatmap::new(axis, keys);
            let mut sizes = vec![0_u32; map.buckets.len()];
            for rank in 0..keys {
                let bucket = map.bucket_of(rank);
                let buckets = map.buckets.len() as u64;
                let first = |bucket: u64| bucket * u64::from(keys) / buckets;
                assert!(first(bucket as u64) <= rank.into() && u64::from(rank) < first(bucket as u64 + 1));
                sizes[bucket] += 1;
                map.name(rank, rank.to_string().as_bytes());
                map.add(rank, rank as usize % 7, 2);
            }
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
            assert_eq!(map.buckets[0], b"0");
            for (lines, columns) in [(1, 1), (20, 5), (5000, 5000)] {
                let reduced: u64 = map.reduced(lines, columns).iter().flatten().sum();
                assert_eq!((reduced, map.total()), (u64::from(keys) * 2, u64::from(keys) * 2));
            }
        }
    }
}
