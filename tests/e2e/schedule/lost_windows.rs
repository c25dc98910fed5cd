//! Damaged SSTs and a night: all else is built and published, the run ends with exit code 4, and no published day is
//! replaced by one that lacks rows.

use std::fs;

use serde_json::{Value, json};

use crate::harness::inputs::{append, assert_same_as_fresh, assert_up_to_date, contents, lines, put, rename};
use crate::harness::{Project, flip_bit};

const EXPORT: &str = "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\nformat = \"csv\"\n\
                      query = { sql = \"select d, v from T order by d\" }\n";

const DERIVED: &str = "[tables.D]\nfrom = { query = { sql = \"select ts, d, v from T\" } }\nrow_key = \"{d}#{ts:%Y%m%d}\"\n\
                       [tables.D.families.A]\ncolumns = [{ qualifier = \"v\", value = \"{v}\" }]\n\
                       [exports.F]\nper = \"day\"\nname = \"F_{day:%Y%m%d}\"\nformat = \"csv\"\n\
                       query = { sql = \"select d, v from D order by d\" }\n";

/// A job of sums by day, with `more` after its name and `end` at its end.
fn job(more: &str, end: &str) -> String {
    format!(
        "name = \"j\"\n{more}[sources.s]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\nmax_rejected = \"50%\"\n\
         [sources.s.columns]\nd = \"text\"\nts = \"timestamp\"\nv = \"int64\"\n[tables.T]\n\
         row_key = \"{{d}}#{{ts:%Y%m%d}}\"\n[tables.T.families.A]\nkind = \"sum\"\n\
         columns = [{{ qualifier = \"v\", value = \"{{v}}\", timestamp = 0 }}]\n{EXPORT}{end}"
    )
}

/// Three days of an input each, published.
fn three_days(job: &str) -> Project {
    let project = Project::new("j", job);
    for day in 1..=3 {
        put(&project, &format!("in/{day}.csv"), &[("x", day, day.into())]);
    }
    project.ok(&["run", "j"]);
    project
}

/// Path of the SST of the day `day` of January 2020.
fn sst(project: &Project, day: u32) -> String {
    let window = format!("2020-01-{day:02}");
    let files = project.json(&["verify", "T"]);
    let file = files.iter().find(|file| file["window"] == window.as_str() && file["kind"] == "table");
    format!("data/{}", file.unwrap()["file"].as_str().unwrap())
}

/// The published day as CSV; `None` if it is not there.
fn published(project: &Project, export: &str, day: u32) -> Option<String> {
    let file = format!("data/exports/{export}_202001{day:02}/part-0.csv");
    fs::read_to_string(project.path(&file)).ok()
}

/// Three days, of which the second lost its SST to a repair after its input was rotated away.
fn repaired(end: &str) -> Project {
    let project = three_days(&job("", end));
    rename(&project, "in/2.csv", "2.csv");
    flip_bit(project.path(&sst(&project, 2)));
    let ran = project.run(&["repair", "T", "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for part in ["in/2.csv is missing or empty", "window 2020-01-02 cannot be rebuilt", "--without"] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    project
}

fn owed(project: &Project) -> Value {
    project.json(&["status", "j"]).remove(0)["owed"].clone()
}

#[test]
fn whoever_reads_a_table_that_lost_a_window_is_told() {
    let project = repaired("");
    let told = |args: &[&str], code: i32| {
        let ran = project.run(args);
        assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.stderr);
        ran.stderr.replace("\n  ", " ")
    };
    for args in [
        &["sql", "-c", "select count(*) from T"][..],
        &["sql", "-c", "select count(*) from cells.T"],
        &["sql", "-c", "summarize T"],
        &["sql", "-c", "select * from T", "--output", "parquet", "-O", "t.parquet"],
        &["read", "T"],
        &["export", "T", "--to", "t.csv"],
        &["export", "-c", "select * from T", "--to", "q.csv"],
        &["describe", "T"],
    ] {
        let said = told(args, 0);
        assert!(said.contains("rows are missing from T: window 2020-01-02 lost a damaged SST"), "{args:?}: {said}");
        assert!(said.contains("tidetable status j"), "{args:?}: {said}");
    }
    assert!(!told(&["sql", "-c", "select 1"], 0).contains("missing"), "only who reads the table is told");

    // The run does not say of lost cells that they stay.
    let said = told(&["run", "j"], 4);
    assert!(
        said.contains("in/2.csv is gone: its cells stay in the table, except those lost with window 2020-01-02"),
        "{said}"
    );
    rename(&project, "2.csv", "in/2.csv");
    project.ok(&["run", "j"]);
    assert!(!told(&["sql", "-c", "select count(*) from T"], 0).contains("missing"));
}

#[test]
fn a_day_whose_input_is_gone_stays_as_published() {
    let project = repaired("");
    put(&project, "in/4.csv", &[("x", 4, 4)]);
    let plan = project.ok(&["plan", "j", "--output", "csv"]);
    assert!(plan.contains("owed,2020-01-02,T,stays as it is: in/2.csv gone"), "{plan}");
    assert!(plan.contains("owed,E_20200102,E,") && !plan.contains("publish,E_20200102"), "{plan}");

    let told = project.fails(4, &["run", "j"]);
    for part in ["window 2020-01-02 lost cells", "in/2.csv is gone", "--without in/2.csv", "1 window not rebuilt"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(published(&project, "E", 2).as_deref(), Some("d,v\nx,2\n"));
    assert_eq!(published(&project, "E", 4).as_deref(), Some("d,v\nx,4\n"));

    // A run with nothing new, and one that would publish all, leave the day, too.
    for args in [&["run", "j"][..], &["run", "j", "--force"]] {
        project.fails(4, args);
        assert_eq!(published(&project, "E", 2).as_deref(), Some("d,v\nx,2\n"), "{args:?}");
    }
    // So does a new input of the day: its row is loaded.
    put(&project, "in/late.csv", &[("y", 2, 5)]);
    project.fails(4, &["run", "j"]);
    assert_eq!(published(&project, "E", 2).as_deref(), Some("d,v\nx,2\n"));
    assert_eq!(contents(&project), "x#01=1 x#03=3 x#04=4 y#02=5");

    let window = json!({ "window": "2020-01-02", "inputs": [{ "path": "in/2.csv", "rows": 0 }], "gone": ["in/2.csv"], "lost": true });
    assert_eq!(owed(&project), json!([{ "table": "T", "windows": [window] }]));
    let status = project.run(&["status", "j"]);
    assert!(status.stdout.contains("T: 2020-01-02") && status.stdout.contains("E: 2020-01-02"), "{}", status.stdout);
    assert!(status.stderr.contains("lost cells"), "{}", status.stderr);
    let report = project.ok(&["report", "j"]).replace('\n', " ");
    assert!(report.contains("1 window owed (T: 2020-01-02)"), "{report}");
    let loads = project.sql("select windows_owed as n from runs.loads order by run desc limit 1");
    assert_eq!(loads[0]["n"], 1);

    // `retry` tries it again, and succeeds once the file is back.
    assert!(project.fails(4, &["retry", "last"]).contains("1 window not rebuilt"));
    rename(&project, "2.csv", "in/2.csv");
    project.ok(&["retry", "last"]);
    assert_eq!(published(&project, "E", 2).as_deref(), Some("d,v\nx,2\ny,5\n"));
    assert_eq!(owed(&project), json!([]));
    assert_same_as_fresh(&project);
}

#[test]
fn without_the_input_the_day_is_settled() {
    let project = repaired("");
    project.fails(4, &["run", "j"]);
    project.ok(&["run", "j", "--without", "in/2.csv"]);
    assert_eq!((contents(&project).as_str(), published(&project, "E", 2)), ("x#01=1 x#03=3", None));
    assert_eq!(owed(&project), json!([]));
    assert_up_to_date(&project);
}

#[test]
fn with_all_inputs_there_only_the_window_is_rebuilt() {
    let project = three_days(&job("", ""));
    put(&project, "in/both.csv", &[("y", 2, 7), ("y", 3, 8)]);
    project.ok(&["run", "j"]);
    rename(&project, "in/3.csv", "3.csv");
    flip_bit(project.path(&sst(&project, 2)));
    project.ok(&["repair", "T", "--yes"]);
    // An input of the window was renamed meanwhile; the other day of `both` needs no rebuild, so nothing is owed.
    rename(&project, "in/2.csv", "in/two.csv");
    let record = project.json(&["run", "j"]).remove(0);
    assert_eq!(
        (&record["outcome"], &record["loads"][0]["rebuilt"]),
        (&json!("ok"), &json!(["2020-01-02"])),
        "{record}"
    );
    assert_eq!(contents(&project), "x#01=1 x#02=2 x#03=3 y#02=7 y#03=8");
    rename(&project, "3.csv", "in/3.csv");
    assert_same_as_fresh(&project);
}

#[test]
fn derived_tables_keep_what_a_window_lost() {
    let project = repaired(DERIVED);
    put(&project, "in/late.csv", &[("y", 2, 5), ("y", 4, 4)]);
    project.fails(4, &["run", "j"]);
    let held = "select d, v from D order by d, v";
    assert_eq!(project.csv(held), "d,v\nx,1\nx,2\nx,3\ny,4\n");
    assert_eq!(published(&project, "F", 2).as_deref(), Some("d,v\nx,2\n"));
    let told = project.fails(1, &["run", "j", "--rebuild", "--select", "table:D"]);
    assert!(told.contains("in/2.csv") || told.contains("T@2020-01-02"), "{told}");
    rename(&project, "2.csv", "in/2.csv");
    project.ok(&["run", "j"]);
    assert_eq!(project.csv(held), "d,v\nx,1\nx,2\nx,3\ny,4\ny,5\n");
    assert_eq!(published(&project, "F", 2).as_deref(), Some("d,v\nx,2\ny,5\n"));
    assert_up_to_date(&project);
}

#[test]
fn a_derived_table_that_has_to_wait_is_named() {
    let whole = DERIVED.replace("[tables.D.families.A]", "window = \"none\"\n[tables.D.families.A]");
    let all = "D stays as it was: a damaged SST took cells of window 2020-01-02 of T, and its query reads all windows at once";
    let of_day = "D keeps what it has of window 2020-01-02 of T, of which a damaged SST took cells";
    for (derived, said, held) in
        [(whole.as_str(), all, "d,v\nx,1\nx,2\nx,3\n"), (DERIVED, of_day, "d,v\nx,1\nx,2\nx,3\nx,4\n")]
    {
        let project = repaired(derived);
        put(&project, "in/4.csv", &[("x", 4, 4)]);
        let plan = project.run(&["plan", "j", "--output", "csv"]);
        assert!(plan.stderr.contains(said), "{}", plan.stderr);
        assert_eq!(plan.stdout.contains("table,D,j,upstream changed"), said == of_day, "{}", plan.stdout);

        // In each run as long as it is so.
        for _ in 0..2 {
            let told = project.fails(4, &["run", "j"]);
            assert!(told.contains(&format!("warning: {said}")), "{told}");
        }
        assert_eq!(project.csv("select d, v from D order by v"), held);
        let status = project.run(&["status", "j"]);
        assert!(status.stderr.replace("\n  ", " ").contains(said), "{}", status.stderr);

        rename(&project, "2.csv", "in/2.csv");
        let plan = project.run(&["plan", "j"]);
        assert!(plan.stdout.contains(" D ") && !plan.stderr.contains(said), "{}{}", plan.stdout, plan.stderr);
        assert!(!project.messages(&["run", "j"]).contains("D keeps"));
        assert_eq!(project.csv("select d, v from D order by v"), "d,v\nx,1\nx,2\nx,3\nx,4\n");
        assert!(!project.run(&["status", "j"]).stderr.contains(said));
        assert_up_to_date(&project);
    }
}

#[test]
fn a_damaged_sst_holds_back_its_own_day_only() {
    let jobs = [job("", ""), job("timezone = \"Europe/Berlin\"\n", ""), job("", DERIVED)];
    for (at, job) in jobs.iter().enumerate() {
        let project = three_days(job);
        let damaged = sst(&project, 2);
        flip_bit(project.path(&damaged));
        put(&project, "in/4.csv", &[("x", 4, 4)]);
        put(&project, "in/late.csv", &[("y", 2, 5)]);
        append(&project, "in/3.csv", &lines(&[("z", 3, 9)]));
        let told = project.fails(4, &["run", "j"]);
        let name = damaged.strip_prefix("data/").unwrap();
        for part in [name, "window 2020-01-02", "tidetable repair T --yes", "`tidetable retry"] {
            assert!(told.contains(part), "{at}: {part}: {told}");
        }
        let line = told.lines().find(|line| line.contains(name)).unwrap_or_default();
        assert!(!line.contains("rebuild its window;"), "{at}: the remedy is said once: {line}");
        assert!(published(&project, "E", 4).is_some(), "{at}: {told}");
        // A day of Berlin lies in two windows.
        if at != 1 {
            assert_eq!(published(&project, "E", 3).as_deref(), Some("d,v\nx,3\nz,9\n"), "{at}");
        }
        assert_eq!(published(&project, "E", 2).as_deref(), Some("d,v\nx,2\n"), "{at}");
        // It stays so until it is mended.
        project.fails(4, &["run", "j"]);
        project.fails(4, &["retry", "last"]);
        project.ok(&["repair", "T", "--yes"]);
        project.ok(&["run", "j"]);
        assert_eq!(published(&project, "E", 2).as_deref(), Some("d,v\nx,2\ny,5\n"), "{at}");
        if at == 2 {
            assert_eq!(project.csv("select count(*) as n from D"), "n\n6\n");
        }
        assert_up_to_date(&project);
    }
}

#[test]
fn a_missing_sst_is_one_that_is_damaged() {
    let project = three_days(&job("", ""));
    let missing = sst(&project, 2);
    fs::remove_file(project.path(&missing)).unwrap();
    put(&project, "in/4.csv", &[("x", 4, 4)]);
    put(&project, "in/late.csv", &[("y", 2, 5)]);
    let told = project.fails(4, &["run", "j"]);
    assert!(told.contains("is missing; restore it") && told.contains("window 2020-01-02"), "{told}");
    assert!(published(&project, "E", 4).is_some(), "{told}");
    project.ok(&["repair", "T", "--yes"]);
    project.ok(&["run", "j"]);
    assert_eq!(published(&project, "E", 2).as_deref(), Some("d,v\nx,2\ny,5\n"));
}

#[test]
fn a_name_that_is_no_input_is_refused() {
    let project = three_days(&job("", ""));
    rename(&project, "in/2.csv", "2.csv");
    for args in [&["run", "j"][..], &["run", "j", "--dry-run"], &["plan", "j"], &["run", "--all"], &["plan", "--all"]] {
        let told = project.fails(2, &[args, &["--without", "2.csv"]].concat());
        assert!(told.contains("no input of that name") && told.contains("in/2.csv"), "{args:?}: {told}");
    }
    // A file that is there is an input; nothing is removed, and that is said.
    for args in [&["run", "j"][..], &["plan", "j"], &["run", "--all"]] {
        let told = project.messages(&[args, &["--without", "in/1.csv"]].concat());
        assert!(told.contains("--without in/1.csv has no effect"), "{args:?}: {told}");
    }
    project.ok(&["run", "j", "--without", "in/2.csv"]);
    // The same command once more.
    project.ok(&["run", "j", "--without", "in/2.csv"]);
    assert_eq!(contents(&project), "x#01=1 x#03=3");
}

#[test]
fn one_thing_is_said_of_a_window() {
    let project = three_days(&job("", ""));
    put(&project, "in/late.csv", &[("y", 2, 1), ("y", 3, 1)]);
    project.ok(&["run", "j"]);
    rename(&project, "in/2.csv", "2.csv");
    put(&project, "in/late.csv", &[("y", 2, 8), ("y", 3, 8)]);
    let told = project.fails(4, &["run", "j"]);
    assert!(told.contains("in/late.csv changed: the windows it touches are rebuilt, except 2020-01-02"), "{told}");
    put(&project, "in/late.csv", &[("y", 2, 9)]);
    rename(&project, "in/3.csv", "3.csv");
    let told = project.fails(4, &["run", "j"]);
    assert!(!told.contains("are rebuilt"), "{told}");
}
