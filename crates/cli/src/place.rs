//! Places of the command line: storage, and folders.

use std::path::PathBuf;
use std::sync::Arc;

use tidetable_blobs::Blobs;
use tidetable_job::{Project, ProjectError};
use tidetable_runner::open_location;
use tidetable_source::Location;

use crate::error::CliError;

/// The storage at `place`: a folder, or a prefix of a bucket, for which the settings of the project's bucket are, too, if there
/// is a project. Nothing is asked of it.
///
/// # Errors
/// If settings of the bucket are missing or wrong, or tidetable.toml is invalid.
pub fn storage_at(place: &Location) -> Result<Arc<dyn Blobs>, CliError> {
    let here =
        std::env::current_dir().map_err(|source| CliError::File { path: "the current folder".to_owned(), source })?;
    let project = match (place, Project::find(&here)) {
        // A folder needs no settings.
        (Location::Path(_), _) | (_, Err(ProjectError::NotFound { .. })) => Project::of_store(&here, place),
        (Location::Bucket(_), project) => project?,
    };
    Ok(open_location(&project, place)?)
}
/// The folder, if temporary files can be made in it.
///
/// # Errors
/// If none can.
pub fn writable(folder: PathBuf) -> Result<PathBuf, CliError> {
    match tempfile::tempfile_in(&folder) {
        Ok(_) => Ok(folder),
        Err(source) => Err(CliError::TempDir { folder: folder.display().to_string(), source }),
    }
}
