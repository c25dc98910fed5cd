//! Writing the sorted pieces of a window as SSTs.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;
use tidetable_layout::StoredSchema;
use tidetable_sstable::{Compression, EncodedStripe, StripeLimits, WriteOptions, Writer, encode_rows, stripe_cuts};

use super::chunk::{AllRanks, Chunk, WindowEvents};
use super::order::RowOrder;
use super::rows::{self, Piece};
use super::stats::LoadStats;
use crate::blobs::BlobWriter;
use crate::error::{Result, StoreError};
use crate::ids::{Ids, ulid_text};
use crate::table::Table;
use crate::version::Sst;

/// Events a piece of a window has at least: enough stripes to compress side by side.
const PIECE_EVENTS: usize = 262_144;
/// Bytes after which a new SST is begun.
const SST_BYTES: u64 = 256 << 20;

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
        let window = WindowEvents::collect(self.schema, chunks, start, ranks)?;
        let order = RowOrder::new(&window, ranks.prefixes.names.len());
        stats.sort += clock.elapsed();
        let mut ssts = Vec::new();
        let mut open: Option<OpenSst> = None;
        // A few pieces at a time bound what waits to be written.
        for batch in order.pieces(PIECE_EVENTS).chunks(rayon::current_num_threads() * 2) {
            let clock = Instant::now();
            let uid = match &open {
                Some(open) => open.uid,
                None => self.ids.next(),
            };
            let options = self.options(uid);
            let encoded: Vec<(u64, Vec<EncodedStripe>)> = batch
                .par_iter()
                .map(|rows| self.encode(&window, &order, rows.clone(), ranks, &options))
                .collect::<Result<_>>()?;
            stats.encode += clock.elapsed();
            let clock = Instant::now();
            let mut file = match open.take() {
                Some(open) => open,
                None => self.begin(&options)?,
            };
            for (overwritten, stripes) in encoded {
                stats.overwritten += overwritten;
                for stripe in stripes {
                    file.bytes += stripe.len() as u64;
                    file.writer.push(stripe).map_err(|source| self.write_error(source))?;
                }
            }
            if file.bytes >= SST_BYTES {
                ssts.push(self.end(file, &mut stats)?);
            } else {
                open = Some(file);
            }
            stats.write += clock.elapsed();
        }
        if let Some(file) = open {
            let clock = Instant::now();
            ssts.push(self.end(file, &mut stats)?);
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
    ) -> Result<(u64, Vec<EncodedStripe>)> {
        let Piece { block, overwritten } = rows::build(self.schema, window, order, rows, ranks)?;
        let cuts = stripe_cuts(self.schema, &block, &self.limits);
        let stripes = cuts
            .into_par_iter()
            .map(|rows| encode_rows(self.schema, options, &block, rows).map_err(|source| self.write_error(source)))
            .collect::<Result<_>>()?;
        Ok((overwritten, stripes))
    }

    fn begin(&self, options: &WriteOptions) -> Result<OpenSst> {
        let id = ulid_text(options.uid);
        let out = self.table.blobs().writer(&self.table.sst_path(&id))?;
        let metadata = [("table".to_owned(), self.table.name().to_owned())].into();
        let writer = Writer::new(out, Arc::clone(self.schema), options.clone(), metadata)
            .map_err(|source| self.write_error(source))?;
        Ok(OpenSst { uid: options.uid, id, writer, bytes: 0 })
    }

    /// `None` if it would hold no row; then the file is dropped.
    fn end(&self, file: OpenSst, stats: &mut LoadStats) -> Result<Option<Sst>> {
        let (mut out, summary) = file.writer.finish().map_err(|source| self.write_error(source))?;
        if summary.rows == 0 {
            return Ok(None);
        }
        let path = self.table.sst_path(&file.id);
        out.flush().map_err(|source| StoreError::Io { action: "write", path, source })?;
        out.finish()?;
        stats.rows_written += summary.rows;
        stats.cells += summary.cells;
        stats.bytes_out += summary.bytes;
        Ok(Some(Sst {
            id: file.id,
            order: 0,
            level: 0,
            bytes: summary.bytes,
            checksum: format!("{:032x}", summary.checksum),
            rows: summary.rows,
            cells: summary.cells,
            first_key: summary.first_key,
            last_key: summary.last_key,
            min_timestamp: summary.min_timestamp,
            max_timestamp: summary.max_timestamp,
        }))
    }

    fn write_error(&self, source: tidetable_sstable::WriteError) -> StoreError {
        StoreError::Write { table: self.table.name().to_owned(), source }
    }
}

struct OpenSst {
    uid: u128,
    id: String,
    writer: Writer<Box<dyn BlobWriter>>,
    bytes: u64,
}
