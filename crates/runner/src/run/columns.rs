//! Notes on files whose columns differ from the declared ones.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tidetable_source::{InputFile, SchemaMode, SourceSpec};
use tidetable_store::Result;
use tidetable_store::load::{Feed, FeedEnd, FeedPiece, FileFeed};

/// The files that differed so far, by kind of difference: the first file, and their number.
#[derive(Debug, Default)]
pub(crate) struct OtherColumns {
    seen: Mutex<BTreeMap<(String, String), DifferingFiles>>,
}

#[derive(Debug)]
struct DifferingFiles {
    first: String,
    last: String,
    count: usize,
    what_follows: &'static str,
}

impl OtherColumns {
    fn add(&self, source: &SourceSpec, input: &InputFile, diff: String) {
        let what_follows = match source.mode {
            SchemaMode::Reject => "every row is rejected",
            SchemaMode::Evolve | SchemaMode::Freeze => "what is missing is null, what is not declared is not read",
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let files = seen.entry((source.name.clone(), diff)).or_insert_with(|| DifferingFiles {
            first: input.path.clone(),
            last: String::new(),
            count: 0,
            what_follows,
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
        let note = |((_, diff), files): (&(String, String), &DifferingFiles)| {
            let DifferingFiles { first, count, what_follows, .. } = files;
            let others = match count {
                1 => String::new(),
                2 => " (and 1 other file)".to_owned(),
                _ => format!(" (and {} other files)", count - 1),
            };
            format!("{first}{others} has other columns than declared: it {diff}; {what_follows}")
        };
        seen.iter().map(note).collect()
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
