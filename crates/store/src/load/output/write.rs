//! Writes the sorted pieces of a window as SSTs.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use tidetable_layout::{Layout, StoredSchema};
use tidetable_sstable::{Compression, StripeLimits, WriteOptions, encode_rows, stripe_splits};

use crate::error::{Result, StoreError};
use crate::ids::Ids;
use crate::load::output::finish::{Finisher, OutputId};
use crate::load::sort::chunk::{AllRanks, Chunk, WindowEvents};
use crate::load::sort::order::RowOrder;
use crate::load::sort::rows;
use crate::load::sort::rows::SortedPiece;
use crate::load::stats::LoadStats;
use crate::maintenance::size;
use crate::sst_writer::{SizedStripe, SstFile, write_error};
use crate::table::Table;

/// Events of a piece of a window, about two full stripes.
const PIECE_EVENTS: usize = 131_072;
/// Bytes of values of a piece where events are wide, about one full stripe.
const PIECE_BYTES: usize = 8 << 20;

/// Writes SSTs of one table.
pub(crate) struct SstWriter<'a> {
    pub(crate) table: &'a Table,
    pub(crate) layout: &'a Layout,
    pub(crate) schema: &'a Arc<StoredSchema>,
    pub(crate) ids: &'a dyn Ids,
    pub(crate) limits: StripeLimits,
    /// Called repeatedly with the number of rows encoded; an error ends the writing.
    pub(crate) on_written: &'a (dyn Fn(u64) -> Result<()> + Sync),
}

impl<'t> SstWriter<'t> {
    /// Sorts the events of window `start` in `chunks` and writes them as one SST, or more if the window is large.
    /// `finisher` finishes them.
    pub(crate) fn write_window(
        &self,
        chunks: &[Chunk],
        start: i64,
        ranks: &AllRanks,
        finisher: &Finisher<'t>,
    ) -> Result<LoadStats> {
        let mut stats = LoadStats::default();
        let clock = Instant::now();
        let window = WindowEvents::collect(self.schema, chunks, start, ranks);
        let order = RowOrder::new(&window, ranks.prefixes.names.len());
        stats.sort += clock.elapsed();
        let events = PIECE_EVENTS.min(PIECE_BYTES / window.event_bytes().max(1));
        let pieces = order.pieces(events);
        // Encoding a few pieces at a time bounds memory; the batch before is written meanwhile.
        let mut batches = pieces.chunks(rayon::current_num_threads() * 4).peekable();
        let mut files = Files { writer: self, finisher, window: start, count: 0, open: None };
        let mut encoded = Vec::new();
        let lost = Mutex::new(HashSet::new());
        loop {
            let batch = batches.next();
            let (next, written) = rayon::join(
                || self.encode_batch(&window, &order, batch.unwrap_or_default(), ranks, &lost),
                || files.write(std::mem::take(&mut encoded)),
            );
            stats.write += written?;
            let (counts, stripes) = next?;
            stats.add(&counts);
            encoded = stripes;
            (self.on_written)(order.events(batch.unwrap_or_default()))?;
            if batch.is_none() {
                files.end();
                stats.overwritten_rows = lost.into_inner().unwrap_or_else(PoisonError::into_inner).len() as u64;
                return Ok(stats);
            }
        }
    }

    fn encode_batch(
        &self,
        window: &WindowEvents,
        order: &RowOrder,
        batch: &[Range<usize>],
        ranks: &AllRanks,
        lost: &Mutex<HashSet<u32>>,
    ) -> Result<(LoadStats, Vec<SizedStripe>)> {
        let clock = Instant::now();
        let encoded: Vec<_> = batch
            .par_iter()
            .map(|rows| self.encode(window, order, rows.clone(), ranks, lost))
            .collect::<Result<_>>()?;
        let mut stats = LoadStats { encode: clock.elapsed(), ..LoadStats::default() };
        let mut all = Vec::new();
        for (counts, stripes) in encoded {
            stats.add(&counts);
            all.extend(stripes);
        }
        Ok((stats, all))
    }

    fn options(&self, uid: u128) -> WriteOptions {
        WriteOptions { uid, level: Compression::Fresh, stripe: self.limits }
    }

    fn encode(
        &self,
        window: &WindowEvents,
        order: &RowOrder,
        rows: Range<usize>,
        ranks: &AllRanks,
        lost: &Mutex<HashSet<u32>>,
    ) -> Result<(LoadStats, Vec<SizedStripe>)> {
        // Stripes do not contain the uid.
        let options = &self.options(0);
        let repeats = |group: usize, column: usize| self.layout.follows_from_key(group, column);
        let built = rows::build(self.schema, window, order, rows, ranks, &repeats);
        let of_table = |error: StoreError| error.of_table(self.table.name());
        let SortedPiece { block, overwritten, lost: own, emptied } = built.map_err(of_table)?;
        // A source row may lose cells in several pieces, and counts once.
        if !own.is_empty() {
            lost.lock().unwrap_or_else(PoisonError::into_inner).extend(own);
        }
        let sizes = size::measure(self.schema, &block, self.table.row_limit());
        let sizes = sizes.within_limit(&block.keys).map_err(of_table)?;
        let cuts = stripe_splits(self.schema, &block, &self.limits);
        let stripes = cuts
            .into_par_iter()
            .map(|rows| {
                let stripe = encode_rows(self.schema, options, &block, rows);
                let stripe = stripe.map_err(|source| write_error(self.table.name(), source))?;
                Ok(SizedStripe { stripe, largest_row: sizes.most, emptied })
            })
            .collect::<Result<_>>()?;
        let counts = LoadStats {
            overwritten,
            large_rows: sizes.rows,
            largest_row: sizes.largest,
            large_cells: sizes.cells,
            ..LoadStats::default()
        };
        Ok((counts, stripes))
    }
}

/// The files of a window, in key order.
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
