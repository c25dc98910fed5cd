//! Decides which files the scans of several periods share.

use std::ops::Range;

use tidetable_layout::KeyRange;
use tidetable_layout::time::window_bounds;
use tidetable_store::{ScanRange, Snapshot, Sst, StoreError};

/// Whether a shared read gives each period the same blocks as its own read. False for multi-window files that are
/// merged with others: a single period skips their unwanted windows and merges around them.
pub(crate) fn is_alike(snapshot: &Snapshot, slice: &ScanRange) -> bool {
    is_one_run(snapshot, slice) || !of(snapshot, slice).any(|sst| sst.multi_window.is_some())
}

/// Whether nothing is merged: all files have one seqno, so each key is in one of them, and they can be split at stripe
/// boundaries.
pub(crate) fn is_one_run(snapshot: &Snapshot, slice: &ScanRange) -> bool {
    let mut seqnos = of(snapshot, slice).map(|sst| sst.seqno);
    let first = seqnos.next();
    seqnos.all(|seqno| Some(seqno) == first)
}

fn of<'a>(snapshot: &'a Snapshot, slice: &'a ScanRange) -> impl Iterator<Item = &'a Sst> {
    snapshot.version().ssts().filter(|sst| slice.ssts.contains(&sst.id))
}

/// Time span from the first reading period to the last.
pub(crate) fn hull(times: &[Range<i64>], readers: &[bool]) -> Range<i64> {
    let mut read = times.iter().zip(readers).filter_map(|(time, reads)| reads.then_some(time));
    let Some(first) = read.next() else { return 0..0 };
    first.start..read.next_back().unwrap_or(first).end
}

/// For each of `times`, whether its scan reads exactly the files of `slice`.
pub(crate) fn readers(snapshot: &Snapshot, slice: &ScanRange, times: &[Range<i64>]) -> Vec<bool> {
    let keys = std::slice::from_ref(&slice.keys);
    let mut readers = Vec::with_capacity(times.len());
    for time in times {
        readers.push(snapshot.scan_ranges(keys, time).iter().any(|other| other.ssts == slice.ssts));
    }
    readers
}

/// Estimated records that a scan reads in its period, as if the records of a file were spread evenly over its time.
///
/// # Errors
/// If a file cannot be opened.
pub(crate) fn records(snapshot: &Snapshot, keys: &[KeyRange], time: &Range<i64>) -> Result<u64, StoreError> {
    let slices = snapshot.scan_ranges(keys, time);
    let mut records = 0;
    for sst in snapshot.version().ssts().filter(|sst| slices.iter().any(|slice| slice.ssts.contains(&sst.id))) {
        let stripes = snapshot.reader(sst)?;
        let largest = stripes.stripes().iter().map(|stripe| stripe.records.iter().copied().max().unwrap_or(0));
        let all: u64 = largest.sum();
        let (part, whole) = share(snapshot, sst, time);
        records += u64::try_from(u128::from(all) * part / whole.max(1)).unwrap_or(u64::MAX);
    }
    Ok(records)
}

/// The overlap of a file's time with `time`, and the file's whole time.
fn share(snapshot: &Snapshot, sst: &Sst, time: &Range<i64>) -> (u128, u128) {
    let overlap = |bounds: &Range<i64>| u128::from(bounds.end.min(time.end).abs_diff(bounds.start.max(time.start)));
    let length = |bounds: &Range<i64>| u128::from(bounds.end.abs_diff(bounds.start));
    let overlaps = |bounds: &Range<i64>| bounds.start < time.end && time.start < bounds.end;
    if let Some(joined) = &sst.multi_window {
        let unit = snapshot.layout().spec().window;
        let windows = || joined.windows.iter().map(|start| window_bounds(unit, *start));
        return (windows().filter(overlaps).map(|bounds| overlap(&bounds)).sum(), windows().map(|w| length(&w)).sum());
    }
    let Some((least, greatest)) = sst.min_timestamp.zip(sst.max_timestamp) else { return (1, 1) };
    let covered = least..greatest.saturating_add(1);
    (if overlaps(&covered) { overlap(&covered) } else { 0 }, length(&covered))
}
