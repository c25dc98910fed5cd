//! Writing the sorted pieces of a window as SSTs.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;
use tidetable_layout::StoredSchema;
use tidetable_sstable::{Compression, EncodedStripe, StripeLimits, WriteOptions, encode_rows, stripe_cuts};

use super::chunk::{AllRanks, Chunk, WindowEvents};
use super::order::RowOrder;
use super::rows::{self, Piece};
use super::stats::LoadStats;
use crate::error::Result;
use crate::ids::Ids;
use crate::output::{SstFile, write_error};
use crate::table::Table;
use crate::version::Sst;

/// Events a piece of a window has, about: enough for a few full stripes.
const PIECE_EVENTS: usize = 262_144;
/// Bytes of their values, about, where events are wide: two stripes of full size.
const PIECE_BYTES: usize = 16 << 20;

/// Writes SSTs of one table.
pub(super) struct SstWriter<'a> {
    pub(super) table: &'a Table,
    pub(super) schema: &'a Arc<StoredSchema>,
    pub(super) ids: &'a dyn Ids,
    pub(super) limits: StripeLimits,
}

impl SstWriter<'_> {
    /// Sorts the events of window `start` in `chunks` and writes them: one SST, or more if it is large.
    pub(super) fn write_window(&self, chunks: &[Chunk], start: i64, ranks: &AllRanks) -> Result<(Vec<Sst>, LoadStats)> {
        let mut stats = LoadStats::default();
        let clock = Instant::now();
        let window = WindowEvents::collect(self.schema, chunks, start, ranks);
        let order = RowOrder::new(&window, ranks.prefixes.names.len());
        stats.sort += clock.elapsed();
        let mut ssts = Vec::new();
        let mut open: Option<SstFile<'_>> = None;
        // A few pieces at a time bound what waits to be written.
        let events = PIECE_EVENTS.min(PIECE_BYTES / window.event_bytes().max(1));
        for batch in order.pieces(events).chunks(rayon::current_num_threads() * 2) {
            let clock = Instant::now();
            let uid = match &open {
                Some(open) => open.uid(),
                None => self.ids.next(),
            };
            let options = self.options(uid);
            let encoded: Vec<(LoadStats, Vec<EncodedStripe>)> = batch
                .par_iter()
                .map(|rows| self.encode(&window, &order, rows.clone(), ranks, &options))
                .collect::<Result<_>>()?;
            stats.encode += clock.elapsed();
            let clock = Instant::now();
            let mut file = match open.take() {
                Some(open) => open,
                None => SstFile::begin(self.table, self.schema, &options)?,
            };
            for (counts, stripes) in encoded {
                stats.add(&counts);
                stripes.into_iter().try_for_each(|stripe| file.push(stripe))?;
            }
            if file.is_full() {
                ssts.push(Self::end(file, &mut stats)?);
            } else {
                open = Some(file);
            }
            stats.write += clock.elapsed();
        }
        if let Some(file) = open {
            let clock = Instant::now();
            ssts.push(Self::end(file, &mut stats)?);
            stats.write += clock.elapsed();
        }
        Ok((ssts.into_iter().flatten().collect(), stats))
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
        options: &WriteOptions,
    ) -> Result<(LoadStats, Vec<EncodedStripe>)> {
        let built = rows::build(self.schema, window, order, rows, ranks);
        let Piece { block, overwritten, sizes } = built.map_err(|error| error.of_table(self.table.name()))?;
        let cuts = stripe_cuts(self.schema, &block, &self.limits);
        let stripes = cuts
            .into_par_iter()
            .map(|rows| {
                encode_rows(self.schema, options, &block, rows).map_err(|source| write_error(self.table, source))
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

    /// `None` if it would hold no row.
    fn end(file: SstFile<'_>, stats: &mut LoadStats) -> Result<Option<Sst>> {
        let sst = file.end()?;
        if let Some(sst) = &sst {
            stats.rows_written += sst.rows;
            stats.cells += sst.cells;
            stats.bytes_out += sst.bytes;
        }
        Ok(sst)
    }
}
