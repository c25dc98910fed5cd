//! The metadata of an Iceberg table: `metadata/vN.metadata.json`, whose greatest number is the table as it is.
//!
//! The next version is the one before, with a snapshot more and those left out whose retention has passed. What other engines
//! have added to it stays: their properties, tags and branches.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value, json};
use tidetable_blobs::Blobs;
use xxhash_rust::xxh3::xxh3_128;

use crate::error::{ExportError, Result};
use crate::table::{LogTimes, Pinned, TableLog};

/// Property for how long snapshots stay, which engines that expire them follow.
const RETENTION: &str = "history.expire.max-snapshot-age-ms";
/// Property with the names of columns of files without ids.
const NAME_MAPPING: &str = "schema.name-mapping.default";

/// The first id of a field that files are partitioned by.
const FIRST_PARTITION: i64 = 1000;

/// Name of the file with the number of the newest version, for readers that list nothing.
pub(crate) const HINT: &str = "version-hint.text";

/// A version of the metadata.
#[derive(Debug, Clone)]
pub(crate) struct Metadata {
    pub(crate) version: u64,
    pub(crate) value: Value,
}

/// What the metadata says of a table besides its snapshots.
#[derive(Debug, Clone)]
pub(crate) struct TableForm {
    /// Name of the export.
    pub(crate) name: String,
    /// URI of its directory.
    pub(crate) location: String,
    /// Fields of its schema.
    pub(crate) fields: Value,
    /// The greatest id of a column that was ever given.
    pub(crate) last_column: i32,
    /// Names of columns of files without ids.
    pub(crate) mapping: String,
    /// The column of the day: name and id.
    pub(crate) day: Option<(String, i32)>,
    pub(crate) times: LogTimes,
}

/// A snapshot to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) id: i64,
    pub(crate) operation: &'static str,
    /// Counts, as texts.
    pub(crate) summary: Vec<(&'static str, String)>,
    /// URI of its list of manifests.
    pub(crate) list: String,
}

/// URI of the directory of the table in `folder`.
pub(crate) fn location_of(blobs: &dyn Blobs, folder: &str) -> String {
    let Some(root) = blobs.directory() else {
        return format!("{}/exports/{folder}", blobs.display().trim_end_matches('/'));
    };
    // By one name, through whichever link the root was opened.
    let root =
        root.canonicalize().or_else(|_| std::path::absolute(root)).unwrap_or_else(|_| Path::new(root).to_owned());
    format!("file://{}/exports/{folder}", root.display())
}

/// Path inside the store of a version.
pub(crate) fn version_path(folder: &str, version: u64) -> String {
    format!("{}/v{version}.metadata.json", TableLog::Iceberg.path(folder))
}

/// The version of a file of this name.
pub(crate) fn version_of(name: &str) -> Option<u64> {
    name.strip_prefix('v')?.strip_suffix(".metadata.json")?.parse().ok()
}

/// Metadata that cannot be followed.
pub(crate) fn unusable(path: &str, reason: &str) -> ExportError {
    let reason = format!("{reason}: move the folder away, and the next run begins a new table");
    ExportError::Log { log: TableLog::Iceberg, path: path.to_owned(), reason }
}

impl Metadata {
    /// The newest version of the table in `folder`; `None` without one.
    ///
    /// # Errors
    /// If it cannot be read, or is of another version of the format.
    pub(crate) fn newest(blobs: &dyn Blobs, folder: &str) -> Result<Option<Self>> {
        let names = blobs.list(&TableLog::Iceberg.path(folder))?;
        let Some(version) = names.iter().filter_map(|name| version_of(name)).max() else { return Ok(None) };
        let path = version_path(folder, version);
        let bytes = blobs.read(&path)?.unwrap_or_default();
        let value: Value = serde_json::from_slice(&bytes).map_err(|error| unusable(&path, &error.to_string()))?;
        match value["format-version"].as_i64() {
            Some(2) if value["location"].is_string() => Ok(Some(Self { version, value })),
            Some(2) => Err(unusable(&path, "it has no location")),
            found => Err(unusable(&path, &format!("it has format {}, and 2 is read", found.unwrap_or_default()))),
        }
    }

    pub(crate) fn location(&self) -> &str {
        self.value["location"].as_str().unwrap_or_default()
    }

    pub(crate) fn last_column(&self) -> i32 {
        self.value["last-column-id"].as_i64().and_then(|id| i32::try_from(id).ok()).unwrap_or_default()
    }

    pub(crate) fn last_sequence(&self) -> i64 {
        self.value["last-sequence-number"].as_i64().unwrap_or_default()
    }

    pub(crate) fn last_updated(&self) -> i64 {
        self.value["last-updated-ms"].as_i64().unwrap_or_default()
    }

    pub(crate) fn retention(&self) -> Option<i64> {
        self.value["properties"][RETENTION].as_str()?.parse::<i64>().ok()?.checked_mul(1000)
    }

    pub(crate) fn current_snapshot(&self) -> Option<i64> {
        self.value["current-snapshot-id"].as_i64().filter(|id| *id >= 0)
    }

    /// The fields of the current schema.
    pub(crate) fn current_fields(&self) -> &Value {
        let current = &self.value["current-schema-id"];
        let schema = self.items("schemas").find(|schema| schema["schema-id"] == *current);
        schema.map_or(&Value::Null, |schema| &schema["fields"])
    }

    /// The objects of an array.
    pub(crate) fn items(&self, key: &str) -> impl DoubleEndedIterator<Item = &Value> {
        self.value[key].as_array().into_iter().flatten()
    }

    /// The snapshots in their order.
    pub(crate) fn snapshots(&self) -> Vec<&Value> {
        let mut snapshots: Vec<&Value> = self.items("snapshots").collect();
        snapshots.sort_by_key(|snapshot| snapshot["sequence-number"].as_i64());
        snapshots
    }

    /// The snapshots that tags and branches name.
    pub(crate) fn named_snapshots(&self) -> BTreeSet<i64> {
        let refs = self.value["refs"].as_object().into_iter().flat_map(Map::values);
        let named = refs.filter_map(|named| named["snapshot-id"].as_i64());
        named.chain(self.current_snapshot()).collect()
    }

    /// The snapshots that were followed by another one longer ago than the retention, at `clock`, both microseconds.
    pub(crate) fn expired(&self, retention: i64, clock: i64) -> BTreeSet<i64> {
        let (snapshots, named) = (self.snapshots(), self.named_snapshots());
        let followed = snapshots.iter().zip(snapshots.iter().skip(1));
        let expired = followed.filter(|(_, next)| {
            let until = next["timestamp-ms"].as_i64().unwrap_or_default().saturating_mul(1000);
            until.saturating_add(retention) <= clock
        });
        let ids = expired.filter_map(|(snapshot, _)| snapshot["snapshot-id"].as_i64());
        ids.filter(|id| !named.contains(id)).collect()
    }

    /// The next version, without the snapshots `expired`.
    pub(crate) fn without(&self, expired: &BTreeSet<i64>, retention: i64, clock: i64) -> Self {
        let mut value = self.value.clone();
        let stays = |snapshot: &Value| snapshot["snapshot-id"].as_i64().is_none_or(|id| !expired.contains(&id));
        for key in ["snapshots", "snapshot-log", "statistics", "partition-statistics"] {
            if let Some(items) = value.get_mut(key).and_then(Value::as_array_mut) {
                items.retain(stays);
            }
        }

        let file = format!("{}/metadata/v{}.metadata.json", self.location(), self.version);
        let mut log: Vec<Value> = self.items("metadata-log").cloned().collect();
        log.retain(|entry| {
            entry["timestamp-ms"].as_i64().unwrap_or_default().saturating_mul(1000).saturating_add(retention) > clock
        });
        log.push(json!({ "timestamp-ms": self.last_updated(), "metadata-file": file }));
        value["metadata-log"] = Value::Array(log);
        value["last-updated-ms"] = self.last_updated().max(clock.div_euclid(1000)).into();
        Self { version: self.version + 1, value }
    }
}

/// Creates a version, if its number is free.
pub(crate) fn create(blobs: &dyn Blobs, folder: &str, metadata: &Metadata) -> Result<bool> {
    Ok(blobs.create_new(&version_path(folder, metadata.version), metadata.value.to_string().as_bytes())?)
}

/// Tells readers that there is this version, unless another writer has told them of a later one.
pub(crate) fn hint(blobs: &dyn Blobs, folder: &str, mut version: u64) -> Result<()> {
    let path = format!("{}/{HINT}", TableLog::Iceberg.path(folder));
    loop {
        let hinted = blobs.read(&path)?;
        let hinted = hinted.and_then(|text| std::str::from_utf8(&text).ok()?.trim().parse::<u64>().ok());
        let is_told = match hinted {
            Some(later) if later > version => blobs.stat(&version_path(folder, later))?.is_some(),
            hinted => hinted == Some(version),
        };
        if is_told {
            return Ok(());
        }

        blobs.replace(&path, version.to_string().as_bytes())?;
        // The other one may have told its version between the two.
        if blobs.stat(&version_path(folder, version + 1))?.is_none() {
            return Ok(());
        }
        version += 1;
    }
}

impl TableForm {
    /// Hash of what it says.
    pub(crate) fn digest(&self) -> String {
        let Self { location, fields, mapping, day, times, .. } = self;
        format!(
            "{:032x}",
            xxh3_128(format!("{location}\0{fields}\0{mapping}\0{day:?}\0{}", times.retention).as_bytes())
        )
    }

    /// A table without snapshots, as version `version`, after one with this sequence number.
    fn begun(&self, version: u64, sequence: i64) -> Metadata {
        let mark = xxh3_128(format!("{}\0{}\0{}", self.name, self.location, self.times.clock).as_bytes());
        let hex = format!("{mark:032x}");
        let uuid = format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..]);
        let value = json!({
            "format-version": 2,
            "table-uuid": uuid,
            "location": self.location,
            "last-sequence-number": sequence,
            "last-updated-ms": self.times.clock.div_euclid(1000),
            "last-column-id": 0,
            "current-schema-id": -1,
            "schemas": [],
            "default-spec-id": -1,
            "partition-specs": [],
            "last-partition-id": FIRST_PARTITION - 1,
            "default-sort-order-id": 0,
            "sort-orders": [{ "order-id": 0, "fields": [] }],
            "properties": {},
            "snapshots": [],
            "snapshot-log": [],
            "metadata-log": [],
            "refs": {},
        });
        Metadata { version, value }
    }

    /// The version after `before`, with this form and no other snapshot; those that are `pinned` stay, whatever their age.
    pub(crate) fn after(&self, before: Option<&Metadata>, pinned: &Pinned) -> Metadata {
        let clock = self.times.clock;
        let mut next = match before {
            Some(before) if before.location() == self.location => {
                let mut expired = before.expired(self.times.retention, clock);
                match pinned {
                    Pinned::All => expired.clear(),
                    Pinned::Ids(ids) => expired.retain(|id| !ids.contains(id)),
                }
                before.without(&expired, self.times.retention, clock)
            }
            // The paths of its snapshots name another place.
            Some(moved) => self.begun(moved.version + 1, moved.last_sequence()),
            None => self.begun(1, 0),
        };
        self.set_schema(&mut next);
        self.set_partition(&mut next);
        let properties = &mut next.value["properties"];
        properties[RETENTION] = self.times.retention.div_euclid(1000).to_string().into();
        properties[NAME_MAPPING] = self.mapping.as_str().into();
        next
    }

    /// Whether `metadata` says what this form says.
    pub(crate) fn is_of(&self, metadata: &Metadata) -> bool {
        let mut same = metadata.clone();
        self.set_schema(&mut same);
        self.set_partition(&mut same);
        let properties = &metadata.value["properties"];
        same.value == metadata.value
            && metadata.location() == self.location
            && metadata.retention() == Some(self.times.retention.div_euclid(1000) * 1000)
            && properties[NAME_MAPPING] == self.mapping.as_str()
    }

    /// Makes the schema with these fields the current one.
    fn set_schema(&self, metadata: &mut Metadata) {
        let known = metadata.items("schemas").find(|schema| schema["fields"] == self.fields);
        let id = match known.and_then(|schema| schema["schema-id"].as_i64()) {
            Some(id) => id,
            None => {
                let id = next_id(metadata.items("schemas"), "schema-id");
                let schema = json!({ "type": "struct", "schema-id": id, "fields": self.fields });
                push(&mut metadata.value["schemas"], schema);
                id
            }
        };
        metadata.value["current-schema-id"] = id.into();
        metadata.value["last-column-id"] = metadata.last_column().max(self.last_column).into();
    }

    /// Partitions by the day, if files have a column of it.
    fn set_partition(&self, metadata: &mut Metadata) {
        let is_of = |spec: &&Value| {
            let fields = spec["fields"].as_array().map(Vec::as_slice).unwrap_or_default();
            match (&self.day, fields) {
                (None, []) => true,
                (Some((name, id)), [field]) => {
                    field["source-id"] == *id && field["transform"] == "identity" && field["name"] == name.as_str()
                }
                _ => false,
            }
        };
        let known = metadata.items("partition-specs").find(is_of).and_then(|spec| spec["spec-id"].as_i64());
        let id = known.unwrap_or_else(|| {
            let id = next_id(metadata.items("partition-specs"), "spec-id");
            let mut fields = Vec::new();
            if let Some((name, source)) = &self.day {
                let field = metadata.value["last-partition-id"].as_i64().unwrap_or(FIRST_PARTITION - 1) + 1;
                fields.push(json!({ "name": name, "transform": "identity", "source-id": source, "field-id": field }));
                metadata.value["last-partition-id"] = field.into();
            }
            push(&mut metadata.value["partition-specs"], json!({ "spec-id": id, "fields": fields }));
            id
        });
        metadata.value["default-spec-id"] = id.into();
    }
}

impl Metadata {
    /// The whole current schema.
    pub(crate) fn schema(&self) -> &Value {
        let current = &self.value["current-schema-id"];
        self.items("schemas").find(|schema| schema["schema-id"] == *current).unwrap_or(&Value::Null)
    }

    /// The current partition specification: its id and fields.
    pub(crate) fn partition(&self) -> (i64, &Value) {
        let current = &self.value["default-spec-id"];
        let spec = self.items("partition-specs").find(|spec| spec["spec-id"] == *current);
        (current.as_i64().unwrap_or_default(), spec.map_or(&Value::Null, |spec| &spec["fields"]))
    }

    /// Adds a snapshot, which becomes the current one.
    pub(crate) fn add(&mut self, snapshot: &Snapshot) {
        let (sequence, parent) = (self.last_sequence() + 1, self.current_snapshot());
        let time = self.last_updated();
        let mut summary = Map::new();
        summary.insert("operation".to_owned(), snapshot.operation.into());
        summary.extend(snapshot.summary.iter().map(|(key, value)| ((*key).to_owned(), Value::from(value.as_str()))));
        let mut added = json!({
            "snapshot-id": snapshot.id, "sequence-number": sequence, "timestamp-ms": time, "manifest-list": snapshot.list,
            "summary": summary, "schema-id": self.value["current-schema-id"],
        });
        if let Some(parent) = parent {
            added["parent-snapshot-id"] = parent.into();
        }

        push(&mut self.value["snapshots"], added);
        push(&mut self.value["snapshot-log"], json!({ "timestamp-ms": time, "snapshot-id": snapshot.id }));
        self.value["refs"]["main"] = json!({ "snapshot-id": snapshot.id, "type": "branch" });
        self.value["current-snapshot-id"] = snapshot.id.into();
        self.value["last-sequence-number"] = sequence.into();
    }
}

/// Adds an item to an array, which may be missing.
fn push(array: &mut Value, item: Value) {
    match array.as_array_mut() {
        Some(items) => items.push(item),
        None => *array = Value::Array(vec![item]),
    }
}

/// The id after the greatest of objects.
fn next_id<'a>(objects: impl Iterator<Item = &'a Value>, key: &str) -> i64 {
    objects.filter_map(|object| object[key].as_i64()).max().map_or(0, |id| id + 1)
}
