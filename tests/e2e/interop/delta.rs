//! deltalake and DuckDB read a Delta table as each run leaves it.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::system::{delta_python, python_script, run_script};
use crate::harness::{Project, json_lines};

const JOB: &str = r#"
name = "j"

[sources.readings]
files = ["in/*.csv"]
time = "ts"

[sources.readings.columns]
meter = "uint64"
state = "uint64"
port = "uint64"
ts = "timestamp"
price = "decimal(10,2)"
note = "text"

[tables.T]
row_key = "{meter:020}#{ts:%Y%m%d%H%M}"

[tables.T.families.M]
columns = [{ each = "*", except = ["meter", "ts"], qualifier = "{column}", value = "{value}" }]

[exports.E]
per = "day"
name = "E/dt={day}"
delta = true
query = { sql = """
select meter, cast(state as tinyint unsigned) as state, cast(port as int unsigned) as port, ts, price, note
from T order by meter, ts""" }
"#;

/// A project whose export has been published, of three days.
fn published(more: &str) -> Project {
    let project = Project::new("j", &JOB.replace("delta = true\n", &format!("delta = true\n{more}")));
    project.write(
        "in/a.csv",
        "meter,state,port,ts,price,note\n\
         18446744073709551615,255,4294967295,2026-03-28T22:30:00Z,1.50,\"a,b\"\n\
         2,1,80,2026-03-29T23:30:00.250Z,,n\n\
         2,2,443,2026-03-30T00:00:00Z,3.00,x\n",
    );
    project.ok(&["run", "j"]);
    project
}

/// Replaces a day: its only row gets this price.
fn replace_day(project: &Project, price: &str) {
    let text = project.read("in/a.csv");
    let kept: Vec<&str> = text.lines().filter(|line| !line.contains("2026-03-30")).collect();
    project.write("in/a.csv", format!("{}\n2,2,443,2026-03-30T00:00:00Z,{price},x\n", kept.join("\n")));
    project.ok(&["run", "j"]);
}

/// What deltalake and DuckDB say of the table; nothing of one that cannot be installed.
fn seen(project: &Project, what: &[&str]) -> Vec<Value> {
    let folder = project.path("data/exports/E");
    let mut args = vec![what[0], folder.to_str().unwrap()];
    args.extend(&what[1..]);
    let script = "interop/delta_check.py";
    let mut said = Vec::new();
    said.extend(python_script(project, "deltalake, pyarrow", script, &args).iter().flat_map(|said| json_lines(said)));
    if let Some(python) = delta_python(project) {
        said.extend(json_lines(&run_script(&python, script, &args)));
    }
    said
}

/// Checks that engines see the rows of `exports.E`.
fn engines_agree(project: &Project) {
    let mut ours: Vec<(String, Option<String>)> = project
        .sql("select cast(meter as varchar) as meter, cast(price as varchar) as price from exports.E order by 1, 2")
        .iter()
        .map(|row| (row["meter"].as_str().unwrap().to_owned(), row["price"].as_str().map(str::to_owned)))
        .collect();
    ours.sort();
    for engine in seen(project, &["now"]) {
        let columns: Vec<&str> =
            engine["columns"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        let at = |name: &str| columns.iter().position(|column| *column == name).unwrap();
        let (meter, price) = (at("meter"), at("price"));
        let rows = engine["rows"].as_array().unwrap();
        let mut theirs: Vec<(String, Option<String>)> = rows
            .iter()
            .map(|row| (row[meter].as_str().unwrap().to_owned(), row[price].as_str().map(str::to_owned)))
            .collect();
        theirs.sort();
        assert_eq!(theirs, ours, "{engine}");
    }
}

#[test]
fn unsigned_integers_are_signed_in_a_delta_table() {
    let project = published("");
    let said = project.ok(&["check", "j"]);
    for note in [
        "meter, UInt64 in the query, is Decimal128(20, 0) in the files",
        "state, UInt8 in the query, is Int16 in the files",
        "port, UInt32 in the query, is Int64 in the files",
    ] {
        assert!(said.contains(note), "{said}");
    }
    for engine in seen(&project, &["now"]) {
        let decimal = json!(if engine["engine"] == "duckdb" { "DECIMAL(20,0)" } else { "decimal128(20, 0)" });
        assert_eq!(engine["types"][0], decimal, "{engine}");
        let rows = engine["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 3, "{engine}");
        let greatest = rows.iter().find(|row| row[0] == "18446744073709551615").unwrap().as_array().unwrap();
        assert!(greatest.contains(&json!("255")) && greatest.contains(&json!("4294967295")), "{greatest:?}");
    }
    engines_agree(&project);
    // The command asks for the files of the list, and sees the same types.
    assert_eq!(project.sql("select max(meter) as m from exports.E")[0]["m"].to_string(), "18446744073709551615");
}

#[test]
fn a_type_that_delta_lacks_is_refused_before_anything_is_loaded() {
    let job = JOB.replace("ts, price, note", "ts, cast(ts as time) as at");
    let project = Project::new("j", &job);
    project.write("in/a.csv", "meter,state,port,ts,price,note\n1,1,1,2026-03-28T22:30:00Z,1.50,a\n");
    for command in ["check", "plan", "run"] {
        let said = project.fails(2, &[command, "j"]);
        assert!(said.contains("Time64") && said.contains("CAST(at AS VARCHAR) AS at"), "{command}: {said}");
    }
    assert!(!project.path("data/tables").exists());
}

#[test]
fn entries_tell_the_bounds_of_their_files() {
    let project = published("");
    let Some(said) = seen(&project, &["stats"]).into_iter().find(|said| said["engine"] == "deltalake") else { return };
    let first = &said["files"][0];
    assert_eq!((&first["num_records"], &first["null_count.price"]), (&json!(1), &json!(0)), "{first}");
    assert_eq!((&first["min.meter"], &first["max.state"]), (&json!("18446744073709551615"), &json!(255)), "{first}");
    assert_eq!((&first["max.ts"], &first["min.note"]), (&json!("2026-03-28 22:30:00+00:00"), &json!("a,b")), "{first}");
    assert_eq!((&first["min.price"], &said["files"][1]["null_count.price"]), (&json!("1.50"), &json!(1)), "{said}");
    // Filters by which files are skipped find what is there.
    for (condition, rows) in [
        ("ts = timestamp '2026-03-29 23:30:00.25'", 1),
        ("ts > timestamp '2026-03-29 23:30:00.249'", 2),
        ("price <= 1.50", 1),
        ("price is null", 1),
        ("meter > 2", 1),
        ("note >= 'n'", 2),
        ("dt = date '2026-03-30'", 1),
    ] {
        for engine in seen(&project, &["where", condition]) {
            assert_eq!(engine["rows"].as_array().unwrap().len(), rows, "{condition}: {engine}");
        }
    }
}

#[test]
fn engines_read_our_checkpoint_and_a_run_writes_behind_it() {
    let project = published("");
    let log = "data/exports/E/_delta_log";
    // As engines write them that only note that they were there.
    for version in 1..99 {
        project.write(&format!("{log}/{version:020}.json"), "{\"commitInfo\":{\"operation\":\"VACUUM END\"}}\n");
    }
    replace_day(&project, "4.00");
    assert!(!project.path(&format!("{log}/_last_checkpoint")).exists());
    replace_day(&project, "5.00");
    assert!(project.path(&format!("{log}/00000000000000000100.checkpoint.parquet")).is_file());
    engines_agree(&project);

    // Whoever cleans up removes the entries that a checkpoint holds.
    for version in 0..=100 {
        std::fs::remove_file(project.path(&format!("{log}/{version:020}.json"))).unwrap();
    }
    engines_agree(&project);
    for engine in seen(&project, &["where", "ts >= timestamp '2026-03-30 00:00:00'"]) {
        assert_eq!(engine["rows"].as_array().unwrap().len(), 1, "the checkpoint has bounds and partitions: {engine}");
    }
    replace_day(&project, "6.00");
    replace_day(&project, "7.00");
    assert_eq!(entries(&project), [101, 102]);
    engines_agree(&project);
    for command in [&["verify", "--exports"][..], &["doctor"], &["status"]] {
        project.ok(command);
    }
}

/// The versions with an entry.
fn entries(project: &Project) -> Vec<u64> {
    let files = project.files("data/exports/E/_delta_log").into_keys();
    files.filter_map(|path| Path::new(&path).file_name()?.to_str()?.strip_suffix(".json")?.parse().ok()).collect()
}

#[test]
fn replaced_files_stay_for_their_retention_and_go_with_clean() {
    let project = published("delta_retention = \"1h\"\n");
    replace_day(&project, "4.00");
    let before = project.files("data/exports").len();
    let said = project.ok(&["clean"]);
    assert!(said.contains("nothing to remove"), "{said}");
    if let Some(said) = seen(&project, &["version", "0"]).first() {
        assert_eq!(said["rows"].as_array().unwrap().len(), 3, "a reader of the version before");
    }

    // An hour later.
    let path = "data/exports/E/_delta_log/00000000000000000001.json";
    let text = project.read(path);
    let removed = text.lines().find(|line| line.contains("\"remove\"")).unwrap();
    let removed: Value = serde_json::from_str(removed).unwrap();
    let time = removed["remove"]["deletionTimestamp"].as_i64().unwrap();
    project.write(path, text.replace(&time.to_string(), &(time - 3_600_001).to_string()));
    let said = project.ok(&["clean", "--output", "json"]);
    let [file] = json_lines(&said).try_into().unwrap();
    let gone = removed["remove"]["path"].as_str().unwrap();
    assert_eq!((&file["file"], &file["what"]), (&json!(format!("exports/E/{gone}")), &json!("replaced file")));
    assert_eq!(project.files("data/exports").len(), before, "only listed");
    project.ok(&["clean", "--yes"]);
    assert_eq!(project.files("data/exports").len(), before - 1);
    assert!(project.ok(&["clean"]).contains("nothing to remove"));
    engines_agree(&project);
    project.ok(&["verify", "--exports"]);
    let published = project.files("data/exports");
    project.ok(&["run", "j"]);
    assert_eq!(project.files("data/exports"), published, "nothing is missing");
}

#[test]
fn a_withdrawn_day_is_removed_from_the_log() {
    let project = published("");
    project.ok(&["delete", "T", "--row", "00000000000000000002#202603300000", "--yes"]);
    project.ok(&["run", "j"]);
    engines_agree(&project);
    assert_eq!(project.sql("select count(*) as n from exports.E")[0]["n"], 2);
}

#[test]
fn the_retention_of_replaced_files_is_checked() {
    for (more, wrong) in [
        ("delta_retention = \"59m\"\n", "at least `1h`"),
        ("delta_retention = \"soon\"\n", "a number and a unit"),
        ("delta_retention = 7\n", "a string"),
    ] {
        let project = Project::new("j", &JOB.replace("delta = true\n", &format!("delta = true\n{more}")));
        let said = project.fails(2, &["check", "j"]);
        assert!(said.contains(wrong) && said.contains("delta_retention"), "{said}");
    }
    let project = Project::new("j", &JOB.replace("delta = true\n", "delta_retention = \"7d\"\n"));
    assert!(project.fails(2, &["check", "j"]).contains("write `delta = true`, or leave it out"));
}

#[test]
fn a_log_is_not_read_when_nothing_is_published() {
    let project = published("");
    replace_day(&project, "4.00");
    let first = "data/exports/E/_delta_log/00000000000000000000.json";
    let text = project.read(first);
    project.write(first, "garbage");
    project.ok(&["run", "j"]);
    project.write(first, text);
    // An entry that is gone is noticed, and written again.
    let second = "data/exports/E/_delta_log/00000000000000000001.json";
    std::fs::remove_file(project.path(second)).unwrap();
    project.ok(&["run", "j"]);
    assert!(project.path(second).is_file());
    engines_agree(&project);
    // So is a log that was moved away.
    std::fs::remove_dir_all(project.path("data/exports/E/_delta_log")).unwrap();
    project.ok(&["run", "j"]);
    engines_agree(&project);
}
