//! Runs a unit of a load, pass by pass.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rayon::prelude::*;
use tidetable_sstable::StripeLimits;
use tidetable_store::{GcFilter, GcRule, Result};

use crate::batcher::{Batcher, are_too_many, names_of, waiting_cells};
use crate::encoders::Encoders;
use crate::input::read::read_ahead;
use crate::output::finish::{Finisher, files_at_once};
use crate::output::write::{SstWriter, WindowWriter, ranges_at_once};
use crate::pass::{Pass, passes};
use crate::sort::chunk::{AllRanks, Chunk, keep_windows};
use crate::sort::partition::Events;
use crate::spec::{Progress, TableTarget, UnitLoader};
use crate::spill::fates::{Follows, WindowFates, events_by_window};
use crate::spill::file::{Spill, SpillFile, page_events};
use crate::spill::merge::RangeEvents;
use crate::spill::ranges::{key_ranges, most_at_once};
use crate::state::TargetState;
use crate::stats::LoadStats;
use crate::unit::{LoadUnit, LoadUnitDone, TableDone};
use crate::work::Work;

/// Pieces of inputs that may wait to be parsed.
const READ_AHEAD: usize = 4;

/// Events from which a window is sorted and encoded by all cores together.
const LARGE_WINDOW: usize = 1 << 20;

impl<'a> UnitLoader<'a> {
    /// Reads the inputs of a unit, and writes SSTs.
    ///
    /// # Errors
    /// Those of reading, encoding and writing. The SSTs written so far are removed.
    pub fn run(&self, unit: &LoadUnit) -> Result<LoadUnitDone> {
        let works = unit.works.as_slice();
        let encoders = self.tables.iter().zip(works);
        let encoders = encoders.map(|(target, work)| Encoders::new(target.layout, work));
        let encoders: Vec<Encoders<'a>> = encoders.collect();
        let mut states: Vec<TargetState> = works.iter().map(TargetState::new).collect();
        let mut passes = passes(works).into_iter();
        let done = passes.try_for_each(|pass| self.run_pass(&pass, works, &encoders, &mut states));

        let tables: Vec<TableDone> = states.into_iter().map(TargetState::into_done).collect();
        if done.is_err() {
            self.tables.iter().zip(&tables).for_each(|(target, done)| done.discard(target.table));
        }
        done.map(|()| LoadUnitDone { tables })
    }

    fn run_pass(
        &self,
        pass: &Pass,
        works: &[Work],
        encoders: &[Encoders<'a>],
        states: &mut [TargetState],
    ) -> Result<()> {
        let Some(first) = pass.targets.first().copied() else { return Ok(()) };
        let inputs = pass.files(works);
        read_ahead(self.feed, &inputs, READ_AHEAD, &|bytes| self.report_read(bytes), |messages| {
            let messages = Mutex::new(messages.fuse());
            loop {
                let batcher = Batcher { loader: self, pass, works, encoders, messages: &messages };
                let clock = Instant::now();
                let (more, waited) = batcher.until_full(states)?;
                let stats = &mut states[first].stats;
                stats.read += waited;
                stats.parse += clock.elapsed().saturating_sub(waited);

                self.flush(&pass.targets, encoders, states, more)?;
                if !more {
                    return Ok(());
                }
            }
        })
    }

    fn report_read(&self, bytes: u64) {
        (self.on_progress)(Progress::Read { bytes, rows: 0 });
    }

    /// Sorts and writes the waiting cells. If `more` will come, windows that still grow are held back or spilled.
    fn flush(
        &self,
        targets: &[usize],
        encoders: &[Encoders<'a>],
        states: &mut [TargetState],
        more: bool,
    ) -> Result<()> {
        let follows = match more {
            false => Follows::Nothing,
            true if are_too_many(self.memory, names_of(encoders)) => Follows::MoreWithNewNames,
            true => Follows::More,
        };
        let mut complete = Vec::new();
        for at in targets {
            let merge = self.flush_target(&self.tables[*at], &encoders[*at], &mut states[*at], follows)?;
            complete.push((*at, merge));
        }

        // Names and cells that do not wait any more leave their memory to merging.
        if follows != Follows::More {
            encoders.iter().for_each(Encoders::forget);
        }
        let held: u64 = states.iter().map(|state| state.bytes).sum();
        let waiting = waiting_cells(self.memory, names_of(encoders));
        let range_bytes = waiting.saturating_sub(held).max(waiting / 4);
        for (at, windows) in complete {
            self.merge_windows(&self.tables[at], &mut states[at], &windows, range_bytes)?;
        }
        Ok(())
    }

    /// Sorts the waiting cells of a table, and writes or spills them. Returns the windows that are to be merged.
    fn flush_target(
        &self,
        target: &TableTarget<'_>,
        encoders: &Encoders<'_>,
        state: &mut TargetState,
        follows: Follows,
    ) -> Result<Vec<i64>> {
        let mut chunks = std::mem::take(&mut state.chunks);
        chunks.sort_by_key(|chunk| chunk.place);
        let fates = WindowFates::of(&chunks, &state.spills.keys().copied().collect(), follows);

        let clock = Instant::now();
        let ranks = encoders.ranks(target.layout.stored().groups.len());
        state.stats.sort += clock.elapsed();
        self.spill(target, state, &fates.spill, &chunks, &ranks)?;

        // A large window keeps all cores busy, and one at a time bounds the memory for its copy.
        let events = events_by_window(&chunks);
        let windows = WindowsBySize::new(fates.write, |window| events.get(&window).copied().unwrap_or_default());
        self.write_windows(target, state, windows, &|window, mut out| {
            out.write(Events { chunks: &chunks, window, ranks: &ranks, first_unit: 0 })?;
            out.end()
        })?;

        state.chunks = keep_windows(chunks, &fates.hold);
        state.bytes = state.chunks.iter().map(|chunk| chunk.bytes).sum();
        Ok(fates.merge)
    }

    /// Sorts the events of these windows, and appends them to a temporary file.
    fn spill(
        &self,
        target: &TableTarget<'_>,
        state: &mut TargetState,
        windows: &[i64],
        chunks: &[Chunk],
        ranks: &AllRanks,
    ) -> Result<()> {
        if windows.is_empty() {
            return Ok(());
        }

        let clock = Instant::now();
        let file = self.spill_file(target)?;
        for window in windows {
            let events = Events { chunks, window: *window, ranks, first_unit: state.next_unit() };
            let most = page_events(&events);
            let spill = file.write(target.layout.stored(), events, most, &|| self.feed.go_on())?;
            state.spills.entry(*window).or_default().push(spill);
        }

        state.stats.bytes_spilled += file.bytes();
        state.stats.spill += clock.elapsed();
        Ok(())
    }

    /// A file to spill to: in the folder for temporary files, or in the root of a local store.
    fn spill_file(&self, target: &TableTarget<'_>) -> Result<Arc<SpillFile>> {
        match (self.temp_dir, target.table.blobs().directory()) {
            (Some(folder), _) => SpillFile::create(folder),
            (None, Some(root)) => SpillFile::create_in_root(root),
            (None, None) => SpillFile::create(&std::env::temp_dir()),
        }
    }

    /// Merges spills of a window into fewer, until so few are left that a page of each fits into a range of `range_bytes`.
    fn merge_into_fewer(
        &self,
        target: &TableTarget<'_>,
        state: &mut TargetState,
        window: i64,
        mut spills: Vec<Spill>,
        range_bytes: u64,
    ) -> Result<Vec<Spill>> {
        let schema = target.layout.stored();
        let numbers = target.layout.key_numbers().map(Arc::new);
        let clock = Instant::now();
        loop {
            let most = most_at_once(&spills, range_bytes);
            if spills.len() <= most {
                state.stats.spill += clock.elapsed();
                return Ok(spills);
            }

            let file = self.spill_file(target)?;
            let pages: usize = spills.iter().map(|spill| spill.pages.len()).sum();
            let page_events = events_of(&spills).div_ceil(pages.max(1));
            let mut fewer = Vec::new();
            for group in spills.chunks(most) {
                let mut parts = Vec::new();
                for range in key_ranges(group, range_bytes) {
                    let read = RangeEvents::read(schema, group, window, &range, numbers.as_ref())?;
                    let first_unit = state.next_unit();
                    let events = Events { chunks: &read.chunks, window, ranks: &read.ranks, first_unit };
                    parts.push(file.write(schema, events, page_events, &|| self.feed.go_on())?);
                }
                fewer.push(Spill::joined(&file, parts));
            }
            state.stats.bytes_spilled += file.bytes();
            spills = fewer;
        }
    }

    /// Merges spilled windows in ranges of about `range_bytes` in memory together, and writes them.
    fn merge_windows(
        &self,
        target: &TableTarget<'_>,
        state: &mut TargetState,
        windows: &[i64],
        range_bytes: u64,
    ) -> Result<()> {
        let range_bytes = range_bytes / ranges_at_once() as u64;
        let mut spills: BTreeMap<i64, Vec<Spill>> = BTreeMap::new();
        for window in windows {
            let own = state.spills.remove(window).unwrap_or_default();
            spills.insert(*window, self.merge_into_fewer(target, state, *window, own, range_bytes)?);
        }

        let windows = WindowsBySize::new(windows.iter().copied(), |window| events_of(&spills[&window]));
        self.write_windows(target, state, windows, &|window, mut out| {
            out.merge(&spills[&window], range_bytes)?;
            out.end()
        })
    }

    /// Writes windows by `write`, and records their SSTs.
    fn write_windows(
        &self,
        target: &TableTarget<'_>,
        state: &mut TargetState,
        windows: WindowsBySize,
        write: &(dyn Fn(i64, WindowWriter<'_, '_>) -> Result<LoadStats> + Sync),
    ) -> Result<()> {
        let (table, layout) = (target.table, target.layout);
        let writer = SstWriter {
            table,
            layout,
            schema: layout.stored(),
            ids: self.ids,
            limits: StripeLimits::default(),
            versions: hiding_rules(target),
            on_written: &|rows| {
                (self.on_progress)(Progress::Wrote { rows });
                self.feed.go_on()
            },
        };

        let files = files_at_once(table.blobs().as_ref(), self.memory);
        let (counted, finished) = Finisher::beside(files, |finisher| {
            let write = |window| write(window, writer.window(window, finisher));
            let mut written: Vec<Result<LoadStats>> = windows.large.into_iter().map(write).collect();
            written.par_extend(windows.small.into_par_iter().map(write));
            written
        });
        state.record(finished, counted)
    }
}

/// What the rules of a table hide of the cells of a load at once, where that is no intention: see
/// [`LoadStats::hidden_versions`].
fn hiding_rules(target: &TableTarget<'_>) -> Option<GcFilter> {
    let TableTarget { layout, gc, .. } = target;
    if layout.stored().upsert {
        return None;
    }
    // The store refuses a rule that cannot be read.
    let rules = gc.iter().filter_map(|(family, rule)| Some((family.clone(), GcRule::parse(rule).ok()?)));
    GcFilter::of_versions(layout.stored(), &rules.collect(), |group| layout.shows_time_of_day(group))
}

/// Windows to write, which are spread over the cores in one of two ways.
struct WindowsBySize {
    /// Each is written by all cores.
    large: Vec<i64>,
    /// Several are written at a time.
    small: Vec<i64>,
}

impl WindowsBySize {
    /// Tells windows apart by their number of events.
    fn new(windows: impl IntoIterator<Item = i64>, events: impl Fn(i64) -> usize) -> Self {
        let (large, small) = windows.into_iter().partition(|window| events(*window) >= LARGE_WINDOW);
        Self { large, small }
    }
}

fn events_of(spills: &[Spill]) -> usize {
    spills.iter().flat_map(|spill| &spill.pages).map(|page| page.events).sum()
}
