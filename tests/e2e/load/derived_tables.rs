//! Derived tables, and several tables of one source.

use serde_json::Value;

use crate::harness::Project;

/// Readings by host and instant, and the readings of each hour of them.
const JOB: &str = r#"
name = "hours"

[sources.samples]
files = ["in/*.csv"]
time = "ts"
max_rejected = 5

[sources.samples.columns]
host = "text"
ts = "timestamp"
load = "uint64"

[tables.METRIC]
row_key = "{host}#{ts:ms}"

[tables.METRIC.families.M]
columns = [{ qualifier = "LOAD", value = "{load}" }]

[tables.BY_TIME]
row_key = "{ts:%Y%m%d}#{host:<4}#{ts:%H%M}"

[tables.BY_TIME.families.M]
columns = [{ qualifier = "LOAD", value = "{load}" }]

[tables.HOURS]
from = { query = { file = "hours.sql" } }
row_key = "{host}#{hour:%Y%m%d%H}"

[tables.HOURS.families.H]
columns = [
  { qualifier = "MEAN", value = "{mean}", encoding = "float64" },
  { qualifier = "SAMPLES", value = "{samples}", encoding = "int64" },
]

[exports.HOURS_DAY]
per = "day"
name = "HOURS_{day:%Y%m%d}"
query = { sql = "SELECT * FROM HOURS" }
"#;

const HOURS: &str = "SELECT host, date_trunc('hour', ts) AS hour, avg(load) AS mean, count(*) AS samples
FROM METRIC GROUP BY host, date_trunc('hour', ts)";

fn project() -> Project {
    let project = Project::new("hours", JOB);
    project.write("jobs/hours/hours.sql", HOURS);
    project.write(
        "in/1.csv",
        "host,ts,load\na,2026-01-01T10:00:00Z,4\na,2026-01-01T10:30:00Z,8\nb,2026-01-01T11:00:00Z,1\n",
    );
    project.write("in/2.csv", "host,ts,load\na,2026-01-02T10:00:00Z,5\nb,2026-01-02T23:59:00Z,7\n");
    project
}

fn hours(project: &Project) -> Vec<Value> {
    project.sql("SELECT * FROM HOURS ORDER BY host, hour")
}

/// The table after a run in a fresh root.
fn fresh(project: &Project) -> Vec<Value> {
    project.ok(&["run", "hours", "--root", "fresh", "--new-root"]);
    let rows = project.json(&["sql", "--root", "fresh", "-c", "SELECT * FROM HOURS ORDER BY host, hour"]);
    std::fs::remove_dir_all(project.path("fresh")).unwrap();
    rows
}

/// The inputs of a load that are in a state.
fn inputs(record: &Value, table: &str, state: &str) -> Vec<String> {
    let load = record["loads"].as_array().unwrap().iter().find(|load| load["table"] == table).unwrap();
    let inputs = load["inputs"].as_array().unwrap().iter().filter(|input| input["state"] == state);
    inputs.map(|input| input["path"].as_str().unwrap().to_owned()).collect()
}

/// The number of unchanged windows that HOURS reads.
fn unchanged(record: &Value) -> u64 {
    let load = record["loads"].as_array().unwrap().iter().find(|load| load["table"] == "HOURS").unwrap();
    load["standing"]["unchanged"].as_u64().unwrap_or_default()
}

#[test]
fn derived_table_rebuilds_only_changed_windows() {
    let project = project();
    let record = project.run_job("hours");
    assert_eq!(inputs(&record, "HOURS", "new"), ["METRIC@2026-01-01", "METRIC@2026-01-02"]);
    let found = hours(&project);
    assert_eq!(found.len(), 4);
    assert_eq!((&found[0]["mean"], &found[0]["samples"]), (&6.0.into(), &2.into()));
    assert_eq!(project.sql("SELECT count(*) AS n FROM exports.HOURS_DAY")[0]["n"], 4);

    // Nothing new: no query runs.
    let files = project.files("data");
    let record = project.run_job("hours");
    assert_eq!(unchanged(&record), 2);
    assert_eq!(project.files("data"), files);

    // A late reading of the first day.
    project.write("in/3.csv", "host,ts,load\nb,2026-01-01T11:30:00Z,3\n");
    let record = project.run_job("hours");
    assert_eq!(inputs(&record, "HOURS", "changed"), ["METRIC@2026-01-01"]);
    assert_eq!(unchanged(&record), 1);
    let published: Vec<&Value> = record["exports"].as_array().unwrap().iter().map(|part| &part["part"]).collect();
    assert_eq!(published, ["HOURS_20260101"]);
    assert_eq!(hours(&project), fresh(&project));

    // A file whose rows moved to another hour and another day.
    project.write("in/1.csv", "host,ts,load\na,2026-01-01T12:00:00Z,4\nc,2026-01-03T00:00:00Z,9\n");
    let record = project.run_job("hours");
    assert_eq!(inputs(&record, "HOURS", "changed"), ["METRIC@2026-01-01"]);
    assert_eq!(inputs(&record, "HOURS", "new"), ["METRIC@2026-01-03"]);
    let found = hours(&project);
    assert!(
        !found
            .iter()
            .any(|row| row["host"] == "a" && row["hour"].as_str().unwrap().contains("T10") && row["samples"] == 2)
    );
    assert_eq!(found, fresh(&project));

    // A changed query requires a rebuild.
    project.write("jobs/hours/hours.sql", HOURS.replace("avg(load)", "cast(max(load) AS double)"));
    assert!(project.fails(2, &["run", "hours"]).contains("--rebuild"));
    project.ok(&["run", "hours", "--rebuild"]);
    assert_eq!(hours(&project), fresh(&project));
}

#[test]
fn a_derived_table_alone_is_rebuilt_without_the_inputs_of_its_source() {
    let project = project();
    project.run_job("hours");
    let before = hours(&project);
    std::fs::rename(project.path("in"), project.path("away")).unwrap();

    // All tables cannot be rebuilt, but this one needs the table alone.
    let told = project.fails(1, &["run", "hours", "--rebuild"]);
    assert!(told.contains("HOURS is rebuilt without them by --rebuild --select table:HOURS"), "{told}");
    let rebuild = ["hours", "--rebuild", "--select", "table:HOURS"];
    let plan = project.ok(&[&["plan"][..], &rebuild, &["--output", "csv"]].concat());
    for line in ["table,METRIC,hours,up to date", "table,HOURS,hours,rebuild,2026-01-01 to 2026-01-02"] {
        assert!(plan.contains(line), "{line}: {plan}");
    }
    let record = project.json(&[&["run"][..], &rebuild].concat()).remove(0);
    let versions: Vec<(&Value, &Value)> =
        record["loads"].as_array().unwrap().iter().map(|load| (&load["table"], &load["version"])).collect();
    assert_eq!(versions, [(&"METRIC".into(), &1.into()), (&"HOURS".into(), &2.into())], "{record}");
    assert_eq!(hours(&project), before);

    // So it is after a change of its layout.
    project.write("jobs/hours/job.toml", JOB.replace("{host}#{hour:%Y%m%d%H}", "{hour:%Y%m%d%H}#{host}"));
    assert!(project.fails(2, &["run", "hours"]).contains("the layout of HOURS changed"));
    project.ok(&[&["run"][..], &rebuild].concat());
    assert_eq!(hours(&project), before);
}

#[test]
fn failed_query_leaves_its_table_unchanged() {
    let project = project();
    project.run_job("hours");
    let before = hours(&project);
    project.write("in/3.csv", "host,ts,load\nb,2026-01-02T11:30:00Z,0\n");
    project.write("jobs/hours/hours.sql", HOURS.replace("count(*)", "count(*) / cast(min(load) - 7 AS bigint)"));
    project.fails(2, &["run", "hours"]);
    let told = project.fails(1, &["run", "hours", "--rebuild"]);
    assert!(told.contains("METRIC@2026-01-02") && told.to_lowercase().contains("divide by zero"), "{told}");
    assert_eq!(hours(&project), before);
    project.write("jobs/hours/hours.sql", HOURS);
    project.run_job("hours");
    assert_eq!(hours(&project), fresh(&project));
}

#[test]
fn tables_of_one_source_share_its_scan_and_rejected_rows() {
    let project = project();
    project.write(
        "in/3.csv",
        "host,ts,load\nb,2026-01-02T11:30:00Z,many\nlong-name,2026-01-02T11:30:00Z,1\nb,2026-01-02T11:31:00Z,1\n",
    );
    let record = project.run_job("hours");
    assert_eq!(record["rows_rejected"], 2);
    let rejected = project.rejected(&record);
    let told: Vec<_> = rejected.iter().map(|row| (row["table"].as_str(), row["line"].as_u64().unwrap())).collect();
    assert_eq!(told, [(None, 2), (Some("BY_TIME"), 3)]);
    for (load, rejected) in record["loads"].as_array().unwrap().iter().zip([1, 2]) {
        assert_eq!((&load["rows_read"], &load["rows_rejected"]), (&8.into(), &rejected.into()), "{load}");
    }
    // Each holds the same as if it were loaded alone.
    let count = |table: &str| project.sql(&format!("SELECT count(*) AS n FROM {table}"))[0]["n"].clone();
    assert_eq!((count("METRIC"), count("BY_TIME")), (7.into(), 6.into()));
}

#[test]
fn table_added_later_is_loaded_in_its_own_input_order() {
    let project = project();
    let (without, start) = (JOB.find("[tables.BY_TIME]").unwrap(), JOB.find("[tables.HOURS]").unwrap());
    project.write("jobs/hours/job.toml", format!("{}{}", &JOB[..without], &JOB[start..]));
    // The first table sees the files in this order, the later one in the order of their names.
    project.run_job("hours");
    project.write("in/0.csv", "host,ts,load\na,2026-01-02T10:00:00Z,50\n");
    project.run_job("hours");
    project.write("jobs/hours/job.toml", JOB);
    project.write("in/2.csv", "host,ts,load\na,2026-01-02T10:00:00Z,6\nb,2026-01-02T23:59:00Z,7\n");
    project.run_job("hours");
    let load = |table: &str| {
        project.sql(&format!("SELECT load FROM {table} WHERE host = 'a' AND ts >= '2026-01-02T00:00:00Z'"))
    };
    // The later input wins, and for the later table that is 2.csv.
    assert_eq!(load("METRIC")[0]["load"], 50);
    assert_eq!(load("BY_TIME")[0]["load"], 6);
}

#[test]
fn query_sees_whole_windows_of_the_derived_table() {
    let job = JOB.replace("[tables.METRIC]\n", "[tables.METRIC]\nwindow = \"hour\"\n");
    let project = Project::new("hours", &job.replace("{hour:%Y%m%d%H}", "{hour:%Y%m%d}"));
    let days = HOURS.replace("'hour'", "'day'");
    project.write("jobs/hours/hours.sql", &days);
    project.write("in/1.csv", "host,ts,load\na,2026-01-01T10:00:00Z,4\na,2026-01-01T12:00:00Z,8\n");
    let record = project.run_job("hours");
    assert_eq!(inputs(&record, "HOURS", "new"), ["METRIC@2026-01-01"]);
    assert_eq!(hours(&project), project.sql(&format!("SELECT * FROM ({days}) ORDER BY host, hour")));
    assert_eq!(hours(&project)[0]["samples"], 2);
}

#[test]
fn removed_source_windows_are_removed_from_the_derived_table() {
    let project = project();
    project.run_job("hours");
    project.write("jobs/hours/job.toml", JOB.replacen("[tables.METRIC]\n", "[tables.METRIC]\nwindow = \"month\"\n", 1));
    assert!(project.fails(2, &["run", "hours"]).contains("--rebuild"));
    project.ok(&["run", "hours", "--rebuild"]);
    assert_eq!(hours(&project), fresh(&project));
    let table = project.path("data/tables/METRIC");
    std::fs::remove_dir_all(table).unwrap();
    project.write("in/2.csv", "host,ts,load\nz,2026-02-02T10:00:00Z,5\n");
    project.ok(&["run", "hours", "--new-root"]);
    assert_eq!(hours(&project), fresh(&project));
}

#[test]
fn first_run_without_rows_creates_the_table() {
    let project = project();
    for file in ["1", "2"] {
        project.write(&format!("in/{file}.csv"), "host,ts,load\n");
    }
    project.run_job("hours");
    assert!(hours(&project).is_empty());
}

#[test]
fn rejected_query_rows_are_kept_and_reported() {
    let project = project();
    project.write("jobs/hours/hours.sql", HOURS.replace("SELECT host,", "SELECT nullif(host, 'b') AS host,"));
    let told = project.fails(1, &["run", "hours"]);
    assert!(told.contains("2 of 4 rows that the query of table HOURS gave were rejected"), "{told}");
    let logs: Vec<String> = project.files("data/rejected").into_keys().collect();
    assert!(
        logs.len() == 1 && logs[0].ends_with(".HOURS.jsonl") && told.contains(&logs[0]["data/".len()..]),
        "{logs:?}"
    );
    let rejected = crate::harness::json_lines(&project.read(&logs[0]));
    let place = |row: &Value| (row["file"].as_str().unwrap().to_owned(), row["column"].as_str().map(str::to_owned));
    let mut places: Vec<_> = rejected.iter().map(place).collect();
    // Windows are encoded in parallel, so their rows come in any order.
    places.sort();
    let expected = |window: &str| (format!("METRIC@{window}"), Some("host".to_owned()));
    assert_eq!(places, ["2026-01-01", "2026-01-02"].map(expected));
    // Its source is there; the table is not until its query is corrected.
    assert_eq!(project.sql("SELECT count(*) AS n FROM METRIC")[0]["n"], 5);
    assert!(project.fails(2, &["sql", "-c", "SELECT * FROM HOURS"]).contains("HOURS"));
    project.write("jobs/hours/hours.sql", HOURS);
    project.run_job("hours");
    assert_eq!(hours(&project).len(), 4);
}

#[test]
fn groups_that_windows_split_are_a_warning() {
    let project = project();
    project.write("in/3.csv", "host,ts,load\nc,2026-01-01T23:30:00Z,1\nc,2026-01-02T10:00:00Z,10\n");
    let told = project.succeeds(&["run", "hours", "--quiet"]).stderr;
    assert!(!told.contains("warning"), "{told}");

    // Days of Paris lie in two days of UTC.
    let day = "date_trunc('day', ts AT TIME ZONE 'Europe/Paris') AT TIME ZONE 'Europe/Paris'";
    project.write("jobs/hours/hours.sql", HOURS.replace("date_trunc('hour', ts)", day));
    let told = project.succeeds(&["run", "hours", "--quiet", "--rebuild"]).stderr;
    assert!(told.contains("warning: HOURS: ") && told.contains("a group that lies in two comes in parts"), "{told}");
}

#[test]
fn what_another_job_has_not_made_yet_is_named_with_that_job() {
    let project = project();
    let report = "name = \"report\"\n[exports.R]\nper = \"day\"\nname = \"R_{day:%Y%m%d}\"\n\
                  query = { sql = \"SELECT * FROM HOURS ORDER BY host, hour\" }\n";
    project.write("jobs/report/job.toml", report);

    // The query is checked over the table as the other job declares it.
    for args in [["check", "--all"], ["check", "report"]] {
        let checked = project.ok(&[&args[..], &["--output", "csv"]].concat());
        let finding = "warning,R,\"reads HOURS, which job hours has not made yet: `tidetable run hours` first\"";
        assert!(checked.contains(finding), "{args:?}: {checked}");
    }
    project.write("jobs/report/job.toml", report.replace("ORDER BY host", "ORDER BY hots"));
    assert!(project.fails(2, &["check", "report"]).contains("hots"));

    project.write("jobs/report/job.toml", report);
    let said =
        "export R reads HOURS, which job hours makes and has not made yet: run it first with `tidetable run hours`";
    for args in [["plan", "report"], ["run", "report"]] {
        let told = project.fails(2, &args);
        assert!(told.contains(said), "{args:?}: {told}");
    }
    project.ok(&["run", "--all"]);
    assert!(!project.ok(&["check", "--all", "--output", "csv"]).contains("not made yet"));

    // A derived table reads tables of its own job only.
    project.write(
        "jobs/more/job.toml",
        "name = \"more\"\n[tables.M]\nfrom = { query = { sql = \"SELECT * FROM HOURS\" } }\nrow_key = \"{host}#{hour:ms}\"\n\
         [tables.M.families.F]\ncolumns = [{ qualifier = \"n\", value = \"{samples}\" }]\n",
    );
    let told = project.fails(2, &["check", "more"]);
    assert!(told.contains("it reads HOURS, and no table of that name comes before it in this file"), "{told}");
    assert!(told.contains("merge the jobs"), "{told}");
}
