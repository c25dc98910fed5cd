//! The tables that are served, each in a version.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tidetable_record::NewestVersions;
use tidetable_source::panics::catch;
use tidetable_sql::TableVersions;
use tidetable_store::{Snapshot, Store, StoreError};
use tidetable_upkeep::Pins;

use crate::error::{Result, ServingError};
use crate::tasks::log;

/// The tables of a store as a server reads them: in the versions of its start, or in the newest at each request.
#[derive(Debug)]
pub struct Tables {
    store: Store,
    versions: Versions,
}

#[derive(Debug)]
enum Versions {
    /// Those that were the newest when the server started. Vacuum leaves them while they are pinned.
    Pinned { snapshots: BTreeMap<String, Snapshot>, pins: Pins, lost: Vec<Arc<StoreError>> },
    /// The newest at each request; the last one read of each.
    Newest(Mutex<BTreeMap<String, Snapshot>>),
}

impl Tables {
    /// The tables of `store`, in the versions that are the newest now, or at each request. `name` distinguishes pins.
    ///
    /// # Errors
    /// If the store cannot be listed, or a table cannot be read.
    pub fn open(store: &Store, follows: bool, name: &str) -> Result<Self> {
        let store = store.clone();
        if follows {
            return Ok(Self { store, versions: Versions::Newest(Mutex::default()) });
        }
        let pins = Pins::all(&store, name)?;
        let newest = NewestVersions::default();
        let (mut snapshots, mut lost) = (BTreeMap::new(), Vec::new());
        for (name, number) in &pins.numbers {
            let table = store.table(name);
            let version = table.version(*number)?;
            match newest.check(&store, name, &version) {
                Ok(()) => drop(snapshots.insert(name.clone(), Snapshot::new(table, Arc::new(version))?)),
                Err(error @ StoreError::VersionLost { .. }) => lost.push(Arc::new(error)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Self { store, versions: Versions::Pinned { snapshots, pins, lost } })
    }

    /// The store whose tables these are.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Whether versions are pinned, and kept from a vacuum.
    pub fn are_pinned(&self) -> bool {
        matches!(&self.versions, Versions::Pinned { pins, .. } if pins.are_held)
    }

    /// Renews the pins before they expire; nothing is done where the newest versions are served.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn renew(&self) -> Result<()> {
        match &self.versions {
            Versions::Pinned { pins, .. } => Ok(pins.renew()?),
            Versions::Newest(_) => Ok(()),
        }
    }

    /// Removes the pins: nothing is served any more.
    ///
    /// # Errors
    /// If they cannot be removed.
    pub fn release(&self) -> Result<()> {
        match &self.versions {
            Versions::Pinned { pins, .. } => Ok(pins.release()?),
            Versions::Newest(_) => Ok(()),
        }
    }

    /// Errors of tables that cannot be served, each a message for the operator.
    pub fn damaged(&self) -> Vec<String> {
        match &self.versions {
            Versions::Pinned { pins, lost, .. } => {
                let lost = lost.iter().map(|error| error.to_string());
                pins.damaged.iter().map(ToString::to_string).chain(lost).collect()
            }
            Versions::Newest(_) => Vec::new(),
        }
    }

    /// Names of the tables, ascending.
    ///
    /// # Errors
    /// If the store cannot be listed.
    pub fn names(&self) -> Result<Vec<String>> {
        match &self.versions {
            Versions::Pinned { snapshots, .. } => Ok(snapshots.keys().cloned().collect()),
            Versions::Newest(_) => Ok(self.store.tables()?),
        }
    }

    /// The tables with the numbers of the versions that a request would read now, ascending by name. A table that cannot be read has
    /// version 0.
    ///
    /// # Errors
    /// If the store cannot be listed.
    pub fn numbers(&self) -> Result<Vec<(String, u64)>> {
        let mut numbers = Vec::new();
        for name in self.names()? {
            let number = match &self.versions {
                Versions::Pinned { snapshots, .. } => snapshots.get(&name).map(|snapshot| snapshot.version().number),
                Versions::Newest(_) => self.store.table(&name).latest_number().ok(),
            };
            numbers.push((name, number.unwrap_or_default()));
        }
        Ok(numbers)
    }

    /// The version of a table that answers a request.
    ///
    /// # Errors
    /// If there is no such table, or it cannot be read. May read the store.
    pub fn snapshot(&self, name: &str) -> Result<Snapshot> {
        let found = match &self.versions {
            Versions::Pinned { snapshots, .. } => snapshots.get(name).cloned(),
            Versions::Newest(known) => self.newest(known, name)?,
        };
        if let Some(snapshot) = found {
            return Ok(snapshot);
        }
        if let Versions::Pinned { lost, .. } = &self.versions {
            for error in lost {
                if matches!(error.as_ref(), StoreError::VersionLost { table, .. } if table == name) {
                    return Err(ServingError::Lost(Arc::clone(error)));
                }
            }
        }
        let known = self.names()?;
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(ServingError::NoTable { table: name.to_owned(), known })
    }

    fn newest(&self, known: &Mutex<BTreeMap<String, Snapshot>>, name: &str) -> Result<Option<Snapshot>> {
        let table = self.store.table(name);
        let number = table.latest_number()?;
        if number == 0 {
            return Ok(None);
        }
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(snapshot) = known.get(name).filter(|snapshot| snapshot.version().number == number) {
            return Ok(Some(snapshot.clone()));
        }
        let Some(version) = table.latest()? else { return Ok(None) };
        NewestVersions::default().check(&self.store, name, &version)?;
        let snapshot = Snapshot::new(table, Arc::new(version))?;
        known.insert(name.to_owned(), snapshot.clone());
        Ok(Some(snapshot))
    }

    /// The versions that a query reads: those of the start, or none, which stands for the newest.
    pub fn versions(&self) -> TableVersions {
        match &self.versions {
            Versions::Pinned { snapshots, .. } => {
                let numbers = snapshots.iter().map(|(name, snapshot)| (name.clone(), snapshot.version().number));
                TableVersions { numbers: numbers.collect(), as_of: None }
            }
            Versions::Newest(_) => TableVersions::default(),
        }
    }
}

/// Runs what reads the store on a thread that may wait. `failed` makes an error of the caller of a panic.
///
/// # Errors
/// Those of `work`, and if it panicked.
pub async fn blocking<T, E>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
    failed: impl FnOnce(ServingError) -> E,
) -> Result<T, E>
where
    T: Send + 'static,
    E: Send + 'static,
{
    match tokio::task::spawn_blocking(|| catch(work).inspect_err(log)).await {
        Ok(Ok(done)) => done,
        Ok(Err(panicked)) => Err(failed(panicked.into())),
        Err(_) => Err(failed(ServingError::Ended)),
    }
}
