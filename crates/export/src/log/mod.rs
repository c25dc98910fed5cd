//! The log of a table beside the files of an export, of whichever kind: opened before a run publishes, written after it, and
//! compared with the list by those who look for damage.

pub(crate) mod expired;

use arrow::datatypes::Schema;
use tidetable_blobs::{BlobError, Blobs};
use tidetable_store::StoreError;
use tidetable_store::published::{ColumnIds, Published};

use crate::delta::{self, DeltaLog};
use crate::error::{ExportError, Result};
use crate::file::shape::{ColumnTypes, file_schema};
use crate::iceberg::{self, IcebergLog};
use crate::table::listed::{ListedFiles, files_of, table_folders};
use crate::table::{LogTimes, LoggedFiles, Pinned, TableLog};

/// Which log an export has, and where.
#[derive(Debug, Clone, Copy)]
pub struct LogPlace<'a> {
    /// Its kind.
    pub log: TableLog,
    /// The directory of the table, below `exports/`.
    pub folder: &'a str,
    /// The column of the day that the files have; `None` of months and queries.
    pub day: Option<&'a str>,
}

/// The log of an export, as a run finds it before it publishes.
#[derive(Debug)]
pub struct OpenLog<'a>(Opened<'a>);

#[derive(Debug)]
enum Opened<'a> {
    Delta(DeltaLog<'a>),
    Iceberg(IcebergLog<'a>),
}

impl<'a> OpenLog<'a> {
    /// The log of the export whose list is `published`.
    ///
    /// # Errors
    /// If it does not tell which files its table has, so that it cannot follow the list. Failures of the storage show when it
    /// is written.
    pub fn open(blobs: &'a dyn Blobs, published: &Published, place: LogPlace<'a>) -> Result<Self> {
        let LogPlace { log, folder, day } = place;
        Ok(Self(match log {
            TableLog::Delta => Opened::Delta(DeltaLog::open(blobs, published, folder)?),
            TableLog::Iceberg => Opened::Iceberg(IcebergLog::open(blobs, published, folder, day)?),
        }))
    }

    /// Whether it was found to hold what the list names, so that there is nothing to write until the list changes.
    pub fn is_current(&self) -> bool {
        match &self.0 {
            Opened::Delta(log) => log.is_current(),
            Opened::Iceberg(log) => log.is_current(),
        }
    }

    /// The ids of columns that files get, which the list notes; `None` if this kind tells columns by name.
    pub fn column_ids(&self) -> Option<&ColumnIds> {
        match &self.0 {
            Opened::Delta(_) => None,
            Opened::Iceberg(log) => Some(log.column_ids()),
        }
    }

    /// Brings the log up to the list, and notes it in the list, which is saved. Writes nothing if it is current. Snapshots that
    /// are `pinned` stay in it. Returns the version written.
    ///
    /// # Errors
    /// If the log cannot be read or written, or a column has a type that such tables lack.
    pub fn write(&self, published: &mut Published, times: LogTimes, pinned: &Pinned) -> Result<Option<u64>> {
        match &self.0 {
            Opened::Delta(log) => log.write(published, times),
            Opened::Iceberg(log) => log.write(published, times, pinned),
        }
    }
}

/// The first column of a query whose type tables with a log lack, with that type, after what `types` changes.
pub fn column_without_table_type(query: &Schema, types: ColumnTypes) -> Option<(String, String)> {
    let schema = file_schema(query, types);
    let field = schema.fields().iter().find(|field| delta::schema::delta_type(field.data_type()).is_none())?;
    Some((field.name().clone(), field.data_type().to_string()))
}

/// A log that does not say what the list of its export says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFinding {
    /// Its kind.
    pub log: TableLog,
    /// Path of the log inside the store.
    pub path: String,
    /// What is wrong with it.
    pub damage: String,
    /// Whether the next run of the job brings it up to the list.
    pub is_behind: bool,
}

/// The logs beside the parts of a list that cannot be read, or whose files are not those of the list.
///
/// # Errors
/// If the storage cannot be read.
pub fn log_findings(blobs: &dyn Blobs, published: &Published) -> Result<Vec<LogFinding>> {
    let mut findings = Vec::new();
    for folder in table_folders(published) {
        for log in TableLog::ALL.into_iter().filter(|log| log.may_be_of(published)) {
            let path = log.path(folder);
            let (damage, is_behind) = match logged_files(log, blobs, folder) {
                Ok(None) => continue,
                Ok(Some(logged)) => match difference(&logged, &files_of(published, folder), &published.name) {
                    Some(damage) => (damage, true),
                    None => continue,
                },
                // A file in place of a directory is a finding of its own.
                Err(ExportError::Store(StoreError::Blob(BlobError::NotADirectory { .. }))) => continue,
                Err(ExportError::Log { path: file, reason, .. }) if file == path => (reason, false),
                Err(ExportError::Log { path: file, reason, .. }) => (format!("{file}: {reason}"), false),
                Err(error) => return Err(error),
            };
            findings.push(LogFinding { log, path, damage, is_behind });
        }
    }
    Ok(findings)
}

/// The files that a log has; `None` without a log.
fn logged_files(log: TableLog, blobs: &dyn Blobs, folder: &str) -> Result<Option<LoggedFiles>> {
    match log {
        TableLog::Delta => delta::logged_files(blobs, folder),
        TableLog::Iceberg => iceberg::logged_files(blobs, folder),
    }
}

/// How the files of a log differ from those of the list.
fn difference(logged: &LoggedFiles, files: &ListedFiles, export: &str) -> Option<String> {
    if logged.damage.is_some() {
        return logged.damage.clone();
    }
    let unlisted: Vec<&String> = logged.files.iter().filter(|path| !files.contains_key(*path)).collect();
    if let Some(first) = unlisted.first() {
        let count = file_count(unlisted.len());
        return Some(format!(
            "it counts {count} that the list of {export} does not name (first {first}), so that its readers see replaced rows"
        ));
    }

    let unlogged = files.keys().filter(|path| !logged.files.contains(*path)).count();
    let count = file_count(unlogged);
    (unlogged > 0).then(|| format!("it lacks {count} that the list of {export} names, so that its readers miss rows"))
}

/// A number of files in words.
fn file_count(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, TimeUnit};

    use super::*;

    #[test]
    fn types_that_tables_lack_are_found() {
        let schema =
            |kind: DataType| Schema::new(vec![Field::new("a", DataType::Utf8View, true), Field::new("b", kind, true)]);
        let signed = ColumnTypes { signed: true, ..ColumnTypes::default() };
        for kind in [DataType::Int64, DataType::UInt8, DataType::UInt64, DataType::Decimal128(38, 9)] {
            assert_eq!(column_without_table_type(&schema(kind), signed), None);
        }
        let wide = DataType::Decimal256(50, 2);
        for kind in [DataType::Time64(TimeUnit::Microsecond), wide.clone()] {
            let found = column_without_table_type(&schema(kind.clone()), signed);
            assert_eq!(found, Some(("b".to_owned(), kind.to_string())));
        }
        assert_eq!(column_without_table_type(&schema(wide), ColumnTypes { floats: true, ..signed }), None);
    }
}
