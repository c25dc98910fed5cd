//! Writes the sorted pieces of a window as SSTs.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rayon::prelude::*;
use tidetable_layout::{Layout, StoredSchema};
use tidetable_sstable::{Compression, StripeLimits, WriteOptions, encode_rows, stripe_splits};
use tidetable_store::row_size;
use tidetable_store::write::{SizedStripe, SstFile, write_error};
use tidetable_store::{GcFilter, Ids, Result, Table};

use crate::output::finish::{Finisher, OutputId};
use crate::sort::chunk::{AllRanks, event_bytes};
use crate::sort::partition::{Events, Partition};
use crate::sort::piece::PieceEvents;
use crate::sort::rows;
use crate::sort::rows::SortedPiece;
use crate::spill::file::Spill;
use crate::spill::merge::RangeEvents;
use crate::spill::ranges::{KeyRange, key_ranges};
use crate::stats::{LoadStats, key_text};

/// Events of a piece of a window: those of a full stripe, whose keys and values are in the cache while it is built.
const PIECE_EVENTS: usize = 65_536;
/// Bytes of values of a piece where events are wide, about one full stripe.
const PIECE_BYTES: usize = 8 << 20;
/// Pieces that are encoded for each core before those of the batch before are written.
const PIECES_A_CORE: usize = 4;
/// Ranges of spilled windows that are in memory for each core.
const RANGES_A_CORE: usize = 2;

/// Source rows are numbered from a multiple of this power of two for each spill and range.
pub(crate) const UNIT_BITS: u32 = 32;
/// The numbers of source rows that are numbered when spills are merged.
const MERGED_UNITS: u64 = 1 << 63;

/// Writes SSTs of one table: what is the same for all its windows.
pub(crate) struct SstWriter<'a> {
    pub(crate) table: &'a Table,
    pub(crate) layout: &'a Layout,
    pub(crate) schema: &'a Arc<StoredSchema>,
    pub(crate) ids: &'a dyn Ids,
    pub(crate) limits: StripeLimits,
    /// What rules on versions hide at once; `None` if that is nothing.
    pub(crate) versions: Option<GcFilter>,
    /// Called repeatedly with the number of rows encoded; an error ends the writing.
    pub(crate) on_written: &'a (dyn Fn(u64) -> Result<()> + Sync),
}

impl<'t> SstWriter<'t> {
    /// Begins to write window `start`; `finisher` finishes its files.
    pub(crate) fn window<'w>(&'w self, start: i64, finisher: &'w Finisher<'t>) -> WindowWriter<'w, 't> {
        WindowWriter {
            writer: self,
            files: Files { writer: self, finisher, window: start, count: 0, open: None },
            encoded: Vec::new(),
            lost: HashSet::new(),
            stats: LoadStats::default(),
        }
    }

    fn options(&self, uid: u128) -> WriteOptions {
        WriteOptions { uid, level: Compression::Fresh, stripe: self.limits }
    }

    /// Reads range `number` of a spilled window, and encodes it.
    fn encode_range(&self, spills: &[Spill], window: i64, number: u64, range: &KeyRange) -> Result<Vec<EncodedPiece>> {
        let numbers = self.layout.key_numbers().map(Arc::new);
        let RangeEvents { chunks, ranks } = RangeEvents::read(self.schema, spills, window, range, numbers.as_ref())?;
        // Apart from the numbers that were spilled.
        let first_unit = MERGED_UNITS | number << UNIT_BITS;
        let events = Events { chunks: &chunks, window, ranks: &ranks, first_unit };
        let partition = Partition::new(self.schema, events, piece_events(&events));
        (0..partition.len()).into_par_iter().map(|piece| self.encode(&partition, piece, &ranks)).collect()
    }

    /// Encodes a piece of sorted events as stripes, and checks the sizes of its rows.
    fn encode(&self, partition: &Partition<'_>, piece: usize, ranks: &AllRanks) -> Result<EncodedPiece> {
        // Stripes do not contain the uid.
        let options = &self.options(0);
        let events = PieceEvents::collect(partition, piece)?;
        let built =
            rows::build(self.schema, &events, ranks, &|group, column| self.layout.follows_from_key(group, column));
        drop(events);

        let table = self.table.name();
        let SortedPiece { block, overwritten, changed, changed_in_row, lost, emptied } =
            built.map_err(|error| error.of_table(table))?;
        let sizes = row_size::measure(self.schema, &block, self.table.row_limit());
        let sizes = sizes.within_limit(&block.keys).map_err(|error| error.of_table(table))?;

        let hidden = self.versions.as_ref().map(|versions| versions.count(self.schema, &block)).unwrap_or_default();
        let hidden_in_row = hidden.first_row.map(|row| key_text(&block.keys.get(row)));

        let cuts = stripe_splits(self.schema, &block, &self.limits);
        let stripes = cuts.into_par_iter().map(|rows| {
            let stripe = encode_rows(self.schema, options, &block, rows);
            let stripe = stripe.map_err(|source| write_error(table, source))?;
            Ok(SizedStripe { stripe, largest_row: sizes.most, emptied })
        });
        let stripes = stripes.collect::<Result<_>>()?;

        let counts = LoadStats {
            overwritten,
            overwritten_changed: changed,
            changed_in_row: changed_in_row.map(|key| key_text(&key)),
            hidden_versions: hidden.cells,
            hidden_in_row,
            large_rows: sizes.rows,
            largest_row: sizes.largest,
            large_cells: sizes.cells,
            ..LoadStats::default()
        };
        Ok(EncodedPiece { events: partition.events(piece), counts, stripes, lost })
    }
}

/// Ranges of spilled windows that are in memory at a time.
pub(crate) fn ranges_at_once() -> usize {
    rayon::current_num_threads() * RANGES_A_CORE
}

/// The most events of a piece of these events.
fn piece_events(events: &Events<'_>) -> usize {
    PIECE_EVENTS.min(PIECE_BYTES / event_bytes(events.chunks, events.window).max(1))
}

/// A piece of a window, encoded.
struct EncodedPiece {
    events: usize,
    counts: LoadStats,
    stripes: Vec<SizedStripe>,
    /// Source rows that lost cells, see [`SortedPiece::lost`].
    lost: Vec<u64>,
}

/// A window being written: one range of row keys after the other, each with all events of its rows.
pub(crate) struct WindowWriter<'w, 't> {
    writer: &'w SstWriter<'t>,
    files: Files<'w, 't>,
    /// Stripes of the last pieces, which wait to be written while the next are encoded.
    encoded: Vec<SizedStripe>,
    /// The source rows of which cells were replaced. A source row may lose cells in several pieces, and counts once.
    lost: HashSet<u64>,
    stats: LoadStats,
}

impl WindowWriter<'_, '_> {
    /// Sorts, encodes and writes the events of a range of row keys that follow those before.
    ///
    /// # Errors
    /// If equal cells cannot be merged, a row is over the limit, or a file cannot be written.
    pub(crate) fn write(&mut self, events: Events<'_>) -> Result<()> {
        let clock = Instant::now();
        let ranks = events.ranks;
        let partition = Partition::new(self.writer.schema, events, piece_events(&events));
        self.stats.sort += clock.elapsed();

        // Encoding a few pieces at a time bounds memory.
        let pieces: Vec<usize> = (0..partition.len()).collect();
        let writer = self.writer;
        for batch in pieces.chunks(rayon::current_num_threads() * PIECES_A_CORE) {
            self.push(|| batch.par_iter().map(|piece| writer.encode(&partition, *piece, ranks)).collect())?;
        }
        Ok(())
    }

    /// Merges the spills of the window in ranges of about `range_bytes` in memory, several of them on all cores.
    ///
    /// # Errors
    /// As [`Self::write`], and if a spill cannot be read.
    pub(crate) fn merge(&mut self, spills: &[Spill], range_bytes: u64) -> Result<()> {
        let (writer, window) = (self.writer, self.files.window);
        let ranges: Vec<(u64, KeyRange)> = (0u64..).zip(key_ranges(spills, range_bytes)).collect();
        for batch in ranges.chunks(ranges_at_once()) {
            self.push(|| {
                let pieces =
                    batch.par_iter().map(|(number, range)| writer.encode_range(spills, window, *number, range));
                let pieces: Vec<Vec<EncodedPiece>> = pieces.collect::<Result<_>>()?;
                Ok(pieces.into_iter().flatten().collect())
            })?;
        }
        Ok(())
    }

    /// Encodes pieces by `encode`, which follow those before; these are written meanwhile.
    fn push(&mut self, encode: impl FnOnce() -> Result<Vec<EncodedPiece>> + Send) -> Result<()> {
        let before = std::mem::take(&mut self.encoded);
        let clock = Instant::now();
        let (pieces, written) = rayon::join(encode, || self.files.write(before));
        self.stats.write += written?;
        let pieces = pieces?;
        self.stats.encode += clock.elapsed();

        let events: usize = pieces.iter().map(|piece| piece.events).sum();
        for piece in pieces {
            self.stats.add(&piece.counts);
            self.encoded.extend(piece.stripes);
            self.lost.extend(piece.lost);
        }
        (self.writer.on_written)(events as u64)
    }

    /// Ends the last file, and returns the counts.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(crate) fn end(mut self) -> Result<LoadStats> {
        self.stats.write += self.files.write(self.encoded)?;
        self.files.end();
        self.stats.overwritten_rows = self.lost.len() as u64;
        Ok(self.stats)
    }
}

/// The files of a window in key order, of which the last is open.
struct Files<'a, 't> {
    writer: &'a SstWriter<'t>,
    finisher: &'a Finisher<'t>,
    window: i64,
    count: usize,
    open: Option<SstFile<'t>>,
}

impl Files<'_, '_> {
    /// Writes stripes, and returns the time it took.
    fn write(&mut self, stripes: Vec<SizedStripe>) -> Result<Duration> {
        let clock = Instant::now();
        for stripe in stripes {
            let file = match &mut self.open {
                Some(open) => open,
                None => {
                    let SstWriter { table, schema, ids, .. } = self.writer;
                    self.open.insert(SstFile::begin(table.ssts(), schema, &self.writer.options(ids.next()))?)
                }
            };
            file.push(stripe)?;
            if file.is_full() {
                self.end();
            }
        }
        Ok(clock.elapsed())
    }

    fn end(&mut self) {
        if let Some(file) = self.open.take() {
            self.finisher.finish(OutputId { window: self.window, file: self.count }, file);
            self.count += 1;
        }
    }
}
