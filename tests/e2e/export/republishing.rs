//! After changes of inputs, rules and queries, published files equal those of a fresh build.

use serde_json::{Value, json};

use crate::harness::{Project, json_lines};

/// A job of readings `Id,ts,v` with these exports and checks.
fn job(timezone: &str, more: &str) -> String {
    format!(
        "name = \"j\"\ntimezone = \"{timezone}\"\n[sources.readings]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\n\
         [sources.readings.columns]\nId = \"text\"\nts = \"timestamp\"\nv = \"float64\"\n\
         [tables.T]\nrow_key = \"{{Id}}#{{ts:ms}}\"\n[tables.T.families.A]\n\
         columns = [{{ qualifier = \"v\", value = \"{{v}}\" }}]\n{more}\n"
    )
}

fn export(per: &str, name: &str, more: &str, sql: &str) -> String {
    format!("[exports.E]\nper = \"{per}\"\nname = \"{name}\"\n{more}\nquery = {{ sql = \"{sql}\" }}\n")
}

const READINGS: &str = "select \\\"Id\\\", ts, v from T order by \\\"Id\\\", ts";

fn project(timezone: &str, more: &str, files: &[(&str, &str)]) -> Project {
    let project = Project::new("j", &job(timezone, more));
    files.iter().for_each(|(name, rows)| write(&project, name, rows));
    project
}

fn write(project: &Project, name: &str, rows: &str) {
    project.write(&format!("in/{name}.csv"), format!("Id,ts,v\n{rows}"));
}

/// Directories and states of the parts of a run.
fn parts(record: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    record["exports"].as_array().unwrap().iter().map(|part| (text(&part["part"]), text(&part["state"]))).collect()
}

fn part(name: &str, state: &str) -> (String, String) {
    (name.to_owned(), state.to_owned())
}

/// Files of parts, inside `exports`.
fn published_files(project: &Project) -> Vec<String> {
    let files = project.files("data/exports").into_keys();
    files.filter(|file| file.contains("/part-")).map(|file| file.replace("data/exports/", "")).collect()
}

#[test]
fn keys_keep_their_case() {
    let latest = "select nullif(\\\"Id\\\", 'y') as \\\"Id\\\", max(v) as \\\"Peak V\\\" from T group by \\\"Id\\\"";
    for (per, name) in [("query", "LATEST"), ("day", "E_{day:%Y%m%d}")] {
        let project = project(
            "UTC",
            &export(per, name, "mode = \"upsert\"\nkeys = [\"Id\"]", latest),
            &[("a", "x,2026-05-05T10:00:00Z,1\ny,2026-05-05T10:00:00Z,9\n")],
        );
        project.run_job("j");
        for value in 2..4 {
            write(&project, &format!("b{value}"), &format!("x,2026-05-05T11:00:00Z,{value}\n"));
            project.run_job("j");
        }
        let rows = project.csv("select \"Id\", \"Peak V\" from exports.E where \"Id\" = 'x'");
        assert_eq!(rows, "Id,Peak V\nx,3.0\n", "{per}");
        // Null is a key, too.
        assert_eq!(project.sql("select count(*) as n from exports.E")[0]["n"], 2, "{per}");
    }
}

#[test]
fn unknown_key_columns_are_refused_before_loading() {
    let text = export("query", "LATEST", "mode = \"upsert\"\nkeys = [\"id\"]", READINGS);
    let project = project("UTC", &text, &[("a", "x,2026-05-05T10:00:00Z,1\n")]);
    for command in ["check", "plan", "run"] {
        let said = project.fails(2, &[command, "j"]);
        assert!(said.contains("`keys` names id") && said.contains("Id, ts, v"), "{command}: {said}");
    }
    assert!(!project.path("data/tables").exists());
}

#[test]
fn restated_day_equals_a_fresh_build() {
    for mode in
        ["", "mode = \"upsert\"\nkeys = [\"Id\"]", "mode = \"upsert\"\nkeys = [\"Id\", \"ts\"]\nformat = \"csv\""]
    {
        let text = export("day", "E_{day:%Y%m%d}", mode, READINGS);
        let project = project(
            "UTC",
            &text,
            &[("a", "x,2026-05-05T10:00:00Z,1\ny,2026-05-05T10:00:00Z,2\nx,2026-05-06T10:00:00Z,3\n")],
        );
        project.run_job("j");
        // One key is removed, another is late, and one day loses all its rows.
        write(&project, "a", "x,2026-05-05T10:00:00Z,1\n");
        write(&project, "b", "z,2026-05-05T12:00:00Z,4\n");
        let states = parts(&project.run_job("j"));
        assert_eq!(states, [part("E_20260505", "published"), part("E_20260506", "withdrawn")], "{mode}");
        assert_eq!(project.csv("select \"Id\", v from exports.E order by ts"), "Id,v\nx,1.0\nz,4.0\n", "{mode}");
        assert_eq!(published_files(&project).len(), 1, "{mode}");
        assert_eq!(project.sql("select * from exports.E_20260506"), [] as [Value; 0], "{mode}");
        assert_eq!(project.run_job("j")["exports"], json!([]), "{mode}");
        assert!(project.ok(&["plan", "j"]).contains("nothing to do"), "{mode}");
        // Deleted rows are withdrawn, and rows that return are published again.
        project.ok(&["drop-rows", "T", "--prefix", "z#", "--yes"]);
        assert_eq!(parts(&project.run_job("j")), [part("E_20260505", "published")], "{mode}");
        project.ok(&["drop-rows", "T", "--prefix", "x#", "--yes"]);
        assert_eq!(parts(&project.run_job("j")), [part("E_20260505", "withdrawn")], "{mode}");
        assert_eq!(published_files(&project), [""; 0], "{mode}");
        assert_eq!(project.sql("select * from exports.E"), [] as [Value; 0], "{mode}");
        write(&project, "c", "y,2026-05-06T09:00:00Z,5\n");
        assert_eq!(parts(&project.run_job("j")), [part("E_20260506", "published")], "{mode}");
    }
}

#[test]
fn appended_rows_of_a_day_stay() {
    let text = export("day", "E_{day:%Y%m%d}", "mode = \"append\"", "select count(*) as n from T");
    let project = project("UTC", &text, &[("a", "x,2026-05-05T10:00:00Z,1\nx,2026-05-06T10:00:00Z,3\n")]);
    project.run_job("j");
    write(&project, "a", "x,2026-05-05T10:00:00Z,1\ny,2026-05-05T10:00:00Z,3\n");
    project.run_job("j");
    let rows = |day: &str| project.csv(&format!("select n from exports.E_202605{day} order by n"));
    assert_eq!((rows("05"), rows("06")), ("n\n1\n2\n".to_owned(), "n\n1\n".to_owned()));
    assert_eq!(project.run_job("j")["exports"], json!([]));
}

#[test]
fn multi_file_day_and_delta_day_are_withdrawn() {
    let rows: String = (0..3000).map(|at| format!("id{at},2026-05-06T10:00:00Z,{at}.{at}\n")).collect();
    for (name, more) in [("E_{day:%Y%m%d}", "file_size = \"16KiB\""), ("E/dt={day}", "delta = true")] {
        let text = export("day", name, more, READINGS);
        let project = project("UTC", &text, &[("a", "x,2026-05-05T10:00:00Z,1\n"), ("b", &rows)]);
        project.run_job("j");
        write(&project, "b", "x,2026-05-05T11:00:00Z,2\n");
        let states = parts(&project.run_job("j"));
        assert_eq!(states.iter().map(|(_, state)| state.as_str()).collect::<Vec<_>>(), ["published", "withdrawn"]);
        assert_eq!(project.csv("select v from exports.E order by v"), "v\n1.0\n2.0\n");
        if name.contains("dt=") {
            let log = project.read("data/exports/E/_delta_log/00000000000000000001.json");
            assert_eq!(log.matches("\"remove\"").count(), 2, "{log}");
            assert!(!log.contains("metaData"), "{log}");
        } else {
            assert_eq!(published_files(&project), ["E_20260505/part-0.parquet"]);
        }
        assert_eq!(project.run_job("j")["exports"], json!([]));
    }
}

#[test]
fn query_without_rows_reads_as_an_empty_table() {
    let text = export("query", "HIGH", "", "select \\\"Id\\\", v from T where v > 5");
    let project = project("UTC", &text, &[("a", "x,2026-05-05T10:00:00Z,1\n")]);
    assert_eq!(parts(&project.run_job("j")), [part("HIGH", "empty")]);
    assert_eq!(project.sql("select \"Id\", v from exports.HIGH"), [] as [Value; 0]);
    write(&project, "b", "x,2026-05-05T11:00:00Z,7\n");
    assert_eq!(parts(&project.run_job("j")), [part("HIGH", "published")]);
    write(&project, "b", "x,2026-05-05T11:00:00Z,3\n");
    assert_eq!(parts(&project.run_job("j")), [part("HIGH", "withdrawn")]);
    assert_eq!(published_files(&project), [""; 0]);
    assert_eq!(project.sql("select \"Id\", v from exports.HIGH"), [] as [Value; 0]);
}

#[test]
fn only_days_with_records_are_parts() {
    let checks = "[checks.some]\non = \"T\"\nrows = { min = 1 }\n[checks.others]\non = \"U\"\nrows = { min = 1 }\n\
                  [tables.U]\nfrom = \"readings\"\nrow_key = \"{Id}#{ts:ms}\"\n[tables.U.families.A]\n\
                  columns = [{ qualifier = \"v\", value = \"{v}\" }]\n";
    let text = export("day", "E_{day:%Y%m%d}", "", "select count(*) as n from T") + checks;
    // Readings of 5 and 6 May in Paris; 6 May of UTC reaches into 7 May there.
    let rows = "x,2026-05-04T22:30:00Z,1\nx,2026-05-05T12:00:00Z,1\nx,2026-05-06T21:59:00Z,1\n";
    let project = project("Europe/Paris", &text, &[("a", rows)]);
    let record = project.run_job("j");
    assert_eq!(parts(&record), [part("E_20260505", "published"), part("E_20260506", "published")]);
    let labels: Vec<&Value> = record["checks"].as_array().unwrap().iter().map(|check| &check["label"]).collect();
    assert_eq!(labels.iter().filter(|label| **label == "2026-05-05").count(), 2, "{labels:?}");
    assert!(labels.iter().all(|label| ["2026-05-05", "2026-05-06"].contains(&label.as_str().unwrap())), "{labels:?}");
    assert_eq!(project.csv("select n from exports.E order by n"), "n\n1\n2\n");
    assert_eq!(project.run_job("j")["exports"], json!([]));
    assert!(project.ok(&["plan", "j"]).contains("nothing to do"));
    assert!(project.ok(&["status", "j"]).contains("gaps"));
    // A change of the last UTC day plans and publishes the days that it holds.
    write(&project, "a", &rows.replace("21:59", "20:59"));
    let plan = project.json(&["plan", "j"]);
    assert!(plan.iter().all(|row| row["name"] != "E_20260507" && row["name"] != "E_20260504"), "{plan:?}");
    assert_eq!(parts(&project.run_job("j")).len(), 2);
    // A day with rows is a part.
    write(&project, "b", "x,2026-05-06T22:00:00Z,1\n");
    assert_eq!(parts(&project.run_job("j"))[1], part("E_20260507", "published"));
}

/// Whether a plan has something to do, the exit code of a run, and whether status reports failed days.
fn outcome(project: &Project) -> (bool, Option<i32>, bool) {
    let plan = !project.ok(&["plan", "j"]).contains("nothing to do");
    let code = project.run(&["run", "j"]).code;
    let status = project.json(&["status", "j"]).remove(0);
    (plan, code, !status["failed"].as_array().is_none_or(Vec::is_empty))
}

#[test]
fn day_with_a_failed_check_is_tried_again() {
    let published = export("day", "E_{day:%Y%m%d}", "", READINGS);
    let low = "[checks.low]\non = \"T\"\nrange = { v = { max = 2 } }\n";
    let project = project("UTC", &published, &[("a", "x,2026-05-05T10:00:00Z,1\nx,2026-05-06T10:00:00Z,3\n")]);
    project.run_job("j");
    assert_eq!(outcome(&project), (false, Some(0), false));
    project.write("jobs/j/job.toml", job("UTC", &format!("{published}{low}")));
    project.fails(3, &["run", "j", "--force"]);
    for _ in 0..2 {
        assert_eq!(outcome(&project), (true, Some(3), true));
    }
    assert!(project.ok(&["plan", "j"]).contains("its checks failed"));
    // A run of other days ignores the failed one.
    project.ok(&["run", "j", "--day", "2026-05-05"]);
    assert_eq!(outcome(&project), (true, Some(3), true));
    // The published part stays.
    assert_eq!(project.sql("select v from exports.E_20260506")[0]["v"], 3.0);
    // The check is removed.
    project.write("jobs/j/job.toml", job("UTC", &published));
    assert_eq!(outcome(&project), (true, Some(0), false));
    assert_eq!(outcome(&project), (false, Some(0), false));
    // Or the row is corrected.
    project.write("jobs/j/job.toml", job("UTC", &format!("{published}{low}")));
    project.fails(3, &["run", "j", "--force"]);
    write(&project, "a", "x,2026-05-05T10:00:00Z,1\nx,2026-05-06T10:00:00Z,2\n");
    assert_eq!(outcome(&project), (true, Some(0), false));
    // Or it is deleted, with all of its day.
    write(&project, "a", "x,2026-05-05T10:00:00Z,1\nx,2026-05-06T10:00:00Z,4\n");
    assert_eq!(outcome(&project), (true, Some(3), true));
    write(&project, "a", "x,2026-05-05T10:00:00Z,1\n");
    assert_eq!(outcome(&project), (true, Some(0), false));
    assert_eq!(outcome(&project), (false, Some(0), false));
}

#[test]
fn table_day_with_a_failed_check_is_tried_again() {
    let low = "[checks.low]\non = \"T\"\nrange = { v = { max = 2 } }\n";
    let project = project("UTC", low, &[("a", "x,2026-05-05T10:00:00Z,1\nx,2026-05-06T10:00:00Z,3\n")]);
    for _ in 0..3 {
        assert_eq!(outcome(&project), (true, Some(3), true));
    }
    assert!(project.ok(&["status", "j"]).contains("2026-05-06"));
    write(&project, "b", "x,2026-05-07T10:00:00Z,1\n");
    assert_eq!(outcome(&project), (true, Some(3), true));
    write(&project, "a", "x,2026-05-05T10:00:00Z,1\nx,2026-05-06T10:00:00Z,2\n");
    assert_eq!(outcome(&project), (true, Some(0), false));
    assert_eq!(outcome(&project), (false, Some(0), false));
}

#[test]
fn plan_includes_effects_on_derived_tables() {
    let text = "[tables.D]\nrow_key = \"{Id}#{ts:ms}\"\n\
                from = { query = { sql = \"select \\\"Id\\\", ts, v * 2 as w from T\" } }\n\
                [tables.D.families.A]\ncolumns = [{ qualifier = \"w\", value = \"{w}\" }]\n";
    let text = text.to_owned() + &export("day", "E_{day:%Y%m%d}", "", "select * from D order by ts");
    let rows = "x,2026-05-05T10:00:00Z,1\nx,2026-05-06T10:00:00Z,3\n";
    let project = project("UTC", &text, &[("a", rows)]);
    project.run_job("j");
    assert!(project.ok(&["plan", "j"]).contains("nothing to do"));
    project.ok(&["drop-rows", "T", "--prefix", "x#1778061600000", "--yes"]);
    let plan = project.json(&["plan", "j"]);
    let row = |kind: &str, name: &str| {
        let found = plan.iter().find(|row| row["kind"] == kind && row["name"] == name);
        found.map(|row| (row["why"].as_str().unwrap(), row["days"].as_str().unwrap()))
    };
    assert_eq!(row("table", "D"), Some(("upstream changed", "2026-05-06")), "{plan:?}");
    assert_eq!(row("publish", "E_20260506").map(|(why, _)| why), Some("D changed"), "{plan:?}");
    assert_eq!(row("publish", "E_20260505"), None, "{plan:?}");
    let told = project.ok(&["run", "j"]);
    assert!(told.contains("withdrew E: 1 day, exports/E_20260506"), "{told}");
    assert!(project.ok(&["plan", "j"]).contains("nothing to do"));
}

/// A project whose cells expire after 40 days.
fn expiring() -> Project {
    let text = job("UTC", &export("day", "E_{day:%Y%m%d}", "", READINGS));
    Project::new("j", &text.replace("[tables.T.families.A]\n", "[tables.T.families.A]\ngc = \"maxage=40d\"\n"))
}

#[test]
fn plan_lists_sealed_days() {
    let project = expiring();
    write(&project, "a", "x,2026-05-05T10:00:00Z,1\nx,2026-06-20T10:00:00Z,3\n");
    project.ok(&["run", "j", "--now", "2026-06-01T00:00:00Z"]);
    write(&project, "b", "y,2026-05-05T10:00:00Z,1\ny,2026-06-20T10:00:00Z,3\n");
    project.run(&["run", "j", "--now", "2026-07-01T00:00:00Z", "--day", "2026-06-20"]);
    let plan = project.json(&["plan", "j", "--now", "2026-07-01T00:00:00Z"]);
    let of_part = |row: &&Value| row["name"] == "E_20260505";
    let kinds: Vec<&Value> = plan.iter().filter(of_part).map(|row| &row["kind"]).collect();
    assert_eq!(kinds, ["sealed"], "{plan:?}");
    let ran = project.run(&["run", "j", "--now", "2026-07-01T00:00:00Z", "--output", "json"]);
    assert_eq!(parts(&json_lines(&ran.stdout)[0]), [part("E_20260505", "sealed")], "{}", ran.stderr);
}

#[test]
fn a_delete_names_the_run_that_publishes_sealed_days() {
    let project = expiring();
    write(&project, "a", "x,2026-05-05T10:00:00Z,1\nx,2026-05-25T10:00:00Z,3\ny,2026-05-25T10:00:00Z,4\n");
    project.ok(&["run", "j", "--now", "2026-06-01T00:00:00Z"]);

    let now = "2026-07-01T00:00:00Z";
    let told = project.ok(&["drop-rows", "T", "--prefix", "x", "--yes", "--now", now]);
    assert!(told.contains("days to publish again: 2026-05-25\n  tidetable run j\n"), "{told}");
    assert!(told.contains("have expired: 2026-05-05\n"), "{told}");
    let forced = "  tidetable run j --from 2026-05-05 --to 2026-05-05 --force ";
    assert!(told.contains(forced), "{told}");

    project.ok(&["run", "j", "--now", now]);
    assert_eq!(project.csv("select min(v) from exports.E group by v").lines().count(), 3);
    let mut args: Vec<&str> = forced.split_whitespace().skip(1).collect();
    args.extend(["--now", now]);
    let told = project.ok(&args);
    assert!(told.contains("withdrew E: 1 day, exports/E_20260505"), "{told}");

    let described = project.ok(&["describe", "T"]);
    assert!(described.contains("delete   version 2, 2026-07-01T00:00:00Z: rows that begin with x\n"), "{described}");
}

/// Changes bytes in the middle of a file, in place.
fn damage(project: &Project, path: &str) {
    use std::io::{Seek, SeekFrom, Write};
    let mut file = std::fs::OpenOptions::new().write(true).open(project.path(path)).unwrap();
    let middle = file.metadata().unwrap().len() / 3;
    file.seek(SeekFrom::Start(middle)).unwrap();
    file.write_all(&[0xA5; 40]).unwrap();
}

#[test]
fn damaged_or_missing_file_is_reported_and_published_again() {
    let rows: String = (0..2000).map(|at| format!("id{at},2026-05-05T10:00:00Z,{at}.5\n")).collect();
    for more in ["", "format = \"csv\"", "format = \"arrow\"", "file_size = \"8KiB\"", "delta = true"] {
        let name = if more.contains("delta") { "E/dt={day}" } else { "E_{day:%Y%m%d}" };
        let text = export("day", name, more, READINGS);
        let project = project("UTC", &text, &[("a", &rows), ("b", "x,2026-05-06T10:00:00Z,3\n")]);
        project.run_job("j");
        let all = "select sum(v) as v, count(*) as n from exports.E";
        let before = project.csv(all);
        let sound = project.ok(&["verify", "--exports"]);
        assert!(sound.starts_with("exports.E: sound; "), "{sound}");
        let listed = || {
            let rows = project.json(&["verify", "--exports"]);
            rows[0]["file"].as_str().unwrap().to_owned()
        };
        let file = listed();
        damage(&project, &format!("data/{file}"));
        let said = project.fails(1, &["sql", "-c", "select min(v) from exports.E"]);
        assert!(said.contains(&file) && said.contains("was changed after it was published"), "{more}: {said}");
        for args in [&["verify", "--exports"][..], &["verify", "--all"], &["verify", "--all", "--output", "json"]] {
            let ran = project.run(args);
            assert_eq!((ran.code, ran.stdout.contains(&file)), (Some(1), true), "{more}: {}{}", ran.stdout, ran.stderr);
        }
        assert!(project.ok(&["plan", "j"]).contains("its file is not as published"), "{more}");
        assert_eq!(project.run_job("j")["exports"].as_array().unwrap().len(), 1, "{more}");
        assert_eq!(project.csv(all), before, "{more}");
        // A missing file and a truncated one.
        let path = project.path(&format!("data/{}", listed()));
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(path, &bytes[..bytes.len() - 9]).unwrap();
        project.fails(1, &["sql", "-c", "select min(v) from exports.E"]);
        project.fails(1, &["verify", "--exports"]);
        assert_eq!(project.run_job("j")["exports"].as_array().unwrap().len(), 1, "{more}");
        assert_eq!(project.csv(all), before, "{more}");
        project.ok(&["verify", "--all"]);
        assert_eq!(project.run_job("j")["exports"], json!([]), "{more}");
    }
}

#[test]
fn touched_or_copied_file_is_sound() {
    let project =
        project("UTC", &export("day", "E_{day:%Y%m%d}", "", READINGS), &[("a", "x,2026-05-05T10:00:00Z,1\n")]);
    project.run_job("j");
    let path = project.path("data/exports/E_20260505/part-0.parquet");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, &bytes).unwrap();
    project.ok(&["verify", "--all"]);
    assert_eq!(project.sql("select v from exports.E")[0]["v"], 1.0);
    assert!(project.ok(&["plan", "j"]).contains("nothing to do"));
    assert_eq!(project.run_job("j")["exports"], json!([]));
    // The list knows the copy now, and damage to it is found.
    damage(&project, "data/exports/E_20260505/part-0.parquet");
    assert!(project.fails(1, &["sql", "-c", "select v from exports.E"]).contains("was changed after it was published"));
}

#[test]
fn damaged_append_export_is_not_overwritten() {
    let text = export("query", "LOG", "mode = \"append\"", "select count(*) as n, $now as at from T");
    let project = project("UTC", &text, &[("a", "x,2026-05-05T10:00:00Z,1\n")]);
    project.run_job("j");
    write(&project, "b", "x,2026-05-05T11:00:00Z,1\n");
    project.run_job("j");
    damage(&project, "data/exports/LOG/part-0.parquet");
    for _ in 0..2 {
        let said = project.fails(1, &["run", "j"]);
        assert!(said.contains("rows of earlier runs") && said.contains("backup"), "{said}");
    }
    std::fs::remove_dir_all(project.path("data/exports/LOG")).unwrap();
    project.run_job("j");
    assert_eq!(project.sql("select n from exports.LOG"), [json!({ "n": 2 })]);
}

fn exports(named: &[(&str, &str, &str)]) -> String {
    let each = |(export, per, name): &(&str, &str, &str)| {
        format!("[exports.\"{export}\"]\nper = \"{per}\"\nname = \"{name}\"\nquery = {{ sql = \"{READINGS}\" }}\n")
    };
    named.iter().map(each).collect()
}

#[test]
fn exports_with_conflicting_names_are_refused() {
    for (one, other) in [
        (("E", "day", "X_{day:%Y%m%d}"), ("F", "month", "X_{month:%Y%m01}")),
        (("E", "day", "X_{day:%Y%m%d}"), ("F", "query", "X_20260505")),
        (("E", "day", "X_{day:%Y%m%d}"), ("F", "day", "x_{day:%Y%m%d}")),
        (("E", "day", "E/dt={day}"), ("F", "query", "E")),
        (("E", "query", "F"), ("F", "query", "E")),
        (("E", "day", "X_{day:%Y%m%d}"), ("e", "query", "Y")),
    ] {
        let project = project("UTC", &exports(&[one, other]), &[("a", "x,2026-05-05T10:00:00Z,1\n")]);
        for command in ["check", "plan", "run"] {
            let said = project.fails(2, &[command, "j"]);
            assert!(said.contains("the name `"), "{one:?} {other:?}: {said}");
        }
        // Across jobs, too.
        let text = |job: &str, table: &str, export| {
            self::job("UTC", &exports(&[export]))
                .replace("name = \"j\"", &format!("name = \"{job}\""))
                .replace("[tables.T", &format!("[tables.{table}"))
                .replace("from T ", &format!("from {table} "))
        };
        project.write("jobs/j/job.toml", text("j", "T", one));
        project.ok(&["check", "--all"]);
        project.write("jobs/k/job.toml", text("k", "U", other));
        for args in [["check", "--all"], ["check", "j"], ["check", "k"]] {
            assert!(project.fails(2, &args).contains("can have the name"), "{args:?} {one:?} {other:?}");
        }
    }
    let project = project("UTC", &exports(&[("E", "day", "E_{day}"), ("F", "query", "E.json")]), &[]);
    assert!(project.fails(2, &["check", "j"]).contains("list of published tables"));
    let apart = [("E", "day", "X_{day:%Y%m%d}"), ("F", "month", "X_{month:%Y%m}"), ("G", "hour", "X_{hour:%Y%m%d%H}")];
    project.write("jobs/j/job.toml", job("UTC", &exports(&apart)));
    project.ok(&["check", "j"]);
}

#[test]
fn check_data_measures_published_and_stored_rows() {
    let published = export("day", "E_{day:%Y%m%d}", "", READINGS);
    let checks = "[checks.low]\non = \"E\"\nrange = { v = { max = 2 } }\nunique = [\"Id\"]\nnot_null = [\"Id\"]\n\
                  [checks.some]\non = \"T\"\nseverity = \"warn\"\nrows = { min = 3 }\n\
                  [checks.named]\non = \"E\"\nquery = { sql = \"select * from T where \\\"Id\\\" = 'q' and ts >= $from\" }\n";
    let rows =
        "x,2026-05-05T10:00:00Z,1\nx,2026-05-06T10:00:00Z,3\nx,2026-05-06T11:00:00Z,9\ny,2026-05-06T10:00:00Z,2\n";
    let project = project("UTC", &published, &[("a", rows)]);
    project.run_job("j");
    project.write("jobs/j/job.toml", job("UTC", &format!("{published}{checks}")));
    let before = project.files("data/exports");
    let ran = project.run(&["check", "j", "--data", "--output", "json"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let failed: Vec<(Value, Value, Value)> = json_lines(&ran.stdout)
        .into_iter()
        .filter(|row| row["passed"] == false)
        .map(|row| (row["label"].clone(), row["rule"].clone(), row["measured"].clone()))
        .collect();
    let found = |label: &str, rule: &str, measured: i64| (json!(label), json!(rule), json!(measured));
    assert_eq!(
        failed,
        [
            found("2026-05-06", "v up to 2", 2),
            found("2026-05-06", "unique Id", 1),
            found("2026-05-05", "rows from 3", 1)
        ]
    );
    assert_eq!(project.files("data/exports"), before);
    // For people a line for each rule; --verbose has one for each part and day.
    let lines = |args: &[&str]| {
        let ran = project.run(args);
        let rows = ran.stdout.lines().filter(|line| line.starts_with('│')).skip(1);
        rows.map(str::to_owned).collect::<Vec<_>>()
    };
    let by_rule = lines(&["check", "j", "--data"]);
    assert_eq!(by_rule.len(), 5, "{by_rule:?}");
    assert!(by_rule.iter().any(|line| line.contains("v up to 2") && line.contains("2026-05-06")), "{by_rule:?}");
    assert_eq!(lines(&["check", "j", "--data", "--verbose"]).len(), 10);
    std::fs::remove_dir_all(project.path("data/failing")).unwrap();
    project.run(&["check", "j", "--data"]);
    let rows = project.sql("select rule, checked, label, row, job from runs.failing_rows order by rule, row");
    let text: Vec<&str> = rows.iter().map(|row| row["row"].as_str().unwrap()).collect();
    assert_eq!(
        text,
        [
            r#"{"Id":"x","count(*)":2}"#,
            r#"{"Id":"x","ts":"2026-05-06T10:00:00Z","v":3.0}"#,
            r#"{"Id":"x","ts":"2026-05-06T11:00:00Z","v":9.0}"#
        ]
    );
    project.ok(&["check", "j", "--data", "--day", "2026-05-05"]);
    let said = project.fails(2, &["check", "j", "--day", "2026-05-05"]);
    assert!(said.contains("--data"), "{said}");
    // A run keeps the rows that its checks refuse.
    project.fails(3, &["run", "j", "--force"]);
    let kept = project.sql("select count(*) as n from runs.failing_rows f join runs.runs r on f.run = r.run");
    assert_eq!(kept[0]["n"], 3);
}

#[test]
fn days_that_do_not_follow_each_other_are_named() {
    let rows = |days: &[u32]| days.iter().map(|day| format!("x,2026-05-{day:02}T10:00:00Z,1\n")).collect::<String>();
    let project = project(
        "UTC",
        &export("day", "E_{day:%Y%m%d}", "", READINGS),
        &[("a", &rows(&[1, 2, 3])), ("b", &rows(&[1, 3]))],
    );
    assert!(project.ok(&["run", "j"]).contains("published E: 3 days, exports/E_20260501 to exports/E_20260503\n"));

    write(&project, "b", "x,2026-05-01T10:00:00Z,2\nx,2026-05-03T10:00:00Z,2\n");
    let said = project.ok(&["run", "j"]);
    assert!(said.contains("2 days, exports/E_20260501 to exports/E_20260503 (2026-05-01, 2026-05-03)\n"), "{said}");
}
