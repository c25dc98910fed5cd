//! Exports whose names, days, rules or files change.

use std::fs;

use crate::harness::Project;

const SOURCE: &str = r#"
[sources.readings]
files = ["in/*.csv"]
time = "ts"
max_rejected = "50%"

[sources.readings.columns]
meter = "uint64"
ts = "timestamp"
kwh = "float64"
"#;

fn job(name: &str, table: &str, timezone: &str, exports: &[(&str, &str)]) -> String {
    let mut text = format!("name = \"{name}\"\ntimezone = \"{timezone}\"\n{SOURCE}");
    text += &format!("\n[tables.{table}]\nrow_key = \"{{meter:03}}#{{ts:%Y%m%d}}\"\n");
    text +=
        &format!("\n[tables.{table}.families.M]\ncolumns = [{{ qualifier = \"{{ts:%H%M}}\", value = \"{{kwh}}\" }}]\n");
    for (export, template) in exports {
        text += &format!("\n[exports.{export}]\nper = \"day\"\nname = \"{template}\"\n");
        text += &format!("query = {{ sql = \"select meter, ts, kwh, '{export}' as made_by from {table}\" }}\n");
    }
    text
}

fn project(exports: &[(&str, &str)]) -> Project {
    let project = Project::new("j", &job("j", "T", "UTC", exports));
    project.write(
        "in/a.csv",
        "meter,ts,kwh\n1,2020-01-02T23:30:00Z,1\n2,2020-02-01T00:00:00Z,2\n3,2020-03-03T00:00:00Z,3\n",
    );
    project.run_job("j");
    project
}

fn count(project: &Project, table: &str) -> u64 {
    project.sql(&format!("select count(*) as n from {table}"))[0]["n"].as_u64().unwrap()
}

#[test]
fn exports_can_swap_names() {
    let project = project(&[("E", "E_{day:%Y%m%d}"), ("F", "F_{day:%Y%m%d}")]);
    project.write("jobs/j/job.toml", job("j", "T", "UTC", &[("E", "F_{day:%Y%m%d}"), ("F", "E_{day:%Y%m%d}")]));
    project.run_job("j");
    for export in ["E", "F"] {
        assert_eq!(count(&project, &format!("exports.{export} where made_by = '{export}'")), 3);
    }
    assert_eq!(count(&project, "exports.E_20200102 where made_by = 'F'"), 1);
}

#[test]
fn new_name_can_be_the_old_name_of_another_day() {
    let project = project(&[("E", "E_{day:%Y%m%d}")]);
    project.write("jobs/j/job.toml", job("j", "T", "UTC", &[("E", "E_{day:%Y%d%m}")]));
    project.run_job("j");
    assert_eq!(count(&project, "exports.E"), 3);
    assert_eq!(project.sql("select meter from exports.E_20200201")[0]["meter"], 1);
    assert!(
        !project.path("data/exports/E_20200303").join("part-0.parquet").exists()
            || count(&project, "exports.E_20200303") == 1
    );
}

#[test]
fn job_cannot_publish_over_an_export_of_another_job() {
    let project = project(&[("E", "E_{day:%Y%m%d}")]);
    let before = project.files("data/exports");
    project.write("jobs/k/job.toml", job("k", "U", "UTC", &[("E", "X_{day:%Y%m%d}")]));
    assert!(project.fails(2, &["run", "k"]).contains("published by job j"));
    project.write("jobs/k/job.toml", job("k", "U", "UTC", &[("X", "E_{day:%Y%m%d}")]));
    assert!(project.fails(2, &["run", "k"]).contains("published by job j"));
    assert_eq!(project.files("data/exports"), before);
}

#[test]
fn changed_time_zone_moves_rows_between_days() {
    let project = project(&[("E", "E_{day:%Y%m%d}")]);
    project.write("jobs/j/job.toml", job("j", "T", "Europe/Paris", &[("E", "E_{day:%Y%m%d}")]));
    project.run_job("j");
    assert_eq!(count(&project, "exports.E"), 3);
    assert_eq!(count(&project, "exports.E_20200102"), 0);
    assert_eq!(count(&project, "exports.E_20200103"), 1);
}

#[test]
fn removed_part_is_published_again() {
    let project = project(&[("E", "E_{day:%Y%m%d}")]);
    fs::remove_dir_all(project.path("data/exports/E_20200201")).unwrap();
    project.run_job("j");
    assert_eq!(count(&project, "exports.E"), 3);
}

#[test]
fn recreated_table_is_published_again() {
    let project = project(&[("E", "E_{day:%Y%m%d}")]);
    fs::remove_dir_all(project.path("data/tables")).unwrap();
    project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-02T23:30:00Z,77\n");
    let said = project.fails(2, &["run", "j"]);
    assert!(said.contains("table T, which does not exist any more") && said.contains("--rebuild"), "{said}");
    project.ok(&["run", "j", "--rebuild"]);
    assert_eq!(project.sql("select kwh from exports.E"), [serde_json::json!({ "kwh": 77.0 })]);
}

#[test]
fn changed_gc_rule_applies_at_once() {
    let project = project(&[("E", "E_{day:%Y%m%d}")]);
    project.write("in/b.csv", "meter,ts,kwh\n1,2020-01-02T23:30:20Z,5\n1,2020-01-02T23:30:40Z,6\n");
    project.run_job("j");
    assert_eq!(count(&project, "T"), 5);
    let text = job("j", "T", "UTC", &[("E", "E_{day:%Y%m%d}")]);
    project.write(
        "jobs/j/job.toml",
        text.replace("[tables.T.families.M]\n", "[tables.T.families.M]\ngc = \"maxversions=1\"\n"),
    );
    project.run_job("j");
    let kept = project.sql("select kwh from T where meter = 1");
    assert_eq!(kept, [serde_json::json!({ "kwh": 6.0 })]);
    assert_eq!((count(&project, "T"), count(&project, "exports.E")), (3, 3));
    assert_eq!(count(&project, "cells.T"), 3);
}

#[test]
fn daily_query_must_read_records() {
    for sql in ["select * from cells.T", "select 1 as one", "select e.* from exports.E e join T on true"] {
        let text = job("j", "T", "UTC", &[("E", "E_{day:%Y%m%d}")]);
        let start = text.find("query = ").unwrap();
        let project = Project::new("j", &format!("{}query = {{ sql = \"{sql}\" }}\n", &text[..start]));
        project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-02T23:30:00Z,1\n");
        assert!(project.fails(2, &["run", "j"]).contains("reads"), "{sql}");
    }
}

#[test]
fn check_finds_an_invalid_query() {
    let text = job("j", "T", "UTC", &[("E", "E_{day:%Y%m%d}")]);
    for (right, wrong) in [("select meter", "selec meter"), ("from T", "from U"), ("kwh, '", "kWh, '")] {
        let project = Project::new("j", &text.replace(right, wrong));
        let said = project.fails(2, &["check", "j"]);
        assert!(said.contains("export E"), "{said}");
    }
    let project = Project::new("j", &text);
    project.ok(&["check", "j"]);
    assert!(project.fails(2, &["sql", "-c", "copy (select 1) to '/tmp/never.csv'"]).contains("not"));
}
