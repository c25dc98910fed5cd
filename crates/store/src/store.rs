//! A store of tables.

use std::sync::Arc;

use tidetable_blobs::{Blobs, each};

use crate::error::{Result, StoreError};
use crate::ids::TABLES;
use crate::manifest::newest::VersionCache;
use crate::read::snapshot::Snapshot;
use crate::row_size::ROW_LIMIT;
use crate::table::Table;

/// All tables under one root.
#[derive(Debug, Clone)]
pub struct Store {
    blobs: Arc<dyn Blobs>,
    newest: Arc<VersionCache>,
    row_limit: u64,
}

impl Store {
    /// A store in `blobs`.
    pub fn new(blobs: Arc<dyn Blobs>) -> Self {
        Self { blobs, newest: Arc::default(), row_limit: ROW_LIMIT }
    }

    /// The same store for one run: the newest version of a table is the one that it read first or committed itself, so that
    /// asking for it again takes no request. A commit compares with what is there all the same; after one that fails, the
    /// newest version is read anew.
    #[must_use]
    pub fn following_own_commits(self) -> Self {
        Self { newest: Arc::new(self.newest.following()), ..self }
    }

    /// Forgets what a store that [follows its own commits](Self::following_own_commits) knows, so that work that failed is
    /// done again upon what is there.
    pub fn read_anew(&self) {
        self.newest.forget_all();
    }

    /// The same store with another limit on the bytes of a row, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_row_limit(self, row_limit: u64) -> Self {
        Self { row_limit, ..self }
    }

    /// The storage in which it keeps its files.
    pub fn blobs(&self) -> &Arc<dyn Blobs> {
        &self.blobs
    }

    /// Names of the tables, ascending.
    ///
    /// # Errors
    /// If the store cannot be listed.
    pub fn tables(&self) -> Result<Vec<String>> {
        if let Some(names) = self.newest.known_names() {
            return Ok(names);
        }

        let mut names = self.blobs.list(TABLES)?;
        let known = self.newest.known_tables();
        let is_there = each(self.blobs.as_ref(), &names, |name| {
            // A table that cannot be read is listed all the same.
            known.contains(name) || !matches!(self.table(name).latest_number(), Ok(0))
        });
        let mut is_there = is_there.into_iter();
        names.retain(|_| is_there.next() == Some(true));

        self.newest.listed(&names);
        Ok(names)
    }

    /// The table `name`, whether it exists or not.
    pub fn table(&self, name: &str) -> Table {
        Table::new(&self.blobs, name, &self.newest, self.row_limit)
    }

    /// A snapshot of the newest version of a table that must exist.
    ///
    /// # Errors
    /// [`StoreError::NoTable`], or if it cannot be read.
    pub fn snapshot(&self, name: &str) -> Result<Snapshot> {
        let table = self.table(name);
        match table.latest()? {
            Some(version) => Snapshot::new(table, Arc::new(version)),
            None => {
                let known = self.tables()?;
                let known = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
                Err(StoreError::NoTable { name: name.to_owned(), root: self.blobs.display(), known })
            }
        }
    }
}
