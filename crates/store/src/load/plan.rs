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
        let mut fresh = Vec::new();
        let mut known: HashMap<u64, Vec<Known>> = HashMap::new();
        let held = |input: &Input| Known { path: input.path.clone(), hash: Some(input.hash), file: None };
        for file in found {
            match live.get(file.path.as_str()) {
                None => fresh.push(file),
                Some(input) if is_unchanged(&file, input, &mut hash)? => {
                    known.entry(input.size).or_default().push(held(input));
                    plan.unchanged.push((file, (*input).clone()));
                }
                Some(input) => {
                    // What it held is content no more; what it holds now is.
                    known.entry(file.size).or_default().push(Known::of(&file));
                    plan.changed.push((file, (*input).clone()));
                }
            }
        }
        for input in version.inputs.iter().filter(|input| !paths.contains(&input.path)) {
            known.entry(input.size).or_default().push(held(input));
            plan.vanished.push(input.clone());
        }
        for file in fresh {
            let alike = known.entry(file.size).or_default();
            plan.place_new(file, alike, &mut hash)?;
        }
        Ok(plan)
    }

    /// A path not seen before: new, unless one of `alike`, of the same size, has its content.
    fn place_new(
        &mut self,
        file: InputFile,
        alike: &mut Vec<Known>,
        hash: &mut impl FnMut(&InputFile) -> Result<ContentHash, SourceError>,
    ) -> Result<(), SourceError> {
        let own = if alike.is_empty() { None } else { Some(hash(&file)?) };
        for other in alike.iter_mut() {
            if other.hash.is_none() {
                other.hash = other.file.as_ref().map(&mut *hash).transpose()?;
            }
            if other.hash == own {
                self.same.push((file, other.path.clone()));
                return Ok(());
            }
        }
        alike.push(Known { hash: own, ..Known::of(&file) });
        self.new.push(file);
        Ok(())
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
        self.new.is_empty() && self.changed.is_empty() && self.grown.is_empty()
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

/// Content that is held, or about to be loaded.
struct Known {
    path: String,
    /// `None` until it matters.
    hash: Option<ContentHash>,
    /// The file to ask for it.
    file: Option<InputFile>,
}

impl Known {
    fn of(file: &InputFile) -> Self {
        Self { path: file.path.clone(), hash: None, file: Some(file.clone()) }
    }
}
