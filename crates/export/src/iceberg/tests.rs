//! Metadata follows its list.

use std::sync::Arc;

use arrow::array::{Date32Array, Int64Array, RecordBatch};
use arrow::datatypes::DataType;
use parquet::arrow::ArrowWriter;
use serde_json::Value;
use tempfile::TempDir;
use tidetable_blobs::LocalBlobs;
use tidetable_store::published::Part;

use super::*;
use crate::iceberg::catalog::{CatalogConflict, CatalogRequest, CatalogTable};
use crate::iceberg::snapshot::SnapshotReader;
use crate::log::expired::{expired_files, forget_expired};
use crate::log::log_findings;
use crate::table::column_ids::{assigned, with_ids};

const HOUR: i64 = 3_600_000_000;
const START: i64 = 1_700_000_000_000_000;

/// Times of a run at `clock`.
fn at_time(clock: i64) -> LogTimes {
    LogTimes { now: 0, clock, retention: 2 * HOUR }
}

/// A root with an export `E`.
struct World {
    _folder: TempDir,
    blobs: LocalBlobs,
    list: Published,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let blobs = LocalBlobs::new(folder.path().to_owned());
        let columns = [("v", DataType::Int64), ("dt", DataType::Date32)];
        let columns = columns.map(|(name, kind)| (name.to_owned(), kind.to_string())).to_vec();
        Self { _folder: folder, blobs, list: Published { name: "E".to_owned(), columns, ..Published::default() } }
    }

    fn blobs(&self) -> &dyn Blobs {
        &self.blobs
    }

    /// Lists days, each with its file, as a run that publishes them.
    fn list(&mut self, ids: &ColumnIds, days: &[(&str, &str)]) {
        let ids = assigned(ids, &self.list.columns);
        self.list.parts = days.iter().map(|(day, file)| ((*day).to_owned(), self.part(&ids, day, file))).collect();
        self.list.column_ids = Some(ids);
    }

    /// As [`Self::list`], and brings the metadata up to it.
    fn publish(&mut self, days: &[(&str, &str)], clock: i64) -> Result<Option<u64>> {
        let log = IcebergLog::open(&self.blobs, &self.list, "E", Some("dt"))?;
        let (ids, open) = (log.column_ids().clone(), log.location.clone());
        drop(log);
        self.list(&ids, days);
        let log = IcebergLog { location: open, ids, ..IcebergLog::open(&self.blobs, &self.list, "E", Some("dt"))? };
        log.write(&mut self.list, at_time(clock), &Pinned::default())
    }

    /// A part of one file, which is written.
    fn part(&self, ids: &ColumnIds, day: &str, file: &str) -> Part {
        let date = day.parse::<NaiveDate>().unwrap().to_epoch_days();
        let values = Arc::new(Int64Array::from(vec![1, 5]));
        let batch =
            RecordBatch::try_from_iter([("v", values as _), ("dt", Arc::new(Date32Array::from(vec![date; 2])) as _)]);
        let schema = with_ids(&batch.as_ref().unwrap().schema(), ids);
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, schema, None).unwrap();
        writer.write(&batch.unwrap()).unwrap();
        writer.close().unwrap();
        self.blobs().replace(&format!("exports/E/dt={day}/{file}"), &bytes).unwrap();
        let (folder, checksum) = (format!("E/dt={day}"), file.to_owned());
        Part { folder, file: file.to_owned(), bytes: bytes.len() as u64, checksum, ..Part::default() }
    }

    fn metadata(&self) -> Metadata {
        Metadata::newest(self.blobs(), "E").unwrap().unwrap()
    }

    /// The files of each snapshot.
    fn snapshots(&self) -> Vec<Vec<String>> {
        let metadata = self.metadata();
        let mut reader = SnapshotReader::new(self.blobs(), "E", &metadata);
        let files = |snapshot: &Value| reader.snapshot(snapshot).unwrap().files.into_keys().collect();
        metadata.snapshots().into_iter().map(files).collect()
    }

    fn expired(&self, clock: i64) -> Vec<String> {
        expired_files(self.blobs(), &self.list, clock).unwrap()
    }
}

#[test]
fn a_snapshot_has_the_files_of_the_list() {
    let mut world = World::new();
    let (a, b, c) = (("2018-01-01", "a.parquet"), ("2018-01-02", "b.parquet"), ("2018-01-01", "c.parquet"));
    assert_eq!(world.publish(&[a, b], START).unwrap(), Some(1));
    assert_eq!(world.publish(&[c, b], START + 1000).unwrap(), Some(2));
    assert_eq!(world.publish(&[b], START + 2000).unwrap(), Some(3));
    let path = |(day, file): (&str, &str)| format!("dt={day}/{file}");
    assert_eq!(world.snapshots(), [vec![path(a), path(b)], vec![path(c), path(b)], vec![path(b)]]);

    let metadata = world.metadata();
    let operations: Vec<&Value> =
        metadata.snapshots().iter().map(|snapshot| &snapshot["summary"]["operation"]).collect();
    assert_eq!(operations, ["append", "overwrite", "delete"]);
    assert_eq!(metadata.snapshots()[1]["summary"]["total-records"], "4");
    assert_eq!(world.blobs().read("exports/E/metadata/version-hint.text").unwrap().unwrap(), "3");
    assert_eq!(log_findings(world.blobs(), &world.list).unwrap(), []);

    // Of a file that stays, bounds and sequence number stay.
    let live = live_files(world.blobs(), "E", &metadata).unwrap();
    let entry = &live[&path(b)];
    assert_eq!((entry.sequence, entry.status, entry.file.rows), (1, Status::Existing, 2));
    assert_eq!(entry.file.greatest[&1], 5_i64.to_le_bytes());
    assert_eq!(entry.file.nulls[&2], 0);
}

#[test]
fn what_the_list_notes_is_not_read() {
    let mut world = World::new();
    world.publish(&[("2018-01-01", "a.parquet")], START).unwrap();
    assert!(IcebergLog::open(&world.blobs, &world.list, "E", Some("dt")).unwrap().is_current());
    let (path, before) = (version_path("E", 1), world.blobs().read(&version_path("E", 1)).unwrap().unwrap());
    world.blobs().replace(&path, " ".repeat(before.len()).as_bytes()).unwrap();
    assert!(IcebergLog::open(&world.blobs, &world.list, "E", Some("dt")).unwrap().is_current());
    assert_eq!(world.publish(&[("2018-01-01", "a.parquet")], START + 1).unwrap(), None);

    // Of another length, or not the newest any more.
    world.blobs().replace(&path, b"{}").unwrap();
    let refused = IcebergLog::open(&world.blobs, &world.list, "E", Some("dt")).unwrap_err().to_string();
    assert!(refused.contains("Iceberg metadata") && refused.contains("move the folder away"), "{refused}");
    world.blobs().replace(&path, &before).unwrap();
    world.blobs().replace(&version_path("E", 2), &before).unwrap();
    assert!(!IcebergLog::open(&world.blobs, &world.list, "E", Some("dt")).unwrap().is_current());
}

#[test]
fn a_stopped_run_is_completed() {
    let mut world = World::new();
    world.publish(&[("2018-01-01", "a.parquet")], START).unwrap();
    // Before its metadata.
    world.list(&world.list.column_ids.clone().unwrap(), &[("2018-01-01", "b.parquet")]);
    let found = log_findings(world.blobs(), &world.list).unwrap();
    assert!(found[0].is_behind && found[0].damage.contains("a.parquet"), "{found:?}");
    let log = IcebergLog::open(&world.blobs, &world.list, "E", Some("dt")).unwrap();
    assert!(!log.is_current());
    assert_eq!(log.write(&mut world.list, at_time(START + 1), &Pinned::default()).unwrap(), Some(2));

    // Between the metadata and the number of it, and so before the list.
    world.list.logged = None;
    world.blobs().replace("exports/E/metadata/version-hint.text", b"1").unwrap();
    let log = IcebergLog::open(&world.blobs, &world.list, "E", Some("dt")).unwrap();
    assert_eq!(log.write(&mut world.list, at_time(START + 2), &Pinned::default()).unwrap(), None);
    assert_eq!(world.blobs().read("exports/E/metadata/version-hint.text").unwrap().unwrap(), "2");
    assert!(IcebergLog::open(&world.blobs, &world.list, "E", Some("dt")).unwrap().is_current());
}

#[test]
fn the_later_of_two_writers_writes_behind_the_first() {
    let mut world = World::new();
    world.publish(&[("2018-01-01", "a.parquet")], START).unwrap();
    let mut other = world.list.clone();
    world.publish(&[("2018-01-01", "b.parquet")], START + 1).unwrap();
    let part = world.part(other.column_ids.as_ref().unwrap(), "2018-01-02", "c.parquet");
    other.parts.insert("2018-01-02".to_owned(), part);
    let log = IcebergLog::open(&world.blobs, &other, "E", Some("dt")).unwrap();
    assert_eq!(log.write(&mut other, at_time(START + 2), &Pinned::default()).unwrap(), Some(3));
    let both = ["dt=2018-01-01/a.parquet", "dt=2018-01-02/c.parquet"];
    assert_eq!(world.snapshots()[2], both, "the list counts");
}

#[test]
fn replaced_files_go_after_their_retention_with_the_snapshots_that_name_them() {
    let mut world = World::new();
    world.publish(&[("2018-01-01", "a.parquet"), ("2018-01-02", "b.parquet")], START).unwrap();
    world.publish(&[("2018-01-01", "c.parquet"), ("2018-01-02", "b.parquet")], START + HOUR).unwrap();
    assert_eq!(world.expired(START + 3 * HOUR - 1), [""; 0]);
    let gone = world.expired(START + 3 * HOUR);
    let of = |ending: &str| gone.iter().filter(|path| path.ends_with(ending)).count();
    assert_eq!((gone.len(), gone[0].as_str()), (4, "exports/E/dt=2018-01-01/a.parquet"));
    assert_eq!((of("-m0.avro"), of("/v1.metadata.json")), (1, 1), "{gone:?}");

    forget_expired(world.blobs(), "E", START + 3 * HOUR).unwrap();
    world.blobs().delete_all(&gone).unwrap();
    assert_eq!(world.snapshots(), [["dt=2018-01-01/c.parquet", "dt=2018-01-02/b.parquet"]]);
    assert_eq!(world.expired(START + 3 * HOUR), [""; 0]);
    assert_eq!(log_findings(world.blobs(), &world.list).unwrap(), []);

    // A run takes expired ones out, too, and not those of a tag.
    world.publish(&[("2018-01-02", "b.parquet")], START + 4 * HOUR).unwrap();
    let mut tagged = world.metadata();
    let first = tagged.snapshots()[0]["snapshot-id"].clone();
    tagged.value["refs"]["kept"] = serde_json::json!({ "snapshot-id": first, "type": "tag" });
    tagged.version += 1;
    assert!(create(world.blobs(), "E", &tagged).unwrap());
    world.publish(&[("2018-01-02", "d.parquet")], START + 10 * HOUR).unwrap();
    world.publish(&[("2018-01-02", "e.parquet")], START + 20 * HOUR).unwrap();
    assert_eq!(world.snapshots().len(), 3, "that of the tag, the last, and the one before");
    let gone = world.expired(START + 30 * HOUR);
    assert!(gone.iter().any(|path| path.ends_with("d.parquet")), "{gone:?}");
    assert!(!gone.iter().any(|path| path.ends_with("c.parquet") || path.ends_with("b.parquet")), "{gone:?}");
}

#[test]
fn a_table_at_another_place_begins_anew() {
    let mut world = World::new();
    world.publish(&[("2018-01-01", "a.parquet")], START).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let blobs = LocalBlobs::new(elsewhere.path().to_owned());
    let there: &dyn Blobs = &blobs;
    for path in ["dt=2018-01-01/a.parquet", "metadata/v1.metadata.json"] {
        let path = format!("exports/E/{path}");
        there.replace(&path, &world.blobs().read(&path).unwrap().unwrap()).unwrap();
    }
    for name in world.blobs().list("exports/E/metadata").unwrap() {
        let path = format!("exports/E/metadata/{name}");
        there.replace(&path, &world.blobs().read(&path).unwrap().unwrap()).unwrap();
    }
    let found = log_findings(there, &world.list).unwrap();
    assert!(found[0].is_behind && found[0].damage.contains("was written for file://"), "{found:?}");
    let log = IcebergLog::open(there, &world.list, "E", Some("dt")).unwrap();
    assert!(!log.is_current());
    assert_eq!(log.write(&mut world.list, at_time(START + 1), &Pinned::default()).unwrap(), Some(2));
    let metadata = Metadata::newest(there, "E").unwrap().unwrap();
    assert_eq!((metadata.snapshots().len(), metadata.location()), (1, log.location.as_str()));
    assert_eq!(log_findings(there, &world.list).unwrap(), []);
}

#[test]
fn names_of_columns_are_sound_in_avro() {
    assert_eq!(
        (avro_name("dt").as_str(), avro_name("my-day").as_str(), avro_name("1").as_str()),
        ("dt", "my_x2Dday", "_x31")
    );
}

#[test]
fn a_catalog_is_told_what_it_lacks_and_nothing_else() {
    let mut world = World::new();
    let (a, b) = (("2018-01-01", "a.parquet"), ("2018-01-02", "b.parquet"));
    world.publish(&[a], START).unwrap();
    let first = world.metadata().value;
    let table = |world: &World| CatalogTable::open(world.blobs(), "E").unwrap().unwrap();
    let Some(CatalogRequest::Register { metadata }) = table(&world).request(None).unwrap() else { panic!() };
    assert!(
        metadata.starts_with("file:///") && metadata.ends_with("/exports/E/metadata/v1.metadata.json"),
        "{metadata}"
    );
    assert_eq!(table(&world).request(Some(&first)), Ok(None));

    world.publish(&[a, b], START + 1000).unwrap();
    let second = world.metadata().value;
    let Some(CatalogRequest::Commit { requirements, updates }) = table(&world).request(Some(&first)).unwrap() else {
        panic!()
    };
    assert_eq!(requirements[1]["snapshot-id"], first["current-snapshot-id"]);
    let actions: Vec<&Value> = updates.iter().map(|update| &update["action"]).collect();
    assert_eq!(actions, ["add-snapshot", "set-snapshot-ref"]);
    assert_eq!(updates[1]["snapshot-id"], second["current-snapshot-id"]);

    // An expired snapshot is taken out, but not one that a tag of the catalog names; what others have added stays.
    let mut theirs = second.clone();
    theirs["properties"]["owner"] = "plant".into();
    world.publish(&[b], START + 3 * HOUR).unwrap();
    let removed = |theirs: &Value| {
        let Some(CatalogRequest::Commit { updates, .. }) = table(&world).request(Some(theirs)).unwrap() else {
            panic!()
        };
        assert!(updates.iter().all(|update| update["action"] != "set-properties"), "{updates:?}");
        updates
            .last()
            .filter(|update| update["action"] == "remove-snapshots")
            .map(|update| update["snapshot-ids"].clone())
    };
    assert_eq!(removed(&theirs), Some(serde_json::json!([first["current-snapshot-id"]])));
    theirs["refs"]["month"] = serde_json::json!({ "snapshot-id": first["current-snapshot-id"], "type": "tag" });
    assert_eq!(removed(&theirs), None);

    // The former head goes with the commit that moves it, unless a tag names it, too.
    theirs["refs"]["month"]["snapshot-id"] = second["current-snapshot-id"].clone();
    assert_eq!(removed(&theirs), Some(serde_json::json!([first["current-snapshot-id"]])));

    let conflict = |key: &str, value: Value| {
        let mut theirs = second.clone();
        theirs[key] = value;
        table(&world).request(Some(&theirs)).unwrap_err()
    };
    assert!(matches!(conflict("table-uuid", "x".into()), CatalogConflict::OtherTable { .. }));
    assert!(matches!(conflict("last-sequence-number", 9.into()), CatalogConflict::OtherWriter { .. }));
    let mut snapshots = second["snapshots"].clone();
    snapshots[1]["manifest-list"] = "file:///e/metadata/snap-1-0-5f2e8c7a-0000.avro".into();
    let id = second["current-snapshot-id"].as_i64().unwrap();
    assert_eq!(conflict("snapshots", snapshots), CatalogConflict::OtherWriter { snapshot: id });
    let mut schemas = second["schemas"].clone();
    schemas[0]["fields"][0]["type"] = "string".into();
    assert_eq!(conflict("schemas", schemas), CatalogConflict::OtherForm);
}
