//! Parts with several files: split, unchanged, replaced as a whole, reduced to one file, withdrawn.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, UInt64Type};
use tidetable_export::{
    ColumnTypes, FileFormat, FileMode, LogPlace, LogTimes, OpenLog, Outcome, Pinned, PublishRequest, PublishedPart,
    SNAPSHOT_RETENTION, TableLog, adopt, publish, record, stranded, sweep,
};
use tidetable_store::published::{Part, Published};

use super::read;
use super::world::{DAY, START, World};

const METERS: usize = 400;
const ROWS: usize = METERS * 96;
/// A file size that splits the day.
const SMALL: u64 = 16 << 10;
const ALL: &str = "SELECT * FROM SENSOR";

/// A day of many readings, each of `kwh`.
fn day(kwh: u64) -> String {
    let mut csv = String::from("meter,ts,kwh\n");
    for meter in 1..=METERS {
        for at in 0..96 {
            csv.push_str(&format!(
                "{meter},2018-01-01T{:02}:{:02}:00Z,{}\n",
                at / 4,
                at % 4 * 15,
                (meter + at) as u64 * kwh
            ));
        }
    }
    csv
}

struct How<'a> {
    run: &'a str,
    folder: &'a str,
    file_size: u64,
    format: FileFormat,
    mode: FileMode<'a>,
    keep_old: bool,
}

const USUAL: How<'_> = How {
    run: "run-1",
    folder: "SENSOR_20180101",
    file_size: SMALL,
    format: FileFormat::Parquet,
    mode: FileMode::Replace,
    keep_old: false,
};

async fn publish_as(world: &World, sql: &str, previous: Option<&Part>, how: &How<'_>) -> PublishedPart {
    let session = world.session().restricted(START..START + DAY);
    let sources = BTreeMap::from([("SENSOR".to_owned(), world.store().snapshot("SENSOR").unwrap().version().number)]);
    let request = PublishRequest {
        store: &world.store(),
        session: &session,
        export: "SENSOR_DAY",
        job: "smart-meters",
        folder: how.folder,
        label: "2018-01-01",
        sql,
        params: &[],
        query: "q1",
        sources: &sources,
        now: START,
        run: how.run,
        previous,
        format: how.format,
        types: ColumnTypes::default(),
        day: None,
        column_ids: None,
        file_size: how.file_size,
        mode: how.mode,
        keep_old: how.keep_old,
        apart: None,
    };
    publish(&request).await.unwrap()
}

/// Brings the Delta log up to the list; the version written.
fn write_log(world: &World, published: &mut Published) -> Option<u64> {
    let store = world.store();
    let place = LogPlace { log: TableLog::Delta, folder: "SENSOR_20180101", day: None };
    let log = OpenLog::open(store.blobs().as_ref(), published, place).unwrap();
    log.write(published, LogTimes { now: START, clock: START, retention: SNAPSHOT_RETENTION }, &Pinned::default())
        .unwrap()
}

fn folder(world: &World) -> PathBuf {
    world.root().join("exports/SENSOR_20180101")
}

fn names(world: &World) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder(world)).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The meters in each file of a part, in the order of the file names.
fn meters(world: &World, part: &Part) -> Vec<u64> {
    let mut meters = Vec::new();
    for path in part.paths() {
        let (rows, _) = read(&world.root().join(path));
        meters.extend(rows.column_by_name("meter").unwrap().as_primitive::<UInt64Type>().values());
    }
    meters
}

#[tokio::test]
async fn a_large_day_is_cut_and_its_files_are_in_order() {
    let world = World::with_csv(&day(1));
    let made = publish_as(&world, ALL, None, &USUAL).await;
    assert_eq!(made.outcome, Outcome::Created);
    let part = made.part.unwrap();
    assert!(part.more.len() >= 2, "{part:?}");
    let files: Vec<String> = part.files().into_iter().map(|file| file.file).collect();
    assert_eq!(files[0], "part-run-1-00000.parquet");
    assert_eq!(names(&world), files);
    assert_eq!((part.rows as usize, meters(&world, &part).len()), (ROWS, ROWS));
    assert!(meters(&world, &part).is_sorted());
    for (file, path) in part.files().iter().zip(part.paths()) {
        let path = world.root().join(path);
        assert_eq!(file.bytes, fs::metadata(&path).unwrap().len());
        assert!(file.bytes < 4 * SMALL, "{}", file.bytes);
        assert_eq!(read(&path).1.row_group(0).sorting_columns().unwrap().len(), 2);
    }
    assert_eq!(part.bytes, part.files().iter().map(|file| file.bytes).sum::<u64>());
    // The same day again, by another run, and as one file.
    let again = publish_as(&world, ALL, Some(&part), &How { run: "run-2", ..USUAL }).await;
    assert_eq!((again.outcome, again.part.as_ref().map(Part::paths)), (Outcome::Unchanged, Some(part.paths())));
    assert_eq!(names(&world), files);
    assert!(again.obsolete.is_empty());
    let one = publish_as(&world, ALL, Some(&part), &How { run: "run-3", file_size: u64::MAX, ..USUAL }).await;
    assert_eq!((one.outcome, names(&world)), (Outcome::Replaced, vec!["part-0.parquet".to_owned()]));
    let one = one.part.unwrap();
    assert_eq!(meters(&world, &one), meters(&world, &one));
    assert_eq!(meters(&world, &one).len(), ROWS);
    let cut = publish_as(&world, ALL, Some(&one), &How { run: "run-4", ..USUAL }).await;
    assert_eq!((cut.outcome, names(&world).len()), (Outcome::Replaced, files.len()));
    assert!(world.store().blobs().leftovers("").unwrap().is_empty());
}

#[tokio::test]
async fn lists_and_sql_know_all_files() {
    let world = World::with_csv(&day(1));
    let (store, mut published) =
        (world.store(), Published::load(world.store().blobs().as_ref(), "SENSOR_DAY").unwrap());
    let made = publish_as(&world, ALL, None, &USUAL).await;
    record(&store, &mut published, "smart-meters", std::slice::from_ref(&made)).unwrap();
    let loaded = Published::load(store.blobs().as_ref(), "SENSOR_DAY").unwrap();
    assert_eq!((loaded.format, loaded.parts.get("2018-01-01")), (2, made.part.as_ref()));
    for name in ["SENSOR_DAY", "SENSOR_20180101"] {
        let query = format!("SELECT count(*), count(DISTINCT meter) FROM exports.\"{name}\"");
        let batches: Vec<RecordBatch> = world.session().sql(&query).await.unwrap().collect().await.unwrap();
        let column = |at: usize| batches[0].column(at).as_primitive::<Int64Type>().value(0) as usize;
        assert_eq!((column(0), column(1)), (ROWS, METERS));
    }
    // With one file the list is one that earlier builds can read.
    let one = publish_as(&world, ALL, made.part.as_ref(), &How { run: "run-2", file_size: u64::MAX, ..USUAL }).await;
    record(&store, &mut published, "smart-meters", std::slice::from_ref(&one)).unwrap();
    assert_eq!(Published::load(store.blobs().as_ref(), "SENSOR_DAY").unwrap().format, 1);
    sweep(&store, &one.obsolete).unwrap();
    assert_eq!(names(&world), ["part-0.parquet"]);
}

#[test]
fn who_lists_the_folder_sees_one_day_or_the_other() {
    let world = World::with_csv(&day(1));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut part = runtime.block_on(publish_as(&world, ALL, None, &USUAL)).part.unwrap();
    let done = AtomicBool::new(false);
    let (folder, seen) = (folder(&world), Mutex::new(BTreeSet::new()));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let inode = || fs::metadata(&folder).unwrap().ino();
                let before = inode();
                let Ok(entries) = fs::read_dir(&folder) else { panic!("no folder") };
                let names: BTreeSet<String> =
                    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
                // The temporary file of the next one is there too.
                let names = names.into_iter().filter(|name| !name.starts_with('.')).collect::<Vec<_>>();
                // After opening a directory that was swapped since, its files may be gone.
                if names.is_empty() && inode() != before {
                    continue;
                }
                seen.lock().unwrap().insert(names);
            }
        });
        for round in 2..8 {
            world.load("a.csv", &day(round));
            let run = format!("run-{round}");
            let file_size = if round % 3 == 0 { u64::MAX } else { SMALL };
            let how = How { run: &run, file_size, ..USUAL };
            part = runtime.block_on(publish_as(&world, ALL, Some(&part), &how)).part.unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    let seen = seen.into_inner().unwrap();
    assert!(seen.len() > 2, "{seen:?}");
    for names in seen {
        let runs: BTreeSet<&str> = names.iter().filter_map(|name| name.rsplit_once('-').map(|(run, _)| run)).collect();
        assert_eq!(runs.len(), 1, "{names:?}");
        assert!(names.len() == 1 || names.len() > 2, "{names:?}");
    }
}

#[tokio::test]
async fn what_a_run_left_that_was_stopped_is_replaced() {
    let world = World::with_csv(&day(1));
    // Several files in place without a list.
    publish_as(&world, ALL, None, &USUAL).await;
    fs::write(folder(&world).join("_SUCCESS"), "").unwrap();
    let one = publish_as(&world, ALL, None, &How { run: "run-2", file_size: u64::MAX, ..USUAL }).await;
    assert_eq!(
        (one.outcome, names(&world)),
        (Outcome::Created, vec!["_SUCCESS".to_owned(), "part-0.parquet".to_owned()])
    );
    // One of several files differs from the list.
    let part = publish_as(&world, ALL, one.part.as_ref(), &How { run: "run-3", ..USUAL }).await.part.unwrap();
    fs::write(world.root().join(&part.paths()[1]), "other").unwrap();
    let mended = publish_as(&world, ALL, Some(&part), &How { run: "run-4", ..USUAL }).await;
    assert_eq!(mended.outcome, Outcome::Replaced);
    assert_eq!(meters(&world, &mended.part.unwrap()).len(), ROWS);
    assert!(names(&world).contains(&"_SUCCESS".to_owned()));
    // Files of a day that no list names are removed with its last rows.
    let none = "SELECT * FROM SENSOR WHERE meter > 1000";
    let emptied = publish_as(&world, none, None, &How { run: "run-5", ..USUAL }).await;
    assert_eq!((emptied.outcome, names(&world)), (Outcome::Withdrawn, vec!["_SUCCESS".to_owned()]));
    let part = publish_as(&world, ALL, emptied.part.as_ref(), &How { run: "run-6", ..USUAL }).await.part.unwrap();
    // A day without rows is withdrawn with all its files.
    let empty = publish_as(&world, none, Some(&part), &USUAL).await;
    assert_eq!((empty.outcome, names(&world)), (Outcome::Withdrawn, vec!["_SUCCESS".to_owned()]));
}

#[tokio::test]
async fn every_form_of_rows_is_cut() {
    let world = World::with_csv(&day(1));
    for (format, ending) in [(FileFormat::Csv, "csv"), (FileFormat::Arrow, "arrow")] {
        let how = How { format, folder: ending, file_size: 100 << 10, ..USUAL };
        let part = publish_as(&world, ALL, None, &how).await.part.unwrap();
        assert!(part.more.len() >= 3, "{part:?}");
        assert!(part.files().iter().all(|file| file.file.ends_with(ending)));
        if format == FileFormat::Csv {
            let texts: Vec<String> =
                part.paths().iter().map(|path| fs::read_to_string(world.root().join(path)).unwrap()).collect();
            assert!(texts.iter().all(|text| text.starts_with("meter,ts,kwh\n")));
            assert_eq!(texts.iter().map(|text| text.lines().count() - 1).sum::<usize>(), ROWS);
        }
    }
}

#[tokio::test]
async fn rows_are_added_and_replaced_across_files() {
    let world = World::with_csv(&day(1));
    let how = How { mode: FileMode::Append, ..USUAL };
    let (store, mut published) =
        (world.store(), Published::load(world.store().blobs().as_ref(), "SENSOR_DAY").unwrap());
    let first = publish_as(&world, ALL, None, &how).await;
    record(&store, &mut published, "smart-meters", std::slice::from_ref(&first)).unwrap();
    // With `force`, listed or not, rows are not appended twice.
    let again = publish_as(&world, ALL, first.part.as_ref(), &How { run: "run-2", ..how }).await;
    assert_eq!(
        (again.outcome, again.part.unwrap().paths()),
        (Outcome::Unchanged, first.part.as_ref().unwrap().paths())
    );
    world.load("a.csv", &day(2));
    let keys = ["meter".to_owned(), "ts".to_owned()];
    let how = How { run: "run-3", mode: FileMode::Upsert(&keys), ..USUAL };
    let replaced = publish_as(&world, "SELECT * FROM SENSOR WHERE meter <= 10", first.part.as_ref(), &how).await;
    let part = replaced.part.unwrap();
    assert_eq!((part.rows as usize, part.more.is_empty()), (ROWS, false));
    assert_eq!(meters(&world, &part).into_iter().filter(|meter| *meter <= 10).count(), 960);
}

#[tokio::test]
async fn files_that_stay_lie_beside_each_other_and_the_log_tells_which_are_meant() {
    let world = World::with_csv(&day(1));
    // Delta has no unsigned integers.
    let sql = "SELECT CAST(meter AS BIGINT) AS meter, ts, kwh FROM SENSOR";
    let how = How { keep_old: true, folder: "SENSOR_20180101", ..USUAL };
    let store = world.store();
    let mut published = Published::load(store.blobs().as_ref(), "SENSOR_DAY").unwrap();
    let first = publish_as(&world, sql, None, &how).await;
    record(&store, &mut published, "smart-meters", std::slice::from_ref(&first)).unwrap();
    assert_eq!(write_log(&world, &mut published), Some(0));
    let before = names(&world);
    assert!(
        before.contains(&"part-run-1.parquet".to_owned()) && before.contains(&"part-run-1-00001.parquet".to_owned())
    );
    // The same again leaves its files to be swept.
    let again = publish_as(&world, sql, first.part.as_ref(), &How { run: "run-2", ..how }).await;
    assert_eq!(again.outcome, Outcome::Unchanged);
    sweep(&store, &again.obsolete).unwrap();
    assert_eq!(names(&world), before);
    world.load("a.csv", &day(2));
    let changed = publish_as(&world, sql, first.part.as_ref(), &How { run: "run-3", ..how }).await;
    record(&store, &mut published, "smart-meters", std::slice::from_ref(&changed)).unwrap();
    assert_eq!(write_log(&world, &mut published), Some(1));
    let log = store.blobs().read("exports/SENSOR_20180101/_delta_log/00000000000000000001.json").unwrap().unwrap();
    let log = String::from_utf8(log.to_vec()).unwrap();
    let files = first.part.unwrap().files().len();
    assert_eq!((log.matches("\"add\"").count(), log.matches("\"remove\"").count()), (files, files));
    assert!(before.iter().all(|name| names(&world).contains(name)));
}

#[tokio::test]
async fn files_without_a_list_are_taken_as_one_part() {
    let world = World::with_csv(&day(1));
    let store = world.store();
    let part = publish_as(&world, ALL, None, &USUAL).await.part.unwrap();
    let adopted = |export| adopt(&store, export, "SENSOR_20180101", "2018-01-01", FileFormat::Parquet);
    let found = adopted("SENSOR_DAY").unwrap().unwrap();
    let contents = |part: &Part| -> Vec<(String, u64, String)> {
        part.files().into_iter().map(|file| (file.file, file.bytes, file.checksum)).collect()
    };
    assert_eq!((contents(&found.part), found.part.rows, found.part.bytes), (contents(&part), part.rows, part.bytes));
    assert_eq!(adopted("OTHER").unwrap(), None);
    let stranded = stranded(&store, "SENSOR_20180101").unwrap().unwrap();
    assert_eq!((stranded.paths, stranded.export.as_str()), (part.paths(), "SENSOR_DAY"));
    // A day with any file missing is not adopted.
    let away = world.root().join("away");
    for (at, path) in part.paths().iter().enumerate() {
        fs::rename(world.root().join(path), &away).unwrap();
        match adopted("SENSOR_DAY") {
            Ok(None) => assert_eq!(at, 0),
            Ok(Some(found)) => panic!("{at}: {found:?}"),
            Err(error) => assert!(error.to_string().contains("not all of them"), "{error}"),
        }
        fs::rename(&away, world.root().join(path)).unwrap();
    }
    assert!(adopted("SENSOR_DAY").unwrap().is_some());
}

#[tokio::test]
async fn a_query_reads_all_of_a_day_or_says_that_it_is_gone() {
    let world = World::with_csv(&day(1));
    let (store, mut published) =
        (world.store(), Published::load(world.store().blobs().as_ref(), "SENSOR_DAY").unwrap());
    let made = publish_as(&world, ALL, None, &USUAL).await;
    record(&store, &mut published, "smart-meters", std::slice::from_ref(&made)).unwrap();
    let session = world.session();
    let count = "SELECT count(*) FROM exports.SENSOR_DAY";
    let counted = async |query: &str| -> Result<i64, String> {
        let frame = session.sql(query).await.map_err(|error| error.to_string())?;
        let batches = frame.collect().await.map_err(|error| error.to_string())?;
        Ok(batches[0].column(0).as_primitive::<Int64Type>().value(0))
    };
    assert_eq!(counted(count).await, Ok(ROWS as i64));
    // Published again during the session: its list is read again.
    world.load("a.csv", &day(2));
    let again = publish_as(&world, ALL, made.part.as_ref(), &How { run: "run-2", ..USUAL }).await;
    assert!(counted(count).await.unwrap_err().contains("repeat the query"), "no list of it yet");
    record(&store, &mut published, "smart-meters", std::slice::from_ref(&again)).unwrap();
    assert_eq!(counted(count).await, Ok(ROWS as i64));
    fs::remove_file(world.root().join(&again.part.unwrap().paths()[1])).unwrap();
    assert!(counted(count).await.unwrap_err().contains("run its job"));
}
