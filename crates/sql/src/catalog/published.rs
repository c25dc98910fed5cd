//! Table provider of published files that fails unless every file is present and unchanged. DataFusion 55.2 treats a
//! missing file as empty (row "Missing files" of `docs/datafusion-workarounds.md`), and reads changed bytes as values.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::datasource::listing::ListingTable;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use tidetable_blobs::Blobs;
use tidetable_blobs::{Stamp, Stat};
use tidetable_record::holder;
use tidetable_store::published::{FileState, Part, PartFile, Published};
use tidetable_store::{Store, StoreError};

use crate::catalog::unchanged::UnchangedFiles;
use crate::error::{SqlError, external};

/// How long a query waits for the run that has just replaced a file to list it.
const LISTING: Duration = Duration::from_secs(5);
/// Interval between two looks at the list, while a part is published again.
const LOOK: Duration = Duration::from_millis(20);

/// Files whose bytes were compared with their list: path, checksum, and the stamp at that time.
#[derive(Debug, Default)]
pub(crate) struct ComparedFiles(Mutex<HashSet<(String, String, Stamp)>>);

impl ComparedFiles {
    fn has(&self, path: &str, file: &PartFile, found: Option<Stat>) -> bool {
        let Some(stamp) = found.and_then(|found| found.stamp) else { return false };
        let compared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        compared.contains(&(path.to_owned(), file.checksum.clone(), stamp))
    }

    fn add(&self, path: &str, file: &PartFile, stamp: Stamp) {
        let mut compared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        compared.insert((path.to_owned(), file.checksum.clone(), stamp));
    }
}

/// The published files of an export, or of one of its parts, as a table.
#[derive(Debug)]
pub(crate) struct PublishedTable {
    pub(crate) files: Arc<ListingTable>,
    pub(crate) store: Store,
    /// Name of the export, and of its list.
    pub(crate) list: String,
    /// The files of the table, by their path inside the store.
    pub(crate) parts: Vec<(String, PartFile)>,
    /// Those of the session that need not be read again to know that they are as published.
    pub(crate) compared: Arc<ComparedFiles>,
    /// The files of exports that the session reads, and that must not change meanwhile.
    pub(crate) unchanged: Arc<UnchangedFiles>,
}

#[async_trait]
impl TableProvider for PublishedTable {
    fn schema(&self) -> SchemaRef {
        self.files.schema()
    }

    fn table_type(&self) -> TableType {
        self.files.table_type()
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.files.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // Before the check, which then holds for what is read.
        self.unchanged.record_stamps(self.files.table_paths().iter().map(|url| url.prefix()));
        self.check().map_err(external)?;
        let plan = self.files.scan(state, projection, filters, limit).await?;
        // Parts that cannot be swapped atomically never reuse file names, so a file present now was also present at the
        // listing.
        match gone(&self.store, self.parts.iter().map(|(path, _)| path.clone())).map_err(external)? {
            Some(path) => Err(external(SqlError::PublishedGone { path })),
            None => Ok(plan),
        }
    }
}

impl PublishedTable {
    /// Fails if a file is missing, or does not hold the bytes that its list names.
    ///
    /// A file with another stamp than its list (of a copied or restored root, touched, replaced) is read and compared once a session.
    fn check(&self) -> std::result::Result<(), SqlError> {
        let blobs = self.store.blobs().as_ref();
        let paths: Vec<String> = self.parts.iter().map(|(path, _)| path.clone()).collect();

        for ((path, file), found) in self.parts.iter().zip(blobs.stat_all(&paths)?) {
            if self.compared.has(path, file, found) {
                continue;
            }
            match file.state_by(blobs, path, found)? {
                FileState::AsPublished => {}
                FileState::SameBytes(stamp) => {
                    if let Some(stamp) = stamp {
                        self.compared.add(path, file, stamp);
                    }
                }
                FileState::Missing => return Err(SqlError::PublishedGone { path: path.clone() }),
                state @ (FileState::Changed | FileState::Another) => {
                    if self.becomes_listed(path)? {
                        continue;
                    }
                    let list = Published::load(blobs, &self.list)?;
                    let path = path.clone();
                    return Err(match state == FileState::Another && list.is_older_than(blobs, &path)? {
                        true => SqlError::PublishedNewer { path, list: list.name },
                        false => SqlError::PublishedDamaged { path },
                    });
                }
            }
        }
        Ok(())
    }

    /// Whether the list now names the bytes at `path`: its part was published again since the list was read. A run replaces a
    /// file before it lists it, so while the job runs its list is awaited.
    fn becomes_listed(&self, path: &str) -> std::result::Result<bool, StoreError> {
        let blobs = self.store.blobs().as_ref();
        let started = Instant::now();
        let mut list = Published::load(blobs, &self.list)?;
        loop {
            // Asked before the list is read: a run that has ended by then has listed its parts.
            let runs = holder(blobs, &list.job)?.is_some();
            list = Published::load(blobs, &self.list)?;
            if is_as_listed(blobs, &list, path)? {
                return Ok(true);
            }
            if !runs || started.elapsed() >= LISTING {
                return Ok(false);
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Whether a list names the bytes that are at `path`.
fn is_as_listed(blobs: &dyn Blobs, list: &Published, path: &str) -> std::result::Result<bool, StoreError> {
    let file = list.parts.values().flat_map(Part::files_at).find(|(listed, _)| listed == path);
    let state = file.map(|(_, file)| file.state(blobs, path)).transpose()?;
    Ok(matches!(state, Some(FileState::AsPublished | FileState::SameBytes(_))))
}

/// The first of `paths` that does not exist.
pub(crate) fn gone(
    store: &Store,
    paths: impl Iterator<Item = String>,
) -> std::result::Result<Option<String>, StoreError> {
    let paths: Vec<String> = paths.collect();
    let found = store.blobs().stat_all(&paths)?;
    Ok(paths.into_iter().zip(found).find_map(|(path, found)| found.is_none().then_some(path)))
}
