//! `tidetable new` proposes jobs that load every row.

mod exported;
mod first_look;
mod first_rows;
mod lists;
mod loggers;
mod odd_values;
mod readings;
mod refused;
mod roles;
mod shapes;
mod time_forms;
mod time_parts;
mod types_and_keys;
mod undecided;

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{Project, Ran, json_lines, repository};

/// Proposes a job for a file, checks it, runs it twice, and counts what SQL gives back: `rows` rows, and of each column
/// as many values as the file has. Returns the object that `new` prints.
pub fn loads(project: &Project, job: &str, file: &str, rows: usize) -> Value {
    let said = project.json(&["new", job, "--from", file]).remove(0);
    let text = || project.read(&format!("jobs/{job}/job.toml"));
    let checked = project.run(&["check", job]);
    assert_eq!(checked.code, Some(0), "{file}: {}{}", checked.stderr, text());
    let ran = project.run(&["run", job, "--output", "json"]);
    assert_eq!(ran.code, Some(0), "{file}: {}{}", ran.stderr, text());
    let record = &json_lines(&ran.stdout)[0];
    assert_eq!(record["rows_rejected"], 0, "{file}: {}", text());
    let table = said["table"].as_str().unwrap();
    let counted = project.sql(&format!("SELECT count(*) AS n FROM {table}"));
    assert_eq!(counted[0]["n"], rows, "{file}: {}", text());
    if file.ends_with(".csv") {
        same_counts(project, file, &said);
    }
    let published = record["exports"].as_array().unwrap();
    assert!(published.iter().any(|part| part["state"] == "published"), "{file}: {published:?}");
    let again = project.run_job(job);
    assert!(again["exports"].as_array().unwrap().iter().all(|part| part["state"] != "published"), "{file}");
    said
}

/// Of each column of a CSV file without quotes: as many values in the table.
/// Columns that a note lists as not stored, parts of the time, are left out.
fn same_counts(project: &Project, file: &str, said: &Value) {
    let table = said["table"].as_str().unwrap();
    let text = project.read(file);
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    // Other files are checked by their own tests.
    if text.contains('"') || text.starts_with('\u{feff}') || header.iter().any(|name| name.is_empty()) {
        return;
    }
    let records: Vec<Vec<&str>> = lines.filter(|line| !line.is_empty()).map(|line| line.split(',').collect()).collect();
    let job = project.read(&format!("jobs/{}/job.toml", said["job"].as_str().unwrap()));
    let nulls = if job.contains("\"NA\"") { ["", "NA"] } else { ["", ""] };
    let notes = said["notes"].to_string();
    let spoken = |name: &str| !notes.contains(" not stored") || !notes.contains(name);
    let counts: Vec<_> = header
        .iter()
        .enumerate()
        .filter(|(_, name)| spoken(name))
        .map(|(at, name)| format!("count(\"{name}\") AS c{at}"))
        .collect();
    let found = project.sql(&format!("SELECT {} FROM {table}", counts.join(", ")));
    for (at, name) in header.iter().enumerate().filter(|(_, name)| spoken(name)) {
        let there = records.iter().filter(|record| !nulls.contains(&record[at])).count();
        assert_eq!(found[0][format!("c{at}")], there, "{file}: {name}");
    }
}

#[test]
fn a_folder_becomes_a_project() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.csv"), "ts,host,v\n2021-04-01T00:00:00Z,a,1\n2021-04-01T00:01:00Z,b,2\n").unwrap();
    let project = Project::empty();
    let run = |args: &[&str]| Ran::of(project.command(args).current_dir(folder.path()));
    let said = run(&["tables"]).stderr;
    assert!(said.contains("no tidetable.toml") && said.contains("`tidetable new`"), "{said}");

    assert_eq!(run(&["new", "a", "--from", "a.csv", "--stdout"]).code, Some(0));
    assert!(!folder.path().join("tidetable.toml").exists(), "nothing is written for --stdout");
    let said = run(&["new", "a", "--from", "a.csv"]);
    assert!(said.code == Some(0) && said.stdout.contains("wrote tidetable.toml"), "{}{}", said.stdout, said.stderr);
    assert_eq!(run(&["run", "a"]).code, Some(0));
    assert_eq!(run(&["sql", "-c", "select sum(v) as n from A", "--output", "csv"]).stdout, "n\n3\n");

    // A second job changes nothing of the project.
    fs::write(folder.path().join("tidetable.toml"), "root = \"other\"\n").unwrap();
    let said = run(&["new", "b", "--from", "a.csv"]).stdout;
    assert!(!said.contains("tidetable.toml"), "{said}");
    assert_eq!(fs::read_to_string(folder.path().join("tidetable.toml")).unwrap(), "root = \"other\"\n");
}

#[test]
fn proposes_a_job_for_weather_of_three_airports() {
    let project = Project::empty();
    let mut text = "origin,year,month,day,hour,temp,wind_gust,precip,time_hour\n".to_owned();
    for hour in 0..48 {
        for (at, origin) in ["EWR", "JFK", "LGA"].iter().enumerate() {
            let (day, clock) = (1 + hour / 24, hour % 24);
            let gust = if hour % 3 == 0 { "23.0156" } else { "NA" };
            let temp = 30 + at + hour / 4;
            text += &format!(
                "{origin},2013,1,{day},{clock},{temp}.{:02},{gust},0,2013-01-{day:02}T{clock:02}:00:00Z\n",
                hour % 7 * 10
            );
        }
    }
    project.write("weather.csv", text);
    let said = loads(&project, "weather", "weather.csv", 144);
    assert_eq!(said["row_key"], "{origin}#{time_hour:ms}");
    assert_eq!(
        project.read("jobs/weather/job.toml"),
        r##"name = "weather"
description = "Proposed by `tidetable new` for weather.csv"
# schedule = "15 1 * * *" # minute, hour, day of month, month, day of week; `tidetable schedule` prints the rest
timezone = "UTC" # what a day is

# The file has 144 rows, 2013-01-01 to 2013-01-02.
[sources.readings]
files = ["weather.csv"] # a pattern such as "DIR/*.csv" matches later files too
csv = { null = ["", "NA"] }
time = "time_hour" # the only column with times
max_rejected = "0.1%"
rejected_floor = 10 # so many bad rows fail no load, even if few rows are new

[sources.readings.columns]
origin = "text"
year = "int64"
month = "int64"
day = "int64"
hour = "int64"
temp = "decimal(10,2)"
wind_gust = "decimal(10,4)"
precip = "int64"
time_hour = "timestamp"

# origin first (3 in the file), then the time: readings of one are adjacent, and writes spread without a salt.
# One row per entity and time: tall and narrow, so that no row grows without end.
# {..:ms-reversed} instead of {..:ms} would put the newest first, if that is queried most.
[tables.WEATHER]
from = "readings"
row_key = "{origin}#{time_hour:ms}"

[tables.WEATHER.families.DATA]
gc = "never" # readings of one minute or second all stay; a corrected reading replaces the old one
columns = [
  { each = "*", except = ["origin", "time_hour"], qualifier = "{column}", value = "{value}" }, # a cell per column, stored with its name: short names save space
]

# Queries over all entities of a day read its summary, an export that is made in one pass.
[exports.WEATHER_DAY]
per = "day"
name = "WEATHER_DAY_{day:%Y%m%d}"
day_column = true # a column of the day where the query has none
query = { file = "weather_day.sql" }
"##
    );
    assert_eq!(
        project.read("jobs/weather/weather_day.sql"),
        r##"-- One row per origin: the number of readings of the day, and the range and mean of its values.
SELECT
  origin,
  COUNT(*) AS readings,
  MIN(temp) AS min_temp,
  AVG(temp) AS avg_temp,
  MAX(temp) AS max_temp,
  MIN(wind_gust) AS min_wind_gust,
  AVG(wind_gust) AS avg_wind_gust,
  MAX(wind_gust) AS max_wind_gust,
  MIN(precip) AS min_precip,
  AVG(precip) AS avg_precip,
  MAX(precip) AS max_precip
FROM WEATHER
GROUP BY origin
ORDER BY origin
"##
    );
    let day = project.sql("SELECT * FROM exports.WEATHER_DAY_20130102 WHERE origin = 'JFK'");
    assert_eq!((day[0]["readings"].as_u64(), day[0]["min_temp"].as_f64()), (Some(24), Some(37.3)));
}

/// Rows of a file of sample data.
fn rows_of(path: &Path) -> usize {
    if path.extension().is_some_and(|ending| ending == "parquet") {
        let file = fs::File::open(path).unwrap();
        let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        return reader.metadata().file_metadata().num_rows() as usize;
    }
    fs::read_to_string(path).unwrap().lines().count() - 1
}

#[test]
fn loads_every_sample_file() {
    let project = Project::empty();
    let mut jobs = 0;
    for folder in fs::read_dir(repository().join("sample-data")).unwrap() {
        let folder = folder.unwrap().path();
        let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        // The first and the last of similar files.
        let data = |path: &&std::path::PathBuf| {
            ["csv", "parquet"].iter().any(|ending| path.extension().is_some_and(|found| found == *ending))
        };
        let all: Vec<_> = files.iter().filter(data).collect();
        let of_days = all.iter().all(|path| path.file_name().unwrap().to_str().unwrap().starts_with(['1', '2']));
        // Dumps of Bigtable lie in folders of their own.
        let Some(last) = all.len().checked_sub(1) else { continue };
        let chosen = all.iter().enumerate().filter(|(at, _)| !of_days || [0, last].contains(at)).map(|(_, path)| path);
        for path in chosen {
            jobs += 1;
            let name = path.file_name().unwrap().to_str().unwrap();
            let inside = format!("in/{jobs}-{name}");
            project.write(&inside, fs::read(path).unwrap());
            loads(&project, &format!("job-{jobs}"), &inside, rows_of(path));
        }
    }
    assert!(jobs > 20, "{jobs}");
}

#[test]
fn proposes_a_row_per_day_for_one_measurement() {
    let project = Project::empty();
    let mut text = "meter,ts,kwh\n".to_owned();
    for quarter in 0..200 {
        for meter in [7, 42] {
            let moment = 1_500_000_300 + quarter * 900;
            text += &format!("{meter},{moment},{}.{:02}\n", quarter % 9, quarter % 100);
        }
    }
    project.write("meters.csv", text);
    let said = loads(&project, "meters", "meters.csv", 400);
    assert_eq!(said["row_key"], "{meter:010}#{ts:%Y%m%d}");
    let cell = project.sql("SELECT row_key, qualifier, value FROM cells.METERS LIMIT 1");
    assert_eq!(
        (&cell[0]["row_key"], &cell[0]["qualifier"]),
        (&Value::from("0000000007#20170714"), &Value::from("0245"))
    );
}

#[test]
fn loads_unusual_files() {
    let project = Project::empty();
    let cases: &[(&str, usize, String)] = &[
        // Semicolons, decimal commas, a comment, a byte order mark, and day before month.
        (
            "german.csv",
            3,
            "\u{feff}# Messwerte\nzeit;ort;wert\n31.12.2020 23:00;Köln;1,50\n31.12.2020 23:30;Köln;-\n01.01.2021 00:00;Bonn;2,25\n".into(),
        ),
        // Names that mean something in SQL, TOML and templates; quotes and line ends in values.
        (
            "names.csv",
            3,
            "\"select\",\"a \"\"b\"\"\",\"time:stamp\",\"{c}\",\"d#e\",Größe\nx,1,2020-01-01T00:00:00Z,a#b,\"p\nq\",1\n\
             y,2,2020-01-01T00:00:00Z,c#d,\"r,s\",2\nx,3,2020-01-02T00:00:00Z,e#f,\"\"\"\",3\n".into(),
        ),
        // A value that contains the key delimiter.
        ("hash.csv", 3, "page,ts,visits\nguide#a,2020-01-01T01:00:00Z,1\nguide#b,2020-01-01T02:00:00Z,2\nguide#a,2020-01-01T03:00:00Z,3\n".into()),
        // Date and clock apart; year, month and day apart.
        ("apart.csv", 3, "date,time,site,v\n2020-02-28,23:59,a,1.5\n2020-02-29,00:00,a,2.25\n2020-02-29,00:00,b,3\n".into()),
        ("parts.csv", 3, "year,month,day,hour,site,v\n2020,2,28,23,a,1.5\n2020,2,29,0,a,2.25\n2020,2,29,0,b,3\n".into()),
        ("days.csv", 4, "day,site,v\n2020-02-28,a,1\n2020-02-29,a,2\n2020-02-28,b,3\n2020-02-29,b,4\n".into()),
        // No entity; nothing but nulls in a row; finer than milliseconds; a column without a name and an empty one.
        ("single.csv", 3, ",ts,v,w,empty\n0,2020-01-01 00:00:00.000001,,,\n1,2020-01-01 00:00:00.000002,1,,\n2,2020-01-01 00:00:00.000003,,2,\n".into()),
        // Readings of one instant that differ only in a number.
        ("ties.csv", 4, "host,ts,seq,v\na,2020-01-01T00:00:00Z,1,5\na,2020-01-01T00:00:00Z,2,5\na,2020-01-01T00:00:01Z,3,5\na,2020-01-01T00:00:01Z,4,6\n".into()),
        // Leading zeros, numbers beyond 64 bits, exponents, booleans, text that looks like null.
        ("numbers.csv", 3, "ts,code,big,small,ok,land,rest\n2020-01-01T00:00:00Z,007,123456789012345678901234567890,1e-7,true,NA,18446744073709551615\n\
          2020-01-01T00:01:00Z,010,1,2.5e10,False,DE,1\n2020-01-01T00:02:00Z,011,2,-3,TRUE,FR,2\n".into()),
        // Carriage returns, blank lines, and no line end at the end.
        ("lines.csv", 2, "ts,host,v\r\n2020-01-01T00:00:00Z,a,1\r\n\r\n2020-01-01T00:01:00Z,a,2".into()),
        ("tabs.tsv", 2, "ts\thost\tv\n2020-01-01T00:00:00Z\ta, b\t1\n2020-01-01T00:01:00Z\ta, b\t2\n".into()),
        ("odd [1]{x}*.csv", 2, "ts,host,v\n2020-01-01T00:00:00Z,a,1\n2020-01-01T00:01:00Z,a,2\n".into()),
    ];
    for (at, (name, rows, text)) in cases.iter().enumerate() {
        project.write(name, text);
        let said = loads(&project, &format!("nasty-{at}"), name, *rows);
        assert!(said["row_key"].as_str().unwrap().contains("#") || *name == "single.csv", "{name}: {said}");
    }
    let german = project.sql("SELECT zeit, wert FROM NASTY_0 ORDER BY zeit");
    assert_eq!(german[0]["zeit"], "2020-12-31T23:00:00Z");
    assert_eq!((german[0]["wert"].as_f64(), &german[1]["wert"]), (Some(1.5), &Value::Null));
    for table in ["NASTY_3", "NASTY_4"] {
        let apart = project.sql(&format!("SELECT * FROM {table} ORDER BY v"));
        let time = apart[1].get("ts").or(apart[1].get("event_time")).unwrap();
        assert_eq!(time, "2020-02-29T00:00:00Z", "{apart:?}");
    }
}

#[test]
fn local_times_load_with_a_time_zone() {
    let project = Project::empty();
    project.write("a.csv", "ts,host,v\n2020-07-01 00:30,a,1\n2020-07-01 00:45,a,2\n");
    project.ok(&["new", "a", "--from", "a.csv", "--timezone", "Europe/Paris"]);
    project.ok(&["run", "a"]);
    assert_eq!(project.sql("SELECT min(ts) AS t FROM A")[0]["t"], "2020-06-30T22:30:00Z");
    assert!(project.path("data/exports/A_DAY_20200701").is_dir());
    project.write("b.csv", "year,month,day,hour,host,v\n2020,7,1,0,a,1\n2020,7,1,1,a,2\n");
    project.ok(&["new", "b", "--from", "b.csv", "--timezone", "Europe/Paris"]);
    project.ok(&["run", "b"]);
    assert_eq!(project.sql("SELECT min(ts) AS t FROM B")[0]["t"], "2020-06-30T22:00:00Z");
    project.fails(2, &["new", "c", "--from", "a.csv", "--timezone", "Paris"]);
}

#[test]
fn existing_job_is_not_overwritten() {
    let project = Project::empty();
    project.write("in/a.csv", "ts,host,v\n2020-01-01T00:00:00Z,a,1\n2020-01-01T00:01:00Z,a,2\n");
    let shown = project.ok(&["new", "a", "--from", "in/a.csv", "--stdout"]);
    assert!(shown.contains("[tables.A]") && shown.contains("SELECT"), "{shown}");
    assert!(!project.path("jobs").exists());
    let said = project.ok(&["new", "a", "--from", "in/a.csv"]);
    assert!(said.starts_with("wrote jobs/a/a_day.sql\nwrote jobs/a/job.toml\n"), "{said}");
    project.write("jobs/a/job.toml", "# mine\n");
    let refused = project.fails(2, &["new", "a", "--from", "in/a.csv"]);
    assert!(refused.contains("jobs/a/a_day.sql is there already") && refused.contains("--force"), "{refused}");
    assert_eq!(project.read("jobs/a/job.toml"), "# mine\n");
    project.ok(&["new", "a", "--from", "in/a.csv", "--force"]);
    assert!(project.read("jobs/a/job.toml").contains("in/a.csv"));
    // Another job gets another table.
    let other = project.json(&["new", "A", "--from", "in/a.csv"]).remove(0);
    assert_eq!(other["table"], "A_2");
    project.fails(2, &["new", "../b", "--from", "in/a.csv"]);
    project.write("jobs/single.toml", "");
    project.fails(2, &["new", "single", "--from", "in/a.csv", "--force"]);
}

#[test]
fn unusable_files_are_errors() {
    let project = Project::empty();
    let refused = |name: &str, bytes: &[u8]| {
        project.write(name, bytes);
        let error = project.fails(2, &["new", "job", "--from", name]);
        assert!(!project.path("jobs").exists(), "{name}");
        error
    };
    assert!(refused("a.csv", b"").contains("there are no rows"));
    assert!(refused("a.csv", b"ts,v\n").contains("there are no rows"));
    assert!(refused("a.csv", b"ts,v\n2020-01-01,1\n").contains("one row only"));
    let keyless = refused("a.csv", b"v,w\n1.5,2.5\n1.5,2.5\n");
    assert!(
        keyless.contains("a.csv: no column holds times, and of the columns `v`, `w` none tells the rows apart"),
        "{keyless}"
    );
    let log =
        b"May 13 00:00:00 h1 app[21]: took 96 ms, ok\nMay 13 00:00:02 h1 cron: run, ok\nMay 13 00:00:04 h1 x: y, ok\n";
    assert!(refused("a.txt", log).contains("as in a log"));
    assert!(
        refused("a.txt", b"air,city=Gent temp=1.5 1704067200\nair,city=Gent temp=2.5 1704067201\n")
            .contains("line protocol")
    );
    assert!(refused("a.csv.zip", b"no archive").contains("the ending says zip"));
    assert!(refused("a.csv", b"ts,v\n2020-01-01,Jos\xE9\n2020-01-02,x\n").contains("iconv"));
    assert!(
        refused("a.csv", b"ts,v\n2020-01-01,1\n2020-01-02,2,3\n2020-01-03,4\n")
            .contains("line 3: expected 2 columns, found 3")
    );
    assert!(refused("a.log", b"{}").contains("the ending does not say"));
    assert!(refused("a.parquet", b"no parquet").contains("a.parquet: this is text"));
    assert!(refused("a.parquet", b"PAR1\0\x01\x02").contains("the end of the Parquet file is missing"));
    assert!(refused("a.parquet", b"PAR1\xff\xff\x02\0\0\0PAR1").contains("whole Parquet"));
    assert!(project.fails(2, &["new", "job", "--from", "none.csv"]).contains("there is no such file"));
    project.fails(2, &["new", "job"]);
}
