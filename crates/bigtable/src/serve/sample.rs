//! `SampleRowKeys`: row keys that cut a table into parts of about equal bytes.

use tidetable_layout::KeyRange;
use tidetable_store::Snapshot;

use crate::error::Result;
use crate::proto::data::SampleRowKeysResponse;

/// Parts of a large table.
const PARTS: u64 = 64;
/// Least bytes of a part in files: a part is worth a request of its own.
const LEAST: u64 = 128 << 10;

/// The first row key and the bytes of a stripe.
type Stripe = (Vec<u8>, u64);

/// The samples of a version, from the indexes of its SSTs: no stripe is read.
///
/// # Errors
/// If an SST cannot be opened.
pub(crate) fn samples(snapshot: &Snapshot) -> Result<Vec<SampleRowKeysResponse>> {
    let mut stripes: Vec<Stripe> = Vec::new();
    if let Some(range) = snapshot.whole(&KeyRange::all()) {
        snapshot.announce(std::slice::from_ref(&range));
    }
    for sst in snapshot.version().ssts() {
        let reader = snapshot.reader(sst)?;
        stripes.extend(reader.stripes().iter().map(|stripe| (stripe.first_key.to_vec(), stripe.len)));
    }
    Ok(cut(stripes))
}

/// Cuts a table at the first keys of stripes. The last sample is the end of the table.
fn cut(mut stripes: Vec<Stripe>) -> Vec<SampleRowKeysResponse> {
    stripes.sort();
    let total: u64 = stripes.iter().map(|(_, bytes)| bytes).sum();
    let step = (total / PARTS).max(LEAST);

    let (mut out, mut before, mut last) = (Vec::new(), 0, 0);
    let mut key_before: &[u8] = &[];
    for (key, bytes) in &stripes {
        // Stripes of several files may begin at the same key.
        if before - last >= step && key.as_slice() > key_before {
            out.push(sample(key, before));
            last = before;
        }
        before += bytes;
        key_before = key;
    }
    out.push(sample(&[], total));
    out
}

/// A key, with the bytes of all rows before it.
fn sample(key: &[u8], before: u64) -> SampleRowKeysResponse {
    SampleRowKeysResponse {
        row_key: bytes::Bytes::copy_from_slice(key),
        offset_bytes: i64::try_from(before).unwrap_or(i64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_equal_bytes() {
        let stripes: Vec<Stripe> =
            (0..1_000_u32).rev().map(|at| (format!("{:04}", at / 2).into_bytes(), 1 << 20)).collect();
        let samples = cut(stripes);
        assert!((60..=64).contains(&samples.len()), "{}", samples.len());
        assert!(samples.windows(2).all(|pair| pair[0].offset_bytes < pair[1].offset_bytes));
        let keys: Vec<_> = samples.iter().map(|sample| sample.row_key.clone()).collect();
        assert!(keys[..keys.len() - 1].is_sorted() && keys.last().unwrap().is_empty());
        assert_eq!(samples.last().unwrap().offset_bytes, 1_000 << 20);
        let gaps: Vec<i64> = samples.windows(2).map(|pair| pair[1].offset_bytes - pair[0].offset_bytes).collect();
        assert!(gaps.iter().all(|gap| *gap <= 18 << 20), "{gaps:?}");
    }

    #[test]
    fn a_small_table_is_one_part() {
        assert_eq!(cut(vec![(b"a".to_vec(), 100)]), cut(vec![(b"b".to_vec(), 100)]));
        assert_eq!(cut(Vec::new()).len(), 1);
    }
}
