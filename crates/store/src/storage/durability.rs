//! Names of files that are not complete, and making names durable.

use std::io;
use std::path::Path;

use tidetable_sstable::tools::failpoints::{self, Bug};

use crate::storage::disk::Disk;

/// Temporary files start with this, so that a listing never shows them.
pub(crate) const TEMPORARY: &str = ".tmp-";

/// Syncs the folder that holds `path`.
pub(crate) fn sync_folder_of(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    if failpoints::is(Bug::SkipFolderFsync) {
        return Ok(());
    }
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or(Ok(()), |parent| disk.sync_folder(parent))
}
