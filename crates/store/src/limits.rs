//! Limits across SSTs: merged from several SSTs, a row may exceed Bigtable's size limit, and a sum 64 bits.
//!
//! So that every committed row can be read and compacted, a commit checks the version it makes, if the edit may add
//! visible cells to a row: loads, rebuilds, new garbage-collection rules, and deletes that uncover older cells, but not
//! compactions. The manifest alone nearly always suffices: it has upper bounds for each SST ([`SstBounds`]). Only where
//! the bounds of overlapping SSTs add up to more than a limit, stripe stats are read, and then cells.
//!
//! Where rows lie in several windows, the limits hold for the whole row, which reads merge, and for its part in each
//! window, which a compaction of the window writes.

use std::collections::{BTreeMap, HashSet};
use std::io::ErrorKind;
use std::ops::Range;

use tidetable_blobs::BlobError;
use tidetable_layout::block::GroupProjection;
use tidetable_layout::schema::Merge;
use tidetable_layout::time::window_bounds;
use tidetable_layout::{KeyRange, Projection, StoredSchema};
use tidetable_sstable::{StripeLimits, StripeMeta};

use crate::error::{Result, StoreError};
use crate::read::scan_range::ScanRange;
use crate::read::snapshot::{ALL_TIMES, Snapshot};
use crate::row_size::{ROW_LIMIT, measure, too_large};
use crate::table::Table;
use crate::version::{DeleteTarget, overlaps};
use crate::version::{Sst, SstBounds, Version, VersionEdit};
use crate::write::largest_sum;

/// Most rows that an audit reports.
const MAX_REPORTED: usize = 16;
/// Upper bound on the bytes of a cell without its text: family, qualifier, timestamp, a number.
const CELL_BYTES: u64 = 256;

/// The SSTs that are merged for a set of rows: those of a window, or of the whole version.
struct AuditUnit<'a> {
    ssts: Vec<&'a Sst>,
    /// The SSTs that the commit changes, of the new version or the base. Only rows that may be in them are checked.
    touched: Vec<&'a Sst>,
    /// Event times to read, which restrict multi-window files to the window.
    time: Range<i64>,
}

/// Checks the rows that `edit` changes between `base` and `next`.
///
/// # Errors
/// [`StoreError::SumOverflow`] and [`StoreError::RowTooLarge`] with the first row over a limit; those of reading,
/// except damage, which does not block commits.
pub(crate) fn check_limits(table: &Table, base: &Version, next: &Version, edit: &VersionEdit) -> Result<()> {
    // Deletes of newer versions of cells, which make older ones visible.
    let uncovering: Vec<KeyRange> =
        edit.deletes.iter().filter(|target| target.may_uncover()).map(DeleteTarget::keys).collect();
    let may_add_cells = !edit.ssts.is_empty() || !edit.rebuilt.is_empty() || edit.gc.is_some();
    if !may_add_cells && uncovering.is_empty() {
        return Ok(());
    }
    let audit = Audit::new(table, next)?;
    let mut touched: BTreeMap<i64, Vec<&Sst>> = BTreeMap::new();
    let new: HashSet<&str> = edit.ssts.values().flatten().map(|sst| sst.id.as_str()).collect();
    for window in &next.windows {
        let uncovered = |sst: &Sst| uncovering.iter().any(|keys| overlaps(keys, &sst.first_key, &sst.last_key));
        let changed = |sst: &&Sst| edit.gc.is_some() || new.contains(sst.id.as_str()) || uncovered(sst);
        let changed: Vec<&Sst> = window.ssts.iter().filter(changed).collect();
        if !changed.is_empty() {
            touched.entry(window.start).or_default().extend(changed);
        }
    }
    // The SSTs that a rebuild replaces may have lowered a sum, or hidden older versions of cells: without them their
    // rows may grow.
    let replaced = SstsByWindow::new(base);
    for start in edit.rebuilt.iter().filter(|_| edit.reset.is_none()) {
        touched.entry(*start).or_default().extend(replaced.of(*start));
    }
    let units = audit.units(touched);
    let checked = match may_add_cells {
        true => units.iter().try_for_each(|unit| audit.rows_over(unit)?.into_iter().next().map_or(Ok(()), Err)),
        false => check_uncovered(table, base, &audit, &units),
    };
    checked.map_err(|error| error.of_table(table.name()))
}

/// Checks the rows that deletes on top of `base` change, for the size limit only: deletes never raise a sum. Rows that
/// were too large in `base` already, as older builds without this check left them, are let through, so that they can be
/// deleted step by step.
fn check_uncovered(table: &Table, base: &Version, audit: &Audit, units: &[AuditUnit<'_>]) -> Result<()> {
    let base_audit = Audit::new(table, base)?;
    for unit in units {
        let large = |found: Vec<StoreError>| {
            found.into_iter().filter_map(|error| match error {
                StoreError::RowTooLarge { table, row, bytes } => Some((row, (table, bytes))),
                _ => None,
            })
        };
        let mut uncovered: BTreeMap<String, (String, u64)> = large(audit.rows_over(unit)?).collect();
        if uncovered.is_empty() {
            continue;
        }
        large(base_audit.rows_over(unit)?).for_each(|(row, _)| drop(uncovered.remove(&row)));
        if let Some((row, (table, bytes))) = uncovered.pop_first() {
            return Err(StoreError::RowTooLargeAfterDelete { table, row, bytes });
        }
    }
    Ok(())
}

/// The rows of `version` that exceed a limit, as older builds without this check left them. They cannot be read or
/// compacted.
pub fn rows_over_limits(table: &Table, version: &Version) -> Result<Vec<StoreError>> {
    let audit = Audit { trusts_manifest: false, ..Audit::new(table, version)? };
    let windows = version.windows.iter().map(|window| (window.start, window.ssts.iter().collect()));
    let units = audit.units(windows.collect());
    let found: Vec<Vec<StoreError>> = units.iter().map(|unit| audit.rows_over(unit)).collect::<Result<_>>()?;
    let mut seen = HashSet::new();
    let found = found.into_iter().flatten().map(|error| error.of_table(table.name()));
    Ok(found.filter(|error| seen.insert(error.to_string())).take(MAX_REPORTED).collect())
}

/// The bounds of an SST, from the manifest, or from the file if an older build wrote it.
///
/// # Errors
/// If the file cannot be read.
pub fn sst_bounds(snapshot: &Snapshot, sst: &Sst) -> Result<SstBounds> {
    match sst.bounds {
        Some(bounds) => Ok(bounds),
        None => bounds_from_file(snapshot, sst),
    }
}

/// The bounds of an SST from its file.
fn bounds_from_file(snapshot: &Snapshot, sst: &Sst) -> Result<SstBounds> {
    let (schema, reader) = (snapshot.schema(), snapshot.reader(sst)?);
    let damaged = |source| StoreError::Sst { path: snapshot.table().sst_path(&sst.id), source };
    let mut bounds = SstBounds::default();
    for (at, stripe) in reader.stripes().iter().enumerate() {
        let row = match row_bound(stripe) {
            Some(bytes) => bytes,
            None => {
                let stripe = reader.read_stripe(at, &Projection::all(schema)).map_err(damaged)?;
                measure(schema, &stripe, ROW_LIMIT).most
            }
        };
        bounds = bounds.max(SstBounds { row, sum: largest_sum(schema, stripe) });
    }
    Ok(bounds)
}

/// Upper bound on the bytes of a row in the stripe, without reading it; `None` if the stripe is a single row, which may
/// exceed the size limit of stripes.
fn row_bound(stripe: &StripeMeta) -> Option<u64> {
    (stripe.rows > 1).then(|| StripeLimits::default().bytes as u64 + stripe.cells.saturating_mul(CELL_BYTES))
}

/// SSTs by window.
struct SstsByWindow<'a> {
    version: &'a Version,
    /// Multi-window files.
    multi_window: Vec<&'a Sst>,
}

impl<'a> SstsByWindow<'a> {
    fn new(version: &'a Version) -> Self {
        Self { version, multi_window: version.ssts().filter(|sst| sst.multi_window.is_some()).collect() }
    }

    /// The SSTs that hold rows of the window at `start`.
    fn of(&self, start: i64) -> impl Iterator<Item = &'a Sst> {
        let holds = move |sst: &&Sst| sst.multi_window.as_ref().is_some_and(|multi_window| multi_window.holds(start));
        let found = self.version.windows.binary_search_by_key(&start, |window| window.start);
        let own = found.ok().map(|at| self.version.windows[at].ssts.iter().filter(|sst| sst.multi_window.is_none()));
        self.multi_window.iter().copied().filter(holds).chain(own.into_iter().flatten())
    }
}

/// Finds rows over a limit.
struct Audit {
    snapshot: Snapshot,
    /// Limit on the bytes of a row.
    row_limit: u64,
    /// Whether the table has sum families.
    sums: bool,
    /// Whether the bounds of SSTs are taken from the manifest, not from the files.
    trusts_manifest: bool,
}

impl Audit {
    fn new(table: &Table, version: &Version) -> Result<Self> {
        let snapshot = Snapshot::new(table.clone(), std::sync::Arc::new(version.clone()))?;
        let sums = is_sum(snapshot.schema()).iter().flatten().any(|sum| *sum);
        Ok(Self { snapshot, row_limit: table.row_limit(), sums, trusts_manifest: true })
    }

    /// The units to check, given the changed SSTs of each window.
    fn units<'a>(&'a self, touched: BTreeMap<i64, Vec<&'a Sst>>) -> Vec<AuditUnit<'a>> {
        let (version, layout) = (self.snapshot.version(), self.snapshot.layout());
        let rows_in_one_window = layout.rows_lie_in_one_window();
        let mut units = Vec::with_capacity(touched.len() + 1);
        if !rows_in_one_window && version.windows.len() > 1 {
            let touched = touched.values().flatten().copied().collect();
            units.push(AuditUnit { ssts: version.ssts().collect(), touched, time: ALL_TIMES });
        }
        let by_window = SstsByWindow::new(version);
        for (start, touched) in touched {
            let time = if rows_in_one_window { window_bounds(layout.spec().window, start) } else { ALL_TIMES };
            units.push(AuditUnit { ssts: by_window.of(start).collect(), touched, time });
        }
        units
    }

    /// The errors of the rows of `unit` that exceed a limit.
    fn rows_over(&self, unit: &AuditUnit<'_>) -> Result<Vec<StoreError>> {
        let shares = |sst: &Sst| unit.touched.iter().any(|other| other.shares_keys(sst));
        let overlapping: Vec<&Sst> = unit.ssts.iter().copied().filter(|sst| shares(sst)).collect();
        // The rows of a single SST were checked when it was written.
        if overlapping.len() < 2 {
            return Ok(Vec::new());
        }
        let mut bounds = Vec::with_capacity(overlapping.len());
        for sst in overlapping {
            match self.bounds(sst) {
                Ok(of_sst) => bounds.push((sst, of_sst)),
                Err(error) => ignore_damage(error)?,
            }
        }
        let total = |of: fn(&SstBounds) -> u64| bounds.iter().map(|(_, bounds)| u128::from(of(bounds))).sum::<u128>();
        let mut found = Vec::new();
        if total(|bounds| bounds.row) > u128::from(self.row_limit) {
            let weigh = |bounds: &SstBounds, stripe: &StripeMeta| {
                row_bound(stripe).map_or(bounds.row, |bytes| bytes.min(bounds.row))
            };
            for keys in self.heavy_ranges(unit, &bounds, self.row_limit, weigh)? {
                self.large_rows(unit, &keys, &mut found).or_else(ignore_damage)?;
            }
        }
        let max_sum = i64::MAX.unsigned_abs();
        if self.sums && total(|bounds| bounds.sum) > u128::from(max_sum) {
            let weigh = |_: &SstBounds, stripe: &StripeMeta| largest_sum(self.snapshot.schema(), stripe);
            for keys in self.heavy_ranges(unit, &bounds, max_sum, weigh)? {
                self.large_sums(unit, keys, &mut found).or_else(ignore_damage)?;
            }
        }
        Ok(found)
    }

    /// The key ranges in which the weights of overlapping stripes add up to more than `limit`, as far as touched SSTs
    /// overlap them. `weigh`: the upper bound on a row, or a sum, of a stripe.
    fn heavy_ranges(
        &self,
        unit: &AuditUnit<'_>,
        bounds: &[(&Sst, SstBounds)],
        limit: u64,
        weigh: impl Fn(&SstBounds, &StripeMeta) -> u64,
    ) -> Result<Vec<KeyRange>> {
        let mut spans = Vec::new();
        for (sst, bounds) in bounds {
            let reader = match self.snapshot.reader(sst) {
                Ok(reader) => reader,
                Err(error) => {
                    ignore_damage(error)?;
                    continue;
                }
            };
            spans.extend(reader.stripes().iter().map(|stripe| KeySpan {
                first: stripe.first_key.to_vec(),
                last: stripe.last_key.to_vec(),
                weight: weigh(bounds, stripe),
            }));
        }
        let touched: Vec<(&[u8], &[u8])> =
            unit.touched.iter().map(|sst| (sst.first_key.as_slice(), sst.last_key.as_slice())).collect();
        let is_touched = |keys: &KeyRange| touched.iter().any(|(first, last)| overlaps(keys, first, last));
        Ok(heavy_ranges(&spans, limit).into_iter().filter(is_touched).collect())
    }

    fn bounds(&self, sst: &Sst) -> Result<SstBounds> {
        if self.trusts_manifest { sst_bounds(&self.snapshot, sst) } else { bounds_from_file(&self.snapshot, sst) }
    }

    fn scan_range(unit: &AuditUnit<'_>, keys: &KeyRange) -> ScanRange {
        let overlapping = unit.ssts.iter().filter(|sst| overlaps(keys, &sst.first_key, &sst.last_key));
        ScanRange {
            keys: keys.clone(),
            ssts: overlapping.map(|sst| sst.id.clone()).collect(),
            time: unit.time.clone(),
            bytes: 0,
        }
    }

    fn large_rows(&self, unit: &AuditUnit<'_>, keys: &KeyRange, found: &mut Vec<StoreError>) -> Result<()> {
        let schema = self.snapshot.schema();
        for block in self.snapshot.scan(&Self::scan_range(unit, keys), &Projection::all(schema))? {
            let block = block?;
            for (row, bytes) in measure(schema, &block, self.row_limit).over {
                let key = block.keys.get(row);
                if found.len() < MAX_REPORTED && self.is_touched(unit, &key) {
                    found.push(too_large(&key, bytes));
                }
            }
        }
        Ok(())
    }

    fn large_sums(&self, unit: &AuditUnit<'_>, mut keys: KeyRange, found: &mut Vec<StoreError>) -> Result<()> {
        let projection = sums_of(self.snapshot.schema());
        // A scan fails at the first row whose sum overflows, so the next one starts after that row.
        loop {
            let mut scan = self.snapshot.scan(&Self::scan_range(unit, &keys), &projection)?;
            let error = match scan.find_map(std::result::Result::err) {
                None => return Ok(()),
                Some(error) => error,
            };
            let StoreError::SumOverflow { key, .. } = &error else { return Err(error) };
            keys.start.clone_from(key);
            keys.start.push(0);
            if self.is_touched(unit, key) {
                found.push(error);
            }
            if found.len() >= MAX_REPORTED {
                return Ok(());
            }
        }
    }

    /// Whether a touched SST may hold the row `key`.
    fn is_touched(&self, unit: &AuditUnit<'_>, key: &[u8]) -> bool {
        let holds = |sst: &&Sst| {
            let in_range = sst.first_key.as_slice() <= key && key <= sst.last_key.as_slice();
            in_range && self.snapshot.reader(sst).map_or(true, |reader| reader.may_contain(key))
        };
        unit.touched.iter().any(holds)
    }
}

/// Ignores an error of a damaged or missing SST: verify reports it, and it does not block a commit. Returns any other.
pub fn ignore_damage(error: StoreError) -> Result<()> {
    match error {
        StoreError::Sst { .. }
        | StoreError::SstMissing { .. }
        | StoreError::Swapped { .. }
        | StoreError::Differs { .. } => Ok(()),
        StoreError::Blob(BlobError::Io { ref source, .. }) if source.kind() == ErrorKind::NotFound => Ok(()),
        error => Err(error),
    }
}

/// For each column group, which of its columns are sums.
fn is_sum(schema: &StoredSchema) -> Vec<Vec<bool>> {
    let columns =
        |group: &tidetable_layout::Group| group.columns.iter().map(|column| column.merge == Merge::Sum).collect();
    schema.groups.iter().map(columns).collect()
}

/// Projection of the sum columns only.
fn sums_of(schema: &StoredSchema) -> Projection {
    let group = |columns: Vec<bool>| {
        let wanted = columns.iter().any(|sum| *sum);
        wanted.then_some(GroupProjection { qualifiers: true, timestamps: true, columns, sums: false })
    };
    Projection { groups: is_sum(schema).into_iter().map(group).collect() }
}

/// The key range of a stripe, both ends inclusive. Its weight is an upper bound on the bytes, or a sum, of any of its
/// rows.
#[derive(Debug)]
struct KeySpan {
    first: Vec<u8>,
    last: Vec<u8>,
    weight: u64,
}

/// The key ranges in which overlapping spans together exceed `limit`.
fn heavy_ranges(spans: &[KeySpan], limit: u64) -> Vec<KeyRange> {
    // A sweep over the ends of spans. At equal keys starts sort before ends, since spans are inclusive.
    let starts = spans.iter().map(|span| (span.first.as_slice(), false, span.weight));
    let mut edges: Vec<(&[u8], bool, u64)> =
        starts.chain(spans.iter().map(|span| (span.last.as_slice(), true, span.weight))).collect();
    edges.sort_unstable();
    let (mut ranges, mut start, mut weight) = (Vec::new(), None, 0u128);
    for (key, is_end, own) in edges {
        let own = u128::from(own);
        weight = if is_end { weight.saturating_sub(own) } else { weight + own };
        let is_heavy = weight > u128::from(limit);
        match start {
            None if is_heavy => start = Some(key.to_vec()),
            Some(first) if !is_heavy => {
                ranges.push(KeyRange { start: first, end: Some([key, &[0]].concat()) });
                start = None;
            }
            same => start = same,
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_heavy_where_spans_overlap() {
        let span = |first: &str, last: &str, weight| KeySpan { first: first.into(), last: last.into(), weight };
        let ranges = |spans: &[KeySpan], limit| {
            let text = |key: Vec<u8>| String::from_utf8(key).unwrap();
            let range = |keys: KeyRange| (text(keys.start), text(keys.end.unwrap()));
            heavy_ranges(spans, limit).into_iter().map(range).collect::<Vec<_>>()
        };
        let pair = |first: &str, last: &str| (first.to_owned(), format!("{last}\0"));
        let spans = [span("a", "d", 5), span("c", "f", 5), span("f", "h", 5), span("k", "k", 11)];
        assert_eq!(ranges(&spans, 9), [pair("c", "d"), pair("f", "f"), pair("k", "k")]);
        assert_eq!(ranges(&spans, 10), [pair("k", "k")]);
        assert_eq!(ranges(&spans, 11), []);
        assert_eq!(ranges(&[span("a", "b", u64::MAX), span("b", "c", u64::MAX)], u64::MAX), [pair("b", "b")]);
    }
}
