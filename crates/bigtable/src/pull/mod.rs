//! Pulls rows of Bigtable into files that a job loads: as records of its source, or cell by cell as they are.
//!
//! A [`Pull`] reads ranges of keys in parallel, and writes a Parquet file for each. Rows that the layout cannot have written
//! are listed with their keys. After a kill the next pull reads the ranges whose files are missing.

mod raw;
mod records;
mod state;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use tidetable_layout::KeyRange;
use tokio::runtime::Handle;

use crate::client::{Client, ReadQuery, Row, RowStream, TableName};
use crate::error::{BigtableError, Result};
use crate::proto::data::row_filter::{Chain, Filter};
use crate::proto::data::{RowFilter, TimestampRange};
use crate::push::{ranges, thinned};

pub use raw::{RAW_COLUMNS, RawDecoder, family_column, raw_job};
pub use records::RecordDecoder;
pub use state::{PullCounts, PullPart, PullState};

/// The greatest number of files.
const MOST_PARTS: usize = 64;
/// Rows of a group of a file.
const GROUP_ROWS: usize = 1 << 17;

/// What is read of a table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PullSelection {
    /// Row keys.
    pub range: KeyRange,
    /// Only cells of these families; all if empty.
    pub families: Vec<String>,
    /// Only cells with a timestamp from here on, microseconds.
    pub from: Option<i64>,
    /// Only cells with a timestamp before this.
    pub to: Option<i64>,
    /// At most this many cells of each column, the newest.
    pub versions: Option<u32>,
    /// The share of rows that is read, at random.
    pub sample: Option<f64>,
}

impl PullSelection {
    /// The filter of its requests; none if all cells are wanted.
    pub fn filter(&self) -> Option<RowFilter> {
        let mut filters = Vec::new();
        if let Some(share) = self.sample {
            filters.push(Filter::RowSampleFilter(share));
        }
        if !self.families.is_empty() {
            let names: Vec<String> = self.families.iter().map(|name| name.replace('.', "\\.")).collect();
            filters.push(Filter::FamilyNameRegexFilter(names.join("|")));
        }
        if self.from.is_some() || self.to.is_some() {
            filters.push(Filter::TimestampRangeFilter(TimestampRange {
                start_timestamp_micros: self.from.unwrap_or(0),
                end_timestamp_micros: self.to.unwrap_or(0),
            }));
        }
        if let Some(most) = self.versions {
            filters.push(Filter::CellsPerColumnLimitFilter(i32::try_from(most).unwrap_or(i32::MAX)));
        }
        let mut filters: Vec<RowFilter> =
            filters.into_iter().map(|filter| RowFilter { filter: Some(filter) }).collect();
        match filters.len() {
            0 | 1 => filters.pop(),
            _ => Some(RowFilter { filter: Some(Filter::Chain(Chain { filters })) }),
        }
    }
}

/// Rows as they are written.
#[derive(Debug)]
pub enum Decoder {
    /// As records of a source.
    Records(RecordDecoder),
    /// Cell by cell.
    Raw(RawDecoder),
}

impl Decoder {
    fn schema(&self) -> &SchemaRef {
        match self {
            Self::Records(decoder) => decoder.schema(),
            Self::Raw(decoder) => decoder.schema(),
        }
    }

    fn decode(&self, rows: &[Row]) -> Result<Decoded> {
        match self {
            Self::Records(decoder) => decoder.decode(rows),
            Self::Raw(decoder) => decoder.decode(rows),
        }
    }
}

/// Decoded rows.
#[derive(Debug)]
pub struct Decoded {
    /// Their records.
    pub batches: Vec<RecordBatch>,
    /// Rows that could not be decoded.
    pub undecoded: Vec<Undecoded>,
}

/// A row that could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecoded {
    /// Its key.
    pub key: Bytes,
    /// Its cells.
    pub cells: u64,
    /// Why.
    pub reason: String,
}

impl Undecoded {
    fn of(row: &Row, reason: String) -> Self {
        Self { key: row.key.clone(), cells: row.cells.len() as u64, reason }
    }
}

/// A pull of a table.
#[derive(Debug, Clone)]
pub struct Pull {
    /// The client.
    pub client: Client,
    /// The table.
    pub source: TableName,
    /// What is read of it.
    pub selection: PullSelection,
    /// How rows are written.
    pub decoder: Arc<Decoder>,
    /// The directory of the files.
    pub directory: PathBuf,
    /// Ranges of keys at a time.
    pub workers: usize,
    /// Ends it at the next opportunity.
    pub stop: tidetable_runner::Stop,
}

/// What a pull did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullReport {
    /// Its counts.
    pub counts: PullCounts,
    /// Files.
    pub files: usize,
    /// Parts that a pull before it had written.
    pub kept: usize,
    /// The file of rows that could not be decoded, if there are any.
    pub rejected: Option<PathBuf>,
}

impl Pull {
    /// Reads and writes. `watch` is told of the counts after each part.
    ///
    /// # Errors
    /// What ended it; files that are written stay.
    pub fn run(&self, watch: &(dyn Fn(&PullCounts) + Sync), runtime: &Handle) -> Result<PullReport> {
        let failed = |source| BigtableError::File { path: self.directory.clone(), source };
        std::fs::create_dir_all(&self.directory).map_err(failed)?;
        let (state, kept) = self.begin(runtime)?;
        state.save(&self.directory)?;
        let state = Mutex::new(state);
        let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
        let parts = lock().parts.clone();
        let open: Vec<(usize, PullPart)> =
            parts.into_iter().enumerate().filter(|(_, part)| part.counts.is_none()).collect();
        let work = stream::iter(open).map(|(at, part)| {
            let pull = self.clone();
            let state = &state;
            async move {
                let work = tokio::task::spawn_blocking(move || pull.part(at, &part)).await;
                let counts = work.unwrap_or(Err(BigtableError::Stopped { signal: 0 }))?;
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(part) = state.parts.get_mut(at) {
                    part.counts = Some(counts);
                }
                watch(&state.counts());
                state.save(&self.directory)
            }
        });
        runtime.block_on(work.buffer_unordered(self.workers.max(1)).try_collect::<Vec<()>>())?;
        let mut state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let rejected = self.join_rejects(&state)?;
        state.finished = true;
        state.save(&self.directory)?;
        Ok(PullReport { counts: state.counts(), files: state.parts.len(), kept, rejected })
    }

    /// The parts, and the number of those that are there already.
    fn begin(&self, runtime: &Handle) -> Result<(PullState, usize)> {
        let source = format!("{} {:?}", self.source, self.selection);
        let raw = matches!(*self.decoder, Decoder::Raw(_));
        if let Some(mut known) = PullState::load(&self.directory)?
            && known.source == source
            && known.raw == raw
        {
            if known.finished {
                // The same parts, read again.
                known.parts.iter_mut().for_each(|part| part.counts = None);
            }
            for (at, part) in known.parts.iter_mut().enumerate() {
                if part.counts.is_some() && !self.file(at).exists() {
                    part.counts = None;
                }
            }
            known.finished = false;
            let kept = known.parts.iter().filter(|part| part.counts.is_some()).count();
            return Ok((known, kept));
        }
        let sampled = runtime.block_on(self.client.sample_row_keys(&self.source))?;
        let keys = sampled.into_iter().map(|sample| sample.key).filter(|key| !key.is_empty()).collect();
        let ranges = ranges(&self.selection.range, thinned(keys, MOST_PARTS - 1));
        let parts = ranges.into_iter().map(|range| PullPart { start: range.start, end: range.end, counts: None });
        Ok((PullState { source, raw, parts: parts.collect(), finished: false }, 0))
    }

    fn file(&self, at: usize) -> PathBuf {
        self.directory.join(format!("part-{at:05}.parquet"))
    }

    fn rejects(&self, at: usize) -> PathBuf {
        self.directory.join(format!("part-{at:05}.rejected"))
    }

    /// Reads a range and writes its file.
    fn part(&self, at: usize, part: &PullPart) -> Result<PullCounts> {
        let range = KeyRange { start: part.start.clone(), end: Some(part.end.clone()).filter(|end| !end.is_empty()) };
        let query = ReadQuery { ranges: vec![range], filter: self.selection.filter(), limit: None };
        let stream = self.client.read_rows(&self.source, query);
        let path = self.file(at);
        let aside = state::aside(&path);
        let (counts, rejected) = self.write(stream, &aside)?;
        let rejects = self.rejects(at);
        if rejected.is_empty() {
            let _ = std::fs::remove_file(&rejects);
        } else {
            state::replace(&rejects, &rejected)?;
        }
        std::fs::rename(&aside, &path).map_err(|source| BigtableError::File { path, source })?;
        Ok(counts)
    }

    /// Writes all rows of a stream. Returns lines of those that could not be decoded.
    fn write(&self, mut stream: RowStream, path: &Path) -> Result<(PullCounts, Vec<u8>)> {
        let failed = |source| BigtableError::File { path: path.to_owned(), source };
        let file = std::fs::File::create(path).map_err(failed)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .build();
        let mut writer = ArrowWriter::try_new(file, Arc::clone(self.decoder.schema()), Some(properties))?;
        let (mut counts, mut rejected) = (PullCounts::default(), Vec::new());
        while let Some(rows) = stream.blocking_recv() {
            if let Some(stopped) = self.stop.asked() {
                return Err(BigtableError::Stopped { signal: stopped.0 });
            }
            let rows = rows?;
            counts.rows += rows.len() as u64;
            counts.cells += rows.iter().map(|row| row.cells.len() as u64).sum::<u64>();
            let decoded = self.decoder.decode(&rows)?;
            for batch in &decoded.batches {
                counts.records += batch.num_rows() as u64;
                writer.write(batch)?;
            }
            for row in decoded.undecoded {
                counts.rejected += 1;
                let line = serde_json::json!({
                    "key": row.key.escape_ascii().to_string(), "cells": row.cells, "reason": row.reason,
                });
                rejected.extend_from_slice(line.to_string().as_bytes());
                rejected.push(b'\n');
            }
        }
        let file = writer.into_inner()?;
        file.sync_all().map_err(failed)?;
        Ok((counts, rejected))
    }

    /// Joins the lists of rows that could not be decoded.
    fn join_rejects(&self, state: &PullState) -> Result<Option<PathBuf>> {
        let path = self.directory.join("rejected.jsonl");
        let failed = |source| BigtableError::File { path: path.clone(), source };
        if state.counts().rejected == 0 {
            let _ = std::fs::remove_file(&path);
            return Ok(None);
        }
        let mut out = std::fs::File::create(&path).map_err(failed)?;
        for at in 0..state.parts.len() {
            if let Ok(lines) = std::fs::read(self.rejects(at)) {
                out.write_all(&lines).map_err(failed)?;
            }
        }
        Ok(Some(path.clone()))
    }
}
