//! `status`, `history`, `lineage`, `rejects`, `replay` and `clean`.

use std::fs::{self, File};
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::harness::{Project, Ran, TIDETABLE, json_lines};

const JOB: &str = readings_job!(
    "in/{day:%Y-%m-%d}*.csv",
    r#"max_rejected = "50%""#,
    r#"
[tables.U]
from = { query = { sql = "select meter, ts, kwh * 2 as twice from T where meter < 2" } }
row_key = "{meter:03}#{ts:%Y%m%d}"

[tables.U.families.M]
columns = [{ qualifier = "{ts:%H%M}", value = "{twice}" }]

[exports.E]
per = "day"
name = "E_{day:%Y%m%d}"
query = { sql = "select meter, ts, kwh from T order by meter, ts" }
"#
);

/// Days 1, 2 and 4 of a month.
fn project() -> Project {
    let project = Project::new("j", JOB);
    [1, 2, 4].iter().for_each(|day| write_day(&project, *day, "1"));
    project
}

/// Three readings; that of meter 2 is `last`.
fn write_day(project: &Project, day: u32, last: &str) {
    let row = |meter: u32, kwh: &str| format!("{meter},2020-01-{day:02}T10:00:00Z,{kwh}\n");
    let text = format!("meter,ts,kwh\n{}{}{}", row(0, "1"), row(1, "2"), row(2, last));
    project.write(&format!("in/2020-01-{day:02}.csv"), text);
}

fn run(project: &Project, args: &[&str]) -> Value {
    let ran = project.run(&[&["run", "j", "--output", "json"], args].concat());
    assert!(matches!(ran.code, Some(0 | 4)), "{}", ran.stderr);
    json_lines(&ran.stdout).remove(0)
}

fn status(project: &Project, args: &[&str]) -> Value {
    project.json(&[&["status", "j"], args].concat()).remove(0)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Writes a record like this one for a run that began and did not end.
fn began(project: &Project, record: &Value, run: &str) {
    let mut record = project.stored_record(&record["run"]);
    (record["run"], record["outcome"], record["finished"]) = (json!(run), json!("running"), json!(null));
    project.write(&format!("data/runs/{run}.json"), record.to_string());
}

fn age(project: &Project, path: &str) {
    let then = SystemTime::now() - Duration::from_secs(7_200);
    File::options().write(true).open(project.path(path)).unwrap().set_modified(then).unwrap();
}

#[test]
fn status_reports_ages_gaps_and_killed_runs() {
    let project = project();
    let never = status(&project, &["--now", "2020-01-05T01:30:00Z"]);
    assert_eq!((&never["outcome"], &never["published_until"]), (&Value::Null, &Value::Null));
    assert!(project.fails(1, &["status", "--fresh", "26h"]).contains("j (never ran) is stale"));

    let record = run(&project, &["--now", "2020-01-05T01:00:00Z"]);
    let at = ["--now", "2020-01-05T01:30:00Z", "--fresh", "26h"];
    let found = status(&project, &at);
    assert_eq!((&found["outcome"], &found["fresh"]), (&json!("ok"), &json!(true)));
    assert_eq!(found["gaps"], json!([{ "of": "E", "days": ["2020-01-03"] }]));
    assert_eq!(found["published_until"], "2020-01-05T00:00:00Z");
    assert_eq!((&found["data_age_seconds"], &found["good_age_seconds"]), (&json!(5_400), &json!(1_800)));
    assert_eq!(found["run"], record["run"]);
    assert!(project.ok(&[&["status"][..], &at].concat()).contains("E: 2020-01-03"));
    let said = project.fails(1, &["status", "j", "--now", "2020-01-06T02:00:01Z", "--fresh", "26h"]);
    assert!(said.contains("j (newest day ended 1d 2h ago) is stale: older than 1d 2h"), "{said}");
    assert!(project.fails(2, &["status", "other"]).contains("unknown job other"));
    // One that is run once is stale for ever, unless the others are named.
    project.write("jobs/once/job.toml", project.read("jobs/j/job.toml").replacen("\"j\"", "\"once\"", 1));
    project.ok(&[&["status", "j"][..], &at].concat());
    let said = project.fails(1, &[&["status", "j", "once"][..], &at].concat());
    assert!(said.contains("once (never ran) is stale"), "{said}");
    assert!(project.fails(2, &["status", "j", "other"]).contains("unknown job other"));
    fs::remove_dir_all(project.path("jobs/once")).unwrap();
    assert!(project.ok(&["status", "--help"]).contains("1 one is stale"));

    // A record with outcome `running` holds as long as the lock of the job is held.
    let next = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ";
    began(&project, &record, next);
    let lock = File::create(project.path("data/locks/j.lock")).unwrap();
    lock.lock().unwrap();
    project.write("data/locks/j.lock", json!({ "run": next, "process": 1 }).to_string());
    assert_eq!(status(&project, &[])["outcome"], "running");
    drop(lock);
    assert_eq!(status(&project, &[])["outcome"], "killed");
    assert_eq!(project.sql("select outcome from runs.runs order by run desc limit 1")[0]["outcome"], "killed");
}

#[test]
fn a_local_day_between_windows_of_its_neighbours_is_a_gap() {
    let job = JOB.replace("in/{day:%Y-%m-%d}*.csv", "in/*.csv").replace("from T order", "from T where kwh > 0 order");
    let project = Project::new("j", &format!("timezone = \"Europe/Berlin\"\n{job}"));
    // Days begin at 23:00 UTC: the third is touched by the windows of both neighbours. The second has a row, and no answer.
    let rows = [("2019-12-31T23", 1), ("2020-01-02T10", 0), ("2020-01-03T23", 1), ("2020-01-04T20", 1)];
    let rows: String = rows.iter().map(|(hour, kwh)| format!("1,{hour}:30:00Z,{kwh}\n")).collect();
    project.write("in/a.csv", format!("meter,ts,kwh\n{rows}"));
    run(&project, &[]);
    let found = status(&project, &[]);
    assert_eq!(found["gaps"], json!([{ "of": "E", "days": ["2020-01-03"] }]), "{found}");
}

#[test]
fn status_reports_failed_days_until_they_are_published() {
    let project = project();
    project.write(
        "jobs/j/job.toml",
        JOB.replace("meter, ts, kwh from", "meter, ts, 1 / (extract(day from ts) - 2) as kwh from"),
    );
    let record = run(&project, &[]);
    assert_eq!(record["outcome"], "partial");
    let found = status(&project, &[]);
    assert_eq!(found["failed"], json!([{ "of": "E", "days": ["2020-01-02"] }]));
    assert_eq!(found["last_good"], Value::Null);
    project.write("jobs/j/job.toml", JOB);
    project.ok(&["retry", text(&record["run"])]);
    let found = status(&project, &[]);
    assert_eq!((&found["failed"], &found["outcome"]), (&json!([]), &json!("ok")));
    // A removed export has no gaps.
    project.write("jobs/j/job.toml", JOB.split("[exports.E]").next().unwrap());
    let gone = status(&project, &[]);
    assert_eq!(gone["published_until"], Value::Null);
    assert_eq!(gone["gaps"][0], json!({ "of": "T", "days": ["2020-01-03"] }));
}

#[test]
fn history_lists_runs_newest_first() {
    let project = project();
    let first = run(&project, &["--now", "2020-01-05T01:00:00Z"]);
    let second = run(&project, &[]);
    began(&project, &second, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
    let runs = |args: &[&str]| -> Vec<String> {
        let found = project.json(&[&["history"], args].concat());
        found.iter().map(|run| text(&run["run"]).to_owned()).collect()
    };
    let names = ["7ZZZZZZZZZZZZZZZZZZZZZZZZZ", text(&second["run"]), text(&first["run"])];
    assert_eq!(runs(&["j"]), names);
    assert_eq!(runs(&["--limit", "2"]), names[..2]);
    assert_eq!(runs(&["--failed"]), names[..1]);
    project.fails(2, &["history", "other"]);
    assert_eq!(runs(&["--since", "7d"]), names);
    assert_eq!(runs(&["--since", "2999-01-01T00:00:00Z"]), [""; 0]);
    assert!(project.fails(2, &["history", "--since", "soon"]).contains("as in 7d"));
    let found = project.json(&["history"]);
    assert_eq!(
        (&found[2]["read"], &found[2]["published"], &found[2]["now"]),
        (&json!(15), &json!(3), &json!("2020-01-05T01:00:00Z"))
    );
    // An unreadable record is reported and hides no other.
    project.write("data/runs/7ZZZZZZZZZZZZZZZZZZZZZZZZY.json", "{");
    let ran = project.run(&["history", "--output", "csv"]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (Some(0), 4), "{}", ran.stderr);
    assert!(ran.stderr.contains("7ZZZZZZZZZZZZZZZZZZZZZZZZY.json"), "{}", ran.stderr);
}

#[test]
fn runs_are_tables_in_sql() {
    let checked =
        format!("{JOB}\n[checks.sane]\non = \"E\"\nseverity = \"warn\"\nrange = {{ kwh = {{ max = 1.5 }} }}\n");
    let project = project();
    project.write("jobs/j/job.toml", checked);
    write_day(&project, 4, "much");
    run(&project, &["--now", "2020-01-05T01:00:00Z"]);
    run(&project, &["--now", "2020-01-06T01:00:00Z", "--day", "2020-01-01", "--force"]);
    let runs = project.sql(
        "select now, outcome, started <= finished as ended, seconds >= 0 as took, forced, from_day, rows_read, rows_rejected, \
         published, failed from runs.runs order by run",
    );
    let first = json!({ "now": "2020-01-05T01:00:00Z", "outcome": "ok", "ended": true, "took": true, "forced": false,
        "from_day": null, "rows_read": 15, "rows_rejected": 1, "published": 3, "failed": 0 });
    assert_eq!(runs[0], first);
    assert_eq!((&runs[1]["forced"], &runs[1]["from_day"]), (&json!(true), &json!("2020-01-01")));
    let one = |query: &str| project.sql(query).remove(0);
    assert_eq!(
        one("select file, line, column_name, raw from runs.rejects"),
        json!({ "file": "in/2020-01-04.csv", "line": 4, "column_name": "kwh", "raw": "2,2020-01-04T10:00:00Z,much" })
    );
    assert_eq!(one("select count(*) as n from runs.partitions where state = 'published'")["n"], 3);
    assert_eq!(one("select count(*) as n from runs.checks where not passed and severity = 'warn'")["n"], 4);
    assert_eq!(one("select count(*) as n from runs.loads where version > version_before")["n"], 2);
    assert_eq!(one("select count(*) as n from runs.inputs where state = 'new' and table_name = 'T'")["n"], 3);
    // These commands read no records: a damaged one would be reported.
    project.write("data/runs/7ZZZZZZZZZZZZZZZZZZZZZZZZY.json", "{");
    let kinds = project.sql(
        "select column_name, data_type from information_schema.columns where table_schema = 'runs' and table_name = 'runs' \
         and column_name in ('now', 'forced', 'cells', 'job')",
    );
    let kind =
        |name: &str| text(&kinds.iter().find(|kind| kind["column_name"] == name).unwrap()["data_type"]).to_owned();
    assert_eq!((kind("forced"), kind("cells")), ("Boolean".to_owned(), "Int64".to_owned()));
    assert!(kind("now").contains("UTC"), "{}", kind("now"));
    assert_eq!(one("select count(*) as n from T")["n"], 8);
    let ran = project.run(&["sql", "--output", "json", "-c", "select * from runs.runs"]);
    assert_eq!((ran.code, json_lines(&ran.stdout).len()), (Some(0), 2), "it hides no other");
    assert!(ran.stderr.contains("7ZZZZZZZZZZZZZZZZZZZZZZZZY.json"), "{}", ran.stderr);
}

#[test]
fn lineage_works_in_both_directions() {
    let project = project();
    let record = run(&project, &["--now", "2020-01-05T01:00:00Z"]);
    let links = |args: &[&str]| project.json(&[&["lineage"], args].concat());
    let pairs = |links: &[Value]| -> Vec<String> {
        links.iter().map(|link| format!("{} > {}", text(&link["name"]), text(&link["into_name"]))).collect()
    };
    let day = links(&["T", "2020-01-02"]);
    assert_eq!(pairs(&day), ["in/2020-01-02.csv > T", "T > U", "T > E_20200102"]);
    let input = &day[0];
    assert_eq!((&input["sequence"], &input["rows"], &input["version"]), (&json!(2), &json!(3), &json!(1)));
    assert_eq!((&input["run"], &input["now"]), (&record["run"], &json!("2020-01-05T01:00:00Z")));
    assert_eq!(text(&input["fingerprint"]).len(), 32);
    assert_eq!(pairs(&links(&["E_20200104"])), ["in/2020-01-04.csv > T", "T > E_20200104"]);
    assert_eq!(pairs(&links(&["E", "2020-01-04"])), ["in/2020-01-04.csv > T", "T > E_20200104"]);
    assert_eq!(pairs(&links(&["U", "2020-01-01"])), ["in/2020-01-01.csv > T", "T > U"]);
    assert_eq!(links(&["T"]).len(), 9);
    assert_eq!(pairs(&links(&["--input", "2020-01-01.csv"])), ["in/2020-01-01.csv > T", "T > U", "T > E_20200101"]);
    assert!(project.fails(2, &["lineage", "X"]).contains("no table, export or part X"));
    assert!(project.fails(2, &["lineage", "--input", "x.csv"]).contains("no input x.csv"));
    project.fails(2, &["lineage"]);
}

#[test]
fn what_a_killed_run_was_asked_for_is_told_by_the_next() {
    let project = project();
    write_day(&project, 1, "1");
    for (options, what) in [(&["--force"][..], "--force"), (&["--force", "--rebuild"], "--rebuild --force")] {
        let mut record = project.stored_record(&run(&project, options)["run"]);
        (record["outcome"], record["finished"]) = (json!("running"), json!(null));
        let killed = text(&record["run"]);
        project.write(&format!("data/runs/{killed}.json"), record.to_string());

        let told = project.messages(&["run", "j"]);
        assert!(told.contains(&format!("run {killed} did not finish: this one continues it, but does not")), "{told}");
        assert!(told.contains(&format!("repeat what it was asked for: {what}. ")), "{told}");
        assert!(told.contains(&format!("`tidetable retry {killed}`")), "{told}");
        assert!(!project.messages(&["run", "j"]).contains("did not finish"), "once");
    }
}

#[test]
fn repaired_rejected_rows_are_loaded_by_replay() {
    let project = project();
    write_day(&project, 1, "much");
    write_day(&project, 2, "little");
    let record = run(&project, &[]);
    let first = text(&record["run"]);
    assert_eq!(record["rows_rejected"], 2);
    run(&project, &[]);
    let rows = project.json(&["rejects", "j"]);
    assert_eq!(rows.len(), 2, "the last run that has some");
    assert_eq!(
        (&rows[0]["run"], &rows[0]["line"], &rows[0]["raw"]),
        (&record["run"], &json!(4), &json!("2,2020-01-01T10:00:00Z,much"))
    );
    assert_eq!(
        project.ok(&["rejects", "j", "--run", first, "--output", "csv"]),
        "meter,ts,kwh\n2,2020-01-01T10:00:00Z,much\n2,2020-01-02T10:00:00Z,little\n"
    );
    // Without the project, only the names of inputs are known.
    let root = project.path("data").display().to_string();
    let args = ["rejects", "j", "--run", first, "--output", "csv", "--root", &root];
    let ran = Ran::of(Command::new(TIDETABLE).args(args).current_dir(std::env::temp_dir()));
    assert!(ran.stderr.contains("no header is written: there is no project here"), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("2,2020-01-01T10:00:00Z,much"), "{}", ran.stdout);

    let said = project.ok(&["rejects", "j", "--limit", "1"]);
    assert!(said.contains("2 rows: kwh: \"..\"") && said.contains("and 1 row more: --limit 0"), "{said}");
    project.fails(2, &["rejects", "other"]);
    project.fails(2, &["rejects", "j", "--run", "01XXXXXXXXXXXXXXXXXXXXXXXX"]);
    assert_eq!(status(&project, &[])["rejected"], 2);

    // Nothing was repaired: nothing is committed.
    let before = project.files("data/tables");
    let ran = project.run(&["replay", first, "--output", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("none of the rows rejected then is accepted now"), "{}", ran.stderr);
    let idle = &json_lines(&ran.stdout)[0];
    assert_eq!((&idle["loads"][0]["before"], &idle["loads"][0]["version"]), (&json!(1), &json!(1)));
    assert_eq!(idle["loads"][0]["inputs"][0]["state"], "read again");
    assert_eq!(idle["exports"], json!([]));
    assert_eq!(project.files("data/tables"), before);

    // One of two is repaired: its row is loaded, and no row of the other input is duplicated.
    write_day(&project, 1, "7");
    let ran = project.run(&["replay", first, "--output", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("2 rows rejected then, 1 now"), "{}", ran.stderr);
    let done = &json_lines(&ran.stdout)[0];
    let load = &done["loads"][0];
    let number = |key: &str| load[key].as_u64().unwrap();
    assert_eq!((number("before"), number("version"), number("rows_read")), (1, 2, 6));
    assert_eq!(number("rows_read"), number("rows_accepted") + number("rows_filtered") + number("rows_rejected"));
    let states: Vec<&str> = load["inputs"].as_array().unwrap().iter().map(|input| text(&input["state"])).collect();
    assert_eq!((states, &load["standing"]), (vec!["changed", "read again"], &json!({ "unchanged": 1 })));
    assert_eq!(project.sql("select count(*) as n, sum(kwh) as kwh from T")[0], json!({ "n": 8, "kwh": 17.0 }));
    let cells = "select count(*) as n, count(distinct row_key) as keys from cells.T";
    assert_eq!(project.sql(cells)[0], json!({ "n": 8, "keys": 8 }));
    assert_eq!(project.sql("select count(*) as n from exports.E")[0]["n"], 8);
    assert_eq!(status(&project, &[])["rejected"], 1);
    // Only what is still rejected is listed.
    let still = project.json(&["rejects", "j"]);
    assert_eq!((still.len(), &still[0]["run"]), (1, &done["run"]), "{still:?}");
    let then = project.run(&["rejects", "j", "--run", first]);
    assert!(then.stderr.contains("shown too: 2 rows of inputs that were read again since"), "{}", then.stderr);
    assert!(!then.stderr.contains("cleaned away"), "{}", then.stderr);
    assert_eq!(project.json(&["rejects", "j", "--run", first]).len(), 2);
    write_day(&project, 2, "8");
    project.ok(&["replay", text(&done["run"])]);
    let none = project.run(&["rejects", "j"]);
    assert!(none.stderr.contains("no row of j is still rejected"), "{}", none.stderr);
    write_day(&project, 2, "little");
    project.ok(&["run", "j"]);
    assert_eq!(project.json(&["rejects", "j"]).len(), 1);

    // Another layout is refused, as in a run.
    project.write("jobs/j/job.toml", JOB.replace("{meter:03}", "{meter:04}"));
    assert!(project.fails(2, &["replay", first]).contains("--rebuild"));
    project.write("jobs/j/job.toml", JOB);
    fs::remove_file(project.path(&format!("data/rejected/{first}.jsonl"))).unwrap();
    assert!(project.fails(1, &["replay", first]).contains("cleaned away"));
    assert!(project.fails(2, &["replay", "01XXXXXXXXXXXXXXXXXXXXXXXX"]).contains("has no record"));
}

#[test]
fn replay_of_a_job_reads_its_newest_rejected_rows() {
    let project = project();
    write_day(&project, 1, "much");
    let first = run(&project, &[]);
    let idle = run(&project, &[]);
    let said = project.fails(1, &["replay", text(&idle["run"])]);
    assert!(
        said.contains(&format!("`tidetable replay {}` reads those of an earlier run", text(&first["run"]))),
        "{said}"
    );

    write_day(&project, 1, "7");
    let said = project.messages(&["replay", "j"]);
    assert!(said.contains("1 row rejected then, 0 now"), "{said}");

    // A corrected row is rejected no more, whatever its file is called now.
    write_day(&project, 1, "much");
    run(&project, &[]);
    fs::rename(project.path("in/2020-01-01.csv"), project.path("in/2020-01-01-corrected.csv")).unwrap();
    run(&project, &[]);
    let corrected = project.read("in/2020-01-01-corrected.csv").replace("much", "7");
    project.write("in/2020-01-01-corrected.csv", corrected);
    run(&project, &[]);
    assert_eq!(project.json(&["rejects", "j"]), Vec::<Value>::new());

    // What is gone is not read.
    write_day(&project, 2, "little");
    run(&project, &[]);
    fs::remove_file(project.path("in/2020-01-02.csv")).unwrap();
    let said = project.fails(1, &["replay", "j"]);
    assert!(said.contains("not read again: in/2020-01-02.csv: no input has that name now"), "{said}");
}

#[test]
fn replay_allows_previously_rejected_rows() {
    let project = project();
    // 1 of 9 rows is less than 20%, 1 of the 3 of its file is more.
    project.write("jobs/j/job.toml", JOB.replace("50%", "20%"));
    write_day(&project, 1, "much");
    let record = run(&project, &[]);
    project.ok(&["replay", text(&record["run"])]);
    // More rejected rows are an error.
    project.write("in/2020-01-01.csv", "meter,ts,kwh\n0,2020-01-01T10:00:00Z,x\n1,2020-01-01T10:00:00Z,y\n");
    assert!(project.fails(1, &["replay", text(&record["run"])]).contains("max_rejected = 20%"));
}

/// Four runs, the first with rejected rows, and unreferenced files.
fn untidy() -> (Project, Vec<String>) {
    let project = project();
    write_day(&project, 1, "much");
    let runs: Vec<String> = (0..4).map(|_| text(&run(&project, &[])["run"]).to_owned()).collect();
    project.write("data/rejected/01AAAAAAAAAAAAAAAAAAAAAAAA.jsonl", "");
    project.write("data/locks/gone.lock", "");
    project.write("data/runs/.tmp-1-1", "{");
    project.write("data/exports/notes.txt", "mine");
    project.write("data/exports/E_mine/part-0.parquet", "mine");
    fs::create_dir_all(project.path("data/exports/E_20191231")).unwrap();
    let part = fs::read(project.path("data/exports/E_20200101/part-0.parquet")).unwrap();
    project.write("data/exports/E_20191231/part-0.parquet", &part);
    project.write("data/exports/E_20191230/part-0.parquet", &part);
    project.write("data/exports/E_20191230/beside.txt", "mine");
    for path in ["runs/.tmp-1-1", "exports/E_20191231/part-0.parquet", "exports/E_20191230/part-0.parquet"] {
        age(&project, &format!("data/{path}"));
    }
    (project, runs)
}

const CLEAN: [&str; 5] = ["clean", "--older-than", "0s", "--keep", "2"];

fn cleaned(project: &Project, more: &[&str]) -> Vec<String> {
    let found = project.json(&[&CLEAN[..], more].concat());
    found.iter().map(|file| text(&file["file"]).to_owned()).collect()
}

#[test]
fn clean_lists_and_then_removes_unreferenced_files() {
    let (project, runs) = untidy();
    let young = project.ok(&["clean"]);
    // What a killed run had not finished holds nothing, and need not be kept as long as records.
    assert_eq!(young, "1 file of 1 B may go; --yes removes them\n  1 half-written file of 1 B\n");
    let expected = [
        format!("runs/{}.json", runs[0]),
        format!("runs/{}.json", runs[1]),
        "rejected/01AAAAAAAAAAAAAAAAAAAAAAAA.jsonl".to_owned(),
        format!("rejected/{}.jsonl", runs[0]),
        "locks/gone.lock".to_owned(),
        "runs/.tmp-1-1".to_owned(),
        "exports/E_20191230/part-0.parquet".to_owned(),
        "exports/E_20191231/part-0.parquet".to_owned(),
    ];
    let all = || (project.files("data"), fs::read_dir(project.path("data/runs")).unwrap().count());
    let before = all();
    assert_eq!(cleaned(&project, &[]), expected);
    assert_eq!(all(), before, "a dry run removes nothing");
    assert_eq!(cleaned(&project, &["--yes"]), expected);
    assert_eq!(cleaned(&project, &[]), [""; 0]);
    assert!(expected.iter().all(|path| !project.path(&format!("data/{path}")).exists()));
    assert!(!project.path("data/exports/E_20191231").exists());
    for stays in ["exports/notes.txt", "exports/E_mine/part-0.parquet", "exports/E_20191230/beside.txt", "locks/j.lock"]
    {
        assert!(project.path(&format!("data/{stays}")).exists(), "{stays}");
    }
    let named: Vec<String> =
        before.0.into_keys().filter(|path| path.contains("tables/") || path.contains("E_2020")).collect();
    assert!(named.len() > 5 && named.iter().all(|path| project.path(path).exists()));
    let history = project.json(&["history"]);
    assert_eq!(history.len(), 2);
    assert_eq!(project.run_job("j")["loads"][0]["version"], 1);
}

#[test]
fn killed_clean_leaves_a_readable_store() {
    let (project, _) = untidy();
    for path in cleaned(&project, &[]) {
        // As if it had been killed after each file.
        fs::remove_file(project.path(&format!("data/{path}"))).unwrap();
        project.ok(&["history"]);
        project.ok(&["rejects", "j"]);
        assert_eq!(status(&project, &[])["outcome"], "ok");
        assert_eq!(
            project.sql("select count(*) as n from T join runs.rejects r on true where r.run is null")[0]["n"],
            0
        );
    }
    assert_eq!(cleaned(&project, &[]), [""; 0]);
    assert_eq!(project.run_job("j")["loads"][0]["version"], 1);
}

#[test]
fn clean_keeps_failed_days_and_parts_of_a_missing_list() {
    let project = project();
    project.write(
        "jobs/j/job.toml",
        JOB.replace("meter, ts, kwh from", "meter, ts, 1 / (extract(day from ts) - 2) as kwh from"),
    );
    let failed = run(&project, &[]);
    // Another day comes; the failed one is not tried again.
    write_day(&project, 5, "1");
    (0..2).for_each(|_| drop(run(&project, &["--day", "2020-01-05"])));
    let list = fs::read(project.path("data/exports/E.json")).unwrap();
    fs::remove_file(project.path("data/exports/E.json")).unwrap();
    for day in ["01", "04", "05"] {
        age(&project, &format!("data/exports/E_202001{day}/part-0.parquet"));
    }
    let ran = project.run(&["clean", "--older-than", "0s", "--keep", "1", "--yes"]);
    assert!(ran.stderr.contains("exports/E.json is gone") && ran.stderr.contains("--adopt"), "{}", ran.stderr);
    assert!(project.path("data/exports/E_20200104/part-0.parquet").exists());
    assert!(project.path(&format!("data/runs/{}.json", text(&failed["run"]))).exists());
    fs::write(project.path("data/exports/E.json"), list).unwrap();
    assert_eq!(status(&project, &[])["failed"], json!([{ "of": "E", "days": ["2020-01-02"] }]));
}

#[test]
fn history_includes_runs_without_a_record() {
    let project = project();
    let first = run(&project, &[]);
    fs::rename(project.path("data/runs"), project.path("runs")).unwrap();
    project.write("data/runs", "in the way");
    project.fails(1, &["run", "j"]);
    fs::remove_file(project.path("data/runs")).unwrap();
    fs::rename(project.path("runs"), project.path("data/runs")).unwrap();
    let history = |args: &[&str]| project.json(&[&["history"], args].concat());
    let found = history(&["j"]);
    assert_eq!(
        (found.len(), &found[0]["outcome"], &found[1]["run"]),
        (2, &json!("failed"), &first["run"]),
        "{found:?}"
    );
    assert!(text(&found[0]["error"]).contains("runs is a file"), "{found:?}");
    assert!(found[0]["seconds"].is_number(), "{found:?}");
    let failed = text(&found[0]["run"]).to_owned();
    assert_eq!(history(&["--failed"]), found[..1]);
    assert_eq!((history(&["--limit", "1"]).as_slice(), history(&["--since", "2999-01-01"]).len()), (&found[..1], 0));
    for asked in ["last", &failed, "j"] {
        let shown = history(&["--run", asked]);
        assert_eq!((&shown[0]["run"], &shown[0]["outcome"]), (&json!(failed), &json!("failed")), "{asked}");
    }
    assert_eq!(status(&project, &[])["run"], json!(failed));
    // Nothing was removed.
    project.ok(&["retry", "last"]);
    assert_eq!(history(&["j"]).len(), 2, "the lock says what the last run says");
}
