//! `--select`: runs some tables and exports of a job, and the tables that those need.

use std::collections::BTreeSet;

use tidetable_job::{Job, TableInput, listed};

use crate::fault::error::RunError;
use crate::options::run_options::Selected;
use crate::run::context::Run;

impl Run<'_> {
    /// The selected part of the job, with the tables it needs; `None` without a selection.
    pub(crate) fn selected(&self) -> Result<Option<Job>, RunError> {
        let selected = &self.options.select;
        if selected.is_empty() {
            return Ok(None);
        }

        let mut exports = BTreeSet::new();
        let mut wanted: Vec<String> = Vec::new();
        for one in selected {
            match one {
                Selected::Table(name) if self.job.table(name).is_some() => wanted.push(name.clone()),
                Selected::Export(name) => {
                    let export = self.job.export(name).ok_or_else(|| self.not_selected(one))?;
                    wanted.extend(self.reads(export)?);
                    exports.insert(name.as_str());
                }
                Selected::Table(_) => return Err(self.not_selected(one)),
            }
        }

        let mut tables = BTreeSet::new();
        while let Some(name) = wanted.pop() {
            // A table of another job is read as it is.
            let Some(table) = self.job.table(&name) else { continue };
            if let (true, TableInput::Query { shape, .. }) = (tables.insert(name), &table.from) {
                wanted.extend(shape.reads.iter().cloned());
            }
        }

        let mut job = self.job.clone();
        job.tables.retain(|table| tables.contains(&table.spec.name));
        job.exports.retain(|export| exports.contains(export.name.as_str()));
        // Only what was asked for leaves the store.
        job.pushes.retain(|push| selected.contains(&Selected::Table(push.table.clone())));
        Ok(Some(job))
    }

    fn not_selected(&self, selected: &Selected) -> RunError {
        let (what, known): (_, Vec<&str>) = match selected {
            Selected::Table(_) => ("table", self.job.tables.iter().map(|table| table.spec.name.as_str()).collect()),
            Selected::Export(_) => ("export", self.job.exports.iter().map(|export| export.name.as_str()).collect()),
        };
        let known = if known.is_empty() { "none".to_owned() } else { listed(&known) };
        RunError::NotSelected { selected: selected.to_string(), job: self.job.name.clone(), what, known }
    }
}
