//! Delta log beside the Parquet files of an export: other engines see each run as one snapshot.
//!
//! Writes the minimum of the protocol, reader version 1 and writer version 2:
//! ```text
//! _delta_log/00000000000000000000.json   commitInfo, protocol, metaData, add ..
//! _delta_log/00000000000000000001.json   commitInfo, [metaData], remove .., add ..
//! ```
//! The log follows the list of the export: files that the list has and the log has not are added, the reverse removed, so
//! the next run completes an interrupted one. What the log has is read from its entries and from the checkpoints of other engines
//! ([`log_state`]). A replaced file gets a new name, and the old one stays for readers of older snapshots: Delta's VACUUM
//! removes it.

pub(crate) mod log_state;

use std::collections::{BTreeMap, BTreeSet};

use arrow::datatypes::{DataType, Schema, TimeUnit};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Value, json};
use tidetable_blobs::{BlobError, Blobs};
use tidetable_store::StoreError;
use tidetable_store::published::{PartFile, Published};
use xxhash_rust::xxh3::xxh3_128;

use crate::delta::log_state::{LogState, entry};
use crate::error::{ExportError, Result};
use crate::file::shape::file_schema;

/// Directory of the log of a Delta table, beside the files.
pub const DELTA_LOG: &str = "_delta_log";

/// What is encoded in paths of a log, as in any URL. An equals sign is not: other engines remove files in the spelling that they
/// would write themselves, and some find no file that was added in another one.
const ENCODED: AsciiSet = CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Files of the list by path below the directory of the table. Names of files are never used again.
type ListedFiles = BTreeMap<String, ListedFile>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct ListedFile {
    bytes: u64,
    checksum: String,
    /// Its Hive partition directories: `dt=2018-01-31`.
    partition: Vec<(String, String)>,
}

/// Checks that the log in `folder` tells which files its table has, so that [`write_log`] can follow the list.
///
/// # Errors
/// If it does not, or cannot be read.
pub fn check_log(blobs: &dyn Blobs, folder: &str) -> Result<()> {
    LogState::read(blobs, &log_of(folder))?;
    Ok(())
}

/// A Delta log that does not say what the list of its export says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFinding {
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
        let path = log_of(folder);
        let (damage, is_behind) = match LogState::read(blobs, &path) {
            Ok(state) if state.version.is_none() => continue,
            Ok(state) => match difference(&state, &files_of(published, folder), &published.name) {
                Some(damage) => (damage, true),
                None => continue,
            },
            // A file in place of a directory is a finding of its own.
            Err(ExportError::Store(StoreError::Blob(BlobError::NotADirectory { .. }))) => continue,
            Err(ExportError::Log { path: file, reason }) if file == path => (reason, false),
            Err(ExportError::Log { path: file, reason }) => (format!("{file}: {reason}"), false),
            Err(error) => return Err(error),
        };
        findings.push(LogFinding { path, damage, is_behind });
    }
    Ok(findings)
}

/// The directories below `exports/` that can have a log: parents of Hive directories, or that of the only part.
fn table_folders(published: &Published) -> BTreeSet<&str> {
    let parts = published.parts.values().map(|part| part.folder.as_str());
    let empty = published.empty.values().map(|part| part.folder.as_str());
    let folders: BTreeSet<&str> = parts.chain(empty).filter(|folder| !folder.is_empty()).collect();
    match folders.first() {
        Some(only) if folders.len() == 1 => only.split('/').next().into_iter().collect(),
        _ => folders.iter().filter_map(|folder| Some(folder.split_once('/')?.0)).collect(),
    }
}

/// How the files of a log differ from those of the list.
fn difference(state: &LogState, files: &ListedFiles, export: &str) -> Option<String> {
    let unlisted: Vec<&String> = state.files.keys().filter(|path| !files.contains_key(*path)).collect();
    if let Some(first) = unlisted.first() {
        let count = file_count(unlisted.len());
        return Some(format!(
            "it counts {count} that the list of {export} does not name (first {first}), so that its readers see replaced rows"
        ));
    }

    let unlogged = files.keys().filter(|path| !state.files.contains_key(*path)).count();
    let count = file_count(unlogged);
    (unlogged > 0).then(|| format!("it lacks {count} that the list of {export} names, so that its readers miss rows"))
}

/// A number of files in words.
fn file_count(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

/// The first column of a query whose type Delta lacks, with that type.
pub fn column_without_delta_type(query: &Schema) -> Option<(String, String)> {
    let schema = file_schema(query);
    let field = schema.fields().iter().find(|field| delta_type(field.data_type()).is_none())?;
    Some((field.name().clone(), field.data_type().to_string()))
}

/// Brings the log of an export up to its list. Writes nothing if it is current. Returns the version written.
///
/// # Errors
/// If the log cannot be read or written, or a column has a type that Delta lacks.
pub fn write_log(blobs: &dyn Blobs, published: &Published, folder: &str, now: i64) -> Result<Option<u64>> {
    let log = log_of(folder);
    let known = LogState::read(blobs, &log)?;
    let files = files_of(published, folder);
    let time = now.div_euclid(1000);

    let mut actions = schema_actions(published, &known, &files, time)?;
    let gone = known.files.iter().filter(|(path, _)| !files.contains_key(*path));
    for path in gone.flat_map(|(_, spellings)| spellings) {
        actions.push(json!({ "remove": { "path": path, "deletionTimestamp": time, "dataChange": true } }));
    }
    for (path, file) in files.iter().filter(|(path, _)| !known.files.contains_key(*path)) {
        let ListedFile { bytes, checksum, partition } = file;
        let path = utf8_percent_encode(path, &ENCODED).to_string();
        let values: BTreeMap<&String, &String> = partition.iter().map(|(name, value)| (name, value)).collect();
        actions.push(json!({ "add": {
            "path": path, "partitionValues": values, "size": bytes, "modificationTime": time,
            "dataChange": true, "tags": { "checksum": checksum },
        } }));
    }
    if actions.is_empty() {
        return Ok(None);
    }

    let info = json!({ "timestamp": time, "operation": "WRITE", "engineInfo": "tidetable" });
    let mut text = format!("{}\n", json!({ "commitInfo": info }));
    actions.iter().for_each(|action| text.push_str(&format!("{action}\n")));

    let version = known.version.map_or(0, |last| last + 1);
    let path = entry(&log, version);
    if !blobs.create_new(&path, text.as_bytes())? {
        let reason = "another writer has written this version: run again".to_owned();
        return Err(ExportError::Log { path, reason });
    }
    Ok(Some(version))
}

/// The actions that state the protocol and the schema of the table, where the log does not have them; `time` is that of the run,
/// milliseconds since the epoch.
fn schema_actions(published: &Published, known: &LogState, files: &ListedFiles, time: i64) -> Result<Vec<Value>> {
    let is_new = known.version.is_none();
    let partition = files.values().next().map(|file| file.partition.as_slice()).unwrap_or_default();
    let columns: Vec<String> = partition.iter().map(|(name, _)| name.clone()).collect();
    let schema = schema(published, files, &columns)?;

    let mut actions = Vec::new();
    if has_local_time(&schema) && !known.schema.as_deref().is_some_and(has_local_time) {
        let features = ["timestampNtz"];
        actions.push(json!({ "protocol": {
            "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features,
        } }));
    } else if is_new {
        actions.push(json!({ "protocol": { "minReaderVersion": 1, "minWriterVersion": 2 } }));
    }

    // Without files the partition columns are unknown.
    let says_schema = !files.is_empty() || is_new;
    if says_schema && known.schema.as_deref() != Some(schema.as_str()) {
        let digest = format!("{:032x}", xxh3_128(published.name.as_bytes()));
        // In the form of a UUID; stable for an export.
        let id =
            format!("{}-{}-{}-{}-{}", &digest[..8], &digest[8..12], &digest[12..16], &digest[16..20], &digest[20..]);
        actions.push(json!({ "metaData": {
            "id": id, "name": published.name, "format": { "provider": "parquet", "options": {} },
            "schemaString": schema, "partitionColumns": columns, "configuration": {}, "createdTime": time,
        } }));
    }

    Ok(actions)
}

/// Whether a schema has times without a zone, a table feature that readers must support.
fn has_local_time(schema: &str) -> bool {
    schema.contains("\"timestamp_ntz\"")
}

/// Path of the log of the table in `folder`.
fn log_of(folder: &str) -> String {
    format!("exports/{folder}/{DELTA_LOG}")
}

/// The files of an export below `folder`. Their names are never reused.
fn files_of(published: &Published, folder: &str) -> ListedFiles {
    let mut files = ListedFiles::new();
    for part in published.parts.values() {
        let below = part.folder.strip_prefix(folder).filter(|below| below.is_empty() || below.starts_with('/'));
        let Some(below) = below else { continue };
        let partition = below.split('/').filter_map(|folder| folder.split_once('='));
        let partition: Vec<_> = partition.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        for PartFile { file, bytes, checksum, .. } in part.files() {
            let path = format!("{below}/{file}").trim_start_matches('/').to_owned();
            files.insert(path, ListedFile { bytes, checksum, partition: partition.clone() });
        }
    }

    files
}

/// The columns in Delta's schema; partition columns are dates if all their values are.
fn schema(published: &Published, files: &ListedFiles, partition: &[String]) -> Result<String> {
    let mut fields = Vec::with_capacity(published.columns.len());
    for (name, kind) in &published.columns {
        let Some(kind) = kind.parse::<DataType>().ok().and_then(|kind| delta_type(&kind)) else {
            let path = format!("exports/{}.json", published.name);
            let reason = format!("a Delta table has no columns of type {kind}: CAST it in the query");
            return Err(ExportError::Log { path, reason });
        };
        fields.push(field(name, &kind));
    }

    for (index, name) in partition.iter().enumerate() {
        let mut values = files.values().filter_map(|file| file.partition.get(index));
        let are_dates = values.all(|(_, value)| value.parse::<chrono::NaiveDate>().is_ok());
        fields.push(field(name, if are_dates { "date" } else { "string" }));
    }

    Ok(json!({ "type": "struct", "fields": fields }).to_string())
}

/// A column in Delta's schema.
fn field(name: &str, kind: &str) -> Value {
    json!({ "name": name, "type": kind, "nullable": true, "metadata": {} })
}

/// The name of a type in Delta; `None` if Delta has no such type.
fn delta_type(kind: &DataType) -> Option<String> {
    Some(match kind {
        DataType::Boolean => "boolean".to_owned(),
        DataType::Int8 => "byte".to_owned(),
        DataType::Int16 => "short".to_owned(),
        DataType::Int32 => "integer".to_owned(),
        DataType::Int64 => "long".to_owned(),
        DataType::Float32 => "float".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Utf8 => "string".to_owned(),
        DataType::Binary => "binary".to_owned(),
        DataType::Date32 => "date".to_owned(),
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamp".to_owned(),
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp_ntz".to_owned(),
        DataType::Decimal128(precision, scale) => format!("decimal({precision},{scale})"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, RecordBatch, StringArray, StructArray};
    use arrow::buffer::NullBuffer;
    use arrow::datatypes::{Field, Fields};
    use parquet::arrow::ArrowWriter;
    use tidetable_blobs::LocalBlobs;
    use tidetable_store::published::Part;

    use super::*;

    const LOG: &str = "exports/E/_delta_log";

    /// A list whose day `day` has the file `file`.
    fn list(days: &[(&str, &str)]) -> Published {
        let part = |(day, file): &(&str, &str)| {
            let part = Part { folder: format!("E/dt={day}"), file: (*file).to_owned(), bytes: 9, ..Part::default() };
            ((*day).to_owned(), part)
        };
        let columns = vec![("v".to_owned(), DataType::Int64.to_string())];
        let (name, parts) = ("E".to_owned(), days.iter().map(part).collect());
        Published { name, columns, parts, ..Published::default() }
    }

    /// Writes a checkpoint as another engine does: a row for each action, structs that are null where the action is another,
    /// paths without percent encoding.
    fn write_checkpoint(blobs: &dyn Blobs, name: &str, paths: &[&str], schema: Option<&str>) {
        let rows = paths.len() + 1;
        let column = |field: &str, values: Vec<Option<&str>>| -> ArrayRef {
            let valid = NullBuffer::from(values.iter().map(Option::is_some).collect::<Vec<_>>());
            let texts: ArrayRef = Arc::new(StringArray::from(values));
            let fields = Fields::from(vec![Field::new(field, DataType::Utf8, true)]);
            Arc::new(StructArray::new(fields, vec![texts], Some(valid)))
        };
        let added = paths.iter().map(|path| Some(*path)).chain([None]).collect();
        let mut metadata = vec![None; rows];
        metadata[rows - 1] = schema;
        // A tombstone is no file of the table.
        let mut removed = vec![None; rows];
        removed[rows - 1] = Some("dt=2018-01-01/gone.parquet");
        let columns = [
            ("add", column("path", added)),
            ("remove", column("path", removed)),
            ("metaData", column("schemaString", metadata)),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        blobs.replace(&format!("{LOG}/{name}"), &bytes).unwrap();
    }

    /// The paths that an entry adds and removes.
    fn actions(blobs: &dyn Blobs, version: u64) -> (Vec<String>, Vec<String>) {
        let bytes = blobs.read(&entry(LOG, version)).unwrap().unwrap();
        let lines: Vec<Value> =
            bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let paths =
            |action: &str| lines.iter().filter_map(|line| Some(line[action]["path"].as_str()?.to_owned())).collect();
        (paths("add"), paths("remove"))
    }

    #[test]
    fn a_replaced_file_is_removed_from_a_log_that_a_checkpoint_holds() {
        for parts in [1, 2] {
            let root = tempfile::tempdir().unwrap();
            let blobs: &dyn Blobs = &LocalBlobs::new(root.path().to_owned());
            let before = list(&[("2018-01-01", "a.parquet"), ("2018-01-02", "b.parquet")]);
            assert_eq!(write_log(blobs, &before, "E", 0).unwrap(), Some(0));
            let schema = LogState::read(blobs, LOG).unwrap().schema.unwrap();
            let paths = ["dt=2018-01-01/a.parquet", "dt=2018-01-02/b.parquet"];
            if parts == 1 {
                write_checkpoint(blobs, "00000000000000000000.checkpoint.parquet", &paths, Some(&schema));
            } else {
                let name = |at| format!("00000000000000000000.checkpoint.000000000{at}.0000000002.parquet");
                write_checkpoint(blobs, &name(1), &paths[..1], Some(&schema));
                write_checkpoint(blobs, &name(2), &paths[1..], None);
            }
            blobs.delete(&entry(LOG, 0)).unwrap();
            assert_eq!(log_findings(blobs, &before).unwrap(), []);

            let after = list(&[("2018-01-01", "c.parquet"), ("2018-01-02", "b.parquet")]);
            let found = log_findings(blobs, &after).unwrap();
            assert!(found[0].is_behind && found[0].damage.contains("dt=2018-01-01/a.parquet"), "{found:?}");
            assert_eq!(write_log(blobs, &after, "E", 0).unwrap(), Some(1));
            let (added, removed) = actions(blobs, 1);
            assert_eq!(added, ["dt=2018-01-01/c.parquet"]);
            // As the checkpoint has it.
            assert_eq!(removed, ["dt=2018-01-01/a.parquet"]);
            assert_eq!(log_findings(blobs, &after).unwrap(), []);
            assert_eq!(write_log(blobs, &after, "E", 0).unwrap(), None);
        }
    }

    #[test]
    fn a_file_is_removed_in_the_spelling_of_its_entry() {
        let root = tempfile::tempdir().unwrap();
        let blobs: &dyn Blobs = &LocalBlobs::new(root.path().to_owned());
        let before = list(&[("2018-01-01", "a.parquet"), ("2018-01-02", "b.parquet")]);
        write_log(blobs, &before, "E", 0).unwrap();
        // Earlier versions wrote an encoded equals sign; another engine then removed the file in its own spelling.
        let text = String::from_utf8(blobs.read(&entry(LOG, 0)).unwrap().unwrap().to_vec()).unwrap();
        blobs.replace(&entry(LOG, 0), text.replace("dt=2018-01-01/", "dt%3D2018-01-01/").as_bytes()).unwrap();
        blobs.replace(&entry(LOG, 1), b"{\"remove\":{\"path\":\"dt=2018-01-01/a.parquet\"}}\n").unwrap();
        assert_eq!(write_log(blobs, &before, "E", 0).unwrap(), None, "it is there for those who tell spellings apart");

        let after = list(&[("2018-01-01", "c.parquet"), ("2018-01-02", "b.parquet")]);
        assert_eq!(write_log(blobs, &after, "E", 0).unwrap(), Some(2));
        let (added, removed) = actions(blobs, 2);
        assert_eq!(added, ["dt=2018-01-01/c.parquet"]);
        assert_eq!(removed, ["dt%3D2018-01-01/a.parquet"]);
    }

    #[test]
    fn a_log_with_a_gap_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let blobs: &dyn Blobs = &LocalBlobs::new(root.path().to_owned());
        let lists = ["a.parquet", "b.parquet", "c.parquet"].map(|file| list(&[("2018-01-01", file)]));
        for list in &lists {
            write_log(blobs, list, "E", 0).unwrap();
        }
        check_log(blobs, "E").unwrap();
        blobs.delete(&entry(LOG, 1)).unwrap();
        let refused = check_log(blobs, "E").unwrap_err().to_string();
        assert!(refused.contains("entry 1 is missing") && refused.contains("move the folder away"), "{refused}");
        assert!(write_log(blobs, &lists[0], "E", 0).is_err());
        let found = log_findings(blobs, &lists[2]).unwrap();
        assert!(!found[0].is_behind && found[0].path == LOG, "{found:?}");
        // Of the second version of the format.
        blobs
            .replace(&format!("{LOG}/00000000000000000001.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"), b"{}")
            .unwrap();
        assert!(check_log(blobs, "E").unwrap_err().to_string().contains("a form that is not read"));
    }

    #[test]
    fn types_that_delta_lacks_are_found() {
        let schema =
            |kind: DataType| Schema::new(vec![Field::new("a", DataType::Utf8View, true), Field::new("b", kind, true)]);
        assert_eq!(column_without_delta_type(&schema(DataType::Int64)), None);
        for kind in [DataType::UInt8, DataType::UInt64, DataType::Time64(TimeUnit::Microsecond)] {
            let found = column_without_delta_type(&schema(kind.clone()));
            assert_eq!(found, Some(("b".to_owned(), kind.to_string())));
        }
    }
}
