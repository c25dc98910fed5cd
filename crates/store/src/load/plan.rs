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
    /// Held as they are.
    pub unchanged: Vec<(InputFile, Input)>,
    /// Same content as another input, whose path comes second: not loaded again.
    pub same: Vec<(InputFile, String)>,
    /// Held, but no longer there. Their cells stay.
    pub vanished: Vec<Input>,
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
        let mut known: HashMap<u64, Vec<(Option<ContentHash>, usize, String)>> = HashMap::new();
        for input in &version.inputs {
            known.entry(input.size).or_default().push((Some(input.hash), usize::MAX, input.path.clone()));
        }
        for file in found {
            match live.get(file.path.as_str()) {
                Some(input) if input.size == file.size && input.version == file.version => {
                    plan.unchanged.push((file, (*input).clone()));
                }
                Some(input) => {
                    if input.size == file.size && hash(&file)? == input.hash {
                        plan.unchanged.push((file, (*input).clone()));
                    } else {
                        plan.changed.push((file, (*input).clone()));
                    }
                }
                None => plan.place_new(file, &mut known, &mut hash)?,
            }
        }
        plan.vanished = version.inputs.iter().filter(|input| !paths.contains(&input.path)).cloned().collect();
        Ok(plan)
    }

    /// A path not seen before: new, unless its content is already held under another path.
    fn place_new(
        &mut self,
        file: InputFile,
        known: &mut HashMap<u64, Vec<(Option<ContentHash>, usize, String)>>,
        hash: &mut impl FnMut(&InputFile) -> Result<ContentHash, SourceError>,
    ) -> Result<(), SourceError> {
        let alike = known.entry(file.size).or_default();
        let mut own = None;
        if !alike.is_empty() {
            let content = hash(&file)?;
            own = Some(content);
            for (other, at, path) in alike.iter_mut() {
                let other = match (*other, self.new.get(*at)) {
                    (Some(other), _) => other,
                    (None, Some(earlier)) => *other.insert(hash(earlier)?),
                    (None, None) => continue,
                };
                if other == content {
                    self.same.push((file, path.clone()));
                    return Ok(());
                }
            }
        }
        alike.push((own, self.new.len(), file.path.clone()));
        self.new.push(file);
        Ok(())
    }

    /// Whether the table holds everything already.
    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.changed.is_empty()
    }
}
