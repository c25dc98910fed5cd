//! Key ranges to be read at the same time.

use tidetable_layout::KeyRange;
use tidetable_store::Snapshot;

use crate::error::Result;

/// Divides all keys of a snapshot into at most `parts` ranges with about as many records each, ascending.
///
/// # Errors
/// If a file cannot be opened.
pub(crate) fn key_parts(snapshot: &Snapshot, parts: usize) -> Result<Vec<KeyRange>> {
    let mut starts: Vec<(Vec<u8>, u64)> = Vec::new();
    for sst in snapshot.version().ssts() {
        let reader = snapshot.reader(sst)?;
        for stripe in reader.stripes() {
            starts.push((stripe.first_key.to_vec(), stripe.records.iter().sum::<u64>().max(stripe.rows)));
        }
    }
    Ok(divided(starts, parts))
}

/// Cuts at the first keys of stripes, of which each has the records that follow it.
fn divided(mut starts: Vec<(Vec<u8>, u64)>, parts: usize) -> Vec<KeyRange> {
    starts.sort_unstable();
    let total: u64 = starts.iter().map(|(_, records)| records).sum();
    // Nothing lies below the first key of all.
    let least = starts.first().map(|(start, _)| start.clone()).unwrap_or_default();

    let (mut ranges, mut before) = (vec![KeyRange::all()], 0);
    for (start, records) in starts {
        let wanted = total * ranges.len() as u64 / parts.max(1) as u64;
        if let Some(last) = ranges.last_mut()
            && before > 0
            && before >= wanted
            && start > last.start
            && start > least
        {
            last.end = Some(start.clone());
            ranges.push(KeyRange { start, end: None });
        }
        before += records;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_many_as_asked_and_leave_no_key_out() {
        let stripes = |keys: &[&str]| keys.iter().map(|key| (key.as_bytes().to_vec(), 10)).collect::<Vec<_>>();
        // Two files of the same keys.
        let both = [stripes(&["a", "c", "e", "g"]), stripes(&["b", "d", "f", "h"])].concat();
        for (starts, parts, cuts) in [
            (both.clone(), 1, vec![]),
            (both.clone(), 2, vec!["e"]),
            (both.clone(), 4, vec!["c", "e", "g"]),
            (stripes(&["a"]), 4, vec![]),
            (stripes(&["a", "a", "a", "b"]), 2, vec!["b"]),
            (Vec::new(), 2, vec![]),
        ] {
            let ranges = divided(starts, parts);
            let found: Vec<_> =
                ranges.iter().skip(1).map(|range| String::from_utf8(range.start.clone()).unwrap()).collect();
            assert_eq!(found, cuts, "{parts}");
            assert_eq!(ranges[0].start, b"");
            for pair in ranges.windows(2) {
                assert_eq!(pair[0].end.as_ref(), Some(&pair[1].start));
            }
            assert_eq!(ranges.last().unwrap().end, None);
        }
    }
}
