//! Model of the names of inputs: what a table must hold of a directory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use tidetable_source::ContentHash;
use tidetable_store::GcRule;
use tidetable_store::version::DeleteTarget;

use super::Folder;
use crate::cells::{Cells, hides};
use crate::event::{DAY, Event, START};
use crate::model::{key, put, shown};

#[derive(Debug, Clone)]
struct Known {
    sequence: u64,
    /// Its content when last seen; `None` once it was removed.
    content: Option<ContentHash>,
    /// The content whose rows the table holds under this name.
    rows: Option<ContentHash>,
    /// The windows of their cells when they were read.
    windows: BTreeSet<i64>,
}

/// All names seen, and the deletes: what a table must remember of a directory.
#[derive(Debug, Clone)]
pub struct Names {
    known: BTreeMap<String, Known>,
    /// Deletes, each with the next sequence number at that time.
    drops: Vec<(u64, DeleteTarget)>,
    rule: Option<GcRule>,
    dated: bool,
    shown: Cells,
    /// Logical time of the last commit, microseconds since the epoch.
    pub now: i64,
}

/// Effects of a run, which decide how it meets a delete that is committed at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ran {
    /// Whether windows are rebuilt, and so known inputs read again.
    pub builds_anew: bool,
    /// Whether known names brought more rows, which are appended.
    pub appends: bool,
    /// Whether unseen names were loaded, to which earlier deletes do not apply.
    pub has_new: bool,
}

impl Names {
    /// The model of an empty table, with dated keys or not, and with this rule for all families.
    pub fn new(dated: bool, rule: Option<GcRule>) -> Self {
        Self { known: BTreeMap::new(), drops: Vec::new(), rule, dated, shown: Cells::new(), now: START + DAY }
    }

    /// The cells that a read shows after the last [`Self::show`].
    pub fn cells(&self) -> &Cells {
        &self.shown
    }

    /// The content of a name when last seen; `None` if the name is unknown or was removed.
    pub fn content(&self, name: &str) -> Option<ContentHash> {
        self.known.get(name).and_then(|known| known.content)
    }

    fn next_sequence(&self) -> u64 {
        let names = self.known.values().map(|known| known.sequence + 1);
        names.chain(self.drops.iter().map(|(sequence, _)| *sequence)).fold(1, u64::max)
    }

    /// Whether a file of `folder` has grown since the table loaded it.
    pub fn has_grown(&self, folder: &Folder) -> bool {
        let known = self.named(folder);
        folder.files().any(|(name, content)| {
            let held = known.get(name).and_then(|known| known.rows).filter(|held| *held != content);
            held.is_some_and(|held| folder.rows(content).starts_with(folder.rows(held)))
        })
    }

    /// A run over `folder`, which removes vanished names of `without` and appends the new rows of `grown`.
    ///
    /// # Errors
    /// The vanished names that would have to be read; then nothing has changed.
    pub fn run(&mut self, folder: &Folder, without: &[String], grown: &[String]) -> Result<Ran, Vec<String>> {
        let before = self.known.clone();
        let next = self.next_sequence();
        let mut known = self.named(folder);
        let there: BTreeMap<&str, ContentHash> = folder.files().collect();
        for (name, known) in &mut known {
            match there.get(name.as_str()) {
                Some(content) => known.content = Some(*content),
                None if without.contains(name) => (known.content, known.rows) = (None, None),
                None => {}
            }
        }
        carry(&mut known, &there);

        let grown: Vec<u64> = grown.iter().filter_map(|name| known.get(name)).map(|known| known.sequence).collect();
        let mut changed: Vec<u64> = known.values().chain(before.values()).map(|known| known.sequence).collect();
        changed.retain(|sequence| *sequence < next && !grown.contains(sequence));
        changed.retain(|sequence| rows_of(&known, *sequence) != rows_of(&before, *sequence));
        let mut rebuilt: BTreeSet<i64> = BTreeSet::new();
        for known in before.values().filter(|known| changed.contains(&known.sequence)) {
            rebuilt.extend(&known.windows);
        }
        for known in known.values_mut() {
            let was = before.values().find(|before| before.sequence == known.sequence);
            if was.and_then(|was| was.rows) != known.rows {
                let now = match known.rows {
                    Some(rows) => self.windows(folder.rows(rows), known.sequence),
                    None => BTreeSet::new(),
                };
                if grown.contains(&known.sequence) {
                    known.windows.extend(now);
                    continue;
                }
                known.windows = now;
                if known.sequence < next {
                    rebuilt.extend(&known.windows);
                }
            }
        }

        let gone = blocking(&known, &there, rebuilt.clone());
        if !gone.is_empty() {
            return Err(gone);
        }

        let has_new = known.values().any(|known| known.sequence >= next);
        self.known = known;
        self.show(folder);
        Ok(Ran { builds_anew: !rebuilt.is_empty(), appends: !grown.is_empty(), has_new })
    }

    /// As [`Self::run`], with a rebuild of the whole table.
    ///
    /// # Errors
    /// The vanished names with rows that no other file holds.
    pub fn rebuild(&mut self, folder: &Folder, without: &[String]) -> Result<Ran, Vec<String>> {
        let mut tried = self.clone();
        // All windows are rebuilt, so recorded windows cannot block the run.
        tried.known.values_mut().for_each(|known| known.windows.clear());
        let ran = tried.run(folder, without, &[]).map_err(|_| Vec::new())?;
        let there: BTreeSet<&str> = folder.files().map(|(name, _)| name).collect();
        let gone = tried.known.iter().filter(|(name, known)| known.rows.is_some() && !there.contains(name.as_str()));
        let mut gone: Vec<(u64, String)> = gone.map(|(name, known)| (known.sequence, name.clone())).collect();
        gone.sort();
        if !gone.is_empty() {
            return Err(gone.into_iter().map(|(_, name)| name).collect());
        }
        for known in tried.known.values_mut() {
            let windows = known.rows.map(|rows| self.windows(folder.rows(rows), known.sequence));
            known.windows = windows.unwrap_or_default();
        }
        *self = tried;
        Ok(Ran { builds_anew: true, ..ran })
    }

    /// The resulting names: a new one replaces a vanished one with the same content, or with rows that it begins with, or
    /// comes last.
    fn named(&self, folder: &Folder) -> BTreeMap<String, Known> {
        let mut known = self.known.clone();
        let mut next = self.next_sequence();
        let new: Vec<(&str, ContentHash)> =
            folder.files().filter(|(name, _)| !self.known.contains_key(*name)).collect();
        let mut unnamed = Vec::new();
        for (name, content) in new {
            let gone = known.iter().filter(|(other, known)| known.content == Some(content) && !folder.has(other));
            let first = gone.min_by_key(|(_, known)| known.sequence).map(|(other, _)| other.clone());
            match first.and_then(|other| known.remove(&other)) {
                Some(taken) => drop(known.insert(name.to_owned(), taken)),
                None => unnamed.push((name, content)),
            }
        }

        for (name, content) in unnamed {
            let is_copy = folder.files().any(|(other, same)| same == content && known.contains_key(other));
            let mut outgrown: Vec<(usize, Reverse<u64>, &String)> = Vec::new();
            for (other, known) in known.iter().filter(|(other, _)| !is_copy && !folder.has(other)) {
                let held = known.outgrown_by(folder.rows(content), folder);
                outgrown.extend(held.map(|held| (held, Reverse(known.sequence), other)));
            }
            let longest = outgrown.into_iter().max().map(|(.., other)| other.clone());
            let own = longest.and_then(|other| known.remove(&other));
            let own = own.unwrap_or_else(|| {
                next += 1;
                Known { sequence: next - 1, content: None, rows: None, windows: BTreeSet::new() }
            });
            known.insert(name.to_owned(), own);
        }
        known
    }

    /// Windows in which an input of this sequence number has cells.
    fn windows(&self, rows: &[Event], sequence: u64) -> BTreeSet<i64> {
        let mut windows = BTreeSet::new();
        for event in rows {
            let cell = (key(self.dated, event), String::new(), String::new(), Reverse(0));
            let mut drops = self.drops.iter().filter(|(before, target)| sequence < *before && target.takes_rows());
            if !drops.any(|(_, target)| hides(target, &cell)) {
                windows.insert(event.time.div_euclid(DAY));
            }
        }
        windows
    }

    /// Deletes a target, for all names so far: those seen later keep their cells.
    pub fn delete(&mut self, target: DeleteTarget) {
        self.shown.clear();
        self.drops.push((self.next_sequence(), target));
    }

    /// Computes the cells that a read shows, from the rows of all names in the order of their numbers.
    pub fn show(&mut self, folder: &Folder) {
        let mut stored = Cells::new();
        let mut names: Vec<&Known> = self.known.values().filter(|known| known.rows.is_some()).collect();
        names.sort_by_key(|known| known.sequence);
        for known in names {
            let rows = known.rows.map_or(&[][..], |rows| folder.rows(rows));
            put(&mut stored, self.dated, rows, |cell| {
                let mut drops = self.drops.iter().filter(|(before, _)| known.sequence < *before);
                drops.any(|(_, target)| hides(target, cell))
            });
        }
        self.shown = shown(&stored, self.rule.as_ref(), self.now);
    }
}

impl Known {
    /// The number of its rows, if no file of `folder` has just these and `rows` begin with them.
    fn outgrown_by(&self, rows: &[Event], folder: &Folder) -> Option<usize> {
        let held = self.rows.filter(|held| folder.files().all(|(_, content)| content != *held))?;
        let held = Some(folder.rows(held)).filter(|held| !held.is_empty())?;
        rows.starts_with(held).then_some(held.len())
    }
}

/// The content whose rows are held under a sequence number.
fn rows_of(known: &BTreeMap<String, Known>, sequence: u64) -> Option<ContentHash> {
    known.values().find(|known| known.sequence == sequence).and_then(|known| known.rows)
}

/// Selects the name that brings the rows of each content: the present one seen first.
fn carry(known: &mut BTreeMap<String, Known>, there: &BTreeMap<&str, ContentHash>) {
    let mut first: BTreeMap<ContentHash, u64> = BTreeMap::new();
    for (name, content) in there {
        if let Some(known) = known.get(*name) {
            let least = first.entry(*content).or_insert(known.sequence);
            *least = known.sequence.min(*least);
        }
    }
    for (name, known) in known {
        match (there.get(name.as_str()), known.content.and_then(|content| first.get(&content))) {
            (Some(content), least) => known.rows = (least == Some(&known.sequence)).then_some(*content),
            // Vanished, and its content is present under another name.
            (None, Some(_)) => known.rows = None,
            (None, None) => {}
        }
    }
}

/// The vanished names with rows in rebuilt windows, then those in the windows of these, and so on.
fn blocking(
    known: &BTreeMap<String, Known>,
    there: &BTreeMap<&str, ContentHash>,
    mut anew: BTreeSet<i64>,
) -> Vec<String> {
    let mut gone: BTreeMap<u64, String> = BTreeMap::new();
    loop {
        let before = gone.len();
        for (name, known) in
            known.iter().filter(|(name, known)| known.rows.is_some() && !there.contains_key(name.as_str()))
        {
            if !known.windows.is_disjoint(&anew) {
                anew.extend(&known.windows);
                gone.insert(known.sequence, name.clone());
            }
        }
        if gone.len() == before {
            return gone.into_values().collect();
        }
    }
}
