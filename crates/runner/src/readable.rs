//! The tables that queries of a job may read: its own, as the job file declares them, and those of other jobs, as
//! stored.

use std::collections::BTreeMap;

use tidetable_job::{Job, Project};
use tidetable_sql::{Declared, SqlError};
use tidetable_store::leave_out;
use tidetable_store::{Store, StoreError};

use crate::fault::error::RunError;

/// Tables that queries may read.
pub struct ReadableTables {
    /// The tables that can be read, with their columns.
    pub tables: Vec<Declared>,
    /// Damaged tables of other jobs.
    damaged: Vec<(String, StoreError)>,
}

impl ReadableTables {
    /// The tables for queries of `job`.
    ///
    /// # Errors
    /// If the store cannot be listed. A table of another job that cannot be read is left out.
    pub fn of(store: &Store, job: &Job) -> Result<Self, RunError> {
        let (mut tables, mut damaged) = (Vec::new(), Vec::new());
        for name in store.tables()?.into_iter().filter(|name| job.table(name).is_none()) {
            match store.snapshot(&name) {
                Ok(snapshot) => tables.push(Declared::new(&name, snapshot.layout())),
                Err(error) => {
                    leave_out(&error);
                    damaged.push((name, error));
                }
            }
        }
        tables.extend(job.tables.iter().map(|table| Declared::new(&table.spec.name, &table.layout)));
        Ok(Self { tables, damaged })
    }

    /// Adds the tables that `others` declare and have not made yet, so that queries over them can be checked. Returns the jobs that
    /// make them, by table.
    ///
    /// # Errors
    /// If the store cannot be listed.
    pub fn add_unmade(&mut self, store: &Store, others: &[&Job]) -> Result<BTreeMap<String, String>, RunError> {
        let stored = store.tables()?;
        let mut unmade = BTreeMap::new();
        for other in others {
            for table in other.tables.iter().filter(|table| !stored.contains(&table.spec.name)) {
                self.tables.push(Declared::new(&table.spec.name, &table.layout));
                unmade.insert(table.spec.name.clone(), other.name.clone());
            }
        }
        Ok(unmade)
    }

    /// Why `sql` cannot be planned, if the cause is a damaged table that it names.
    pub fn blame(&mut self, sql: &str) -> Option<RunError> {
        let at = self.damaged.iter().position(|(name, _)| sql.contains(name.as_str()))?;
        Some(self.damaged.swap_remove(at).1.into())
    }
}

/// The unknown table or export that `error` is about, and the job of the project, other than `job`, that makes it.
pub(crate) fn maker_of_unknown(project: &Project, job: &Job, error: &SqlError) -> Option<(String, String)> {
    let name = error.unknown_name().filter(|unknown| unknown.is_table)?.name;
    let others = project.jobs().into_iter().filter(|other| *other != job.name);
    let mut others = others.filter_map(|other| Job::load(project, &other).ok());
    let maker = others.find(|other| other.table(&name).is_some() || other.export(&name).is_some())?;
    Some((name, maker.name))
}
