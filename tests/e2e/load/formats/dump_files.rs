//! Files of dumps: what other programs write, how large they may be, and what becomes of those that are incomplete or of another format.

use std::fs;
use std::time::{Duration, SystemTime};

use serde_json::json;

use super::dumps::raw_job;
use crate::harness::system::{measured, python, run_script};
use crate::harness::Project;

/// A dump of these cells: `key,value@micros` for each, in the family METER.
fn cbt(cells: &[&str]) -> String {
    format!(",METER\n,q\n{}", cells.iter().map(|cell| format!("{cell}\n")).collect::<String>())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn large_values_of_parquet_take_bounded_memory() {
    const VALUES: usize = 96;
    let project = Project::empty();
    let Some(python) = python(&project, "pyarrow") else { return };
    fs::create_dir_all(project.path("dumps")).unwrap();
    let file = project.path("dumps/1.parquet");
    run_script(
        &python,
        "load/formats/dumps_write.py",
        ["values".as_ref(), file.as_os_str(), VALUES.to_string().as_ref()],
    );
    project.ok(&["new", "large", "--from", "dumps/1.parquet"]);
    let ran = measured(&mut project.command(&["run", "large", "--memory", "64MiB"]));
    assert!(ran.status.success(), "{}", ran.said);
    assert!(ran.most < 200, "{} MiB", ran.most);
    let counted =
        "select count(*) as cells, count(distinct row_key) as \"rows\", max(length(value)) as longest from cells.LARGE";
    assert_eq!(project.sql(counted), [json!({ "cells": 100_000 + VALUES, "rows": 1 + VALUES, "longest": 1 << 20 })]);
}

#[test]
fn an_incomplete_dump_does_not_hold_back_other_sources() {
    const READINGS: &str = "\n[sources.readings]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\n\
        columns = { meter = \"uint64\", ts = \"timestamp\", kwh = \"float64\" }\n\
        [tables.T]\nfrom = \"readings\"\nrow_key = \"{meter:03}#{ts:%Y%m%d}\"\n\
        [tables.T.families.M]\ncolumns = [{ qualifier = \"{ts:%H%M}\", value = \"{kwh}\" }]\n\
        [exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\n\
        query = { sql = \"select meter, ts, kwh from T order by meter, ts\" }\n";
    let job = raw_job("d/*.csv", "cbt-csv").replace("[tables.RAW]\n", "[tables.RAW]\nfrom = \"cells\"\n") + READINGS;
    let project = Project::new("raw", &job);
    let count = |query: &str| project.sql(query)[0]["n"].clone();
    let dumped = || count("select count(*) as n from cells.RAW");
    let published = |day: u32| count(&format!("select count(*) as n from exports.\"E_202601{day:02}\""));
    let read_day = |day: u32| {
        let line = format!("meter,ts,kwh\n1,2026-01-{day:02}T10:00:00Z,1.5\n");
        project.write(&format!("in/{day}.csv"), line);
        let ran = project.run(&["run", "raw"]);
        (ran.code, one_line(&format!("{}{}", ran.stdout, ran.stderr)))
    };

    // Also the first dump: its table is there, without rows.
    project.write("d/1.csv", ",METER\n,q\na,v@1000");
    let (code, said) = read_day(1);
    assert_eq!(code, Some(4), "{said}");
    let wanted = "load the dump of `cells` was left undone: d/1.csv: the end of the cbt CSV file is missing";
    assert!(said.contains(wanted), "{said}");
    assert_eq!((dumped(), published(1)), (json!(0), json!(1)));

    project.write("d/1.csv", cbt(&["a,v@1000", "b,v@1000"]));
    let (code, said) = read_day(2);
    assert_eq!((code, dumped(), published(2)), (Some(0), json!(2), json!(1)), "{said}");

    // A later one without a shard, and one whose file is cut: rows of the former stay, and none is added.
    project.write("d/2-00001-of-00002.csv", cbt(&["c,v@1000"]));
    let (code, said) = read_day(3);
    assert!(code == Some(4) && said.contains("d/2.csv: 1 of its 2 files is missing (2-00000-of-00002.csv)"), "{said}");
    assert_eq!((dumped(), published(3)), (json!(2), json!(1)));
    let planned = one_line(&project.messages(&["plan", "raw"]));
    assert!(planned.contains("the dump of `cells` is not loaded: d/2.csv: 1 of its 2 files is missing"), "{planned}");
    project.write("d/2-00000-of-00002.csv", ",METER\n,q\nd,v@1000\ne,v@10");
    let old = fs::File::options().append(true).open(project.path("d/2-00000-of-00002.csv")).unwrap();
    old.set_modified(SystemTime::now() - Duration::from_secs(86_400)).unwrap();
    let (code, said) = read_day(4);
    assert!(
        code == Some(4) && said.contains("d/2-00000-of-00002.csv: the end of the cbt CSV file is missing"),
        "{said}"
    );
    assert_eq!((dumped(), published(4)), (json!(2), json!(1)));

    // A rebuild needs the dump, and it is loaded when it is whole.
    project.fails(1, &["run", "raw", "--rebuild"]);
    assert_eq!(dumped(), json!(2));
    project.write("d/2-00000-of-00002.csv", cbt(&["d,v@1000", "e,v@1000"]));
    let (code, said) = read_day(5);
    assert_eq!((code, dumped(), published(5)), (Some(0), json!(3), json!(1)), "{said}");
}
