//! The tables that queries of a job may read: its own, as the job file declares them, and those of other jobs, as
//! stored.

use tidetable_job::Job;
use tidetable_sql::Declared;
use tidetable_store::leave_out;
use tidetable_store::{Store, StoreError};

use crate::fault::error::RunError;

/// Tables that queries may read.
pub struct ReadableTables {
    /// Readable tables.
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

    /// Why `sql` cannot be planned, if the cause is a damaged table that it names.
    pub fn blame(&mut self, sql: &str) -> Option<RunError> {
        let at = self.damaged.iter().position(|(name, _)| sql.contains(name.as_str()))?;
        Some(self.damaged.swap_remove(at).1.into())
    }
}
