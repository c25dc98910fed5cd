//! `tidetable sql`: scripts, positions of errors, files, older versions and the prompt.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use crate::harness::Project;
use crate::harness::system::on_terminal;

fn project() -> Project {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    project
}

#[test]
fn script_stops_at_the_first_error_with_its_position() {
    let project = project();
    let script = "-- two good ones\nselect count(*) as n from SENSOR;\nselect ';' as semicolon;\n\nselect meter,\n  mater from SENSOR;\nselect 3 as three;\n";
    project.write("script.sql", script);
    let ran = project.run(&["sql", "-f", "script.sql", "--output", "json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), "{\"n\":7200}\n{\"semicolon\":\";\"}\n"));
    assert!(ran.stderr.contains("line 6, column 3\n  |   mater from SENSOR;\n  |   ^"), "{}", ran.stderr);
    let ran = project.run(&["sql", "-c", "select meter from SENSOR where\n  and meter = 1"]);
    assert!(ran.stderr.contains("line 2, column 7"), "{}", ran.stderr);
    let ran = project.run(&["sql", "-c", "select 1;\nselect 'open"]);
    assert!(ran.stderr.contains("line 2, column"), "{}", ran.stderr);
    assert_eq!(project.fails(2, &["sql", "-c", " ; -- nothing"]), "error: there is no statement to run\n");
    let ran = project.run(&["sql", "--timing", "-c", "select 1 as one", "--output", "csv"]);
    assert_eq!(ran.stdout, "one\n1\n");
    assert!(ran.stderr.contains(" seconds"), "{}", ran.stderr);
}

#[test]
fn statements_that_cannot_be_planned_exit_with_2_and_those_that_fail_with_1() {
    let project = project();
    for statement in [
        "selec 1",
        "select 1; selec 2",
        "select 'open",
        "select meter + interval '1 day' from SENSOR",
        "select no_such_function(meter) from SENSOR",
        "select sum(meter, kwh) from SENSOR",
        "select meter from SENSOR group by kwh",
        "select kwh from SENSOR where kwh > array[1]",
        "select cast(kwh as geometry) from SENSOR",
        "select * from SENSOR union select 1",
        "select meter from SENSOR(with_historie => true)",
        "select meter from rows.SENSOR(versions => 'x')",
        "select * from 'no.parquet'",
        "insert into SENSOR values (1)",
        "create external table m stored as orc location 'x'",
        "summarize select no from SENSOR",
        "explain select no from SENSOR",
    ] {
        assert!(project.fails(2, &["sql", "-c", statement]).starts_with("error: "), "{statement}");
    }
    for args in [["-O", "x.parquet"].as_slice(), &["-O", "x.csv"], &["--memory", "512MiB"], &["--output", "arrow"]] {
        project.fails(2, &[["sql", "-c", "select kwh + ts from SENSOR"].as_slice(), args].concat());
    }
    project.fails(2, &["sql", "-c", "select meter, meter as meter from SENSOR", "-O", "x.parquet"]);
    for statement in
        ["select 1 / (meter - meter) from SENSOR", "select cast(cast(kwh as text) || 'x' as int) from SENSOR"]
    {
        project.fails(1, &["sql", "-c", statement]);
        project.fails(1, &["sql", "-c", statement, "-O", "x.parquet"]);
    }
    project.write("damaged.parquet", "text, which is no Parquet");
    project.fails(1, &["sql", "-c", "select * from 'damaged.parquet'"]);
}

#[test]
fn subqueries_that_cannot_be_planned_are_refused_in_plain_words() {
    let project = project();
    for (statement, says) in [
        ("select meter from SENSOR s order by exists (select 1 from SENSOR t where t.kwh = s.meter)", "in ORDER BY"),
        ("values (exists (select 1))", "in VALUES"),
        ("select distinct on (exists (select 1)) meter from SENSOR", "in DISTINCT ON"),
        (
            "select * from SENSOR s cross join lateral (select exists (select 1 from SENSOR t where t.kwh = s.kwh)) z",
            "cannot stand here",
        ),
    ] {
        let told = project.fails(2, &["sql", "-c", statement]).replace("\n  ", " ");
        assert!(told.contains(says) && told.contains("in a subquery of FROM first"), "{statement}: {told}");
        for word in ["Exist/", "Physical plan", "OuterReference", "plan nodes"] {
            assert!(!told.contains(word), "{statement}: {told}");
        }
    }
}

#[test]
fn exports_without_their_schema_are_suggested() {
    let project = project();
    let query = "select * from SENSOR_DAY";
    for args in [&["sql", "-c", query][..], &["export", "-c", query, "--to", "x.csv"]] {
        let told = project.fails(2, args);
        assert!(told.contains("did you mean exports.SENSOR_DAY?"), "{args:?}: {told}");
    }
    let told = project.fails(2, &["sql", "-c", "select * from SENSOR_20180105"]);
    assert!(told.contains("did you mean exports.SENSOR_20180105?"), "{told}");
    assert!(project.fails(2, &["sql", "-c", "select * from SENSO"]).contains("did you mean SENSOR?"));

    // A folder of days is no part: its name is not suggested for itself.
    fs::create_dir_all(project.path("data/exports/DAYS/dt=2018-01-05")).unwrap();
    let told = project.fails(2, &["sql", "-c", "select * from exports.DAYS"]);
    assert!(!told.contains("did you mean exports.DAYS?"), "{told}");
}

#[test]
fn untyped_nulls_are_null_in_every_format() {
    let project = project();
    let asked = "select null as a, [null] as b, 1 as c union all select null, [null], 2 order by c";
    let told = |format: &str| project.ok(&["sql", "-c", asked, "--output", format]);
    assert_eq!(told("json"), "{\"a\":null,\"b\":[null],\"c\":1}\n{\"a\":null,\"b\":[null],\"c\":2}\n");
    assert_eq!(told("csv"), "a,b,c\n,[null],1\n,[null],2\n");
}

#[test]
fn statements_are_read_from_standard_input() {
    let project = project();
    let mut command = project.command(&["sql", "--output", "csv"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"select 1 as a; select 2 as b;").unwrap();
    assert_eq!(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap(), "a\n1\nb\n2\n");
}

#[test]
fn rows_are_written_to_files_and_files_are_queried() {
    let project = project();
    let query = "select meter, ts, kwh from SENSOR where meter < 30 order by meter, ts";
    let rows = project.sql(query);
    for file in ["x.parquet", "x.arrow", "x.csv", "x.json"] {
        let ran = project.succeeds(&["sql", "-c", query, "-O", file]);
        assert_eq!(ran.stdout, "");
        assert!(ran.stderr.starts_with(&format!("wrote 2,160 rows to {file}, ")), "{}", ran.stderr);
        assert_eq!(project.messages(&["-q", "sql", "-c", query, "-O", file]), "");
        if file != "x.json" {
            let read = format!("select count(*) as n, min(meter) as low, sum(kwh) > 0 as some from '{file}'");
            let found = project.sql(&read);
            assert_eq!(found, [json!({ "n": rows.len(), "low": rows[0]["meter"], "some": true })], "{file}");
        }
    }
    assert_eq!(project.read("x.json").lines().count(), rows.len());
    let mut command = project.command(&["sql", "-c", query, "--output", "parquet"]);
    let parquet = command.output().unwrap().stdout;
    assert_eq!(parquet, fs::read(project.path("x.parquet")).unwrap());
    assert!(project.fails(2, &["tables", "--output", "parquet"]).contains("tidetable sql"));
    // Messages name the option as it was given.
    for option in ["-O", "--to"] {
        for (query, place) in
            [("select 1; select 2", "x.csv"), ("select 1", "nowhere/x.csv"), ("select 1", "s3:/x.csv")]
        {
            let told = project.fails(2, &["sql", "-c", query, option, place]);
            let other = if option == "-O" { "--to" } else { "-O" };
            assert!(told.contains(option) && !told.contains(other), "{option} {place}: {told}");
        }
    }
    // A query that fails leaves the file as it was.
    let before = project.read("x.csv");
    project.fails(1, &["sql", "-c", "select 1 / (meter - meter) as x from SENSOR", "-O", "x.csv"]);
    assert_eq!(project.read("x.csv"), before);
    let joined = "select count(*) as n from SENSOR s join 'x.parquet' x on s.meter = x.meter and s.ts = x.ts";
    assert_eq!(project.sql(joined)[0]["n"], rows.len());
}

#[test]
fn errors_of_the_parser_show_the_line() {
    let project = project();
    let script = "select 1;\nselect meter\n  from SENSOR wher x y";
    for more in [&[][..], &["-O", "x.parquet"]] {
        let query = if more.is_empty() { script } else { script.split_once('\n').unwrap().1 };
        let told = project.fails(2, &[&["sql", "-c", query], more].concat());
        let line = if more.is_empty() { 3 } else { 2 };
        assert!(told.starts_with("error: Expected: "), "{told}");
        assert!(told.contains(&format!("line {line}, column ")) && told.contains("|   from SENSOR wher x y"), "{told}");
        assert!(!told.contains("ParserError") && !told.contains("at line"), "{told}");
    }
    let told = project.fails(2, &["export", "-c", "select 1 frm x y z", "--to", "x.csv"]);
    assert!(told.starts_with("error: Expected: ") && told.contains("| select 1 frm x y z"), "{told}");
}

#[test]
fn older_versions_can_be_queried() {
    let project = project();
    project.ok(&["drop-rows", "SENSOR", "--prefix", "0000000077#", "--yes"]);
    let both = "select (select count(*) from SENSOR) as now, (select count(*) from \"SENSOR@1\") as before, \
                (select count(*) from cells.\"SENSOR@1\" where family = 'METER') as cells";
    assert_eq!(project.sql(both)[0], json!({ "now": 6840, "before": 7200, "cells": 7500 }));
    assert!(project.fails(1, &["sql", "-c", "select * from \"SENSOR@9\""]).contains('9'));
    // With its history, and unpacked.
    for rows in [
        "\"SENSOR@1\"(with_history => TRUE)",
        "unpack(\"SENSOR@1\")",
        "rows(\"SENSOR@1\", latest_n => 1, with_history => true)",
    ] {
        let now = rows.replace("@1", "@2");
        let count = |rows: &str| project.sql(&format!("select count(*) as n from {rows}"))[0]["n"].as_i64().unwrap();
        assert!(count(rows) > count(&now), "{rows}");
    }
}

#[test]
fn prompt_completes_keeps_history_and_continues_after_errors() {
    let project = project();
    let keys = [
        "\\\\d",
        "select meter, count(*) as n",
        "from SENSOR where meter = 42 group by meter;",
        "select mater from SENSOR;",
        "select count(*) as all_of_it from SENS\\t;",
        "\\\\timing",
        "select 4 + 4 as eight;",
        "\\\\d SENSOR",
        "\\\\nothing",
        "\\\\q",
    ];
    // Continuation lines have no prompt of their own, so the lines of a statement are typed at once.
    let keys = format!("{}\n", keys.join("\n").replace("as n\nfrom", "as n\\rfrom"));
    let said = on_terminal(&project, 0, &["sql"], &keys);
    for wanted in [
        "SENSOR_ROLLUP",
        "360",
        "line 1, column 8",
        "7200",
        "timing is on",
        " 8 ",
        " seconds",
        "kwh",
        "there is no \\nothing",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    let history = project.read("state/tidetable/history");
    assert!(history.contains("all_of_it from SENSOR"), "{history}");
}
