//! Inputs that were rotated away: what is told of them, patterns of `--without`, and their rows out of the table.

use serde_json::json;

use crate::harness::Project;
use crate::harness::inputs::{assert_same_as_fresh, contents, put, rename};

/// A job of one value a row, with `columns` beside `d` and `ts`.
fn job(columns: &str, more: &str) -> String {
    format!(
        "name = \"j\"\n[sources.s]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\nschema = \"evolve\"\n[sources.s.columns]\n\
         d = \"text\"\nts = \"timestamp\"\n{columns}\n[tables.T]\nrow_key = \"{{d}}#{{ts:%Y%m%d}}\"\n[tables.T.families.A]\n\
         columns = [{{ qualifier = \"v\", value = \"{{v}}\" }}{more}]\n"
    )
}

const V: &str = "v = \"int64\"";

/// A project whose table has a file a day of January 2020, up to `days`.
fn loaded(days: u32) -> Project {
    let project = Project::new("j", &job(V, ""));
    for day in 1..=days {
        put(&project, &format!("in/{day:02}.csv"), &[("x", day, 1), ("y", day, 2)]);
    }
    project.ok(&["run", "j"]);
    project
}

fn rotate(project: &Project, days: impl Iterator<Item = u32>) {
    days.for_each(|day| rename(project, &format!("in/{day:02}.csv"), &format!("{day:02}.csv")));
}

/// The words after `marker` that a message offers as options of `run`.
fn offered(told: &str) -> Vec<String> {
    let (_, options) = told.split_once("rebuild with ").unwrap();
    let (options, _) = options.split_once(", which").unwrap();
    options.split(' ').map(|word| word.trim_matches('\'').to_owned()).collect()
}

#[test]
fn a_column_is_added_after_inputs_were_rotated_away() {
    let project = loaded(9);
    rotate(&project, 1..=7);
    project.ok(&["run", "j"]);
    let before = contents(&project);

    let columns = format!("{V}\nvib = \"float64\"");
    project.write("jobs/j/job.toml", job(&columns, ", { qualifier = \"vib\", value = \"{vib}\" }"));
    assert!(project.fails(2, &["run", "j"]).contains("--rebuild"));
    let told = project.fails(1, &["run", "j", "--rebuild"]);
    let options = offered(&told);
    assert_eq!(options, ["--without", "in/0{1,2,3,4,5,6,7}.csv"], "{told}");

    // The table still has its former layout, and gives the rows.
    let query = "select d, ts, v from T where ts < '2020-01-08'";
    project.ok(&["sql", "-O", "in/before-08.csv", "-c", query]);
    project.write("in/10.csv", "d,ts,v,vib\nz,2020-01-10T00:00:00Z,3,0.5\n");
    let mut args = vec!["run", "j", "--rebuild"];
    args.extend(options.iter().map(String::as_str));
    project.ok(&args);
    assert_eq!(contents(&project), format!("{before} z#10=3"));
    assert_eq!(project.sql("select count(vib) as n from T")[0]["n"], 1);
    assert_same_as_fresh(&project);
}

#[test]
fn an_owed_window_is_settled_by_the_rows_of_the_table() {
    let project = loaded(3);
    put(&project, "in/01_again.csv", &[("x", 1, 7)]);
    project.ok(&["run", "j"]);
    rotate(&project, 1..=1);
    put(&project, "in/01_again.csv", &[("x", 1, 8)]);
    let told = project.fails(4, &["run", "j"]);
    assert!(told.contains("docs/guide/inputs.md, \"Rows of files that are gone\""), "{told}");

    let query = "select d, ts, v from T where ts >= '2020-01-01' and ts < '2020-01-02'";
    project.ok(&["sql", "-O", "in/01.csv", "-c", query]);
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project), "x#01=8 x#02=1 x#03=1 y#01=2 y#02=2 y#03=2");
    assert_eq!(project.json(&["status", "j"])[0]["owed"], json!([]));
    assert_same_as_fresh(&project);
}

#[test]
fn a_pattern_removes_the_rows_of_missing_inputs_only() {
    let project = loaded(4);
    rotate(&project, 1..=2);
    project.ok(&["run", "j"]);

    let told = project.fails(2, &["run", "j", "--without", "out/*.csv"]);
    assert!(told.contains("no input of that name"), "{told}");
    let idle = project.messages(&["plan", "j", "--without", "in/03*"]);
    assert!(idle.contains("--without in/03* has no effect"), "{idle}");
    let plan = project.ok(&["plan", "j", "--without", "in/*.csv", "--output", "csv"]);
    assert_eq!(plan.matches("left out").count(), 2, "{plan}");

    // Of all jobs of the project, too.
    project.ok(&["run", "--all", "--without", "in/*.csv"]);
    assert_eq!(contents(&project), "x#03=1 x#04=1 y#03=2 y#04=2");
    assert_same_as_fresh(&project);
}

#[test]
fn rotated_inputs_are_one_line_of_a_run_and_of_a_plan() {
    let project = loaded(5);
    rotate(&project, 1..=3);

    let plan = project.ok(&["plan", "j"]);
    assert!(plan.contains("in/ (3 files)") && !plan.contains("in/01.csv"), "{plan}");
    // Programs get each.
    let plan = project.json(&["plan", "j"]);
    assert_eq!(plan.iter().filter(|row| row["why"] == "gone").count(), 3, "{plan:?}");

    let told = project.messages(&["run", "j"]);
    assert!(told.contains("3 inputs, from in/01.csv to in/03.csv, are gone: their cells stay in the table"), "{told}");
    assert!(!told.contains("--without"), "{told}");
    assert!(!project.messages(&["run", "j"]).contains("gone"), "once");
    let plan = project.ok(&["plan", "j"]);
    assert!(!plan.contains("in/") && plan.contains("nothing to do"), "what was told is nothing to do: {plan}");
    assert!(project.ok(&["plan", "j", "--verbose"]).contains("in/ (3 files)"));
    assert_eq!(project.json(&["plan", "j"]).iter().filter(|row| row["why"] == "gone").count(), 3);
}
