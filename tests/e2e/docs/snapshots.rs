//! Snapshots of the output for people. `INSTA_UPDATE=always` writes them again.

use std::fs;

use insta::assert_snapshot;

use crate::harness::Project;

const JOB: &str = r#"name = "meters"
schedule = "15 1 * * *"
catch_up = "all"

[sources.readings]
files = ["in/{day:%Y-%m-%d}.csv"]
time = "ts"
max_rejected = "20%"
columns = { meter = "uint64", ts = "timestamp", kwh = "decimal(6,2)" }

[tables.SENSOR]
row_key = "{meter:04}#{ts:%Y%m%d}"

[tables.SENSOR.families.METER]
gc = "maxversions=1"
columns = [{ qualifier = "ID", value = "{meter}" }, { qualifier = "{ts:%H%M}", value = "{kwh}" }]

[exports.DAY]
per = "day"
name = "DAY_{day:%Y%m%d}"
query = { sql = "select meter, sum(kwh) as kwh from SENSOR group by meter order by meter" }

[checks.not_too_much]
on = "DAY"
severity = "warn"
range = { kwh = { max = 60 } }
"#;

/// What differs from run to run, by the name of its column or row.
const CHANGING: &[&str] = &[
    "began", "ended", "started", "seconds",
    // Sizes of files that contain the name of a run or a file, which is different each time.
    "size",
];

/// Days of three meters, with one invalid row and one missing day.
fn project() -> Project {
    let project = Project::new("meters", JOB);
    for day in [1, 2, 4] {
        let mut rows = String::from("meter,ts,kwh\n");
        for (hour, meter) in [0, 6, 12, 18].into_iter().flat_map(|hour| (1..=3).map(move |meter| (hour, meter))) {
            rows.push_str(&format!("{meter},2020-01-{day:02}T{hour:02}:00:00Z,{}.50\n", meter * 7 + day));
        }
        if day == 4 {
            rows.push_str("7,2020-01-04T23:00:00Z,x\n");
        }
        project.write(&format!("in/2020-01-{day:02}.csv"), rows);
    }
    project
}

/// A project that was run once.
fn run() -> Project {
    let project = project();
    project.ok(&["run", "meters", "--now", "2020-01-05T01:15:00Z"]);
    project
}

/// A command with its output and exit code, without what depends on machine or time.
fn shown(project: &Project, args: &[&str], changing: &[&str]) -> String {
    let ran = project.run(args);
    let words = args.iter().map(|word| if word.contains(' ') { format!("'{word}'") } else { (*word).to_owned() });
    let mut text = format!("$ tidetable {}\n{}", words.collect::<Vec<_>>().join(" "), ran.stdout);
    for line in ran.stderr.lines().map(without_time) {
        text.push_str(format!("stderr: {line}").trim_end());
        text.push('\n');
    }
    text.push_str(&format!("exit code: {}\n", ran.code.unwrap()));
    let binary = fs::canonicalize(project.command(&[]).get_program()).unwrap();
    let folder = project.path("");
    for (path, name) in [
        (binary.to_str().unwrap(), "BIN"),
        (fs::canonicalize(&folder).unwrap().to_str().unwrap().trim_end_matches('/'), "DIR"),
        (folder.to_str().unwrap().trim_end_matches('/'), "DIR"),
        ("tidetable-e2e", "tidetable"),
    ] {
        text = text.replace(path, name);
    }
    let mut lines: Vec<String> = without_ids(&text).lines().map(str::to_owned).collect();
    hide(&mut lines, changing);
    lines.iter_mut().filter(|line| line.starts_with("took ")).for_each(|line| *line = "took ..".to_owned());
    lines.join("\n")
}

/// A line of a log begins with the time.
fn without_time(line: &str) -> String {
    match line.split_once(' ') {
        Some((time, rest)) if time.len() == 24 && time.ends_with('Z') => format!("<time> {rest}"),
        _ => line.to_owned(),
    }
}

/// Ids of runs and files are 26 letters and digits, or 32 hexadecimal ones.
fn without_ids(text: &str) -> String {
    let mut shown = String::new();
    let mut word = String::new();
    for c in text.chars().chain(['\n']) {
        if c.is_ascii_alphanumeric() {
            word.push(c);
            continue;
        }
        let ulid = word.len() == 26 && word.starts_with("01") && word.chars().all(|c| !c.is_ascii_lowercase());
        shown.push_str(if ulid { "<id of 26 letters....... >" } else { &word });
        word.clear();
        shown.push(c);
    }
    shown
}

/// Replaces varying values of tables by `..`, and aligns the tables again.
fn hide(lines: &mut Vec<String>, changing: &[&str]) {
    let mut at = 0;
    while let Some(start) = lines.iter().skip(at).position(|line| line.starts_with('┌')).map(|found| found + at) {
        let length = lines.iter().skip(start).position(|line| line.starts_with('└')).unwrap();
        let table: Vec<String> = lines[start..=start + length].to_vec();
        let split = |line: &String| -> Vec<String> {
            line.trim_matches('│').split('┆').map(|cell| cell.trim_end().to_owned()).collect()
        };
        let mut rows: Vec<Vec<String>> = table.iter().filter(|line| line.starts_with('│')).map(split).collect();
        let header = rows[0].clone();
        let mut hidden = false;
        // Text below a row has no columns.
        let is_row = |row: &Vec<String>| row.len() == header.len();
        for row in rows.iter_mut().skip(1).filter(|row| is_row(row)) {
            let name = row[0].trim().to_owned();
            for (column, cell) in row.iter_mut().enumerate() {
                let by_row = header[0].trim() == "what" && column > 0 && changing.contains(&name.as_str());
                if by_row || changing.contains(&header[column].trim()) {
                    *cell = " ..".to_owned();
                    hidden = true;
                }
            }
        }
        if hidden {
            let widths: Vec<usize> = (0..header.len())
                .map(|at| {
                    rows.iter().filter(|row| is_row(row)).map(|row| row[at].trim().chars().count()).max().unwrap()
                })
                .collect();
            let laid = rows.iter().map(|row| {
                let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{:<width$}", cell.trim()));
                format!("│ {} │", cells.collect::<Vec<_>>().join(" ┆ ")).trim_end().to_owned()
            });
            lines.splice(start..=start + length, laid.collect::<Vec<_>>());
            at = start + rows.len();
        } else {
            at = start + length + 1;
        }
    }
}

#[test]
fn a_plan() {
    assert_snapshot!("plan", shown(&project(), &["plan", "meters"], &[]));
}

#[test]
fn runs() {
    let project = project();
    let run = ["run", "meters", "--now", "2020-01-05T01:15:00Z"];
    assert_snapshot!("run", shown(&project, &run, CHANGING));
    assert_snapshot!("run_again", shown(&project, &run, CHANGING));
    project.write("in/2020-01-04.csv", "meter,ts,kwh\n1,never,1\n");
    let failed = ["run", "meters", "--now", "2020-01-05T02:00:00Z"];
    assert_snapshot!("run_failed", shown(&project, &failed, CHANGING));
    assert_snapshot!("history", shown(&project, &["history"], CHANGING));
    assert_snapshot!("status", shown(&project, &["status", "--now", "2020-01-06T08:00:00Z"], CHANGING));
    assert_snapshot!(
        "status_of_a_job",
        shown(&project, &["status", "meters", "--now", "2020-01-06T08:00:00Z"], CHANGING)
    );
}

#[test]
fn where_things_came_from() {
    let project = run();
    assert_snapshot!("lineage", shown(&project, &["lineage", "SENSOR", "2020-01-02"], &["fingerprint"]));
    assert_snapshot!("rejects", shown(&project, &["rejects", "meters"], &[]));
}

#[test]
fn schedules() {
    let project = run();
    let lines = ["schedule", "--cron-zone", "Etc/UTC", "--now", "2020-01-07T00:00:00Z"];
    assert_snapshot!("schedule", shown(&project, &lines, &[]));
    let check = ["schedule", "--check", "--now", "2020-01-08T01:15:10Z"];
    assert_snapshot!("schedule_check", shown(&project, &check, &[]));
    let dry = ["run", "meters", "--catch-up", "--dry-run", "--now", "2020-01-08T01:15:10Z"];
    assert_snapshot!("catch_up_dry_run", shown(&project, &dry, &[]));
}

#[test]
fn tables_and_their_files() {
    let project = run();
    assert_snapshot!("tables", shown(&project, &["tables"], &["bytes"]));
    assert_snapshot!("describe", shown(&project, &["describe", "SENSOR"], &["bytes"]));
    assert_snapshot!("read", shown(&project, &["read", "SENSOR", "--limit", "1"], &[]));
    let sst = fs::read_dir(project.path("data/tables/SENSOR/sst")).unwrap().map(|file| file.unwrap().path()).min();
    let sst = sst.unwrap().display().to_string();
    let inspected = shown(&project, &["inspect", &sst], &["bytes", "head", "keys", "offset"]);
    // Its first lines name the file, and say how large its parts are.
    let parts: Vec<&str> = inspected.lines().skip(3).collect();
    assert_snapshot!("inspect", parts.join("\n"));
}

#[test]
fn rows_of_queries() {
    let project = run();
    let sql = |query: &str| shown(&project, &["sql", "-c", query], &[]);
    assert_snapshot!("sql_records", sql("select * from SENSOR where meter = 2 and ts < '2020-01-02' order by ts"));
    assert_snapshot!("sql_rows", sql("select _key, METER from rows.SENSOR limit 1"));
    assert_snapshot!(
        "sql_types",
        sql(
            "select 1 as n, 1.5 as f, 'a' as t, null as none, true as yes, timestamp '2020-01-01' as at, b'\\x01' as b"
        )
    );
    assert_snapshot!("sql_mistake", sql("select metre from SENSOR"));
    assert_snapshot!("sql_refused", sql("insert into SENSOR select * from SENSOR"));
}

#[test]
fn checks() {
    let project = project();
    assert_snapshot!("check", shown(&project, &["check", "meters"], &[]));
    let wrong =
        JOB.replace("row_key", "rowkey").replace("uint64", "uint65").replace("catch_up = \"all\"", "catch_up = \"al\"");
    project.write("jobs/meters/job.toml", wrong);
    assert_snapshot!("check_with_mistakes", shown(&project, &["check", "meters"], &[]));
    assert_snapshot!("usage", shown(&project, &["run", "--everything"], &[]));
}

#[test]
fn help() {
    let project = Project::empty();
    assert_snapshot!("help", shown(&project, &["-h"], &[]));
    assert_snapshot!("help_run", shown(&project, &["run", "-h"], &[]));
    assert_snapshot!("help_sql", shown(&project, &["sql", "-h"], &[]));
    assert_snapshot!("help_schedule", shown(&project, &["schedule", "-h"], &[]));
}
