//! Whether the inputs of a table are where the next run of its job looks for them.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::path::Path;

use tidetable_job::{Job, Project, TableInput};
use tidetable_source::Location;
use tokio::runtime::Handle;

use crate::fault::stop::Stop;
use crate::secrets::source_storage;

/// The places of the inputs of a table.
pub struct InputPlaces<'a> {
    project: &'a Project,
    /// The job of the table; `None` if its file cannot be read.
    job: Option<Job>,
    /// Whether the inputs are windows of other tables, which are not files.
    is_derived: bool,
    runtime: &'a Handle,
    /// The objects that the sources of the job reach, or why they cannot be listed.
    objects: OnceCell<Result<HashSet<String>, String>>,
}

impl<'a> InputPlaces<'a> {
    /// The places of the inputs of `table`, a table of the job of this name.
    pub fn new(project: &'a Project, job: &str, table: &str, runtime: &'a Handle) -> Self {
        let job = Job::load(project, job).ok();
        let declared = job.iter().flat_map(|job| &job.tables).find(|declared| declared.spec.name == table);
        let is_derived = declared.is_some_and(|table| matches!(table.from, TableInput::Query { .. }));
        Self { project, job, is_derived, runtime, objects: OnceCell::new() }
    }

    /// Whether an input is gone. Objects of a bucket that cannot be asked count as gone, see [`Self::unanswered`].
    pub fn is_gone(&self, path: &str) -> bool {
        if self.is_derived {
            return false;
        }
        match Location::parse(path) {
            Ok(Location::Path(_)) => !Path::new(&self.project.resolve(path)).exists(),
            Ok(Location::Bucket(_)) => self.objects().as_ref().map_or(true, |objects| !objects.contains(path)),
            Err(_) => false,
        }
    }

    /// Why objects that were asked for may be there although they count as gone.
    pub fn unanswered(&self) -> Option<&str> {
        self.objects.get()?.as_ref().err().map(String::as_str)
    }

    fn objects(&self) -> &Result<HashSet<String>, String> {
        self.objects.get_or_init(|| self.list_objects())
    }

    fn list_objects(&self) -> Result<HashSet<String>, String> {
        let Some(job) = &self.job else { return Err("the job file cannot be read".to_owned()) };
        let storage = source_storage(self.project, job, self.runtime, &Stop::default());
        let storage = storage.map_err(|error| error.to_string())?;
        let mut objects = HashSet::new();
        for source in &job.sources {
            let found = storage.find(&source.spec).map_err(|error| error.to_string())?;
            objects.extend(found.files.into_iter().map(|file| file.path));
        }
        Ok(objects)
    }
}
