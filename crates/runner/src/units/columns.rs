//! Notes on files whose columns differ from the declared ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tidetable_ingest::{Feed, FeedEnd, FeedPiece, FileFeed};
use tidetable_record::Seen;
use tidetable_source::{ColumnDiff, InputFile, SchemaMode, SourceSpec};
use tidetable_store::Result;

/// Columns that a note names.
const SHOWN: usize = 8;

/// The files that differed so far, by kind of difference: the first file, and their number.
#[derive(Debug, Default)]
pub(crate) struct OtherColumns {
    seen: Mutex<BTreeMap<(String, String), DifferingFiles>>,
}

/// Files that differ from the declared columns in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DifferingFiles {
    /// Name of the source.
    source: String,
    /// The difference, in words.
    diff: String,
    first: String,
    last: String,
    count: usize,
    /// Whether every row is rejected.
    rejects: bool,
    /// Undeclared columns of a source whose mode is to leave them out.
    #[serde(default)]
    left_out: Vec<String>,
}

impl DifferingFiles {
    /// The note on files whose difference matters.
    fn note(&self) -> String {
        let Self { diff, first, count, rejects, .. } = self;
        let what_follows = match rejects {
            true => "every row is rejected",
            false => "what is missing is null, what is not declared is not read",
        };
        let others = match count {
            1 => String::new(),
            2 => " (and 1 other file)".to_owned(),
            _ => format!(" (and {} other files)", count - 1),
        };
        format!("{first}{others} has other columns than declared: it {diff}; {what_follows}")
    }

    /// The note on the undeclared columns `new`, which are not read.
    fn undeclared_note(&self, new: &[&str]) -> String {
        let Self { source, first, .. } = self;
        let (columns, them) = if new.len() == 1 { ("a column that is", "it") } else { ("columns that are", "them") };
        let named = new.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
        let more = if new.len() > SHOWN { format!(" and {} more", new.len() - SHOWN) } else { String::new() };
        format!(
            "warning: {first} has {columns} not declared and not read: {named}{more}. To load {them}, declare {them} in \
             sources.{source}.columns; this is told once"
        )
    }
}

impl OtherColumns {
    fn add(&self, source: &SourceSpec, input: &InputFile, diff: &ColumnDiff) {
        let left_out = if source.mode == SchemaMode::Freeze { diff.extra.clone() } else { Vec::new() };
        let diff = diff.to_string();

        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let files = seen.entry((source.name.clone(), diff.clone())).or_insert_with(|| DifferingFiles {
            source: source.name.clone(),
            diff,
            first: input.path.clone(),
            last: String::new(),
            count: 0,
            rejects: source.mode == SchemaMode::Reject,
            left_out,
        });

        // Chunks of a file arrive one after the other.
        if files.last != input.path {
            files.count += 1;
            files.last.clone_from(&input.path);
        }
    }

    /// The undeclared columns of `source` that are left out.
    pub(crate) fn left_out(&self, source: &str) -> BTreeSet<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let of_source = seen.values().filter(|files| files.source == source);
        of_source.flat_map(|files| files.left_out.iter().cloned()).collect()
    }

    /// A note for each difference. A column that is left out is told once: not if `known` knows it, nor of the sources
    /// `first`, which are loaded for the first time, as their columns were declared with the files at hand.
    pub(crate) fn notes(&self, known: &Seen, first: &BTreeSet<&str>) -> Vec<String> {
        let mut notes = Vec::new();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for files in seen.values() {
            let left_out = files.left_out.iter().map(String::as_str);
            let new: Vec<&str> = left_out.filter(|name| !known.left_out(&files.source, name)).collect();

            if files.left_out.is_empty() {
                notes.push(files.note());
            } else if !new.is_empty() && !first.contains(files.source.as_str()) {
                notes.push(files.undeclared_note(&new));
            }
        }
        notes
    }

    /// The differences, for another process.
    pub(crate) fn into_files(self) -> Vec<DifferingFiles> {
        self.seen.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
    }

    /// Adds those that another process saw, of other files than those before.
    pub(crate) fn merge(&self, others: Vec<DifferingFiles>) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for files in others {
            match seen.get_mut(&(files.source.clone(), files.diff.clone())) {
                Some(known) => known.count += files.count,
                None => drop(seen.insert((files.source.clone(), files.diff.clone()), files)),
            }
        }
    }
}

/// The files of a source; checks the columns of each.
#[derive(Debug)]
pub(crate) struct ColumnDiffFeed<'a> {
    pub(crate) feed: FileFeed<'a>,
    pub(crate) others: &'a OtherColumns,
}

impl Feed for ColumnDiffFeed<'_> {
    fn read(
        &self,
        input: &InputFile,
        cuts: &[u64],
        give: &mut dyn FnMut(FeedPiece, u64) -> bool,
    ) -> Result<Option<FeedEnd>> {
        self.feed.read(input, cuts, &mut |piece, bytes| {
            if let FeedPiece::Chunk { parser, chunk } = &piece {
                let diff = chunk.diff().unwrap_or(parser.diff());
                if !diff.is_empty() {
                    self.others.add(self.feed.source, input, diff);
                }
            }
            give(piece, bytes)
        })
    }
}
