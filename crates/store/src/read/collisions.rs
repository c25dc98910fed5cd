//! Collisions: the rows of which two runs hold records that a merge joins.
//!
//! Late records of a window are in files of their own. Most of their rows are in the large file of the window, too, yet hardly
//! any of their cells are: without equal cells, the records of a row are those of all its parts together, whichever is read
//! first. Keys, qualifiers and timestamps decide that; no value is read.

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

/// What a run has in a key range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RunSize {
    rows: u64,
    /// Records of the groups that distinguish records.
    records: u64,
}

impl RunSize {
    fn of(run: &[SstSource], keys: &KeyRange, identity: &Identity) -> Self {
        let mut size = Self { rows: 0, records: 0 };
        for (_, stripe) in run.iter().flat_map(|source| source.stripes(keys)) {
            size.rows += stripe.rows;
            size.records += identity.groups().iter().filter_map(|group| stripe.records.get(*group)).sum::<u64>();
        }

        size
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
    let sizes: Vec<RunSize> = runs.iter().map(|(_, run)| RunSize::of(run, keys, identity)).collect();
    let Some(largest) = (0..runs.len()).max_by_key(|run| sizes[*run]) else { return Ok(None) };
    let (mut rows, mut records) = (0, 0);
    for (_, size) in sizes.iter().enumerate().filter(|(run, _)| *run != largest) {
        rows += size.rows;
        records += size.records;
    }
    if rows > MAX_ROWS || records > MAX_RECORDS {
        return Ok(None);
    }

    // Of a part of a stripe so little is read that merging takes less than looking.
    let mut stripes = runs[largest].1.iter().flat_map(|source| source.stripes(keys));
    if !stripes.any(|(_, stripe)| keys.covers(&stripe.first_key, &stripe.last_key)) {
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
    let smaller =
        || runs.iter().enumerate().filter(|(run, _)| *run != largest).map(|(run, (_, sources))| (run, sources));
    smaller().flat_map(|(_, sources)| sources).for_each(|source| source.announce(keys));
    let mut ahead: Vec<StripesAhead> = runs[largest].1.iter().map(|source| first_ahead(source, keys)).collect();

    let projection = identity.projection(schema);
    let mut small = SmallRows { identity, blocks: Vec::new(), rows: Vec::new() };
    for (run, sources) in smaller() {
        for source in sources {
            small.read(run, source, keys, &projection)?;
        }
    }
    small.rows.sort_by(|a, b| a.key.cmp(&b.key).then(a.run.cmp(&b.run)));

    let Some(mut found) = small.colliding_among_themselves() else { return Ok(None) };
    for (source, ahead) in runs[largest].1.iter().zip(&mut ahead) {
        let colliding = small.colliding_with(source, keys, &projection, ahead);
        found.extend(colliding.map_err(|error| source.error(error))?);
        if small.are_many(&found) {
            return Ok(None);
        }
    }

    found.sort_unstable();
    found.dedup();
    Ok(Some(found.into()))
}

/// The rows of the smaller runs, ascending by key once all are read.
struct SmallRows<'a> {
    identity: &'a Identity,
    blocks: Vec<Block>,
    rows: Vec<SmallRow>,
}

impl SmallRows<'_> {
    /// Reads the rows of `keys` of a source of `run`.
    fn read(&mut self, run: usize, source: &SstSource, keys: &KeyRange, projection: &Projection) -> Result<()> {
        for (stripe, _) in source.stripes(keys) {
            let read = source.reader.read_rows(stripe, &keys.start, keys.end.as_deref(), projection);
            let block = read.map_err(|error| source.error(error))?;
            for row in 0..block.keys.len() {
                let bounds = self.identity.bounds(&block, row);
                self.rows.push(SmallRow { key: block.keys.get(row), run, bounds, block: self.blocks.len(), row });
            }
            self.blocks.push(block);
        }

        Ok(())
    }

    /// Whether so many rows collide that all are merged.
    fn are_many(&self, found: &[Vec<u8>]) -> bool {
        found.len() * FEW > self.rows.len()
    }

    fn collide(&self, row: &SmallRow, other: &SmallRow) -> bool {
        !apart(row.bounds, other.bounds)
            && self.identity.collide((&self.blocks[row.block], row.row), (&self.blocks[other.block], other.row))
    }

    /// The keys of the rows of which two smaller runs hold colliding parts; `None` if they are many.
    fn colliding_among_themselves(&self) -> Option<Vec<Vec<u8>>> {
        let mut found: Vec<Vec<u8>> = Vec::new();
        for of_key in self.rows.chunk_by(|a, b| a.key == b.key).filter(|of_key| of_key.len() > 1) {
            let mut parts = of_key.iter().enumerate();
            if parts.any(|(part, row)| of_key[part + 1..].iter().any(|other| self.collide(row, other))) {
                found.push(of_key[0].key.clone());
            }
            if self.are_many(&found) {
                return None;
            }
        }

        Some(found)
    }

    /// The keys of the rows that collide with their row of `source`, which is of the largest run.
    fn colliding_with(
        &self,
        source: &SstSource,
        keys: &KeyRange,
        projection: &Projection,
        ahead: &mut StripesAhead,
    ) -> std::result::Result<Vec<Vec<u8>>, ReadError> {
        let mut skipped = vec![true; source.reader.stripes().len()];
        let mut near: Vec<(usize, &[SmallRow])> = Vec::new();
        for (stripe, meta) in source.stripes(keys) {
            let rows = self.within(meta);
            if !rows.is_empty() {
                skipped[stripe] = false;
                near.push((stripe, rows));
            }
        }

        let end = near.last().map_or(0, |(stripe, _)| stripe + 1);
        let mut found = Vec::new();
        for (stripe, rows) in near {
            ahead.before(stripe, end, &skipped, &source.reader);
            self.add_colliding(source, stripe, projection, rows, &mut found)?;
        }
        Ok(found)
    }

    /// The rows whose keys are within those of a stripe.
    fn within(&self, stripe: &StripeMeta) -> &[SmallRow] {
        let first = self.rows.partition_point(|row| row.key[..] < stripe.first_key[..]);
        let end = self.rows.partition_point(|row| row.key[..] <= stripe.last_key[..]);
        &self.rows[first..end]
    }

    /// Adds the keys of those of `rows` that collide with their row of a stripe.
    fn add_colliding(
        &self,
        source: &SstSource,
        stripe: usize,
        projection: &Projection,
        rows: &[SmallRow],
        found: &mut Vec<Vec<u8>>,
    ) -> std::result::Result<(), ReadError> {
        let stripe = source.reader.stripe(stripe)?;
        let shared = places(stripe.keys(), rows);
        let mut places: Vec<usize> = shared.iter().map(|key| key.row).collect();
        places.dedup();
        let block = stripe.read_selected(&places, projection)?;

        for FoundKey { wanted, row } in shared {
            let Ok(place) = places.binary_search(&row) else { continue };
            let small = &rows[wanted];
            if !apart(small.bounds, self.identity.bounds(&block, place))
                && self.identity.collide((&self.blocks[small.block], small.row), (&block, place))
            {
                found.push(small.key.clone());
            }
        }
        Ok(())
    }
}

/// Announces the first stripes of a source that `keys` touches.
fn first_ahead(source: &SstSource, keys: &KeyRange) -> StripesAhead {
    let (mut ahead, stripes) = (StripesAhead::default(), source.reader.stripes_in(&keys.start, keys.end.as_deref()));
    if !stripes.is_empty() {
        ahead.before(stripes.start, stripes.end, &[], &source.reader);
    }
    ahead
}

/// A wanted key that a block has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoundKey {
    /// Index of the key among the wanted ones.
    pub(crate) wanted: usize,
    /// Its row in the block.
    pub(crate) row: usize,
}

/// Of `wanted` keys, which ascend, those that a block has.
pub(crate) fn places<K: AsRef<[u8]>>(keys: &Keys, wanted: &[K]) -> Vec<FoundKey> {
    let mut scratch = Vec::new();
    let mut found = Vec::new();
    for (wanted, key) in wanted.iter().map(AsRef::as_ref).enumerate() {
        let row = keys.lower_bound(key);
        if row == keys.len() {
            break;
        }

        scratch.clear();
        keys.write(row, &mut scratch);
        if scratch == key {
            found.push(FoundKey { wanted, row });
        }
    }

    found
}
