//! Names of temporary files, and syncing of directories.

use std::io;
use std::path::Path;

use crate::disk::Disk;

/// Prefix of temporary files; listings hide them.
pub const TEMPORARY: &str = ".tmp-";

/// Syncs the directory of `path`.
pub(crate) fn sync_directory_of(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    if tidetable_sstable::failpoint!(SkipDirectoryFsync) {
        return Ok(());
    }
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or(Ok(()), |parent| disk.sync_directory(parent))
}
