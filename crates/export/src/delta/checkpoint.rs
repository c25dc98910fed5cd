//! Writes checkpoints of a Delta log: the table at a version in one Parquet file, so that readers need no entry before it.
//!
//! ```text
//! _delta_log/00000000000000000100.checkpoint.parquet    a row for each action
//! _delta_log/_last_checkpoint                           {"version":100,"size":482}
//! ```

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::ReaderBuilder;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};
use tidetable_blobs::Blobs;

use crate::delta::log_state::LogState;
use crate::error::{ExportError, Result};

/// Versions from one checkpoint to the next.
pub(crate) const EVERY: u64 = 100;

/// Rows that are encoded at a time.
const BATCH: usize = 1024;

/// Table features of tables that a checkpoint of this build describes in full.
const FEATURES: [&str; 3] = ["timestampNtz", "appendOnly", "invariants"];

/// Writes a checkpoint of `state`, the newest version of the log in the directory `log`. Files that were removed before
/// `expired`, milliseconds since the epoch, are not in it. Returns whether it was written: a table with features of other engines
/// gets its checkpoints from them.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write(blobs: &dyn Blobs, log: &str, state: &LogState, expired: i64) -> Result<bool> {
    let (Some(version), Some(protocol), Some(metadata)) = (state.version, &state.protocol, &state.metadata) else {
        return Ok(false);
    };
    if state.has_other_actions || !is_plain(protocol) {
        return Ok(false);
    }

    let mut rows = vec![json!({ "protocol": protocol }), json!({ "metaData": metadata })];
    for add in state.files.values().flat_map(|spellings| spellings.values()) {
        rows.push(json!({ "add": without_change(add) }));
    }
    let files = rows.len() - 2;
    for remove in state.removed.values() {
        if remove["deletionTimestamp"].as_i64().is_some_and(|time| time >= expired) {
            rows.push(json!({ "remove": without_change(remove) }));
        }
    }

    let path = format!("{log}/{version:020}.checkpoint.parquet");
    let bytes = encode(&rows).map_err(|source| ExportError::Write { path: path.clone(), source })?;
    blobs.replace(&path, &bytes)?;
    let last = json!({ "version": version, "size": rows.len(), "sizeInBytes": bytes.len(), "numOfAddFiles": files });
    blobs.replace(&format!("{log}/_last_checkpoint"), last.to_string().as_bytes())?;
    Ok(true)
}

/// Whether a protocol asks for nothing but what a checkpoint describes.
fn is_plain(protocol: &Value) -> bool {
    let mut features =
        ["readerFeatures", "writerFeatures"].into_iter().filter_map(|key| protocol[key].as_array()).flatten();
    let versions = (protocol["minReaderVersion"].as_u64(), protocol["minWriterVersion"].as_u64());
    let is_known = matches!(versions, (Some(1), Some(1 | 2)) | (Some(1 | 3), Some(7)));
    is_known && features.all(|feature| feature.as_str().is_some_and(|feature| FEATURES.contains(&feature)))
}

/// An action as a state holds it: it changes no data when it is read.
fn without_change(action: &Value) -> Value {
    let mut action = action.clone();
    if let Some(changes) = action.get_mut("dataChange") {
        *changes = Value::Bool(false);
    }
    action
}

/// The rows as a Parquet file.
fn encode(rows: &[Value]) -> std::result::Result<Vec<u8>, ArrowError> {
    let schema = schema();
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties))?;
    let mut decoder = ReaderBuilder::new(schema).build_decoder()?;
    for rows in rows.chunks(BATCH) {
        decoder.serialize(rows)?;
        if let Some(batch) = decoder.flush()? {
            writer.write(&batch)?;
        }
    }
    writer.into_inner().map_err(|error: ParquetError| error.into())
}

/// The columns of a checkpoint, one for each kind of action.
fn schema() -> SchemaRef {
    let text = || DataType::Utf8;
    let add = structure(vec![
        ("path", text()),
        ("partitionValues", map()),
        ("size", DataType::Int64),
        ("modificationTime", DataType::Int64),
        ("dataChange", DataType::Boolean),
        ("stats", text()),
        ("tags", map()),
    ]);
    let remove = structure(vec![
        ("path", text()),
        ("deletionTimestamp", DataType::Int64),
        ("dataChange", DataType::Boolean),
        ("extendedFileMetadata", DataType::Boolean),
        ("partitionValues", map()),
        ("size", DataType::Int64),
    ]);
    let metadata = structure(vec![
        ("id", text()),
        ("name", text()),
        ("description", text()),
        ("format", structure(vec![("provider", text()), ("options", map())])),
        ("schemaString", text()),
        ("partitionColumns", list()),
        ("createdTime", DataType::Int64),
        ("configuration", map()),
    ]);
    let protocol = structure(vec![
        ("minReaderVersion", DataType::Int32),
        ("minWriterVersion", DataType::Int32),
        ("readerFeatures", list()),
        ("writerFeatures", list()),
    ]);

    let columns = [("add", add), ("remove", remove), ("metaData", metadata), ("protocol", protocol)];
    Arc::new(Schema::new(columns.map(|(name, kind)| Field::new(name, kind, true)).to_vec()))
}

fn structure(fields: Vec<(&str, DataType)>) -> DataType {
    DataType::Struct(fields.into_iter().map(|(name, kind)| Field::new(name, kind, true)).collect())
}

/// A list of texts, with the names of Parquet's specification.
fn list() -> DataType {
    DataType::List(Arc::new(Field::new("element", DataType::Utf8, true)))
}

/// A map of texts, with the names of Parquet's specification.
fn map() -> DataType {
    let entries =
        Fields::from(vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Utf8, true)]);
    DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(entries), false)), false)
}
