//! Notes on files whose columns differ from the declared ones.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tidetable_ingest::{Feed, FeedEnd, FeedPiece, FileFeed};
use tidetable_source::{InputFile, SchemaMode, SourceSpec};
use tidetable_store::Result;

/// The files that differed so far, by kind of difference: the first file, and their number.
#[derive(Debug, Default)]
pub(crate) struct OtherColumns {
    seen: Mutex<BTreeMap<(String, String), DifferingFiles>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DifferingFiles {
    /// The source.
    source: String,
    /// The difference, in words.
    diff: String,
    first: String,
    last: String,
    count: usize,
    /// Whether every row is rejected.
    rejects: bool,
}

impl OtherColumns {
    fn add(&self, source: &SourceSpec, input: &InputFile, diff: String) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let files = seen.entry((source.name.clone(), diff.clone())).or_insert_with(|| DifferingFiles {
            source: source.name.clone(),
            diff,
            first: input.path.clone(),
            last: String::new(),
            count: 0,
            rejects: source.mode == SchemaMode::Reject,
        });
        // Chunks of a file arrive one after the other.
        if files.last != input.path {
            files.count += 1;
            files.last.clone_from(&input.path);
        }
    }

    /// A note for each difference.
    pub(crate) fn notes(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let note = |files: &DifferingFiles| {
            let DifferingFiles { diff, first, count, rejects, .. } = files;
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
        };
        seen.values().map(note).collect()
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
            if let FeedPiece::Chunk { parser, .. } = &piece
                && !parser.diff().is_empty()
            {
                self.others.add(self.feed.source, input, parser.diff().to_string());
            }
            give(piece, bytes)
        })
    }
}
