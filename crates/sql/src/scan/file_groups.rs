//! File groups of a scan: splits scan ranges and assigns them to partitions.

use std::collections::{HashMap, HashSet};

use arrow::datatypes::Schema;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileGroup;
use datafusion::error::Result;
use datafusion::scalar::ScalarValue;
use tidetable_layout::pushdown::{FieldBound, ValueSet};
use tidetable_layout::time::window_name;
use tidetable_layout::{KeyRange, Layout};
use tidetable_store::version::Sst;
use tidetable_store::{ScanRange, Snapshot, StoreError};

use crate::error::external;
use crate::pushdown::value_sets::scalar;

/// A part of a split scan range has at least so many bytes.
const MIN_PIECE: u64 = 1 << 20;

/// Stripes that are read faster than another thread starts.
const FEW_STRIPES: usize = 16;
/// Greatest bytes of those stripes, because their whole result is held at once.
const FEW_BYTES: u64 = 2 << 20;
/// Greatest number of cells of those stripes.
const FEW_CELLS: u64 = 1 << 20;
/// Greatest cells of a one-row stripe that is read whole.
const FEW_OF_WHOLE: u64 = 4096;

/// The scan ranges of one "file" of a scan, read in sequence.
#[derive(Debug, Clone)]
pub(crate) struct ScanRanges(pub(crate) Vec<ScanRange>);

/// Splits scan ranges so that each of `partitions` has work, if there are enough bytes.
///
/// # Errors
/// If an SST to be split cannot be opened.
pub(crate) fn split(
    snapshot: &Snapshot,
    ranges: Vec<ScanRange>,
    partitions: usize,
) -> Result<Vec<ScanRange>, StoreError> {
    if ranges.is_empty() || ranges.len() >= partitions {
        return Ok(ranges);
    }
    let total: u64 = ranges.iter().map(|range| range.bytes).sum();
    let share = total.div_ceil(partitions as u64).max(MIN_PIECE);
    let mut out = Vec::with_capacity(partitions);
    for range in ranges {
        let pieces = range.bytes.div_ceil(share);
        if pieces <= 1 {
            out.push(range);
        } else {
            out.extend(split_range(snapshot, &range, pieces as usize)?);
        }
    }
    Ok(out)
}

/// Splits a scan range into about `pieces` parts at stripe boundaries.
pub(crate) fn split_range(snapshot: &Snapshot, range: &ScanRange, pieces: usize) -> Result<Vec<ScanRange>, StoreError> {
    let mut starts: Vec<Vec<u8>> = Vec::new();
    for sst in snapshot.version().ssts().filter(|sst| range.ssts.contains(&sst.id)) {
        let reader = snapshot.reader(sst)?;
        starts.extend(reader.stripes().iter().map(|stripe| stripe.first_key.to_vec()));
    }

    starts.retain(|key| *key > range.keys.start && range.keys.end.as_ref().is_none_or(|end| key < end));
    starts.sort_unstable();
    starts.dedup();
    let mut cuts: Vec<Vec<u8>> =
        (1..pieces).filter_map(|piece| starts.get(piece * starts.len() / pieces).cloned()).collect();
    cuts.dedup();

    let bytes = range.bytes / (cuts.len() as u64 + 1);
    let mut parts = Vec::with_capacity(cuts.len() + 1);
    let mut start = range.keys.start.clone();
    for end in cuts.into_iter().map(Some).chain([range.keys.end.clone()]) {
        let next = end.clone().unwrap_or_default();
        let keys = KeyRange { start: std::mem::replace(&mut start, next), end };
        parts.push(ScanRange { keys, ssts: range.ssts.clone(), time: range.time.clone(), bytes });
    }
    Ok(parts)
}

/// Whether all keys of each scan range come before those of the next, by the key ranges of SSTs in the manifest.
pub(crate) fn are_in_key_order(snapshot: &Snapshot, ranges: &[ScanRange]) -> bool {
    let ssts: HashMap<&str, &Sst> = snapshot.version().ssts().map(|sst| (sst.id.as_str(), sst)).collect();

    let mut bounds: Vec<(Vec<u8>, Vec<u8>)> = Vec::with_capacity(ranges.len());
    for range in ranges {
        let of_range: Option<Vec<&Sst>> = range.ssts.iter().map(|id| ssts.get(id.as_str()).copied()).collect();
        let Some(of_range) = of_range else { return false };
        let first = of_range.iter().map(|sst| &sst.first_key).min();
        let last = of_range.iter().map(|sst| &sst.last_key).max();
        let (Some(first), Some(last)) = (first, last) else { return false };
        bounds.push((first.clone().max(range.keys.start.clone()), last.clone()));
    }

    ranges.iter().zip(bounds.windows(2)).all(|(range, pair)| {
        let [(_, last), (next, _)] = pair else { return false };
        last < next || range.keys.end.as_ref().is_some_and(|end| end <= next)
    })
}

/// Whether the SSTs with these ids have keys one after the other, by the manifest.
pub(crate) fn follow_each_other(snapshot: &Snapshot, ssts: &[String]) -> bool {
    let mut bounds: Vec<(&[u8], &[u8])> = Vec::with_capacity(ssts.len());
    for sst in snapshot.version().ssts().filter(|sst| ssts.contains(&sst.id)) {
        bounds.push((&sst.first_key, &sst.last_key));
    }
    bounds.sort_unstable();
    bounds.dedup();
    bounds.windows(2).all(|pair| matches!(pair, [(_, last), (next, _)] if last < next))
}

/// One "file" per scan range, in at most `partitions` groups of about equal bytes. Groups hold consecutive ranges, so
/// that their concatenation has the order of the table. Ranges of some keys only become one file per group, because
/// opening each takes longer than reading it; so do ranges in key order (`is_sorted`), because DataFusion takes the order of
/// several files for lost.
pub(crate) fn file_groups(
    snapshot: &Snapshot,
    ranges: Vec<ScanRange>,
    partitions: usize,
    is_sorted: bool,
) -> Vec<FileGroup> {
    let some_keys = ranges.iter().all(|range| range.keys != KeyRange::all());
    let groups = contiguous(ranges, partitions, |range: ScanRange, number| {
        PartitionedFile::new(location(snapshot, &range, number), range.bytes).with_extension(ScanRanges(vec![range]))
    });

    let are_joined = some_keys || is_sorted;
    groups.into_iter().map(|files| FileGroup::new(if are_joined { as_one_file(files) } else { files })).collect()
}

/// Whether these ranges, parts of few stripes, are cheaper to read inline than in another task. False if a file cannot
/// be opened; reading it reports the error.
pub(crate) fn is_small_scan(snapshot: &Snapshot, ranges: &[ScanRange]) -> bool {
    if ranges.len() > FEW_STRIPES || ranges.iter().any(|range| range.keys == KeyRange::all()) {
        return false;
    }
    let (mut left, mut bytes, mut cells) = (FEW_STRIPES, 0, 0);
    ranges.iter().flat_map(|range| range.ssts.iter().map(move |id| (range, id))).all(|(range, id)| {
        let reader = snapshot.version().ssts().find(|sst| sst.id == *id).and_then(|sst| snapshot.reader(sst).ok());
        let Some(reader) = reader else { return false };
        let stripes = reader.stripes_in(&range.keys.start, range.keys.end.as_deref());
        let Some(rest) = left.checked_sub(stripes.len()) else { return false };
        left = rest;
        reader.stripes().iter().skip(stripes.start).take(stripes.len()).all(|stripe| {
            (bytes, cells) = (bytes + stripe.len, cells + stripe.cells);
            let is_whole = range.keys.covers(&stripe.first_key, &stripe.last_key);
            bytes <= FEW_BYTES && cells <= FEW_CELLS && (!is_whole || stripe.rows == 1 && stripe.cells <= FEW_OF_WHOLE)
        })
    })
}

/// Merges `files` into one, under the name of the first.
fn as_one_file(files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
    let ranges: Vec<ScanRange> = files.iter().flat_map(ranges_of).collect();
    let bytes = files.iter().map(|file| file.object_meta.size).sum();
    let Some(first) = files.first() else { return files };
    vec![PartitionedFile::new(first.object_meta.location.to_string(), bytes).with_extension(ScanRanges(ranges))]
}

/// The same groups with a file for each scan range, which idle partitions may take over.
pub(crate) fn a_file_each(groups: &[FileGroup]) -> Vec<FileGroup> {
    let mut split = Vec::with_capacity(groups.len());
    for group in groups {
        let mut files = Vec::new();
        for file in group.iter() {
            for range in ranges_of(file) {
                let name = file.object_meta.location.to_string();
                files.push(PartitionedFile::new(name, range.bytes).with_extension(ScanRanges(vec![range])));
            }
        }
        split.push(FileGroup::new(files));
    }
    split
}

/// The scan ranges that a "file" stands for, in the order in which they are read.
fn ranges_of(file: &PartitionedFile) -> Vec<ScanRange> {
    file.extension::<ScanRanges>().map(|ranges| ranges.0.clone()).unwrap_or_default()
}

/// Regroups for a reader of the newest record of each entity: each group is a key range, its scan ranges newest first.
/// `None` if the ranges differ in keys.
///
/// # Errors
/// If an SST to be split cannot be opened.
pub(crate) fn newest_first(snapshot: &Snapshot, groups: &[FileGroup]) -> Result<Option<Vec<FileGroup>>, StoreError> {
    let mut ranges: Vec<ScanRange> = groups.iter().flat_map(FileGroup::iter).flat_map(ranges_of).collect();
    ranges.reverse();
    let have_same_keys = ranges.windows(2).all(|pair| matches!(pair, [one, other] if one.keys == other.keys));
    if !have_same_keys || ranges.len() < 2 {
        return Ok(None);
    }
    let Some(largest) = ranges.iter().max_by_key(|range| range.bytes) else {
        return Ok(None);
    };
    let mut out = Vec::with_capacity(groups.len());

    for (number, part) in split_range(snapshot, largest, groups.len())?.into_iter().enumerate() {
        let parts: Vec<ScanRange> =
            ranges.iter().map(|range| ScanRange { keys: part.keys.clone(), ..range.clone() }).collect();
        let bytes = parts.iter().map(|range| range.bytes).sum::<u64>() / groups.len().max(1) as u64;
        let name = format!("tables/{}/newest/{number}", snapshot.table().name());
        out.push(FileGroup::new(vec![PartitionedFile::new(name, bytes).with_extension(ScanRanges(parts))]));
    }
    Ok(Some(out))
}

/// Regroups for a merge of all windows by key: each group is a key range that no entity's rows cross, with all SSTs of
/// `ranges`. An entity is a value of `field`, the first of the order of records. Returns also the first value of each group
/// but the first. `None` if the ranges differ in keys.
///
/// # Errors
/// If an SST cannot be opened.
pub(crate) fn by_entity(
    snapshot: &Snapshot,
    ranges: &[ScanRange],
    field: usize,
    partitions: usize,
) -> Result<Option<(Vec<FileGroup>, Vec<ScalarValue>)>> {
    let Some(first) = ranges.first().filter(|first| ranges.iter().all(|range| range.keys == first.keys)) else {
        return Ok(None);
    };

    let whole = ScanRange {
        keys: first.keys.clone(),
        ssts: ranges.iter().flat_map(|range| range.ssts.iter().cloned()).collect(),
        time: ranges
            .iter()
            .fold(first.time.clone(), |all, one| all.start.min(one.time.start)..all.end.max(one.time.end)),
        bytes: ranges.iter().map(|range| range.bytes).sum(),
    };

    let mut cuts: Vec<(Vec<u8>, ScalarValue)> = Vec::new();
    for part in split_range(snapshot, &whole, partitions).map_err(external)?.iter().skip(1) {
        let cut = start_of_entity(snapshot.layout(), &part.keys.start, field)?;
        cuts.extend(cut.filter(|(key, _)| *key > whole.keys.start && cuts.last().is_none_or(|(last, _)| last < key)));
    }

    let bytes = whole.bytes / (cuts.len() as u64 + 1);
    let starts = std::iter::once(&whole.keys.start).chain(cuts.iter().map(|(key, _)| key));
    let ends = cuts.iter().map(|(key, _)| Some(key.clone())).chain(std::iter::once(whole.keys.end.clone()));
    let groups = starts.zip(ends).enumerate().map(|(number, (start, end))| {
        let part = ScanRange { keys: KeyRange { start: start.clone(), end }, bytes, ..whole.clone() };
        let name = format!("tables/{}/by-key/{number}", snapshot.table().name());
        FileGroup::new(vec![PartitionedFile::new(name, bytes).with_extension(ScanRanges(vec![part]))])
    });
    Ok(Some((groups.collect(), cuts.into_iter().map(|(_, value)| value).collect())))
}

/// Where the rows begin that have the value of `field` that `key` has, and the value; `None` if they are not one key range.
fn start_of_entity(layout: &Layout, key: &[u8], field: usize) -> Result<Option<(Vec<u8>, ScalarValue)>> {
    // A key of another layout is an error of the reader.
    let Ok(value) = layout.row_field_of_key(key, field) else { return Ok(None) };
    let value = ScalarValue::try_from_array(&value, 0)?;
    let Some(constant) = scalar(&value) else { return Ok(None) };
    let name = layout.records_schema().field(field).name().clone();
    let bound = FieldBound { field: name, set: ValueSet::In(vec![constant]) };
    match layout.key_ranges(&[bound]).as_slice() {
        [rows] if rows.contains(key) => Ok(Some((rows.start.clone(), value))),
        _ => Ok(None),
    }
}

/// Runs of consecutive scan ranges; none is empty, unless there are no ranges.
fn contiguous<T>(
    ranges: Vec<ScanRange>,
    partitions: usize,
    mut make: impl FnMut(ScanRange, usize) -> T,
) -> Vec<Vec<T>> {
    let count = ranges.len();
    let partitions = partitions.clamp(1, count.max(1));
    let total = ranges.iter().map(|range| range.bytes.max(1)).sum::<u64>().max(1);
    let mut groups: Vec<Vec<T>> = (0..partitions).map(|_| Vec::new()).collect();
    let (mut before, mut last) = (0u64, 0);
    for (number, range) in ranges.into_iter().enumerate() {
        let weight = range.bytes.max(1);
        // The group that contains the middle of the range.
        let middle = u128::from(before) + u128::from(weight / 2);
        let fair = (middle * partitions as u128 / u128::from(total)) as usize;
        // Each of the following groups must get one.
        let least = (partitions + number).saturating_sub(count);
        let next = if groups.get(last).is_some_and(Vec::is_empty) { last } else { last + 1 };
        last = fair.clamp(last, next).max(least).min(partitions - 1);
        before += weight;
        if let Some(group) = groups.get_mut(last) {
            group.push(make(range, number));
        }
    }
    groups
}

/// The name that plans and messages show for a scan range: its table, its window, and its number.
fn location(snapshot: &Snapshot, range: &ScanRange, number: usize) -> String {
    let mut windows = snapshot.version().windows.iter();
    let window = windows
        .find(|window| window.ssts.iter().filter(|sst| range.ssts.contains(&sst.id)).count() == range.ssts.len());

    let window = match window {
        Some(window) => window_name(snapshot.layout().spec().window, window.start),
        None => "all".to_owned(),
    };
    format!("tables/{}/{window}/{number}", snapshot.table().name())
}

/// Estimated statistics of a scan, inexact because they are derived from cell counts.
pub(crate) fn statistics(snapshot: &Snapshot, ranges: &[ScanRange], schema: &Schema) -> Statistics {
    let mut statistics = Statistics::new_unknown(schema);
    let ssts: HashSet<&String> = ranges.iter().flat_map(|range| &range.ssts).collect();
    let (mut cells, mut stored) = (0_u64, 0_u64);
    for sst in snapshot.version().ssts().filter(|sst| ssts.contains(&sst.id)) {
        cells += sst.cells;
        stored += sst.bytes;
    }

    let read: u64 = ranges.iter().map(|range| range.bytes).sum();
    if cells > 0 && stored > 0 {
        let share = u128::from(cells) * u128::from(read.min(stored)) / u128::from(stored);
        statistics.num_rows = Precision::Inexact(usize::try_from(share).unwrap_or(usize::MAX).max(1));
        statistics.total_byte_size = Precision::Inexact(usize::try_from(read).unwrap_or(usize::MAX));
    }
    statistics
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(bytes: &[u64]) -> Vec<ScanRange> {
        let range = |bytes: &u64| ScanRange {
            keys: KeyRange::all(),
            ssts: Vec::new(),
            time: i64::MIN..i64::MAX,
            bytes: *bytes,
        };
        bytes.iter().map(range).collect()
    }

    #[test]
    fn groups_are_consecutive_and_not_empty() {
        for (bytes, partitions, expected) in [
            (vec![], 4, vec![vec![]]),
            (vec![5], 4, vec![vec![5]]),
            (vec![1, 1, 1, 1], 2, vec![vec![1, 1], vec![1, 1]]),
            (vec![9, 1, 1, 1], 3, vec![vec![9], vec![1], vec![1, 1]]),
            (vec![1, 1, 1, 9], 3, vec![vec![1, 1], vec![1], vec![9]]),
            (vec![0, 0, 0], 3, vec![vec![0], vec![0], vec![0]]),
        ] {
            let found = contiguous(ranges(&bytes), partitions, |range, _| range.bytes);
            assert_eq!(found, expected, "{bytes:?} in {partitions}");
        }
    }
}
