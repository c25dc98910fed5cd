//! PyIceberg, Polars and DuckDB read an Iceberg table as each run leaves it.

use serde_json::{Value, json};

use crate::harness::bucket::{BUCKET, InBucket, SECRET};
use crate::harness::system::{iceberg_python, python, run_script};
use crate::harness::{Project, Ran, json_lines, repository};

pub const JOB: &str = r#"
name = "j"

[sources.readings]
files = ["in/*.csv"]
time = "ts"

[sources.readings.columns]
meter = "uint64"
state = "uint64"
ts = "timestamp"
price = "decimal(10,2)"
kwh = "float64"
note = "text"

[tables.T]
row_key = "{meter:020}#{ts:%Y%m%d%H%M}"

[tables.T.families.M]
columns = [{ each = "*", except = ["meter", "ts"], qualifier = "{column}", value = "{value}" }]

[exports.E]
per = "day"
name = "E/dt={day}"
iceberg = true
query = { sql = "select cast(meter as bigint) as meter, cast(state as tinyint unsigned) as state, ts, price, note from T order by meter, ts" }
"#;

const HEADER: &str = "meter,state,ts,price,kwh,note\n";
pub const FIRST: &str = "1,255,2026-03-28T22:30:00Z,1.50,0.5,\"a,b\"\n";
pub const SECOND: &str = "2,1,2026-03-29T23:30:00.250Z,,,n\n";
pub const THIRD: &str = "2,2,2026-03-30T00:00:00Z,3.00,-2,x\n";

pub fn write(project: &Project, rows: &[&str]) {
    project.write("in/a.csv", format!("{HEADER}{}", rows.concat()));
}

/// A project whose export has been published, of three days.
fn published(more: &str) -> Project {
    let project = Project::new("j", &JOB.replace("iceberg = true\n", &format!("iceberg = true\n{more}")));
    write(&project, &[FIRST, SECOND, THIRD]);
    project.ok(&["run", "j"]);
    project
}

/// Replaces the last day: its row gets this price.
fn replace_day(project: &Project, price: &str) {
    write(project, &[FIRST, SECOND, &THIRD.replace("3.00", price)]);
    project.ok(&["run", "j"]);
}

/// What the engines say of the table; nothing of those that cannot be installed.
fn seen(project: &Project, what: &[&str]) -> Vec<Value> {
    let folder = project.path("data/exports/E");
    let mut args = vec![what[0], folder.to_str().unwrap()];
    args.extend(&what[1..]);
    let pythons = [python(project, "pyiceberg, polars, pyarrow"), iceberg_python(project)];
    let said = pythons.into_iter().flatten().map(|python| run_script(&python, "interop/iceberg/check.py", &args));
    said.flat_map(|said| json_lines(&said)).collect()
}

/// The column of rows as texts, sorted.
pub fn column(said: &Value, name: &str) -> Vec<Option<String>> {
    let columns = said["columns"].as_array().unwrap();
    let at = columns.iter().position(|column| column == name).unwrap_or_else(|| panic!("{name}: {said}"));
    let values = said["rows"].as_array().unwrap().iter().map(|row| row[at].as_str().map(str::to_owned));
    let mut values: Vec<_> = values.collect();
    values.sort();
    values
}

/// Checks that engines see the rows of `exports.E`.
fn engines_agree(project: &Project) {
    let ours =
        project.sql("select cast(meter as varchar) as meter, cast(price as varchar) as price, note from exports.E");
    for engine in seen(project, &["now"]) {
        for name in ["meter", "price", "note"] {
            let mut values: Vec<_> = ours.iter().map(|row| row[name].as_str().map(str::to_owned)).collect();
            values.sort();
            assert_eq!(column(&engine, name), values, "{engine}");
        }
    }
}

pub fn newest(project: &Project) -> (String, Value) {
    let version = project.read("data/exports/E/metadata/version-hint.text");
    let path = format!("data/exports/E/metadata/v{version}.metadata.json");
    let value = serde_json::from_str(&project.read(&path)).unwrap();
    (path, value)
}

#[test]
fn engines_see_each_run_as_a_snapshot() {
    let project = published("");
    let said = project.ok(&["check", "j"]);
    assert!(said.contains("state, UInt8 in the query, is Int32 in the files"), "{said}");
    engines_agree(&project);
    for engine in seen(&project, &["now"]) {
        assert_eq!(engine["columns"], json!(["meter", "state", "ts", "price", "note", "dt"]), "{engine}");
        let days = ["2026-03-28", "2026-03-29", "2026-03-30"].map(|day| Some(day.to_owned()));
        assert_eq!(column(&engine, "dt"), days, "{engine}");
    }
    replace_day(&project, "4.00");
    engines_agree(&project);
    write(&project, &[FIRST, SECOND]);
    project.ok(&["run", "j"]);
    engines_agree(&project);
    write(&project, &[FIRST, SECOND, "9,3,2026-04-01T10:00:00Z,7.25,1,new\n"]);
    project.ok(&["run", "j"]);
    engines_agree(&project);

    for (number, prices) in [(0, &["1.50", "3.00"][..]), (1, &["1.50", "4.00"]), (2, &["1.50"]), (3, &["1.50", "7.25"])]
    {
        let mut expected: Vec<_> = prices.iter().map(|price| Some((*price).to_owned())).collect();
        expected.insert(0, None);
        for engine in seen(&project, &["snapshot", &number.to_string()]) {
            assert_eq!(column(&engine, "price"), expected, "{number}: {engine}");
        }
    }
    let operations = ["append", "overwrite", "delete", "append"];
    for (said, operation) in seen(&project, &["snapshots"]).iter().zip(operations) {
        assert_eq!(said["operation"], operation, "{said}");
    }
    // The command sees the same, and nothing is written when nothing changes.
    let before = project.files("data/exports");
    project.ok(&["run", "j"]);
    project.ok(&["run", "j", "--force"]);
    assert_eq!(project.files("data/exports").len(), before.len());
    for command in [&["verify", "--exports"][..], &["doctor"], &["status"]] {
        project.ok(command);
    }
}

#[test]
fn filters_skip_files() {
    let project = published("");
    for (condition, rows, files) in [
        ("dt = '2026-03-30'", 1, 1),
        ("dt >= '2026-03-29'", 2, 2),
        ("ts > '2026-03-29T23:30:00.249+00:00'", 2, 2),
        ("meter > 1", 2, 2),
        ("note = 'a,b'", 1, 1),
        ("state >= 255", 1, 1),
        ("price is null", 1, 1),
    ] {
        for engine in seen(&project, &["where", condition]) {
            assert_eq!(engine["rows"].as_array().unwrap().len(), rows, "{condition}: {engine}");
            assert_eq!(engine["files"], files, "{condition}: {engine}");
        }
    }
}

#[test]
fn a_column_keeps_its_id_and_a_dropped_one_leaves_it_to_nobody() {
    let project = published("");
    let query = "price, note from T";
    let ask = |columns: &str| {
        let job = JOB.replace(query, &format!("{columns} from T"));
        project.write("jobs/j/job.toml", job);
        project.ok(&["run", "j"]);
        let (_, metadata) = newest(&project);
        let current = metadata["current-schema-id"].as_u64().unwrap();
        let schemas = metadata["schemas"].as_array().unwrap();
        let schema = schemas.iter().find(|schema| schema["schema-id"] == current).unwrap();
        let fields = schema["fields"].as_array().unwrap().iter();
        fields
            .map(|field| (field["name"].as_str().unwrap().to_owned(), field["id"].as_u64().unwrap()))
            .collect::<Vec<_>>()
    };
    let id = |fields: &[(String, u64)], name: &str| fields.iter().find(|(field, _)| field == name).map(|(_, id)| *id);

    let added = ask("price, note, kwh");
    assert_eq!((id(&added, "note"), id(&added, "dt"), id(&added, "kwh")), (Some(5), Some(6), Some(7)));
    engines_agree(&project);
    let dropped = ask("price, kwh");
    assert_eq!((id(&dropped, "note"), id(&dropped, "kwh")), (None, Some(7)));
    let again = ask("price, note, kwh");
    assert_eq!((id(&again, "note"), id(&again, "kwh"), id(&again, "price")), (Some(8), Some(7), Some(4)));
    engines_agree(&project);
    // Files have the ids, and older snapshots their columns.
    let said = seen(&project, &["snapshots"]);
    let columns: Vec<usize> = said.iter().map(|said| said["columns"].as_array().unwrap().len()).collect();
    assert!(columns.is_empty() || columns == [6, 7, 6, 7, 7], "{said:?}");
}

#[test]
fn a_sealed_day_without_ids_is_read_by_names() {
    let job = JOB.replace("[tables.T.families.M]\n", "[tables.T.families.M]\ngc = \"maxage=30d\"\n");
    let project = Project::new("j", &job.replace("iceberg = true", "delta = true"));
    write(&project, &[FIRST, SECOND, THIRD]);
    project.ok(&["run", "j", "--now", "2026-04-01T00:00:00Z"]);
    project.write("jobs/j/job.toml", job);
    project.ok(&["run", "j", "--now", "2026-04-28T12:00:00Z"]);
    assert!(project.files("data/exports/E/dt=2026-03-28").len() == 1, "it was published before, and stays");
    engines_agree(&project);
    for engine in seen(&project, &["now"]) {
        assert_eq!(column(&engine, "meter").len(), 3, "{engine}");
        let days = ["2026-03-28", "2026-03-29", "2026-03-30"].map(|day| Some(day.to_owned()));
        assert_eq!(column(&engine, "dt"), days, "{engine}");
    }
}

#[test]
fn a_run_that_was_killed_before_its_metadata_is_completed() {
    let project = published("");
    replace_day(&project, "4.00");
    // As it is before the metadata is written.
    let hint = "data/exports/E/metadata/version-hint.text";
    std::fs::remove_file(project.path("data/exports/E/metadata/v2.metadata.json")).unwrap();
    project.write(hint, "1");
    for command in [&["verify", "--exports"][..], &["doctor"], &["status"]] {
        let ran = project.run(command);
        let said = ran.stdout + &ran.stderr;
        assert!(
            said.contains("exports/E/metadata") && said.contains("readers see replaced rows"),
            "{command:?}: {said}"
        );
    }
    project.ok(&["run", "j"]);
    assert_eq!(project.read(hint), "2");
    engines_agree(&project);
    for command in [&["verify", "--exports"][..], &["doctor"], &["status"]] {
        project.ok(command);
    }

    // Between the metadata and its number.
    project.write(hint, "1");
    let list = project.read("data/exports/E.json");
    let mut unnoted: Value = serde_json::from_str(&list).unwrap();
    unnoted.as_object_mut().unwrap().remove("logged");
    project.write("data/exports/E.json", unnoted.to_string());
    project.ok(&["run", "j"]);
    assert_eq!((project.read(hint).as_str(), project.read("data/exports/E.json") == list), ("2", true));

    // A table that was moved away begins anew.
    std::fs::remove_dir_all(project.path("data/exports/E/metadata")).unwrap();
    project.ok(&["run", "j"]);
    engines_agree(&project);
}

#[test]
fn metadata_is_not_read_when_nothing_is_published() {
    let project = published("");
    let (path, _) = newest(&project);
    let text = project.read(&path);
    project.write(&path, " ".repeat(text.len()));
    project.ok(&["run", "j"]);
    project.write(&path, "{}");
    let said = project.fails(4, &["run", "j"]);
    assert!(said.contains("Iceberg metadata") && said.contains("move the folder away"), "{said}");
    project.write(&path, text);
    project.ok(&["run", "j"]);
    engines_agree(&project);
}

#[test]
fn replaced_files_stay_for_their_retention_and_go_with_clean() {
    let project = published("snapshot_retention = \"1h\"\n");
    replace_day(&project, "4.00");
    let before = project.files("data/exports").len();
    assert!(project.ok(&["clean"]).contains("nothing to remove"));

    // An hour later.
    let (path, mut metadata) = newest(&project);
    let earlier = |value: &mut Value| *value = json!(value.as_i64().unwrap() - 3_600_001);
    for key in ["snapshots", "snapshot-log", "metadata-log"] {
        metadata[key].as_array_mut().unwrap().iter_mut().for_each(|entry| earlier(&mut entry["timestamp-ms"]));
    }
    earlier(&mut metadata["last-updated-ms"]);
    project.write(&path, metadata.to_string());
    let said = project.ok(&["clean", "--output", "json"]);
    let gone: Vec<String> = json_lines(&said).iter().map(|file| file["file"].as_str().unwrap().to_owned()).collect();
    let of = |ending: &str| gone.iter().filter(|file| file.ends_with(ending)).count();
    assert_eq!((of(".parquet"), of("-m0.avro"), of("v1.metadata.json"), gone.len()), (1, 1, 1, 4), "{said}");
    assert!(json_lines(&said).iter().all(|file| file["what"] == "replaced file"), "{said}");
    assert_eq!(project.files("data/exports").len(), before, "only listed");
    project.ok(&["clean", "--yes"]);
    assert!(project.ok(&["clean"]).contains("nothing to remove"));
    assert_eq!(newest(&project).1["snapshots"].as_array().unwrap().len(), 1);
    engines_agree(&project);
    project.ok(&["verify", "--exports"]);
    project.ok(&["run", "j"]);
    engines_agree(&project);
}

#[test]
fn a_restored_table_is_written_for_its_place() {
    let project = published("");
    replace_day(&project, "4.00");
    project.ok(&["backup", "vault"]);
    std::fs::rename(project.path("data"), project.path("before")).unwrap();
    project.ok(&["restore", "vault"]);
    assert!(!project.path("data/exports/E/metadata").exists(), "paths name a place");
    project.ok(&["run", "j"]);
    engines_agree(&project);
    project.ok(&["verify", "--exports"]);

    // A root that was moved with its metadata.
    std::fs::remove_dir_all(project.path("data")).unwrap();
    std::fs::rename(project.path("before"), project.path("moved")).unwrap();
    std::os::unix::fs::symlink("moved", project.path("data")).unwrap();
    let ran = project.run(&["verify", "--exports"]);
    let said = ran.stdout + &ran.stderr;
    assert!(said.contains("was written for"), "{said}");
    project.ok(&["run", "j"]);
    engines_agree(&project);
    project.ok(&["verify", "--exports"]);
}

#[test]
fn what_cannot_be_an_iceberg_table_is_refused() {
    for (from, to, wrong) in [
        ("iceberg = true\n", "iceberg = true\ndelta = true\n", "an export is one table"),
        ("iceberg = true\n", "iceberg = true\nday_column = false\n", "a column of their day"),
        ("iceberg = true\n", "iceberg = true\nmode = \"append\"\n", "not added to an Iceberg table"),
        ("iceberg = true\n", "iceberg = true\nsnapshot_retention = \"59m\"\n", "at least `1h`"),
        ("iceberg = true\n", "iceberg = true\nsnapshot_retention = \"7d\"\ndelta_retention = \"7d\"\n", "former name"),
        ("iceberg = true\n", "snapshot_retention = \"7d\"\n", "for exports with `delta` or `iceberg`"),
        ("E/dt={day}", "E_{day:%Y%m%d}", "one folder of Parquet files"),
        ("note from T", "note, cast(ts as date) as DT from T", "a column DT of its own"),
        ("note from T", "cast(ts as time) as at from T", "CAST(at AS VARCHAR) AS at"),
    ] {
        let project = Project::new("j", &JOB.replace(from, to));
        write(&project, &[FIRST]);
        let said = project.fails(2, &["check", "j"]);
        assert!(said.contains(wrong), "{to}: {said}");
    }
}

#[test]
fn a_query_and_hours_are_tables_too() {
    for (per, name) in [("query", "E"), ("hour", "E/dt={day}/hour={hour:%H}"), ("month", "E/month={month:%Y-%m}")] {
        let job = JOB.replace("per = \"day\"\nname = \"E/dt={day}\"", &format!("per = \"{per}\"\nname = \"{name}\""));
        let project = Project::new("j", &job);
        write(&project, &[FIRST, SECOND, THIRD]);
        project.ok(&["run", "j"]);
        for engine in seen(&project, &["now"]) {
            let prices = [None, Some("1.50".to_owned()), Some("3.00".to_owned())];
            assert_eq!(column(&engine, "price"), prices, "{per}: {engine}");
            let has_day = engine["columns"].as_array().unwrap().contains(&json!("dt"));
            assert_eq!(has_day, per == "hour", "{per}: {engine}");
        }
        project.ok(&["verify", "--exports"]);
    }
}

#[test]
fn engines_read_a_table_in_a_bucket() {
    let place = InBucket::new(Project::new("j", JOB));
    write(&place.project, &[FIRST, SECOND, THIRD]);
    place.ok(&["run", "j"]);
    write(&place.project, &[FIRST, &SECOND.replace(",,,n", ",8.00,,n"), THIRD]);
    place.ok(&["run", "j"]);
    let ours = place.sql("select count(*) as n, cast(sum(price) as varchar) as price from exports.E");
    assert_eq!(ours, [json!({ "n": 3, "price": "12.50" })]);
    let versions = place.server.keys(BUCKET).into_iter().filter(|key| key.ends_with(".metadata.json")).count();
    assert_eq!(versions, 2);

    let url = format!("s3://{BUCKET}/prod/exports/E");
    let script = repository().join("tests/e2e/interop/iceberg/check.py");
    let project = &place.project;
    for python in [python(project, "pyiceberg, polars, pyarrow"), iceberg_python(project)].into_iter().flatten() {
        for (what, prices) in [(&["now"][..], ["1.50", "3.00", "8.00"]), (&["snapshot", "0"], ["", "1.50", "3.00"])] {
            let mut command = std::process::Command::new(&python);
            command.env("ENDPOINT", place.server.endpoint()).env("SECRET", SECRET);
            command.arg("-B").arg(&script).args([what[0], &url]).args(&what[1..]);
            let ran = Ran::of(&mut command);
            assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
            for engine in json_lines(&ran.stdout) {
                let prices = prices.map(|price| Some(price.to_owned()).filter(|price| !price.is_empty()));
                assert_eq!(column(&engine, "price"), prices, "{engine}");
            }
        }
    }
    // A run that is killed before its metadata; the next one, of another machine, completes it.
    let key = "prod/exports/E/metadata/v2.metadata.json";
    place.remove(key);
    place.ends(1, &["verify", "--exports"]);
    place.ok(&["run", "j"]);
    place.ok(&["verify", "--exports"]);
    assert!(place.server.object(BUCKET, key).is_some());
}
