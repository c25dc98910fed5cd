//! What a load has to do about each input. Pure, but for the hashes it asks for.

use std::collections::{HashMap, HashSet};

use tidetable_source::{ContentHash, InputFile, SourceError};

use crate::version::{Input, Version};

/// The inputs of a source compared with those a table holds.
#[derive(Debug, Default)]
pub struct InputPlan {
    /// Not in the table yet, in the order of the source.
    pub new: Vec<InputFile>,
    /// Same path, other content: what is there now, and what the table holds.
    pub changed: Vec<(InputFile, Input)>,
    /// As `changed`, but what the table holds of it may stay beside what is there now: for the caller to
    /// say, since a comparison of contents cannot know.
    pub grown: Vec<(InputFile, Input)>,
    /// Held as they are.
    pub unchanged: Vec<(InputFile, Input)>,
    /// Same content as another input, whose path comes second: not loaded again.
    pub same: Vec<(InputFile, String)>,
    /// Held, but no longer there. Their cells stay.
    pub vanished: Vec<Input>,
    /// Held, and to be taken out: the windows they touched are built anew without them. Among them are inputs that
    /// changed into copies of others, which are in `same` too.
    pub given_up: Vec<Input>,
    /// Sequences that new inputs had in a version that is built anew, by path: they keep them, so that
    /// drops hold for those they held for.
    pub sequences: HashMap<String, u64>,
}

impl InputPlan {
    /// Compares `found` with the live inputs of `version`. A hash is asked for only where path, size
    /// and modification do not settle the matter.
    ///
    /// # Errors
    /// Those of `hash`.
    pub fn new(
        version: &Version,
        found: Vec<InputFile>,
        mut hash: impl FnMut(&InputFile) -> Result<ContentHash, SourceError>,
    ) -> Result<Self, SourceError> {
        let mut plan = Self::default();
        let paths: HashSet<String> = found.iter().map(|file| file.path.clone()).collect();
        let live: HashMap<&str, &Input> = version.inputs.iter().map(|input| (input.path.as_str(), input)).collect();
        let (mut changed, mut fresh) = (Vec::new(), Vec::new());
        let mut known: HashMap<u64, Vec<Known>> = HashMap::new();
        let held = |input: &Input| Known { path: input.path.clone(), hash: Some(input.hash), file: None };
        for file in found {
            match live.get(file.path.as_str()) {
                None => fresh.push(file),
                Some(input) if is_unchanged(&file, input, &mut hash)? => {
                    known.entry(input.size).or_default().push(held(input));
                    plan.unchanged.push((file, (*input).clone()));
                }
                // What it held is content no more; what it holds now is.
                Some(input) => changed.push((file, (*input).clone())),
            }
        }
        for input in version.inputs.iter().filter(|input| !paths.contains(&input.path)) {
            known.entry(input.size).or_default().push(held(input));
            plan.vanished.push(input.clone());
        }
        for (file, input) in changed {
            let alike = known.entry(file.size).or_default();
            match copied(&file, alike, &mut hash)? {
                Some(other) => {
                    plan.same.push((file, other));
                    plan.given_up.push(input);
                }
                None => plan.changed.push((file, input)),
            }
        }
        for file in fresh {
            let alike = known.entry(file.size).or_default();
            match copied(&file, alike, &mut hash)? {
                Some(other) => plan.same.push((file, other)),
                None => plan.new.push(file),
            }
        }
        Ok(plan)
    }

    /// Puts new inputs, of a table that is built anew, in the order they had in `latest`, and gives them the
    /// sequences they had.
    pub fn order_as_in(&mut self, latest: &Version) {
        let mut sequences: HashMap<String, u64> =
            latest.inputs.iter().map(|input| (input.path.clone(), input.sequence)).collect();
        // Content that was first seen under another name was seen then.
        for (file, first) in &self.same {
            if let Some(seen) = sequences.get(&file.path).copied() {
                sequences.entry(first.clone()).or_insert(seen);
            }
        }
        self.new.sort_by_key(|file| sequences.get(&file.path).copied().unwrap_or(u64::MAX));
        sequences.retain(|path, _| self.new.iter().any(|file| file.path == *path));
        self.sequences = sequences;
    }

    /// Takes those of `paths` that are as they were for changed, so that the windows they touch are built anew.
    pub fn read_again(&mut self, paths: &[String]) {
        let (again, unchanged) =
            std::mem::take(&mut self.unchanged).into_iter().partition(|(file, _)| paths.contains(&file.path));
        self.unchanged = unchanged;
        self.changed.extend::<Vec<_>>(again);
    }

    /// The new inputs, each with its sequence: the one it had, or the next from `next` on.
    pub(super) fn new_in_sequence(&self, next: u64) -> impl Iterator<Item = (u64, &InputFile)> {
        let mut next = self.sequences.values().map(|sequence| sequence + 1).fold(next, u64::max);
        self.new.iter().map(move |file| {
            let sequence = self.sequences.get(&file.path).copied().unwrap_or(next);
            next += u64::from(sequence == next);
            (sequence, file)
        })
    }

    /// Whether the table holds everything already.
    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.changed.is_empty() && self.grown.is_empty() && self.given_up.is_empty()
    }
}

/// Whether a file holds what the table has of it. Hashes it only if size and modification do not tell.
fn is_unchanged(
    file: &InputFile,
    input: &Input,
    hash: &mut impl FnMut(&InputFile) -> Result<ContentHash, SourceError>,
) -> Result<bool, SourceError> {
    if file.size != input.size {
        return Ok(false);
    }
    Ok(file.version == input.version || hash(file)? == input.hash)
}

/// The path of the one of `alike`, all of the size of `file`, that has its content. If none has, it joins them.
fn copied(
    file: &InputFile,
    alike: &mut Vec<Known>,
    hash: &mut impl FnMut(&InputFile) -> Result<ContentHash, SourceError>,
) -> Result<Option<String>, SourceError> {
    let own = if alike.is_empty() { None } else { Some(hash(file)?) };
    for other in alike.iter_mut() {
        if other.hash.is_none() {
            other.hash = other.file.as_ref().map(&mut *hash).transpose()?;
        }
        if other.hash == own {
            return Ok(Some(other.path.clone()));
        }
    }
    alike.push(Known { path: file.path.clone(), hash: own, file: Some(file.clone()) });
    Ok(None)
}

/// Content that is held, or about to be loaded.
struct Known {
    path: String,
    /// `None` until it matters.
    hash: Option<ContentHash>,
    /// The file to ask for it.
    file: Option<InputFile>,
}
