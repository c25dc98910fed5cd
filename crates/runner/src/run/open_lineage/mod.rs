//! Tells a lineage server, or a file, of each run: what it read and wrote. Nothing here changes the run.

mod dataset;
mod event;
mod sender;

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tidetable_job::{Job, LineageSettings, LineageTarget, Project};
use tidetable_record::RunRecord;
use tidetable_source::is_http;

use crate::run::open_lineage::event::RunEvents;
use crate::run::open_lineage::sender::{Sender, Server};
use crate::secrets::value;

/// The events of a run, and where they go.
pub(crate) struct OpenLineage<'a> {
    events: RunEvents<'a>,
    /// Where they go, or why they do not.
    target: Result<Target, String>,
}

enum Target {
    Server(Sender),
    File(PathBuf),
}

impl<'a> OpenLineage<'a> {
    /// Tells that a run begins; `None` if its job tells nobody.
    pub(crate) fn begin(project: &'a Project, job: &'a Job, record: &RunRecord) -> Option<Self> {
        let settings = job.lineage.as_ref()?;
        let events = RunEvents { project, job, namespace: &settings.namespace };
        let mut lineage = Self { target: Target::of(project, settings), events };
        lineage.send(&lineage.events.begin(record));
        Some(lineage)
    }

    /// Tells how a run ended, which read `others`, tables that other jobs make.
    ///
    /// # Errors
    /// Which events were not told, and why.
    pub(crate) fn end(mut self, record: &RunRecord, others: &BTreeSet<String>) -> Result<(), String> {
        self.send(&self.events.end(record, others));
        match self.target? {
            Target::Server(sender) => sender.finish(),
            Target::File(_) => Ok(()),
        }
    }

    fn send(&mut self, event: &Value) {
        match &mut self.target {
            Ok(Target::Server(sender)) => sender.send(event.to_string()),
            Ok(Target::File(path)) => {
                if let Err(error) = append(path, event) {
                    self.target = Err(format!("{}: {error}", path.display()));
                }
            }
            Err(_) => {}
        }
    }
}

impl Target {
    fn of(project: &Project, settings: &LineageSettings) -> Result<Self, String> {
        let (url, token) = match &settings.target {
            LineageTarget::File(path) => return Ok(Self::File(project.dir.join(path))),
            LineageTarget::Url { url, token } => (url, token),
        };
        let url = value(project, url).map_err(|error| error.to_string())?;
        if !is_http(&url) {
            return Err("`url` is not a URL".to_owned());
        }
        let token = token.as_ref().map(|token| value(project, token)).transpose().map_err(|error| error.to_string())?;
        Sender::start(Server { url, token }).map(Self::Server).map_err(|error| error.to_string())
    }
}

/// Appends an event as a line, in one write: runs of several jobs may share a file. A pipe without a reader would be waited for.
fn append(path: &Path, event: &Value) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::other("it is no file"));
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    file.write_all(format!("{event}\n").as_bytes())
}
