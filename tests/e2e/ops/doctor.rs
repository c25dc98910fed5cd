//! `doctor` finds damaged and misplaced files and moves them aside; each affects only what it holds.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{Project, flip_bit, json_lines};

const EXPORT: &str = r#"
[exports.E]
per = "day"
name = "E_{day:%Y%m%d}"
query = { sql = "select meter, ts, kwh from T order by meter, ts" }
"#;

/// Two jobs of one store, `j` with table T and export E, `k` with U and F.
fn project() -> Project {
    let job = readings_job!("in/*.csv", "", "").to_owned() + EXPORT;
    let project = Project::new("j", &job);
    let other = job.replace("\"j\"", "\"k\"").replace("in/*", "in2/*").replace(".T", ".U").replace(" T ", " U ");
    let other = other.replace("exports.E", "exports.F").replace("E_{", "F_{");
    project.write("jobs/k/job.toml", format!("schedule = \"0 3 * * *\"\ncatch_up = \"all\"\n{other}"));
    for folder in ["in", "in2"] {
        write_day(&project, folder, 1, 1);
    }
    for job in ["j", "k"] {
        project.run_job(job);
    }
    project
}

fn write_day(project: &Project, folder: &str, day: u32, kwh: u32) {
    project.write(&format!("{folder}/{day}.csv"), format!("meter,ts,kwh\n1,2020-01-{day:02}T10:00:00Z,{kwh}\n"));
}

/// Files of a directory of the store, sorted.
fn files(project: &Project, folder: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(project.path(&format!("data/{folder}"))).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

fn truncate(path: &PathBuf) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
}

fn kwh(project: &Project, table: &str) -> Vec<Value> {
    project.sql(&format!("select kwh from {table} order by ts")).into_iter().map(|row| row["kwh"].clone()).collect()
}

/// The exit code and the findings of `doctor`.
fn doctor(project: &Project, more: &[&str]) -> (i32, Vec<Value>) {
    let ran = project.run(&[&["doctor", "--output", "json"], more].concat());
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    (ran.code.unwrap(), json_lines(&ran.stdout))
}

/// Fixes all findings with `doctor --fix`; a second diagnosis finds nothing.
fn fix(project: &Project) -> Vec<Value> {
    let (code, fixed) = doctor(project, &["--fix"]);
    assert_eq!(code, 0, "{fixed:?}");
    assert!(fixed.iter().all(|finding| finding["fixed"] == true), "{fixed:?}");
    assert_eq!(doctor(project, &[]), (0, vec![]));
    fixed
}

#[test]
fn missing_root_is_an_error() {
    let project = project();
    fs::create_dir(project.path("empty")).unwrap();
    project.write("file", "");
    let commands = [
        "verify",
        "tables",
        "status",
        "vacuum",
        "clean",
        "history",
        "doctor",
        "read T",
        "describe T",
        "compact T",
        "repair T",
        "delete T --row x --yes",
        "drop-rows T --prefix x --yes",
        "drop T --yes",
        "lineage T",
        "rejects j",
        "retry 01",
        "replay 01",
        "check j --data",
        "schedule --check",
        "export T --to x.csv",
    ];
    for line in commands {
        let words: Vec<&str> = line.split(' ').collect();
        for (root, told) in [("typo", "there is no folder"), ("empty", "holds no store"), ("file", "is not a folder")] {
            let said = project.fails(2, &[words.as_slice(), &["--root", root]].concat());
            assert!(said.contains(told) && said.contains(root), "{line} --root {root}: {said}");
        }
        assert!(!project.path("typo").exists(), "{line} made the root");
    }
    // What asks nothing of a store, or what is asked before the first run, needs none.
    for line in ["plan j", "check j", "lint j", "sql -c select+1", "sql -c select+*+from+'in/1.csv'"] {
        let words: Vec<String> = line.split(' ').map(|word| word.replace('+', " ")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        for root in ["typo", "empty"] {
            let ran = project.run(&[words.as_slice(), &["--root", root]].concat());
            assert_eq!(ran.code, Some(0), "{line} --root {root}: {}", ran.stderr);
            let is_planned = line == "plan j" && ran.stdout.contains("in/1.csv") && ran.stderr.contains("no store yet");
            assert!(is_planned || line != "plan j", "{}{}", ran.stdout, ran.stderr);
        }
        if matches!(words[0], "plan" | "check") {
            let said = project.fails(2, &[words.as_slice(), &["--root", "file"]].concat());
            assert!(said.contains("is not a folder"), "{line}: {said}");
        }
    }
    for query in ["select * from T", "select * from runs.runs", "show tables"] {
        let said = project.fails(2, &["sql", "--root", "typo", "-c", query]);
        assert!(said.contains("there is no folder"), "{query}: {said}");
    }
    assert!(!project.path("typo").exists());
    project.ok(&["run", "j", "--root", "typo"]);
    assert!(project.ok(&["verify", "--root", "typo"]).contains("sound"));
}

#[test]
fn project_without_runs_is_reported() {
    let project = Project::new("j", readings_job!("in/*.csv", "", ""));
    write_day(&project, "in", 1, 1);
    let never = "no job of this project has run yet";
    for command in ["tables", "verify", "history", "vacuum", "clean", "doctor"] {
        assert!(project.fails(2, &[command]).contains(never), "{command}");
    }
    for line in [&["status"][..], &["sql", "-c", "select 1"]] {
        let ran = project.run(line);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains(never) && !ran.stdout.is_empty(), "{}", ran.stderr);
    }
    for line in [&["plan", "j"][..], &["check", "j"], &["schedule"]] {
        assert!(!project.run(line).stderr.contains(never), "{line:?}");
    }
}

#[test]
fn damaged_record_stops_no_command() {
    let project = project();
    write_day(&project, "in2", 2, 2);
    project.run_job("k");
    let records = files(&project, "runs");
    truncate(&records[0]);
    truncate(records.last().unwrap());
    for line in
        ["schedule --check", "status", "history", "tables", "rejects k", "run k --catch-up --dry-run", "lineage T"]
    {
        let ran = project.run(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(ran.code, Some(0), "{line}: {}", ran.stderr);
    }
    let ran = project.run(&["sql", "--output", "json", "-c", "select run from runs.runs"]);
    assert_eq!((ran.code, json_lines(&ran.stdout).len()), (Some(0), 1), "{}", ran.stderr);
    let damaged = records.last().unwrap().file_name().unwrap().to_str().unwrap();
    assert!(ran.stderr.contains(damaged) && ran.stderr.contains("left out"), "{}", ran.stderr);
    for job in ["j", "k"] {
        project.ok(&["run", job]);
    }

    let (code, found) = doctor(&project, &[]);
    assert_eq!(code, 1);
    assert_eq!(found.iter().map(|finding| finding["kind"].as_str().unwrap()).collect::<Vec<_>>(), ["record", "record"]);
    assert!(project.run(&["doctor"]).stdout.contains("--fix    moves it to quarantine"));
    for finding in fix(&project) {
        let aside = project.path(&format!("data/{}", finding["set_aside"].as_str().unwrap()));
        assert!(aside.is_file(), "{finding}");
    }
    assert_eq!(project.run(&["history"]).stderr, "");
}

#[test]
fn clean_removes_damaged_records_by_their_age() {
    let project = project();
    truncate(&files(&project, "runs")[0]);
    let plan = project.ok(&["clean", "--output", "json"]);
    assert_eq!(plan, "", "it is young");
    project.ok(&["clean", "--older-than", "0s", "--yes"]);
    assert_eq!(files(&project, "runs").len(), 1);
    assert_eq!(doctor(&project, &[]).0, 0);
}

#[test]
fn damaged_newest_manifest_is_replaced_by_the_version_before() {
    let project = project();
    write_day(&project, "in", 2, 2);
    project.run_job("j");
    flip_bit(files(&project, "tables/T/manifest").last().unwrap());

    let tables = project.run(&["tables", "--output", "json"]);
    assert_eq!(tables.code, Some(0), "{}", tables.stderr);
    let rows = json_lines(&tables.stdout);
    let version = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap()["version"].clone();
    assert_eq!((version("U"), version("T")), (1.into(), Value::Null));
    assert!(tables.stderr.contains("tables/T/manifest/"), "{}", tables.stderr);
    assert!(project.run(&["vacuum", "--older-than", "0s", "--yes"]).stdout.contains("U: "));
    write_day(&project, "in2", 2, 5);
    project.ok(&["run", "k"]);
    project.ok(&["check", "k"]);
    assert_eq!(kwh(&project, "U"), [1.0, 5.0]);
    project.fails(1, &["run", "j"]);

    let (code, found) = doctor(&project, &[]);
    assert_eq!((code, found.len(), &found[0]["kind"]), (1, 1, &"manifest".into()));
    assert!(found[0]["costs"].as_str().unwrap().contains("version 2 of T"), "{found:?}");
    fix(&project);
    assert_eq!(kwh(&project, "T"), [1.0], "as it was before");
    // Changed content under the number of the lost version must be published.
    write_day(&project, "in", 2, 3);
    project.ok(&["run", "j"]);
    assert_eq!(
        (kwh(&project, "T"), kwh(&project, "exports.E")),
        (vec![1.0.into(), 3.0.into()], vec![1.0.into(), 3.0.into()])
    );
    assert!(project.ok(&["verify"]).contains("T: sound"));
}

#[test]
fn damaged_older_manifest_loses_later_versions() {
    let project = project();
    for day in 2..=5 {
        write_day(&project, "in", day, day);
        project.run_job("j");
    }
    flip_bit(&files(&project, "tables/T/manifest")[2]);
    assert_eq!(doctor(&project, &[]).0, 1);
    fix(&project);
    assert_eq!(kwh(&project, "T"), [1.0, 2.0]);
    let newest = project.json(&["tables"])[0]["version"].clone();
    assert_eq!(newest, 5, "lost numbers are not given to others");
    project.ok(&["run", "j"]);
    assert_eq!(kwh(&project, "T"), [1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(kwh(&project, "exports.E"), [1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(files(&project, "quarantine/tables/T/manifest").len(), 3);
}

#[test]
fn table_with_a_damaged_first_manifest_is_rebuilt() {
    let project = project();
    flip_bit(&files(&project, "tables/T/manifest")[0]);
    let (code, found) = doctor(&project, &[]);
    assert_eq!(code, 1);
    assert!(found[0]["remedy"].as_str().unwrap().contains("--rebuild"), "{found:?}");
    fix(&project);
    project.ok(&["run", "j", "--rebuild"]);
    assert_eq!((kwh(&project, "T"), kwh(&project, "exports.E")), (vec![1.0.into()], vec![1.0.into()]));
}

#[test]
fn damaged_list_stops_only_its_export() {
    let project = project();
    truncate(&project.path("data/exports/E.json"));
    write_day(&project, "in2", 2, 7);
    project.ok(&["run", "k"]);
    assert_eq!(kwh(&project, "exports.F"), [1.0, 7.0]);
    for line in ["tables", "status", "lineage U", "clean --older-than 0s --yes"] {
        project.ok(&line.split(' ').collect::<Vec<_>>());
    }
    assert!(project.path("data/exports/E_20200101/part-0.parquet").is_file());
    let (code, found) = doctor(&project, &[]);
    assert_eq!((code, found.len(), &found[0]["kind"]), (1, 1, &"list".into()));
    assert!(found[0]["remedy"].as_str().unwrap().contains("tidetable run j --adopt"), "{found:?}");
    fix(&project);
    project.ok(&["run", "j", "--adopt"]);
    assert_eq!(kwh(&project, "exports.E"), [1.0]);
}

#[test]
fn readable_rejected_rows_are_kept() {
    let project = Project::new("j", readings_job!("in/*.csv", "max_rejected = \"90%\"", ""));
    project.write("in/1.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1\nx,y,z\nx,y,w\n");
    project.run_job("j");
    let path = &files(&project, "rejected")[0];
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, text.replacen("{\"file\"", "{file", 1)).unwrap();
    assert_eq!(project.json(&["rejects", "j"]).len(), 1);
    project.write("data/locks/j.lock", "{\"run\": \"half");
    let (code, found) = doctor(&project, &[]);
    assert_eq!(code, 1);
    assert_eq!(found.iter().map(|finding| finding["kind"].as_str().unwrap()).collect::<Vec<_>>(), ["rejects", "lock"]);
    fix(&project);
    let ran = project.run(&["rejects", "j", "--output", "json"]);
    assert_eq!((json_lines(&ran.stdout).len(), ran.stderr.as_str()), (1, ""));
    project.ok(&["run", "j"]);
}

#[test]
fn rejected_rows_that_were_cut_off_are_found() {
    let project = Project::new("j", readings_job!("in/*.csv", "max_rejected = \"90%\"", ""));
    project.write("in/1.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1\nx,y,z\nx,y,w\n");
    project.run_job("j");
    let path = &files(&project, "rejected")[0];
    let text = fs::read_to_string(path).unwrap();
    assert_eq!(doctor(&project, &[]).0, 0);

    // At a line end, and as a whole.
    let first = text.find('\n').unwrap() + 1;
    for (left, rows) in [(&text[..first], "1 row"), ("", "0 rows")] {
        fs::write(path, left).unwrap();
        let (code, found) = doctor(&project, &[]);
        assert_eq!((code, &found[0]["kind"], &found[0]["fixable"]), (1, &json!("rejects"), &json!(false)), "{found:?}");
        let damage = found[0]["damage"].as_str().unwrap();
        assert!(damage.contains(&format!("it holds {rows}, and its run rejected 2")), "{damage}");
    }

    fs::remove_file(path).unwrap();
    assert_eq!(doctor(&project, &[]).0, 0, "as the remedy says");
    assert!(project.run(&["rejects", "j"]).stderr.contains("were cleaned away"));
}

#[test]
fn fix_is_refused_while_a_job_runs() {
    let project = project();
    truncate(&files(&project, "runs")[0]);
    let lock = fs::OpenOptions::new().write(true).open(project.path("data/locks/j.lock")).unwrap();
    lock.lock().unwrap();
    assert!(project.fails(75, &["doctor", "--fix"]).contains("job j is running"));
    assert_eq!(files(&project, "runs").len(), 2);
    drop(lock);
    fix(&project);
}

#[test]
fn files_of_newer_builds_are_left_alone() {
    let project = project();
    let record = &files(&project, "runs")[0];
    fs::write(record, "{\"format\": 99, \"run\": {\"is\": \"another shape\"}}").unwrap();
    let list = project.read("data/exports/E.json").replacen("\"format\": 1", "\"format\": 99", 1);
    project.write("data/exports/E.json", &list);
    let manifest = &files(&project, "tables/T/manifest")[0];
    fs::write(manifest, "{\"format\": 99, \"checksum\": \"\"}").unwrap();
    let (code, found) = doctor(&project, &["--fix"]);
    assert_eq!((code, found.len()), (1, 3));
    assert!(found.iter().all(|finding| finding["fixable"] == false), "{found:?}");
    assert!(record.is_file() && manifest.is_file());
    assert_eq!(project.read("data/exports/E.json"), list);
    assert!(!project.path("data/quarantine").exists());
}

#[test]
fn missing_data_files_are_found_and_left_for_repair() {
    let project = project();
    fs::remove_file(&files(&project, "tables/T/sst")[0]).unwrap();
    fs::write(project.path("data/exports/F_20200101/part-0.parquet"), "").unwrap();
    let (code, found) = doctor(&project, &["--fix"]);
    assert_eq!(code, 1);
    let kinds: Vec<&str> = found.iter().map(|finding| finding["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["published", "sst"]);
    assert!(found[1]["remedy"].as_str().unwrap().contains("tidetable repair T --yes"), "{found:?}");
    project.ok(&["repair", "T", "--yes"]);
    project.ok(&["run", "j"]);
    assert_eq!(kwh(&project, "T"), [1.0]);
}

#[test]
fn file_in_the_place_of_a_part_directory_stops_only_that_part() {
    let project = project();
    write_day(&project, "in", 2, 2);
    write_day(&project, "in", 3, 3);
    project.write("data/exports/E_20200102", "in the way");
    project.write("data/exports/notes.txt", "in nobody's way");
    for line in ["plan j", "status", "tables", "verify --all", "clean", "history", "sql -c select"] {
        let ran = project.run(&line.split(' ').collect::<Vec<_>>());
        assert!(
            !ran.stderr.contains("cannot list") && !ran.stderr.contains("Not a directory"),
            "{line}: {}",
            ran.stderr
        );
    }
    project.ok(&["plan", "j"]);
    for _ in 0..2 {
        let said = project.fails(4, &["run", "j"]);
        assert!(said.contains("exports/E_20200102 is a file") && said.contains("move it away"), "{said}");
        assert_eq!(kwh(&project, "exports.E"), [1.0, 3.0], "the other days are published");
        assert!(project.ok(&["status", "j"]).contains("2020-01-02"));
        assert!(project.ok(&["plan", "j", "--output", "json"]).contains("E_20200102"));
    }
    let (code, found) = doctor(&project, &[]);
    assert_eq!((code, found.len(), &found[0]["kind"]), (1, 1, &"in_the_way".into()), "{found:?}");
    assert_eq!(found[0]["path"], "exports/E_20200102");
    let aside = fix(&project)[0]["set_aside"].as_str().unwrap().to_owned();
    assert_eq!(project.read(&format!("data/{aside}")), "in the way");
    project.ok(&["run", "j"]);
    assert_eq!(kwh(&project, "exports.E"), [1.0, 2.0, 3.0]);
}

#[test]
fn file_in_the_place_of_a_published_part_is_found() {
    let project = project();
    fs::remove_dir_all(project.path("data/exports/E_20200101")).unwrap();
    project.write("data/exports/E_20200101", "in the way");
    project.ok(&["plan", "j"]);
    project.fails(4, &["run", "j"]);
    project.ok(&["run", "k"]);
    // Without a project only the list names the owner of the directory.
    let root = project.path("data");
    let ran = project.run(&["-C", "/", "doctor", "--root", root.to_str().unwrap()]);
    assert!(ran.stdout.contains("exports/E_20200101: it is a file"), "{} {}", ran.stdout, ran.stderr);
    let (code, found) = doctor(&project, &["--fix"]);
    let left: Vec<_> = found.iter().filter(|finding| finding["fixed"] == false).collect();
    assert_eq!((code, left.len(), &left[0]["kind"]), (1, 1, &"published".into()), "the next run publishes it");
    project.ok(&["run", "j"]);
    assert_eq!(kwh(&project, "exports.E"), [1.0]);
}

#[test]
fn file_in_the_place_of_a_store_directory_is_found() {
    let project = project();
    for folder in ["failing", "seen", "tables/T", "rejected", "tables"] {
        let whole = project.path(&format!("data/{folder}"));
        let _ = fs::remove_dir_all(&whole);
        fs::write(&whole, "in the way").unwrap();
        let (code, found) = doctor(&project, &["--fix"]);
        let found: Vec<_> = found.iter().filter(|finding| finding["kind"] == "in_the_way").collect();
        assert_eq!((code, found.len()), (1, 1), "{found:?}");
        assert_eq!((&found[0]["path"], &found[0]["fixable"]), (&folder.into(), &false.into()));
        fs::remove_file(&whole).unwrap();
    }
}

#[test]
fn a_file_where_the_log_of_a_delta_table_belongs_stops_that_log_alone() {
    let delta = EXPORT.replace("[exports.E]", "[exports.D]\ndelta = true").replace("E_{day:%Y%m%d}", "D/dt={day}");
    let delta = delta.replace("meter, ts, kwh", "ts, kwh");
    let project = Project::new("j", &format!("{}{delta}{EXPORT}", readings_job!("in/*.csv", "", "")));
    write_day(&project, "in", 1, 1);
    project.run_job("j");
    fs::remove_dir_all(project.path("data/exports/D/_delta_log")).unwrap();
    project.write("data/exports/D/_delta_log", "in the way");
    write_day(&project, "in", 2, 2);
    for _ in 0..2 {
        let said = project.fails(4, &["run", "j"]);
        assert!(said.contains("exports/D/_delta_log is a file") && said.contains("move it away"), "{said}");
        for export in ["exports.E", "exports.D"] {
            assert_eq!(kwh(&project, export), [1.0, 2.0], "the days are published");
        }
    }
    let (code, found) = doctor(&project, &[]);
    assert_eq!((code, found.len(), &found[0]["kind"]), (1, 1, &"in_the_way".into()), "{found:?}");
    assert_eq!(found[0]["path"], "exports/D/_delta_log");
    fix(&project);
    // The run that failed, again.
    project.ok(&["retry", "last"]);
    let log = project.read("data/exports/D/_delta_log/00000000000000000000.json");
    assert_eq!(log.matches("\"add\"").count(), 2, "{log}");
    assert!(project.ok(&["plan", "j"]).contains("nothing to do"));
}
