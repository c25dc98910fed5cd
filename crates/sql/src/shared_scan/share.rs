//! Which files the scans of several periods share.

use std::ops::Range;

use tidetable_layout::time::window_bounds;
use tidetable_store::{ScanRange, Snapshot, Sst, StoreError};

use crate::scan::source::TableScan;

/// Whether files read for several periods give each of them the very blocks that reading for it alone does. Files that share
/// windows are read without the windows nobody asks for, which files of several orders are then merged around.
pub(crate) fn is_alike(snapshot: &Snapshot, slice: &ScanRange) -> bool {
    is_one_run(snapshot, slice) || !of(snapshot, slice).any(|sst| sst.multi_window.is_some())
}

/// Whether nothing is merged: the files are of one order, so that each key is in one of them, and can be cut where stripes
/// start.
pub(crate) fn is_one_run(snapshot: &Snapshot, slice: &ScanRange) -> bool {
    let mut seqnos = of(snapshot, slice).map(|sst| sst.seqno);
    let first = seqnos.next();
    seqnos.all(|seqno| Some(seqno) == first)
}

fn of<'a>(snapshot: &'a Snapshot, slice: &'a ScanRange) -> impl Iterator<Item = &'a Sst> {
    snapshot.version().ssts().filter(|sst| slice.ssts.contains(&sst.id))
}

/// The time from the first of the periods that read to the last.
pub(crate) fn hull(times: &[Range<i64>], readers: &[bool]) -> Range<i64> {
    let mut read = times.iter().zip(readers).filter_map(|(time, reads)| reads.then_some(time));
    let Some(first) = read.next() else { return 0..0 };
    first.start..read.next_back().unwrap_or(first).end
}

/// For each of `times`, whether a scan of it reads the files of `slice` for the same keys.
pub(crate) fn readers(snapshot: &Snapshot, slice: &ScanRange, times: &[Range<i64>]) -> Vec<bool> {
    let keys = std::slice::from_ref(&slice.keys);
    let reads = |time: &Range<i64>| snapshot.scan_ranges(keys, time).iter().any(|other| other.ssts == slice.ssts);
    times.iter().map(reads).collect()
}

/// Records that a scan reads in its period, about: as many as there would be if those of a file lay evenly in its time.
///
/// # Errors
/// If a file cannot be opened.
pub(crate) fn records(scan: &TableScan) -> Result<u64, StoreError> {
    let snapshot = &scan.snapshot;
    let slices = snapshot.scan_ranges(&scan.keys, &scan.time);
    let mut records = 0;
    for sst in snapshot.version().ssts().filter(|sst| slices.iter().any(|slice| slice.ssts.contains(&sst.id))) {
        let stripes = snapshot.reader(sst)?;
        let of_stripe = |records: &Vec<u64>| records.iter().copied().max().unwrap_or(0);
        let all: u64 = stripes.stripes().iter().map(|stripe| of_stripe(&stripe.records)).sum();
        let (part, whole) = share(snapshot, sst, &scan.time);
        records += u64::try_from(u128::from(all) * part / whole.max(1)).unwrap_or(u64::MAX);
    }
    Ok(records)
}

/// How much of the time that a file covers lies in `time`.
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
