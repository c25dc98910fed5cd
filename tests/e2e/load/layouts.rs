//! Layouts read back what was loaded.

use serde_json::{Value, json};

use crate::harness::Project;

/// Loads `rows` of `columns` into table T laid out by `key` and `cells`.
fn load(columns: &str, key: &str, cells: &str, rows: &str) -> Project {
    let names: Vec<&str> = columns.split(", ").map(|column| column.split(" = ").next().unwrap()).collect();
    let declared = columns.replace(", ", "\n");
    let project = Project::new(
        "j",
        &format!(
            "name = \"j\"\n[sources.s]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\n[sources.s.columns]\n{declared}\n\
             [tables.T]\nrow_key = \"{key}\"\n[tables.T.families.F]\ncolumns = [{cells}]\n"
        ),
    );
    project.write("in/a.csv", format!("{}\n{rows}", names.join(",")));
    project.run_job("j");
    project
}

#[test]
fn row_level_columns_do_not_change_records() {
    let project = load(
        "id = \"uint64\", ts = \"timestamp\", kwh = \"int64\"",
        "{id:03}#{ts:%Y%m%d}",
        r#"{ qualifier = "h{ts:%H%M}", value = "{kwh}" },
           { qualifier = "LAST", value = "{kwh}", timestamp = 0 },
           { qualifier = "LASTTIME", value = "{ts}", timestamp = 0 }"#,
        "1,2020-01-02T00:00:00Z,10\n1,2020-01-02T01:00:00Z,11\n1,2020-01-02T02:00:00Z,12\n",
    );
    let rows = project.sql("select ts, kwh from T order by ts");
    let expected: Vec<Value> =
        (0..3).map(|hour| json!({ "ts": format!("2020-01-02T0{hour}:00:00Z"), "kwh": 10 + hour })).collect();
    assert_eq!(rows, expected);
    let last = project.sql("select value from cells.T where timestamp = '1970-01-01T00:00:00Z'");
    assert_eq!(last, [json!({ "value": "12" }), json!({ "value": "2020-01-02T02:00:00Z" })]);
}

#[test]
fn iso_week_in_the_key_keeps_the_calendar_year() {
    let project = load(
        "id = \"uint64\", ts = \"timestamp\"",
        "{id:03}#{ts:%G-W%V}",
        r#"{ qualifier = "y", value = "{ts:%Y}" }"#,
        "1,2019-12-30T00:00:00Z\n1,2020-01-02T00:00:00Z\n",
    );
    let years = project.sql("select value from cells.T order by timestamp");
    assert_eq!(years, [json!({ "value": "2019" }), json!({ "value": "2020" })]);
}

#[test]
fn repeated_local_hour_reads_back() {
    let project = load(
        "id = \"uint64\", ts = \"timestamp\", v = \"int64\"",
        "{id:03}#{ts:%Y%m%d%H%M%S%6f|Europe/Paris}",
        r#"{ qualifier = "v", value = "{v}" }"#,
        "1,2020-10-25T00:30:00Z,1\n1,2020-10-25T01:30:00Z,2\n",
    );
    let rows = project.sql("select ts, v from T order by ts");
    assert_eq!(rows[1], json!({ "ts": "2020-10-25T01:30:00Z", "v": 2 }));
    assert_eq!(project.sql("select v from T where ts >= '2020-10-25T01:00:00Z'"), [json!({ "v": 2 })]);
}

#[test]
fn decimals_keep_their_written_value() {
    let prices: Vec<String> = (0..2000).map(|cent| format!("{}.{:02}", cent / 100 + 280, cent % 100)).collect();
    let line = |(at, price): (usize, &String)| format!("{at},2020-01-02T00:00:00Z,{price}\n");
    let rows: String = prices.iter().enumerate().map(line).collect();
    let project = load(
        "id = \"uint64\", ts = \"timestamp\", p = \"decimal(10,2)\"",
        "{id:05}#{ts:%Y%m%d}",
        r#"{ qualifier = "p", value = "{p}" }"#,
        &rows,
    );
    let list = prices.join(", ");
    let count = |query: &str| project.sql(&format!("select count(*) as n from T where {query}"))[0]["n"].clone();
    assert_eq!(count(&format!("p in ({list})")), 2000);
    assert_eq!(count("p = 283.91"), 1);
    assert_eq!(count("p >= 283.91 and p <= 283.91"), 1);
    assert_eq!(count("p <> 283.91"), 1999);
}

#[test]
fn row_across_windows_requires_window_none() {
    let job = |window: &str| {
        format!(
            "name = \"j\"\n[sources.s]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\n[sources.s.columns]\nid = \"uint64\"\n\
             ts = \"timestamp\"\nv = \"int64\"\n[tables.T]\nrow_key = \"{{id:03}}\"\n{window}\n[tables.T.families.F]\n\
             columns = [{{ qualifier = \"last\", value = \"{{v}}\", timestamp = 0 }}]\n"
        )
    };
    let project = Project::new("j", &job(""));
    project.write("in/a.csv", "id,ts,v\n1,2020-01-02T00:00:00Z,1\n1,2020-01-01T00:00:00Z,2\n");
    assert!(project.fails(2, &["run", "j"]).contains("window = \"none\""));
    project.write("jobs/j/job.toml", job("window = \"none\""));
    project.run_job("j");
    assert_eq!(project.sql("select value from cells.T"), [json!({ "value": "2" })], "the later row wins");
}

/// A job over one wide source, and tables that hold one of its columns each.
fn narrow_tables(columns: usize, tables: usize) -> String {
    let mut text = "name = \"j\"\n[sources.s]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\n[sources.s.columns]\nid = \"text\"\nts = \"timestamp\"\n".to_owned();
    for column in 0..columns {
        text += &format!("c{column} = \"int64\"\n");
    }
    for table in 0..tables {
        text += &format!(
            "[tables.T{table}]\nrow_key = \"{{id}}#{{ts:ms}}\"\n[tables.T{table}.families.F]\n\
             columns = [{{ qualifier = \"V\", value = \"{{c{}}}\" }}]\n",
            table % columns
        );
    }
    text
}

#[test]
fn check_lists_columns_that_no_table_stores() {
    let project = Project::new("j", &narrow_tables(20, 3));
    let found = project.json(&["check", "j"]);
    let lost: Vec<&Value> = found
        .iter()
        .filter(|row| row["finding"].as_str().unwrap().starts_with("no key, qualifier or value holds"))
        .collect();
    let finding = lost[0]["finding"].as_str().unwrap();
    assert_eq!((lost.len(), &lost[0]["kind"]), (1, &"warning".into()), "{found:?}");
    assert!(finding.contains("c1, c2, c3, c4, c5, c6, c7, c8 and 11 more of T0; c0, c2,"), "{finding}");
    assert!(
        finding.ends_with(" of T2") && found.iter().filter(|row| row["kind"] == "warning").count() == 1,
        "{found:?}"
    );
}

#[test]
fn check_warns_of_more_tables_than_bigtable_allows() {
    let project = Project::new("j", &narrow_tables(1, 1000));
    let warned = |args: &[&str]| {
        project.ok(args).contains("tables in the store and the jobs: an instance of Bigtable holds 1000 at most")
    };
    assert!(!warned(&["check", "--all"]));
    let other = narrow_tables(1, 1).replace("name = \"j\"", "name = \"other\"").replace("T0", "U0");
    project.write("jobs/other/job.toml", other);
    assert!(warned(&["check", "--all"]) && !warned(&["check", "other"]));
}

#[test]
fn cells_that_a_rule_on_versions_hides_at_once_are_told() {
    let job = |gc: &str, key: &str| {
        readings_job!("in/*.csv", "", "")
            .replace("[tables.T.families.M]\n", &format!("[tables.T.families.M]\ngc = \"{gc}\"\n"))
            .replace("{meter:03}#{ts:%Y%m%d}", key)
    };
    let rows = "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1\n1,2020-01-01T10:00:20Z,2\n1,2020-01-01T10:00:40Z,3\n\
                1,2020-01-01T10:01:00Z,4\n2,2020-01-01T10:00:00Z,5\n";
    let count = |project: &Project| project.sql("select count(*) as n from T").remove(0)["n"].clone();

    let project = Project::new("j", &job("maxversions=2", "{meter:03}#{ts:%Y%m%d}"));
    project.write("in/a.csv", rows);
    let record = project.run_job("j");
    let load = &record["loads"][0];
    assert_eq!((&load["hidden_versions"], &load["hidden_in_row"]), (&1.into(), &"001#20200101".into()), "{record}");
    assert!(record["notes"].to_string().contains("1 cell is hidden by newer ones"), "{record}");
    assert_eq!(count(&project), 4);
    // As the warning says: all are shown again.
    project.write("jobs/j/job.toml", job("never", "{meter:03}#{ts:%Y%m%d}"));
    project.run_job("j");
    assert_eq!(count(&project), 5);

    // An age hides nothing that is young, and a rule that waits for it no version.
    for gc in ["maxage=9000d", "maxversions=1 and maxage=9000d"] {
        let project = Project::new("j", &job(gc, "{meter:03}#{ts:%Y%m%d}"));
        project.write("in/a.csv", rows);
        let record = project.run_job("j");
        assert!(record["loads"][0].get("hidden_versions").is_none_or(|cells| *cells == 0), "{gc}: {record}");
    }
    // A table of the newest of each meter keeps these on purpose.
    let newest = job("maxversions=1", "{meter:03}")
        .replace("{ts:%H%M}", "kwh")
        .replace("[tables.T]", "[tables.T]\nwindow = \"none\"");
    let project = Project::new("j", &newest);
    project.write("in/a.csv", rows);
    let record = project.run_job("j");
    assert!(!record["notes"].to_string().contains("hidden"), "{record}");
    assert_eq!(count(&project), 2);
}
