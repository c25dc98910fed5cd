//! Files that are not read, or that bring no rows: what the notes of a run say of them.

use std::collections::BTreeMap;

use tidetable_source::{ContentHash, InputFile, SourceError, Unread};
use tidetable_store::{Input, StoreError};

use crate::fault::error::RunError;
use crate::run::stages::load::{Base, LoadStage, Pending, PlannedSource};

/// A file that changed within so many microseconds may still be being written.
const SETTLES_AFTER: i64 = 3_600_000_000;
/// Most folders with a note on files without rows.
const FOLDERS: usize = 5;

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

impl LoadStage<'_> {
    /// `files` with those that are unfinished as they were when the table read them; one that it never read is left out.
    pub(crate) fn with_unfinished_as_before(&self, mut files: Vec<InputFile>, base: &Base) -> Vec<InputFile> {
        if self.unfinished.is_empty() {
            return files;
        }
        files.retain_mut(|file| {
            if !self.unfinished.contains(&file.path) {
                return true;
            }
            let Some(held) = held(base, &file.path) else { return false };
            (file.size, file.version) = (held.size, held.version.clone());
            true
        });
        files
    }

    /// The hash that an unfinished file had when the table read it.
    pub(crate) fn hash_before(&self, path: &str, base: &Base) -> Option<ContentHash> {
        held(base, path).filter(|_| self.unfinished.contains(path)).map(|held| held.hash)
    }

    /// Whether the file of a source changed so recently that it may still be being written. Objects of a bucket appear when
    /// they are whole.
    pub(crate) fn is_being_written(&self, path: &str) -> bool {
        let now = (self.options.clock)();
        let mut files = self.job.sources.iter().filter_map(|source| self.storage.find(&source.spec).ok());
        let file = files.find_map(|found| found.files.into_iter().find(|file| file.path == path));
        let changed = file.and_then(|file| file.changed_at());
        changed.is_some_and(|changed| now.saturating_sub(changed) < SETTLES_AFTER)
    }
}

/// The input at `path`, as the table holds it.
fn held<'a>(base: &'a Base, path: &str) -> Option<&'a Input> {
    base.known().inputs.iter().find(|input| input.path == path)
}

/// Notes on names that patterns of sources reach and that are not read.
pub(crate) fn unread_notes(sources: &[PlannedSource<'_>]) -> Vec<String> {
    sources.iter().flat_map(|planned| Unread::notes(&planned.unread)).collect()
}

/// Notes on new files that a plan knows to be empty.
pub(crate) fn empty_notes(sources: &[PlannedSource<'_>]) -> Vec<String> {
    let planned = sources.iter().filter_map(|planned| planned.tables.first());
    let new = planned.flat_map(|table| &table.plan.new).map(|(_, file)| (file.path.as_str(), file.size));
    rowless(new.filter(|(_, size)| *size == 0))
}

/// Notes on the files that a load read and that have no rows.
pub(crate) fn rowless_notes(loads: &[Pending]) -> Vec<String> {
    let inputs = loads.iter().flat_map(Pending::inputs_read).filter(|input| input.read == 0);
    // Tables of a source read the same inputs.
    let files: BTreeMap<&str, u64> = inputs.map(|input| (input.path.as_str(), input.size)).collect();
    rowless(files.into_iter())
}

/// Notes on files without rows, by path and size: one for each folder.
fn rowless<'a>(files: impl Iterator<Item = (&'a str, u64)>) -> Vec<String> {
    let mut folders: BTreeMap<&str, Vec<(&str, u64)>> = BTreeMap::new();
    for (path, size) in files {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        folders.entry(folder).or_default().push((path, size));
    }
    let left: usize = folders.values().skip(FOLDERS).map(Vec::len).sum();
    let mut notes = Vec::new();
    for files in folders.values().take(FOLDERS) {
        let Some((first, size)) = files.first() else { continue };
        let what = if *size == 0 { "is empty" } else { "has no rows" };
        notes.push(match files.len() {
            1 => format!("{first} {what}"),
            2 => format!("{first} {what}; so it is with 1 other file of its folder"),
            count => format!("{first} {what}; so it is with {} other files of its folder", count - 1),
        });
    }
    if left > 0 {
        notes.push(format!("{left} files of other folders have no rows"));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_note_on_files_without_rows() {
        let files = [("a/1.csv", 0), ("a/2.csv", 9), ("a/3.csv", 0), ("b/1.csv", 9)];
        let notes = rowless(files.into_iter());
        assert_eq!(notes, ["a/1.csv is empty; so it is with 2 other files of its folder", "b/1.csv has no rows"]);
    }

    #[test]
    fn only_a_missing_end_makes_a_file_unfinished() {
        let path = || "a.parquet".to_owned();
        let unfinished = RunError::Store(StoreError::Source(SourceError::ParquetUnfinished { path: path() }));
        assert_eq!(Unfinished::of(&unfinished).map(|file| file.path), Some(path()));
        let changed = RunError::Store(StoreError::Source(SourceError::Changed { path: path() }));
        assert!(Unfinished::of(&changed).is_none());
    }
}
