//! Candidate layouts.

use tidetable_job::{Job, Table, TableInput};
use tidetable_layout::{SourceSchema, TableSpec};
use tidetable_sql::Preparation;

use crate::error::{AdvisorError, Result};
use crate::trial::entity::key_columns;

/// A layout to try on the rows of a source.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The layout; its name is that of the candidate.
    pub spec: TableSpec,
    /// Name of its source.
    pub source: String,
    /// The columns of the source, with derived ones.
    pub schema: SourceSchema,
    /// The rows it takes.
    pub filter: Preparation,
    /// Garbage-collection rules: (family, rule).
    pub gc: Vec<(String, String)>,
}

impl Candidate {
    /// The layout of a table; `None` for a table that is made by a query.
    pub fn of_table(table: &Table) -> Option<Self> {
        let TableInput::Source(source) = &table.from else { return None };
        Some(Self {
            spec: table.spec.clone(),
            source: source.clone(),
            schema: table.layout.source().clone(),
            filter: table.preparation.clone(),
            gc: table.gc.clone(),
        })
    }

    /// Columns of the row key other than times, in its order.
    pub fn key_columns(&self) -> Vec<String> {
        key_columns(&self.spec, &self.schema)
    }

    /// The layouts of a job: those `named`, in that order, or all that are loaded from files.
    ///
    /// # Errors
    /// [`AdvisorError::UnknownLayout`] or [`AdvisorError::NothingToMeasure`].
    pub fn of_job(job: &Job, named: &[String]) -> Result<Vec<Self>> {
        Self::of_tables(job, &job.tables, named)
    }

    /// The layouts of tables that another file declares over the sources of the job, as [`Self::of_job`] has those of the job.
    ///
    /// # Errors
    /// As [`Self::of_job`].
    pub fn of_tables(job: &Job, tables: &[Table], named: &[String]) -> Result<Vec<Self>> {
        let all: Vec<Self> = tables.iter().filter_map(Self::of_table).collect();
        if all.is_empty() {
            return Err(AdvisorError::NothingToMeasure { job: job.name.clone() });
        }
        if named.is_empty() {
            return Ok(all);
        }

        let mut chosen = Vec::with_capacity(named.len());
        for name in named {
            let Some(candidate) = all.iter().find(|candidate| candidate.spec.name == *name) else {
                let known = all.iter().map(|candidate| candidate.spec.name.clone()).collect();
                return Err(AdvisorError::UnknownLayout { job: job.name.clone(), name: name.clone(), known });
            };
            chosen.push(candidate.clone());
        }
        Ok(chosen)
    }
}
