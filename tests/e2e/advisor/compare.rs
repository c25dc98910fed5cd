//! `compare`: tables of a job side by side.

use std::fs;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::harness::{Project, repository};

/// The job of balloons on its sample data.
fn balloons() -> Project {
    let job = repository().join("jobs/weather-balloons");
    let project = Project::new("weather-balloons", &fs::read_to_string(job.join("job.toml")).unwrap());
    fs::copy(job.join("sounding.sql"), project.path("jobs/weather-balloons/sounding.sql")).unwrap();
    let sample = repository().join("sample-data/weather-balloons");
    for file in fs::read_dir(sample).unwrap() {
        let file = file.unwrap();
        let name = file.file_name().into_string().unwrap();
        if name.ends_with(".csv") {
            project.write(&format!("sample-data/weather-balloons/{name}"), fs::read(file.path()).unwrap());
        }
    }
    project
}

const QUESTIONS: &str = r#"
[query.sounding]
where = "station = 'KJSJ'"

[query.ten_minutes]
where = "station = 'KJSJ' and ts >= $from and ts < $from + interval '10 minutes'"
params = { from = [1999-05-04T00:20:00Z] }

[query.temperature]
where = "station = 'KJSJ'"
columns = ["temperature"]

[query.all]
where = "ts is not null"
"#;

#[test]
fn three_questions_have_three_winners() {
    let project = balloons();
    project.write("q.toml", QUESTIONS);
    let found = project.json(&["compare", "weather-balloons", "--queries", "q.toml"]);
    let names: Vec<&str> = found.iter().map(|layout| layout["layout"].as_str().unwrap()).collect();
    let seen = |query: usize| -> Vec<u64> {
        found.iter().map(|layout| layout["queries"][query]["bytes_seen"]["p50"].as_u64().unwrap()).collect()
    };
    assert_eq!(seen(0), [51_992, 50_926, 63_718, 21_143, 9_820]);
    assert_eq!(seen(1), [51_992, 50_926, 8_623, 2_743, 9_820]);
    assert_eq!(seen(2), [4_408, 50_926, 63_718, 21_143, 9_820]);
    assert_eq!(seen(3), [678_351, 664_426, 831_526, 279_569, 130_115]);
    let best = |query: usize| names[(0..5).min_by_key(|at| seen(query)[*at]).unwrap()];
    let winners = [best(0), best(1), best(2)];
    assert_eq!(winners, ["BALLOON_WEEK_SERIALIZED", "BALLOON_EVENTS_SERIALIZED", "BALLOON_NEW_COLUMNS"]);
    for layout in &found {
        for (at, query) in layout["queries"].as_array().unwrap().iter().enumerate() {
            assert_eq!(query["problem"], Value::Null, "{layout}");
            assert_eq!(query["values_returned"]["p50"], found[0]["queries"][at]["values_returned"]["p50"]);
        }
        assert_eq!(layout["queries"][3]["need"], "scan");
    }
    assert!(!project.path("data").exists(), "nothing is committed");
}

#[test]
fn numbers_are_those_of_sql() {
    let project = balloons();
    let found = project.json(&["compare", "weather-balloons"]);
    project.run_job("weather-balloons");
    for layout in &found {
        let name = layout["layout"].as_str().unwrap();
        let cells =
            project.sql(&format!("select count(*) as cells, count(distinct row_key) as rows from cells.{name}"));
        assert_eq!((&cells[0]["cells"], &cells[0]["rows"]), (&layout["cells"], &layout["rows"]), "{name}");
    }
}

#[test]
fn a_table_for_people() {
    let project = balloons();
    let arguments = ["compare", "weather-balloons", "--layouts", "BALLOON_EVENTS,BALLOON_WEEK_SERIALIZED"];
    assert_snapshot!("compare", project.ok(&arguments));
    project.write("q.toml", QUESTIONS);
    let shown = project.ok(&[&arguments[..], &["--queries", "q.toml"]].concat());
    assert_snapshot!("compare_queries", shown);
    let csv = project.ok(&[&arguments[..], &["--output", "csv"]].concat());
    assert!(csv.starts_with("layout,rows,cells,bytes_as_cells,"), "{csv}");
    assert_eq!(csv.lines().count(), 3);
}

#[test]
fn dollars_are_those_of_the_formula_and_of_other_prices() {
    let project = balloons();
    project.write("q.toml", format!("clusters = 2\nkeep = \"30d\"\n[scale]\nrows_per_second = 40_000\n{QUESTIONS}"));
    let prices = fs::read_to_string(repository().join("crates/advisor/src/cost/prices.toml")).unwrap();
    project.write("p.toml", prices.replace("hour = 0.65", "hour = 1.30"));
    let compare = ["compare", "weather-balloons", "--queries", "q.toml"];
    let found = project.json(&compare);
    let dearer = project.json(&[&compare[..], &["--prices", "p.toml"]].concat());
    for (layout, dearer) in found.iter().zip(&dearer) {
        let number = |path: &str| layout["cost"][path].as_f64().unwrap();
        let load = (number("write_load") + number("read_load")) / 0.6;
        for end in ["low", "high"] {
            let [month, stored, nodes] = ["month", "stored_gib", "nodes"].map(|name| number(&format!("{name}_{end}")));
            let expected = 2.0 * (nodes * 730.0 * 0.65 + stored * 0.17);
            assert!((month - expected).abs() < 1e-6 * expected, "{layout}");
            assert_eq!(nodes, load.max(stored * 1_073_741_824.0 / 2.5e12).ceil().max(1.0));
        }
        assert!(dearer["cost"]["month_low"].as_f64().unwrap() > number("month_low"));
        assert_eq!(layout["cost"]["region"], "us-central1");
    }
    let places: Vec<u64> = found.iter().map(|layout| layout["cost"]["place"].as_u64().unwrap()).collect();
    let mut sorted = places.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [1, 2, 3, 4, 5]);
}

#[test]
fn layouts_come_from_a_file_too() {
    let project = balloons();
    let layouts = "[tables.BY_DAY]\nrow_key = \"{station}#{ts:%Y%m%d}\"\n[tables.BY_DAY.families.m]\n\
                   columns = [{ qualifier = \"m\", message = \"Few\" }]\n[messages.Few]\nfields = { pressure = 1 }\n";
    project.write("x.toml", layouts);
    let found = project.json(&["compare", "weather-balloons", "--layouts", "x.toml"]);
    assert_eq!((found.len(), &found[0]["layout"], &found[0]["rows"]), (1, &json!("BY_DAY"), &json!(24)));
    project.write("x.toml", layouts.replace("station", "sation"));
    let message = project.fails(2, &["compare", "weather-balloons", "--layouts", "x.toml"]);
    assert!(message.contains("x.toml:2:") && message.contains("sation"), "{message}");
}

#[test]
fn a_sample_is_marked_and_scaled() {
    let project = Project::smart_meters();
    let whole = project.json(&["compare", "smart-meters"]).remove(0);
    let part = project.json(&["compare", "smart-meters", "--sample", "50%"]).remove(0);
    assert_eq!((&whole["sample"], &part["sample"]), (&Value::Null, &json!(0.5)));
    let number = |of: &Value, name: &str| of[name].as_f64().unwrap();
    let scaled = number(&part, "cells") * number(&part, "factor");
    assert!((scaled / number(&whole, "cells") - 1.0).abs() < 0.1, "{part}");
    assert!(number(&part, "cells") < number(&whole, "cells") * 0.9);
    let shown = project.ok(&["compare", "smart-meters", "--sample", "50%"]);
    assert!(shown.contains('~') && shown.contains("50% of the entities"), "{shown}");
}

#[test]
fn what_is_wrong_is_said() {
    let project = balloons();
    let message = project.fails(2, &["compare", "weather-balloons", "--layouts", "BALLOON"]);
    assert!(message.contains("BALLOON_EVENTS"), "{message}");
    project.write("q.toml", "[query.a]\nwhere = \"station = $statoin\"\n");
    let message = project.fails(2, &["compare", "weather-balloons", "--queries", "q.toml"]);
    assert!(message.contains("$statoin"), "{message}");
    project.write("q.toml", "[query.a]\nwher = \"station = 1\"\n");
    let message = project.fails(2, &["compare", "weather-balloons", "--queries", "q.toml"]);
    assert!(message.contains("q.toml:2:1") && message.contains("where"), "{message}");
    project.write("q.toml", "[query.a]\nwhere = \"height > 3\"\n");
    let message = project.fails(2, &["compare", "weather-balloons", "--queries", "q.toml"]);
    assert!(message.contains("height"), "{message}");
    project.write("p.toml", "date = \"today\"\n");
    project.write("q.toml", QUESTIONS);
    let message = project.fails(2, &["compare", "weather-balloons", "--queries", "q.toml", "--prices", "p.toml"]);
    assert!(message.contains("p.toml"), "{message}");
    project.fails(2, &["compare", "weather-balloons", "--sample", "0%"]);
    project.fails(2, &["compare", "weather-balloons", "--slice", "1w"]);
    let empty = Project::new("j", readings_job!("in/*.csv", "max_rejected = \"100%\"", ""));
    empty.write("in/a.csv", "meter,ts,kwh\n1,soon,2\n");
    let message = empty.fails(1, &["compare", "j"]);
    assert!(message.contains("1 rows were read, 1 of them rejected"), "{message}");
}

#[test]
fn a_page_holds_what_json_prints() {
    let project = balloons();
    project.write("q.toml", QUESTIONS);
    let compare = ["compare", "weather-balloons", "--queries", "q.toml"];
    let printed = project.json(&compare);
    project.ok(&[&compare[..], &["--report", "page.html"]].concat());
    let page = project.read("page.html");
    assert!(page.len() <= 1_500_000, "{} bytes", page.len());
    assert_eq!(data_of(&page), Value::Array(printed));
    project.ok(&[&compare[..], &["--report", "again.html"]].concat());
    assert_eq!(project.read("again.html").replace("again.html", "page.html"), page, "same input, same bytes");
    let message = project.fails(2, &[&compare[..], &["--report", "none/page.html"]].concat());
    assert!(message.contains("none/page.html"), "{message}");
}

/// The data that a page holds as JSON.
pub fn data_of(page: &str) -> Value {
    let marked = page.split("<script").find(|part| part.contains("application/json") && part.contains("id=\"data\""));
    let text = marked.unwrap().split_once('>').unwrap().1.split("</script>").next().unwrap();
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_scan_counts_every_draw() {
    let project = balloons();
    let pressures = [900, 500, 100, 30];
    let list = pressures.map(|pressure| pressure.to_string()).join(", ");
    project.write(
        "q.toml",
        format!("[query.high]\nwhere = \"pressure < $p\"\ncolumns = [\"temperature\"]\nparams = {{ p = [{list}] }}\n"),
    );
    let layouts = "BALLOON_NEW_CELLS,BALLOON_EVENTS,BALLOON_WEEK_SERIALIZED";
    let found = project.json(&["compare", "weather-balloons", "--layouts", layouts, "--queries", "q.toml"]);
    project.run_job("weather-balloons");
    let numbers = |column: &str| -> Vec<u64> {
        let of = |pressure| {
            project.sql(&format!("select {column} as n from BALLOON_EVENTS where pressure < {pressure}"))[0]["n"]
                .as_u64()
        };
        let mut numbers: Vec<u64> = pressures.iter().map(|pressure| of(pressure).unwrap_or_default()).collect();
        numbers.sort_unstable();
        numbers
    };
    let records = numbers("count(*)");
    assert!(records[0] < records[3], "{records:?}");
    for (name, numbers) in [
        ("records_returned", records),
        ("values_returned", numbers("count(temperature)")),
        ("bytes_returned", numbers("sum(length(cast(temperature as varchar)))")),
    ] {
        for layout in &found {
            let query = &layout["queries"][0];
            assert_eq!((&query["need"], &query["draws"], &query["problem"]), (&json!("scan"), &json!(4), &Value::Null));
            let seen = &query[name];
            let (p50, p95) = (seen["p50"].as_u64().unwrap(), seen["p95"].as_u64().unwrap());
            assert_eq!((p50, p95), (numbers[1], numbers[3]), "{name} {layout}");
            assert_eq!(seen["mean"].as_f64().unwrap(), numbers.iter().sum::<u64>() as f64 / 4.0, "{name}");
        }
    }
}

#[test]
fn layouts_that_break_rules_come_last_and_say_why() {
    let project = balloons();
    let layouts = "[tables.BY_STATION]\nrow_key = \"{station}#{ts:ms}\"\n[tables.BY_STATION.families.m]\n\
                   columns = [{ qualifier = \"p\", value = \"{pressure}\" }]\n\
                   [tables.BY_TIME]\nrow_key = \"{ts:ms}#{station}\"\n[tables.BY_TIME.families.m]\n\
                   columns = [{ qualifier = \"p\", value = \"{pressure}\" }]\n";
    project.write("x.toml", layouts);
    project.write("q.toml", "[query.sounding]\nper_second = 1\nwhere = \"ts >= $day\"\n");
    let compare = ["compare", "weather-balloons", "--layouts", "x.toml", "--queries", "q.toml"];
    let found = project.json(&compare);
    let errors = |at: usize| -> Vec<&str> {
        let findings = found[at]["findings"].as_array().unwrap();
        let errors = findings.iter().filter(|finding| finding["severity"] == "error");
        errors.map(|finding| finding["rule"].as_str().unwrap()).collect()
    };
    assert_eq!((errors(0), errors(1)), (vec![], vec!["K1"]));
    assert_eq!((&found[0]["cost"]["place"], &found[1]["cost"]["place"]), (&json!(1), &json!(2)));
    let shown = project.ok(&[&compare[..], &["--report", "page.html"]].concat());
    assert!(shown.contains("BY_TIME: error[K1]") && !shown.contains("BY_STATION: error"), "{shown}");
    let page = project.read("page.html");
    assert!(page.contains("id=\"findings\"") && page.contains("x.toml:6"), "{}", page.len());
}

/// Two meters, hourly for two days, in a layout that keeps the last reading of a day only, and in one that keeps all.
const KEPT: &str = "[tables.LAST]\nrow_key = \"{meter:03}#{ts:%Y%m%d}\"\n[tables.LAST.families.m]\n\
                    columns = [{ qualifier = \"v\", value = \"{kwh}\", timestamp = 0 }]\n\
                    [tables.ALL]\nrow_key = \"{meter:03}#{ts:%Y%m%d}\"\n[tables.ALL.families.m]\n\
                    columns = [{ qualifier = \"{ts:%H%M}\", value = \"{kwh}\" }]\n";

fn readings(more: &str) -> Project {
    let project = Project::new("j", readings_job!("in/*.csv", "", ""));
    let hour = |hour: usize| {
        let time = format!("2026-01-{:02}T{:02}:00:00Z", 1 + hour / 24, hour % 24);
        format!("1,{time},{hour}\n2,{time},{hour}\n")
    };
    let rows: String = (0..48).map(hour).collect();
    project.write("in/a.csv", format!("meter,ts,kwh\n{rows}{more}"));
    project.write("x.toml", KEPT);
    project
}

#[test]
fn answers_are_compared_with_the_source_whichever_layout_comes_first() {
    let project = readings("");
    project.write("q.toml", "[query.day]\nper_second = 1\nwhere = \"meter = $meter and ts >= $day\"\n");
    let found = project.json(&["compare", "j", "--layouts", "x.toml", "--queries", "q.toml"]);
    let problem = |at: usize| &found[at]["queries"][0]["problem"];
    assert!(problem(0).as_str().is_some_and(|problem| problem.contains("in the source")), "{}", found[0]);
    assert_eq!((problem(1), &found[1]["cost"]["place"]), (&Value::Null, &json!(1)));
    let shown = project.ok(&["compare", "j", "--layouts", "x.toml"]);
    assert!(shown.contains("median of 48 slices of 5 min with writes"), "{shown}");
}

#[test]
fn one_wrong_year_does_not_blind_the_axis() {
    let whole = readings("");
    let wrong = readings("1,9999-12-31T00:00:00Z,5\n");
    let compare = ["compare", "j", "--layouts", "x.toml"];
    let numbers = |project: &Project| -> Vec<Value> {
        let found = project.json(&compare);
        let layout = &found[1];
        ["slice_seconds", "top_share_10", "travel", "patterns"].map(|name| layout[name].clone()).to_vec()
    };
    let [expected, found] = [numbers(&whole), numbers(&wrong)];
    assert_eq!((&found[0], &found[3]), (&expected[0], &expected[3]));
    // The wrong reading counts in the last slice, beside two others.
    assert_eq!(found[1]["p50"], expected[1]["p50"]);
    let shown = wrong.ok(&compare);
    assert!(shown.contains("outliers: 1 source row far from all others in time, up to 9999-12-31"), "{shown}");
    assert!(!whole.ok(&compare).contains("outliers"));
}

#[test]
fn a_row_passes_a_node_alike_in_lint_and_compare() {
    let job = readings_job!("in/*.csv", "", "").replace("{meter:03}#{ts:%Y%m%d}", "{meter:03}");
    let project = readings("");
    project.write("jobs/j/job.toml", job);
    // Two meters write 96 rows in 47 hours and a second; a slice of 5 min holds one of each.
    let queries = "keep = \"365d\"\n[scale]\nrows_per_second = 5_000_000\n[query.a]\nper_second = 1\nwhere = \"meter = $meter\"\n";
    project.write("q.toml", queries);
    let of_lint = project.json(&["lint", "j", "--data", "--queries", "q.toml"]);
    let hot = of_lint.iter().find(|finding| finding["rule"] == "W2").expect("W2");
    let found = project.json(&["compare", "j", "--queries", "q.toml"]).remove(0);
    let same = found["findings"].as_array().unwrap().iter().find(|finding| finding["rule"] == "W2").unwrap();
    assert_eq!(hot["message"], same["message"]);
    let nodes = hot["measured"].as_f64().unwrap() / hot["limit"].as_f64().unwrap();
    let unservable = found["cost"]["unservable"].as_str().unwrap();
    assert!(unservable.starts_with(&format!("one row takes the writes of {nodes:.1} nodes")), "{unservable} {nodes}");
    // Of more meters each writes as often as it did.
    project.write("q.toml", queries.replace("rows_per_second = 5_000_000", "entities = { meter = 1_000_000 }"));
    let of_lint = project.json(&["lint", "j", "--data", "--queries", "q.toml"]);
    assert!(of_lint.iter().all(|finding| finding["rule"] != "W2"), "{of_lint:?}");
    assert!(of_lint.iter().any(|finding| finding["rule"] == "K7"), "{of_lint:?}");
}
