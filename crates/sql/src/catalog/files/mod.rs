//! Files as tables: `SELECT * FROM 'readings.parquet'`, and DuckDB's functions `read_csv`, `read_parquet` and
//! `read_json`, which read files of any name, a list of them, or all that a pattern matches. Text is read in one way, whether a
//! path or a function names it.

pub(crate) mod arrow_format;
pub(crate) mod plain_files;
pub(crate) mod text_form;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::catalog::{TableProvider, TableProviderFactory, UrlTableFactory};
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::datasource::listing_table_factory::ListingTableFactory;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::DFParser;
use tidetable_source::Format;
use tidetable_upstream::directory_patterns::{files_of, is_pattern};
use url::Url;

use crate::catalog::external::{existing_files, is_missing, local};
use crate::catalog::files::plain_files::{PLAIN, PlainFiles, Reading, name_of};
use crate::catalog::files::text_form::TextForm;
use crate::catalog::zones::with_zones;
use crate::error::{SqlError, external};
use crate::syntax::rewrite::file_functions::{FileFormat, FileFunction, is_call};

/// Makes tables of paths and file functions, with the settings of a session.
#[derive(Debug, Default)]
pub(crate) struct FileTables {
    /// DataFusion's own wrapper of a catalog opens each table that `information_schema` lists.
    urls: DynamicListTableFactory,
    /// Compressed text, and text behind other lines.
    plain: Arc<PlainFiles>,
}

impl FileTables {
    /// Reads files with the settings of `context` from now on.
    ///
    /// # Errors
    /// None that a caller could meet: the scheme of the files is a constant.
    pub(crate) fn read_with(&self, context: &SessionContext) -> Result<()> {
        self.urls.session_store().with_state(context.state_weak_ref());
        let url = Url::parse(PLAIN).map_err(|error| DataFusionError::External(Box::new(error)))?;
        context.register_object_store(&url, Arc::clone(&self.plain) as _);
        Ok(())
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
        if let Some(format) = text_format(&name) {
            return self.read(&FileFunction::of_path(format, name)).await.map(Some);
        }
        if is_pattern(&name) {
            // DataFusion takes a pattern that matches nothing for a table without columns.
            matched_files(&existing_files(std::slice::from_ref(&name)).map_err(external)?, None)?;
        }
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
        let locations = existing_files(&function.paths).map_err(external)?;
        let text = function.format.text();
        let files = matched_files(&locations, text)?;
        let form = TextForm::find(function, &files)?;

        let declared = DFParser::parse_sql(&declaration(function.format, &form))?;
        let Some(statement) = declared.into_iter().next() else {
            return Err(DataFusionError::Internal("a file function declares no table".to_owned()));
        };
        let plan = state.statement_to_plan(statement).await?;
        let LogicalPlan::Ddl(DdlStatement::CreateExternalTable(mut asked)) = plan else {
            return Err(DataFusionError::Internal("a file function declares no table".to_owned()));
        };

        asked.locations = match text {
            Some(format) if form.is_encoded || has_other_endings(&locations, &files, format) => {
                plain_locations(&locations, Reading { format, skipped_lines: form.skipped_lines })?
            }
            _ => locations,
        };
        let table = ListingTableFactory::new().create(&state, &asked).await?;
        with_zones(table, &files, form.skipped_lines)
    }

    fn state(&self) -> Option<SessionState> {
        let session = self.urls.session_store().get_session().upgrade()?;
        session.read().as_any().downcast_ref::<SessionState>().cloned()
    }
}

/// Whether the name of a table is one that a session looks for among files, and not in its store.
pub(crate) fn is_file(name: &str) -> bool {
    is_call(name) || is_path(name)
}

/// Whether the name of an unknown table looks like one of a file: with a directory, an ending, or a wildcard.
fn is_path(name: &str) -> bool {
    let has_ending = Path::new(name).extension().is_some_and(|ending| ending.len() <= 8);
    name.contains('/') || is_pattern(name) || has_ending
}

/// The format of the text that a path or a pattern names by its ending, or a directory by that of its first file; `None` for other
/// files.
fn text_format(name: &str) -> Option<FileFormat> {
    let found = match Path::new(name).is_dir() {
        true => files_of(name).iter().find_map(|file| Format::of_name(&file.to_string_lossy())),
        false => Format::of_name(name),
    };
    match found? {
        Format::Csv => Some(FileFormat::Csv),
        Format::Json => Some(FileFormat::Json),
        _ => None,
    }
}

/// The files that locations name, in their order; of directories those of the format `text`, if one is given.
///
/// # Errors
/// If a pattern matches none, or a directory has none.
fn matched_files(locations: &[String], text: Option<Format>) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for location in locations {
        let mut found = files_of(location);
        let of_directory = text.filter(|_| Path::new(location).is_dir());
        if let Some(format) = of_directory {
            found.retain(|file| Format::of_name(&file.to_string_lossy()) == Some(format));
        }
        if found.is_empty() && (is_pattern(location) || of_directory.is_some()) {
            let location = match of_directory {
                Some(format) => format!("{}/*.{}", location.trim_end_matches('/'), name_of(format)),
                None => location.clone(),
            };
            return Err(external(SqlError::ExternalMissing { location }));
        }
        files.extend(found);
    }
    Ok(files)
}

/// Whether directories hold files of a format whose names do not end in its name: DataFusion reads no others of a directory.
fn has_other_endings(locations: &[String], files: &[PathBuf], format: Format) -> bool {
    locations.iter().any(|location| Path::new(location).is_dir())
        && files.iter().any(|file| file.extension().is_none_or(|found| found != name_of(format)))
}

/// The URLs of files that are read as plain text. Directories keep theirs, as the columns of their partitions are found by it.
fn plain_locations(locations: &[String], reading: Reading) -> Result<Vec<String>> {
    let mut urls = Vec::with_capacity(locations.len());
    for location in locations {
        let files = match Path::new(location).is_dir() {
            true => vec![PathBuf::from(location)],
            false => files_of(location),
        };
        for file in files {
            urls.push(reading.url(&file)?);
        }
    }
    Ok(urls)
}

/// The declaration of an external table over files, but for their paths.
fn declaration(format: FileFormat, form: &TextForm) -> String {
    let format = match format {
        FileFormat::Csv => "CSV",
        FileFormat::Parquet => "PARQUET",
        FileFormat::Json => "JSON",
    };
    let options: Vec<String> = form.options.iter().map(|(name, value)| format!("'{name}' '{value}'")).collect();
    let options = if options.is_empty() { String::new() } else { format!(" OPTIONS ({})", options.join(", ")) };
    format!("CREATE EXTERNAL TABLE files STORED AS {format} LOCATION 'files'{options}")
}
