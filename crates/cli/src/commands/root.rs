//! Whether the root of the store is there: an empty answer about a root that was mistyped, or whose disk is not mounted,
//! would read like a sound one.

use std::io::ErrorKind;
use std::path::Path;

use tidetable_runner::Project;

use crate::args::Global;
use crate::error::CliError;

/// Folders of which every store has one as soon as a job has run.
const FOLDERS: [&str; 5] = ["locks", "runs", "tables", "exports", "rejected"];

/// Refuses a root that is not there, is no folder, or holds nothing of a store.
pub(crate) fn is_there(global: &Global, project: &Project) -> Result<(), CliError> {
    if project.root_is_url() {
        // Refused where it is opened.
        return Ok(());
    }
    let root = project.root.clone();
    let is_named = global.root.as_ref().is_some_and(|root| !root.is_empty());
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
