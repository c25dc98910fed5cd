//! What a load has to do about each input. Pure, but for the hashes it asks for.
//!
//! A sequence belongs to a name from the time it is first seen. A content is read once, under the least sequence of the
//! names that hold it now; the others are its copies, and one of them takes over when that name changes or goes. A name
//! that is gone keeps its rows while nobody else holds its content. Where a name not seen before does, the input was
//! renamed: the new name takes the place of the old one.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tidetable_source::{ContentHash, Growth, InputFile, SourceError};

use crate::version::names::{Content, Name};
use crate::version::{Input, Version};

/// An input that brings more than it did: what the table holds of it stays.
#[derive(Debug, Clone)]
pub struct Grown {
    /// What is there now.
    pub file: InputFile,
    /// What the table holds.
    pub held: Input,
    /// Where what it brings begins, see [`Piece`](super::Piece); 0 if all that is there now comes beside what is held.
    pub from: u64,
    /// What it must hold now, if that is known.
    pub hash: Option<ContentHash>,
}

/// The inputs of a source compared with those a table holds.
#[derive(Debug, Clone, Default)]
pub struct InputPlan {
    /// Not seen before, each with the sequence it gets. Of a table that is built anew: all inputs.
    pub new: Vec<(u64, InputFile)>,
    /// Same path, other content: what is there now, and what the table holds.
    pub changed: Vec<(InputFile, Input)>,
    /// As `changed`, but what the table holds of it stays beside what comes: files whose old content is the start of the
    /// new, and what the caller adds, since it may know more than a comparison of contents.
    pub grown: Vec<Grown>,
    /// Names that were seen before and bring rows only now, each with its sequence: the windows they touch are built anew.
    pub resumed: Vec<(u64, InputFile)>,
    /// Held as they are, with what the next version says of each.
    pub unchanged: Vec<(InputFile, Arc<Input>)>,
    /// Held as they are under another name: the one before and the one now.
    pub renamed: Vec<(String, String)>,
    /// Same content as another input, whose path comes second: not loaded again.
    pub same: Vec<(InputFile, String)>,
    /// Held, but no longer there. Their cells stay.
    pub vanished: Vec<Input>,
    /// Held, and to be taken out: the windows they touched are built anew without them. Among them are inputs that
    /// changed into copies of others, which are in `same` too.
    pub given_up: Vec<Input>,
    /// Names without rows that the next version has others of.
    pub names: Vec<Name>,
    /// Paths that others took the place of.
    pub forgotten: Vec<String>,
    /// Inputs of `unchanged` of which the next version says something else than this one. Where that is only the fingerprint
    /// it is said with the next commit, whatever that is for: the hash has told that nothing changed.
    pub restated: Vec<Input>,
    /// Whether `names` says more than fingerprints.
    renames: bool,
}

/// How a file has grown since a table held this of it, if it has and only that.
pub type GrowthOf<'a> = dyn Fn(&InputFile, &Input) -> Result<Option<Growth>, SourceError> + 'a;

/// How a plan looks at inputs.
#[derive(Clone, Copy)]
pub struct Looking<'a> {
    /// Whether an input that is gone is to be taken out. Asked by path.
    pub without: &'a dyn Fn(&str) -> bool,
    /// Whether an input that was not seen before is wanted; one that is not stays unseen.
    pub wants: &'a dyn Fn(&InputFile) -> bool,
    /// Asked of larger files.
    pub growth: &'a GrowthOf<'a>,
    /// Whether all of them are to be read, into a table without rows.
    pub anew: bool,
}

impl Default for Looking<'_> {
    fn default() -> Self {
        Self { without: &|_| false, wants: &|_| true, growth: &|_, _| Ok(None), anew: false }
    }
}

impl std::fmt::Debug for Looking<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Looking").field("anew", &self.anew).finish_non_exhaustive()
    }
}

impl InputPlan {
    /// Compares `found` with the inputs of `version`. A hash is asked for only where path, size
    /// and fingerprint do not settle the matter.
    ///
    /// # Errors
    /// Those of `hash`.
    pub fn new(
        version: &Version,
        found: Vec<InputFile>,
        looking: Looking<'_>,
        mut hash: impl FnMut(&InputFile) -> Result<ContentHash, SourceError>,
    ) -> Result<Self, SourceError> {
        let mut plan = Self::default();
        let entries = compare(version, found, looking, &mut hash, &mut plan)?;
        let carriers = carriers(&entries);
        let carrier = |(at, entry): (usize, &Entry<'_>)| {
            let carrier = entry.content.and_then(|content| carriers.get(&content)).map(|(_, carrier)| *carrier);
            carrier.filter(|carrier| *carrier != at).map(|carrier| entries[carrier].path.clone().into_owned())
        };
        // For each that another has the content of, the path of that.
        let copies: Vec<Option<String>> = entries.iter().enumerate().map(carrier).collect();
        for (entry, of) in entries.into_iter().zip(copies) {
            match (&entry.file, of) {
                (Some(_), None) => plan.carry(entry, looking)?,
                (Some(_), Some(of)) => plan.copy(entry, of, looking),
                (None, of) => plan.miss(entry, of.is_none(), looking),
            }
        }
        plan.new.sort_by_key(|(sequence, _)| *sequence);
        Ok(plan)
    }

    /// An input whose rows the table shall hold.
    fn carry(&mut self, entry: Entry<'_>, looking: Looking<'_>) -> Result<(), SourceError> {
        let Entry { sequence, file: Some(file), held, content, renamed, .. } = entry else { return Ok(()) };
        match held {
            _ if looking.anew => self.new.push((sequence, file)),
            Some(held) if content == Some(held.hash) => {
                let looks_other = match file.is_young() {
                    true => !file.looks_as(&held.version),
                    false => file.version != held.version,
                };
                let mut now = Arc::clone(held);
                if looks_other || renamed.is_some() {
                    let stated = Arc::make_mut(&mut now);
                    stated.path.clone_from(&file.path);
                    if looks_other {
                        stated.version.clone_from(&file.version);
                    }
                    self.restated.push(stated.clone());
                }
                self.renamed.extend(renamed.map(|before| (before, file.path.clone())));
                self.unchanged.push((file, now));
            }
            Some(held) => {
                // What a repair or an older build left of an input in parts must be read as a whole.
                let may_have_grown = file.size > held.size && held.hash != ContentHash(0);
                let held = Input::clone(held);
                match if may_have_grown { (looking.growth)(&file, &held)? } else { None } {
                    Some(Growth { from, hash, .. }) => self.grown.push(Grown { file, held, from, hash: Some(hash) }),
                    None => self.changed.push((file, held)),
                }
            }
            None if entry.is_new => self.new.push((sequence, file)),
            None => self.resumed.push((sequence, file)),
        }
        Ok(())
    }

    /// A file that holds what another holds.
    fn copy(&mut self, entry: Entry<'_>, of: String, looking: Looking<'_>) {
        let Entry { sequence, file: Some(file), held, known, content: Some(hash), .. } = entry else { return };
        let before = known.filter(|known| known.path == file.path && !looking.anew);
        let before = before.and_then(|known| known.content.as_ref()).filter(|content| content.hash == hash);
        let is_told = |content: &Content| match file.is_young() {
            true => file.looks_as(&content.version),
            false => content.version == file.version,
        };
        if !before.is_some_and(is_told) {
            let content = Content { size: file.size, version: file.version.clone(), hash };
            self.names.push(Name { sequence, path: file.path.clone(), content: Some(content) });
            self.renames |= before.is_none();
        }
        self.given_up.extend(held.filter(|_| !looking.anew).map(|held| Input::clone(held)));
        self.same.push((file, of));
    }

    /// A name that is gone; `is_own` if no file holds its content.
    fn miss(&mut self, entry: Entry<'_>, is_own: bool, looking: Looking<'_>) {
        let Entry { sequence, path, held, known, .. } = entry;
        let left_out = (looking.without)(&path);
        match (held, known) {
            (Some(held), _) if left_out || !is_own => {
                let Input { size, version, hash, .. } = Input::clone(held);
                let content = Some(Content { size, version, hash }).filter(|_| !left_out);
                self.put_name(Name { sequence, path: path.into_owned(), content });
                self.given_up.extend((!looking.anew).then(|| Input::clone(held)));
            }
            (Some(held), _) => self.vanished.push(Input::clone(held)),
            (None, Some(known)) if looking.anew || (left_out && known.content.is_some()) => {
                let content = known.content.clone().filter(|_| !left_out);
                self.put_name(Name { sequence, path: path.into_owned(), content });
            }
            (None, _) => {}
        }
    }

    fn put_name(&mut self, name: Name) {
        self.names.push(name);
        self.renames = true;
    }

    /// Takes those of `paths` that have grown for changed, so that the windows they touch are built anew.
    pub fn rebuild_grown(&mut self, paths: &[String]) {
        let is_asked = |grown: &mut Grown| paths.contains(&grown.file.path);
        self.changed.extend(self.grown.extract_if(.., is_asked).map(|grown| (grown.file, grown.held)));
    }

    /// Takes those of `paths` that are as they were, or have grown, for changed, so that the windows they touch are built
    /// anew.
    pub fn read_again(&mut self, paths: &[String]) {
        if paths.is_empty() {
            return;
        }
        self.rebuild_grown(paths);
        let (again, unchanged) =
            std::mem::take(&mut self.unchanged).into_iter().partition(|(file, _)| paths.contains(&file.path));
        self.unchanged = unchanged;
        let again: Vec<(InputFile, Arc<Input>)> = again;
        self.changed.extend(again.into_iter().map(|(file, held)| (file, Input::clone(&held))));
    }

    /// Whether the table holds everything already, and knows every name.
    pub fn is_empty(&self) -> bool {
        !self.changes_rows() && self.forgotten.is_empty() && !self.renames
    }

    /// Whether rows come or go.
    pub fn changes_rows(&self) -> bool {
        let brings = !self.new.is_empty() || !self.changed.is_empty() || !self.grown.is_empty();
        brings || !self.resumed.is_empty() || !self.given_up.is_empty()
    }
}

/// A name, and what there is of it.
struct Entry<'a> {
    sequence: u64,
    path: Cow<'a, str>,
    /// Not seen before.
    is_new: bool,
    /// What is there now; `None` if it is gone.
    file: Option<InputFile>,
    /// What the table holds of it.
    held: Option<&'a Arc<Input>>,
    /// What the version knows of it, if it has no rows.
    known: Option<&'a Name>,
    /// What it holds, or held before it was gone; `None` if that is like nothing else.
    content: Option<ContentHash>,
    /// The name it had.
    renamed: Option<String>,
}

impl<'a> Entry<'a> {
    fn of_input(input: &'a Arc<Input>) -> Self {
        Self { held: Some(input), ..Self::named(input.sequence, Cow::Borrowed(&input.path)) }
    }

    fn of_name(name: &'a Name) -> Self {
        Self { known: Some(name), ..Self::named(name.sequence, Cow::Borrowed(&name.path)) }
    }

    fn named(sequence: u64, path: Cow<'a, str>) -> Self {
        Self { sequence, path, is_new: false, file: None, held: None, known: None, content: None, renamed: None }
    }

    /// Size, fingerprint and hash of what it held when it was last seen. What a repair or an older build left of an input
    /// in parts is no content.
    fn before(&self) -> Option<(u64, &'a str, ContentHash)> {
        let of_input = self.held.map(|input| (input.size, input.version.as_str(), input.hash));
        let of_name = self.known.and_then(|name| name.content.as_ref());
        let of_name = of_name.map(|content| (content.size, content.version.as_str(), content.hash));
        of_input.or(of_name).filter(|(_, _, hash)| *hash != ContentHash(0))
    }
}

/// All names, those of the version first, with what they hold.
fn compare<'a>(
    version: &'a Version,
    found: Vec<InputFile>,
    looking: Looking<'_>,
    hash: &mut impl FnMut(&InputFile) -> Result<ContentHash, SourceError>,
    plan: &mut InputPlan,
) -> Result<Vec<Entry<'a>>, SourceError> {
    let inputs = version.inputs.shares_of().map(Entry::of_input);
    let mut entries: Vec<Entry<'a>> = inputs.chain(version.names.iter().map(Entry::of_name)).collect();
    let places: HashMap<&str, usize> = {
        let inputs = version.inputs.iter().map(|input| input.path.as_str());
        inputs.chain(version.names.iter().map(|name| name.path.as_str())).zip(0..).collect()
    };
    let mut fresh = Vec::new();
    // Known names whose content is another, and may be that of others.
    let mut open = Vec::new();
    for file in found {
        let Some(at) = places.get(file.path.as_str()) else {
            fresh.push(file);
            continue;
        };
        let entry = &mut entries[*at];
        entry.content = match entry.before() {
            Some((size, version, before)) if file.is_as(size, version) => Some(before),
            Some((size, ..)) if file.size == size => Some(hash(&file)?),
            _ => {
                open.push(*at);
                None
            }
        };
        entry.file = Some(file);
    }
    for entry in entries.iter_mut().filter(|entry| entry.file.is_none()) {
        entry.content = entry.before().map(|(_, _, hash)| hash);
    }
    if fresh.is_empty() && open.is_empty() {
        return Ok(entries);
    }
    let sizes = Sizes::new(&entries, &open, &fresh, looking);
    for at in open {
        let entry = &mut entries[at];
        if let Some(file) = entry.file.as_ref().filter(|file| sizes.has_others(file.size)) {
            entry.content = Some(hash(file)?);
        }
    }
    let mut gone = Gone::new(&entries);
    let mut next = version.next_sequence();
    for file in fresh {
        let is_wanted = (looking.wants)(&file);
        let is_alike = if is_wanted { sizes.has_others(file.size) } else { sizes.is_of_gone(file.size) };
        let content = if is_alike { Some(hash(&file)?) } else { None };
        if let Some(at) = content.and_then(|content| gone.take(content)) {
            let entry = &mut entries[at];
            let before = std::mem::replace(&mut entry.path, Cow::Owned(file.path.clone())).into_owned();
            plan.forgotten.push(before.clone());
            entry.renamed = Some(before);
            entry.file = Some(file);
        } else if is_wanted {
            let entry = Entry { is_new: true, content, ..Entry::named(next, Cow::Owned(file.path.clone())) };
            entries.push(Entry { file: Some(file), ..entry });
            next += 1;
        }
    }
    Ok(entries)
}

/// For each content that is there the least sequence of the files that hold it, and which entry that is of.
fn carriers(entries: &[Entry<'_>]) -> HashMap<ContentHash, (u64, usize)> {
    let mut carriers: HashMap<ContentHash, (u64, usize)> = HashMap::with_capacity(entries.len());
    for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.file.is_some()) {
        let Some(content) = entry.content else { continue };
        let own = (entry.sequence, at);
        carriers.entry(content).and_modify(|least| *least = own.min(*least)).or_insert(own);
    }
    carriers
}

/// Which sizes files share: only those can hold the same.
struct Sizes {
    counts: HashMap<u64, usize>,
    gone: HashSet<u64>,
}

impl Sizes {
    fn new(entries: &[Entry<'_>], open: &[usize], fresh: &[InputFile], looking: Looking<'_>) -> Self {
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
        for file in open.chain(fresh.iter().filter(|file| (looking.wants)(file))) {
            *sizes.counts.entry(file.size).or_default() += 1;
        }
        sizes
    }

    /// Of the size of a file that is counted itself.
    fn has_others(&self, size: u64) -> bool {
        self.counts.get(&size).is_some_and(|count| *count > 1)
    }

    fn is_of_gone(&self, size: u64) -> bool {
        self.gone.contains(&size)
    }
}

/// Names that are gone, by what they held, the latest first.
struct Gone(HashMap<ContentHash, Vec<(u64, usize)>>);

impl Gone {
    fn new(entries: &[Entry<'_>]) -> Self {
        let mut gone: HashMap<ContentHash, Vec<(u64, usize)>> = HashMap::new();
        for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.file.is_none()) {
            if let Some(content) = entry.content {
                gone.entry(content).or_default().push((entry.sequence, at));
            }
        }
        gone.values_mut().for_each(|places| places.sort_unstable_by(|a, b| b.cmp(a)));
        Self(gone)
    }

    /// The one of this content that was seen first, which is gone no more.
    fn take(&mut self, content: ContentHash) -> Option<usize> {
        self.0.get_mut(&content)?.pop().map(|(_, at)| at)
    }
}
