//! Files whose end is missing: they count as they were when a table read them, or not at all. Of a dump of Bigtable, they or missing
//! shards keep the whole dump from being loaded.

use std::collections::BTreeSet;

use tidetable_job::{Job, Table, TableInput};
use tidetable_record::{DamageRecord, RunRecord};
use tidetable_source::{ContentHash, Format, InputFile, SourceError, Storage};
use tidetable_store::{Input, StoreError, Version};

use crate::fault::error::RunError;
use crate::observe::Event;
use crate::run::context::Run;

/// A file that changed within so many microseconds may still be being written.
const SETTLES_AFTER: i64 = 3_600_000_000;

/// What a load does not read.
#[derive(Debug, Clone, Default)]
pub(crate) struct LeftOut {
    /// Paths of files whose end is missing: they count as they were when they were read, or not at all.
    pub(crate) files: BTreeSet<String>,
    /// Sources whose dump is incomplete: their tables stay as they are.
    pub(crate) sources: BTreeSet<String>,
}

impl Run<'_> {
    /// Whether the load that `error` stopped can go on without what the error is of. That is added to `left` and told.
    pub(crate) fn leaves_out(&self, error: &RunError, left: &mut LeftOut, record: &mut RunRecord) -> bool {
        if let Some(IncompleteDump { source, error }) = self.leaves_dump(error, left) {
            self.tell_undone(record, format!("load the dump of `{source}`"), error);
            return true;
        }
        // A dump is loaded as a whole or not at all.
        if IncompleteDump::of(error, self.job, self.storage, &left.sources).is_some() {
            return false;
        }
        let Some(file) = Unfinished::of(error) else { return false };
        let is_new = left.files.insert(file.path.clone());
        if is_new {
            self.leave_unfinished(file, record);
        }
        is_new
    }

    /// The source without which the load that `error` stopped can go on, because its dump is incomplete. Added to `left`.
    pub(crate) fn leaves_dump(&self, error: &RunError, left: &mut LeftOut) -> Option<IncompleteDump> {
        let dump = IncompleteDump::of(error, self.job, self.storage, &left.sources)?;
        let can_stay = self.can_stay(&dump.source, &left.sources);
        can_stay.then(|| {
            left.sources.insert(dump.source.clone());
            dump
        })
    }

    /// Tells that a file is not loaded. One that has not changed for long is no longer being written: the run did not do
    /// all it should.
    fn leave_unfinished(&self, file: Unfinished, record: &mut RunRecord) {
        let Unfinished { path, error } = file;
        if is_being_written(self.job, self.storage, &path, (self.options.clock)()) {
            self.note(record, format!("{error}. The other files are loaded; the next run tries it again"));
            return;
        }
        self.tell_undone(record, format!("load {path}"), error);
    }

    /// Tells and records that `undone` was left, and why.
    pub(crate) fn tell_undone(&self, record: &mut RunRecord, undone: String, error: String) {
        self.observer.event(Event::Note(format!("warning: {undone} was left undone: {error}")));
        record.damage.push(DamageRecord { undone, error });
    }

    /// Whether the tables of `source` may stay as they are, besides those of the sources `left`: none of them is to be rebuilt, and
    /// another source has tables to load.
    fn can_stay(&self, source: &str, left: &BTreeSet<String>) -> bool {
        let tables: Vec<(&str, &str)> = self.job.tables.iter().filter_map(source_of).collect();
        let is_rebuilt = tables.iter().any(|(from, table)| *from == source && self.options.rebuilds(table));
        !is_rebuilt && tables.iter().any(|(from, _)| *from != source && !left.contains(*from))
    }
}

/// The source of a table and the name of the table; `None` of a derived one.
fn source_of(table: &Table) -> Option<(&str, &str)> {
    match &table.from {
        TableInput::Source(source) => Some((source, &table.spec.name)),
        TableInput::Query { .. } => None,
    }
}

/// A file whose end is missing.
struct Unfinished {
    path: String,
    /// What is wrong with it.
    error: String,
}

impl Unfinished {
    /// The file whose missing end `error` is about, if it is about one.
    fn of(error: &RunError) -> Option<Self> {
        let source = source_error(error)?;
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
fn is_being_written(job: &Job, storage: &Storage, path: &str, now: i64) -> bool {
    let mut found = job.sources.iter().filter_map(|source| storage.find(&source.spec).ok());
    let file = found.find_map(|found| found.files.into_iter().find(|file| file.path == path));
    let changed = file.and_then(|file| file.changed_at());
    changed.is_some_and(|changed| now.saturating_sub(changed) < SETTLES_AFTER)
}

/// A source whose newest dump of Bigtable is incomplete.
pub(crate) struct IncompleteDump {
    pub(crate) source: String,
    /// What is wrong with the dump, which it names.
    pub(crate) error: String,
}

impl IncompleteDump {
    /// The source of whose dump `error` says that a file or its end is missing, if that is what it says. Those of `known` are left out.
    fn of(error: &RunError, job: &Job, storage: &Storage, known: &BTreeSet<String>) -> Option<Self> {
        let error = source_error(error)?;
        let path = error.unfinished();
        if path.is_none() && !error.is_of_incomplete_dump() {
            return None;
        }

        let dumps = job.sources.iter().filter(|source| source.spec.format.is_some_and(Format::is_dump));
        let mut unknown = dumps.filter(|source| !known.contains(&source.spec.name));
        let source = unknown.find(|source| match (storage.find(&source.spec), path) {
            (Ok(found), Some(path)) => found.files.iter().any(|file| file.path == path),
            (Err(found), None) => found.to_string() == error.to_string(),
            _ => false,
        })?;
        Some(Self { source: source.spec.name.clone(), error: error.to_string() })
    }
}

/// The error of a source that stopped a load, if one did.
fn source_error(error: &RunError) -> Option<&SourceError> {
    match error {
        RunError::Store(StoreError::Source(source)) => Some(source),
        RunError::Store(StoreError::Feed { source, .. }) => source.downcast_ref::<SourceError>(),
        _ => None,
    }
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
