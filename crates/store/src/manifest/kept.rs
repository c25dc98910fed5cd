//! What lists of a table's files tell of its versions.

use std::collections::HashMap;

use tidetable_blobs::ETag;

/// Extension of the file that marks the oldest version.
pub(super) const OLDEST: &str = ".oldest";

/// The versions of a table.
#[derive(Debug, Clone)]
pub struct Kept {
    /// Number of the oldest version, whether its manifest exists or not.
    pub oldest: u64,
    /// Numbers of the versions from the oldest on that have a checkpoint, ascending.
    pub checkpoints: Vec<u64>,
    /// In a bucket, the tags of manifests and checkpoints that the same list told, by path.
    pub tags: HashMap<String, ETag>,
}

/// What one round trip tells of the versions of a table: what is kept, and the numbers of its manifests if they are few.
pub type Listing = (Kept, Option<Vec<u64>>);

/// What the names of checkpoints and of the mark of the oldest version tell.
pub(super) fn kept_of(names: &[String], tags: HashMap<String, ETag>) -> Kept {
    let oldest = numbered(names, OLDEST).last().copied().unwrap_or(1);
    let checkpoints = numbered(names, ".json").into_iter().filter(|number| *number >= oldest).collect();
    Kept { oldest, checkpoints, tags }
}

/// The numbers of file names with this extension, ascending.
pub(super) fn numbered(names: &[String], ending: &str) -> Vec<u64> {
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| name.strip_suffix(ending)?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}
