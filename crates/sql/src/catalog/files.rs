//! Files as tables: `SELECT * FROM 'readings.parquet'`, and DuckDB's functions `read_csv`, `read_parquet` and
//! `read_json`, which read files of any name, a list of them, or all that a pattern matches.

use std::path::Path;
use std::sync::Arc;

use datafusion::catalog::{TableProvider, TableProviderFactory, UrlTableFactory};
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::datasource::listing_table_factory::ListingTableFactory;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::DFParser;
use tidetable_upstream::directory_patterns::is_pattern;

use crate::catalog::external::{existing_files, is_missing, local};
use crate::error::{SqlError, external};
use crate::syntax::rewrite::file_functions::{FileFormat, FileFunction};

/// Makes tables of paths and file functions, with the settings of a session.
#[derive(Debug, Default)]
pub(crate) struct FileTables {
    /// DataFusion's own wrapper of a catalog opens each table that `information_schema` lists.
    urls: DynamicListTableFactory,
}

impl FileTables {
    /// Reads files with the settings of `context` from now on.
    pub(crate) fn read_with(&self, context: &SessionContext) {
        self.urls.session_store().with_state(context.state_weak_ref());
    }

    /// The table `name`: a path, or a file function as written. `None` if it is the name of no file.
    ///
    /// # Errors
    /// If it is a URL, or the file is missing, cannot be read, or has a name that ends in no known form.
    pub(crate) async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(function) = FileFunction::parse(name)? {
            return self.read(&function).await.map(Some);
        }
        let name = local(name).map_err(external)?;
        if let Some(table) = self.urls.try_new(&name).await? {
            return Ok(Some(table));
        }
        if !is_path(&name) {
            return Ok(None);
        }
        Err(external(match is_missing(&name) {
            true => SqlError::ExternalMissing { location: name },
            false => SqlError::UnknownForm { path: name },
        }))
    }

    async fn read(&self, function: &FileFunction) -> Result<Arc<dyn TableProvider>> {
        let Some(state) = self.state() else {
            return Err(DataFusionError::Internal("the session of a file function has ended".to_owned()));
        };
        let declared = DFParser::parse_sql(&declaration(function))?;
        let Some(statement) = declared.into_iter().next() else {
            return Err(DataFusionError::Internal("a file function declares no table".to_owned()));
        };
        let plan = state.statement_to_plan(statement).await?;
        let LogicalPlan::Ddl(DdlStatement::CreateExternalTable(mut asked)) = plan else {
            return Err(DataFusionError::Internal("a file function declares no table".to_owned()));
        };

        asked.locations = existing_files(&function.paths).map_err(external)?;
        ListingTableFactory::new().create(&state, &asked).await
    }

    fn state(&self) -> Option<SessionState> {
        let session = self.urls.session_store().get_session().upgrade()?;
        session.read().as_any().downcast_ref::<SessionState>().cloned()
    }
}

/// Whether the name of an unknown table looks like one of a file: with a directory, an ending, or a wildcard.
fn is_path(name: &str) -> bool {
    let has_ending = Path::new(name).extension().is_some_and(|ending| ending.len() <= 8);
    name.contains('/') || is_pattern(name) || has_ending
}

/// The declaration of an external table over the files of a function, but for their paths.
fn declaration(function: &FileFunction) -> String {
    let (format, mut options) = match function.format {
        FileFormat::Csv => ("CSV", vec![format!("'format.has_header' '{}'", function.has_header)]),
        FileFormat::Parquet => ("PARQUET", Vec::new()),
        FileFormat::Json => ("JSON", Vec::new()),
    };
    if let Some(delimiter) = function.delimiter {
        let delimiter = delimiter.to_string().replace('\'', "''");
        options.push(format!("'format.delimiter' '{delimiter}'"));
    }
    let options = if options.is_empty() { String::new() } else { format!(" OPTIONS ({})", options.join(", ")) };
    format!("CREATE EXTERNAL TABLE files STORED AS {format} LOCATION 'files'{options}")
}
