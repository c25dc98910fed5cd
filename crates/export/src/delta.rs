//! Delta log beside the Parquet files of an export: other engines see each run as one snapshot.
//!
//! Writes the minimum of the protocol, reader version 1 and writer version 2:
//! ```text
//! _delta_log/00000000000000000000.json   commitInfo, protocol, metaData, add ..
//! _delta_log/00000000000000000001.json   commitInfo, [metaData], remove .., add ..
//! ```
//! The log follows the list of the export. Only its last version is read: files that the list has and the log has not
//! are added, the reverse removed, so the next run completes an interrupted one. A replaced file
//! gets a new name, and the old one stays for readers of older snapshots: Delta's VACUUM removes it.

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, TimeUnit};
use serde_json::{Value, json};
use tidetable_store::published::{Part, PartFile, Published};
use tidetable_store::{Blobs, StoreError};
use xxhash_rust::xxh3::xxh3_128;

use crate::error::Result;

/// Directory of the log of a Delta table, beside the files.
pub const DELTA_LOG: &str = "_delta_log";

/// Files of the table by path in the log. A file with other bytes under the same path counts as another.
type LogFiles = BTreeMap<String, LogFile>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct LogFile {
    bytes: u64,
    checksum: String,
    /// Its Hive partition directories: `dt=2018-01-31`.
    partition: Vec<(String, String)>,
}

/// Brings the log of an export up to its list. Writes nothing if it is current. Returns the version written.
///
/// # Errors
/// If the log cannot be read or written, or a column has a type that Delta lacks.
pub fn write_log(blobs: &dyn Blobs, published: &Published, folder: &str, now: i64) -> Result<Option<u64>> {
    let log = format!("exports/{folder}/{DELTA_LOG}");
    let versions: Vec<u64> =
        blobs.list(&log)?.iter().filter_map(|name| name.strip_suffix(".json")?.parse().ok()).collect();
    let mut known = LogState::default();
    let entries: Vec<String> = versions.iter().map(|version| entry(&log, *version)).collect();
    for (version, bytes) in versions.iter().zip(blobs.read_all(&entries)?) {
        known.replay(&log, bytes.as_deref().unwrap_or_default(), *version)?;
    }
    let files = files_of(published, folder);
    let columns: Vec<String> = files
        .values()
        .next()
        .map(|file| file.partition.iter().map(|(name, _)| name.clone()).collect())
        .unwrap_or_default();
    let schema = schema(published, &files, &columns)?;
    let mut actions = Vec::new();
    let micros_to_millis = |micros: i64| micros.div_euclid(1000);
    // Times without a zone are a table feature that readers must support.
    let has_local = |schema: &str| schema.contains("\"timestamp_ntz\"");
    let needs_local = has_local(&schema) && !known.schema.as_deref().is_some_and(has_local);
    if needs_local {
        let features = ["timestampNtz"];
        actions.push(json!({ "protocol": {
            "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features,
        } }));
    } else if versions.is_empty() {
        actions.push(json!({ "protocol": { "minReaderVersion": 1, "minWriterVersion": 2 } }));
    }
    // Without files the partition columns are unknown.
    let says_schema = !files.is_empty() || versions.is_empty();
    if says_schema && known.schema.as_deref() != Some(schema.as_str()) {
        let digest = format!("{:032x}", xxh3_128(published.name.as_bytes()));
        // In the form of a UUID; stable for an export.
        let id =
            format!("{}-{}-{}-{}-{}", &digest[..8], &digest[8..12], &digest[12..16], &digest[16..20], &digest[20..]);
        actions.push(json!({ "metaData": {
            "id": id, "name": published.name, "format": { "provider": "parquet", "options": {} },
            "schemaString": schema, "partitionColumns": columns, "configuration": {}, "createdTime": micros_to_millis(now),
        } }));
    }
    for path in known.files.keys().filter(|path| !files.contains_key(*path)) {
        actions.push(
            json!({ "remove": { "path": path, "deletionTimestamp": micros_to_millis(now), "dataChange": true } }),
        );
    }
    for (path, LogFile { bytes, checksum, partition }) in
        files.iter().filter(|(path, _)| !known.files.contains_key(*path))
    {
        let values: BTreeMap<&String, &String> = partition.iter().map(|(name, value)| (name, value)).collect();
        actions.push(json!({ "add": {
            "path": path, "partitionValues": values, "size": bytes, "modificationTime": micros_to_millis(now),
            "dataChange": true, "tags": { "checksum": checksum },
        } }));
    }
    if actions.is_empty() {
        return Ok(None);
    }
    let version = versions.iter().max().map_or(0, |last| last + 1);
    let info = json!({ "timestamp": micros_to_millis(now), "operation": "WRITE", "engineInfo": "tidetable" });
    let mut text = format!("{}\n", json!({ "commitInfo": info }));
    actions.iter().for_each(|action| text.push_str(&format!("{action}\n")));
    let path = entry(&log, version);
    if !blobs.create_new(&path, text.as_bytes())? {
        let reason = "another writer has written this version: run again".to_owned();
        return Err(StoreError::Manifest { path, reason }.into());
    }
    Ok(Some(version))
}

fn entry(log: &str, version: u64) -> String {
    format!("{log}/{version:020}.json")
}

/// The table as its log describes it.
#[derive(Default)]
struct LogState {
    files: LogFiles,
    schema: Option<String>,
}

impl LogState {
    fn replay(&mut self, log: &str, text: &[u8], version: u64) -> Result<(), StoreError> {
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let action: Value = serde_json::from_slice(line)
                .map_err(|error| StoreError::Manifest { path: entry(log, version), reason: error.to_string() })?;
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            if let Some(add) = action.get("add") {
                let bytes = add["size"].as_u64().unwrap_or_default();
                let checksum = text(&add["tags"]["checksum"]);
                self.files.insert(text(&add["path"]), LogFile { bytes, checksum, partition: Vec::new() });
            }
            if let Some(remove) = action.get("remove") {
                self.files.remove(&text(&remove["path"]));
            }
            if let Some(metadata) = action.get("metaData") {
                self.schema = Some(text(&metadata["schemaString"]));
            }
        }
        Ok(())
    }
}

/// The files of an export below `folder`. Their names are never reused.
fn files_of(published: &Published, folder: &str) -> LogFiles {
    let inside = |part: &Part| {
        let below =
            part.folder.strip_prefix(folder).filter(|below| below.is_empty() || below.starts_with('/'))?.to_owned();
        let partition = below.split('/').filter_map(|folder| folder.split_once('='));
        let partition: Vec<_> = partition.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Some(part.files().into_iter().map(move |PartFile { file, bytes, checksum, .. }| {
            // Paths in the log are URL-encoded.
            let path = format!("{below}/{file}").trim_start_matches('/').replace('=', "%3D");
            (path, LogFile { bytes, checksum, partition: partition.clone() })
        }))
    };
    published.parts.values().filter_map(inside).flatten().collect()
}

/// The columns in Delta's schema; partition columns are dates if all their values are.
fn schema(published: &Published, files: &LogFiles, partition: &[String]) -> Result<String, StoreError> {
    let unknown = |kind: &str| StoreError::Manifest {
        path: format!("exports/{}.json", published.name),
        reason: format!("a Delta table has no columns of type {kind}: CAST it in the query"),
    };
    let mut fields = Vec::with_capacity(published.columns.len());
    let mut field = |name: &str, kind: &str| {
        fields.push(json!({ "name": name, "type": kind, "nullable": true, "metadata": {} }));
    };
    for (name, kind) in &published.columns {
        let kind = kind.parse::<DataType>().ok().and_then(|kind| delta_type(&kind)).ok_or_else(|| unknown(kind))?;
        field(name, &kind);
    }
    for (at, name) in partition.iter().enumerate() {
        let mut values = files.values().filter_map(|file| file.partition.get(at));
        let dates = values.all(|(_, value)| value.parse::<chrono::NaiveDate>().is_ok());
        field(name, if dates { "date" } else { "string" });
    }
    Ok(json!({ "type": "struct", "fields": fields }).to_string())
}

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
