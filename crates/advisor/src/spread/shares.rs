//! Top shares of slices, and what they amount to.

use crate::spread::cuts::{fullest, fullest_in_hindsight};
use crate::spread::fenwick::KnownKeys;
use crate::spread::write_log::WriteLog;

/// Ranges that keys are cut into for a small cluster: about one a node of ten.
pub const FEW: u32 = 10;
/// Ranges that keys are cut into for a large cluster.
pub const MANY: u32 = 100;

/// A share of each slice that has writes, 0 to 1.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shares {
    /// Index of the slice and its share, ascending by slice.
    pub by_slice: Vec<(usize, f64)>,
}

impl Shares {
    /// The share at rank `ceil(per_mille / 1000 * n)` of ascending ones; 0 if there is none.
    pub fn quantile(&self, per_mille: usize) -> f64 {
        let mut shares: Vec<f64> = self.by_slice.iter().map(|(_, share)| *share).collect();
        shares.sort_unstable_by(f64::total_cmp);
        let rank = (shares.len() * per_mille).div_ceil(1000).max(1);
        shares.get(rank - 1).copied().unwrap_or(0.0)
    }

    /// The mean; 0 without slices.
    pub fn mean(&self) -> f64 {
        let sum: f64 = self.by_slice.iter().map(|(_, share)| share).sum();
        if self.by_slice.is_empty() { 0.0 } else { sum / self.by_slice.len() as f64 }
    }
}

/// A row that takes a great share of its slice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HotRow {
    /// Rank of its key.
    pub rank: u32,
    /// Index of the slice on the axis of the log.
    pub slice: usize,
    /// Its share of the source rows of the slice.
    pub share: f64,
    /// Its source rows in the slice.
    pub rows: u64,
}

/// How the writes of a layout spread.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spread {
    /// Top shares of 10 ranges. Slices before which no key is known have none: there is nothing to cut.
    pub few: Shares,
    /// Top shares of 100 ranges.
    pub many: Shares,
    /// Top shares of 10 ranges that are cut best for the slice.
    pub hindsight: Shares,
    /// Share of the row with the most writes.
    pub rows: Shares,
    /// The row of the greatest share; of several, the first.
    pub hottest_row: Option<HotRow>,
    /// The row of the most source rows in a slice; of several, the first.
    pub busiest_row: Option<HotRow>,
    /// Mean place of the writes in the last tenth of the slices with writes less that in the first tenth: 1 if they went from
    /// the first key to the last, -1 the other way. The place of key r of n is (r + 1/2) / n.
    pub travel: f64,
    /// Source rows of each slice.
    pub totals: Vec<u64>,
    /// Row keys written in each slice.
    pub written: Vec<u32>,
}

/// Measures how the writes of a log spread over the keys: before each slice, the keys known so far are cut into ranges.
pub fn spread(log: &WriteLog) -> Spread {
    let mut known = KnownKeys::new(log.keys);
    let mut out = Spread::default();
    let (mut places, mut rows, mut new) = (Vec::new(), Vec::new(), Vec::new());
    for slice in 0..log.axis.slices {
        rows.clear();
        new.clear();
        for write in log.writes(slice) {
            if write.rows > 0 {
                rows.push((write.rank, write.rows));
            }
            if write.is_new {
                new.push(write.rank);
            }
        }

        let total = log.total_of(slice);
        out.totals.push(total);
        out.written.push(u32::try_from(rows.len()).unwrap_or(u32::MAX));
        if total > 0 {
            out.add_slice(slice, &known, &rows, total as f64);
            let sum: f64 = rows.iter().map(|(rank, rows)| (f64::from(*rank) + 0.5) * f64::from(*rows)).sum();
            places.push((sum / f64::from(log.keys), total));
        }
        new.iter().for_each(|rank| known.insert(*rank));
    }
    out.travel = travel(&places);
    out
}

impl Spread {
    /// Adds the shares of a slice. `known` are the keys of earlier slices; `rows` are ranks with their source rows, ascending,
    /// `total` in all.
    fn add_slice(&mut self, slice: usize, known: &KnownKeys, rows: &[(u32, u32)], total: f64) {
        if known.len() > 0 {
            self.few.by_slice.push((slice, fullest(known, FEW, rows) as f64 / total));
            self.many.by_slice.push((slice, fullest(known, MANY, rows) as f64 / total));
        }
        self.hindsight.by_slice.push((slice, fullest_in_hindsight(FEW, rows) as f64 / total));

        let (rank, most) = rows.iter().fold((0, 0), |most, row| if row.1 > most.1 { *row } else { most });
        let row = HotRow { rank, slice, share: f64::from(most) / total, rows: most.into() };
        self.rows.by_slice.push((slice, row.share));
        if self.hottest_row.is_none_or(|hottest| hottest.share < row.share) {
            self.hottest_row = Some(row);
        }
        if self.busiest_row.is_none_or(|busiest| busiest.rows < row.rows) {
            self.busiest_row = Some(row);
        }
    }
}

/// Mean place in the last tenth of slices less that in the first; each slice has the sum of its places and its rows.
fn travel(places: &[(f64, u64)]) -> f64 {
    let tenth = (places.len() / 10).max(1);
    let first = places.get(..tenth).unwrap_or_default();
    let last = places.get(places.len().saturating_sub(tenth)..).unwrap_or_default();
    let [first, last] = [first, last].map(|slices| {
        let (sum, rows) = slices.iter().fold((0.0, 0), |(sum, rows), slice| (sum + slice.0, rows + slice.1));
        if rows == 0 { 0.0 } else { sum / rows as f64 }
    });
    last - first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spread::axis::Axis;
    use crate::trial::Write;

    fn log(keys: &[&[(i64, u64)]], slices: i64) -> WriteLog {
        let mut log = WriteLog::new(Axis { start: 0, width: 10, slices: usize::try_from(slices).unwrap() });
        for writes in keys {
            let writes = writes.iter().map(|(second, rows)| Write { second: *second, rows: *rows });
            log.add_key(writes.collect::<Vec<_>>());
        }
        log
    }

    #[test]
    fn keys_that_grow_land_in_the_last_range() {
        // Key i is written in slice i only.
        let keys: Vec<Vec<(i64, u64)>> = (0..20).map(|slice| vec![(slice * 10, 5)]).collect();
        let log = log(&keys.iter().map(Vec::as_slice).collect::<Vec<_>>(), 20);
        let spread = spread(&log);
        assert_eq!(spread.few.by_slice.len(), 19, "the first slice knows no key");
        assert_eq!((spread.few.quantile(500), spread.rows.quantile(500)), (1.0, 1.0));
        // Two slices are a tenth: 18.5 + 0.5 less 0.5 + 0.5, of 20.
        assert!((spread.travel - 0.9).abs() < 1e-12, "{}", spread.travel);
        assert_eq!(spread.totals, [5; 20]);
    }

    #[test]
    fn keys_written_each_time_share_evenly() {
        let every: Vec<(i64, u64)> = (0..30).map(|slice| (slice * 10 + 3, 1)).collect();
        let log = log(&vec![every.as_slice(); 40], 30);
        let spread = spread(&log);
        for shares in [&spread.few, &spread.hindsight] {
            assert_eq!((shares.quantile(500), shares.quantile(1000)), (0.1, 0.1));
        }
        // 40 keys in 100 ranges.
        assert_eq!(spread.many.quantile(1000), 1.0 / 40.0);
        assert_eq!((spread.travel, log.total()), (0.0, 1200));
    }

    #[test]
    fn the_hottest_row_is_that_of_the_greatest_share() {
        let log = log(&[&[(1, 2), (9, 3), (10, 4)], &[(0, 1)]], 2);
        let hottest = spread(&log).hottest_row.unwrap();
        assert_eq!((hottest.rank, hottest.slice, hottest.rows), (0, 1, 4));
    }
}
