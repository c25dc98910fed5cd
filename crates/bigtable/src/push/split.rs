//! Where a table is cut: by equal bytes for a table that is created, and into ranges of keys that are pushed at a time.

use bytes::Bytes;
use tidetable_layout::KeyRange;
use tidetable_record::PushRange;
use tidetable_store::Snapshot;

use crate::error::Result;

/// Bytes of a cell in Bigtable beside its value, about: its key, family, qualifier and timestamp.
const CELL_BYTES: u64 = 40;
/// Bytes of a part of a table that is created.
const PART_BYTES: u64 = 1 << 30;
/// The greatest number of parts that the service makes at once.
const MOST_PARTS: u64 = 100;

/// First keys of the stripes of a version within `range`, ascending, each with its cells.
///
/// # Errors
/// If an SST cannot be opened.
pub(crate) fn weights(snapshot: &Snapshot, range: &KeyRange) -> Result<Vec<(Bytes, u64)>> {
    let mut found = Vec::new();
    let Some(whole) = snapshot.whole(range) else { return Ok(found) };
    for sst in snapshot.version().ssts().filter(|sst| whole.ssts.contains(&sst.id)) {
        let reader = snapshot.reader(sst)?;
        let stripes = reader.stripes_in(&range.start, range.end.as_deref());
        let stripes = reader.stripes().get(stripes).unwrap_or_default();
        found.extend(stripes.iter().map(|stripe| (stripe.first_key.clone(), stripe.cells)));
    }
    found.sort();
    Ok(found)
}

/// The keys that cut `weights` into `parts` of equal weight, ascending and distinct, after `start`.
pub(crate) fn equal_splits(weights: &[(Bytes, u64)], parts: u64, start: &[u8]) -> Vec<Bytes> {
    let total: u64 = weights.iter().map(|(_, weight)| *weight).sum();
    let mut splits: Vec<Bytes> = Vec::new();
    let mut sum = 0;
    let mut next = 1;
    for (key, weight) in weights {
        // A part begins at the first stripe that starts beyond its share.
        if next < parts && sum >= total * next / parts && &**key > start && splits.last() != Some(key) && sum > 0 {
            splits.push(key.clone());
            while next < parts && sum >= total * next / parts {
                next += 1;
            }
        }
        sum += weight;
    }
    splits
}

/// The number of parts in which a table of so many cells is created.
pub(crate) fn parts_of(cells: u64, value_bytes: u64) -> u64 {
    (cells.saturating_mul(CELL_BYTES) + value_bytes).div_ceil(PART_BYTES).clamp(1, MOST_PARTS)
}

/// The ranges of keys between `splits` within `range`, as a push works in them.
pub(crate) fn ranges(range: &KeyRange, mut splits: Vec<Bytes>) -> Vec<PushRange> {
    splits.retain(|key| **key > *range.start && range.end.as_ref().is_none_or(|end| **key < **end));
    splits.sort();
    splits.dedup();
    let mut start = range.start.clone();
    let mut out = Vec::with_capacity(splits.len() + 1);
    for key in splits {
        out.push(PushRange {
            start: std::mem::replace(&mut start, key.to_vec()),
            end: key.to_vec(),
            ..PushRange::default()
        });
    }
    out.push(PushRange { start, end: range.end.clone().unwrap_or_default(), ..PushRange::default() });
    out
}

/// At most `most` of `keys`, evenly spread.
pub(crate) fn thinned(keys: Vec<Bytes>, most: usize) -> Vec<Bytes> {
    let step = keys.len().div_ceil(most.max(1)).max(1);
    keys.into_iter().skip(step / 2).step_by(step).collect()
}

/// The order in which `count` ranges are worked on by `workers` at a time: neighbours, which may lie on one server, come one
/// after the other.
pub(crate) fn rotated(count: usize, workers: usize) -> Vec<usize> {
    let length = count.div_ceil(workers.max(1)).max(1);
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|at| (at % length, at / length));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<Bytes> {
        text.chars().map(|key| Bytes::copy_from_slice(key.to_string().as_bytes())).collect()
    }

    #[test]
    fn parts_have_equal_weight() {
        let weights: Vec<(Bytes, u64)> = keys("abcdefgh").into_iter().map(|key| (key, 10)).collect();
        assert_eq!(equal_splits(&weights, 4, b""), keys("ceg"));
        assert_eq!(equal_splits(&weights, 1, b""), keys(""));
        assert_eq!(equal_splits(&weights, 100, b""), keys("bcdefgh"));
        assert_eq!(equal_splits(&[], 4, b""), keys(""));
        // Files overlap, and one stripe has most.
        let uneven =
            [("a", 1), ("a", 1), ("b", 90), ("c", 1), ("d", 7)].map(|(key, weight)| (Bytes::from(key), weight));
        assert_eq!(equal_splits(&uneven, 2, b""), keys("c"));
        assert_eq!(parts_of(1_000, 0), 1);
        assert_eq!(parts_of(u64::MAX, 0), 100);
    }

    #[test]
    fn ranges_cover_what_is_pushed() {
        let range = KeyRange { start: b"b".to_vec(), end: Some(b"f".to_vec()) };
        let found = ranges(&range, keys("fdbzda"));
        let ends: Vec<(&[u8], &[u8])> = found.iter().map(|range| (&*range.start, &*range.end)).collect();
        assert_eq!(ends, [(&b"b"[..], &b"d"[..]), (b"d", b"f")]);
        assert_eq!(ranges(&KeyRange::all(), Vec::new()), [PushRange::default()]);
    }

    #[test]
    fn neighbours_come_one_after_the_other() {
        assert_eq!(rotated(8, 2), [0, 4, 1, 5, 2, 6, 3, 7]);
        assert_eq!(rotated(3, 8), [0, 1, 2]);
        assert_eq!(rotated(0, 8), Vec::<usize>::new());
        let mut all = rotated(1_001, 7);
        all.sort_unstable();
        assert_eq!(all, (0..1_001).collect::<Vec<usize>>());
        assert_eq!(thinned(keys("abcdefgh"), 4), keys("bdfh"));
        assert_eq!(thinned(keys("ab"), 4), keys("ab"));
    }
}
