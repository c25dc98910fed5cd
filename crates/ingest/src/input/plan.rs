//! Input plan: what a load does with each input. Pure, except for hashing files.
//!
//! A name keeps the sequence number that it got when it was first seen. Content is loaded once, under the least
//! sequence number of the names that hold it now; the others are copies, and one of them takes over when that name
//! changes or vanishes. A vanished name keeps its rows while no other name holds its content. If an unseen name does,
//! the input was renamed, and the new name replaces the old one. If the content of an unseen name begins with the whole
//! content of a vanished input, that input was renamed and has grown. If an unseen name is that of a vanished input behind
//! which a compression ends it, and its content begins with that of the input, the input was packed: it keeps its place.
//!
//! An input that had rows and has none now (truncated, or cut to its header) counts as vanished: nothing is removed because a
//! file was emptied. Files without rows are no copies of each other.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use tidetable_source::{ContentHash, Growth, HeldContent, InputFile, PackedContent, ReaderVersion, SourceError};
use tidetable_store::version::{Input, InputContent, InputName, Version};

use crate::input::entry::{Carriers, Entry, Gone, Identity, Outgrown, Packable, Sizes, Unnamed};

/// An input that has grown: its loaded rows stay, new rows are appended.
#[derive(Debug, Clone)]
pub struct Grown {
    /// The file as it is now, longer than when it was loaded.
    pub file: InputFile,
    /// The input as recorded, under its old name if it was renamed.
    pub held: Input,
    /// Offset of the new rows, see `FeedPiece`; 0 if all its rows are appended to those held.
    pub from: u64,
    /// Expected hash of its content, if known: the load fails if it reads another one.
    pub hash: Option<ContentHash>,
}

/// The inputs of a source compared with those that a table holds.
#[derive(Debug, Clone, Default)]
pub struct InputPlan {
    /// Unseen inputs, each with its new sequence number. For a rebuilt table: all inputs.
    pub new: Vec<(u64, InputFile)>,
    /// Same path, other content: the file now, and the input as recorded. Its record has the old path if the file has grown and
    /// was packed.
    pub changed: Vec<(InputFile, Input)>,
    /// As `changed`, but loaded rows stay: files whose old content is a prefix of the new, and inputs that the caller
    /// adds because it knows more.
    pub grown: Vec<Grown>,
    /// Names seen before without rows that now bring rows, each with its sequence number; the windows they touch are
    /// rebuilt.
    pub resumed: Vec<(u64, InputFile)>,
    /// Unchanged inputs, each with its record for the next version.
    pub unchanged: Vec<(InputFile, Arc<Input>)>,
    /// Unchanged inputs under a new name: the old name and the new one.
    pub renamed: Vec<(String, String)>,
    /// Copies, not loaded, each with the path of the input with the same content.
    pub same: Vec<(InputFile, String)>,
    /// Held inputs whose files are gone, or emptied. Their cells stay.
    pub vanished: Vec<Input>,
    /// Paths of files without rows whose inputs had some: they count as vanished.
    pub emptied: Vec<String>,
    /// Held inputs to remove: the windows they touched are rebuilt without them. Includes inputs that became copies
    /// of others, which are in `same` too.
    pub given_up: Vec<Input>,
    /// Names that vanished and shall count for nothing, with or without rows.
    pub left_out: Vec<String>,
    /// Names without rows that are new or changed in the next version.
    pub names: Vec<InputName>,
    /// Paths of the version that others replace: files that were renamed.
    pub forgotten: Vec<String>,
    /// Inputs of `unchanged` whose record changes. If only the fingerprint does, it is saved with the next commit
    /// made for another reason: the hash proves that the content is the same.
    pub restated: Vec<Input>,
    /// By path, the offset up to which a changed input has its former content.
    pub(crate) prefixes: HashMap<String, u64>,
    /// Windows that inputs and names of the version owe.
    pub owing: BTreeSet<i64>,
    /// Whether `names` changes more than fingerprints.
    renames: bool,
}

/// Detects growth of a file since its content was one of those given: the longest that is a prefix of what it holds now.
pub type GrowthOf<'a> = dyn Fn(&InputFile, &[HeldContent]) -> Result<Option<Growth>, SourceError> + 'a;

/// Finds the longest of some contents with which the unpacked bytes of a file begin.
pub type PackedContentOf<'a> = dyn Fn(&InputFile, &[HeldContent]) -> Result<Option<PackedContent>, SourceError> + 'a;

/// Whether a file has rows now, for files that may have lost all they had.
pub type HoldsRows<'a> = dyn Fn(&InputFile) -> Result<bool, SourceError> + 'a;

/// What a caller knows of files, and what it wants to do with them.
#[derive(Clone, Copy)]
pub struct InputPlanOptions<'a> {
    /// Whether the vanished input with this path shall be removed.
    pub without: &'a dyn Fn(&str) -> bool,
    /// Whether an unseen input shall be loaded; otherwise it stays unseen.
    pub wants: &'a dyn Fn(&InputFile) -> bool,
    /// Called for files that are larger than before, and unseen files that are larger than a vanished input.
    pub growth: &'a GrowthOf<'a>,
    /// Called for unseen files that have the name of a vanished input and the ending of a compression.
    pub packed_content: &'a PackedContentOf<'a>,
    /// Called for files with other content than before, and unseen files with the content of others.
    pub holds_rows: &'a HoldsRows<'a>,
    /// Values that the folders of a path give to columns, as one text; empty for none. Files of equal content hold equal rows
    /// only if these are equal, too.
    pub folder_values: &'a dyn Fn(&str) -> String,
    /// Whether all inputs are loaded, into an emptied table.
    pub rebuild: bool,
}

impl Default for InputPlanOptions<'_> {
    fn default() -> Self {
        let (growth, holds_rows) = (&|_: &_, _: &_| Ok(None), &|_: &_| Ok(true));
        Self {
            without: &|_| false,
            wants: &|_| true,
            growth,
            packed_content: &|_, _| Ok(None),
            holds_rows,
            folder_values: &|_| String::new(),
            rebuild: false,
        }
    }
}

impl std::fmt::Debug for InputPlanOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InputPlanOptions").field("rebuild", &self.rebuild).finish_non_exhaustive()
    }
}

impl InputPlan {
    /// Compares `found` with the inputs of `version`. A file is hashed only where path, size and fingerprint do not
    /// decide.
    ///
    /// # Errors
    /// Those of `hash`.
    pub fn new(
        version: &Version,
        found: Vec<InputFile>,
        options: InputPlanOptions<'_>,
        mut hash: impl FnMut(&InputFile) -> Result<ContentHash, SourceError>,
    ) -> Result<Self, SourceError> {
        let mut plan = Self::default();
        let entries = compare(version, found, options, &mut hash, &mut plan)?;
        let copies = Carriers::new(&entries).copies(options.rebuild);
        for (entry, of) in entries.into_iter().zip(copies) {
            match (&entry.file, of) {
                (Some(_), None) => plan.carry(entry, options)?,
                (Some(_), Some(of)) => plan.copy(entry, of, options),
                (None, of) => plan.miss(entry, of.is_none(), options),
            }
        }
        plan.new.sort_by_key(|(input_seqno, _)| *input_seqno);

        if !options.rebuild {
            let inputs = version.inputs.iter().flat_map(|input| &input.owed);
            let names = version.names.iter().flat_map(|name| &name.owed);
            plan.owing = inputs.chain(names).map(|owed| owed.start).collect();
        }
        Ok(plan)
    }

    /// Plans an input whose rows the table shall hold.
    fn carry(&mut self, entry: Entry<'_>, options: InputPlanOptions<'_>) -> Result<(), SourceError> {
        let Entry { input_seqno, file: Some(mut file), held, content, renamed, growth, packed, .. } = entry else {
            return Ok(());
        };
        let packed = packed.filter(|packed| packed.is_whole && content == Some(packed.packed));
        match held {
            _ if options.rebuild => self.new.push((input_seqno, file)),
            Some(held) if packed.is_some() || content == Some(held.hash) => {
                let hash = packed.map_or(held.hash, |packed| packed.packed);
                let record = self.restate(&file, held, hash, renamed.is_some());
                self.renamed.extend(renamed.map(|before| (before, file.path.clone())));
                held.keep_rules(&mut file);
                self.unchanged.push((file, record));
            }
            Some(held) => self.carry_changed(file, held, growth, options)?,
            None if entry.is_new => self.new.push((input_seqno, file)),
            None => self.resumed.push((input_seqno, file)),
        }
        Ok(())
    }

    /// The record for the next version of an input with unchanged content. Notes it if it differs from that of this one.
    fn restate(&mut self, file: &InputFile, held: &Arc<Input>, hash: ContentHash, is_renamed: bool) -> Arc<Input> {
        let mut record = Arc::clone(held);
        let has_other_version = !is_of_version(file, &held.version);
        if has_other_version || is_renamed {
            let stated = Arc::make_mut(&mut record);
            stated.path.clone_from(&file.path);
            (stated.size, stated.hash) = (file.size, hash);
            if has_other_version {
                stated.version.clone_from(&file.version);
            }
            self.restated.push(stated.clone());
        }
        record
    }

    /// Plans an input whose content is not the recorded one. `growth` is given if it is known already.
    fn carry_changed(
        &mut self,
        mut file: InputFile,
        held: &Input,
        growth: Option<Growth>,
        options: InputPlanOptions<'_>,
    ) -> Result<(), SourceError> {
        // An input left incomplete by a repair or an older build must be read as a whole.
        let may_have_grown = file.size > held.size && held.hash != ContentHash(0);
        let growth = match growth {
            None if may_have_grown => (options.growth)(&file, &[held.content()])?,
            growth => growth,
        };
        if let Some(Growth { new_break, .. }) = growth {
            held.keep_rules(&mut file);
            file.breaks.extend(new_break);
        }

        let held = held.clone();
        match growth {
            Some(Growth { from: Some(from), hash, .. }) => {
                self.grown.push(Grown { file, held, from, hash: Some(hash) });
            }
            // Its last record goes on, so that it must be replaced.
            _ => self.changed.push((file, held)),
        }
        Ok(())
    }

    /// Plans a copy of another input: its name is recorded, its rows are not loaded.
    fn copy(&mut self, entry: Entry<'_>, of: String, options: InputPlanOptions<'_>) {
        let Entry { input_seqno, file: Some(file), held, known, content: Some(hash), .. } = entry else { return };
        let before = known.filter(|known| known.path == file.path && !options.rebuild);
        let before = before.and_then(|known| known.content.as_ref()).filter(|content| content.hash == hash);
        if !before.is_some_and(|content| is_of_version(&file, &content.version)) {
            let content = InputContent { size: file.size, version: file.version.clone(), hash };
            let owed = known.filter(|_| !options.rebuild).map(|known| known.owed.clone()).unwrap_or_default();
            self.names.push(InputName { input_seqno, path: file.path.clone(), content: Some(content), owed });
            self.renames |= before.is_none();
        }

        self.given_up.extend(held.filter(|_| !options.rebuild).map(|held| Input::clone(held)));
        self.same.push((file, of));
    }

    /// Plans a vanished name; `is_own` if no file holds its content.
    fn miss(&mut self, entry: Entry<'_>, is_own: bool, options: InputPlanOptions<'_>) {
        let Entry { input_seqno, path, held, known, .. } = entry;
        let left_out = (options.without)(&path);
        if left_out {
            self.left_out.push(path.clone().into_owned());
        }

        match (held, known) {
            (Some(held), _) if left_out || !is_own => {
                let Input { size, version, hash, .. } = Input::clone(held);
                let content = Some(InputContent { size, version, hash }).filter(|_| !left_out);
                self.put_name(InputName { input_seqno, path: path.into_owned(), content, owed: Vec::new() });
                self.given_up.extend((!options.rebuild).then(|| Input::clone(held)));
            }
            (Some(held), _) => self.vanished.push(Input::clone(held)),
            (None, Some(known)) if options.rebuild || (left_out && known.content.is_some()) => {
                let content = known.content.clone().filter(|_| !left_out);
                let owed = if options.rebuild { Vec::new() } else { known.owed.clone() };
                self.put_name(InputName { input_seqno, path: path.into_owned(), content, owed });
            }
            (None, _) => {}
        }
    }

    /// Notes a name whose record changes by more than a fingerprint.
    fn put_name(&mut self, name: InputName) {
        self.names.push(name);
        self.renames = true;
    }

    /// Treats grown inputs among `paths` as changed, so that the windows they touch are rebuilt.
    pub fn rebuild_grown(&mut self, paths: &[String]) {
        for Grown { file, held, from, .. } in self.grown.extract_if(.., |grown| paths.contains(&grown.file.path)) {
            if from > 0 {
                self.prefixes.insert(file.path.clone(), from);
            }
            self.changed.push((file, held));
        }
    }

    /// A plan that appends the new rows of the grown inputs among `paths`, and does nothing else.
    pub(crate) fn only_grown(&self, paths: &[String]) -> Self {
        let grown = self.grown.iter().filter(|grown| paths.contains(&grown.file.path));
        Self { grown: grown.cloned().collect(), ..Self::default() }
    }

    /// Whether no rows come from other inputs than the grown ones among `paths`.
    pub(crate) fn loads_only(&self, paths: &[String]) -> bool {
        let brings_others = !self.new.is_empty() || !self.changed.is_empty() || !self.resumed.is_empty();
        !brings_others && self.grown.len() == 1 && paths.contains(&self.grown[0].file.path)
    }

    /// Treats unchanged and grown inputs among `paths` as changed, so that the windows they touch are rebuilt, and reads them
    /// by the rules of this build.
    pub fn read_again(&mut self, paths: &[String]) {
        if paths.is_empty() {
            return;
        }
        self.rebuild_grown(paths);

        for (file, held) in std::mem::take(&mut self.unchanged) {
            match paths.contains(&file.path) {
                true => self.changed.push((file, Input::clone(&held))),
                false => self.unchanged.push((file, held)),
            }
        }

        for (file, _) in self.changed.iter_mut().filter(|(file, _)| paths.contains(&file.path)) {
            if file.has_older_rules() {
                file.reader = ReaderVersion::CURRENT;
                // Records may begin elsewhere by other rules.
                self.prefixes.remove(&file.path);
            }
        }
    }

    /// Paths of inputs that go on under older rules, although they are read again or have grown.
    pub fn read_by_older_rules(&self) -> impl Iterator<Item = &str> {
        let read = self.grown.iter().map(|grown| &grown.file).chain(self.changed.iter().map(|(file, _)| file));
        read.filter(|file| file.has_older_rules()).map(|file| file.path.as_str())
    }

    /// Whether nothing is to be loaded or recorded, so that no version is committed.
    pub fn is_empty(&self) -> bool {
        !self.changes_rows() && self.forgotten.is_empty() && !self.renames
    }

    /// Whether rows are added or removed, or windows that are owed are rebuilt.
    pub fn changes_rows(&self) -> bool {
        self.brings_or_removes() || self.settles()
    }

    /// Whether rows change only because windows that are owed can be rebuilt now.
    pub fn only_settles(&self) -> bool {
        self.settles() && !self.brings_or_removes()
    }

    fn brings_or_removes(&self) -> bool {
        let brings = !self.new.is_empty() || !self.changed.is_empty() || !self.grown.is_empty();
        brings || !self.resumed.is_empty() || !self.given_up.is_empty()
    }

    /// Windows that hold rows of vanished inputs: they cannot be rebuilt.
    pub fn stuck(&self) -> BTreeSet<i64> {
        self.vanished.iter().flat_map(Input::touches).collect()
    }

    /// Whether a window that is owed can be rebuilt now.
    pub fn settles(&self) -> bool {
        !self.settled().is_empty()
    }

    /// The windows that are owed and can be rebuilt now.
    pub fn settled(&self) -> BTreeSet<i64> {
        if self.owing.is_empty() {
            return BTreeSet::new();
        }
        self.owing.difference(&self.stuck()).copied().collect()
    }
}

/// Whether a file has the fingerprint of a recorded content.
fn is_of_version(file: &InputFile, version: &str) -> bool {
    match file.is_young() {
        true => file.looks_as(version),
        false => file.version == version,
    }
}

/// Gives the files found now to the names of a version. Returns all names with their content, those of the version first.
fn compare<'a>(
    version: &'a Version,
    found: Vec<InputFile>,
    options: InputPlanOptions<'_>,
    hash: &mut dyn FnMut(&InputFile) -> Result<ContentHash, SourceError>,
    plan: &mut InputPlan,
) -> Result<Vec<Entry<'a>>, SourceError> {
    let mut comparison = Comparison { version, options, hash, plan, entries: Vec::new() };
    comparison.add_recorded();
    let Seen { open, fresh } = comparison.give_to_names(found)?;
    if fresh.is_empty() && open.is_empty() {
        return Ok(comparison.entries);
    }

    let sizes = Sizes::new(&comparison.entries, &open, &fresh, options.wants);
    comparison.hash_open(&open, &sizes)?;
    let unnamed = comparison.rename(fresh, &sizes)?;
    comparison.add_unnamed(unnamed)?;
    Ok(comparison.entries)
}

/// A comparison of files with the names of a version, which is made in steps.
struct Comparison<'a, 'p> {
    version: &'a Version,
    options: InputPlanOptions<'p>,
    hash: &'p mut dyn FnMut(&InputFile) -> Result<ContentHash, SourceError>,
    /// Gets the paths that were emptied or forgotten.
    plan: &'p mut InputPlan,
    entries: Vec<Entry<'a>>,
}

/// Files whose content is not known after looking at names.
struct Seen {
    /// Entries with changed content, which may be that of others.
    open: Vec<usize>,
    fresh: Vec<InputFile>,
}

impl<'a> Comparison<'a, '_> {
    /// Adds the inputs and names of the version, with the values of their folders.
    fn add_recorded(&mut self) {
        self.entries.extend(self.version.inputs.shares_of().map(Entry::of_input));
        self.entries.extend(self.version.names.iter().map(Entry::of_name));
        for entry in &mut self.entries {
            entry.folder = (self.options.folder_values)(&entry.path);
        }
    }

    /// Gives files to the names that they had before. A file that lost all its rows counts as vanished.
    fn give_to_names(&mut self, found: Vec<InputFile>) -> Result<Seen, SourceError> {
        let inputs = self.version.inputs.iter().map(|input| input.path.as_str());
        let names = self.version.names.iter().map(|name| name.path.as_str());
        let places: HashMap<&str, usize> = inputs.chain(names).zip(0..).collect();

        let mut seen = Seen { open: Vec::new(), fresh: Vec::new() };
        for file in found {
            let Some(index) = places.get(file.path.as_str()) else {
                seen.fresh.push(file);
                continue;
            };
            let entry = &mut self.entries[*index];
            let recorded = entry.recorded();
            let content = match recorded {
                Some(recorded) if file.is_as(recorded.size, recorded.version) => Some(recorded.hash),
                Some(recorded) if file.size == recorded.size => Some((self.hash)(&file)?),
                _ => None,
            };
            let is_changed = content.is_none() || content != recorded.map(|recorded| recorded.hash);

            // Read as it was loaded: if it has grown, its lines still end so.
            let mut as_held = file.clone();
            as_held.shape = entry.held.map_or(file.shape, |held| held.shape);
            if is_changed && entry.had_rows() && !(self.options.holds_rows)(&as_held)? {
                self.plan.emptied.push(file.path);
                continue;
            }

            if content.is_none() {
                seen.open.push(*index);
            }
            entry.content = content;
            entry.file = Some(file);
        }

        for entry in self.entries.iter_mut().filter(|entry| entry.file.is_none()) {
            entry.content = entry.recorded().map(|recorded| recorded.hash);
        }
        Ok(seen)
    }

    /// Hashes files with changed content where another file may have the same.
    fn hash_open(&mut self, open: &[usize], sizes: &Sizes) -> Result<(), SourceError> {
        for index in open {
            let entry = &mut self.entries[*index];
            if let Some(file) = entry.file.as_ref().filter(|file| sizes.has_others(file.size)) {
                entry.content = Some((self.hash)(file)?);
            }
        }
        Ok(())
    }

    /// Gives files with unseen names to vanished names of the same content, which were renamed. Returns the others that
    /// are wanted.
    fn rename(&mut self, fresh: Vec<InputFile>, sizes: &Sizes) -> Result<Vec<Unnamed>, SourceError> {
        let mut gone = Gone::new(&self.entries);
        let packable = Packable::new(&self.entries);
        let mut known: HashSet<Identity> = self.entries.iter().filter_map(Entry::identity).collect();
        let mut unnamed = Vec::new();
        for file in fresh {
            let is_wanted = (self.options.wants)(&file);
            let is_alike = if is_wanted { sizes.has_others(file.size) } else { sizes.is_of_gone(file.size) };
            let content = if is_alike { Some((self.hash)(&file)?) } else { None };
            let folder = (self.options.folder_values)(&file.path);
            let mut fresh = Unnamed { file, content, folder };

            let is_known = fresh.identity().is_some_and(|identity| gone.has(&identity) || known.contains(&identity));
            if is_known && !(self.options.holds_rows)(&fresh.file)? {
                fresh.content = None;
            }

            let identity = fresh.identity();
            known.extend(identity.clone());
            if let Some(index) = identity.and_then(|identity| gone.take(&identity)) {
                self.plan.forgotten.push(self.entries[index].rename(fresh.file));
            } else if let Some((index, packed)) = packable.find(&fresh, &self.entries, self.options.packed_content)? {
                let entry = &mut self.entries[index];
                self.plan.forgotten.push(entry.rename(fresh.file));
                (entry.content, entry.packed) = (Some(packed.packed), Some(packed));
            } else if is_wanted {
                unnamed.push(fresh);
            }
        }
        Ok(unnamed)
    }

    /// Gives files to vanished inputs that were renamed and have grown, and new names to the others.
    fn add_unnamed(&mut self, unnamed: Vec<Unnamed>) -> Result<(), SourceError> {
        let mut outgrown = Outgrown::new(&self.entries, &unnamed);
        let there = self.entries.iter().filter(|entry| entry.file.is_some());
        let mut present: HashSet<Identity> = there.filter_map(Entry::identity).collect();
        let mut next = self.version.next_input_seqno();
        for unnamed in unnamed {
            let is_copy = unnamed.identity().is_some_and(|identity| !present.insert(identity));
            let grown = if is_copy { None } else { outgrown.take(&unnamed, self.options.growth)? };
            let Unnamed { file, content, folder } = unnamed;
            if let Some((index, growth)) = grown {
                let entry = &mut self.entries[index];
                self.plan.forgotten.push(entry.rename(file));
                (entry.content, entry.growth) = (content, Some(growth));
            } else {
                let name = Entry::named(next, Cow::Owned(file.path.clone()));
                self.entries.push(Entry { is_new: true, file: Some(file), content, folder, ..name });
                next += 1;
            }
        }
        Ok(())
    }
}
