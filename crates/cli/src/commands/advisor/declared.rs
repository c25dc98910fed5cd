//! The tables that are compared, and the file that declares them.

use std::ffi::OsStr;

use tidetable_advisor::comparison::Comparison;
use tidetable_advisor::trial::Candidate;
use tidetable_job::{Job, Table};
use tidetable_source::Location;

use crate::error::CliError;

/// Tables of a job, or of a file of layouts.
pub struct Declared {
    tables: Vec<Table>,
    /// Text of the file.
    pub text: String,
    /// Its path, for messages.
    pub path: String,
    /// The tables of the job that were asked for; empty for all.
    named: Vec<String>,
}

impl Declared {
    /// Those that `--layouts` names: tables of the job, or a file of tables.
    pub fn of(job: &Job, layouts: &[String]) -> Result<Self, CliError> {
        if let [file] = layouts
            && file.ends_with(".toml")
        {
            let failed = |source| CliError::File { path: file.clone(), source };
            let path = Location::path_of(OsStr::new(file), "a file of layouts").map_err(CliError::Place)?;
            let tables = job.tables_of(&path)?;
            let text = std::fs::read_to_string(&path).map_err(failed)?;
            return Ok(Self { tables, text, path: file.clone(), named: Vec::new() });
        }
        let path = job.shown_path.display().to_string();
        Ok(Self { tables: job.tables.clone(), text: job.text.clone(), path, named: layouts.to_vec() })
    }

    /// The layouts to measure.
    pub fn candidates(&self, job: &Job) -> Result<Vec<Candidate>, CliError> {
        Ok(Candidate::of_tables(job, &self.tables, &self.named)?)
    }

    /// The tables in the order of the layouts that were measured.
    pub fn measured(&self, comparison: &Comparison) -> Vec<Table> {
        let named = |name: &String| self.tables.iter().find(|table| table.spec.name == *name).cloned();
        comparison.layouts.iter().filter_map(|layout| named(&layout.measured.layout)).collect()
    }
}
