//! Manifests and manifest lists: which files a snapshot has, with their statistics, and which manifests hold them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::avro::Encoder;
use crate::iceberg::avro::{Datum, container, records};

/// What a manifest says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// A snapshot before added it.
    Existing = 0,
    Added = 1,
    /// This snapshot removed it.
    Deleted = 2,
}

/// A file of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DataFile {
    /// The whole URI.
    pub(crate) path: String,
    /// Its value of the column of the day, days since the epoch.
    pub(crate) day: Option<i32>,
    pub(crate) rows: i64,
    pub(crate) bytes: i64,
    /// Compressed bytes by id of the column.
    pub(crate) sizes: BTreeMap<i32, i64>,
    /// Values, nulls among them.
    pub(crate) values: BTreeMap<i32, i64>,
    pub(crate) nulls: BTreeMap<i32, i64>,
    /// Bounds as the specification serializes single values.
    pub(crate) least: BTreeMap<i32, Vec<u8>>,
    pub(crate) greatest: BTreeMap<i32, Vec<u8>>,
}

/// An entry of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) status: Status,
    /// The snapshot that added the file, or removed it.
    pub(crate) snapshot: i64,
    /// Sequence number of its rows, and of the file: that of the snapshot that added it.
    pub(crate) sequence: i64,
    pub(crate) file_sequence: i64,
    pub(crate) file: DataFile,
}

/// A manifest, as the list of a snapshot has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ManifestFile {
    /// The whole URI.
    pub(crate) path: String,
    pub(crate) length: i64,
    pub(crate) spec: i64,
    /// Whether it holds files of deleted rows, which other engines write.
    pub(crate) has_deletes: bool,
    pub(crate) sequence: i64,
    pub(crate) snapshot: i64,
}

/// What a manifest and its list say besides the entries.
#[derive(Debug)]
pub(crate) struct ManifestHeader<'a> {
    /// The schema of the table, whole.
    pub(crate) schema: &'a Value,
    /// The fields of its partition specification.
    pub(crate) partition: &'a Value,
    pub(crate) spec: i64,
    /// The field that files are partitioned by: name and id.
    pub(crate) day: Option<(&'a str, i64)>,
}

/// The bytes of a manifest.
pub(crate) fn manifest(header: &ManifestHeader<'_>, entries: &[Entry]) -> Vec<u8> {
    let mut out = Encoder::default();
    for Entry { status, snapshot, sequence, file_sequence, file } in entries {
        // The sequence numbers of added files are those of their snapshot.
        let is_known = *status != Status::Added;
        out.long(*status as i64);
        out.option(Some(*snapshot), Encoder::long);
        out.option(is_known.then_some(*sequence), Encoder::long);
        out.option(is_known.then_some(*file_sequence), Encoder::long);

        out.long(0);
        out.text(&file.path);
        out.text("PARQUET");
        if header.day.is_some() {
            out.option(file.day.map(i64::from), Encoder::long);
        }
        out.long(file.rows);
        out.long(file.bytes);
        for counts in [&file.sizes, &file.values, &file.nulls] {
            out.option(Some(counts), |out, counts| {
                out.array(counts.iter(), |out, (id, count)| {
                    out.long(i64::from(*id));
                    out.long(*count);
                });
            });
        }
        for bounds in [&file.least, &file.greatest] {
            out.option(Some(bounds), |out, bounds| {
                out.array(bounds.iter(), |out, (id, bound)| {
                    out.long(i64::from(*id));
                    out.bytes(bound);
                });
            });
        }
    }

    let pairs = [
        ("schema", header.schema.to_string()),
        ("schema-id", header.schema["schema-id"].to_string()),
        ("partition-spec", header.partition.to_string()),
        ("partition-spec-id", header.spec.to_string()),
        ("format-version", "2".to_owned()),
        ("content", "data".to_owned()),
    ];
    container(&entry_schema(header.day), &pairs, entries.len(), &out)
}

/// The bytes of the list of a snapshot with one manifest of `entries`.
pub(crate) fn manifest_list(file: &ManifestFile, parent: Option<i64>, day: bool, entries: &[Entry]) -> Vec<u8> {
    let of = |status: Status| entries.iter().filter(move |entry| entry.status == status);
    let all = [Status::Added, Status::Existing, Status::Deleted];
    let sequences = entries.iter().filter(|entry| entry.status != Status::Deleted).map(|entry| entry.sequence);

    let mut out = Encoder::default();
    out.text(&file.path);
    out.long(file.length);
    out.long(file.spec);
    out.long(0);
    out.long(file.sequence);
    out.long(sequences.min().unwrap_or(file.sequence));
    out.long(file.snapshot);
    for status in all {
        out.long(of(status).count() as i64);
    }
    for status in all {
        out.long(of(status).map(|entry| entry.file.rows).sum());
    }
    let days = entries.iter().map(|entry| entry.file.day);
    out.option(Some(()).filter(|()| day), |out, ()| {
        out.array(std::iter::once(()), |out, ()| {
            let bound = |day: Option<i32>| day.map(|day| day.to_le_bytes().to_vec());
            out.boolean(days.clone().any(|day| day.is_none()));
            out.option(Some(false), Encoder::boolean);
            out.option(bound(days.clone().flatten().min()), |out, day| out.bytes(&day));
            out.option(bound(days.clone().flatten().max()), |out, day| out.bytes(&day));
        });
    });

    let parent = parent.map_or("null".to_owned(), |parent| parent.to_string());
    let pairs = [
        ("snapshot-id", file.snapshot.to_string()),
        ("parent-snapshot-id", parent),
        ("sequence-number", file.sequence.to_string()),
        ("format-version", "2".to_owned()),
    ];
    container(&list_schema(), &pairs, 1, &out)
}

/// A field of an Avro record with the id that the specification gives it.
fn field(name: &str, id: i32, kind: Value) -> Value {
    json!({ "name": name, "type": kind, "field-id": id })
}

/// As [`field`], with null for an unknown value.
fn optional(name: &str, id: i32, kind: Value) -> Value {
    json!({ "name": name, "type": ["null", kind], "default": null, "field-id": id })
}

/// A map by id of columns, as Avro has those whose keys are no texts: an array of pairs.
fn by_column(name: &str, id: i32, key: i32, kind: &str) -> Value {
    let pair = json!({ "type": "record", "name": format!("k{key}_v{}", key + 1), "fields": [
        field("key", key, "int".into()), field("value", key + 1, kind.into()),
    ] });
    optional(name, id, json!({ "type": "array", "items": pair, "logicalType": "map" }))
}

/// Schema of the entries of a manifest of files that are partitioned by this field.
fn entry_schema(day: Option<(&str, i64)>) -> Value {
    let date = json!({ "type": "int", "logicalType": "date" });
    let partition: Vec<Value> = day
        .iter()
        .map(|(name, id)| json!({ "name": name, "type": ["null", date], "default": null, "field-id": id }))
        .collect();
    let partition = json!({ "type": "record", "name": "r102", "fields": partition });
    let file = json!({ "type": "record", "name": "r2", "fields": [
        field("content", 134, "int".into()),
        field("file_path", 100, "string".into()),
        field("file_format", 101, "string".into()),
        field("partition", 102, partition),
        field("record_count", 103, "long".into()),
        field("file_size_in_bytes", 104, "long".into()),
        by_column("column_sizes", 108, 117, "long"),
        by_column("value_counts", 109, 119, "long"),
        by_column("null_value_counts", 110, 121, "long"),
        by_column("lower_bounds", 125, 126, "bytes"),
        by_column("upper_bounds", 128, 129, "bytes"),
    ] });
    json!({ "type": "record", "name": "manifest_entry", "fields": [
        field("status", 0, "int".into()),
        optional("snapshot_id", 1, "long".into()),
        optional("sequence_number", 3, "long".into()),
        optional("file_sequence_number", 4, "long".into()),
        field("data_file", 2, file),
    ] })
}

/// Schema of the manifests of a list.
fn list_schema() -> Value {
    let summary = json!({ "type": "record", "name": "r508", "fields": [
        field("contains_null", 509, "boolean".into()),
        optional("contains_nan", 518, "boolean".into()),
        optional("lower_bound", 510, "bytes".into()),
        optional("upper_bound", 511, "bytes".into()),
    ] });
    json!({ "type": "record", "name": "manifest_file", "fields": [
        field("manifest_path", 500, "string".into()),
        field("manifest_length", 501, "long".into()),
        field("partition_spec_id", 502, "int".into()),
        field("content", 517, "int".into()),
        field("sequence_number", 515, "long".into()),
        field("min_sequence_number", 516, "long".into()),
        field("added_snapshot_id", 503, "long".into()),
        field("added_files_count", 504, "int".into()),
        field("existing_files_count", 505, "int".into()),
        field("deleted_files_count", 506, "int".into()),
        field("added_rows_count", 512, "long".into()),
        field("existing_rows_count", 513, "long".into()),
        field("deleted_rows_count", 514, "long".into()),
        optional("partitions", 507, json!({ "type": "array", "items": summary, "element-id": 508 })),
    ] })
}

/// The manifests of a list; the error is what is wrong with it.
pub(crate) fn manifests_of(bytes: &[u8]) -> Result<Vec<ManifestFile>, String> {
    let mut manifests = Vec::new();
    for record in records(bytes)? {
        let long = |name: &str| record.field(name).long().unwrap_or_default();
        manifests.push(ManifestFile {
            path: record.field("manifest_path").text().ok_or("a manifest has no path")?.to_owned(),
            length: long("manifest_length"),
            spec: long("partition_spec_id"),
            has_deletes: long("content") != 0,
            sequence: long("sequence_number"),
            snapshot: long("added_snapshot_id"),
        });
    }
    Ok(manifests)
}

/// The entries of `manifest`, whose bytes these are; the error is what is wrong with it.
pub(crate) fn entries_of(manifest: &ManifestFile, bytes: &[u8]) -> Result<Vec<Entry>, String> {
    let mut entries = Vec::new();
    for record in records(bytes)? {
        let status = match record.field("status").long() {
            Some(0) => Status::Existing,
            Some(1) => Status::Added,
            Some(2) => Status::Deleted,
            other => return Err(format!("an entry has status {other:?}")),
        };
        let data = record.field("data_file");
        let sequence = record.field("sequence_number").long().unwrap_or(manifest.sequence);
        let file = DataFile {
            path: data.field("file_path").text().ok_or("an entry has no path")?.to_owned(),
            day: None,
            rows: data.field("record_count").long().ok_or("an entry has no number of rows")?,
            bytes: data.field("file_size_in_bytes").long().unwrap_or_default(),
            sizes: by_id(data.field("column_sizes"), Datum::long),
            values: by_id(data.field("value_counts"), Datum::long),
            nulls: by_id(data.field("null_value_counts"), Datum::long),
            least: by_id(data.field("lower_bounds"), |value| value.bytes().map(<[u8]>::to_vec)),
            greatest: by_id(data.field("upper_bounds"), |value| value.bytes().map(<[u8]>::to_vec)),
        };
        entries.push(Entry {
            status,
            snapshot: record.field("snapshot_id").long().unwrap_or(manifest.snapshot),
            sequence,
            file_sequence: record.field("file_sequence_number").long().unwrap_or(sequence),
            file,
        });
    }
    Ok(entries)
}

/// The pairs of a map by id of columns.
fn by_id<T>(map: &Datum, value: impl Fn(&Datum) -> Option<T>) -> BTreeMap<i32, T> {
    let pairs = map.items().iter().filter_map(|pair| {
        let id = i32::try_from(pair.field("key").long()?).ok()?;
        Some((id, value(pair.field("value"))?))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_read_back() {
        let schema = json!({ "schema-id": 0, "type": "struct", "fields": [] });
        let partition = json!([]);
        let header = ManifestHeader { schema: &schema, partition: &partition, spec: 3, day: Some(("dt", 1000)) };
        let file = DataFile {
            path: "file:///a/part.parquet".to_owned(),
            rows: 5,
            bytes: 700,
            sizes: BTreeMap::from([(1, 20)]),
            values: BTreeMap::from([(1, 5), (2, 5)]),
            nulls: BTreeMap::from([(2, 5)]),
            least: BTreeMap::from([(1, vec![1, 0])]),
            greatest: BTreeMap::from([(1, vec![9, 0])]),
            day: None,
        };
        let entry =
            |status, sequence| Entry { status, snapshot: 42, sequence, file_sequence: sequence, file: file.clone() };
        let entries = [entry(Status::Existing, 1), entry(Status::Added, 7), entry(Status::Deleted, 2)];
        let bytes = manifest(&header, &entries);

        let listed = ManifestFile {
            path: "file:///a/metadata/m.avro".to_owned(),
            length: bytes.len() as i64,
            spec: 3,
            has_deletes: false,
            sequence: 7,
            snapshot: 42,
        };
        let list = manifests_of(&manifest_list(&listed, None, true, &entries)).unwrap();
        assert_eq!(list, [listed]);
        assert_eq!(entries_of(&list[0], &bytes).unwrap(), entries);
        assert!(manifests_of(b"{}").is_err());
    }
}
