//! The matrix of a heatmap.

use crate::spread::{Axis, WriteLog};

/// Most buckets of row keys.
pub const MOST_BUCKETS: u32 = 1000;

/// A matrix of counts by bucket of row keys and slice of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heatmap {
    /// The slices of time, which are its columns.
    pub axis: Axis,
    /// The number of row keys, which the buckets divide.
    pub keys: u32,
    /// First row key of each bucket, empty until it is set; bucket b of B holds the ranks from `floor(b * keys / B)` to before
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

    /// The writes of a log. The names of its buckets are those of [`Self::first_ranks`].
    pub fn of_log(log: &WriteLog) -> Self {
        let mut map = Self::new(log.axis, log.keys);
        for (slice, counts) in map.counts.chunks_mut(map.buckets.len().max(1)).enumerate() {
            let (mut bucket, mut end) = (0, 0);
            for write in log.writes(slice) {
                // Ranks ascend, and so do their buckets.
                if write.rank >= end {
                    bucket = bucket_of(write.rank, log.keys);
                    end = first_rank(bucket + 1, log.keys);
                }
                if let Some(count) = counts.get_mut(bucket) {
                    *count += u64::from(write.rows);
                }
            }
        }
        map
    }

    /// The rank of the first key of each bucket.
    pub fn first_ranks(&self) -> Vec<u32> {
        (0..self.buckets.len()).map(|bucket| first_rank(bucket, self.keys)).collect()
    }

    /// Adds to the cell of a row key and a slice.
    pub fn add(&mut self, rank: u32, slice: usize, count: u64) {
        let at = slice * self.buckets.len() + bucket_of(rank, self.keys);
        if let Some(cell) = self.counts.get_mut(at) {
            *cell += count;
        }
    }

    /// Adds the counts of a heatmap of the same keys and slices.
    pub fn add_all(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(own, count)| *own += count);
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

/// The bucket of a rank, of so many keys.
fn bucket_of(rank: u32, keys: u32) -> usize {
    let buckets = u64::from(keys.min(MOST_BUCKETS));
    (((u64::from(rank) + 1) * buckets).saturating_sub(1) / u64::from(keys.max(1))) as usize
}

/// The rank of the first key of a bucket; that after the last one is the number of keys.
fn first_rank(bucket: usize, keys: u32) -> u32 {
    (bucket as u64 * u64::from(keys) / u64::from(keys.clamp(1, MOST_BUCKETS))) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Write;

    #[test]
    fn buckets_hold_equal_counts_and_nothing_is_lost() {
        let axis = Axis { start: 0, width: 1, slices: 7 };
        for keys in [1_u32, 3, 999, 1000, 1001, 2500, 12_345] {
            let (mut map, mut log) = (Heatmap::new(axis, keys), WriteLog::new(axis));
            let mut sizes = vec![0_u32; map.buckets.len()];
            let firsts = map.first_ranks();
            for rank in 0..keys {
                let bucket = bucket_of(rank, keys);
                assert!(firsts[bucket] <= rank && firsts.get(bucket + 1).is_none_or(|next| rank < *next));
                sizes[bucket] += 1;
                map.add(rank, rank as usize % 7, 2);
                log.add_key([Write { second: i64::from(rank % 7), rows: 2 }]);
            }
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
            assert_eq!(Heatmap::of_log(&log), map);
            for (lines, columns) in [(1, 1), (20, 5), (5000, 5000)] {
                let reduced: u64 = map.reduced(lines, columns).iter().flatten().sum();
                assert_eq!((reduced, map.total()), (u64::from(keys) * 2, u64::from(keys) * 2));
            }
        }
    }
}
