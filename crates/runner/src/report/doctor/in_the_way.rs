//! Finds files in places where the store needs directories, so that nothing can be written there.

use std::fs;

use chrono::NaiveDate;
use tidetable_blobs::Blobs;
use tidetable_job::{Job, Project, may_be_folder_of};
use tidetable_store::published::Published;

use super::{Diagnosis, FindingKind, Remedy};
use crate::fault::error::RunError;

/// Directories of a store.
const FOLDERS: [&str; 8] = ["exports", "failing", "failures", "locks", "rejected", "runs", "seen", "tables"];

impl Diagnosis {
    /// Finds files in place of the directories of the store, of its tables, and of parts of exports, both listed ones
    /// and those that exports of the project can have.
    pub(crate) fn in_the_way(&mut self, blobs: &dyn Blobs, project: Option<&Project>) -> Result<(), RunError> {
        let jobs = project.map(readable_jobs).unwrap_or_default();

        for folder in FOLDERS.iter().filter(|folder| is_file(blobs, folder)) {
            let costs = "nothing can be read from it or written into it".to_owned();
            self.found_file((*folder).to_owned(), costs, Remedy::Person("move it away".to_owned()));
        }
        for job in &jobs {
            self.files_of_job(blobs, job);
        }

        if blobs.directory().is_none() {
            return Ok(());
        }
        // If `exports` is a file, it was found above.
        let (lists, _) = Published::readable(blobs)?;
        self.export_files(blobs, &Expected::of(&jobs, &lists), None)
    }

    /// Finds files in place of the directories of the tables of a job, and of the logs of its exports.
    fn files_of_job(&mut self, blobs: &dyn Blobs, job: &Job) {
        for table in &job.tables {
            let name = &table.spec.name;
            let path = format!("tables/{name}");
            if is_file(blobs, &path) {
                let remedy = format!("move it away; then `tidetable run {}` builds {name}", job.name);
                self.found_file(path, format!("{name} cannot be loaded"), Remedy::Person(remedy));
            }
        }

        for (export, place) in job.exports.iter().filter_map(|export| Some((&export.name, export.log_place()?))) {
            let path = place.log.path(place.folder);
            if is_file(blobs, &path) {
                let remedy = format!("moves it to quarantine; then `tidetable run {}` writes the log", job.name);
                let costs = format!("the {} of {export} cannot be written", place.log.noun());
                self.found_file(path, costs, Remedy::Fix(remedy));
            }
        }
    }

    /// Finds files in place of directories in `folder` of `exports`, and below it.
    fn export_files(
        &mut self,
        blobs: &dyn Blobs,
        expected: &Expected<'_>,
        folder: Option<&str>,
    ) -> Result<(), RunError> {
        let directory = folder.map_or_else(|| "exports".to_owned(), |folder| format!("exports/{folder}"));
        for name in blobs.list(&directory)? {
            let inside = folder.map_or_else(|| name.clone(), |folder| format!("{folder}/{name}"));
            let path = format!("exports/{inside}");

            if !is_file(blobs, &path) {
                if depth(&inside) < expected.deepest {
                    self.export_files(blobs, expected, Some(&inside))?;
                }
            } else if let Some((export, job)) = expected.folder(&inside) {
                let costs = format!("{export} cannot be published there");
                let remedy = format!("moves it to quarantine; then `tidetable run {job}` publishes what is missing");
                self.found_file(path, costs, Remedy::Fix(remedy));
            }
        }
        Ok(())
    }

    fn found_file(&mut self, path: String, costs: String, remedy: Remedy) {
        let damage = "it is a file, and a folder belongs there".to_owned();
        self.find(path, FindingKind::InTheWay, damage, costs, remedy);
    }
}

/// The jobs of a project whose job files can be read.
fn readable_jobs(project: &Project) -> Vec<Job> {
    project.jobs().iter().filter_map(|name| Job::load(project, name).ok()).collect()
}

/// Directories that exports have or can have.
struct Expected<'a> {
    jobs: &'a [Job],
    lists: &'a [Published],
    /// Depth of the deepest parent directory of a part.
    deepest: usize,
}

impl<'a> Expected<'a> {
    fn of(jobs: &'a [Job], lists: &'a [Published]) -> Self {
        let listed = lists.iter().flat_map(|list| list.parts.values().map(|part| depth(&part.folder)));
        let exports = jobs.iter().flat_map(|job| &job.exports);
        let declared = exports.map(|export| depth(&export.name_template.render(NaiveDate::default())));
        Self { jobs, lists, deepest: listed.chain(declared).max().unwrap_or(0) }
    }

    /// The export, and its job, for which `path` is the directory of a part or a parent of one.
    fn folder(&self, path: &str) -> Option<(&str, &str)> {
        for list in self.lists {
            if list.parts.values().any(|part| leads_to(path, &part.folder)) {
                return Some((&list.name, &list.job));
            }
        }

        for job in self.jobs {
            if let Some(export) = job.exports.iter().find(|export| may_be_folder_of(export, path)) {
                return Some((&export.name, &job.name));
            }
        }
        None
    }
}

/// Whether `path` is `folder` or a parent of it.
fn leads_to(path: &str, folder: &str) -> bool {
    folder.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn depth(folder: &str) -> usize {
    folder.matches('/').count()
}

/// Whether the path exists and is not a directory. In a bucket no object is in the way of another.
fn is_file(blobs: &dyn Blobs, path: &str) -> bool {
    let Some(root) = blobs.directory() else { return false };
    let path = root.join(path);
    fs::symlink_metadata(&path).is_ok() && !path.is_dir()
}
