//! Pulls rows of Bigtable into files that a job loads: as records of its source, or cell by cell as they are.
//!
//! A [`Pull`] reads ranges of keys in parallel and writes a Parquet file for each into a directory of its own. The list of
//! the files is replaced last ([`Pulled::publish`]): until then a run reads what the pull before left. Rows that the layout
//! cannot have written are listed with their keys. After a kill the next pull reads the ranges whose files are missing.

mod raw;
mod raw_job;
mod records;
mod selection;
mod state;

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
use tidetable_source::{PULL_DIRECTORY, PULL_FORMAT, PULL_LIST, PULL_UNDER_WAY, PullList, PulledFamily};
use tokio::runtime::Handle;

use crate::client::{Client, ReadQuery, Row, RowStream, TableName};
use crate::error::{BigtableError, Result};
use crate::push::{ranges, thinned};

pub use raw::{RAW_COLUMNS, RawDecoder, RawFamily};
pub use raw_job::{RawJob, RawSchema};
pub use records::RecordDecoder;
pub use selection::PullSelection;
pub use state::{PullCounts, PullPart, PullState};

/// The greatest number of files.
const MOST_PARTS: usize = 64;
/// Rows of a group of a file.
const GROUP_ROWS: usize = 1 << 17;

/// Rows as they are written.
#[derive(Debug)]
pub enum Decoder {
    /// As records of a source.
    Records(RecordDecoder),
    /// Cell by cell, with keys, qualifiers and values in hexadecimal.
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

    /// The families of cells that are kept as they are.
    fn families(&self) -> Vec<PulledFamily> {
        match self {
            Self::Records(_) => Vec::new(),
            Self::Raw(decoder) => decoder.pulled_families(),
        }
    }
}

/// What became of some rows: records, and what could not be decoded.
#[derive(Debug)]
pub struct Decoded {
    /// The records of rows that were decoded, in key order.
    pub batches: Vec<RecordBatch>,
    /// Cells that these records hold.
    pub cells: u64,
    /// What could not be decoded, at most once for each row.
    pub undecoded: Vec<Undecoded>,
}

/// A row that could not be decoded, or cells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecoded {
    /// The row's key, as bytes.
    pub key: Bytes,
    /// Cells that are left out.
    pub cells: u64,
    /// Why, as `rejected.jsonl` has it.
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
    /// Reads the table.
    pub client: Client,
    /// The table in Bigtable that is pulled.
    pub source: TableName,
    /// What is read of it.
    pub selection: PullSelection,
    /// How rows are written.
    pub decoder: Arc<Decoder>,
    /// The directory of the list.
    pub directory: PathBuf,
    /// A name that no other pull has.
    pub name: String,
    /// Whether it may take the place of what was pulled from elsewhere, or of another selection.
    pub replaces: bool,
    /// Ranges of keys at a time.
    pub workers: usize,
    /// Ends it at the next opportunity.
    pub stop: tidetable_runner::Stop,
}

/// What a pull did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullReport {
    /// What was read and written, by this pull and those that it went on from.
    pub counts: PullCounts,
    /// The number of files that have records.
    pub files: usize,
    /// Parts that a pull before it had read.
    pub kept: usize,
    /// The file of rows that could not be decoded, if there are any.
    pub rejected: Option<PathBuf>,
}

/// A pull whose files are written, and not yet listed.
#[derive(Debug)]
#[must_use = "its files are read once they are listed"]
pub struct Pulled {
    directory: PathBuf,
    state: PullState,
    kept: usize,
}

impl Pull {
    /// Checks that the directory is free, or holds the same selection of the same table.
    ///
    /// # Errors
    /// [`BigtableError::OtherPull`], unless the pull replaces what is there.
    pub fn check(&self) -> Result<()> {
        PullList::load(&self.directory)?;
        let Some(held) = PullState::load(&self.directory, PULL_LIST)? else { return Ok(()) };
        if self.replaces || held.list.source.is_empty() || self.is_of_same(&held) {
            return Ok(());
        }
        let [held_form, asked_form] = [held.list.raw, self.is_raw()].map(|raw| if raw { ", cell by cell" } else { "" });
        let selection = if held.selection.is_empty() { "another selection" } else { &held.selection };
        Err(BigtableError::OtherPull {
            directory: self.directory.clone(),
            held: format!("{selection} of {}{held_form}", held.list.table()),
            asked: format!("{} of {}{asked_form}", self.selection, self.source),
        })
    }

    /// Reads the rows and writes them into files. `watch` is told of the counts after each part.
    ///
    /// # Errors
    /// What ended it; files that are written stay. Those of [`Pull::check`].
    pub fn read(&self, watch: &(dyn Fn(&PullCounts) + Sync), runtime: &Handle) -> Result<Pulled> {
        self.check()?;
        std::fs::create_dir_all(&self.directory).map_err(|source| self.failed(source))?;
        let (state, kept) = self.begin(runtime)?;
        let files = self.directory.join(&state.directory);
        std::fs::create_dir_all(&files).map_err(|source| self.failed(source))?;
        state.save(&self.directory, PULL_UNDER_WAY)?;

        let parts = state.parts.clone().into_iter().enumerate();
        let open: Vec<(usize, PullPart)> = parts.filter(|(_, part)| part.counts.is_none()).collect();
        let state = Mutex::new(state);
        let work = stream::iter(open).map(|(at, part)| {
            let (pull, files) = (self.clone(), files.clone());
            let state = &state;
            async move {
                let work = tokio::task::spawn_blocking(move || pull.part(&files, at, &part)).await;
                let counts = work.unwrap_or(Err(BigtableError::Stopped { signal: 0 }))?;
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(part) = state.parts.get_mut(at) {
                    part.counts = Some(counts);
                }
                watch(&state.counts());
                state.save(&self.directory, PULL_UNDER_WAY)
            }
        });
        runtime.block_on(work.buffer_unordered(self.workers.max(1)).try_collect::<Vec<()>>())?;

        state::sync_directory(&files)?;
        let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Pulled { directory: self.directory.clone(), state, kept })
    }

    /// The parts, and the number of those that are there already.
    fn begin(&self, runtime: &Handle) -> Result<(PullState, usize)> {
        let columns: Vec<String> = self.decoder.schema().fields().iter().map(ToString::to_string).collect();
        let list = PullList {
            format: PULL_FORMAT,
            source: self.source.to_string(),
            raw: self.is_raw(),
            families: self.decoder.families(),
            ..PullList::default()
        };

        let under_way = PullState::load(&self.directory, PULL_UNDER_WAY)?;
        if let Some(mut known) = under_way.filter(|known| self.is_of_same(known) && known.columns == columns) {
            let files = self.directory.join(&known.directory);
            for (at, part) in known.parts.iter_mut().enumerate() {
                let has_file = files.join(state::part_name(at)).exists();
                part.counts = part.counts.filter(|counts| counts.records == 0 || has_file);
            }
            known.list = list;
            let kept = known.parts.iter().filter(|part| part.counts.is_some()).count();
            return Ok((known, kept));
        }

        let listed = PullState::load(&self.directory, PULL_LIST)?;
        let parts = match listed.filter(|listed| self.is_of_same(listed) && !listed.parts.is_empty()) {
            // The same ranges, so that inputs keep their names.
            Some(listed) => listed.parts.into_iter().map(|part| PullPart { counts: None, ..part }).collect(),
            None => self.parts(runtime)?,
        };
        let (selection, directory) = (self.selection.to_string(), format!("{PULL_DIRECTORY}{}", self.name));
        Ok((PullState { list, selection, columns, directory, parts }, 0))
    }

    /// Ranges of keys, cut where the service cuts the table.
    fn parts(&self, runtime: &Handle) -> Result<Vec<PullPart>> {
        let sampled = runtime.block_on(self.client.sample_row_keys(&self.source))?;
        let keys = sampled.into_iter().map(|sample| sample.key).filter(|key| !key.is_empty()).collect();
        let ranges = ranges(&self.selection.range, thinned(keys, MOST_PARTS - 1));
        Ok(ranges.into_iter().map(|range| PullPart { start: range.start, end: range.end, counts: None }).collect())
    }

    /// Whether `state` is of the same rows and cells.
    fn is_of_same(&self, state: &PullState) -> bool {
        let is_same = match state.list.decides() {
            true => state.list.source == self.source.to_string() && state.selection == self.selection.to_string(),
            false => state.list.source == format!("{} {:?}", self.source, self.selection),
        };
        is_same && state.list.raw == self.is_raw()
    }

    fn is_raw(&self) -> bool {
        matches!(*self.decoder, Decoder::Raw(_))
    }

    fn failed(&self, source: std::io::Error) -> BigtableError {
        BigtableError::File { path: self.directory.clone(), source }
    }

    /// Reads a range and writes its file into `files`, if it has records.
    fn part(&self, files: &Path, at: usize, part: &PullPart) -> Result<PullCounts> {
        let range = KeyRange { start: part.start.clone(), end: Some(part.end.clone()).filter(|end| !end.is_empty()) };
        let query = ReadQuery { ranges: vec![range], filter: self.selection.filter(), limit: None };
        let stream = self.client.read_rows(&self.source, query);
        let path = files.join(state::part_name(at));
        let aside = state::aside(&path);
        let (counts, rejected) = self.write(stream, &aside)?;
        let rejects = files.join(rejects_name(at));
        if rejected.is_empty() {
            let _ = std::fs::remove_file(&rejects);
        } else {
            state::replace(&rejects, &rejected)?;
        }
        let done = if counts.records == 0 { std::fs::remove_file(&aside) } else { std::fs::rename(&aside, &path) };
        done.map_err(|source| BigtableError::File { path, source })?;
        Ok(counts)
    }

    /// Writes all rows of a stream. Returns lines of those that could not be decoded.
    fn write(&self, mut stream: RowStream, path: &Path) -> Result<(PullCounts, Vec<u8>)> {
        let file = std::fs::File::create(path);
        let file = file.map_err(|source| BigtableError::File { path: path.to_owned(), source })?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .build();
        let mut writer = ArrowWriter::try_new(file, Arc::clone(self.decoder.schema()), Some(properties))?;

        let (mut counts, mut written, mut rejected) = (PullCounts::default(), 0, Vec::new());
        while let Some(rows) = stream.blocking_recv() {
            if let Some(stopped) = self.stop.asked() {
                return Err(BigtableError::Stopped { signal: stopped.0 });
            }
            let rows = rows?;
            counts.rows += rows.len() as u64;
            counts.cells += rows.iter().map(|row| row.cells.len() as u64).sum::<u64>();
            let decoded = self.decoder.decode(&rows)?;
            written += decoded.cells;
            for batch in &decoded.batches {
                counts.records += batch.num_rows() as u64;
                writer.write(batch)?;
            }
            for row in decoded.undecoded {
                counts.rejected += 1;
                counts.cells_rejected += row.cells;
                let line = serde_json::json!({
                    "key": row.key.escape_ascii().to_string(), "cells": row.cells, "reason": row.reason,
                });
                rejected.extend_from_slice(line.to_string().as_bytes());
                rejected.push(b'\n');
            }
        }

        if written != counts.cells_written() {
            return Err(BigtableError::Unconserved { read: counts.cells, written, rejected: counts.cells_rejected });
        }
        let synced = writer.into_inner()?.sync_all();
        synced.map_err(|source| BigtableError::File { path: path.to_owned(), source })?;
        Ok((counts, rejected))
    }
}

impl Pulled {
    /// What was read and written, by this pull and those that it went on from.
    pub fn counts(&self) -> PullCounts {
        self.state.counts()
    }

    /// Gives the files up: the set before stays listed, and the next pull reads all ranges again. Returns the list of rows
    /// that could not be decoded.
    ///
    /// # Errors
    /// If that list cannot be written.
    pub fn give_up(self) -> Result<Option<PathBuf>> {
        let rejected = self.join_rejects()?;
        let _ = std::fs::remove_file(self.directory.join(PULL_UNDER_WAY));
        let _ = std::fs::remove_dir_all(self.directory.join(&self.state.directory));
        Ok(rejected)
    }

    /// Lists the files: from here on a run reads them, and nothing else that was pulled into the directory.
    ///
    /// # Errors
    /// If the list cannot be written; then that of the pull before stands.
    pub fn publish(mut self) -> Result<PullReport> {
        self.state.list.files.clear();
        for (at, part) in self.state.parts.iter().enumerate() {
            if part.counts.is_some_and(|counts| counts.records > 0) {
                let name = state::part_name(at);
                let path = format!("{}/{name}", self.state.directory);
                self.state.list.files.insert(name, path);
            }
        }

        let rejected = self.join_rejects()?;
        self.state.save(&self.directory, PULL_LIST)?;
        self.clean();
        let files = self.state.list.files.len();
        Ok(PullReport { counts: self.state.counts(), files, kept: self.kept, rejected })
    }

    /// Joins the lists of rows that could not be decoded.
    fn join_rejects(&self) -> Result<Option<PathBuf>> {
        let path = self.directory.join("rejected.jsonl");
        if self.state.counts().rejected == 0 {
            let _ = std::fs::remove_file(&path);
            return Ok(None);
        }
        let mut lines = Vec::new();
        for at in 0..self.state.parts.len() {
            if let Ok(part) = std::fs::read(self.directory.join(&self.state.directory).join(rejects_name(at))) {
                lines.extend_from_slice(&part);
            }
        }
        state::replace(&path, &lines)?;
        Ok(Some(path))
    }

    /// Removes what no list names any more. What stays is not read.
    fn clean(&self) {
        let _ = std::fs::remove_file(self.directory.join(PULL_UNDER_WAY));
        for entry in std::fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_dir && name.starts_with(PULL_DIRECTORY) && name != self.state.directory {
                let _ = std::fs::remove_dir_all(entry.path());
            } else if !is_dir && is_of_earlier_build(&name) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// The name of the list of rows of a part that could not be decoded.
fn rejects_name(at: usize) -> String {
    format!("part-{at:05}.rejected")
}

/// Whether a file beside the list is one that earlier builds wrote: `part-00000.parquet`, `.rejected` or `.parquet.new`.
fn is_of_earlier_build(name: &str) -> bool {
    let Some((digits, ending)) = name.strip_prefix("part-").and_then(|rest| rest.split_once('.')) else { return false };
    let is_number = digits.len() == 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number && matches!(ending, "parquet" | "rejected" | "parquet.new" | "rejected.new")
}
