//! Pieces of key ranges, for scans in descending order: files are read forward, so pieces are read from last to first.

use tidetable_layout::KeyRange;
use tidetable_store::Snapshot;

use crate::error::Result;

/// Cuts `range` into pieces of about a stripe of each of its SSTs, in descending order.
///
/// # Errors
/// If an SST cannot be opened.
pub(super) fn descending(snapshot: &Snapshot, range: &KeyRange) -> Result<Vec<KeyRange>> {
    if range.only_key().is_some() {
        return Ok(vec![range.clone()]);
    }
    let Some(whole) = snapshot.whole(range) else { return Ok(Vec::new()) };
    let mut starts: Vec<Vec<u8>> = Vec::new();
    let mut files = 0;
    for sst in snapshot.version().ssts().filter(|sst| whole.ssts.contains(&sst.id)) {
        let reader = snapshot.reader(sst)?;
        let stripes = reader.stripes_in(&range.start, range.end.as_deref());
        files += usize::from(!stripes.is_empty());
        let stripes = reader.stripes().get(stripes).unwrap_or_default();
        starts.extend(stripes.iter().map(|stripe| stripe.first_key.to_vec()));
    }
    starts.retain(|start| *start > range.start);
    starts.sort();
    starts.dedup();
    Ok(cut(range, starts, files))
}

/// Cuts `range` at every `step`-th of `starts`, which ascend; the pieces descend.
fn cut(range: &KeyRange, starts: Vec<Vec<u8>>, step: usize) -> Vec<KeyRange> {
    let step = step.max(1);
    let mut end = range.end.clone();
    let mut pieces = Vec::with_capacity(starts.len() / step + 1);
    for start in starts.into_iter().rev().skip(step - 1).step_by(step) {
        pieces.push(KeyRange { start: start.clone(), end: end.take() });
        end = Some(start);
    }
    pieces.push(KeyRange { start: range.start.clone(), end });
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_range_from_its_end() {
        let range = KeyRange { start: b"b".to_vec(), end: None };
        let starts: Vec<Vec<u8>> = [b"c", b"d", b"e", b"f", b"g"].iter().map(|key| key.to_vec()).collect();
        for step in 1..7 {
            let pieces = cut(&range, starts.clone(), step);
            assert_eq!(pieces.first().and_then(|piece| piece.end.clone()), None);
            assert_eq!(pieces.last().map(|piece| piece.start.clone()), Some(b"b".to_vec()));
            assert!(pieces.windows(2).all(|pair| pair[1].end.as_ref() == Some(&pair[0].start)));
            assert_eq!(pieces.len(), 5 / step + 1);
        }
    }
}
