//! DuckDB reads published days in a bucket, also while they are replaced.
//!
//! `TIDETABLE_REPLACEMENTS=200` replaces a day as often.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::harness::bucket::{BUCKET, InBucket, SECRET};
use crate::harness::system::{KilledOnDrop, httpfs_python};
use crate::harness::{Project, Ran, json_lines, repository};

/// Two days of readings, all of one value a day, so that a mixture shows.
fn rows(value: u64, count: u64) -> String {
    let row = |id: u64| {
        let (meter, minute) = (id % 100, id / 100);
        // The second day stays as it is.
        let of = |day: u64, value: u64| {
            format!("{meter},2020-01-0{day}T{:02}:{:02}:00Z,{value}\n", minute / 60, minute % 60)
        };
        of(1, value) + &of(2, 7)
    };
    format!("meter,ts,kwh\n{}", (0..count).map(row).collect::<String>())
}

fn place(file_size: &str) -> InBucket {
    let job = readings_job!("in/*.csv", "", "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\n");
    // Values that no encoding shortens, so that a day may take several files.
    let noise = |factor: u64| {
        format!("(cast(meter as bigint) * {factor} + extract(epoch from ts) * 40503) * 1e6 / {factor} as n{factor}")
    };
    let noise = [7919, 104_729, 1_299_709, 15_485_863].map(noise).join(", ");
    let query = format!("query = {{ sql = \"select meter, ts, kwh, {noise} from T order by meter, ts\" }}\n");
    InBucket::new(Project::new("j", &format!("{job}{file_size}{query}")))
}

fn reader(place: &InBucket, python: &PathBuf, args: &[&str]) -> Command {
    let mut command = Command::new(python);
    command.arg("-B").arg(repository().join("tests/e2e/bucket/httpfs_check.py"));
    command.args([&place.server.endpoint(), BUCKET, "AKIATESTONLY", SECRET]).args(args);
    command
}

/// What a reader saw while the first day was replaced again and again.
fn seen_while_replaced(place: &InBucket, python: &PathBuf, how: &str, count: u64) -> Value {
    let replacements: u64 =
        std::env::var("TIDETABLE_REPLACEMENTS").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    place.project.write("in/a.csv", rows(100, count));
    place.ok(&["run", "j"]);
    let stop = place.project.path(&format!("stop-{how}"));
    let mut command = reader(place, python, &["loop", how, "prod", stop.to_str().unwrap()]);
    let mut child = KilledOnDrop(command.stdout(Stdio::piped()).spawn().unwrap());
    for value in 1..=replacements {
        place.project.write("in/a.csv", rows(100 + value, count));
        place.ok(&["run", "j"]);
    }
    std::fs::write(&stop, "").unwrap();
    let mut told = String::new();
    std::io::Read::read_to_string(&mut child.0.stdout.take().unwrap(), &mut told).unwrap();
    assert!(child.0.wait().unwrap().success(), "{told}");
    let done: Value = serde_json::from_str(&told).unwrap();
    let rows = i64::try_from(count).unwrap();
    let mut last = 0.0;
    for seen in done["seen"].as_array().unwrap() {
        let days: Vec<_> = seen.as_array().unwrap().iter().collect();
        assert_eq!(days.len(), 2, "{how}: {seen}");
        let of = |day: &Value| (day[1].as_i64().unwrap(), day[2].as_f64().unwrap(), day[3].as_f64().unwrap());
        assert_eq!(of(days[1]), (rows, 7.0, 7.0), "{how}: {seen}");
        let (found, least, greatest) = of(days[0]);
        assert!(found == rows && least == greatest, "{how}: a mixture: {seen}");
        assert!(least >= last, "{how}: an older day after a newer one: {seen}");
        last = least;
    }
    assert_eq!(last, (100 + replacements) as f64, "{how}: the last one is seen");
    assert!(done["reads"].as_u64().unwrap() > 1, "{how}: {done}");
    done
}

#[test]
fn a_day_that_is_replaced_is_read_old_or_new() {
    let place = place("");
    let Some(python) = httpfs_python(&place.project) else { return };
    let none = serde_json::Map::new();
    let whole = seen_while_replaced(&place, &python, "whole", 20_000);
    assert_eq!(whole["errors"].as_object(), Some(&none));
}

#[test]
fn a_day_of_several_files_is_read_old_or_new_by_its_list() {
    let place = place("file_size = \"1MiB\"\n");
    let Some(python) = httpfs_python(&place.project) else { return };
    let read = seen_while_replaced(&place, &python, "list", 50_000);
    assert_eq!(read["errors"].as_object(), Some(&serde_json::Map::new()));
    let files = place.server.keys(BUCKET).into_iter().filter(|key| key.contains("/E_20200102/")).count();
    assert!(files > 1, "{files}");
}

#[test]
fn every_published_day_of_smart_meters_is_read_by_duckdb() {
    let place = InBucket::new(Project::smart_meters());
    let Some(python) = httpfs_python(&place.project) else { return };
    place.ok(&["run", "smart-meters"]);
    let ask = |sql: &str| {
        let ran = Ran::of(&mut reader(&place, &python, &["query", sql]));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        json_lines(&ran.stdout)
    };
    let theirs = ask(
        "SELECT strftime(ts, '%Y-%m-%d') AS day, count(*), sum(CAST(kwh * 1000 AS BIGINT))::BIGINT, count(DISTINCT filename) \
         FROM read_parquet('s3://tidetable/prod/exports/SENSOR_2*/part-0.parquet', filename = true) GROUP BY 1 ORDER BY 1",
    );
    let ours = place.sql(
        "select cast(cast(ts as date) as varchar) as day, count(*) as n, sum(cast(round(kwh * 1000) as bigint)) as kwh \
         from SENSOR group by 1 order by 1",
    );
    assert_eq!(theirs.len(), 15, "{theirs:?}");
    for (theirs, ours) in theirs.iter().zip(&ours) {
        assert_eq!(
            (&theirs[0], &theirs[1], &theirs[2], &theirs[3]),
            (&ours["day"], &ours["n"], &ours["kwh"], &1.into())
        );
    }
    assert_eq!(theirs.len(), ours.len());
}
