//! Tables over files that a person declares with `CREATE EXTERNAL TABLE`. They write nothing, and last as long as the
//! sessions that share them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::catalog::{TableProvider, TableProviderFactory};
use datafusion::common::TableReference;
use datafusion::datasource::listing_table_factory::ListingTableFactory;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{CreateExternalTable, DdlStatement, LogicalPlan};
use datafusion::sql::parser::Statement;
use globset::{GlobBuilder, GlobMatcher};

use crate::error::{Result, SqlError};

/// Forms of files that a table can be declared over.
const FORMATS: [&str; 3] = ["PARQUET", "CSV", "ARROW"];

/// The tables that were declared. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct ExternalTables(Arc<Mutex<BTreeMap<String, Arc<dyn TableProvider>>>>);

impl PartialEq for ExternalTables {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ExternalTables {}

impl ExternalTables {
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn TableProvider>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Declares the table of `statement`, if that is a `CREATE EXTERNAL TABLE`; the name of it. `taken` are names of other
    /// tables.
    ///
    /// # Errors
    /// If the name is taken, there is no such form of files or no such file, or the files cannot be read.
    pub(crate) async fn declare(
        &self,
        state: &SessionState,
        statement: Statement,
        taken: &[String],
    ) -> Result<Option<String>> {
        if !matches!(statement, Statement::CreateExternalTable(_)) {
            return Ok(None);
        }
        let LogicalPlan::Ddl(DdlStatement::CreateExternalTable(mut asked)) = state.statement_to_plan(statement).await?
        else {
            return Ok(None);
        };
        asked.locations = located(&asked.locations)?;
        let name = check(&asked)?;
        let known = self.get(&name).is_some();
        if known && asked.if_not_exists {
            return Ok(Some(name));
        }
        if taken.contains(&name) || known && !asked.or_replace {
            return Err(SqlError::ExternalTaken { name });
        }
        let table = ListingTableFactory::new().create(state, &asked).await?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), table);
        Ok(Some(name))
    }
}

/// Locations, in which a pattern names files only: the engine (DataFusion 55.2) does not look into folders that one names.
fn located(locations: &[String]) -> Result<Vec<String>> {
    let mut found = Vec::with_capacity(locations.len());
    for location in locations {
        match location.rsplit_once('/') {
            Some((folders, files)) if is_pattern(folders) && !location.contains("://") => {
                let missing = || SqlError::ExternalMissing { location: location.clone() };
                let files_of = matcher(if files.is_empty() { "*" } else { files }).ok_or_else(missing)?;
                let (start, folders) = match folders.strip_prefix('/') {
                    Some(folders) => (PathBuf::from("/"), folders),
                    None => (PathBuf::new(), folders),
                };
                let before = found.len();
                let parts: Vec<&str> = folders.split('/').collect();
                walk(start, &parts, &mut |folder| {
                    let has_files =
                        entries(folder).iter().any(|(name, is_folder)| !is_folder && files_of.is_match(name));
                    if has_files {
                        found.push(format!("{}/{files}", folder.display()));
                    }
                });
                if found.len() == before {
                    return Err(missing());
                }
            }
            _ => found.push(location.clone()),
        }
    }
    Ok(found)
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

fn matcher(pattern: &str) -> Option<GlobMatcher> {
    Some(GlobBuilder::new(pattern).literal_separator(true).build().ok()?.compile_matcher())
}

/// Gives `found` each folder that `parts` lead to from `folder`; `**` is any number of folders.
fn walk(folder: PathBuf, parts: &[&str], found: &mut impl FnMut(&Path)) {
    let Some((part, rest)) = parts.split_first() else { return found(&folder) };
    if !is_pattern(part) {
        return walk(folder.join(part), rest, found);
    }
    let any = *part == "**";
    if any {
        walk(folder.clone(), rest, found);
    }
    let Some(matcher) = matcher(part) else { return };
    for (name, is_folder) in entries(&folder) {
        if is_folder && !name.starts_with('.') && (any || matcher.is_match(&name)) {
            walk(folder.join(name), if any { parts } else { rest }, found);
        }
    }
}

/// Names in a folder and whether they are folders, in order; none if it cannot be listed. Links to folders are not followed.
fn entries(folder: &Path) -> Vec<(String, bool)> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let named = entries
        .flatten()
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.file_type().ok()?.is_dir())));
    let mut named: Vec<(String, bool)> = named.collect();
    named.sort_unstable();
    named
}

/// What can be said of a declaration before its files are read; its name.
fn check(asked: &CreateExternalTable) -> Result<String> {
    let TableReference::Bare { table } = &asked.name else {
        return Err(SqlError::ExternalName { name: asked.name.to_string() });
    };
    if !FORMATS.contains(&asked.file_type.to_uppercase().as_str()) {
        let known = FORMATS.join(", ");
        return Err(SqlError::ExternalFormat { found: asked.file_type.clone(), known });
    }
    // The engine takes a path that is not there for an empty folder.
    let is_plain = |location: &&String| !location.contains("://") && !is_pattern(location);
    match asked.locations.iter().filter(is_plain).find(|location| !Path::new(location).exists()) {
        Some(location) => Err(SqlError::ExternalMissing { location: location.clone() }),
        None => Ok(table.to_string()),
    }
}
