//! A directory of inputs in memory, which changes at random.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidetable_ingest::{Feed, FeedEnd, FeedPiece};
use tidetable_source::{ContentHash, Growth, InputFile, TextShape};
use tidetable_store::StoreError;
use xxhash_rust::xxh3::xxh3_128;

use crate::event::{Event, Source, give_events};
use crate::random::Random;

/// Possible file names: few, so that they are used again.
const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// Files, each with one of the contents created so far.
#[derive(Debug, Clone, Default)]
pub struct Folder {
    files: BTreeMap<String, File>,
    contents: Vec<(ContentHash, Arc<Vec<Event>>)>,
    /// Number of changes, for fingerprints.
    changes: u64,
}

#[derive(Debug, Clone, Copy)]
struct File {
    content: usize,
    /// Changes with every change of the file.
    fingerprint: u64,
}

/// A change in the directory, as a user or another program makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A file is written with new rows.
    Write,
    /// Rows are appended to a file.
    Grow,
    /// A file is written with the rows of another file, or of a past one.
    Copy,
    /// A file is renamed, perhaps to a name used before.
    Rename,
    /// A file is renamed, perhaps to a name never used, and rows are appended to it.
    RenameAndGrow,
    /// A file is removed.
    Remove,
    /// The fingerprint of a file changes, but not its content.
    Touch,
}

impl Change {
    /// A random change; writes and growth are the most frequent.
    fn any(random: &mut Random) -> Self {
        match random.below(100) {
            0..30 => Self::Write,
            30..55 => Self::Grow,
            55..70 => Self::Copy,
            70..78 => Self::Rename,
            78..83 => Self::RenameAndGrow,
            83..95 => Self::Remove,
            _ => Self::Touch,
        }
    }
}

impl Folder {
    /// Makes a random change; `rows` generates new rows, if the change needs some.
    pub fn change(&mut self, random: &mut Random, rows: impl FnOnce() -> Vec<Event>) -> Change {
        let change = Change::any(random);
        let names: Vec<String> = self.files.keys().cloned().collect();
        let file = names.get(random.place(names.len())).cloned().unwrap_or_default();
        let other = Self::any_name(random);
        self.changes += 1;
        let fingerprint = self.changes;

        match change {
            Change::Write => {
                // Sometimes without rows: such files have equal content.
                let content = self.keep(if random.one_in(12) { Vec::new() } else { rows() });
                self.files.insert(other, File { content, fingerprint });
            }
            Change::Grow => {
                if let Some(grown) = self.files.get(&file).copied() {
                    let content = self.grow(grown, rows());
                    self.files.insert(file, File { content, fingerprint });
                }
            }
            Change::Copy if !self.contents.is_empty() => {
                let past = random.place(self.contents.len());
                let content = self.files.get(&file).filter(|_| !random.one_in(4)).map_or(past, |file| file.content);
                self.files.insert(other, File { content, fingerprint });
            }
            Change::Rename => {
                if let Some(renamed) = self.files.remove(&file) {
                    self.files.insert(other, File { fingerprint, ..renamed });
                }
            }
            Change::RenameAndGrow => {
                if let Some(renamed) = self.files.remove(&file) {
                    let content = self.grow(renamed, rows());
                    let unused = format!("{other}{fingerprint}");
                    self.files.insert(if random.one_in(3) { other } else { unused }, File { content, fingerprint });
                }
            }
            Change::Remove => {
                self.files.remove(&file);
            }
            Change::Touch => {
                self.files.entry(file).and_modify(|file| file.fingerprint = fingerprint);
            }
            Change::Copy => {}
        }

        self.files.remove("");
        change
    }

    /// Keeps the content of a file with more rows behind it; returns its index.
    fn grow(&mut self, file: File, rows: Vec<Event>) -> usize {
        let before = &self.contents[file.content].1;
        self.keep(before.iter().cloned().chain(rows).collect())
    }

    /// Keeps a content for later copies; returns its index.
    fn keep(&mut self, events: Vec<Event>) -> usize {
        self.contents.push((hash_of(&events), Arc::new(events)));
        self.contents.len() - 1
    }

    /// Each file with the hash of its content, in the order of names.
    pub fn files(&self) -> impl Iterator<Item = (&str, ContentHash)> {
        self.files.iter().map(|(name, file)| (name.as_str(), self.contents[file.content].0))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// The rows with this content hash; none if there never were any.
    pub fn rows(&self, content: ContentHash) -> &[Event] {
        let found = self.contents.iter().find(|(hash, _)| *hash == content);
        found.map_or(&[], |(_, events)| events.as_slice())
    }

    /// Restores removed files with the content that `content` remembers of them.
    pub fn put_back(&mut self, names: &[String], content: impl Fn(&str) -> Option<ContentHash>) {
        for name in names {
            let held = content(name).and_then(|held| self.contents.iter().position(|(hash, _)| *hash == held));
            self.changes += 1;
            if let Some(content) = held {
                self.files.insert(name.clone(), File { content, fingerprint: self.changes });
            }
        }
    }

    /// A random file name, which a file may have now, may have had before, or never had.
    pub fn any_name(random: &mut Random) -> String {
        random.pick(&NAMES).unwrap_or("a").to_owned()
    }
}

/// Hash of a content. Contents have different hashes, because the values of rows are unique.
fn hash_of(events: &[Event]) -> ContentHash {
    let values: Vec<u8> = events.iter().flat_map(|event| event.v.to_le_bytes()).collect();
    ContentHash(xxh3_128(&values))
}

impl Source for Folder {
    fn found(&self) -> Vec<InputFile> {
        let mut found = Vec::with_capacity(self.files.len());
        for (name, file) in &self.files {
            let mut input = InputFile::of_rows(name, &file.fingerprint.to_string());
            input.size = self.contents[file.content].1.len() as u64;
            found.push(input);
        }
        found
    }

    fn hash(&self, input: &InputFile) -> ContentHash {
        self.files.get(&input.path).map_or(ContentHash(0), |file| self.contents[file.content].0)
    }

    fn growth(&self, input: &InputFile, (size, before): (u64, ContentHash)) -> Option<Growth> {
        let (hash, events) = &self.contents[self.files.get(&input.path)?.content];
        let held = events.get(..size as usize).filter(|held| !held.is_empty())?;
        let growth = Growth { from: Some(size), new_break: None, before, bytes: events.len() as u64, hash: *hash };
        (hash_of(held) == before).then_some(growth)
    }
}

impl Feed for Folder {
    fn read(
        &self,
        input: &InputFile,
        cuts: &[u64],
        give: &mut dyn FnMut(FeedPiece, u64) -> bool,
    ) -> Result<Option<FeedEnd>, StoreError> {
        let Some(file) = self.files.get(&input.path) else {
            return Err(StoreError::InputChanged { path: input.path.clone() });
        };
        let (hash, events) = &self.contents[file.content];
        let all_given = give_events(events, cuts, give)?;
        Ok(all_given.then_some(FeedEnd { hash: *hash, bytes: 0, loaded: None, shape: TextShape::default() }))
    }
}
