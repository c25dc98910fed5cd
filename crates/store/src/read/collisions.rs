//! Collisions: the rows of which two runs hold records that a merge joins.
//!
//! Late records of a window are in files of their own. Most of their rows are in the large file of the window, too, yet hardly
//! any of their cells are: without equal cells, the records of a row are those of all its parts together, whichever is read
//! first. Keys, qualifiers and timestamps decide that; no value is read.

use std::ops::Range;

use tidetable_layout::{Block, KeyRange, Keys, Projection, StoredSchema};
use tidetable_sstable::{ReadError, StripeMeta};

use crate::error::Result;
use crate::read::known_collisions::{KnownCollisions, RowKeys};
use crate::read::row_identity::{Bounds, Identity, apart};
use crate::read::sst_source::SstSource;
use crate::read::stripes_ahead::StripesAhead;

/// Greatest number of rows in the smaller runs, whose keys are held at once.
const MAX_ROWS: u64 = 1 << 17;
/// Greatest number of records of these, whose qualifiers and timestamps are held at once: 12 bytes each.
const MAX_RECORDS: u64 = 1 << 22;
/// Collisions are read by themselves if they are at most one row in so many of the smaller runs.
const FEW: usize = 2;

/// A row of one of the smaller runs.
struct SmallRow {
    key: Vec<u8>,
    run: usize,
    bounds: Option<Bounds>,
    /// Its block, and its index there.
    block: usize,
    row: usize,
}

impl AsRef<[u8]> for SmallRow {
    fn as_ref(&self) -> &[u8] {
        &self.key
    }
}

/// The keys in `keys` of the rows that collide; `None` if there are many, or more rows than are worth looking at.
///
/// # Errors
/// If an SST cannot be read.
pub(crate) fn find(
    schema: &StoredSchema,
    runs: &[(u64, Vec<SstSource>)],
    keys: &KeyRange,
    identity: &Identity,
    known: Option<&KnownCollisions>,
) -> Result<Option<RowKeys>> {
    let records =
        |stripe: &StripeMeta| -> u64 { identity.groups().iter().filter_map(|group| stripe.records.get(*group)).sum() };
    let count = |run: &[SstSource]| {
        let stripes = run.iter().flat_map(|source| source.stripes(keys)).map(|(_, stripe)| stripe);
        stripes.fold((0, 0), |(rows, all), stripe| (rows + stripe.rows, all + records(stripe)))
    };
    let counts: Vec<(u64, u64)> = runs.iter().map(|(_, run)| count(run)).collect();
    let Some(largest) = (0..runs.len()).max_by_key(|run| counts[*run]) else { return Ok(None) };
    let smaller = || counts.iter().enumerate().filter(|(run, _)| *run != largest).map(|(_, counts)| counts);
    let (rows, held) = smaller().fold((0, 0), |(rows, held), counts| (rows + counts.0, held + counts.1));
    if rows > MAX_ROWS || held > MAX_RECORDS {
        return Ok(None);
    }
    // Of a part of a stripe so little is read that merging takes less than looking.
    let whole = |(_, stripe): (usize, &StripeMeta)| keys.covers(&stripe.first_key, &stripe.last_key);
    if !runs[largest].1.iter().any(|source| source.stripes(keys).any(whole)) {
        return Ok(None);
    }
    let search = || search(schema, runs, keys, identity, largest);
    match known {
        Some(known) => known.or_search(runs, keys, identity, search),
        None => search(),
    }
}

/// As [`find`], by reading; `largest` is the largest of `runs`.
fn search(
    schema: &StoredSchema,
    runs: &[(u64, Vec<SstSource>)],
    keys: &KeyRange,
    identity: &Identity,
    largest: usize,
) -> Result<Option<RowKeys>> {
    // The smaller runs are read whole, and the first stripes of the largest meanwhile.
    runs.iter().enumerate().filter(|(run, _)| *run != largest).flat_map(|(_, (_, run))| run).for_each(|source| {
        source.announce(keys);
    });
    let mut ahead: Vec<StripesAhead> = runs[largest].1.iter().map(|source| first_ahead(source, keys)).collect();
    let projection = identity.projection(schema);
    let (mut blocks, mut small) = (Vec::new(), Vec::new());
    for (run, (_, sources)) in runs.iter().enumerate().filter(|(run, _)| *run != largest) {
        for source in sources {
            for (stripe, _) in source.stripes(keys) {
                let (start, end) = (&keys.start, keys.end.as_deref());
                let block = source.reader.read_rows(stripe, start, end, &projection);
                let block = block.map_err(|error| source.error(error))?;
                let row = |row| {
                    let bounds = identity.bounds(&block, row);
                    SmallRow { key: block.keys.get(row), run, bounds, block: blocks.len(), row }
                };
                small.extend((0..block.keys.len()).map(row));
                blocks.push(block);
            }
        }
    }
    small.sort_by(|a, b| a.key.cmp(&b.key).then(a.run.cmp(&b.run)));
    let mut found: Vec<Vec<u8>> = Vec::new();
    let of_small = |row: &SmallRow| (&blocks[row.block], row.row);
    let many = |found: &[Vec<u8>]| found.len() * FEW > small.len();
    for of_key in small.chunk_by(|a, b| a.key == b.key).filter(|of_key| of_key.len() > 1) {
        let collides = |(at, row): (usize, &SmallRow)| {
            let mut after = of_key[at + 1..].iter().filter(|other| !apart(row.bounds, other.bounds));
            after.any(|other| identity.collide(of_small(row), of_small(other)))
        };
        if of_key.iter().enumerate().any(collides) {
            found.push(of_key[0].key.clone());
        }
        if many(&found) {
            return Ok(None);
        }
    }
    for (source, ahead) in runs[largest].1.iter().zip(&mut ahead) {
        let mut skipped = vec![true; source.reader.stripes().len()];
        let near = |(stripe, meta): (usize, &StripeMeta)| (stripe, rows_within(&small, meta));
        let near: Vec<(usize, Range<usize>)> =
            source.stripes(keys).map(near).filter(|(_, near)| !near.is_empty()).collect();
        near.iter().for_each(|(stripe, _)| skipped[*stripe] = false);
        let end = near.last().map_or(0, |(stripe, _)| stripe + 1);
        for (stripe, near) in near {
            ahead.before(stripe, end, &skipped, &source.reader);
            let own = colliding(source, stripe, &projection, &small[near], |row, (block, at)| {
                !apart(row.bounds, identity.bounds(block, at)) && identity.collide(of_small(row), (block, at))
            });
            found.extend(own.map_err(|error| source.error(error))?);
        }
        if many(&found) {
            return Ok(None);
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(Some(found.into()))
}

/// Announces the first stripes of a source that `keys` touches.
fn first_ahead(source: &SstSource, keys: &KeyRange) -> StripesAhead {
    let (mut ahead, stripes) = (StripesAhead::default(), source.reader.stripes_in(&keys.start, keys.end.as_deref()));
    if !stripes.is_empty() {
        ahead.before(stripes.start, stripes.end, &[], &source.reader);
    }
    ahead
}

/// The rows whose keys are within those of a stripe.
fn rows_within(small: &[SmallRow], stripe: &StripeMeta) -> Range<usize> {
    let first = small.partition_point(|row| row.key[..] < stripe.first_key[..]);
    first..small.partition_point(|row| row.key[..] <= stripe.last_key[..])
}

/// The keys of those of `rows` that collide with their row of a stripe.
fn colliding(
    source: &SstSource,
    stripe: usize,
    projection: &Projection,
    rows: &[SmallRow],
    collide: impl Fn(&SmallRow, (&Block, usize)) -> bool,
) -> std::result::Result<Vec<Vec<u8>>, ReadError> {
    let stripe = source.reader.stripe(stripe)?;
    let shared = places(stripe.keys(), rows);
    let mut places: Vec<usize> = shared.iter().map(|(_, place)| *place).collect();
    places.dedup();
    let block = stripe.read_selected(&places, projection)?;
    let mut found = Vec::new();
    for (row, place) in shared {
        let Ok(at) = places.binary_search(&place) else { continue };
        if collide(&rows[row], (&block, at)) {
            found.push(rows[row].key.clone());
        }
    }
    Ok(found)
}

/// Of keys that ascend, those that a block has: (index of the key, row).
pub(crate) fn places<K: AsRef<[u8]>>(keys: &Keys, wanted: &[K]) -> Vec<(usize, usize)> {
    let mut scratch = Vec::new();
    let mut found = Vec::new();
    for (at, key) in wanted.iter().map(AsRef::as_ref).enumerate() {
        let row = keys.lower_bound(key);
        if row == keys.len() {
            break;
        }
        scratch.clear();
        keys.write(row, &mut scratch);
        if scratch == key {
            found.push((at, row));
        }
    }
    found
}
