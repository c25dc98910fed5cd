//! Snapshots: one version of a table held open for reading while loads and compactions go on.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use tidetable_layout::time::window_bounds;
use tidetable_layout::{Block, KeyRange, Layout, Projection, StoredSchema};
use tidetable_sstable::Reader;

use crate::error::{Result, StoreError};
use crate::gc::{GcFilter, GcRule};
use crate::log::{SstPlace, window_names};
use crate::read::known_collisions::KnownCollisions;
use crate::read::next_ranges::NextRanges;
use crate::read::options::{ScanMode, ScanOptions};
use crate::read::scan::BlockScan;
use crate::read::scan_range::ScanRange;
use crate::read::sst_source::SstSource;
use crate::read::stripes_ahead::StripesAhead;
use crate::read::window_mask::{WindowMask, window_overlaps};
use crate::sst_store::OpenSsts;
use crate::table::Table;
use crate::tombstone::TombstoneFilter;
use crate::version::{Sst, Tombstone, Version, WindowState, overlaps};

/// The range of all event times, microseconds: nothing is left out by time.
pub const ALL_TIMES: Range<i64> = i64::MIN..i64::MAX;

/// Scan ranges whose first stripes a bucket is asked for while one is read: it may take less time to read than a reply to come.
const RANGES_AHEAD: usize = 3;

/// A version of a table. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Snapshot {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    table: Table,
    version: Arc<Version>,
    layout: Arc<Layout>,
    gc_filter: Option<Arc<GcFilter>>,
    /// Tombstones to apply: those of the version, or none where a compaction reads the cells beneath them.
    tombstones: Arc<[Tombstone]>,
    /// Open files by SST id, shared by all views of the version.
    readers: Arc<OpenSsts>,
    /// What scans found of these files, likewise.
    collisions: Arc<KnownCollisions>,
    /// In a bucket, the announced range that follows another.
    next: Arc<NextRanges>,
}

impl Snapshot {
    /// A snapshot of `version`.
    ///
    /// # Errors
    /// If this build cannot compile the layout the version records.
    pub fn new(table: Table, version: Arc<Version>) -> Result<Self> {
        let layout = Arc::new(table.layout(&version)?);
        let gc_filter = gc_filter(&table, &version, &layout, version.now)?.map(Arc::new);
        let tombstones = version.tombstones.clone().into();
        let (readers, collisions, next) = (Arc::default(), Arc::default(), Arc::default());
        let inner = Inner { table, version, layout, gc_filter, tombstones, readers, collisions, next };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The same version including expired cells that are still stored.
    #[must_use]
    pub fn including_expired(&self) -> Self {
        self.seen_through(None, Arc::clone(&self.inner.tombstones))
    }

    /// The same version with its garbage-collection rules applied at another logical time. Cells that had expired
    /// when a compaction ran may be gone even at earlier times.
    ///
    /// # Errors
    /// If this build cannot read a rule of the version.
    pub fn as_of_now(&self, now: i64) -> Result<Self> {
        let gc_filter = self.gc_filter_at(now)?.map(Arc::new);
        Ok(self.seen_through(gc_filter, Arc::clone(&self.inner.tombstones)))
    }

    /// The same version without garbage-collection rules and tombstones.
    pub fn as_stored(&self) -> Self {
        self.seen_through(None, Arc::default())
    }

    /// The GC filter at logical time `now` (microseconds since the epoch); `None` if the version has no rules.
    ///
    /// # Errors
    /// If this build cannot read a rule of the version.
    pub fn gc_filter_at(&self, now: i64) -> Result<Option<GcFilter>> {
        gc_filter(self.table(), self.version(), self.layout(), now)
    }

    /// The same version with another GC filter and other tombstones.
    fn seen_through(&self, gc_filter: Option<Arc<GcFilter>>, tombstones: Arc<[Tombstone]>) -> Self {
        let Inner { table, version, layout, readers, collisions, next, .. } = self.inner.as_ref();
        let inner = Inner {
            table: table.clone(),
            version: Arc::clone(version),
            layout: Arc::clone(layout),
            gc_filter,
            tombstones,
            readers: Arc::clone(readers),
            collisions: Arc::clone(collisions),
            next: Arc::clone(next),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The version it reads.
    pub fn version(&self) -> &Version {
        &self.inner.version
    }

    /// The layout of the table, as the version records it.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.inner.layout
    }

    /// The schema of the cells as SSTs store them.
    pub fn schema(&self) -> &Arc<StoredSchema> {
        self.inner.layout.stored()
    }

    /// Whether rules, tombstones or upserts may leave a row without cells. Then a row's existence shows only in its
    /// cells.
    pub fn may_empty_rows(&self) -> bool {
        let hides_cells = self.inner.tombstones.iter().any(|drop| !drop.target.takes_rows());
        self.inner.gc_filter.is_some() || hides_cells || self.version().ssts().any(|sst| sst.emptied)
    }

    /// The table whose version it reads.
    pub fn table(&self) -> &Table {
        &self.inner.table
    }

    /// Splits `ranges` and `time` (microseconds, half-open) into scan ranges; no row is in two of them. Where row
    /// keys name the window, each window is a scan range of its own, except those that share files, and windows
    /// outside `time` are left out.
    pub fn scan_ranges(&self, ranges: &[KeyRange], time: &Range<i64>) -> Vec<ScanRange> {
        if !self.inner.layout.rows_lie_in_one_window() {
            return ranges.iter().filter_map(|keys| self.whole(keys)).collect();
        }

        self.log_skipped_windows(time);
        let parts = self.parts(time);
        parts.iter().flat_map(|part| ranges.iter().filter_map(move |keys| scan_range(keys, part, time))).collect()
    }

    /// Logs which windows lie outside `time`, microseconds.
    fn log_skipped_windows(&self, time: &Range<i64>) {
        if *time == ALL_TIMES || !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }

        let unit = self.inner.layout.spec().window;
        let starts = self.version().windows.iter().map(|window| window.start);
        let skipped: Vec<i64> = starts.filter(|start| !window_overlaps(unit, *start, time)).collect();
        if !skipped.is_empty() {
            tracing::debug!(
                table = self.table().name(),
                windows = skipped.len(),
                window = window_names(unit, skipped),
                reason = "they lie outside the times of the query",
                "windows_skipped"
            );
        }
    }

    /// Bounds of the event times of a scan range's rows, from the windows of its SSTs: microseconds, half-open.
    pub fn event_times(&self, range: &ScanRange) -> Range<i64> {
        if !self.inner.layout.rows_lie_in_one_window() {
            return ALL_TIMES;
        }

        let unit = self.inner.layout.spec().window;
        let mut times: Option<Range<i64>> = None;
        for window in &self.version().windows {
            for sst in window.ssts.iter().filter(|sst| range.ssts.contains(&sst.id)) {
                let own = std::slice::from_ref(&window.start);
                for start in sst.multi_window.as_ref().map_or(own, |multi_window| &multi_window.windows) {
                    let bounds = window_bounds(unit, *start);
                    times = Some(match times {
                        Some(times) => times.start.min(bounds.start)..times.end.max(bounds.end),
                        None => bounds,
                    });
                }
            }
        }

        times.unwrap_or(ALL_TIMES)
    }

    /// The SSTs of each window that overlaps `time`, in order of time; windows that share files are grouped.
    fn parts(&self, time: &Range<i64>) -> Vec<Vec<&Sst>> {
        let unit = self.inner.layout.spec().window;
        let is_wanted = |start: i64| window_overlaps(unit, start, time);
        let mut parts: Vec<(i64, Vec<&Sst>)> = Vec::new();
        // Index in `parts` of each window that shares files.
        let mut places: HashMap<i64, usize> = HashMap::new();
        for sst in self.version().ssts() {
            let Some(multi_window) = &sst.multi_window else { continue };
            let Some(first) = multi_window.windows.iter().find(|start| is_wanted(**start)) else { continue };
            let place = *places.entry(*first).or_insert_with(|| {
                parts.push((*first, Vec::new()));
                parts.len() - 1
            });
            parts[place].1.push(sst);
            places.extend(multi_window.windows.iter().map(|start| (*start, place)));
        }

        for window in self.version().windows.iter().filter(|window| is_wanted(window.start)) {
            let own = window.ssts.iter().filter(|sst| sst.multi_window.is_none());
            match places.get(&window.start) {
                Some(place) => parts[*place].1.extend(own),
                None => parts.push((window.start, own.collect())),
            }
        }

        parts.sort_by_key(|(start, _)| *start);
        parts.into_iter().map(|(_, ssts)| ssts).collect()
    }

    /// The scan ranges of one window for `keys`.
    pub(crate) fn window(&self, window: &WindowState, keys: &KeyRange) -> Vec<ScanRange> {
        if self.inner.layout.rows_lie_in_one_window() {
            let bounds = window_bounds(self.inner.layout.spec().window, window.start);
            return self.scan_ranges(std::slice::from_ref(keys), &bounds);
        }
        scan_range(keys, &window.ssts.iter().collect::<Vec<_>>(), &ALL_TIMES).into_iter().collect()
    }

    /// One scan range over all windows, for rows of `keys` in key order; `None` if no SST overlaps `keys`.
    pub fn whole(&self, keys: &KeyRange) -> Option<ScanRange> {
        scan_range(keys, &self.version().ssts().collect::<Vec<_>>(), &ALL_TIMES)
    }

    /// Scans a range in key order, a block at a time.
    ///
    /// # Errors
    /// If an SST cannot be opened.
    pub fn scan(&self, range: &ScanRange, projection: &Projection) -> Result<BlockScan> {
        self.scan_with(range, projection, &ScanOptions::default())
    }

    /// As [`Self::scan`], with counters, stripe pruning and record filters.
    ///
    /// # Errors
    /// As [`Self::scan`].
    pub fn scan_with(&self, range: &ScanRange, projection: &Projection, options: &ScanOptions) -> Result<BlockScan> {
        self.scan_in(range, projection, options, ScanMode::default())
    }

    /// In a bucket, begins to fetch what is read first of the SSTs of these ranges, all at a time.
    pub fn announce(&self, ranges: &[ScanRange]) {
        if !self.table().blobs().capabilities().round_trips {
            return;
        }
        let wanted: HashSet<&str> = ranges.iter().flat_map(|range| &range.ssts).map(String::as_str).collect();
        let ssts = self.version().ssts().filter(|sst| wanted.contains(sst.id.as_str()));
        self.inner.table.ssts().announce(ssts.filter(|sst| !self.inner.readers.has(sst)));
        self.inner.next.note(ranges);
    }

    /// Begins to fetch the first stripes of the announced ranges that follow `range`, of those of which several files are merged:
    /// then some are read before their first row.
    fn announce_after(&self, range: &ScanRange) {
        if !self.table().blobs().capabilities().round_trips {
            return;
        }
        for next in self.inner.next.after(range, RANGES_AHEAD).iter().filter(|next| next.ssts.len() > 1) {
            let wanted: HashSet<&str> = next.ssts.iter().map(String::as_str).collect();
            for sst in self.version().ssts().filter(|sst| wanted.contains(sst.id.as_str())) {
                // Reading it reports an error.
                let Ok(reader) = self.reader(sst) else { continue };
                let stripes = reader.stripes_in(&next.keys.start, next.keys.end.as_deref());
                if !stripes.is_empty() {
                    StripesAhead::default().before(stripes.start, stripes.end, &[], &reader);
                }
            }
        }
    }

    /// As [`Self::scan_with`], with internal options.
    pub(crate) fn scan_in(
        &self,
        range: &ScanRange,
        projection: &Projection,
        options: &ScanOptions,
        mode: ScanMode,
    ) -> Result<BlockScan> {
        self.announce(std::slice::from_ref(range));
        let wanted: HashSet<&str> = range.ssts.iter().map(String::as_str).collect();
        let ssts = self.version().ssts().filter(|sst| wanted.contains(sst.id.as_str()));
        let mut sources: Vec<SstSource> = ssts.map(|sst| self.source(sst, &range.time)).collect::<Result<_>>()?;
        let considered = Considered::of(&sources, range);

        // Point lookup: key filters rule out files without the key.
        if let Some(key) = range.keys.only_key() {
            sources.retain(|source| source.may_contain(key));
        }
        if options.stripe_stats.is_none() {
            // A point lookup reads one stripe of each: all at a time.
            sources.iter().for_each(|source| source.announce_few(&range.keys));
        }
        self.announce_after(range);

        if let Some(counts) = &options.counts {
            let Considered { files, stripes, bytes } = considered;
            counts.considered(files, files - sources.len(), stripes, bytes);
            sources.iter_mut().for_each(|source| source.reader = source.reader.counted(Arc::clone(&counts.reads)));
        }

        let gc_filter = self.inner.gc_filter.clone();
        let schema = Arc::clone(self.schema());
        let mode = ScanMode { known_collisions: Some(Arc::clone(&self.inner.collisions)), ..mode };
        let scan = BlockScan::new(schema, sources, range.keys.clone(), projection, gc_filter, options, mode)?;
        Ok(scan.of_table(self.inner.table.name()))
    }

    /// An SST of this version as a merge source, with its tombstones; of a multi-window file only windows that
    /// overlap `time`.
    pub fn source(&self, sst: &Sst, time: &Range<i64>) -> Result<SstSource> {
        let multi_window = sst.multi_window.as_ref();
        Ok(SstSource {
            seqno: sst.seqno,
            path: self.inner.table.sst_path(&sst.id),
            reader: self.reader(sst)?,
            tombstones: TombstoneFilter::of_sst(&self.inner.tombstones, sst),
            windows: multi_window.and_then(|multi_window| WindowMask::new(&self.inner.layout, multi_window, time)),
            emptied: sst.emptied,
            place: tracing::enabled!(tracing::Level::DEBUG).then(|| Arc::new(self.place(sst))),
        })
    }

    /// Where an SST lies, for the log.
    fn place(&self, sst: &Sst) -> SstPlace {
        let unit = self.inner.layout.spec().window;
        let windows = match &sst.multi_window {
            Some(multi_window) => multi_window.windows.clone(),
            None => {
                let mut windows = self.version().windows.iter();
                let home = windows.find(|window| window.ssts.iter().any(|listed| listed.id == sst.id));
                home.map(|window| window.start).into_iter().collect()
            }
        };

        SstPlace { table: self.table().name().into(), window: window_names(unit, windows), sst: sst.id.clone() }
    }

    /// Point lookup of one row with the cells of `projection`; `None` if it does not exist. Reads SSTs whose key
    /// range and key filter match.
    ///
    /// # Errors
    /// If an SST cannot be read.
    pub fn row(&self, key: &[u8], projection: &Projection) -> Result<Option<Block>> {
        let keys = KeyRange::of_key(key);
        let Some(mut range) = self.whole(&keys) else { return Ok(None) };
        self.announce(std::slice::from_ref(&range));

        let mut holding = Vec::with_capacity(range.ssts.len());
        let wanted: HashSet<&str> = range.ssts.iter().map(String::as_str).collect();
        for sst in self.version().ssts().filter(|sst| wanted.contains(sst.id.as_str())) {
            if self.reader(sst)?.may_contain(key) {
                holding.push(sst.id.clone());
            } else if tracing::enabled!(tracing::Level::DEBUG) {
                self.place(sst).log_ruled_out();
            }
        }

        range.ssts = holding;
        self.scan(&range, projection)?.next().transpose()
    }

    /// The reader of an SST of this version, opened once.
    ///
    /// # Errors
    /// If it is missing, damaged, or not the file the manifest names.
    pub fn reader(&self, sst: &Sst) -> Result<Reader> {
        self.inner.readers.get(self.inner.table.ssts(), sst)
    }
}

/// What a scan range takes of its files before any is ruled out.
struct Considered {
    files: usize,
    stripes: usize,
    bytes: u64,
}

impl Considered {
    /// A scan range may cover a part of its files; it counts its share of their stripes.
    fn of(sources: &[SstSource], range: &ScanRange) -> Self {
        let stripes: usize = sources.iter().map(|source| source.reader.stripes().len()).sum();
        let whole: u64 = sources.iter().map(|source| source.reader.bytes()).sum();
        let bytes = range.bytes.min(whole);
        let share = u128::from(bytes) * stripes as u128;

        Self { files: sources.len(), stripes: share.checked_div(u128::from(whole)).unwrap_or(0) as usize, bytes }
    }
}

/// The GC filter of a version at a logical time.
fn gc_filter(table: &Table, version: &Version, layout: &Layout, now: i64) -> Result<Option<GcFilter>> {
    let mut rules = BTreeMap::new();
    for (family, text) in &version.table.gc {
        let rule = GcRule::parse(text).map_err(|error| StoreError::Layout {
            table: table.name().to_owned(),
            reason: format!("gc of family {family}: {error}"),
        })?;
        rules.insert(family.clone(), rule);
    }
    Ok(GcFilter::new(layout.stored(), &rules, now))
}

/// The scan range of `keys` in those of `ssts` that overlap it; `None` if none does.
fn scan_range(keys: &KeyRange, ssts: &[&Sst], time: &Range<i64>) -> Option<ScanRange> {
    let found: Vec<&Sst> = ssts.iter().copied().filter(|sst| overlaps(keys, &sst.first_key, &sst.last_key)).collect();
    if found.is_empty() {
        return None;
    }
    let bytes = found.iter().map(|sst| sst.bytes).sum();
    let ssts = found.iter().map(|sst| sst.id.clone()).collect();
    Some(ScanRange { keys: keys.clone(), ssts, time: time.clone(), bytes })
}
