//! How numbers change when inputs and layouts do.

use serde_json::Value;

use crate::harness::Project;

const COLUMN: &str = r#"{ qualifier = "kwh", value = "{kwh}" }"#;

/// A job with one table of this row key and column.
fn job(row_key: &str, column: &str) -> String {
    format!(
        "name = \"j\"\n[sources.readings]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\n[sources.readings.columns]\n\
         meter = \"uint64\"\nts = \"timestamp\"\nkwh = \"float64\"\n[tables.T]\nrow_key = \"{row_key}\"\n\
         [tables.T.families.M]\ncolumns = [{column}]\n"
    )
}

/// Hourly readings of `meters` over five days, `shift` hours later, as lines of CSV.
fn readings(meters: u32, shift: u32) -> Vec<String> {
    let hours = (0..5 * 24).map(|hour| hour + shift);
    let lines = hours.flat_map(|hour| (0..meters).map(move |meter| (hour, meter)));
    lines
        .map(|(hour, meter)| {
            let (day, of_day) = (1 + hour / 24, hour % 24);
            let meter = 1000 + meter * 7;
            format!("{meter},2021-03-{day:02}T{of_day:02}:{:02}:00Z,{}.5\n", meter % 60, hour + meter)
        })
        .collect()
}

/// What `compare` says of the only layout.
fn compared(job: &str, lines: &[String], more: &[&str]) -> Value {
    let project = Project::new("j", job);
    project.write("in/a.csv", format!("meter,ts,kwh\n{}", lines.concat()));
    project
        .write("q.toml", "[query.day]\nwhere = \"meter = $meter and ts >= $day and ts < $day + interval '1 day'\"\n");
    project.json(&[&["compare", "j"], more].concat()).remove(0)
}

const BY_METER: &str = "{meter:06}#{ts:%Y%m%d}";

#[test]
fn the_order_of_rows_changes_nothing() {
    let lines = readings(20, 0);
    let first = compared(&job(BY_METER, COLUMN), &lines, &["--queries", "q.toml"]);
    let mut shuffled = lines.clone();
    let mut state = 7_usize;
    for at in (1..shuffled.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        shuffled.swap(at, (state >> 33) % (at + 1));
    }
    assert_eq!(compared(&job(BY_METER, COLUMN), &shuffled, &["--queries", "q.toml"]), first);
}

#[test]
fn a_longer_qualifier_costs_its_bytes_in_each_cell() {
    let lines = readings(20, 0);
    let short = compared(&job(BY_METER, COLUMN), &lines, &[]);
    let long = compared(&job(BY_METER, r#"{ qualifier = "kwh_of_the_hour", value = "{kwh}" }"#), &lines, &[]);
    let number = |of: &Value, name: &str| of[name].as_u64().unwrap();
    assert_eq!(number(&short, "cells"), 20 * 5 * 24);
    assert_eq!(number(&long, "bytes_as_cells"), number(&short, "bytes_as_cells") + 12 * number(&short, "cells"));
    assert_eq!(long["rows"], short["rows"]);
}

#[test]
fn a_salt_multiplies_the_ranges_of_a_query() {
    let lines = readings(20, 0);
    let ranges =
        |row_key: &str| compared(&job(row_key, COLUMN), &lines, &["--queries", "q.toml"])["queries"][0].clone();
    let plain = ranges(BY_METER);
    let salted = ranges("{salt(ts, 3)}#{meter:06}#{ts:%Y%m%d}");
    assert_eq!((&plain["ranges"]["p50"], &salted["ranges"]["p50"]), (&1.into(), &3.into()));
    assert_eq!((&plain["need"], &plain["rows_seen"]["p95"]), (&"point".into(), &1.into()));
    assert_eq!(plain["values_returned"], salted["values_returned"]);
    assert_eq!(plain["values_returned"]["p50"], 24);
}

#[test]
fn later_times_change_the_axis_only() {
    let spread = |shift: u32| {
        let mut found = compared(&job(BY_METER, COLUMN), &readings(20, shift), &[]);
        for name in ["first", "last", "hottest_row", "largest_row"] {
            found.as_object_mut().unwrap().remove(name);
        }
        // Values grow with the hour.
        for name in ["bytes_as_cells", "bytes", "bytes_a_row", "bytes_written", "packed", "own_bytes", "findings"] {
            found.as_object_mut().unwrap().remove(name);
        }
        found
    };
    assert_eq!(spread(0), spread(48));
}

#[test]
fn more_entities_have_the_same_shares() {
    let shares = |meters: u32| {
        let found = compared(&job("{ts:%Y%m%d}#{meter:06}", COLUMN), &readings(meters, 0), &["--slice", "1h"]);
        ["p50", "p95", "max"].map(|part| (found["top_share_10"][part].as_f64().unwrap() * 100.0).round())
    };
    assert_eq!(shares(100), shares(200));
    assert_eq!(shares(100)[2], 100.0);
}

#[test]
fn entities_twice_over_have_twice_the_counts() {
    let of =
        |meters: u32| compared(&job(BY_METER, COLUMN), &readings(meters, 0), &["--slice", "1h", "--queries", "q.toml"]);
    let (once, twice) = (of(100), of(200));
    for name in ["source_rows", "rows", "cells"] {
        assert_eq!(twice[name].as_u64().unwrap(), 2 * once[name].as_u64().unwrap(), "{name}");
    }
    // A meter's question stays what it was.
    for name in ["ranges", "rows_seen", "cells_seen", "values_returned"] {
        assert_eq!(twice["queries"][0][name]["p50"], once["queries"][0][name]["p50"], "{name}");
    }
    for name in ["top_share_10", "hindsight_share_10"] {
        assert_eq!(twice[name], once[name], "{name}");
    }
    assert_eq!(twice["patterns"], once["patterns"]);
}

#[test]
fn shuffled_rows_give_the_same_page() {
    let lines = readings(20, 0);
    let project = Project::new("j", &job(BY_METER, COLUMN));
    project.write("q.toml", "[query.all]\nwhere = \"kwh > 1\"\n");
    let page = |lines: &[String]| {
        project.write("in/a.csv", format!("meter,ts,kwh\n{}", lines.concat()));
        project.ok(&["compare", "j", "--queries", "q.toml", "--report", "page.html"]);
        project.read("page.html")
    };
    let mut turned = lines.clone();
    turned.reverse();
    assert!(page(&lines) == page(&turned), "bytes differ");
}
