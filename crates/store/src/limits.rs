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
    let units = audit.units(touched_ssts(base, next, edit, &uncovering));
    let checked = match may_add_cells {
        true => units.iter().try_for_each(|unit| audit.rows_over(unit)?.into_iter().next().map_or(Ok(()), Err)),
        false => check_uncovered(table, base, &audit, &units),
    };
    checked.map_err(|error| error.of_table(table.name()))
}

/// The SSTs that `edit` changes between `base` and `next`, by window; `uncovering` are the keys of which deletes make older
/// versions of cells visible.
fn touched_ssts<'a>(
    base: &'a Version,
    next: &'a Version,
    edit: &VersionEdit,
    uncovering: &[KeyRange],
) -> BTreeMap<i64, Vec<&'a Sst>> {
    let new: HashSet<&str> = edit.ssts.values().flatten().map(|sst| sst.id.as_str()).collect();
    let mut touched: BTreeMap<i64, Vec<&Sst>> = BTreeMap::new();
    for window in &next.windows {
        for sst in &window.ssts {
            if edit.gc.is_some()
                || new.contains(sst.id.as_str())
                || uncovering.iter().any(|keys| overlaps(keys, &sst.first_key, &sst.last_key))
            {
                touched.entry(window.start).or_default().push(sst);
            }
        }
    }

    // The SSTs that a rebuild replaces may have lowered a sum, or hidden older versions of cells: without them their
    // rows may grow.
    let replaced = SstsByWindow::new(base);
    for start in edit.rebuilt.iter().filter(|_| edit.reset.is_none()) {
        touched.entry(*start).or_default().extend(replaced.of(*start));
    }

    touched
}

/// Checks the rows that deletes on top of `base` change, for the size limit only: deletes never raise a sum. Rows that
/// were too large in `base` already, as older builds without this check left them, are let through, so that they can be
/// deleted step by step.
fn check_uncovered(table: &Table, base: &Version, audit: &Audit, units: &[AuditUnit<'_>]) -> Result<()> {
    let base_audit = Audit::new(table, base)?;
    for unit in units {
        let mut uncovered = too_large_rows(audit.rows_over(unit)?);
        if uncovered.is_empty() {
            continue;
        }

        for row in too_large_rows(base_audit.rows_over(unit)?).keys() {
            uncovered.remove(row);
        }
        if let Some((row, bytes)) = uncovered.pop_first() {
            return Err(StoreError::RowTooLargeAfterDelete { table: String::new(), row, bytes });
        }
    }

    Ok(())
}

/// The rows that are too large among the errors of an audit, with their bytes.
fn too_large_rows(errors: Vec<StoreError>) -> BTreeMap<String, u64> {
    let mut rows = BTreeMap::new();
    for error in errors {
        if let StoreError::RowTooLarge { row, bytes, .. } = error {
            rows.insert(row, bytes);
        }
    }

    rows
}

/// The rows of `version` that exceed a limit, as older builds without this check left them. They cannot be read or
/// compacted.
pub fn rows_over_limits(table: &Table, version: &Version) -> Result<Vec<StoreError>> {
    let audit = Audit { trusts_manifest: false, ..Audit::new(table, version)? };
    let windows = version.windows.iter().map(|window| (window.start, window.ssts.iter().collect()));
    let units = audit.units(windows.collect());

    let (mut seen, mut found) = (HashSet::new(), Vec::new());
    for unit in &units {
        for error in audit.rows_over(unit)? {
            let error = error.of_table(table.name());
            if seen.insert(error.to_string()) {
                found.push(error);
            }
        }
    }
    found.truncate(MAX_REPORTED);
    Ok(found)
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
    let mut bounds = SstBounds::default();
    for (index, stripe) in reader.stripes().iter().enumerate() {
        let row = match row_bound(stripe) {
            Some(bytes) => bytes,
            None => {
                let read = reader.read_stripe(index, &Projection::all(schema));
                let block =
                    read.map_err(|source| StoreError::Sst { path: snapshot.table().sst_path(&sst.id), source })?;
                measure(schema, &block, ROW_LIMIT).most
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

/// Finds the SSTs of a version that hold rows of a window.
struct SstsByWindow<'a> {
    version: &'a Version,
    /// The multi-window files of the version, which any window may list.
    multi_window: Vec<&'a Sst>,
}

impl<'a> SstsByWindow<'a> {
    fn new(version: &'a Version) -> Self {
        Self { version, multi_window: version.ssts().filter(|sst| sst.multi_window.is_some()).collect() }
    }

    /// The SSTs that hold rows of the window at `start`.
    fn of(&self, start: i64) -> impl Iterator<Item = &'a Sst> {
        let found = self.version.windows.binary_search_by_key(&start, |window| window.start);
        let own = found.ok().map(|at| self.version.windows[at].ssts.iter().filter(|sst| sst.multi_window.is_none()));
        let shared = self.multi_window.iter().copied();
        let shared = shared.filter(move |sst| sst.multi_window.as_ref().is_some_and(|files| files.holds(start)));

        shared.chain(own.into_iter().flatten())
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
        let shares_rows = |sst: &&&Sst| unit.touched.iter().any(|other| other.shares_keys(sst));
        let overlapping: Vec<&Sst> = unit.ssts.iter().filter(shares_rows).copied().collect();
        // The rows of a single SST were checked when it was written.
        if overlapping.len() < 2 {
            return Ok(Vec::new());
        }

        let mut bounds = Vec::with_capacity(overlapping.len());
        let (mut row_bytes, mut sums) = (0, 0);
        for sst in overlapping {
            match self.bounds(sst) {
                Ok(of_sst) => {
                    row_bytes += u128::from(of_sst.row);
                    sums += u128::from(of_sst.sum);
                    bounds.push((sst, of_sst));
                }
                Err(error) => ignore_damage(error)?,
            }
        }

        let mut found = Vec::new();
        if row_bytes > u128::from(self.row_limit) {
            let heavy = self.heavy_ranges(unit, &bounds, self.row_limit, |bounds, stripe| {
                row_bound(stripe).map_or(bounds.row, |bytes| bytes.min(bounds.row))
            })?;
            for keys in heavy {
                self.large_rows(unit, &keys, &mut found).or_else(ignore_damage)?;
            }
        }

        let max_sum = i64::MAX.unsigned_abs();
        if self.sums && sums > u128::from(max_sum) {
            let schema = self.snapshot.schema();
            for keys in self.heavy_ranges(unit, &bounds, max_sum, |_, stripe| largest_sum(schema, stripe))? {
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

        let mut ranges = heavy_ranges(&spans, limit);
        ranges.retain(|keys| unit.touched.iter().any(|sst| overlaps(keys, &sst.first_key, &sst.last_key)));
        Ok(ranges)
    }

    /// The bounds of an SST, from where this audit trusts them.
    fn bounds(&self, sst: &Sst) -> Result<SstBounds> {
        if self.trusts_manifest { sst_bounds(&self.snapshot, sst) } else { bounds_from_file(&self.snapshot, sst) }
    }

    /// The rows of `keys` in the SSTs of a unit.
    fn scan_range(unit: &AuditUnit<'_>, keys: &KeyRange) -> ScanRange {
        let overlapping = unit.ssts.iter().filter(|sst| overlaps(keys, &sst.first_key, &sst.last_key));
        ScanRange {
            keys: keys.clone(),
            ssts: overlapping.map(|sst| sst.id.clone()).collect(),
            time: unit.time.clone(),
            bytes: 0,
        }
    }

    /// Adds the errors of the rows of `keys` that take more bytes than the limit.
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

    /// Adds the errors of the rows of `keys` with a sum that exceeds 64 bits.
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
        unit.touched.iter().any(|sst| {
            let in_range = sst.first_key.as_slice() <= key && key <= sst.last_key.as_slice();
            in_range && self.snapshot.reader(sst).map_or(true, |reader| reader.may_contain(key))
        })
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
    let groups = schema.groups.iter();
    groups.map(|group| group.columns.iter().map(|column| column.merge == Merge::Sum).collect()).collect()
}

/// Projection of the sum columns only.
fn sums_of(schema: &StoredSchema) -> Projection {
    let mut groups = Vec::with_capacity(schema.groups.len());
    for columns in is_sum(schema) {
        let has_sums = columns.contains(&true);
        let wanted = GroupProjection { qualifiers: true, timestamps: true, columns, sums: false };
        groups.push(has_sums.then_some(wanted));
    }

    Projection { groups }
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
    for (key, is_end, span_weight) in edges {
        let span_weight = u128::from(span_weight);
        weight = if is_end { weight.saturating_sub(span_weight) } else { weight + span_weight };
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
