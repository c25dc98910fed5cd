//! A store for benchmarks in a directory of this machine, and loads into it, each timed with its commit.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tidetable_blobs::LocalBlobs;
use tidetable_ingest::Loader;
use tidetable_ingest::{FileFeed, InputPlan, InputPlanOptions, LoadStats, LoadTarget, RejectedRow};
use tidetable_layout::{Layout, TableSpec, Window};
use tidetable_source::Storage;
use tidetable_store::version::TableIdentity;
use tidetable_store::{Ids, Snapshot, Store, Table, Version};
use tidetable_upkeep::compaction::{Compaction, CompactionPlan};

use crate::{Result, Shape};

/// Ids of SSTs and commits that count up from 1, so that runs are alike.
#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl Ids for Counting {
    fn next(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed)) + 1
    }
}

/// A store with one table, and the files to load into it.
#[derive(Debug)]
pub struct Bench {
    shape: Shape,
    spec: TableSpec,
    layout: Layout,
    storage: Storage,
    store: Store,
    ids: Counting,
    /// Memory budget of a load in bytes; 512 MiB by default.
    pub memory: u64,
}

/// A load and its commit, with what they took.
#[derive(Debug)]
pub struct Done {
    /// The version that the commit published.
    pub version: Version,
    /// Counts of rows, cells and bytes, and times summed over cores.
    pub stats: LoadStats,
    /// Time of the load, from the first byte read to the last SST synced.
    pub load: Duration,
    /// Time of the commit, which publishes the version durably.
    pub commit: Duration,
}

impl Bench {
    /// Loads from files below `inputs` into a store in `root`.
    ///
    /// # Errors
    /// Only if the shape has no layout.
    pub fn new(shape: Shape, inputs: &Path, root: &Path) -> Result<Self> {
        Ok(Self {
            shape,
            spec: shape.table(),
            layout: shape.layout()?,
            storage: Storage::new(inputs.to_owned(), None),
            store: Store::new(Arc::new(LocalBlobs::new(root.to_owned()))),
            ids: Counting::default(),
            memory: 512 << 20,
        })
    }

    /// Splits CSV into chunks of about `bytes` bytes.
    #[must_use]
    pub fn with_chunk_bytes(mut self, bytes: usize) -> Self {
        self.storage = self.storage.with_chunk_bytes(bytes);
        self
    }

    /// Sets the window of the table, which is a UTC day by default.
    ///
    /// # Errors
    /// Only if the shape has no layout with it.
    pub fn with_window(mut self, window: Window) -> Result<Self> {
        self.spec.window = window;
        let compiled = Layout::compile(&self.spec, &self.shape.source(&[]).schema());
        self.layout = compiled.map_err(|errors| format!("{errors:?}"))?;
        Ok(self)
    }

    /// The layout of the table, compiled for its window.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Storage of the input files, whose patterns are relative to their folder.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Ids of SSTs and commits; each call of them gives the next.
    pub fn ids(&self) -> &dyn Ids {
        &self.ids
    }

    /// The store of the table, in the directory given to [`Bench::new`].
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The table of the shape, which the first load creates.
    pub fn table(&self) -> Table {
        self.store.table(&self.shape.table().name)
    }

    /// The identity of the table, as a job of the name `bench` declares it.
    pub fn identity(&self) -> TableIdentity {
        TableIdentity {
            job: "bench".to_owned(),
            spec: self.spec.clone(),
            source: self.shape.source(&[]).schema(),
            layout: self.layout.fingerprint(),
            gc: BTreeMap::new(),
        }
    }

    /// The newest version of the table, for reading.
    ///
    /// # Errors
    /// Those of reading its manifest.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Ok(self.store.snapshot(self.table().name())?)
    }

    /// Runs `plan` and commits it; also returns the time of the run.
    ///
    /// # Errors
    /// Those of the compaction and the commit.
    pub fn compact(&self, plan: &CompactionPlan) -> Result<(Compaction, Version, Duration)> {
        let clock = Instant::now();
        let done = Compaction::run(plan, &self.ids)?;
        let took = clock.elapsed();
        let base = self.snapshot()?.version().clone();

        let version = self.table().commit(base, &done.edit, &self.ids, plan.now)?;
        Ok((done, version, took))
    }

    /// Loads the files matching `patterns` that the table does not hold, and commits them.
    ///
    /// # Errors
    /// Those of the load and the commit; a rejected row.
    pub fn load(&self, patterns: &[&str]) -> Result<Done> {
        let source = self.shape.source(patterns);
        let table = self.table();
        let base = table.base(&self.identity())?;

        let found = self.storage.discover(&source)?;
        let plan = InputPlan::new(&base, found, InputPlanOptions::default(), |file| self.storage.hash(file))?;
        let target =
            LoadTarget { table: &table, layout: &self.layout, filter: None, gc: &[], base: &base, plan: &plan };

        let loader = Loader {
            feed: &FileFeed { storage: &self.storage, source: &source },
            derive: None,
            targets: vec![target],
            ids: &self.ids,
            memory: self.memory,
            temp_dir: None,
            on_reject: &|_: &RejectedRow| {},
            on_progress: &|_| {},
        };
        let clock = Instant::now();
        let loaded = loader.load()?.pop().ok_or("a load of one table gives one result")?;
        let load = clock.elapsed();

        if loaded.stats.rows_rejected > 0 {
            return Err(format!("{} rows were rejected", loaded.stats.rows_rejected).into());
        }

        let clock = Instant::now();
        let version = table.commit(base, &loaded.edit, &self.ids, 0)?;
        Ok(Done { version, stats: loaded.stats, load, commit: clock.elapsed() })
    }
}
