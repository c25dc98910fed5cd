//! Names with their files and records, and which of them may hold the same content.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use tidetable_source::{ContentHash, Format, Growth, HeldContent, InputFile, PackedContent, SourceError};
use tidetable_store::version::Input;
use tidetable_store::version::InputName;

/// What makes files hold equal rows: their content, and the values that folders give to columns.
pub(super) type Identity = (ContentHash, String);

/// A name with its file and its record, as a plan compares them.
#[derive(Default)]
pub(super) struct Entry<'a> {
    pub(super) input_seqno: u64,
    pub(super) path: Cow<'a, str>,
    pub(super) is_new: bool,
    /// The file now; `None` if it vanished.
    pub(super) file: Option<InputFile>,
    /// Its record as an input with rows, if it had some.
    pub(super) held: Option<&'a Arc<Input>>,
    /// Its record as a name without rows, such as that of a copy.
    pub(super) known: Option<&'a InputName>,
    /// Hash of its present or last content; `None` if no other name can have the same.
    pub(super) content: Option<ContentHash>,
    /// Values that its folders give to columns, as one text.
    pub(super) folder: String,
    /// Its old name, if it was renamed.
    pub(super) renamed: Option<String>,
    /// Its growth, if it was renamed and has grown.
    pub(super) growth: Option<Growth>,
    /// What its file holds, if it was packed.
    pub(super) packed: Option<PackedContent>,
}

/// Content as a version records it: what a file must be like to count as unchanged.
#[derive(Clone, Copy)]
pub(super) struct RecordedContent<'a> {
    pub(super) size: u64,
    /// Fingerprint of the file, by which it is known as unchanged without reading it.
    pub(super) version: &'a str,
    pub(super) hash: ContentHash,
}

/// An entry of a list, in the order in which names were first seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EntryPlace {
    pub(super) input_seqno: u64,
    pub(super) index: usize,
}

impl<'a> Entry<'a> {
    pub(super) fn of_input(input: &'a Arc<Input>) -> Self {
        Self { held: Some(input), ..Self::named(input.input_seqno, Cow::Borrowed(&input.path)) }
    }

    pub(super) fn of_name(name: &'a InputName) -> Self {
        Self { known: Some(name), ..Self::named(name.input_seqno, Cow::Borrowed(&name.path)) }
    }

    pub(super) fn named(input_seqno: u64, path: Cow<'a, str>) -> Self {
        Self { input_seqno, path, ..Self::default() }
    }

    /// Its content with the values of its folders.
    pub(super) fn identity(&self) -> Option<Identity> {
        Some((self.content?, self.folder.clone()))
    }

    /// Gives the name to `file`; returns the old one.
    pub(super) fn rename(&mut self, file: InputFile) -> String {
        let before = std::mem::replace(&mut self.path, Cow::Owned(file.path.clone())).into_owned();
        self.file = Some(file);
        self.renamed = Some(before.clone());
        before
    }

    /// What the version records of its content. `None` for an input left incomplete by a repair or an older build.
    pub(super) fn recorded(&self) -> Option<RecordedContent<'a>> {
        let recorded = match (self.held, self.known) {
            (Some(held), _) => RecordedContent { size: held.size, version: &held.version, hash: held.hash },
            (None, Some(known)) => {
                let content = known.content.as_ref()?;
                RecordedContent { size: content.size, version: &content.version, hash: content.hash }
            }
            (None, None) => return None,
        };
        Some(recorded).filter(|recorded| recorded.hash != ContentHash(0))
    }
}

impl Entry<'_> {
    /// Whether its content brought rows when it was last seen, under this name or another.
    pub(super) fn had_rows(&self) -> bool {
        let held = self.held.is_some_and(|held| held.read > 0 || !held.windows.is_empty());
        held || self.known.is_some_and(|known| known.content.is_some())
    }
}

/// The entries whose rows a table holds, to find out which of the others are their copies.
pub(super) struct Carriers<'e, 'a> {
    entries: &'e [Entry<'a>],
    /// Of the files that are there, the first of each identity.
    by_identity: HashMap<Identity, EntryPlace>,
    by_content: HashMap<ContentHash, EntryPlace>,
    /// Identities of the inputs that have a record.
    of_inputs: HashSet<Identity>,
}

impl<'e, 'a> Carriers<'e, 'a> {
    pub(super) fn new(entries: &'e [Entry<'a>]) -> Self {
        let inputs = entries.iter().filter(|entry| entry.held.is_some());
        Self {
            entries,
            by_identity: first_by(entries, |entry| entry.identity()),
            by_content: first_by(entries, |entry| entry.content),
            of_inputs: inputs.filter_map(Entry::identity).collect(),
        }
    }

    /// For each entry that is a copy, the path of the input with its content.
    pub(super) fn copies(&self, rebuild: bool) -> Vec<Option<String>> {
        (0..self.entries.len()).map(|index| self.original(index, rebuild)).collect()
    }

    fn original(&self, index: usize, rebuild: bool) -> Option<String> {
        let entry = &self.entries[index];
        // Files without rows are no copies; of one that is gone, another with its content brings as much.
        if entry.file.is_some() && entry.held.is_some_and(|held| brought_nothing(held)) {
            return None;
        }

        let identity = entry.identity()?;
        let is_unchanged = entry.content == entry.recorded().map(|recorded| recorded.hash);
        // A copy that was found before folders gave columns is that of an input of other folders; it stays one until a
        // rebuild.
        let is_of_other_folders = entry.known.is_some() && is_unchanged && !self.of_inputs.contains(&identity);
        let carrier = match is_of_other_folders && !rebuild {
            true => self.by_content.get(&identity.0)?,
            false => self.by_identity.get(&identity)?,
        };
        (carrier.index != index).then(|| self.entries[carrier.index].path.clone().into_owned())
    }
}

/// Whether an input had neither rows nor windows when it was read.
fn brought_nothing(input: &Input) -> bool {
    input.read == 0 && input.windows.is_empty()
}

/// For each key of a file that is there, the entry whose name was seen first.
fn first_by<K: Eq + Hash>(entries: &[Entry<'_>], key: impl Fn(&Entry<'_>) -> Option<K>) -> HashMap<K, EntryPlace> {
    let mut first: HashMap<K, EntryPlace> = HashMap::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.file.is_some()) {
        let Some(key) = key(entry) else { continue };
        let place = EntryPlace { input_seqno: entry.input_seqno, index };
        first.entry(key).and_modify(|least| *least = place.min(*least)).or_insert(place);
    }
    first
}

/// Counts of files by size: only files of the same size can be copies.
pub(super) struct Sizes {
    counts: HashMap<u64, usize>,
    gone: HashSet<u64>,
}

impl Sizes {
    /// Counts the files of `entries` with known content, those of the entries `open`, and those of `fresh` that are
    /// wanted.
    pub(super) fn new(
        entries: &[Entry<'_>],
        open: &[usize],
        fresh: &[InputFile],
        wants: &dyn Fn(&InputFile) -> bool,
    ) -> Self {
        let mut sizes = Self { counts: HashMap::new(), gone: HashSet::new() };
        for entry in entries.iter().filter(|entry| entry.content.is_some()) {
            let size = match (&entry.file, entry.recorded()) {
                (Some(file), _) => file.size,
                (None, Some(recorded)) => {
                    sizes.gone.insert(recorded.size);
                    recorded.size
                }
                (None, None) => continue,
            };
            *sizes.counts.entry(size).or_default() += 1;
        }

        let open = open.iter().filter_map(|index| entries[*index].file.as_ref());
        for file in open.chain(fresh.iter().filter(|file| wants(file))) {
            *sizes.counts.entry(file.size).or_default() += 1;
        }
        sizes
    }

    /// Whether another file has the size of a counted file.
    pub(super) fn has_others(&self, size: u64) -> bool {
        self.counts.get(&size).is_some_and(|count| *count > 1)
    }

    pub(super) fn is_of_gone(&self, size: u64) -> bool {
        self.gone.contains(&size)
    }
}

/// Vanished names by identity, the latest first, so that the one seen first is taken first.
pub(super) struct Gone(HashMap<Identity, Vec<EntryPlace>>);

impl Gone {
    pub(super) fn new(entries: &[Entry<'_>]) -> Self {
        let mut gone: HashMap<Identity, Vec<EntryPlace>> = HashMap::new();
        for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.file.is_none()) {
            if let Some(identity) = entry.identity() {
                gone.entry(identity).or_default().push(EntryPlace { input_seqno: entry.input_seqno, index });
            }
        }

        gone.values_mut().for_each(|places| places.sort_unstable_by(|a, b| b.cmp(a)));
        Self(gone)
    }

    pub(super) fn has(&self, identity: &Identity) -> bool {
        self.0.get(identity).is_some_and(|places| !places.is_empty())
    }

    /// Removes and returns the name of this identity that was seen first.
    pub(super) fn take(&mut self, identity: &Identity) -> Option<usize> {
        self.0.get_mut(identity)?.pop().map(|place| place.index)
    }
}

/// Vanished inputs with rows, which may have been packed, by the names of their files.
pub(super) struct Packable(HashMap<String, Vec<usize>>);

impl Packable {
    pub(super) fn new(entries: &[Entry<'_>]) -> Self {
        let mut packable: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.file.is_none()) {
            if entry.held.is_some_and(|held| held.read > 0) && entry.content.is_some() {
                packable.entry(file_name(&entry.path).to_owned()).or_default().push(index);
            }
        }
        Self(packable)
    }

    /// The input that became the packed file `unnamed`, with what that holds of it. Of equal contents the one seen first.
    pub(super) fn find(
        &self,
        unnamed: &Unnamed,
        entries: &[Entry<'_>],
        content: impl FnOnce(&InputFile, &[HeldContent]) -> Result<Option<PackedContent>, SourceError>,
    ) -> Result<Option<(usize, PackedContent)>, SourceError> {
        let name = Format::name_unpacked(file_name(&unnamed.file.path));
        let Some(named_so) = name.and_then(|name| self.0.get(name)) else { return Ok(None) };

        let mut candidates = Vec::new();
        for index in named_so {
            let entry = &entries[*index];
            if let Some(held) = entry.held.filter(|_| entry.file.is_none() && entry.folder == unnamed.folder) {
                candidates.push((*index, entry.input_seqno, held.content()));
            }
        }
        if candidates.is_empty() {
            return Ok(None);
        }

        let contents: Vec<HeldContent> = candidates.iter().map(|(_, _, content)| content.clone()).collect();
        let Some(found) = content(&unnamed.file, &contents)? else { return Ok(None) };
        let loaded = candidates.iter().filter(|(_, _, content)| content.hash == found.loaded);
        Ok(loaded.min_by_key(|(_, input_seqno, _)| *input_seqno).map(|(index, ..)| (*index, found)))
    }
}

/// The last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// A file whose name is unseen: it may be new, a copy, or renamed.
pub(super) struct Unnamed {
    pub(super) file: InputFile,
    pub(super) content: Option<ContentHash>,
    /// Values that its folders give to columns, as one text.
    pub(super) folder: String,
}

impl Unnamed {
    /// Its content with the values of its folders.
    pub(super) fn identity(&self) -> Option<Identity> {
        Some((self.content?, self.folder.clone()))
    }
}

/// Vanished inputs with rows whose content no file holds, by the values of their folders and their content: of equal ones
/// that which was seen first.
pub(super) struct Outgrown(HashMap<String, BTreeMap<HeldContent, EntryPlace>>);

impl Outgrown {
    pub(super) fn new(entries: &[Entry<'_>], unnamed: &[Unnamed]) -> Self {
        let present = entries.iter().filter(|entry| entry.file.is_some()).filter_map(Entry::identity);
        let present: HashSet<Identity> = present.chain(unnamed.iter().filter_map(Unnamed::identity)).collect();

        let mut outgrown: HashMap<String, BTreeMap<HeldContent, EntryPlace>> = HashMap::new();
        for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.file.is_none()) {
            // Any file begins with the header of a file without rows.
            if let (Some(held), Some(identity)) = (entry.held.filter(|held| held.read > 0), entry.identity())
                && !present.contains(&identity)
            {
                let place = EntryPlace { input_seqno: entry.input_seqno, index };
                let of_folder = outgrown.entry(entry.folder.clone()).or_default();
                of_folder.entry(held.content()).and_modify(|least| *least = place.min(*least)).or_insert(place);
            }
        }
        Self(outgrown)
    }

    /// Removes and returns the longest of which `unnamed` is a growth.
    pub(super) fn take(
        &mut self,
        Unnamed { file, folder, .. }: &Unnamed,
        growth: impl FnOnce(&InputFile, &[HeldContent]) -> Result<Option<Growth>, SourceError>,
    ) -> Result<Option<(usize, Growth)>, SourceError> {
        let Some(outgrown) = self.0.get_mut(folder) else { return Ok(None) };
        let smaller: Vec<HeldContent> = outgrown.keys().take_while(|held| held.size < file.size).cloned().collect();
        let growth = if smaller.is_empty() { None } else { growth(file, &smaller)? };
        // A renamed file whose last record goes on is told from another one by nothing.
        let Some(growth) = growth.filter(|growth| growth.from.is_some()) else { return Ok(None) };

        let content = smaller.into_iter().rev().find(|held| held.hash == growth.before);
        Ok(content.and_then(|content| outgrown.remove(&content)).map(|place| (place.index, growth)))
    }
}
