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

/// A change in the directory.
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

impl Folder {
    /// Makes a random change; `rows` generates new rows.
    pub fn change(&mut self, random: &mut Random, rows: impl FnOnce() -> Vec<Event>) -> Change {
        let change = match random.below(100) {
            0..30 => Change::Write,
            30..55 => Change::Grow,
            55..70 => Change::Copy,
            70..78 => Change::Rename,
            78..83 => Change::RenameAndGrow,
            83..95 => Change::Remove,
            _ => Change::Touch,
        };
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
                    let events = self.contents[grown.content].1.iter().cloned().chain(rows()).collect();
                    let content = self.keep(events);
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
                    let events = self.contents[renamed.content].1.iter().cloned().chain(rows()).collect();
                    let content = self.keep(events);
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

    fn keep(&mut self, events: Vec<Event>) -> usize {
        self.contents.push((hash_of(&events), Arc::new(events)));
        self.contents.len() - 1
    }

    /// Each file with the hash of its content.
    pub fn files(&self) -> impl Iterator<Item = (&str, ContentHash)> {
        self.files.iter().map(|(name, file)| (name.as_str(), self.contents[file.content].0))
    }

    /// The rows with this content hash.
    pub fn rows(&self, content: ContentHash) -> &[Event] {
        let found = self.contents.iter().find(|(hash, _)| *hash == content);
        found.map_or(&[], |(_, events)| events.as_slice())
    }

    /// Restores removed files with their content.
    pub fn put_back(&mut self, names: &[String], content: impl Fn(&str) -> Option<ContentHash>) {
        for name in names {
            let held = content(name).and_then(|held| self.contents.iter().position(|(hash, _)| *hash == held));
            self.changes += 1;
            if let Some(content) = held {
                self.files.insert(name.clone(), File { content, fingerprint: self.changes });
            }
        }
    }

    /// A random file name.
    pub fn any_name(random: &mut Random) -> String {
        random.pick(&NAMES).unwrap_or("a").to_owned()
    }
}

/// Unique, because rows are.
fn hash_of(events: &[Event]) -> ContentHash {
    let values: Vec<u8> = events.iter().flat_map(|event| event.v.to_le_bytes()).collect();
    ContentHash(xxh3_128(&values))
}

impl Source for Folder {
    fn found(&self) -> Vec<InputFile> {
        let found = |(name, file): (&String, &File)| {
            let mut input = InputFile::of_rows(name, &file.fingerprint.to_string());
            input.size = self.contents[file.content].1.len() as u64;
            input
        };
        self.files.iter().map(found).collect()
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
