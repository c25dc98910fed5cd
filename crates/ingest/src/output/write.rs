//! Writes the sorted pieces of a window as SSTs.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use tidetable_layout::{Layout, StoredSchema};
use tidetable_sstable::{Compression, StripeLimits, WriteOptions, encode_rows, stripe_splits};
use tidetable_store::Ids;
use tidetable_store::Table;
use tidetable_store::row_size;
use tidetable_store::write::{SizedStripe, SstFile, write_error};
use tidetable_store::{Result, StoreError};

use crate::output::finish::{Finisher, OutputId};
use crate::sort::chunk::{AllRanks, Chunk, event_bytes};
use crate::sort::partition::Partition;
use crate::sort::piece::PieceEvents;
use crate::sort::rows;
use crate::sort::rows::SortedPiece;
use crate::stats::LoadStats;

/// Events of a piece of a window: those of a full stripe, whose keys and values are in the cache while it is built.
const PIECE_EVENTS: usize = 65_536;
/// Bytes of values of a piece where events are wide, about one full stripe.
const PIECE_BYTES: usize = 8 << 20;
/// Pieces that are encoded for each core before those of the batch before are written.
const PIECES_A_CORE: usize = 4;

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
        let most = PIECE_EVENTS.min(PIECE_BYTES / event_bytes(chunks, start).max(1));
        let partition = Partition::new(self.schema, chunks, start, ranks, most);
        stats.sort += clock.elapsed();
        let pieces: Vec<usize> = (0..partition.len()).collect();
        // Encoding a few pieces at a time bounds memory; the batch before is written meanwhile.
        let mut batches = pieces.chunks(rayon::current_num_threads() * PIECES_A_CORE);
        let mut files = Files { writer: self, finisher, window: start, count: 0, open: None };
        let mut encoded = Vec::new();
        let lost = Mutex::new(HashSet::new());
        loop {
            let batch = batches.next();
            let (next, written) = rayon::join(
                || self.encode_batch(&partition, batch.unwrap_or_default(), ranks, &lost),
                || files.write(std::mem::take(&mut encoded)),
            );
            stats.write += written?;
            let (counts, stripes) = next?;
            stats.add(&counts);
            encoded = stripes;
            (self.on_written)(batch.into_iter().flatten().map(|piece| partition.events(*piece) as u64).sum())?;
            if batch.is_none() {
                files.end();
                stats.overwritten_rows = lost.into_inner().unwrap_or_else(PoisonError::into_inner).len() as u64;
                return Ok(stats);
            }
        }
    }

    fn encode_batch(
        &self,
        partition: &Partition<'_>,
        batch: &[usize],
        ranks: &AllRanks,
        lost: &Mutex<HashSet<u32>>,
    ) -> Result<(LoadStats, Vec<SizedStripe>)> {
        let clock = Instant::now();
        let encoded: Vec<_> =
            batch.par_iter().map(|piece| self.encode(partition, *piece, ranks, lost)).collect::<Result<_>>()?;
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
        partition: &Partition<'_>,
        piece: usize,
        ranks: &AllRanks,
        lost: &Mutex<HashSet<u32>>,
    ) -> Result<(LoadStats, Vec<SizedStripe>)> {
        // Stripes do not contain the uid.
        let options = &self.options(0);
        let repeats = |group: usize, column: usize| self.layout.follows_from_key(group, column);
        let events = PieceEvents::collect(partition, piece)?;
        let built = rows::build(self.schema, &events, ranks, &repeats);
        drop(events);
        let of_table = |error: StoreError| error.of_table(self.table.name());
        let SortedPiece { block, overwritten, lost: own, emptied } = built.map_err(of_table)?;
        // A source row may lose cells in several pieces, and counts once.
        if !own.is_empty() {
            lost.lock().unwrap_or_else(PoisonError::into_inner).extend(own);
        }
        let sizes = row_size::measure(self.schema, &block, self.table.row_limit());
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
