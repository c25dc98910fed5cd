//! Announces the stripes of a scan before they are read, so that a bucket is asked for many at a time.

use std::ops::Range;

use tidetable_sstable::Reader;

/// Bytes announced at a time. While one batch is read, the next is fetched.
const BATCH: u64 = 8 << 20;

/// How far the stripes of an SST are announced.
#[derive(Debug, Default)]
pub(super) struct StripesAhead {
    /// The stripe that is read when the next batch is announced.
    trigger: usize,
    /// The end of the stripes that are announced.
    end: usize,
}

impl StripesAhead {
    /// Announces what follows, before stripe `index` of those up to `last` is read. Skipped stripes are not announced.
    pub(super) fn before(&mut self, index: usize, last: usize, skipped: &[bool], reader: &Reader) {
        let stripes = reader.stripes();
        let batches = self.batches(index, last, skipped, |stripe| stripes.get(stripe).map_or(0, |stripe| stripe.len));
        for batch in batches {
            reader.will_read(batch);
        }
    }

    /// The batches to announce before stripe `index` is read; `bytes` tells the length of a stripe.
    fn batches(
        &mut self,
        index: usize,
        last: usize,
        skipped: &[bool],
        bytes: impl Fn(usize) -> u64,
    ) -> Vec<Range<usize>> {
        if index < self.trigger {
            return Vec::new();
        }

        let mut batches = Vec::new();
        // The batch of `index`, if it was not announced, and the one after it.
        let count = if self.end <= index { 2 } else { 1 };
        for _ in 0..count {
            let start = (self.end.max(index)..last).find(|stripe| skipped.get(*stripe) != Some(&true)).unwrap_or(last);
            let (mut end, mut sum) = (start, 0);
            while end < last && sum < BATCH && skipped.get(end) != Some(&true) {
                sum += bytes(end);
                end += 1;
            }

            (self.trigger, self.end) = (start.max(index + 1), end);
            if start < end {
                batches.push(start..end);
            }
        }

        batches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_batch_is_announced_when_the_one_before_it_is_begun() {
        let mut ahead = StripesAhead::default();
        // Four stripes make a batch.
        let mut before = |index| ahead.batches(index, 13, &[], |_| BATCH / 4);
        assert_eq!(before(0), [0..4, 4..8]);
        assert!((1..4).all(|index| before(index).is_empty()));
        assert_eq!(before(4), vec![8..12; 1]);
        assert!((5..8).all(|index| before(index).is_empty()));
        assert_eq!(before(8), vec![12..13; 1]);
        assert!((9..13).all(|index| before(index).is_empty()));
    }

    #[test]
    fn skipped_stripes_and_those_of_other_keys_are_not_announced() {
        let mut ahead = StripesAhead::default();
        let skipped: Vec<bool> = (0..10).map(|stripe| (4..7).contains(&stripe)).collect();
        let mut before = |index| ahead.batches(index, 9, &skipped, |_| 1);
        assert_eq!(before(2), [2..4, 7..9]);
        assert!((3..9).all(|index| before(index).is_empty()));
    }
}
