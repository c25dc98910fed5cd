//! Files of dumps: what other programs write, how large they may be, and what becomes of those that are incomplete or of another format.

use std::fs;
use std::time::{Duration, SystemTime};

use serde_json::json;
use tidetable_bucket_server::{Options, Server};

use super::dumps::{ALL_CELLS, ORIGIN, cells, raw_job};
use crate::harness::bucket::{BUCKET, SECRET};
use crate::harness::system::{measured, python, run_script};
use crate::harness::{Project, Ran};

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
fn every_shard_tells_a_proposal_of_its_families_and_times() {
    let project = Project::empty();
    // Older dumps do not count.
    project.write("d/2026-01-01-00000-of-00001.csv", ",OLD\n,q\na,v@1\n");
    project.write("d/2026-01-02-00000-of-00002.csv", ",METER\n,q\na,v@1000\n");
    project.write("d/2026-01-02-00001-of-00002.csv", ",n-0.x,\n,q,r\nb,\0\0\0\0\0\0\0\x05@2000,\nc,12345678@2000,\n");
    let said = project.ok(&["new", "shards", "--from", "d/"]);
    let text = project.read("jobs/shards/job.toml");
    assert!(text.contains("format = \"cbt-csv\"") && text.contains("\"n-0.x\"") && !text.contains("OLD"), "{text}");
    assert!(!text.contains("granularity"), "{text}");
    assert!(one_line(&said).contains("All values of family `n-0.x` have 8 bytes"), "{said}");
    project.run_job("shards");
    assert_eq!(project.sql("select count(*) as n from cells.SHARDS"), [json!({ "n": 3 })]);

    // Microseconds in any shard make the table keep them.
    project.write("d/2026-01-02-00001-of-00002.csv", ",n-0.x,\n,q,r\nb,v@2001,\nb,v@2002,\n");
    project.ok(&["new", "shards", "--from", "d/", "--force"]);
    assert!(project.read("jobs/shards/job.toml").contains("granularity = \"micros\""));
    project.ok(&["run", "shards", "--rebuild"]);
    assert_eq!(project.sql("select count(*) as n from cells.SHARDS"), [json!({ "n": 3 })]);

    // Without one of its shards a dump is no ground for a proposal.
    fs::remove_file(project.path("d/2026-01-02-00000-of-00002.csv")).unwrap();
    let said = project.fails(2, &["new", "again", "--from", "d/"]);
    assert!(said.contains("1 of its 2 files is missing"), "{said}");
}

#[test]
fn a_table_with_two_lines_of_names_is_no_dump() {
    for (text, is_dump) in [
        (",METER,\n,a,b\nk,1@1000,\nl,,2@-7\n", true),
        (",METER,\n,a,b\nk,1@1000,\nl,,2\n", false),
        (",Region A,\n,x,y\n2026-01-01,1@1000,2@1000\n", false),
        (",A,\n,x,y\n2026-01-01T00:00:00Z,1,2\n2026-01-01T01:00:00Z,3,4\n", false),
        (",a,b\n0,1@1000,2@1000\n", false),
        (",A\n,x\n", false),
    ] {
        // The name says nothing.
        for name in ["in/1.csv", "in/1.cbt.csv"] {
            let project = Project::empty();
            project.write(name, text);
            let ran = project.run(&["new", "t", "--from", name]);
            let job = fs::read_to_string(project.path("jobs/t/job.toml")).unwrap_or_default();
            let said = format!("{name} {text:?}: {}{}", ran.stdout, ran.stderr);
            assert_eq!(job.contains("cbt-csv"), is_dump, "{said}");
        }
    }
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

#[test]
fn a_wrong_format_is_told_with_the_right_one() {
    const COLUMNS: &str = "name = \"j\"\n[sources.s]\nfiles = [\"FILE\"]\nformat = \"FORMAT\"\ntime = \"ts\"\n\
        columns = { meter = \"uint64\", ts = \"timestamp\", kwh = \"float64\" }\n\
        [tables.T]\nrow_key = \"{meter:03}#{ts:%Y%m%d}\"\n\
        [tables.T.families.M]\ncolumns = [{ qualifier = \"{ts:%H%M}\", value = \"{kwh}\" }]\n";
    let project = Project::new("origin", ORIGIN);
    project.write("in/a.csv", "meter,ts,kwh,note\n1,2026-01-01T10:00:00Z,1.50,a\n");
    project.run_job("origin");
    for (format, ending) in [("bigtable-parquet", "parquet"), ("bigtable-avro", "avro"), ("cbt-csv", "csv")] {
        fs::create_dir_all(project.path("d")).unwrap();
        project.ok(&["export", "SENSOR", "--format", format, "-O", &format!("d/dump.{ending}")]);
    }
    project.ok(&["export", "-c", "select meter, ts from SENSOR", "-O", "d/table.parquet"]);
    for (file, format, wanted) in [
        (
            "d/dump.parquet",
            "parquet",
            "this is a dump of Bigtable, and the source reads columns: write `format = \"bigtable-parquet\"`",
        ),
        ("d/dump.avro", "avro", "write `format = \"bigtable-avro\"`"),
        ("d/dump.csv", "csv", "write `format = \"cbt-csv\"`"),
        ("d/table.parquet", "bigtable-parquet", "write `format = \"parquet\"` if it has columns"),
        ("in/a.csv", "cbt-csv", "write `format = \"csv\"` if it has columns"),
        ("d/dump.avro", "bigtable-parquet", "if it is a dump of Bigtable, write `format = \"bigtable-avro\"`"),
        ("d/dump.parquet", "bigtable-avro", "if it is a dump of Bigtable, write `format = \"bigtable-parquet\"`"),
        ("d/dump.csv", "bigtable-avro", "if it is a CSV of cbt, write `format = \"cbt-csv\"`"),
    ] {
        let is_dump = format.contains('-');
        let job = if is_dump { raw_job(file, format) } else { COLUMNS.replace("FILE", file).replace("FORMAT", format) };
        let name = if is_dump { "raw" } else { "j" };
        project.write(&format!("jobs/{name}/job.toml"), job);
        let said = one_line(&project.fails(1, &["run", name]));
        assert!(said.contains(file) && said.contains(wanted), "{file} as {format}: {said}");
    }
}

#[test]
fn types_of_other_writers_are_read_exactly_or_refused() {
    let project = Project::empty();
    let Some(python) = python(&project, "pyarrow") else { return };
    fs::create_dir_all(project.path("d")).unwrap();
    run_script(&python, "load/formats/dump_types.py", [project.path("d")]);
    let refused = [
        ("nanos_cut", "column cells.timestamp has 1500000000000000001 ns, which is no whole number of microseconds"),
        ("millis_far", "column cells.timestamp has 1152921504606846976 ms, which is later or earlier"),
        ("time_text", "column cells.timestamp is text, and dumps of Bigtable have integers"),
        ("time_uint64", "column cells.timestamp is uint64"),
        ("time_int96", "timestamp is INT96"),
        ("family_int64", "column cells.family is int64, and dumps of Bigtable have bytes or text there"),
        ("key_int64", "column key is int64"),
        ("value_float", "column cells.value is float64"),
        ("fixed_list", "column cells is list of struct of family, qualifier, timestamp, value"),
        ("value_missing", "there is no `value`"),
    ];

    let mut read = 0;
    for file in fs::read_dir(project.path("d")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let case = name.trim_end_matches(".parquet");
        let (job, table) = (case.replace('_', "-"), case.to_uppercase());
        let text = raw_job(&format!("d/{name}"), "bigtable-parquet").replace("RAW", &table);
        project.write(&format!("jobs/{job}/job.toml"), text.replace("name = \"raw\"", &format!("name = \"{job}\"")));
        match refused.iter().find(|(refused, _)| *refused == case) {
            Some((_, wanted)) => {
                let said = one_line(&project.fails(1, &["run", &job]));
                assert!(said.contains(wanted) && said.contains(&name), "{case}: {said}");
            }
            None => {
                project.ok(&["run", &job]);
                let wanted = "k,family,q,t,v\n6b,METER,71,1500000000000000,76\n";
                assert_eq!(cells(&project, &table), wanted, "{case}");
                read += 1;
            }
        }
    }
    assert_eq!(read, 25);
}

#[test]
fn dumps_of_fastavro_are_equal_cell_by_cell() {
    let project = Project::empty();
    let Some(python) = python(&project, "fastavro, cramjam") else { return };
    fs::create_dir_all(project.path("d")).unwrap();
    let write = |what: &str, name: &str| {
        let file = project.path(name);
        run_script(&python, "load/formats/dumps_write.py", [what.as_ref(), file.as_os_str(), "500".as_ref()]);
    };
    write("cells", "cells.csv");
    let wanted = project.read("cells.csv");
    for codec in ["null", "deflate", "snappy"] {
        let (file, table) = (format!("d/{codec}.avro"), codec.to_uppercase());
        write(codec, &file);
        let job = raw_job(&file, "bigtable-avro").replace("METER", "m").replace("RAW", &table);
        project.write(&format!("jobs/{codec}/job.toml"), job.replace("name = \"raw\"", &format!("name = \"{codec}\"")));
        project.run_job(codec);
        assert!(cells(&project, &table) == wanted, "{codec}");
    }

    // The same from a bucket, of whose dumps the last counts.
    let server = Server::start(Options::default()).unwrap();
    let bytes = fs::read(project.path("d/snappy.avro")).unwrap();
    server.put_object(BUCKET, "d/2026-01-01.avro", b"not looked at".to_vec());
    server.put_object(BUCKET, "d/2026-01-02.avro", bytes);
    let storage = format!(
        "\n[sources.cells.storage]\nendpoint = \"{}\"\nallow_http = true\nregion = \"us-east-1\"\n\
         access_key_id = \"AKIATESTONLY\"\nsecret_access_key = {{ env = \"T_KEY\" }}\n",
        server.endpoint()
    );
    let job = raw_job(&format!("s3://{BUCKET}/d/*.avro"), "bigtable-avro").replace("METER", "m") + &storage;
    project.write("jobs/raw/job.toml", job);
    let ran = Ran::of(project.command(&["run", "raw"]).env("T_KEY", SECRET));
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(project.csv(&format!("{ALL_CELLS}\"RAW\" order by 1, 2, 3, 4 desc")) == wanted);
}
