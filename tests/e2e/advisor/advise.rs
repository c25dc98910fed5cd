//! `advise`: layouts proposed for a workload.

use serde_json::Value;

use super::compare::data_of;
use crate::harness::Project;

const DAY: &str = "[scale]\nentities = { meter = 90_000_000 }\nevery = \"15m\"\n[query.one_day]\nper_second = 50\n\
                   where = \"meter = $meter and ts >= $day and ts < $day + interval '1 day'\"\nmust = \"range\"\n";

fn first<'a>(found: &'a [Value], name: &str) -> &'a Value {
    &found.iter().find(|layout| layout["place"] == 1 && layout["layouts"].as_array().unwrap().len() == 1).unwrap()[name]
}

#[test]
fn meters_are_never_proposed_date_first_and_the_written_job_runs() {
    let project = Project::smart_meters();
    project.write("q.toml", DAY);
    let advise = ["advise", "smart-meters", "--queries", "q.toml", "--max-tables", "1"];
    let found = project.json(&advise);
    let key = first(&found, "row_keys")[0].as_str().unwrap().to_owned();
    assert!(key.starts_with("{meter"), "{key}");
    assert_eq!(first(&found, "unservable"), &Value::Null);
    let shown = project.ok(&[&advise[..], &["--write", "chosen"]].concat());
    assert!(shown.contains("wrote jobs/chosen/job.toml") && shown.contains("wins: "), "{shown}");
    let record = project.run_job("chosen");
    assert_eq!(record["outcome"], "ok", "{record}");
    let message = project.fails(1, &[&advise[..], &["--write", "chosen"]].concat());
    assert!(message.contains("jobs/chosen/job.toml"), "{message}");
}

#[test]
fn a_data_file_gets_a_job_of_its_own() {
    let project = Project::smart_meters();
    project.write("q.toml", DAY);
    let file = std::fs::read_dir(project.path("sample-data/smart-meters")).unwrap().filter_map(|it| it.ok());
    let file = file.map(|it| it.path()).find(|path| path.extension().is_some_and(|it| it == "csv")).unwrap();
    let file = file.display().to_string();
    project.ok(&["new", "meters", "--from", &file, "--queries", "q.toml"]);
    assert_eq!(project.run_job("meters")["outcome"], "ok");
}

#[test]
fn the_cheapest_of_all_candidates_wins() {
    let project = Project::smart_meters();
    project.write("q.toml", DAY);
    let found = project.json(&["advise", "smart-meters", "--queries", "q.toml", "--max-tables", "1"]);
    let least = first(&found, "month_high").as_f64().unwrap();
    // The tables of the job are among what could be proposed: none is cheaper by more than 1 %.
    let own = project.json(&["compare", "smart-meters", "--queries", "q.toml"]).remove(0);
    assert!(own["cost"]["month_high"].as_f64().unwrap() * 1.01 >= least);
}

#[test]
fn advice_has_a_page() {
    let project = Project::smart_meters();
    project.write("q.toml", DAY);
    let advise = ["advise", "smart-meters", "--queries", "q.toml"];
    let printed = project.json(&advise);
    let shown = project.ok(&[&advise[..], &["--report", "page.html", "--write", "chosen"]].concat());
    assert!(shown.contains("wins: ") && shown.contains("wrote jobs/chosen/job.toml"), "{shown}");
    let page = project.read("page.html");
    assert_eq!(data_of(&page), Value::Array(printed));
    assert!(page.contains("Layouts advised for smart-meters") && page.contains("layouts were ranked"));
    for section in ["comparison", "bytes", "heatmaps", "queries", "cost"] {
        assert!(page.contains(&format!("id=\"{section}\"")), "{section}");
    }
    assert!(page.len() <= 1_500_000, "{} bytes", page.len());
    let html = project.ok(&[&advise[..], &["--report", "-"]].concat());
    assert!(html.starts_with("<!doctype html>") && html.trim_end().ends_with("</html>"), "only the page is printed");
}
