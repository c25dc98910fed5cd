//! Collisions: the rows of which two runs hold records that a merge joins.
//!
//! Late records of a window are in files of their own. Most of their rows are in the large file of the window, too, yet hardly
//! any of their cells are: without equal cells, the records of a row are those of all its parts together, whichever is read
//! first. Keys, qualifiers and timestamps decide that; no value is read.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use tidetable_layout::block::GroupProjection;
use tidetable_layout::schema::{QualifierKind, TimestampKind};
use tidetable_layout::{Block, Group, KeyRange, Keys, Projection, StoredSchema};
use tidetable_sstable::{ReadError, StripeMeta};

use crate::error::Result;
use crate::read::known_collisions::KnownCollisions;
use crate::read::sst_source::SstSource;
use crate::read::stripes_ahead::StripesAhead;

/// Row keys, ascending.
pub(crate) type RowKeys = Arc<[Vec<u8>]>;

/// Greatest number of rows in the smaller runs, whose keys are held at once.
const MAX_ROWS: u64 = 1 << 17;
/// Greatest number of records of these, whose qualifiers and timestamps are held at once: 12 bytes each.
const MAX_RECORDS: u64 = 1 << 22;
/// Collisions are read by themselves if they are at most one row in so many of the smaller runs.
const FEW: usize = 2;
/// Rows with at most so many records are compared without a set.
const SHORT: usize = 8;

/// What distinguishes the records of a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Identity {
    /// Nothing: a row is a record.
    Row,
    /// Qualifier and timestamp of the only group with several records a row.
    Cell { group: usize },
    /// Its qualifier alone: rules count or date the versions of a cell.
    Versions { group: usize },
    /// The timestamps of several groups, whose records are joined by time.
    Time { groups: Vec<usize> },
}

/// Least and greatest timestamp.
type Bounds = (i64, i64);

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

impl Identity {
    pub(super) fn new(schema: &StoredSchema, projection: &Projection, has_gc: bool) -> Self {
        let mut groups = Vec::new();
        for (at, (group, wanted)) in schema.groups.iter().zip(&projection.groups).enumerate() {
            let Some(wanted) = wanted else { continue };
            match (group.qualifier, group.timestamps) {
                // Cells of the row. They are in each of its parts; where a value is read the newest one counts.
                (QualifierKind::Constant, TimestampKind::Zero) if wanted.columns.contains(&true) => return Self::Row,
                (QualifierKind::Constant, TimestampKind::Zero) => {}
                _ => groups.push(at),
            }
        }
        let is_timed = |group: &usize| schema.groups[*group].timestamps == TimestampKind::Stored;
        match groups.as_slice() {
            [group] if has_gc && schema.groups[*group].qualifier == QualifierKind::Dynamic => {
                Self::Versions { group: *group }
            }
            _ if has_gc => Self::Row,
            [group] => Self::Cell { group: *group },
            [_, ..] if groups.iter().all(is_timed) => Self::Time { groups },
            _ => Self::Row,
        }
    }

    /// The projection of qualifiers and timestamps that distinguish records.
    fn projection(&self, schema: &StoredSchema) -> Projection {
        let wanted = |(at, group): (usize, &Group)| {
            self.groups().contains(&at).then(|| GroupProjection {
                qualifiers: !matches!(self, Self::Time { .. }),
                timestamps: true,
                columns: vec![false; group.columns.len()],
                sums: false,
            })
        };
        Projection { groups: schema.groups.iter().enumerate().map(wanted).collect() }
    }

    /// What distinguishes the records of a row; nothing if the row is a record.
    fn cells<'a>(&self, block: &'a Block, row: usize) -> Vec<Cell<'a>> {
        match self {
            Self::Row => Vec::new(),
            Self::Cell { group } => cells(block, *group, row),
            Self::Versions { group } => {
                cells(block, *group, row).into_iter().map(|(qualifier, _)| (qualifier, 0)).collect()
            }
            Self::Time { groups } => {
                let cells = groups.iter().flat_map(|group| cells(block, *group, row));
                cells.map(|(_, time)| (&[][..], time)).collect()
            }
        }
    }

    /// The groups whose records it distinguishes.
    fn groups(&self) -> &[usize] {
        match self {
            Self::Row => &[],
            Self::Cell { group } | Self::Versions { group } => std::slice::from_ref(group),
            Self::Time { groups } => groups,
        }
    }

    /// Bounds of the timestamps of a row; `None` if it has no records, or those of equal qualifiers collide at any time.
    fn bounds(&self, block: &Block, row: usize) -> Option<Bounds> {
        if matches!(self, Self::Versions { .. }) {
            return None;
        }
        let of_group = |group: &usize| {
            let group = block.groups.get(*group)?.as_ref()?;
            group.timestamps.as_ref()?.get(group.records(row))
        };
        let mut times = self.groups().iter().filter_map(of_group).flatten();
        let first = *times.next()?;
        Some(times.fold((first, first), |(least, greatest), time| (least.min(*time), greatest.max(*time))))
    }

    /// Whether a merge joins records of two parts of a row. It does for a part without: that may stand for an empty row.
    fn collide(&self, (one, row): (&Block, usize), (other, other_row): (&Block, usize)) -> bool {
        let (cells, others) = (self.cells(one, row), self.cells(other, other_row));
        cells.is_empty() || others.is_empty() || share(&cells, &others)
    }
}

/// Whether two parts of a row have no timestamp in common, by their bounds.
fn apart(one: Option<Bounds>, other: Option<Bounds>) -> bool {
    one.zip(other).is_some_and(|((first, last), (other_first, other_last))| last < other_first || other_last < first)
}

/// Qualifier and timestamp.
type Cell<'a> = (&'a [u8], i64);

/// The qualifiers and timestamps of a row in a group; those that it does not have are empty and 0.
fn cells(block: &Block, group: usize, row: usize) -> Vec<Cell<'_>> {
    let Some(Some(group)) = block.groups.get(group) else { return Vec::new() };
    let qualifier = |record: usize| {
        let qualifiers = group.qualifiers.as_ref()?;
        qualifiers.dictionary.get(*qualifiers.codes.get(record)? as usize).map(AsRef::as_ref)
    };
    let time = |record: usize| group.timestamps.as_ref().and_then(|times| times.get(record).copied());
    group.records(row).map(|record| (qualifier(record).unwrap_or_default(), time(record).unwrap_or_default())).collect()
}

/// Whether two lists have an element in common.
fn share(one: &[Cell<'_>], other: &[Cell<'_>]) -> bool {
    let (few, many) = if one.len() < other.len() { (one, other) } else { (other, one) };
    if few.len() <= SHORT {
        return few.iter().any(|cell| many.contains(cell));
    }
    let known: HashSet<&Cell<'_>> = few.iter().collect();
    many.iter().any(|cell| known.contains(cell))
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
