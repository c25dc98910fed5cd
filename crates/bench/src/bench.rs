//! A store that files of one shape are loaded into.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tidetable_layout::{Layout, TableSpec, Window};
use tidetable_source::Storage;
use tidetable_store::{
    Compaction, CompactionPlan, FileFeed, Ids, InputPlan, LoadStats, Loader, LocalBlobs, InputPlanOptions, RejectedRow,
    Snapshot, Store, Table, TableIdentity, LoadTarget, Version,
};

use crate::{Result, Shape};

/// Ids that count up.
#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl Ids for Counting {
    fn next(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed)) + 1
    }
}

/// A store and the files it is loaded from.
#[derive(Debug)]
pub struct Bench {
    shape: Shape,
    spec: TableSpec,
    layout: Layout,
    storage: Storage,
    store: Store,
    ids: Counting,
    /// Bytes of laid-out cells to hold before they are sorted and written.
    pub memory: u64,
}

/// A load that is committed.
#[derive(Debug)]
pub struct Done {
    /// What the table is now.
    pub version: Version,
    /// Counts and times.
    pub stats: LoadStats,
    /// Loading, from the first byte read to the last SST synced.
    pub load: Duration,
    /// The commit.
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

    /// The same, with CSV cut into chunks of about so many bytes.
    #[must_use]
    pub fn with_chunk_bytes(mut self, bytes: usize) -> Self {
        self.storage = self.storage.with_chunk_bytes(bytes);
        self
    }

    /// The same, with a table of these windows.
    ///
    /// # Errors
    /// Only if the shape has no layout then.
    pub fn with_window(mut self, window: Window) -> Result<Self> {
        self.spec.window = window;
        let compiled = Layout::compile(&self.spec, &self.shape.source(&[]).schema());
        self.layout = compiled.map_err(|errors| format!("{errors:?}"))?;
        Ok(self)
    }

    /// The layout of the table.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Opens files.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Names of SSTs and commits.
    pub fn ids(&self) -> &dyn Ids {
        &self.ids
    }

    /// Holds the table.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The table.
    pub fn table(&self) -> Table {
        self.store.table(&self.shape.table().name)
    }

    /// What the table is.
    pub fn identity(&self) -> TableIdentity {
        TableIdentity {
            job: "bench".to_owned(),
            spec: self.spec.clone(),
            source: self.shape.source(&[]).schema(),
            layout: self.layout.fingerprint(),
            gc: BTreeMap::new(),
        }
    }

    /// The newest version, for reading.
    ///
    /// # Errors
    /// Those of reading its manifest.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Ok(self.store.snapshot(self.table().name())?)
    }

    /// Does what `plan` says and commits it; how long the first took.
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

    /// Loads the files that `patterns` find and that the table does not hold, and commits them.
    ///
    /// # Errors
    /// Those of the load and the commit; a row that is rejected is one too.
    pub fn load(&self, patterns: &[&str]) -> Result<Done> {
        let source = self.shape.source(patterns);
        let table = self.table();
        let base = table.base(&self.identity())?;
        let found = self.storage.discover(&source)?;
        let plan = InputPlan::new(&base, found, InputPlanOptions::default(), |file| self.storage.hash(file))?;
        let target = LoadTarget { table: &table, layout: &self.layout, filter: None, base: &base, plan: &plan };
        let loader = Loader {
            feed: &FileFeed { storage: &self.storage, source: &source },
            derive: None,
            targets: vec![target],
            ids: &self.ids,
            memory: self.memory,
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
