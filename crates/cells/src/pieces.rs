//! Pieces of key ranges, for scans in descending order: SSTs are read forward, so pieces are read from last to first.

use tidetable_layout::KeyRange;
use tidetable_store::{ScanRange, Snapshot, StoreError};

/// Cuts `range` into pieces, in descending order: each begins about as many stripes as SSTs overlap there, so that a piece
/// takes the memory of a stripe of each, and a stripe is read about twice at most.
///
/// # Errors
/// If an SST cannot be opened.
pub(crate) fn descending(snapshot: &Snapshot, range: &ScanRange) -> Result<Vec<KeyRange>, StoreError> {
    let keys = &range.keys;
    if keys.only_key().is_some() {
        return Ok(vec![keys.clone()]);
    }

    let mut stripes = Stripes::default();
    for sst in snapshot.version().ssts().filter(|sst| range.ssts.contains(&sst.id)) {
        let reader = snapshot.reader(sst)?;
        let touched = reader.stripes_in(&keys.start, keys.end.as_deref());
        let touched = reader.stripes().get(touched).unwrap_or_default();
        let Some(last) = touched.last() else { continue };
        stripes.last_keys.push(last.last_key.to_vec());
        stripes.first_keys.extend(touched.first().map(|stripe| stripe.first_key.to_vec()));
        stripes.starts.extend(touched.iter().map(|stripe| stripe.first_key.to_vec()));
    }
    Ok(stripes.cut(keys))
}

/// The stripes of the SSTs of a range.
#[derive(Default)]
struct Stripes {
    /// First key of each stripe.
    starts: Vec<Vec<u8>>,
    /// First key of each SST.
    first_keys: Vec<Vec<u8>>,
    /// Last key of each SST.
    last_keys: Vec<Vec<u8>>,
}

impl Stripes {
    fn cut(mut self, keys: &KeyRange) -> Vec<KeyRange> {
        self.starts.retain(|start| *start > keys.start);
        self.starts.sort();
        self.first_keys.sort();
        self.last_keys.sort();

        let mut pieces = Vec::new();
        let mut end = keys.end.clone();
        let mut begun = 0;
        for start in self.starts.iter().rev() {
            begun += 1;
            if begun >= self.overlapping(start) && end.as_ref() != Some(start) {
                pieces.push(KeyRange { start: start.clone(), end: end.replace(start.clone()) });
                begun = 0;
            }
        }
        pieces.push(KeyRange { start: keys.start.clone(), end });
        pieces
    }

    /// The number of SSTs whose keys span `key`.
    fn overlapping(&self, key: &[u8]) -> usize {
        let begun = self.first_keys.partition_point(|first| first.as_slice() <= key);
        let ended = self.last_keys.partition_point(|last| last.as_slice() < key);
        begun - ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<Vec<u8>> {
        text.bytes().map(|byte| vec![byte]).collect()
    }

    /// The first keys of the pieces.
    fn cut(stripes: Stripes) -> String {
        let range = KeyRange { start: b"b".to_vec(), end: None };
        let pieces = stripes.cut(&range);
        assert_eq!(pieces.first().and_then(|piece| piece.end.clone()), None);
        assert_eq!(pieces.last().map(|piece| piece.start.clone()), Some(b"b".to_vec()));
        assert!(pieces.windows(2).all(|pair| pair[1].end.as_ref() == Some(&pair[0].start)));
        pieces.iter().map(|piece| piece.start[0] as char).collect()
    }

    #[test]
    fn pieces_cover_the_range_from_its_end() {
        let of = |starts, first_keys, last_keys| {
            cut(Stripes { starts: keys(starts), first_keys: keys(first_keys), last_keys: keys(last_keys) })
        };
        // One SST.
        assert_eq!(of("cdefg", "c", "h"), "gfedcb");
        // One after the other.
        assert_eq!(of("acdefg", "ade", "cdh"), "gfedcb");
        // Two that overlap from d on.
        assert_eq!(of("acdefg", "ad", "gh"), "fdcb");
        // Two of the same keys.
        assert_eq!(of("ccddee", "cc", "ff"), "edcb");
        // All of one stripe: three SSTs begin before d, and four stripes from d on.
        assert_eq!(of("bcdefg", "bcdefg", "xxxxxx"), "db");
        assert_eq!(of("", "", ""), "b");
    }
}
