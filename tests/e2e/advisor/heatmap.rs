//! `heatmap`: row keys by time.

use serde_json::{Value, json};

use crate::harness::Project;

fn counts(map: &Value) -> u64 {
    map["counts"].as_array().unwrap().iter().flat_map(|slice| slice.as_array().unwrap()).filter_map(Value::as_u64).sum()
}

#[test]
fn a_heatmap_sums_to_what_is_there() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let number = |query: &str| project.sql(query)[0]["n"].as_u64().unwrap();
    let bytes =
        "select sum(length(row_key) + length(family) + length(qualifier) + length(value) + 8) as n from cells.SENSOR";
    for (metric, expected) in [
        ("writes", number("select count(*) as n from SENSOR")),
        ("cells", number("select count(*) as n from cells.SENSOR")),
        ("bytes", number(bytes)),
    ] {
        for slice in ["1h", "1d", "5d"] {
            let map = project.json(&["heatmap", "SENSOR", "--metric", metric, "--slice", slice]).remove(0);
            assert_eq!((counts(&map), map["total"].as_u64().unwrap()), (expected, expected), "{metric} {slice}");
            let (buckets, slices) = (map["buckets"].as_array().unwrap(), map["counts"].as_array().unwrap());
            assert!(buckets.len() <= 1000 && slices.len() <= 720);
            assert!(slices.iter().all(|slice| slice.as_array().unwrap().len() == buckets.len()));
            assert!(buckets.windows(2).all(|pair| pair[0].as_str() < pair[1].as_str()));
        }
    }
    let csv = project.ok(&["heatmap", "SENSOR", "--output", "csv"]);
    let sum: u64 = csv.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(sum, number("select count(*) as n from SENSOR"));
}

const QUERIES: &str = r#"
[query.one_day]
where = "meter = $meter and ts >= $day and ts < $day + interval '1 day'"
params = { meter = [2, 12, 12], day = [2018-01-03T00:00:00Z, 2018-01-04T00:00:00Z, 2018-01-05T00:00:00Z] }

[query.drawn]
where = "meter = $meter and ts >= $day and ts < $day + interval '1 day'"
params = { draw = 7 }

[query.newest]
where = "ts >= $day"
params = { day = [2018-01-15T00:00:00Z] }
"#;

#[test]
fn a_heatmap_of_reads_counts_what_the_draws_read() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    project.write("q.toml", QUERIES);
    let number = |query: &str| project.sql(query)[0]["n"].as_u64().unwrap();
    let map = |query: &str, slice: &str| {
        let metric = format!("reads:{query}");
        let map = project
            .json(&["heatmap", "SENSOR", "--metric", &metric, "--queries", "q.toml", "--slice", slice])
            .remove(0);
        assert_eq!(map["metric"], metric);
        assert_eq!(counts(&map), map["total"].as_u64().unwrap(), "{query} {slice}");
        map
    };
    // Two draws read one row each, and the third another of the second's meter.
    let of = |meter: u32, day: u32| {
        format!(
            "select count(*) as n from SENSOR where meter = {meter} and ts >= '2018-01-0{day}' and ts < '2018-01-0{}'",
            day + 1
        )
    };
    let expected = [(2, 3), (12, 4), (12, 5)].map(|(meter, day)| number(&of(meter, day))).iter().sum::<u64>();
    assert!(expected > 0);
    for slice in ["1h", "1d", "5d"] {
        let found = map("one_day", slice);
        assert_eq!((found["total"].as_u64().unwrap(), &found["draws"]), (expected, &json!(3)), "{slice}");
    }
    // A scan reads what is older than it wants, too.
    assert_eq!(map("newest", "1d")["total"].as_u64().unwrap(), number("select count(*) as n from SENSOR"));
    let drawn = map("drawn", "1h");
    assert_eq!(drawn["draws"], 7);
    assert_eq!(drawn, map("drawn", "1h"), "the same draws each time");
    let reads = ["heatmap", "SENSOR", "--metric", "reads:one_day", "--queries", "q.toml"];
    let shown = project.ok(&reads);
    assert!(shown.starts_with("reads:one_day of SENSOR, 3 draws: "), "{shown}");
    assert!(shown.contains("records at most"), "{shown}");
    let csv = project.ok(&[&reads[..], &["--output", "csv"]].concat());
    assert!(csv.starts_with("slice,bucket,first_key,reads"), "{csv}");
    project.ok(&[&reads[..], &["--report", "page.html"]].concat());
    let page = project.read("page.html");
    assert!(page.contains("\"metric\":\"reads:one_day\"") && page.contains("Heatmap of SENSOR"));
}

#[test]
fn patterns_are_named() {
    let readings = |row_key: &str| {
        let job = readings_job!("in/*.csv", "", "").replace("{meter:03}#{ts:%Y%m%d}", row_key);
        let project = Project::new("j", &job);
        let mut lines = String::from("meter,ts,kwh\n");
        for hour in 0..72 {
            for meter in 0..200 {
                lines.push_str(&format!("{meter},2021-03-{:02}T{:02}:00:00Z,1\n", 1 + hour / 24, hour % 24));
            }
        }
        project.write("in/a.csv", lines);
        project.run_job("j");
        project
    };
    let even = readings("{meter:03}#{ts:%Y%m%d}");
    assert_eq!(even.json(&["heatmap", "T"])[0]["patterns"], json!(["even"]));
    let shown = even.ok(&["heatmap", "T"]);
    assert!(shown.starts_with("writes of T: 600 rows in 600 buckets of keys") && !shown.contains('\x1b'), "{shown}");
    assert!(shown.contains("even: top share 0.100"), "{shown}");
    let sequential = readings("{ts:%Y%m%d%H}#{meter:03}");
    assert_eq!(sequential.json(&["heatmap", "T"])[0]["patterns"], json!(["sequential"]));
}

#[test]
fn what_cannot_be_shown_is_said() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let message = project.fails(2, &["heatmap", "SENSR"]);
    assert!(message.contains("SENSOR"), "{message}");
    let message = project.fails(2, &["heatmap", "SENSOR", "--metric", "reads"]);
    assert!(message.contains("reads:one_day"), "{message}");
    let message = project.fails(2, &["heatmap", "SENSOR", "--metric", "reads:one_day"]);
    assert!(message.contains("--queries"), "{message}");
    project.write("q.toml", QUERIES);
    let message = project.fails(2, &["heatmap", "SENSOR", "--metric", "reads:day", "--queries", "q.toml"]);
    assert!(message.contains("one_day"), "{message}");
    let timeless =
        readings_job!("in/*.csv", "", "").replace("value = \"{kwh}\" }", "value = \"{kwh}\", timestamp = 0 }");
    let project = Project::new("j", &timeless);
    project.write("in/a.csv", "meter,ts,kwh\n1,2021-03-01T00:00:00Z,2\n");
    project.run_job("j");
    let message = project.fails(2, &["heatmap", "T"]);
    assert!(message.contains("compare"), "{message}");
}
