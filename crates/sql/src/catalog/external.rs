//! External tables: tables over files, declared with `CREATE EXTERNAL TABLE`. They write nothing, and last as long as
//! the sessions that share them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::catalog::{TableProvider, TableProviderFactory};
use datafusion::common::TableReference;
use datafusion::datasource::listing_table_factory::ListingTableFactory;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{CreateExternalTable, DdlStatement, LogicalPlan};
use datafusion::sql::parser::Statement;
use tidetable_source::Location;
use tidetable_upstream::directory_patterns::{files_of, is_pattern, located};

use crate::catalog::zones::with_zones;
use crate::error::{Result, SqlError};

/// File formats that `CREATE EXTERNAL TABLE` may name in `STORED AS`.
const FORMATS: [&str; 3] = ["PARQUET", "CSV", "ARROW"];

/// The external tables of a session. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct ExternalTables(Arc<Mutex<BTreeMap<String, Arc<dyn TableProvider>>>>);

impl PartialEq for ExternalTables {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ExternalTables {}

impl ExternalTables {
    /// The names of the tables of the session, ascending.
    pub fn names(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn TableProvider>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Declares the table of `statement` and returns its name, if that is a `CREATE EXTERNAL TABLE`. `taken`: whether
    /// another table has a name.
    ///
    /// # Errors
    /// If the name is taken, the format is unknown, the location does not exist, or the files cannot be read.
    pub(crate) async fn declare(
        &self,
        state: &SessionState,
        statement: Statement,
        taken: impl FnOnce(&str) -> Result<bool>,
    ) -> Result<Option<String>> {
        if !matches!(statement, Statement::CreateExternalTable(_)) {
            return Ok(None);
        }
        let LogicalPlan::Ddl(DdlStatement::CreateExternalTable(mut asked)) = state.statement_to_plan(statement).await?
        else {
            return Ok(None);
        };

        let name = check(&asked)?;
        asked.locations = existing_files(&asked.locations)?;

        let known = self.get(&name).is_some();
        if known && asked.if_not_exists {
            return Ok(Some(name));
        }
        if taken(&name)? || known && !asked.or_replace {
            return Err(SqlError::ExternalTaken { name });
        }

        let mut table = ListingTableFactory::new().create(state, &asked).await?;
        if asked.schema.fields().is_empty() {
            let files: Vec<_> = asked.locations.iter().flat_map(|location| files_of(location)).collect();
            table = with_zones(table, &files, 0)?;
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), table);
        Ok(Some(name))
    }
}

/// The path of a file that a query names; SQL reads those of this machine only.
pub(crate) fn local(written: &str) -> Result<String> {
    match Location::path_of(OsStr::new(written), "a file that SQL reads") {
        Ok(path) => Ok(path.to_string_lossy().into_owned()),
        Err(error) => Err(SqlError::ExternalPlace { error }),
    }
}

/// The locations of files and patterns of files that a query names.
///
/// # Errors
/// If one is not on this machine, or a file is missing: DataFusion 55.2 treats a missing path as an empty directory; row "Missing
/// files" of `docs/datafusion-workarounds.md`.
pub(crate) fn existing_files(written: &[String]) -> Result<Vec<String>> {
    let paths = written.iter().map(|path| local(path)).collect::<Result<Vec<_>>>()?;
    let locations = located(&paths).map_err(|location| SqlError::ExternalMissing { location: location.clone() })?;
    match locations.iter().find(|location| is_missing(location)) {
        Some(location) => Err(SqlError::ExternalMissing { location: location.clone() }),
        None => Ok(locations),
    }
}

/// Whether `location` is a path, not a pattern, at which there is nothing.
pub(crate) fn is_missing(location: &str) -> bool {
    !is_pattern(location) && !Path::new(location).exists()
}

/// Validates a declaration before its files are read; returns the table's name.
fn check(asked: &CreateExternalTable) -> Result<String> {
    let TableReference::Bare { table } = &asked.name else {
        return Err(SqlError::ExternalName { name: asked.name.to_string() });
    };
    if !FORMATS.contains(&asked.file_type.to_uppercase().as_str()) {
        let known = FORMATS.join(", ");
        return Err(SqlError::ExternalFormat { found: asked.file_type.clone(), known });
    }
    Ok(table.to_string())
}
