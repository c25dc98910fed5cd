pub(crate) mod messages;
pub(crate) mod mistakes;

use std::fs;
use std::path::Path;

use chrono::NaiveDate;
use chrono_tz::Tz;
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};
use tempfile::TempDir;
use tidetable_layout::spec::{Granularity, TimestampSpec};
use tidetable_layout::{FieldType, Window};
use tidetable_source::{Format, MaxRejected, Preset};

use super::*;
use crate::project::Project;

const SMART_METERS: &str = r##"name     = "smart-meters"
schedule = "15 1 * * *"
timezone = "UTC"

[sources.readings]
files = ["sample-data/smart-meters/*.csv", "sample-data/smart-meters/*.parquet"]
time  = "ts"
max_rejected = "0.1%"

[sources.readings.columns]
meter = "uint64"
ts    = { format = "%Y-%m-%dT%H:%M:%SZ" }
kwh   = "float64"

[tables.SENSOR]
row_key = "{meter:010}#{ts:%Y%m%d}"

[tables.SENSOR.families.METER]
gc = "maxversions=1"
columns = [
  { qualifier = "ID",        value = "{meter}" },      # depends on the key only: timestamp 0
  { qualifier = "{ts:%H%M}", value = "{kwh}" },
]

[exports.SENSOR_DAY]
per   = "day"
name  = "SENSOR_{day:%Y%m%d}"
query = { file = "sensor_day.sql" }                    # beside the job file: select * from SENSOR
"##;

/// A project with the job `smart-meters`.
fn project(job: &str) -> (TempDir, Project) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("tidetable.toml"), "root = \"data\"\n").unwrap();
    let folder = dir.path().join("jobs/smart-meters");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("job.toml"), job).unwrap();
    fs::write(folder.join("sensor_day.sql"), "select * from SENSOR\n").unwrap();
    let project = Project::find(dir.path()).unwrap();
    (dir, project)
}

fn load(job: &str) -> Result<Job, JobError> {
    let (_dir, project) = project(job);
    Job::load(&project, "smart-meters")
}

/// The good file with `from` replaced by `to`.
fn edited(from: &str, to: &str) -> String {
    assert!(SMART_METERS.contains(from), "{from}");
    SMART_METERS.replacen(from, to, 1)
}

/// Every problem of `job` as `line:column message | advice`.
fn problems(job: &str) -> Vec<String> {
    let Err(JobError::File(error)) = load(job) else { panic!("no mistakes in:\n{job}") };
    let shown = |problem: &Problem| {
        let (line, column) = problem.line_column(error.text());
        let advice = problem.advice().map(|advice| format!(" | {advice}")).unwrap_or_default();
        format!("{line}:{column} {problem}{advice}")
    };
    error.problems().iter().map(shown).collect()
}

fn rendered(error: &dyn Diagnostic) -> String {
    let mut out = String::new();
    GraphicalReportHandler::new_themed(GraphicalTheme::none()).with_width(100).render_report(&mut out, error).unwrap();
    out.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[test]
fn the_good_file() {
    let (dir, project) = project(SMART_METERS);
    let job = Job::load(&project, "smart-meters").unwrap();
    assert_eq!(job.name, "smart-meters");
    assert_eq!(job.schedule.as_deref(), Some("15 1 * * *"));
    assert_eq!(job.timezone, Tz::UTC);
    assert_eq!(job.shown_path, Path::new("jobs/smart-meters/job.toml"));

    let source = &job.source("readings").unwrap().spec;
    assert_eq!(source.files.len(), 2);
    assert_eq!(source.time, "ts");
    assert_eq!(source.max_rejected, MaxRejected::Percent(0.1));
    let columns: Vec<_> = source.columns.iter().map(|column| (column.name.as_str(), column.kind)).collect();
    let kinds = [("meter", FieldType::UInt64), ("ts", FieldType::Timestamp), ("kwh", FieldType::Float64)];
    assert_eq!(columns, kinds);
    assert_eq!(source.columns[1].format.as_deref(), Some("%Y-%m-%dT%H:%M:%SZ"));

    let table = job.table("SENSOR").unwrap();
    assert_eq!(table.from, TableInput::Source("readings".to_owned()));
    assert_eq!(table.gc, [("METER".to_owned(), "maxversions=1".to_owned())]);
    assert_eq!(table.spec.window, Window::Day);
    assert_eq!(table.spec.families[0].columns[1].qualifier, "{ts:%H%M}");

    let export = job.export("SENSOR_DAY").unwrap();
    let day = NaiveDate::from_ymd_opt(2017, 7, 26).unwrap();
    assert_eq!(export.name_template.render(day), "SENSOR_20170726");
    assert_eq!(export.sql, "select * from SENSOR\n");
    assert_eq!(export.sql_path, Some(dir.path().join("jobs/smart-meters/sensor_day.sql")));
    assert_eq!(&job.text[export.sql_at.clone()], "\"sensor_day.sql\"");
}

#[test]
fn every_built_key() {
    let job = r##"
name = "smart-meters"
description = "all of it"
timezone = "Europe/Paris"
[sources.a]
files = ["a/{day:%Y-%m-%d}.csv"]
format = "csv"
csv = { delimiter = ";", quote = "", escape = "\\", skip = 2, header = false, null = ["", "NA"], comment = "#", decimal = "," }
time = "ts"
max_rejected = 10
rejected_floor = 5
schema = "freeze"
columns = { ts = { format = "%d/%m/%Y %H:%M", timezone = "Europe/Paris" }, host = "text", price = "decimal(10,2)", day = { type = "date", format = "%d/%m/%Y" } }
[sources.b]
files = ["b.parquet"]
time = "ts"
max_rejected = "7"
columns = { ts = "timestamp", host = "text" }
[sources.c]
files = ["c/*.jsonl"]
format = "json"
each = ["values", "timestamps"]
preset = "victoriametrics"
nan = "reject"
time = "timestamps"
schema = "evolve"
columns = { timestamps = { format = "ms" }, values = "float64", "metric.job" = "text" }
[sources.d]
files = ["d/*.json"]
preset = "otel"
time = "timeUnixNano"
columns = { timeUnixNano = { format = "ns" }, value = "float64" }
[sources.e]
files = ["e/*.avro", "e/*.arrow"]
each = ["rooms.samples"]
time = "rooms.samples.ts"
columns = { "rooms.samples.ts" = "timestamp", "rooms.samples.v" = "float64" }
[tables.T]
from = "a"
row_key = "{host}#{ts:ms}"
window = "none"
granularity = "micros"
families.F.gc = "maxage=30d and maxversions=2"
families.F.columns = [
  { each = "*", except = ["host", "ts"], qualifier = "{column}", value = "{value}" },
]
families.G.columns = [
  { qualifier = "p", value = "{price}", encoding = "text", timestamp = "ts" },
  { qualifier = "{price}", timestamp = 0 },
]
[exports.E]
per = "day"
name = "E_{day}"
format = "parquet"
mode = "replace"
query = { sql = "select 1" }
"##;
    let job = load(job).map_err(|error| rendered(&error)).unwrap();
    let csv = &job.sources[0].spec.csv;
    assert_eq!((csv.delimiter, csv.quote, csv.comment), (b';', None, Some(b'#')));
    assert_eq!((csv.escape, csv.skip), (Some(b'\\'), 2));
    assert!(csv.decimal_comma && !csv.header);
    assert_eq!(csv.null, ["", "NA"]);
    assert_eq!(job.sources[0].spec.columns[0].timezone, Some(Tz::Europe__Paris));
    assert_eq!(job.sources[0].spec.max_rejected, MaxRejected::Count(10));
    assert_eq!(job.sources[1].spec.max_rejected, MaxRejected::Count(7));
    assert_eq!((job.sources[0].spec.rejected_floor, job.sources[1].spec.rejected_floor), (5, 0));
    let [lists, otel, blocks] = [2, 3, 4].map(|at| &job.sources[at].spec);
    assert_eq!((lists.format, lists.preset), (Some(Format::Json), Some(Preset::VictoriaMetrics)));
    assert_eq!((&lists.each[..], lists.rejects_nan), (&["values".to_owned(), "timestamps".to_owned()][..], true));
    assert_eq!((otel.format, otel.preset, otel.each.len()), (None, Some(Preset::Otel), 0));
    assert_eq!((blocks.preset, &blocks.each[..]), (None, &["rooms.samples".to_owned()][..]));
    let spec = &job.tables[0].spec;
    assert_eq!((spec.window, spec.granularity), (Window::None, Granularity::Micros));
    assert!(spec.families[0].columns[0].each);
    assert_eq!(spec.families[0].columns[0].except, ["host", "ts"]);
    assert_eq!(spec.families[1].columns[0].timestamp, TimestampSpec::Field("ts".to_owned()));
    assert_eq!(spec.families[1].columns[1].timestamp, TimestampSpec::Zero);
    assert_eq!(spec.families[1].columns[1].value, "");
    assert_eq!(job.exports[0].sql, "select 1");
}

#[test]
fn an_unknown_column_is_shown_at_its_field() {
    let error = load(&edited("{meter:010}", "{metre:010}")).unwrap_err();
    assert_eq!(
        rendered(&error),
        r#"  x jobs/smart-meters/job.toml has 1 mistake

Error:
  x no column `metre` in the source; did you mean `meter`?
    ,-[jobs/smart-meters/job.toml:16:13]
 15 | [tables.SENSOR]
 16 | row_key = "{metre:010}#{ts:%Y%m%d}"
    :             ^^|^^
    :               `-- here
 17 |
    `----
"#
    );
}

#[test]
fn all_mistakes_at_once() {
    let job = edited("schedule", "schedul")
        .replace("meter = \"uint64\"", "meter = \"unit64\"")
        .replace("maxversions=1", "maxversions=0")
        .replace("sensor_day.sql", "missing.sql");
    assert_eq!(
        rendered(&load(&job).unwrap_err()),
        r#"  x jobs/smart-meters/job.toml has 4 mistakes

Error:
  x unknown key `schedul` in a job
   ,-[jobs/smart-meters/job.toml:2:1]
 1 | name     = "smart-meters"
 2 | schedul = "15 1 * * *"
   : ^^^|^^^
   :    `-- not a key
 3 | timezone = "UTC"
   `----
  help: did you mean `schedule`?

Error:
  x `unit64` is not a type
    ,-[jobs/smart-meters/job.toml:11:9]
 10 | [sources.readings.columns]
 11 | meter = "unit64"
    :         ^^^^|^^^
    :             `-- here
 12 | ts    = { format = "%Y-%m-%dT%H:%M:%SZ" }
    `----
  help: did you mean `uint64`?

Error:
  x `gc` wants a number of versions of 1 or more here
    ,-[jobs/smart-meters/job.toml:19:7]
 18 | [tables.SENSOR.families.METER]
 19 | gc = "maxversions=0"
    :       ^^^^^^|^^^^^^
    :             `-- here
 20 | columns = [
    `----
  help: for example `maxversions=1`, or `maxage=30d and maxversions=2`

Error:
  x there is no file `missing.sql`
    ,-[jobs/smart-meters/job.toml:28:18]
 27 | name  = "SENSOR_{day:%Y%m%d}"
 28 | query = { file = "missing.sql" }                    # beside the job file: select * from SENSOR
    :                  ^^^^^^|^^^^^^
    :                        `-- this file
    `----
  help: write the query into `missing.sql` beside the job file
"#
    );
}

#[test]
fn an_empty_file_is_shown_too() {
    assert_eq!(
        rendered(&load("").unwrap_err()),
        r#"  x jobs/smart-meters/job.toml has 2 mistakes

Error:
  x the job has no `name`
   ,-[jobs/smart-meters/job.toml:1:1]
   `----
  help: add `name`, for example `name = "smart-meters"`

Error:
  x the job has neither tables nor exports
   ,-[jobs/smart-meters/job.toml:1:1]
   `----
  help: add a `[tables.NAME]` with a source, or an `[exports.NAME]`
"#
    );
}

#[test]
fn jobs_are_found_by_name_and_by_path() {
    let (dir, project) = project(SMART_METERS);
    let lone =
        SMART_METERS.replace("smart-meters\"\n", "lone\"\n").replace("sensor_day.sql", "smart-meters/sensor_day.sql");
    fs::write(dir.path().join("jobs/lone.toml"), lone).unwrap();
    assert_eq!(project.jobs(), ["lone", "smart-meters"]);
    for asked in ["lone", "jobs/lone.toml"] {
        assert_eq!(Job::load(&project, asked).unwrap().name, "lone");
    }
    for asked in ["smart-meters", "jobs/smart-meters", "jobs/smart-meters/job.toml"] {
        assert_eq!(Job::load(&project, asked).unwrap().name, "smart-meters");
    }
    let inside = Project::find(&dir.path().join("jobs/smart-meters")).unwrap();
    for asked in ["job.toml", ".", "../lone.toml", "jobs/lone.toml"] {
        assert!(Job::load(&inside, asked).is_ok(), "{asked}");
    }

    fs::create_dir(dir.path().join("jobs/smart-meters/below")).unwrap();
    let below = Project::find(&dir.path().join("jobs/smart-meters/below")).unwrap();
    assert_eq!(Job::load(&below, "..").unwrap().name, "smart-meters");

    let unknown = Job::load(&project, "smart-metres").unwrap_err();
    assert_eq!(unknown.to_string(), "there is no job `smart-metres` in jobs");
    assert_eq!(unknown.help().unwrap().to_string(), "did you mean `smart-meters`? jobs: lone, smart-meters");
    assert!(matches!(Job::load(&project, "jobs/none.toml"), Err(JobError::NoFile { .. })));
    assert!(matches!(Job::load(&project, ""), Err(JobError::Unknown { .. })));

    fs::write(dir.path().join("jobs/smart-meters.toml"), SMART_METERS).unwrap();
    assert!(matches!(Job::load(&project, "smart-meters"), Err(JobError::Twice { .. })));
}
