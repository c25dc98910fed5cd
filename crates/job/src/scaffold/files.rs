//! The files that a job is proposed for.

use tidetable_source::sample::Sample;
use tidetable_source::{Foreign, Format, InputFile, SourceError, SourceSpec, Storage, Unread, is_url};

use crate::project::Project;
use crate::scaffold::error::ProposeError;

/// Letters by which a path is taken as a pattern.
const WILDCARDS: [char; 4] = ['*', '?', '[', '{'];
/// Most files that a job lists one by one.
const LISTED: usize = 50;

/// The files of a job that is proposed.
pub(crate) struct ProposedFiles {
    /// As `files` of the job has them.
    pub patterns: Vec<String>,
    pub files: Vec<InputFile>,
    /// Names that the patterns reach and that are not read.
    pub unread: Vec<Unread>,
}

impl ProposedFiles {
    /// Finds what `given` names: files, directories, or patterns.
    pub fn find(project: &Project, storage: &Storage, job: &str, given: &[String]) -> Result<Self, ProposeError> {
        let is_single = given.len() == 1;
        let mut proposed = Self { patterns: Vec::new(), files: Vec::new(), unread: Vec::new() };
        for name in given {
            let path = project.given(name);
            let literal = as_pattern(&path);
            let is_pattern = name.contains(WILDCARDS);
            let is_folder = !is_url(name) && name.ends_with('/') || is_directory(project, &path);
            if !is_pattern && !is_folder && !is_url(name) && !has_known_ending(name) {
                return Err(ProposeError::Ending { path: name.clone() });
            }

            let mut found = find(storage, job, &literal);
            let mut pattern = literal;
            // A file may have such letters in its name: then it is that file.
            if is_pattern && matches!(found, Err(SourceError::NoMatch { .. })) {
                pattern = path;
                found = find(storage, job, &pattern);
            }
            // Beside data, `.json` is mostly no data; a folder of nothing else holds data.
            if is_folder && matches!(found, Err(SourceError::NoMatch { .. })) {
                let below = format!("{}/*.json", pattern.trim_end_matches('/'));
                if let Ok(all) = find(storage, job, &below) {
                    (pattern, found) = (below, Ok(all));
                }
            }
            let (files, unread) = found.map_err(|error| match error {
                SourceError::NoMatch { notes, .. } if is_pattern || is_folder || !notes.is_empty() => {
                    ProposeError::NoMatch { path: name.clone(), notes }
                }
                SourceError::NoMatch { .. } => ProposeError::NoFile { path: name.clone() },
                other => ProposeError::Sample(other.into()),
            })?;
            proposed.patterns.push(pattern);
            proposed.unread.extend(unread);
            let known: Vec<String> = proposed.files.iter().map(|file| file.path.clone()).collect();
            proposed.files.extend(files.into_iter().filter(|file| !known.contains(&file.path)));
        }
        if !is_single {
            proposed.join(storage, job);
        }
        Ok(proposed)
    }

    /// Writes one pattern for files of one directory, if it matches no others: a shell expands `in/*.csv` to a list.
    fn join(&mut self, storage: &Storage, job: &str) {
        let Some(first) = self.patterns.first() else { return };
        let Some((folder, name)) = first.rsplit_once('/') else { return };
        let Some((_, ending)) = name.rsplit_once('.') else { return };
        let pattern = format!("{folder}/*.{ending}");
        let Ok((files, _)) = find(storage, job, &pattern) else { return };
        let given: Vec<&str> = self.files.iter().map(|file| file.path.as_str()).collect();
        if files.len() == given.len() && files.iter().all(|file| given.contains(&file.path.as_str())) {
            self.patterns = vec![pattern];
        }
    }
}

/// Replaces patterns by a list of files, if some of those that they match are not like the others.
pub(crate) fn leave_out_unlike(patterns: &mut Vec<String>, files: &[InputFile], sample: &Sample) {
    let unlike: Vec<&str> = sample.files.unlike.iter().map(|unlike| unlike.path.as_str()).collect();
    let mut kept = Vec::new();
    for file in files.iter().filter(|file| !unlike.contains(&file.path.as_str())) {
        kept.push(as_pattern(&file.path));
    }

    if sample.files.looked_at_all && kept.len() < files.len() && kept.len() <= LISTED {
        *patterns = kept;
    }
}

/// Whether `given` names data, and not a job: a file with an ending of data, a directory without a job file, or a pattern.
pub fn is_data(project: &Project, given: &[String]) -> bool {
    given.len() > 1 || given.iter().all(|name| names_data(project, name))
}

fn names_data(project: &Project, name: &str) -> bool {
    let path = project.given(name);
    let is_folder =
        is_directory(project, &path) && !std::path::Path::new(&project.resolve(&path)).join("job.toml").exists();
    let has_slash = name.contains('/') || matches!(name, "." | "..");
    has_known_ending(name)
        || name.contains(WILDCARDS)
        || is_folder && (has_slash || !project.jobs().iter().any(|job| job == name))
}

fn is_directory(project: &Project, path: &str) -> bool {
    !is_url(path) && std::path::Path::new(&project.resolve(path)).is_dir()
}

fn has_known_ending(name: &str) -> bool {
    Format::of_name(name).is_some() || Foreign::has_ending(name)
}

fn find(storage: &Storage, job: &str, pattern: &str) -> Result<(Vec<InputFile>, Vec<Unread>), SourceError> {
    let asked = SourceSpec { name: job.to_owned(), files: vec![pattern.to_owned()], ..SourceSpec::default() };
    let mut found = storage.find(&asked)?;
    found.keep_work_files(|_| false);
    match found.files.is_empty() {
        true => Err(storage.no_match(&asked, pattern.to_owned(), &found.unread)),
        false => Ok((found.files, found.unread)),
    }
}

/// A path as a glob that matches itself: special characters in brackets.
pub fn as_pattern(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for letter in path.chars() {
        match letter {
            '*' | '?' | '[' | ']' | '{' | '}' => pattern.extend(['[', letter, ']']),
            _ => pattern.push(letter),
        }
    }
    pattern
}
