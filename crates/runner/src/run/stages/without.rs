//! Checks of `--without`: each name or pattern must be, or match, an input that a table of the job has or had.

use std::collections::BTreeSet;

use tidetable_job::Job;
use tidetable_store::{Store, StoreError, Version};

use crate::fault::error::RunError;
use crate::options::without::Without;

/// Most names that a message suggests.
const SUGGESTED: usize = 3;

/// Checks that each of `without` names an input of a table of `job`, present, missing or removed before, or is a pattern of
/// some: `known`.
///
/// # Errors
/// [`RunError::UnknownInput`] for the first that does not, with the most similar names; those in `gone`, the missing
/// inputs, come first.
pub(crate) fn check_without(
    job: &str,
    without: &[String],
    known: &BTreeSet<String>,
    gone: BTreeSet<&str>,
) -> Result<(), RunError> {
    let names = known.iter().map(String::as_str).collect();
    let Some(path) = Without::new(without).idle(&names).next() else { return Ok(()) };
    let candidates = if gone.is_empty() { names } else { gone };
    let (path, who, near) = (path.clone(), format!("job {job} has"), nearest(path, candidates));
    Err(RunError::UnknownInput { path, who, near })
}

/// Checks that each of `without` is in `names`, the inputs of all jobs of a project, or a pattern of some.
///
/// # Errors
/// [`RunError::UnknownInput`] for the first that is not.
pub fn check_without_of_all(names: &BTreeSet<String>, without: &[String]) -> Result<(), RunError> {
    let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let Some(path) = Without::new(without).idle(&names).next() else { return Ok(()) };
    let near = nearest(path, names);
    Err(RunError::UnknownInput { path: path.clone(), who: "the jobs of the project have".to_owned(), near })
}

/// Those of `without` that are or match one of `names`, the inputs of a job.
pub fn without_of_job(without: &[String], names: &BTreeSet<String>) -> Vec<String> {
    let names = names.iter().map(String::as_str).collect();
    let idle: Vec<String> = Without::new(without).idle(&names).cloned().collect();
    without.iter().filter(|given| !idle.contains(given)).cloned().collect()
}

/// The names of all inputs that tables of `job` have or had.
///
/// # Errors
/// If a table cannot be read.
pub fn input_names(store: &Store, job: &Job) -> Result<BTreeSet<String>, StoreError> {
    let mut names = BTreeSet::new();
    for table in &job.tables {
        if let Some(version) = store.table(&table.spec.name).latest()? {
            add_names(&version, &mut names);
        }
    }
    Ok(names)
}

/// Adds the names of the inputs that `version` has or had.
pub(crate) fn add_names(version: &Version, names: &mut BTreeSet<String>) {
    names.extend(version.inputs.iter().map(|input| input.path.clone()));
    names.extend(version.names.iter().map(|name| name.path.clone()));
}

/// Those of `candidates` that are most like `wanted`: the same file elsewhere, then by edit distance.
fn nearest(wanted: &str, candidates: BTreeSet<&str>) -> Vec<String> {
    let ranked = candidates.into_iter().map(|path| {
        let is_other_file = file_name(path) != file_name(wanted);
        (is_other_file, strsim::damerau_levenshtein(wanted, path), path)
    });
    let mut ranked: Vec<(bool, usize, &str)> = ranked.collect();
    ranked.sort_unstable();
    ranked.into_iter().take(SUGGESTED).map(|(_, _, path)| path.to_owned()).collect()
}

/// The name of a file without its folders.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_file_elsewhere_is_suggested_first() {
        let known = BTreeSet::from(["in/2020-01-01.csv", "in/2020-01-02.csv", "in/old.csv", "late/2020-01-03.csv"]);
        assert_eq!(nearest("old.csv", known.clone())[0], "in/old.csv");
        assert_eq!(nearest("in/2020-01-2.csv", known.clone())[0], "in/2020-01-02.csv");
        assert_eq!(nearest("x", known).len(), SUGGESTED);
        assert!(nearest("x", BTreeSet::new()).is_empty());
    }
}
