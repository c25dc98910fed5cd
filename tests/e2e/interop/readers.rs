//! DuckDB, Polars and pyarrow read published files.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::system::python_script;
use crate::harness::{Project, json_lines};

const JOB: &str = r#"
name = "j"

[sources.readings]
files = ["in/*.csv"]
time = "ts"

[sources.readings.columns]
meter = "uint64"
ts = "timestamp"
price = "decimal(10,2)"
kwh = "float64"
note = "text"
ok = "bool"

[tables.T]
row_key = "{meter:03}#{ts:%Y%m%d}"

[tables.T.families.M]
columns = [{ each = "*", except = ["meter", "ts"], qualifier = "{column}", value = "{value}" }]
"#;

const SELECT: &str = "select meter, ts, price, kwh, note, ok, cast(ts as date) as day from T order by meter, ts";

/// A project with readings of two days, and this export.
pub fn project(export: &str) -> Project {
    let project = Project::new("j", &format!("{JOB}\n[exports.E]\n{export}\n"));
    let rows = "1,2026-03-28T22:30:00Z,1.50,0.1,\"a,b\",true\n2,2026-03-28T23:30:00.250Z,,,n,\n2,2026-03-29T00:00:00Z,3.00,-2,x,false\n";
    project.write("in/a.csv", format!("meter,ts,price,kwh,note,ok\n{rows}"));
    project
}

/// What the engines see; nothing where they cannot be installed.
pub fn check(project: &Project, what: &str, path: &Path) -> Option<Vec<Value>> {
    let modules = "duckdb, polars, pyarrow, deltalake";
    let said = python_script(project, modules, "interop/readers_check.py", [Path::new(what), path])?;
    Some(json_lines(&said))
}

#[test]
fn engines_read_the_same_types_and_rows() {
    let project = project(&format!("per = \"day\"\nname = \"E_{{day:%Y%m%d}}\"\nquery = {{ sql = \"{SELECT}\" }}"));
    project.run_job("j");
    let Some(said) = check(&project, "types", &project.path("data/exports/E_20260328/part-0.parquet")) else { return };
    let [arrow, polars, duckdb, parquet] = said.as_slice() else { panic!("{said:?}") };
    let arrow_types =
        json!(["uint64", "timestamp[us, tz=UTC]", "decimal128(10, 2)", "double", "string", "bool", "date32[day]"]);
    assert_eq!(arrow["types"], arrow_types);
    let rows = json!([
        ["1", "2026-03-28 22:30:00+00:00", "1.50", "0.1", "a,b", "True", "2026-03-28"],
        ["2", "2026-03-28 23:30:00.250000+00:00", null, null, "n", null, "2026-03-28"]
    ]);
    assert_eq!(arrow["rows"], rows);
    let polars_types = json!([
        "UInt64",
        "Datetime(time_unit='us', time_zone='UTC')",
        "Decimal(precision=10, scale=2)",
        "Float64",
        "String",
        "Boolean",
        "Date"
    ]);
    assert_eq!((&polars["types"], &polars["rows"]), (&polars_types, &json!(2)));
    let duckdb_types =
        json!(["UBIGINT", "TIMESTAMP WITH TIME ZONE", "DECIMAL(10,2)", "DOUBLE", "VARCHAR", "BOOLEAN", "DATE"]);
    assert_eq!((&duckdb["types"], &duckdb["rows"]), (&duckdb_types, &json!(2)));
    assert_eq!(parquet["compression"], "ZSTD");
    assert_eq!(
        (&parquet["sorted"], &parquet["index"], &parquet["bloom"]),
        (&json!([0, 6, 1]), &json!(true), &json!(true))
    );

    let text = project.read("jobs/j/job.toml").replace("per = \"day\"", "per = \"day\"\nformat = \"arrow\"");
    project.write("jobs/j/job.toml", text);
    project.run_job("j");
    let said = check(&project, "types", &project.path("data/exports/E_20260328/part-0.arrow")).unwrap();
    assert_eq!((&said[0]["types"], &said[0]["rows"]), (&arrow_types, &rows));
    assert_eq!((&said[1]["types"], &said[1]["rows"]), (&polars_types, &json!(2)));
}

#[test]
fn hive_partition_column_is_only_in_directory_names() {
    let project = project(
        "per = \"day\"\nname = \"E/dt={day}\"\nquery = { sql = \"select meter, price from T order by meter\" }",
    );
    project.run_job("j");
    let Some(said) = check(&project, "hive", &project.path("data/exports/E")) else { return };
    assert_eq!(said[0]["days"], json!([["2026-03-28", 2], ["2026-03-29", 1]]));
    assert_eq!((&said[1]["columns"], &said[1]["rows"]), (&json!(["meter", "price", "dt"]), &json!(3)));
}

#[test]
fn bigtable_parquet_has_the_schema_of_dataflow() {
    let project = project(
        "per = \"query\"\nname = \"CELLS\"\nformat = \"bigtable-parquet\"\nquery = { sql = \"select * from cells.T\" }",
    );
    project.run_job("j");
    assert!(project.ok(&["export", "T", "--format", "bigtable-parquet", "-O", "t.parquet"]).contains("9 cells"));
    let Some(said) = check(&project, "bigtable", &project.path("t.parquet")) else { return };
    let schema = "required group field_id=-1 root {\n  required binary field_id=-1 key;\n  required group field_id=-1 cells (List) {\n    \
                  repeated group field_id=-1 array {\n      required binary field_id=-1 family (String);\n      required binary field_id=-1 \
                  qualifier;\n      required int64 field_id=-1 timestamp;\n      required binary field_id=-1 value;\n    }\n  }\n}";
    assert_eq!(said[0]["schema"], schema);
    assert_eq!(said[0]["compression"], "SNAPPY");
    let cells = said[1]["cells"].as_array().unwrap();
    assert_eq!((said[1]["rows"].as_u64(), cells.len()), (Some(3), 9));
    assert_eq!(cells[0], json!(["001#20260328", "M", "kwh", 1_774_737_000_000_000_u64, "0.1"]));
    let of_job = check(&project, "bigtable", &project.path("data/exports/CELLS/part-0.bigtable.parquet")).unwrap();
    assert_eq!(of_job[1], said[1]);
    let mut all = project.sql("select cast(row_key as varchar) as key, family, cast(qualifier as varchar) as q, cast(value as varchar) as v from cells.T");
    all.truncate(cells.len());
    let ours: Vec<Value> = all.iter().map(|cell| json!([cell["key"], cell["family"], cell["q"], cell["v"]])).collect();
    let theirs: Vec<Value> = cells.iter().map(|cell| json!([cell[0], cell[1], cell[2], cell[4]])).collect();
    assert_eq!(ours, theirs);
}

#[test]
fn cell_formats_require_the_columns_of_cells() {
    let project =
        project("per = \"query\"\nname = \"CELLS\"\nformat = \"cbt-csv\"\nquery = { sql = \"select * from T\" }");
    let ran = project.run(&["run", "j"]);
    assert_eq!(ran.code, Some(4));
    assert!(
        ran.stderr.contains("cells have the columns row_key, family, qualifier, timestamp, value"),
        "{}",
        ran.stderr
    );
    for args in
        [["export", "T", "-O", "nowhere/x.parquet"], ["export", "X", "-O", "x.parquet"], ["export", "T", "-O", ".."]]
    {
        let ran = project.run(&args);
        assert!(matches!(ran.code, Some(1 | 2)), "{args:?} {}", ran.stderr);
    }
    let wrote =
        project.ok(&["export", "-c", "select meter from T", "--format", "csv", "-O", "x.csv", "--output", "json"]);
    assert_eq!(json_lines(&wrote)[0]["rows"], 3);
    assert_eq!(project.read("x.csv").lines().count(), 4);
}

#[test]
fn delta_log_has_a_version_per_run() {
    let select = "select cast(meter as bigint) as meter, ts, price from T order by meter, ts";
    let project =
        project(&format!("per = \"day\"\nname = \"E/dt={{day}}\"\ndelta = true\nquery = {{ sql = \"{select}\" }}"));
    project.run_job("j");
    project.write(
        "in/b.csv",
        "meter,ts,price,kwh,note,ok\n7,2026-03-29T10:00:00Z,9,1,x,true\n7,2026-03-30T10:00:00Z,9,1,x,true\n",
    );
    project.run_job("j");
    project.run_job("j");
    project.ok(&["run", "j", "--force"]);
    assert_eq!(project.sql("select count(*) as n from exports.E")[0]["n"], 5);
    let log: Vec<String> = project.files("data/exports/E/_delta_log").into_keys().collect();
    assert_eq!(log.len(), 2, "{log:?}");
    let Some(said) = check(&project, "delta", &project.path("data/exports/E")) else { return };
    let rows: Vec<_> = said.iter().map(|version| (version["version"].as_u64(), version["rows"].as_u64())).collect();
    assert_eq!(rows, [(Some(0), Some(3)), (Some(1), Some(5))]);
    assert_eq!(said[1]["columns"], json!(["meter", "ts", "price", "dt"]));
    assert_eq!(said[1]["types"], json!(["int64", "timestamp[us, tz=UTC]", "decimal128(10, 2)", "date32[day]"]));
    // The next run writes the entry that a stopped run did not.
    std::fs::remove_file(project.path(&log[1])).unwrap();
    project.run_job("j");
    assert_eq!(check(&project, "delta", &project.path("data/exports/E")).unwrap()[1]["rows"], 5);
}

#[test]
fn a_delta_log_with_a_checkpoint_of_another_engine_counts_each_row_once() {
    let select = "select cast(meter as bigint) as meter, ts, price from T order by meter, ts";
    let project =
        project(&format!("per = \"day\"\nname = \"E/dt={{day}}\"\ndelta = true\nquery = {{ sql = \"{select}\" }}"));
    project.run_job("j");
    let Some(said) = check(&project, "checkpoint", &project.path("data/exports/E")) else { return };
    assert_eq!(said[0]["entries"], json!(["_last_checkpoint", "00000000000000000000.checkpoint.parquet"]), "{said:?}");
    for command in [&["verify", "--exports"][..], &["doctor"], &["status"]] {
        project.ok(command);
    }
    // A day is replaced, and one is added.
    project.write(
        "in/b.csv",
        "meter,ts,price,kwh,note,ok\n7,2026-03-29T10:00:00Z,9,1,x,true\n7,2026-03-30T10:00:00Z,9,1,x,true\n",
    );
    project.run_job("j");
    let rows = &check(&project, "delta_now", &project.path("data/exports/E")).unwrap()[0]["rows"];
    assert_eq!((rows, &project.sql("select count(*) as n from exports.E")[0]["n"]), (&json!(5), &json!(5)));
    project.ok(&["run", "j", "--force"]);
    assert_eq!(
        project.files("data/exports/E/_delta_log").into_keys().filter(|name| name.ends_with(".json")).count(),
        1
    );
}

#[test]
fn rows_that_another_engine_deletes_come_back_once() {
    let select = "select cast(meter as bigint) as meter, ts, price from T order by meter, ts";
    let project =
        project(&format!("per = \"day\"\nname = \"E/dt={{day}}\"\ndelta = true\nquery = {{ sql = \"{select}\" }}"));
    project.run_job("j");
    if check(&project, "delete_meter_2", &project.path("data/exports/E")).is_none() {
        return;
    }
    // A day is replaced: the log follows the list again, which has all rows.
    project.write("in/b.csv", "meter,ts,price,kwh,note,ok\n7,2026-03-29T10:00:00Z,9,1,x,true\n");
    project.run_job("j");
    let rows = &check(&project, "delta_now", &project.path("data/exports/E")).unwrap()[0]["rows"];
    assert_eq!((rows, &project.sql("select count(*) as n from exports.E")[0]["n"]), (&json!(4), &json!(4)));
    project.ok(&["verify", "--exports"]);
}

#[test]
fn a_delta_log_that_does_not_tell_its_files_is_named_and_not_followed() {
    let select = "select cast(meter as bigint) as meter, ts, price from T order by meter, ts";
    let project =
        project(&format!("per = \"day\"\nname = \"E/dt={{day}}\"\ndelta = true\nquery = {{ sql = \"{select}\" }}"));
    project.run_job("j");
    project.write("in/b.csv", "meter,ts,price,kwh,note,ok\n7,2026-03-29T10:00:00Z,9,1,x,true\n");
    project.run_job("j");
    std::fs::remove_file(project.path("data/exports/E/_delta_log/00000000000000000000.json")).unwrap();
    for command in [&["verify", "--exports"][..], &["doctor"], &["status"]] {
        let ran = project.run(command);
        let said = ran.stdout + &ran.stderr;
        assert!(said.contains("exports/E/_delta_log") && said.contains("entry 0 is missing"), "{command:?}: {said}");
        assert_eq!(ran.code, Some(i32::from(command[0] != "status")), "{command:?}: {said}");
    }
    let before = project.files("data/exports");
    project.write("in/b.csv", "meter,ts,price,kwh,note,ok\n7,2026-03-29T10:00:00Z,8,1,x,true\n");
    let said = project.fails(4, &["run", "j"]);
    assert!(said.contains("entry 0 is missing") && said.contains("move the folder away"), "{said}");
    assert_eq!(project.files("data/exports"), before, "nothing is published");
    std::fs::remove_dir_all(project.path("data/exports/E/_delta_log")).unwrap();
    project.ok(&["run", "j"]);
    for command in [&["verify", "--exports"][..], &["doctor"], &["status"]] {
        project.ok(command);
    }
    let Some(said) = check(&project, "delta_now", &project.path("data/exports/E")) else { return };
    assert_eq!(said[0]["rows"], 4);
}
