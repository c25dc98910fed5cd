//! Checks that the root of the store exists: for a mistyped root, or one whose disk is not mounted, empty results
//! would be misleading.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use tidetable_job::Project;
use tidetable_runner::{Marks, RunError, open_store};

use crate::args::Global;
use crate::error::CliError;

/// Directories of which a store has at least one after its first run.
const FOLDERS: [&str; 5] = ["locks", "runs", "tables", "exports", "rejected"];

/// A check of the root that goes on while a query is planned: in a bucket it is a round trip. Until it is over, nothing may be
/// shown of what was read.
#[derive(Debug, Default)]
pub(crate) struct RootCheck {
    /// The check of a bucket.
    thread: Mutex<Option<JoinHandle<Result<(), CliError>>>>,
    /// Whether there is no store.
    is_missing: bool,
}

impl RootCheck {
    /// Begins the check of a root in a bucket; checks another at once.
    ///
    /// # Errors
    /// As [`is_there`].
    pub(crate) fn begin(global: &Global, project: &Project) -> Result<Self, CliError> {
        if !project.root_is_url() {
            return is_there(global, project).map(|()| Self::default());
        }
        let (project, is_named) = (project.clone(), is_named(global));
        let thread = std::thread::spawn(move || holds_store(&project, is_named));
        Ok(Self { thread: Mutex::new(Some(thread)), is_missing: false })
    }

    /// For statements that ask nothing of a store, where there is none.
    pub(crate) fn missing() -> Self {
        Self { is_missing: true, ..Self::default() }
    }

    /// Whether there is no store.
    pub(crate) fn is_missing(&self) -> bool {
        self.is_missing
    }

    /// Waits for the result, once.
    ///
    /// # Errors
    /// As [`is_there`].
    pub(crate) fn finish(&self) -> Result<(), CliError> {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A panic of that thread has been reported.
        thread.map_or(Ok(()), |thread| thread.join().unwrap_or(Ok(())))
    }
}

fn is_named(global: &Global) -> bool {
    global.root.as_ref().is_some_and(|root| !root.is_empty())
}

/// Refuses a root that does not exist, is no directory, or holds nothing of a store.
pub(crate) fn is_there(global: &Global, project: &Project) -> Result<(), CliError> {
    holds_store(project, is_named(global))
}

/// As [`is_there`]; `is_named` if the root was given on the command line.
pub(crate) fn holds_store(project: &Project, is_named: bool) -> Result<(), CliError> {
    match find_store(project, is_named) {
        Err(error @ (CliError::NoRoot { .. } | CliError::RootEmpty { .. } | CliError::NothingRan { .. })) => {
            let gone = Marks::of(project).gone();
            Err(gone.map_or(error, |gone| RunError::from(gone).into()))
        }
        found => found,
    }
}

/// Refuses a root that is missing or empty although runs of the project wrote to it. A new one is none of that.
pub(crate) fn is_not_lost(project: &Project) -> Result<(), CliError> {
    match holds_store(project, false) {
        Err(error @ CliError::Run(RunError::LostStore(_))) => Err(error),
        _ => Ok(()),
    }
}

fn find_store(project: &Project, is_named: bool) -> Result<(), CliError> {
    let root = project.root.clone();
    if project.root_is_url() {
        let names = open_store(project)?.blobs().list("")?;
        // A run that found the store gone leaves its lock.
        let is_lost = names.iter().all(|name| name == "locks") && Marks::of(project).gone().is_some();
        return match !is_lost && FOLDERS.iter().any(|folder| names.iter().any(|name| name == folder)) {
            true => Ok(()),
            false if is_named => Err(CliError::RootEmpty { root }),
            false => Err(CliError::NothingRan { root, state: "is empty" }),
        };
    }
    match Path::new(&root).metadata() {
        Ok(found) if !found.is_dir() => Err(CliError::RootNoFolder { root }),
        Ok(_) if FOLDERS.iter().any(|folder| Path::new(&root).join(folder).is_dir()) => Ok(()),
        Ok(_) if is_named => Err(CliError::RootEmpty { root }),
        Err(error) if error.kind() == ErrorKind::NotFound && is_named => Err(CliError::NoRoot { root }),
        Ok(_) => Err(CliError::NothingRan { root, state: "is empty" }),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(CliError::NothingRan { root, state: "is not there" }),
        Err(source) => Err(CliError::File { path: root, source }),
    }
}
