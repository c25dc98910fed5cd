//! Parts per hour, day, month and whole query; formats, modes, Hive directories and retention.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Project, json_lines};

const JOB: &str = r#"
name = "j"
timezone = "Europe/Paris"

[sources.readings]
files = ["in/*.csv"]
time = "ts"

[sources.readings.columns]
meter = "uint64"
ts = "timestamp"
price = "decimal(10,2)"

[tables.T]
row_key = "{meter:03}#{ts:%Y%m%d}"

[tables.T.families.M]
columns = [{ qualifier = "{ts:%H%M}", value = "{price}" }]
"#;

const ROWS: &str = "1,2026-03-28T22:30:00Z,1.50\n1,2026-03-28T23:30:00Z,2.50\n2,2026-03-29T21:59:00Z,3.00\n\
                    2,2026-03-29T22:00:00Z,4.25\n1,2026-04-30T21:30:00Z,5.00\n1,2026-04-30T22:30:00Z,6.00\n";

fn export(per: &str, name: &str, more: &str, sql: &str) -> String {
    format!("{JOB}\n[exports.E]\nper = \"{per}\"\nname = \"{name}\"\n{more}\nquery = {{ sql = \"{sql}\" }}\n")
}

fn project(per: &str, name: &str, more: &str, sql: &str) -> Project {
    let project = Project::new("j", &export(per, name, more, sql));
    project.write("in/a.csv", format!("meter,ts,price\n{ROWS}"));
    project
}

/// Parts of a run with their states.
fn parts(record: &Value) -> Vec<(String, String)> {
    let text = |part: &Value, key: &str| part[key].as_str().unwrap().to_owned();
    record["exports"].as_array().unwrap().iter().map(|part| (text(part, "part"), text(part, "state"))).collect()
}

fn published(names: &[&str]) -> Vec<(String, String)> {
    names.iter().map(|name| ((*name).to_owned(), "published".to_owned())).collect()
}

#[test]
fn months_follow_the_time_zone_and_hours_follow_utc() {
    let project = project("month", "E_{month:%Y%m}", "", "select * from T order by meter, ts");
    assert_eq!(parts(&project.run_job("j")), published(&["E_202603", "E_202604", "E_202605"]));
    assert_eq!(project.sql("select count(*) as n from exports.E_202603")[0]["n"], 4);
    assert_eq!(project.csv("select price from exports.E_202605"), "price\n6.00\n");
    assert_eq!(project.run_job("j")["exports"], json!([]));
    project.write("in/b.csv", "meter,ts,price\n7,2026-04-10T10:00:00Z,1\n");
    assert_eq!(parts(&project.run_job("j")), published(&["E_202604"]));

    project.write("jobs/j/job.toml", export("hour", "H_{hour:%Y%m%d%H}", "", "select * from T order by meter, ts"));
    let record = project.run_job("j");
    let made: Vec<_> = parts(&record).into_iter().filter(|(_, state)| state == "published").collect();
    let hours = [
        "H_2026032822",
        "H_2026032823",
        "H_2026032921",
        "H_2026032922",
        "H_2026041010",
        "H_2026043021",
        "H_2026043022",
    ];
    assert_eq!(made, published(&hours));
    // Hours without rows are recorded as empty.
    assert_eq!(project.run_job("j")["exports"], json!([]));
    project.write("in/c.csv", "meter,ts,price\n8,2026-04-10T11:00:00Z,1\n");
    let record = project.run_job("j");
    let made: Vec<_> = parts(&record).into_iter().filter(|(_, state)| state == "published").collect();
    assert_eq!(made, published(&["H_2026041011"]));
}

#[test]
fn empty_day_is_not_queried_again() {
    let project = project("day", "E_{day:%Y%m%d}", "", "select * from T where price > 3 order by meter, ts");
    let record = project.run_job("j");
    let states: Vec<String> = parts(&record).into_iter().map(|(_, state)| state).collect();
    assert_eq!(states, ["empty", "empty", "published", "published", "published"]);
    assert!(!project.path("data/exports/E_20260328").exists());
    assert_eq!(project.run_job("j")["exports"], json!([]));
    assert!(project.ok(&["plan", "j"]).contains("nothing to do"));
    project.write("in/b.csv", "meter,ts,price\n7,2026-03-28T10:00:00Z,9\n");
    // A UTC day overlaps two days of Paris.
    let both =
        [("E_20260328", "published"), ("E_20260329", "empty")].map(|(part, state)| (part.to_owned(), state.to_owned()));
    assert_eq!(parts(&project.run_job("j")), both);
}

#[test]
fn whole_query_is_one_part() {
    let sql = "select meter, sum(price) as total, max(ts) as newest from T group by meter order by meter";
    let project = project("query", "TOTALS", "", sql);
    assert_eq!(parts(&project.run_job("j")), published(&["TOTALS"]));
    let totals = "select meter, total from exports.TOTALS order by meter";
    assert_eq!(project.csv(totals), "meter,total\n1,15.00\n2,7.25\n");
    assert_eq!(project.run_job("j")["exports"], json!([]));
    project.write("in/b.csv", "meter,ts,price\n2,2026-06-10T10:00:00Z,0.75\n");
    assert_eq!(parts(&project.run_job("j")), published(&["TOTALS"]));
    assert_eq!(project.csv(totals), "meter,total\n1,15.00\n2,8.00\n");
    project.ok(&["compact", "T", "--full"]);
    assert_eq!(project.run_job("j")["exports"], json!([]));
    project.write("jobs/j/job.toml", export("query", "TOTALS", "", "select count(*) as n from cells.T"));
    assert_eq!(parts(&project.run_job("j")), published(&["TOTALS"]));
    project.write("jobs/j/job.toml", export("query", "TOTALS", "", "select $day as d, * from T"));
    assert!(project.fails(2, &["run", "j"]).contains("$day"));
}

#[test]
fn csv_and_arrow_read_back_with_their_types() {
    let select =
        "select meter, ts, price, case when meter = 1 then null else 'a,b' end as note from T order by meter, ts";
    let project = project("day", "E_{day:%Y%m%d}", "", select);
    project.run_job("j");
    let all = "select meter, ts, price, note, arrow_typeof(price) as kind, arrow_typeof(ts) as time from exports.E order by ts";
    let rows = project.sql(all);
    assert_eq!(rows.len(), 6);
    for (format, file) in [("csv", "part-0.csv"), ("arrow", "part-0.arrow")] {
        project.write("jobs/j/job.toml", export("day", "E_{day:%Y%m%d}", &format!("format = \"{format}\""), select));
        assert_eq!(parts(&project.run_job("j")).len(), 5);
        let files: Vec<String> = project.files("data/exports/E_20260329").into_keys().collect();
        assert_eq!(files, [format!("data/exports/E_20260329/{file}")]);
        assert_eq!(project.sql(all), rows, "{format}");
        assert_eq!(project.run_job("j")["exports"], json!([]));
    }
    project.write("jobs/j/job.toml", export("day", "E_{day:%Y%m%d}", "format = \"csv\"", select));
    project.run_job("j");
    let text = project.read("data/exports/E_20260329/part-0.csv");
    assert_eq!(text, "meter,ts,price,note\n1,2026-03-28T23:30:00Z,2.50,\n2,2026-03-29T21:59:00Z,3.00,\"a,b\"\n");
}

#[test]
fn append_mode_adds_rows_once() {
    let select = "select count(*) as readings, $now as at from T";
    let project = project("query", "LOG", "mode = \"append\"", select);
    project.ok(&["run", "j", "--now", "2026-07-01T00:00:00Z"]);
    project.write("in/b.csv", "meter,ts,price\n2,2026-06-10T10:00:00Z,0.75\n");
    project.ok(&["run", "j", "--now", "2026-07-02T00:00:00Z"]);
    let log = "select readings, at from exports.LOG order by at";
    let rows = vec![
        json!({ "readings": 6, "at": "2026-07-01T00:00:00Z" }),
        json!({ "readings": 7, "at": "2026-07-02T00:00:00Z" }),
    ];
    assert_eq!(project.sql(log), rows);
    project.ok(&["run", "j", "--now", "2026-07-03T00:00:00Z"]);
    project.ok(&["run", "j", "--force", "--now", "2026-07-03T00:00:00Z"]);
    assert_eq!(project.sql(log), rows, "nothing new, nothing added");
    // A run stopped after it appended the rows and before it wrote the list.
    let list = project.read("data/exports/E.json");
    project.write("in/c.csv", "meter,ts,price\n2,2026-06-10T11:00:00Z,0.75\n");
    project.ok(&["run", "j", "--now", "2026-07-04T00:00:00Z"]);
    project.write("data/exports/E.json", list);
    project.ok(&["run", "j", "--now", "2026-07-04T00:00:00Z"]);
    assert_eq!(project.sql(log).len(), 3);
}

#[test]
fn union_of_sorted_queries_is_published_in_order() {
    let half =
        |meter: u32| format!("select * from (select meter, price from T where meter = {meter} order by price limit 9)");
    let sql = format!("{} union all {}", half(1), half(2));
    let project = project("query", "U", "", &sql);
    project.run_job("j");
    let sorted = project.csv("select price from exports.U order by price");
    assert_eq!(sorted, "price\n1.50\n2.50\n3.00\n4.25\n5.00\n6.00\n");
    let before = project.files("data/exports/U");
    for _ in 0..5 {
        project.ok(&["run", "j", "--force"]);
        assert_eq!(project.files("data/exports/U"), before);
    }
}

#[test]
fn upsert_mode_replaces_rows_with_equal_keys() {
    let select = "select meter, max(price) as peak from T where ts >= '2026-04-01' group by meter order by meter";
    let project = project("query", "TOP", "mode = \"upsert\"\nkeys = [\"meter\"]", select);
    project.write("in/a.csv", "meter,ts,price\n1,2026-04-01T00:00:00Z,1\n2,2026-04-01T00:00:00Z,2\n");
    project.run_job("j");
    project.write(
        "jobs/j/job.toml",
        export("query", "TOP", "mode = \"upsert\"\nkeys = [\"meter\"]", &select.replace("04-01", "04-02")),
    );
    project.write("in/b.csv", "meter,ts,price\n2,2026-04-03T00:00:00Z,7\n3,2026-04-03T00:00:00Z,8\n");
    project.run_job("j");
    let rows = project.csv("select meter, peak from exports.TOP order by meter");
    assert_eq!(rows, "meter,peak\n1,1.00\n2,7.00\n3,8.00\n");
    project.write("jobs/j/job.toml", export("query", "TOP", "mode = \"upsert\"", select));
    assert!(project.fails(2, &["check", "j"]).contains("needs `keys`"));
}

#[test]
fn hive_directories_are_published() {
    let project = project("day", "E/dt={day:%Y-%m-%d}", "", "select meter, ts, price from T order by meter, ts");
    let record = project.run_job("j");
    assert_eq!(parts(&record)[1].0, "E/dt=2026-03-29");
    assert!(project.path("data/exports/E/dt=2026-03-29/part-0.parquet").exists());
    assert_eq!(project.sql("select count(*) as n from exports.E")[0]["n"], 6);
    assert_eq!(project.sql("select count(*) as n from exports.\"E/dt=2026-03-29\"")[0]["n"], 2);
    assert_eq!(project.run_job("j")["exports"], json!([]));
    fs::remove_dir_all(project.path("data/exports/E/dt=2026-03-29")).unwrap();
    assert_eq!(parts(&project.run_job("j")), published(&["E/dt=2026-03-29"]));
    for wrong in ["E/{day}", "E/dt={day}/x", "../E_{day}", "E/a=1/b=2/dt={day}"] {
        project.write("jobs/j/job.toml", export("day", wrong, "", "select * from T"));
        project.fails(2, &["check", "j"]);
    }
}

#[test]
fn a_day_whose_newest_cells_stay_is_published_again() {
    let project = project("day", "E_{day:%Y%m%d}", "", "select meter, ts, price from T order by meter, ts");
    let text = project
        .read("jobs/j/job.toml")
        .replace("[tables.T.families.M]\n", "[tables.T.families.M]\ngc = \"maxversions=1 and maxage=40d\"\n");
    project.write("jobs/j/job.toml", &text);
    project.ok(&["run", "j", "--now", "2026-05-02T00:00:00Z"]);
    project.write("in/b.csv", "meter,ts,price\n7,2026-03-29T10:00:00Z,9\n");
    let ran = project.json(&["run", "j", "--now", "2026-06-01T00:00:00Z"]);
    let states = parts(&ran[0]);
    assert!(states.contains(&("E_20260329".to_owned(), "published".to_owned())), "{states:?}");
}

#[test]
fn expired_day_is_sealed() {
    let project = project("day", "E_{day:%Y%m%d}", "", "select meter, ts, price from T order by meter, ts");
    let text = project
        .read("jobs/j/job.toml")
        .replace("[tables.T.families.M]\n", "[tables.T.families.M]\ngc = \"maxage=40d\"\n");
    project.write("jobs/j/job.toml", &text);
    project.ok(&["run", "j", "--now", "2026-05-02T00:00:00Z"]);
    let before = project.files("data/exports/E_20260329");
    project.write("in/b.csv", "meter,ts,price\n7,2026-03-29T10:00:00Z,9\n7,2026-04-30T10:00:00Z,9\n");
    let ran = project.run(&["run", "j", "--now", "2026-06-01T00:00:00Z", "--output", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let states = parts(&json_lines(&ran.stdout)[0]);
    assert!(states.contains(&("E_20260329".to_owned(), "sealed".to_owned())), "{states:?}");
    assert!(states.contains(&("E_20260430".to_owned(), "published".to_owned())), "{states:?}");
    assert_eq!(project.files("data/exports/E_20260329"), before);
    assert!(project.ok(&["plan", "j", "--now", "2026-06-01T00:00:00Z"]).contains("nothing to do"), "it is told once");
    assert!(ran.stderr.contains("E_20260329 is not published: what is published of it stays"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--force publishes the rest"), "{}", ran.stderr);

    // A lost file cannot be made again: its day stays listed, and each run says so.
    let file = project.path("data/exports/E_20260329/part-0.parquet");
    let bytes = fs::read(&file).unwrap();
    fs::remove_dir_all(project.path("data/exports/E_20260329")).unwrap();
    for _ in 0..2 {
        let told = project.succeeds(&["run", "j", "--now", "2026-06-01T00:00:00Z", "--quiet"]).stderr;
        assert!(told.contains("part-0.parquet is missing") && told.contains("put it back from a backup"), "{told}");
    }
    let found = project.run(&["doctor"]);
    assert!(found.code == Some(1) && found.stdout.contains("put it back from a backup"), "{}", found.stdout);
    project.fails(1, &["sql", "-c", "select count(*) from exports.E"]);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, bytes).unwrap();
    project.ok(&["run", "j", "--now", "2026-06-01T00:00:00Z"]);
    project.ok(&["doctor"]);
    project.ok(&["run", "j", "--now", "2026-06-01T00:00:00Z", "--day", "2026-03-29", "--force"]);
    assert_eq!(project.sql("select count(*) as n from exports.E_20260329")[0]["n"], 0);
}
