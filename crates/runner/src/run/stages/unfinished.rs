//! Files whose end is missing: they count as they were when a table read them, or not at all.

use std::collections::BTreeSet;

use tidetable_job::Job;
use tidetable_source::{ContentHash, Format, InputFile, SourceError, Storage};
use tidetable_store::{Input, StoreError, Version};

use crate::fault::error::RunError;

/// A file that changed within so many microseconds may still be being written.
const SETTLES_AFTER: i64 = 3_600_000_000;

/// A file whose end is missing.
pub(crate) struct Unfinished {
    pub(crate) path: String,
    /// What is wrong with it.
    pub(crate) error: String,
}

impl Unfinished {
    /// The file whose missing end `error` is about, if it is about one.
    pub(crate) fn of(error: &RunError) -> Option<Self> {
        let source = match error {
            RunError::Store(StoreError::Source(source)) => source,
            RunError::Store(StoreError::Feed { source, .. }) => source.downcast_ref::<SourceError>()?,
            _ => return None,
        };
        let path = source.unfinished()?.to_owned();
        Some(Self { path, error: source.to_string() })
    }
}

/// `files` with those of `unfinished` as they were when `version` of the table read them; one that it never read is left out.
pub(crate) fn as_before(mut files: Vec<InputFile>, unfinished: &BTreeSet<String>, version: &Version) -> Vec<InputFile> {
    if unfinished.is_empty() {
        return files;
    }
    files.retain_mut(|file| {
        if !unfinished.contains(&file.path) {
            return true;
        }
        let Some(held) = held(version, &file.path) else { return false };
        (file.size, file.version) = (held.size, held.version.clone());
        true
    });
    files
}

/// The hash that a file of `unfinished` had when `version` of the table read it.
pub(crate) fn hash_before(path: &str, unfinished: &BTreeSet<String>, version: &Version) -> Option<ContentHash> {
    held(version, path).filter(|_| unfinished.contains(path)).map(|held| held.hash)
}

/// Whether the file of a source changed so recently, `now` in microseconds since the epoch, that it may still be being
/// written. Objects of a bucket appear when they are whole.
pub(crate) fn is_being_written(job: &Job, storage: &Storage, path: &str, now: i64) -> bool {
    let mut found = job.sources.iter().filter_map(|source| storage.find(&source.spec).ok());
    let file = found.find_map(|found| found.files.into_iter().find(|file| file.path == path));
    let changed = file.and_then(|file| file.changed_at());
    changed.is_some_and(|changed| now.saturating_sub(changed) < SETTLES_AFTER)
}

/// Whether the file at `path` is of a dump of Bigtable, which one of several files makes incomplete.
pub(crate) fn is_of_dump(job: &Job, storage: &Storage, path: &str) -> bool {
    let dumps = job.sources.iter().filter(|source| source.spec.format.is_some_and(Format::is_dump));
    let mut found = dumps.filter_map(|source| storage.find(&source.spec).ok());
    found.any(|found| found.files.iter().any(|file| file.path == path))
}

/// The input at `path`, as the table holds it.
fn held<'a>(version: &'a Version, path: &str) -> Option<&'a Input> {
    version.inputs.iter().find(|input| input.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_end_makes_a_file_unfinished() {
        let path = || "a.parquet".to_owned();
        let unfinished = RunError::Store(StoreError::Source(SourceError::ParquetUnfinished { path: path() }));
        assert_eq!(Unfinished::of(&unfinished).map(|file| file.path), Some(path()));
        let changed = RunError::Store(StoreError::Source(SourceError::Changed { path: path() }));
        assert!(Unfinished::of(&changed).is_none());
    }
}
