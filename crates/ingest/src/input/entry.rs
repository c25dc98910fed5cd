//! Names with their files and records, and which of them may hold the same content.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use tidetable_source::{ContentHash, Growth, HeldContent, InputFile, SourceError};
use tidetable_store::version::Input;
use tidetable_store::version::InputName;

/// What makes files hold equal rows: their content, and the values that folders give to columns.
pub(super) type Identity = (ContentHash, String);

/// A name with its file and its record.
pub(super) struct Entry<'a> {
    pub(super) input_seqno: u64,
    pub(super) path: Cow<'a, str>,
    /// Whether the name is unseen.
    pub(super) is_new: bool,
    /// The file now; `None` if it vanished.
    pub(super) file: Option<InputFile>,
    /// Its record as an input.
    pub(super) held: Option<&'a Arc<Input>>,
    /// Its record as a name without rows.
    pub(super) known: Option<&'a InputName>,
    /// Hash of its present or last content; `None` if no other name can have the same.
    pub(super) content: Option<ContentHash>,
    /// Values that its folders give to columns, as one text.
    pub(super) folder: String,
    /// Its old name, if it was renamed.
    pub(super) renamed: Option<String>,
    /// Its growth, if it was renamed and has grown.
    pub(super) growth: Option<Growth>,
}

impl<'a> Entry<'a> {
    pub(super) fn of_input(input: &'a Arc<Input>) -> Self {
        Self { held: Some(input), ..Self::named(input.input_seqno, Cow::Borrowed(&input.path)) }
    }

    pub(super) fn of_name(name: &'a InputName) -> Self {
        Self { known: Some(name), ..Self::named(name.input_seqno, Cow::Borrowed(&name.path)) }
    }

    pub(super) fn named(input_seqno: u64, path: Cow<'a, str>) -> Self {
        let (file, held, known, content, renamed, growth) = (None, None, None, None, None, None);
        let folder = String::new();
        Self { input_seqno, path, is_new: false, file, held, known, content, folder, renamed, growth }
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

    /// Recorded size, fingerprint and hash. `None` for an input left incomplete by a repair or an older build.
    pub(super) fn before(&self) -> Option<(u64, &'a str, ContentHash)> {
        let of_input = self.held.map(|input| (input.size, input.version.as_str(), input.hash));
        let of_name = self.known.and_then(|name| name.content.as_ref());
        let of_name = of_name.map(|content| (content.size, content.version.as_str(), content.hash));
        of_input.or(of_name).filter(|(_, _, hash)| *hash != ContentHash(0))
    }
}

impl Entry<'_> {
    /// Whether its content brought rows when it was last seen, under this name or another.
    pub(super) fn had_rows(&self) -> bool {
        let held = self.held.is_some_and(|held| held.read > 0 || !held.windows.is_empty());
        held || self.known.is_some_and(|known| known.content.is_some())
    }
}

/// For each key of a file that is there, the least sequence number of its files, and the entry of that file.
pub(super) fn carriers<K: Eq + Hash>(
    entries: &[Entry<'_>],
    key: impl Fn(&Entry<'_>) -> Option<K>,
) -> HashMap<K, (u64, usize)> {
    let mut carriers: HashMap<K, (u64, usize)> = HashMap::with_capacity(entries.len());
    for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.file.is_some()) {
        let Some(key) = key(entry) else { continue };
        let own = (entry.input_seqno, at);
        carriers.entry(key).and_modify(|least| *least = own.min(*least)).or_insert(own);
    }
    carriers
}

/// Counts of files by size: only files of the same size can be copies.
pub(super) struct Sizes {
    counts: HashMap<u64, usize>,
    gone: HashSet<u64>,
}

impl Sizes {
    pub(super) fn new(
        entries: &[Entry<'_>],
        open: &[usize],
        fresh: &[InputFile],
        wants: &dyn Fn(&InputFile) -> bool,
    ) -> Self {
        let mut sizes = Self { counts: HashMap::new(), gone: HashSet::new() };
        for entry in entries.iter().filter(|entry| entry.content.is_some()) {
            let size = match (&entry.file, entry.before()) {
                (Some(file), _) => file.size,
                (None, Some((size, ..))) => {
                    sizes.gone.insert(size);
                    size
                }
                (None, None) => continue,
            };
            *sizes.counts.entry(size).or_default() += 1;
        }
        let open = open.iter().filter_map(|at| entries[*at].file.as_ref());
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

/// Vanished names by identity, the latest first.
pub(super) struct Gone(HashMap<Identity, Vec<(u64, usize)>>);

impl Gone {
    pub(super) fn new(entries: &[Entry<'_>]) -> Self {
        let mut gone: HashMap<Identity, Vec<(u64, usize)>> = HashMap::new();
        for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.file.is_none()) {
            if let Some(identity) = entry.identity() {
                gone.entry(identity).or_default().push((entry.input_seqno, at));
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
        self.0.get_mut(identity)?.pop().map(|(_, at)| at)
    }
}

/// A file whose name is unseen.
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

/// Vanished inputs with rows whose content no file holds: by the values of their folders and their content, the least
/// sequence number and its entry.
pub(super) struct Outgrown(HashMap<String, BTreeMap<HeldContent, (u64, usize)>>);

impl Outgrown {
    pub(super) fn new(entries: &[Entry<'_>], unnamed: &[Unnamed]) -> Self {
        let present = entries.iter().filter(|entry| entry.file.is_some()).filter_map(Entry::identity);
        let present: HashSet<Identity> = present.chain(unnamed.iter().filter_map(Unnamed::identity)).collect();
        let mut outgrown: HashMap<String, BTreeMap<HeldContent, (u64, usize)>> = HashMap::new();
        for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.file.is_none()) {
            // Any file begins with the header of a file without rows.
            if let (Some(held), Some(identity)) = (entry.held.filter(|held| held.read > 0), entry.identity())
                && !present.contains(&identity)
            {
                let own = (entry.input_seqno, at);
                let of_folder = outgrown.entry(entry.folder.clone()).or_default();
                of_folder.entry(held.content()).and_modify(|least| *least = own.min(*least)).or_insert(own);
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
        Ok(content.and_then(|content| outgrown.remove(&content)).map(|(_, at)| (at, growth)))
    }
}
