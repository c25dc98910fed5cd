//! Roots written by older builds: every build reads them, gives the same answers and finds nothing to do.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::process::Command;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::harness::{Project, repository};

/// The project of `tests/fixtures/root-N.tar.gz`, and what it answered when it was written.
fn stored(root: &str) -> (Project, Value) {
    let fixtures = repository().join("tests/fixtures");
    let project = Project::empty();
    let archive = fixtures.join(format!("{root}.tar.gz"));
    let tar = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(project.path("")).status().unwrap();
    assert!(tar.success());
    let expected = fs::read_to_string(fixtures.join(format!("{root}.json"))).unwrap();
    (project, serde_json::from_str(&expected).unwrap())
}

fn digest(lines: &[String]) -> Value {
    let mut hash = Sha256::new();
    lines.iter().for_each(|line| hash.update(line));
    let hex = hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    });
    Value::from(vec![Value::from(lines.len()), Value::from(&hex[..16])])
}

/// Cells and records of every table, as `tests/fixtures/README.md` describes them.
fn answers(project: &Project, expected: &Value) -> Value {
    let mut script = String::new();
    for table in expected["cells"].as_object().unwrap().keys() {
        writeln!(script, "SELECT 'cells' AS section, '{table}' AS of_table;").unwrap();
        writeln!(script, "SELECT * FROM cells.\"{table}\" ORDER BY row_key, family, qualifier, timestamp;").unwrap();
        writeln!(script, "SELECT 'records' AS section, '{table}' AS of_table;").unwrap();
        writeln!(script, "SELECT * FROM \"{table}\";").unwrap();
    }
    project.write("answers.sql", script);
    let printed = project.ok(&["sql", "--output", "json", "-f", "answers.sql"]);
    let mut sections: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let mut section = None;
    for line in printed.lines() {
        if line.starts_with("{\"section\":") {
            let marker: Value = serde_json::from_str(line).unwrap();
            let text = |key: &str| marker[key].as_str().unwrap().to_owned();
            section = Some(sections.entry((text("section"), text("of_table"))).or_default());
        } else {
            section.as_mut().unwrap().push(line.to_owned());
        }
    }
    let mut answers = serde_json::json!({ "cells": {}, "records": {}, "exports": {} });
    for ((section, table), mut lines) in sections {
        if section == "records" {
            lines.sort_unstable();
            // Records were joined by line feeds, cells ended by them.
            lines.iter_mut().skip(1).for_each(|line| line.insert(0, '\n'));
        } else {
            lines.iter_mut().for_each(|line| line.push('\n'));
        }
        answers[section][table] = digest(&lines);
    }
    answers
}

#[test]
fn stored_roots_give_the_same_answers() {
    for root in ["root-1", "root-2"] {
        let (project, expected) = stored(root);
        let answers = answers(&project, &expected);
        for section in ["cells", "records"] {
            for (table, value) in expected[section].as_object().unwrap() {
                assert_eq!(&answers[section][table], value, "{section} of {table}");
            }
        }
        project.ok(&["verify"]);
    }
}

/// `root-2` was loaded by the first reading rules: there a stray quote joins lines up to the next one.
#[test]
fn inputs_go_on_under_the_rules_by_which_they_were_loaded() {
    let (project, _) = stored("root-2");
    let totals =
        || project.csv("select count(*), sum(kwh), max(length(note)) from H").lines().nth(1).unwrap().to_owned();
    assert_eq!(totals(), "40,680,306");
    let before = project.files("data/tables");
    project.ok(&["run", "h"]);
    assert_eq!(project.files("data/tables"), before, "an upgrade alone reloads nothing");

    // It has grown by lines that the two rules read differently.
    let line = |at: usize, note: &str| format!("2021-04-01T01:{at:02}:00Z,{note},P0,{at}\n");
    let more = [line(0, "ok"), line(1, "\"6 in"), line(2, "ok"), line(3, "\"6 in"), line(4, "ok")].concat();
    project.write("in/a.csv", project.read("in/a.csv") + &more);
    let plan = project.run(&["plan", "h"]);
    let told = plan.stdout + &plan.stderr;
    assert!(told.contains("in/a.csv goes on under the reading rules"), "{told}");
    let record = project.run_job("h");
    assert_eq!(record["loads"][0]["inputs"][0]["state"], "grown");
    assert_eq!(totals(), "43,687,306");

    // Another input has its windows rebuilt: it is read again by the same rules.
    project.write("in/c.csv", "ts,note,pipe,kwh\n2021-04-01T00:00:00Z,ok,C,1\n");
    project.ok(&["run", "h"]);
    project.write("in/c.csv", "ts,note,pipe,kwh\n2021-04-01T00:00:00Z,ok,C,2\n");
    project.ok(&["run", "h"]);
    assert_eq!(totals(), "44,689,306");
    assert_eq!(project.csv("select count(*) from H where ends_with(note, chr(13))").lines().nth(1), Some("10"));

    let job = project.read("jobs/h/job.toml").replace("\"1%\"", "\"20%\"");
    project.write("jobs/h/job.toml", job);
    let plan = project.run(&["plan", "h", "--rebuild"]);
    let told = plan.stdout + &plan.stderr;
    assert!(told.contains("reads 2 inputs by the reading rules of this version"), "{told}");
    project.ok(&["run", "h", "--rebuild"]);
    assert_eq!(totals(), "52,803,2");
    assert_eq!(project.csv("select count(*) from H where ends_with(note, chr(13))").lines().nth(1), Some("0"));
}

#[test]
fn run_over_a_stored_root_changes_nothing() {
    check_run_changes_nothing("root-1", 7);
    check_run_changes_nothing("root-2", 1);
}

/// Runs the jobs of a stored root, of which there are `jobs`.
fn check_run_changes_nothing(root: &str, jobs: usize) {
    let (project, _) = stored(root);
    let tables = |project: &Project| -> Vec<Value> { project.json(&["tables"]) };
    let stored_files = |project: &Project| {
        let mut files = project.files("data/exports");
        files.extend(project.files("data/tables").into_iter().filter(|(name, _)| name.ends_with(".sst")));
        files
    };
    let (tables_before, files_before) = (tables(&project), stored_files(&project));
    let runs = project.json(&["run", "--all"]);
    assert_eq!(runs.len(), jobs);
    for run in &runs {
        assert_eq!(run["outcome"], "ok", "{run}");
        assert!(run.get("parts").and_then(Value::as_array).is_none_or(Vec::is_empty), "published: {run}");
    }
    // Older builds did not store the names of copies: the first run stores them in a version without other changes.
    let noted = |table: &Value| {
        let copies = |load: &Value| {
            load["inputs"].as_array().is_some_and(|all| all.iter().any(|input| input["state"] == "same content"))
        };
        let loads = runs.iter().flat_map(|run| run["loads"].as_array().into_iter().flatten());
        loads.filter(|load| load["table"] == table["name"]).any(copies)
    };
    for (table, before) in tables(&project).iter().zip(&tables_before) {
        let mut expected = before.clone();
        if noted(table) {
            expected["version"] = (before["version"].as_u64().unwrap() + 1).into();
        }
        assert_eq!(table, &expected);
    }
    let noted_tables = tables(&project);
    project.ok(&["run", "--all"]);
    assert_eq!(tables(&project), noted_tables, "no table has another version");
    let files_after = stored_files(&project);
    let changed: Vec<_> = files_before
        .keys()
        .chain(files_after.keys())
        .filter(|name| files_before.get(*name) != files_after.get(*name))
        .collect();
    assert!(changed.is_empty(), "changed: {changed:?}");
}
