//! The log as it is written, followed, and found damaged.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields};
use parquet::arrow::ArrowWriter;
use tempfile::TempDir;
use tidetable_blobs::LocalBlobs;
use tidetable_store::published::Part;

use super::*;
use crate::log::expired::expired_files;
use crate::log::log_findings;

const LOG: &str = "exports/E/_delta_log";

const HOUR: i64 = 3_600_000_000;

/// Times of a run at `clock` of a table with the retention of Delta.
fn at(clock: i64) -> LogTimes {
    LogTimes { now: 0, clock, retention: SNAPSHOT_RETENTION }
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
        let (name, columns) = ("E".to_owned(), vec![("v".to_owned(), DataType::Int64.to_string())]);
        Self { _folder: folder, blobs, list: Published { name, columns, ..Published::default() } }
    }

    fn blobs(&self) -> &dyn Blobs {
        &self.blobs
    }

    /// Lists days, each with its file, as a run that publishes them, and brings the log up to it.
    fn publish(&mut self, days: &[(&str, &str)], times: LogTimes) -> Result<Option<u64>> {
        let log = DeltaLog::open(&self.blobs, &self.list, "E")?;
        self.list.parts = days.iter().map(|(day, file)| ((*day).to_owned(), self.part(day, file))).collect();
        log.write(&mut self.list, times)
    }

    /// A part of one file, which is written.
    fn part(&self, day: &str, file: &str) -> Part {
        self.blobs().replace(&format!("exports/E/dt={day}/{file}"), b"rows").unwrap();
        let (folder, checksum) = (format!("E/dt={day}"), file.to_owned());
        Part { folder, file: file.to_owned(), bytes: 4, checksum, ..Part::default() }
    }

    /// The log as the next run finds it, without what the list notes of it.
    fn state(&self) -> LogState {
        LogState::read(&self.blobs, LOG).unwrap()
    }

    /// The paths that an entry adds and removes.
    fn actions(&self, version: u64) -> (Vec<String>, Vec<String>) {
        let bytes = self.blobs().read(&entry(LOG, version)).unwrap().unwrap();
        let lines: Vec<Value> =
            bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let paths =
            |action: &str| lines.iter().filter_map(|line| Some(line[action]["path"].as_str()?.to_owned())).collect();
        (paths("add"), paths("remove"))
    }

    /// Writes a checkpoint as another engine does: a row for each action, structs that are null where the action is another,
    /// paths without percent encoding.
    fn foreign_checkpoint(&self, name: &str, paths: &[&str], schema: Option<&str>) {
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
        self.blobs().replace(&format!("{LOG}/{name}"), &bytes).unwrap();
    }
}

#[test]
fn a_replaced_file_is_removed_from_a_log_that_a_checkpoint_holds() {
    for parts in [1, 2] {
        let mut world = World::new();
        let before = [("2018-01-01", "a.parquet"), ("2018-01-02", "b.parquet")];
        assert_eq!(world.publish(&before, at(0)).unwrap(), Some(0));
        let state = world.state();
        let schema = state.schema();
        let paths = ["dt=2018-01-01/a.parquet", "dt=2018-01-02/b.parquet"];
        if parts == 1 {
            world.foreign_checkpoint("00000000000000000000.checkpoint.parquet", &paths, schema);
        } else {
            let name = |at| format!("00000000000000000000.checkpoint.000000000{at}.0000000002.parquet");
            world.foreign_checkpoint(&name(1), &paths[..1], schema);
            world.foreign_checkpoint(&name(2), &paths[1..], None);
        }
        world.blobs().delete(&entry(LOG, 0)).unwrap();
        assert_eq!(log_findings(world.blobs(), &world.list).unwrap(), []);

        let mut behind = world.list.clone();
        behind.parts.insert("2018-01-01".to_owned(), world.part("2018-01-01", "c.parquet"));
        let found = log_findings(world.blobs(), &behind).unwrap();
        assert!(found[0].is_behind && found[0].damage.contains("dt=2018-01-01/a.parquet"), "{found:?}");
        let after = [("2018-01-01", "c.parquet"), ("2018-01-02", "b.parquet")];
        assert_eq!(world.publish(&after, at(0)).unwrap(), Some(1));
        let (added, removed) = world.actions(1);
        assert_eq!(added, ["dt=2018-01-01/c.parquet"]);
        // As the checkpoint has it.
        assert_eq!(removed, ["dt=2018-01-01/a.parquet"]);
        assert_eq!(log_findings(world.blobs(), &world.list).unwrap(), []);
        assert_eq!(world.publish(&after, at(0)).unwrap(), None);
    }
}

#[test]
fn a_file_is_removed_in_the_spelling_of_its_entry() {
    let mut world = World::new();
    let before = [("2018-01-01", "a.parquet"), ("2018-01-02", "b.parquet")];
    world.publish(&before, at(0)).unwrap();
    // Earlier versions wrote an encoded equals sign; another engine then removed the file in its own spelling.
    let text = String::from_utf8(world.blobs().read(&entry(LOG, 0)).unwrap().unwrap().to_vec()).unwrap();
    world.blobs().replace(&entry(LOG, 0), text.replace("dt=2018-01-01/", "dt%3D2018-01-01/").as_bytes()).unwrap();
    world.blobs().replace(&entry(LOG, 1), b"{\"remove\":{\"path\":\"dt=2018-01-01/a.parquet\"}}\n").unwrap();
    assert_eq!(world.publish(&before, at(0)).unwrap(), None, "it is there for those who tell spellings apart");

    let after = [("2018-01-01", "a.parquet"), ("2018-01-02", "c.parquet")];
    assert_eq!(world.publish(&after, at(0)).unwrap(), Some(2));
    assert_eq!(world.list.logged, None, "the list does not know of the spelling");
    let after = [("2018-01-01", "d.parquet"), ("2018-01-02", "c.parquet")];
    assert_eq!(world.publish(&after, at(0)).unwrap(), Some(3));
    let (added, removed) = world.actions(3);
    assert_eq!(added, ["dt=2018-01-01/d.parquet"]);
    assert_eq!(removed, ["dt%3D2018-01-01/a.parquet"]);
    assert!(world.list.logged.is_some());
}

#[test]
fn a_log_with_a_gap_is_refused() {
    let mut world = World::new();
    for file in ["a.parquet", "b.parquet", "c.parquet"] {
        world.publish(&[("2018-01-01", file)], at(0)).unwrap();
    }
    let open =
        |world: &World, list: &Published| DeltaLog::open(world.blobs(), list, "E").err().map(|error| error.to_string());
    assert_eq!(open(&world, &world.list), None);
    world.blobs().delete(&entry(LOG, 1)).unwrap();
    let refused = open(&world, &world.list).unwrap();
    assert!(refused.contains("entry 1 is missing") && refused.contains("move the folder away"), "{refused}");
    let found = log_findings(world.blobs(), &world.list).unwrap();
    assert!(!found[0].is_behind && found[0].path == LOG, "{found:?}");
    // Of the second version of the format.
    let name = "00000000000000000001.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json";
    world.blobs().replace(&format!("{LOG}/{name}"), b"{}").unwrap();
    assert!(open(&world, &world.list).unwrap().contains("a form that is not read"));
}

#[test]
fn a_log_that_the_list_notes_is_not_read() {
    let mut world = World::new();
    for file in ["a.parquet", "b.parquet", "c.parquet"] {
        world.publish(&[("2018-01-01", file)], at(0)).unwrap();
    }
    // Not even the newest entry: only its length counts.
    let length = world.blobs().read(&entry(LOG, 2)).unwrap().unwrap().len();
    for version in 0..2 {
        world.blobs().replace(&entry(LOG, version), b"garbage").unwrap();
    }
    world.blobs().replace(&entry(LOG, 2), " ".repeat(length).as_bytes()).unwrap();
    assert!(DeltaLog::open(world.blobs(), &world.list, "E").unwrap().is_current());
    assert_eq!(world.publish(&[("2018-01-01", "d.parquet")], at(0)).unwrap(), Some(3));
    assert_eq!(
        world.actions(3),
        (vec!["dt=2018-01-01/d.parquet".to_owned()], vec!["dt=2018-01-01/c.parquet".to_owned()])
    );
}

#[test]
fn a_log_that_another_engine_wrote_is_read() {
    let mut world = World::new();
    world.publish(&[("2018-01-01", "a.parquet"), ("2018-01-02", "b.parquet")], at(0)).unwrap();
    world.blobs().replace(&entry(LOG, 1), b"{\"remove\":{\"path\":\"dt=2018-01-02/b.parquet\"}}\n").unwrap();
    assert!(!DeltaLog::open(world.blobs(), &world.list, "E").unwrap().is_current());
    assert_eq!(world.publish(&[("2018-01-01", "c.parquet"), ("2018-01-02", "b.parquet")], at(0)).unwrap(), Some(2));
    let (added, removed) = world.actions(2);
    assert_eq!(added, ["dt=2018-01-01/c.parquet", "dt=2018-01-02/b.parquet"]);
    assert_eq!(removed, ["dt=2018-01-01/a.parquet"]);

    // Between the look and the write, too.
    let log = DeltaLog::open(&world.blobs, &world.list, "E").unwrap();
    world.blobs.create_new(&entry(LOG, 3), b"{\"remove\":{\"path\":\"dt=2018-01-02/b.parquet\"}}\n").unwrap();
    world.list.parts.insert("2018-01-03".to_owned(), world.part("2018-01-03", "d.parquet"));
    assert_eq!(log.write(&mut world.list, at(0)).unwrap(), Some(4));
    assert_eq!(world.actions(4).0, ["dt=2018-01-02/b.parquet", "dt=2018-01-03/d.parquet"]);
    assert_eq!(log_findings(world.blobs(), &world.list).unwrap(), []);
}

#[test]
fn a_checkpoint_holds_the_table_every_hundred_versions() {
    let mut world = World::new();
    for version in 0..=205_u64 {
        let file = format!("{version}.parquet");
        let days = [("2018-01-01", file.as_str()), ("2018-01-02", "b.parquet")];
        assert_eq!(world.publish(&days, at(version as i64 * HOUR)).unwrap(), Some(version));
        assert_eq!(world.list.logged.as_ref().unwrap().checkpoint, Some(version / 100 * 100).filter(|at| *at > 0));
    }
    let whole = world.state();
    assert_eq!((whole.checkpoint, whole.version), (Some(200), Some(205)));
    let last = world.blobs().read(&format!("{LOG}/_last_checkpoint")).unwrap().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&last).unwrap()["version"], 200);

    // Entries before it are not needed.
    for version in 0..200 {
        world.blobs().delete(&entry(LOG, version)).unwrap();
    }
    world.blobs().delete(&format!("{LOG}/00000000000000000100.checkpoint.parquet")).unwrap();
    let state = world.state();
    assert_eq!((&state.files, &state.metadata), (&whole.files, &whole.metadata));
    let add = &state.files["dt=2018-01-02/b.parquet"]["dt=2018-01-02/b.parquet"];
    assert_eq!(
        (&add["partitionValues"]["dt"], &add["size"], &add["dataChange"]),
        (&"2018-01-02".into(), &4.into(), &false.into())
    );
    assert_eq!(add["tags"]["checksum"], "b.parquet");
    // Removed files are in it as long as they stay.
    let removed = state.removed.keys().filter(|path| *path != "dt=2018-01-01/0.parquet").count();
    assert_eq!(removed, 7 * 24 + 1 + 5, "{:?}", state.removed.keys());
    assert_eq!(log_findings(world.blobs(), &world.list).unwrap(), []);
    world.list.logged = None;
    assert_eq!(world.publish(&[("2018-01-02", "c.parquet")], at(0)).unwrap(), Some(206));
}

#[test]
fn a_checkpoint_of_a_table_with_actions_of_other_engines_is_left_to_them() {
    let mut world = World::new();
    world.publish(&[("2018-01-01", "a.parquet")], at(0)).unwrap();
    world.blobs().replace(&entry(LOG, 1), b"{\"txn\":{\"appId\":\"stream\",\"version\":7}}\n").unwrap();
    for version in 2..=101 {
        world.publish(&[("2018-01-01", &format!("{version}.parquet"))], at(0)).unwrap();
    }
    assert_eq!(world.state().checkpoint, None);
}

#[test]
fn replaced_files_go_after_their_retention() {
    let mut world = World::new();
    let retention = 2 * HOUR;
    let times = |clock| LogTimes { retention, ..at(clock) };
    let now = 1_700_000_000_000_000;
    world.publish(&[("2018-01-01", "a.parquet"), ("2018-01-02", "b.parquet")], times(now)).unwrap();
    world.publish(&[("2018-01-01", "c.parquet")], times(now + HOUR)).unwrap();
    assert_eq!(world.state().retention(), Some(retention));
    let expired = |world: &World, clock| expired_files(world.blobs(), &world.list, clock).unwrap();
    assert_eq!(expired(&world, now + 3 * HOUR - 1), [""; 0]);
    let gone = ["exports/E/dt=2018-01-01/a.parquet", "exports/E/dt=2018-01-02/b.parquet"];
    assert_eq!(expired(&world, now + 3 * HOUR), gone);

    // The job file names another retention, which the log takes over.
    world.publish(&[("2018-01-01", "c.parquet")], at(now + 2 * HOUR)).unwrap();
    assert_eq!((world.state().retention(), world.actions(2).0.len()), (None, 0));
    assert_eq!(expired(&world, now + 3 * HOUR), [""; 0]);
    assert_eq!(expired(&world, now + HOUR + SNAPSHOT_RETENTION), gone);

    // A file of a killed run, and one that is not ours.
    for name in ["part-01KQ.parquet", "mine.parquet", "part-00000-1.c000.snappy.parquet"] {
        world.blobs().replace(&format!("exports/E/dt=2018-01-03/{name}"), b"rows").unwrap();
    }
    let written = world.blobs().stat("exports/E/dt=2018-01-03/part-01KQ.parquet").unwrap().unwrap().modified.unwrap();
    assert!(!expired(&world, written + SNAPSHOT_RETENTION - 1).iter().any(|path| path.contains("2018-01-03")));
    let late = expired(&world, written + SNAPSHOT_RETENTION);
    assert_eq!(late[2..], ["exports/E/dt=2018-01-03/part-01KQ.parquet"]);
}
