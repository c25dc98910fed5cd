//! Rows with a map for each family, as in Bigtable's SQL.

use serde_json::json;

use crate::harness::Project;

const JOB: &str = r#"
name = "j"
[sources.s]
files = ["in/*.csv"]
time = "ts"
[sources.s.columns]
id = "uint64"
ts = "timestamp"
name = "text"
n = "int64"

[tables.T]
row_key = "{id:03}"

[tables.T.families.count]
gc = "maxversions=2"
columns = [{ qualifier = "n", value = "{n}", encoding = "int64" }]

[tables.T.families.info]
columns = [{ qualifier = "name", value = "{name}" }, { qualifier = "id", value = "{id}" }]
"#;

const CSV: &str = "\
id,ts,name,n
1,2020-01-01T00:00:00Z,one,255
1,2020-01-02T00:00:00Z,uno,1
1,2020-01-03T00:00:00Z,,2
2,2020-01-02T00:00:00Z,two,
";

fn project() -> Project {
    let project = Project::new("j", JOB);
    project.write("in/a.csv", CSV);
    project.run_job("j");
    project
}

#[test]
fn rows_are_printed_as_text_and_json() {
    let project = project();
    let query = "SELECT _key, info, count FROM T(with_history => TRUE, latest_n => 2, include_expired => true)";
    assert_eq!(
        project.csv(query),
        "_key,info,count\n\
         001,\"{id: [{timestamp: 1970-01-01T00:00:00Z, value: 1}], \
         name: [{timestamp: 2020-01-02T00:00:00Z, value: uno}, {timestamp: 2020-01-01T00:00:00Z, value: one}]}\",\
         \"{n: [{timestamp: 2020-01-03T00:00:00Z, value: \u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{2}}, \
         {timestamp: 2020-01-02T00:00:00Z, value: \u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{1}}]}\"\n\
         002,\"{id: [{timestamp: 1970-01-01T00:00:00Z, value: 2}], \
         name: [{timestamp: 2020-01-02T00:00:00Z, value: two}]}\",{}\n"
    );
    // 255 is not UTF-8; control characters do not reach a terminal.
    let table =
        project.ok(&["sql", "-c", "SELECT count FROM T(as_of => TIMESTAMP '2020-01-01', include_expired => true)"]);
    assert!(table.contains(r"{n: \x00\x00\x00\x00\x00\x00\x00\xff}"), "{table}");
    let table = project.ok(&["sql", "-c", "SELECT info, count FROM rows.T"]);
    assert!(table.contains("{id: 1, name: uno}") && table.contains("{n: \\u{0}"), "{table}");
    let rows =
        project.sql("SELECT * FROM T(with_history => true, before => TIMESTAMP '2020-01-02') WHERE _key = '001'");
    let cell = |time: &str, value: serde_json::Value| json!([{ "timestamp": time, "value": value }]);
    assert_eq!(
        rows,
        [json!({
            "_key": "001",
            "count": {},
            "info": {
                "id": cell("1970-01-01T00:00:00Z", json!("1")),
                "name": cell("2020-01-01T00:00:00Z", json!("one")),
            },
        })]
    );
    let rows = project.sql("SELECT count FROM T(as_of => TIMESTAMP '2020-01-01', include_expired => true)");
    assert_eq!(rows, [json!({ "count": { "n": { "base64": "AAAAAAAAAP8=" } } }), json!({ "count": {} })]);
}

#[test]
fn bigtable_queries_run_unchanged() {
    let project = project();
    let rows = project.sql("SELECT _key, info['name'] AS name, TO_INT64(count['n']) AS n FROM rows.T");
    assert_eq!(
        rows,
        [json!({ "_key": "001", "name": "uno", "n": 2 }), json!({ "_key": "002", "name": "two", "n": null })]
    );
    let rows = project.sql(
        "SELECT _key, _timestamp, TO_INT64(n) AS n FROM UNPACK((SELECT _key, count['n'] AS n \
         FROM T(with_history => TRUE)))",
    );
    let row = |time: &str, n: i64| json!({ "_key": "001", "_timestamp": time, "n": n });
    assert_eq!(rows, [row("2020-01-03T00:00:00Z", 2), row("2020-01-02T00:00:00Z", 1)]);
    let plan = project.ok(&["sql", "-c", "EXPLAIN SELECT info FROM T(with_history => TRUE) WHERE _key LIKE '001%'"]);
    assert!(plan.contains("cells=history"), "{plan}");
    let error = project.fails(2, &["sql", "-c", "SELECT * FROM NONE(with_history => TRUE)"]);
    assert!(error.contains("error: there is no table NONE; there is T"), "{error}");
}

#[test]
fn daily_exports_cannot_query_rows() {
    let day = "\n[exports.DAY]\nper = \"day\"\nname = \"DAY_{day:%Y%m%d}\"\nquery = { file = \"day.sql\" }\n";
    let project = Project::new("j", &(JOB.to_owned() + day));
    project.write("in/a.csv", CSV);
    for query in ["SELECT _key FROM rows.T", "SELECT * FROM T(with_history => true)", "SELECT * FROM unpack(T)"] {
        project.write("jobs/j/day.sql", query);
        for command in ["check", "run"] {
            let error = project.fails(2, &[command, "j"]);
            assert!(error.contains("rows.T"), "{command} {query}: {error}");
        }
    }
    project.write("jobs/j/day.sql", "SELECT * FROM T(latest_n => 1)");
    let error = project.fails(2, &["check", "j"]);
    assert!(error.contains("with_history => true"), "{error}");
    let derived = "\n[tables.D]\nfrom = { query = { file = \"d.sql\" }, time = \"_timestamp\" }\nrow_key = \"{id}\"\n\
                   [tables.D.families.F]\ncolumns = [{ qualifier = \"id\", value = \"{id}\" }]\n";
    let project = Project::new("j", &(JOB.to_owned() + derived));
    project.write("jobs/j/d.sql", "SELECT _timestamp, CAST(_key AS STRING) AS id FROM unpack(T)");
    let error = project.fails(2, &["check", "j"]);
    assert!(error.contains("rows.T"), "{error}");
}

#[test]
fn deleted_cells_are_in_no_view() {
    let project = project();
    project.ok(&["delete", "T", "--yes", "--row", "001", "--column", "info"]);
    project.ok(&["delete", "T", "--yes", "--row", "002", "--column", "info"]);
    for columns in ["_key", "_key, count", "_key, info", "_key, MAP_EMPTY(info) AS e"] {
        let rows = project.sql(&format!("SELECT {columns} FROM T(include_expired => true)"));
        assert_eq!(rows.len(), 1, "{columns}: {rows:?}");
        assert_eq!(rows[0]["_key"], "001", "{columns}");
    }
    assert_eq!(project.sql("SELECT info FROM rows.T"), [json!({ "info": {} })]);
}
