//! Windows that cannot be rebuilt, because an input of theirs is gone: all else is loaded and published, and they are owed.

use serde_json::{Value, json};

use crate::harness::Project;
use crate::harness::inputs::{append, assert_same_as_fresh, assert_up_to_date, contents, lines, put, rename};

const EXPORT: &str = "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\nformat = \"csv\"\n\
                      query = { sql = \"select d, v from T order by d\" }\n";

/// A job of sums in windows of `window`, with `more` at its end.
fn job(window: &str, more: &str) -> String {
    format!(
        "name = \"j\"\n[sources.s]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\nmax_rejected = \"50%\"\n[sources.s.columns]\n\
         d = \"text\"\nts = \"timestamp\"\nv = \"int64\"\n{}{more}",
        table("T", window)
    )
}

fn table(name: &str, window: &str) -> String {
    format!(
        "[tables.{name}]\nrow_key = \"{{d}}#{{ts:%Y%m%d}}\"\nwindow = \"{window}\"\n[tables.{name}.families.A]\n\
         kind = \"sum\"\ncolumns = [{{ qualifier = \"v\", value = \"{{v}}\", timestamp = 0 }}]\n"
    )
}

/// A table of which `in/old.csv` was rotated away, and a correction of its day arrived in `in/late.csv`.
fn corrected() -> Project {
    let project = Project::new("j", &job("day", EXPORT));
    put(&project, "in/old.csv", &[("x", 1, 5)]);
    put(&project, "in/late.csv", &[("y", 1, 1), ("y", 2, 2)]);
    project.ok(&["run", "j"]);
    rename(&project, "in/old.csv", "old.csv");
    put(&project, "in/late.csv", &[("y", 1, 9), ("w", 1, 4), ("y", 2, 7)]);
    append(&project, "in/late.csv", "y,never,1\n");
    project
}

/// The record of a run that ends with `code`.
fn ran(project: &Project, code: i32, args: &[&str]) -> Value {
    let ran = project.run(&[&["run", "j", "--output", "json"], args].concat());
    assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    crate::harness::json_lines(&ran.stdout).remove(0)
}

fn owed(project: &Project) -> Value {
    project.json(&["status", "j"]).remove(0)["owed"].clone()
}

#[test]
fn all_but_the_window_is_loaded_and_published() {
    let project = corrected();
    put(&project, "in/new.csv", &[("z", 3, 3), ("z", 1, 1)]);

    let plan = project.ok(&["plan", "j", "--output", "csv"]);
    assert!(plan.contains("owed,2020-01-01,T,stays as it is: in/old.csv gone"), "{plan}");
    let plan = project.messages(&["plan", "j"]);
    assert!(plan.contains("remove 1 row for good with --without in/old.csv"), "{plan}");

    let told = project.fails(4, &["run", "j"]);
    for part in [
        "T: window 2020-01-01 cannot be rebuilt and stays as it is, because in/old.csv is missing or empty",
        "owed there: 2 rows of in/late.csv",
        "or remove 1 row for good with --without in/old.csv",
        "run with --without in/old.csv to take them out (1 row)",
        "1 window not rebuilt",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // A new input is appended to the window, too.
    assert_eq!(contents(&project), "x#01=5 y#01=1 y#02=7 z#01=1 z#03=3");
    let published = project.files("data/exports").into_iter().filter(|(name, _)| name.contains("/E_20200103/"));
    assert_eq!(published.map(|(_, bytes)| bytes).collect::<Vec<_>>(), [b"d,v\nz,3\n"]);

    // Lineage does not say that all of the file is in the table.
    let links = project.json(&["lineage", "T"]);
    let owed_of = |file: &str| links.iter().find(|link| link["name"] == file).map(|link| link["owed"].clone());
    assert_eq!(owed_of("in/late.csv"), Some(json!("2020-01-01")), "{links:?}");
    assert_eq!(owed_of("in/new.csv"), Some(json!("")), "{links:?}");

    // With nothing new, it is still owed, and no file is read again.
    let plan = project.ok(&["plan", "j"]);
    assert!(plan.contains("nothing to do: a run ends with exit code 4 until the owed windows are settled"), "{plan}");
    let files = project.files("data/tables");
    let record = ran(&project, 4, &[]);
    let load = &record["loads"][0];
    let inputs = json!([{ "path": "in/late.csv", "rows": 2 }]);
    let window = json!({ "window": "2020-01-01", "inputs": inputs, "gone": ["in/old.csv"], "lost": false });
    assert_eq!((&load["owed"], &load["rows_read"]), (&json!([window]), &json!(0)), "{record}");
    assert_eq!(project.files("data/tables"), files);
    assert_eq!(owed(&project), json!([{ "table": "T", "windows": [window] }]));
    let status = project.run(&["status", "j"]);
    assert!(status.stdout.contains("T: 2020-01-01"), "{}", status.stdout);
    assert!(status.stderr.contains("in/old.csv is missing or empty"), "{}", status.stderr);
    assert!(status.stderr.contains("remove 1 row for good"), "{}", status.stderr);
}

#[test]
fn owed_rows_are_no_rejects_and_days_can_be_chosen() {
    // Four rows are read, of which two are owed and one is rejected: a quarter.
    for (most, code) in [("25%", 4), ("24%", 1)] {
        let project = corrected();
        project.write("jobs/j/job.toml", job("day", EXPORT).replace("50%", most));
        let told = project.fails(code, &["run", "j"]);
        assert_eq!(told.contains("nothing was committed"), code == 1, "{most}: {told}");
        let expected = if code == 4 { "x#01=5 y#01=1 y#02=7" } else { "x#01=5 y#01=1 y#02=2" };
        assert_eq!(contents(&project), expected, "{most}");
    }

    for chosen in [&["--day", "2020-01-03"][..], &["--from", "2020-01-02"]] {
        let project = corrected();
        put(&project, "in/new.csv", &[("z", 3, 3)]);
        project.fails(4, &[&["run", "j"], chosen].concat());
        let published = project.files("data/exports");
        assert!(published.keys().any(|name| name.contains("/E_20200103/")), "{chosen:?}: {:?}", published.keys());
        assert_eq!(contents(&project), "x#01=5 y#01=1 y#02=7 z#03=3", "{chosen:?}");
    }
}

#[test]
fn rows_are_conserved_and_settled_when_the_file_is_back() {
    let project = corrected();
    let record = ran(&project, 4, &[]);
    let count = |record: &Value, of: &str| record["loads"][0][of].as_u64().unwrap_or_default();
    let counts = ["rows_read", "rows_accepted", "rows_filtered", "rows_rejected", "rows_owed", "rows_settled"];
    assert_eq!(counts.map(|of| count(&record, of)), [4, 1, 0, 1, 2, 0], "{record}");

    rename(&project, "old.csv", "in/old.csv");
    let plan = project.ok(&["plan", "j", "--output", "csv"]);
    assert!(plan.contains("table,T,j,owed windows can be rebuilt,2020-01-01,"), "{plan}");
    assert!(plan.contains("publish,E_20200101"), "{plan}");
    let record = ran(&project, 0, &[]);
    assert_eq!(counts.map(|of| count(&record, of)), [0, 0, 0, 0, 0, 2], "{record}");
    assert_eq!(record["loads"][0]["rebuilt"], json!(["2020-01-01"]), "{record}");
    assert_eq!(record["notes"], json!(["T: 2 rows that were owed are read"]), "{record}");
    assert_eq!(contents(&project), "w#01=4 x#01=5 y#01=9 y#02=7");
    assert_eq!(owed(&project), json!([]));
    // The row that was rejected is known by the run that read it.
    assert_eq!(project.sql("select count(*) as n from runs.rejects")[0]["n"], 1);
    assert_same_as_fresh(&project);
}

#[test]
fn without_the_file_the_window_is_rebuilt() {
    // Whether the correction was read before or is read now.
    for is_owed in [true, false] {
        let project = corrected();
        if is_owed {
            project.fails(4, &["run", "j"]);
        }
        project.ok(&["run", "j", "--without", "in/old.csv"]);
        assert_eq!(contents(&project), "w#01=4 y#01=9 y#02=7");
        assert_same_as_fresh(&project);
    }
}

#[test]
fn former_content_owes_nothing() {
    let project = corrected();
    project.fails(4, &["run", "j"]);
    put(&project, "in/late.csv", &[("y", 1, 1), ("y", 2, 2)]);
    let load = &ran(&project, 0, &[])["loads"][0];
    let counts = ["rows_read", "rows_accepted", "rows_owed", "rows_written"].map(|count| load[count].as_u64());
    assert_eq!(counts, [1, 1, 0, 1].map(Some), "the row of the window that stays is there already: {load}");
    assert_eq!(contents(&project), "x#01=5 y#01=1 y#02=2");
    assert_eq!(owed(&project), json!([]));
    rename(&project, "old.csv", "in/old.csv");
    assert_same_as_fresh(&project);
}

#[test]
fn owed_windows_follow_later_changes() {
    let project = corrected();
    project.fails(4, &["run", "j"]);
    // The file grows: only new rows are read, also of the owed window.
    append(&project, "in/late.csv", &lines(&[("v", 1, 1), ("v", 4, 4)]));
    let record = ran(&project, 4, &[]);
    assert_eq!((&record["loads"][0]["rows_read"], &record["loads"][0]["cells"]), (&json!(2), &json!(2)), "{record}");
    assert_eq!(contents(&project), "v#01=1 v#04=4 x#01=5 y#01=1 y#02=7");
    // It leaves the owed window.
    put(&project, "in/late.csv", &[("y", 2, 8)]);
    let told = project.fails(4, &["run", "j"]);
    assert!(told.contains("owed there: the change of in/late.csv"), "{told}");
    // It is renamed, and then gone, too.
    rename(&project, "in/late.csv", "in/later.csv");
    project.fails(4, &["run", "j"]);
    assert_eq!(owed(&project)[0]["windows"][0]["inputs"][0]["path"], "in/later.csv");
    rename(&project, "in/later.csv", "later.csv");
    let told = project.fails(4, &["run", "j"]);
    assert!(told.contains("--without in/later.csv --without in/old.csv"), "{told}");
    rename(&project, "later.csv", "in/later.csv");
    rename(&project, "old.csv", "in/old.csv");
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project), "x#01=5 y#02=8");
    assert_same_as_fresh(&project);
}

#[test]
fn removed_input_stays_in_windows_of_other_missing_inputs() {
    let project = Project::new("j", &job("day", EXPORT));
    put(&project, "in/a.csv", &[("a", 1, 1), ("a", 2, 1)]);
    put(&project, "in/b.csv", &[("b", 2, 1), ("b", 3, 1)]);
    put(&project, "in/c.csv", &[("c", 1, 1)]);
    project.ok(&["run", "j"]);
    rename(&project, "in/a.csv", "a.csv");
    rename(&project, "in/b.csv", "b.csv");
    put(&project, "in/c.csv", &[("c", 1, 2)]);
    // Without a, day 2 must be rebuilt, of which b is missing: all are named at once.
    let told = project.fails(4, &["run", "j"]);
    assert!(
        told.contains("because in/a.csv is missing or empty") && told.contains("--without in/a.csv --without in/b.csv"),
        "{told}"
    );
    let told = project.fails(4, &["run", "j", "--without", "in/a.csv"]);
    assert!(
        told.contains("window 2020-01-02 cannot be rebuilt") && told.contains("because in/b.csv is missing or empty"),
        "{told}"
    );
    assert_eq!(contents(&project), "a#02=1 b#02=1 b#03=1 c#01=2");
    let again = project.fails(4, &["run", "j"]);
    assert!(again.contains("the change of in/a.csv"), "{again}");
    rename(&project, "b.csv", "in/b.csv");
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project), "b#02=1 b#03=1 c#01=2");
    assert_same_as_fresh(&project);
}

#[test]
fn each_table_owes_its_own_windows_and_derived_tables_follow() {
    let derived = "[tables.D]\nfrom = { query = { sql = \"select ts, d, v from T\" } }\nrow_key = \"{d}#{ts:%Y%m%d}\"\n\
                   [tables.D.families.A]\ncolumns = [{ qualifier = \"v\", value = \"{v}\" }]\n";
    let project = Project::new("j", &job("day", &format!("{}{derived}", table("M", "month"))));
    put(&project, "in/old.csv", &[("x", 1, 5)]);
    put(&project, "in/late.csv", &[("y", 1, 1), ("y", 2, 2)]);
    project.ok(&["run", "j"]);
    rename(&project, "in/old.csv", "old.csv");
    put(&project, "in/late.csv", &[("y", 1, 9), ("y", 2, 7)]);
    let record = ran(&project, 4, &[]);
    let owed = |at: usize| record["loads"][at]["owed"][0]["window"].clone();
    assert_eq!((owed(0), owed(1), owed(2)), (json!("2020-01-01"), json!("2020-01"), Value::Null), "{record}");
    let held = |table: &str| project.csv(&format!("select d, v from {table} order by d, v"));
    assert_eq!((held("T"), held("M")), ("d,v\nx,5\ny,1\ny,7\n".to_owned(), "d,v\nx,5\ny,1\ny,2\n".to_owned()));
    assert_eq!(held("D"), held("T"));
    // A rebuild needs all inputs.
    let told = project.fails(1, &["run", "j", "--rebuild"]);
    assert!(told.contains("--without in/old.csv"), "{told}");
    rename(&project, "old.csv", "in/old.csv");
    project.ok(&["run", "j"]);
    assert_eq!(held("M"), "d,v\nx,5\ny,7\ny,9\n");
    assert_eq!((held("D"), held("T")), (held("M"), held("M")));
    assert_up_to_date(&project);
    project.ok(&["run", "j", "--rebuild"]);
    assert_eq!(held("T"), held("M"));
}

#[test]
fn missing_inputs_are_noted_in_a_line() {
    let project = Project::new("j", &job("day", ""));
    for at in 0..12 {
        put(&project, &format!("in/{at:02}.csv"), &[(format!("x{at}").as_str(), 1, 1)]);
    }
    project.ok(&["run", "j"]);
    for at in 0..11 {
        rename(&project, &format!("in/{at:02}.csv"), &format!("{at:02}.csv"));
    }
    let told = project.run(&["run", "j", "--verbose"]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert_eq!(told.stderr.matches("gone").count(), 1, "{}", told.stderr);
    assert!(told.stderr.contains("11 inputs, from in/00.csv to in/10.csv, are gone"), "{}", told.stderr);
    // The record and the figures name each.
    assert!((0..11).all(|at| told.stdout.contains(&format!("in/{at:02}.csv"))), "{}", told.stdout);
}
