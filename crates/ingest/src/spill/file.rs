//! Temporary files of a load, and the sorted events in them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use tidetable_layout::StoredSchema;
use tidetable_store::{Result, StoreError};
use xxhash_rust::xxh3::xxh3_128;

use crate::sort::chunk::{AllRanks, event_bytes};
use crate::sort::partition::{Events, Partition};
use crate::sort::piece::PieceEvents;
use crate::spill::page::{EncodedPage, PageEvents, RowKey};

/// The most events of a page.
const PAGE_EVENTS: usize = 4096;
/// The most bytes of the values of a page.
const PAGE_BYTES: usize = 256 << 10;
/// Pages of a spill at least, if it has so many events: little memory makes small pages.
const PAGES: usize = 64;

/// A temporary file without a name: it is gone when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct SpillFile {
    folder: PathBuf,
    file: File,
    end: AtomicU64,
}

/// The events of a window that waited when memory was full, in the order of their row keys.
#[derive(Debug)]
pub(crate) struct Spill {
    file: Arc<SpillFile>,
    /// In the order of their keys.
    pub(crate) pages: Vec<PageEntry>,
}

/// Where a page is, and which row keys it has.
#[derive(Debug)]
pub(crate) struct PageEntry {
    offset: u64,
    length: usize,
    checksum: u128,
    pub(crate) first: RowKey,
    pub(crate) last: RowKey,
    pub(crate) events: usize,
    /// Approximate bytes of the page in memory, by which ranges are cut.
    pub(crate) weight: u64,
}

impl SpillFile {
    /// Creates a file in `folder`.
    ///
    /// # Errors
    /// If that is not possible.
    pub(crate) fn create(folder: &Path) -> Result<Arc<Self>> {
        let file = tempfile::tempfile_in(folder).map_err(|source| not_created(folder, source))?;
        Ok(Arc::new(Self { folder: folder.to_owned(), file, end: AtomicU64::new(0) }))
    }

    /// The same in the root of a store, which may not be there before the first SST.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub(crate) fn create_in_root(root: &Path) -> Result<Arc<Self>> {
        std::fs::create_dir_all(root).map_err(|source| not_created(root, source))?;
        Self::create(root)
    }

    /// Bytes written so far, by all threads together.
    pub(crate) fn bytes(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Sorts events, and writes them on all cores, as pages of at most `most` events. `go_on` fails if the load has to stop.
    ///
    /// # Errors
    /// If events cannot be put together, or the file cannot be written.
    pub(crate) fn write(
        self: &Arc<Self>,
        schema: &StoredSchema,
        events: Events<'_>,
        most: usize,
        go_on: &(dyn Fn() -> Result<()> + Sync),
    ) -> Result<Spill> {
        let partition = Partition::new(schema, events, most);
        let pieces = (0..partition.len()).into_par_iter().map(|piece| {
            go_on()?;
            self.write_piece(&partition, piece, events.ranks, most)
        });
        let pages: Vec<Vec<PageEntry>> = pieces.collect::<Result<_>>()?;
        Ok(Spill { file: Arc::clone(self), pages: pages.into_iter().flatten().collect() })
    }

    /// Sorts a piece and writes it. One of one name may be larger than a page.
    fn write_piece(
        &self,
        partition: &Partition<'_>,
        piece: usize,
        ranks: &AllRanks,
        most: usize,
    ) -> Result<Vec<PageEntry>> {
        let sorted = PieceEvents::collect(partition, piece)?;
        let events = partition.events(piece) as u32;

        let mut pages = Vec::new();
        for start in (0..events).step_by(most) {
            let page = start..events.min(start + most as u32);
            pages.push(self.append(EncodedPage::new(partition.schema, &sorted, page, ranks)?)?);
        }
        Ok(pages)
    }

    /// Writes a page behind those of other threads.
    fn append(&self, page: EncodedPage) -> Result<PageEntry> {
        let EncodedPage { bytes, first, last, events, weight } = page;
        let offset = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file.write_all_at(&bytes, offset).map_err(|source| self.failed("write", source))?;
        Ok(PageEntry { offset, length: bytes.len(), checksum: xxh3_128(&bytes), first, last, events, weight })
    }

    fn failed(&self, action: &'static str, source: io::Error) -> StoreError {
        StoreError::Temporary { action, folder: self.folder.display().to_string(), written: self.bytes(), source }
    }
}

fn not_created(folder: &Path, source: io::Error) -> StoreError {
    StoreError::Temporary { action: "create", folder: folder.display().to_string(), written: 0, source }
}

/// The most events of a page of these events.
pub(crate) fn page_events(events: &Events<'_>) -> usize {
    let of_window = events.chunks.iter().filter_map(|chunk| chunk.windows.get(&events.window));
    let count: usize = of_window.flatten().map(ExactSizeIterator::len).sum();
    let narrow = PAGE_BYTES / event_bytes(events.chunks, events.window).max(1);
    PAGE_EVENTS.min(narrow).min(count / PAGES).max(1)
}

impl Spill {
    /// Spills of one file with ascending row keys as one.
    pub(crate) fn joined(file: &Arc<SpillFile>, parts: Vec<Self>) -> Self {
        Self { file: Arc::clone(file), pages: parts.into_iter().flat_map(|part| part.pages).collect() }
    }

    /// Reads a page.
    ///
    /// # Errors
    /// If it cannot be read, or is not what was written.
    pub(crate) fn read(&self, schema: &StoredSchema, page: &PageEntry) -> Result<PageEvents> {
        let mut bytes = vec![0; page.length];
        self.file.file.read_exact_at(&mut bytes, page.offset).map_err(|source| self.file.failed("read", source))?;
        if xxh3_128(&bytes) != page.checksum {
            let source = io::Error::new(io::ErrorKind::InvalidData, "other bytes than were written");
            return Err(self.file.failed("read", source));
        }
        PageEvents::decode(schema, &bytes)
    }
}
