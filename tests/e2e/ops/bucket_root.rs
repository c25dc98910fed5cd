//! The root in a bucket: every command, on an S3 server of this machine.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::harness::s3::S3Server;
use crate::harness::system::{KilledOnDrop, wait_for};
use crate::harness::{Project, Ran, json_lines};

const ID: &str = "AKIATESTONLY";
const KEY: &str = "hush-hush-key-0123456789";

const JOB: &str = readings_job!(
    "in/*.csv",
    "max_rejected = 5",
    "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\nfile_size = \"1MiB\"\n\
     query = { sql = \"select meter, ts, kwh from T order by meter, ts\" }\n\
     [exports.ALL]\nper = \"query\"\nname = \"ALL\"\nquery = { sql = \"select count(*) as n, sum(kwh) as kwh from T\" }\n"
);

/// A project whose root is in a bucket, and the server.
struct Place {
    project: Project,
    server: S3Server,
}

impl Place {
    fn new() -> Option<Self> {
        let project = Project::new("j", JOB);
        let server = S3Server::start(&project)?;
        project.write("tidetable.toml", Self::toml(&server, "s3://meters/prod"));
        project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1.5\n2,2020-01-02T10:00:00Z,2.5\n3,x,9\n");
        Some(Self { project, server })
    }

    fn toml(server: &S3Server, url: &str) -> String {
        format!(
            "[root]\nurl = \"{url}\"\nlease = \"6s\"\n[root.storage]\nendpoint = \"{}\"\nallow_http = true\n\
             region = \"us-east-1\"\naccess_key_id = \"{ID}\"\nsecret_access_key = {{ env = \"T_KEY\" }}\n",
            server.endpoint
        )
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.command(args);
        command.env("T_KEY", KEY).env("RUST_LOG", "trace");
        command
    }

    /// Runs a command, which must end with `code` and show no secret.
    fn ends(&self, code: i32, args: &[&str]) -> Ran {
        let ran = Ran::of(&mut self.command(args));
        assert_eq!(ran.code, Some(code), "{args:?}: {}{}", ran.stdout, ran.stderr);
        assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY), "{args:?}: {}{}", ran.stdout, ran.stderr);
        ran
    }

    fn ok(&self, args: &[&str]) -> String {
        self.ends(0, args).stdout
    }

    fn sql(&self, query: &str) -> Vec<Value> {
        json_lines(&self.ok(&["sql", "--output", "json", "-c", query]))
    }
}

#[test]
fn every_command_works_on_a_bucket() {
    let Some(place) = Place::new() else { return };
    assert!(place.ends(0, &["sql", "-c", "show tables"]).stderr.contains("no job of this project has run yet"));
    assert!(place.ok(&["check", "j"]).contains("reached, and writes conditionally"));
    place.ok(&["plan", "j"]);
    place.ok(&["run", "j"]);
    let first = json!([{"meter": 1, "kwh": 1.5}, {"meter": 2, "kwh": 2.5}]);
    assert_eq!(Value::from(place.sql("select meter, kwh from T order by meter")), first);
    assert_eq!(Value::from(place.sql("select meter, kwh from exports.E order by meter")), first);
    assert_eq!(place.sql("select n, kwh from exports.ALL"), [json!({"n": 2, "kwh": 4.0})]);
    assert!(place.ok(&["read", "T"]).contains("002#20200102"));
    assert!(place.ok(&["rejects", "j"]).contains("3,x,9"));
    assert!(place.ok(&["status"]).contains("ok"));
    assert!(place.ok(&["history"]).contains("ok"));
    assert!(place.ok(&["lineage", "T"]).contains("in/a.csv"));
    assert!(place.ok(&["tables"]).contains("ALL") && place.ok(&["describe", "T"]).contains("2020-01-02"));
    assert_eq!(place.sql("select outcome from runs.runs"), [json!({"outcome": "ok"})]);

    // A day changes, the rejected row is mended, rows are deleted.
    place.project.write(
        "in/a.csv",
        "meter,ts,kwh\n1,2020-01-01T10:00:00Z,7\n2,2020-01-02T10:00:00Z,2.5\n3,2020-01-03T00:00:00Z,9\n",
    );
    place.ok(&["replay", "last"]);
    assert_eq!(place.sql("select n, kwh from exports.ALL"), [json!({"n": 3, "kwh": 18.5})]);
    place.ok(&["delete", "T", "--row", "001#20200101", "--yes"]);
    place.ok(&["drop-rows", "T", "--prefix", "003", "--yes"]);
    place.ok(&["run", "j"]);
    assert_eq!(place.sql("select meter, kwh from exports.E"), [json!({"meter": 2, "kwh": 2.5})]);
    assert_eq!(place.sql("select n from exports.ALL"), [json!({"n": 1})]);
    place.ok(&["compact", "T"]);
    place.ok(&["vacuum", "--older-than", "0s", "--yes"]);
    place.ok(&["clean", "--older-than", "0s", "--keep", "1", "--yes"]);
    assert!(place.ok(&["verify"]).contains("sound") && place.ok(&["verify", "--exports"]).contains("sound"));
    assert!(place.ok(&["doctor"]).contains("sound"));
    place.ok(&["repair", "T"]);
    place.ok(&["export", "T", "--to", "cells.csv"]);
    assert!(place.project.read("cells.csv").contains("002#20200102"));
    assert!(place.ok(&["run", "j"]).contains("0 new rows"));
    assert!(!place.project.path("data").exists());

    // The blocks of a table are on this machine's disk, too.
    place.ok(&["sql", "-c", "select * from T"]);
    let cached = || json_lines(&place.ok(&["cache", "--output", "json"])).remove(0);
    wait_for("a cached block", || cached()["files"].as_u64().unwrap() > 0);
    place.ok(&["cache", "--empty"]);
    assert_eq!(cached()["bytes"], 0);
    place.ok(&["sql", "-c", "select * from T"]);
    for bytes in place.project.files("cache").into_values() {
        assert!(!bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes()));
    }

    // No secret is in any object.
    let keys = place.server.keys("prod/");
    assert!(keys.len() > 10, "{keys:?}");
    for key in keys {
        let bytes = place.server.get(&key);
        assert!(!bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes()), "{key}");
    }
}

#[test]
fn a_day_of_several_files_is_read_by_its_list() {
    let Some(place) = Place::new() else { return };
    let rows = |factor: u64| {
        // Values that no encoding shortens.
        let kwh = |id: u64| (id * factor % 4_294_967_291 * 2_654_435_761 % 4_294_967_291) as f64 / 7.0;
        let row = |id: u64| {
            let (meter, minute) = (id % 1000, id / 1000);
            format!("{meter},2020-01-01T{:02}:{:02}:00Z,{}\n", minute / 60, minute % 60, kwh(id))
        };
        let rows: String = (0..300_000).map(row).collect();
        format!("meter,ts,kwh\n{rows}")
    };
    place.project.write("in/a.csv", rows(7919));
    place.ok(&["run", "j"]);
    let files = |place: &Place| {
        let mut keys = place.server.keys("prod/exports/E_20200101/");
        keys.retain(|key| key.ends_with(".parquet"));
        keys
    };
    let before = files(&place);
    assert!(before.len() > 1, "{before:?}");
    let sum_of = |table: &str| place.sql(&format!("select count(*) as n, sum(kwh) as kwh from {table}"));
    assert_eq!(sum_of("exports.E"), sum_of("T"));

    // The files of before stay for an hour, beside the new ones; the list names the new ones only.
    place.project.write("in/a.csv", rows(104_729));
    place.ok(&["run", "j"]);
    let both = files(&place);
    assert!(both.len() > before.len() && before.iter().all(|file| both.contains(file)), "{both:?}");
    assert_eq!(sum_of("exports.E"), sum_of("T"));
    place.ok(&["verify", "--exports"]);

    // A day of one file has its fixed name.
    place.project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1.5\n");
    place.ok(&["run", "j"]);
    assert!(files(&place).contains(&"prod/exports/E_20200101/part-0.parquet".to_owned()));
    let sum = place.sql("select count(*) as n, sum(kwh) as kwh from exports.E");
    assert_eq!(sum, [json!({"n": 1, "kwh": 1.5})]);
}

#[test]
fn a_killed_run_is_taken_over_and_two_do_not_run_at_once() {
    let Some(place) = Place::new() else { return };
    place.ok(&["run", "j"]);
    let rows: String =
        (1..=300).map(|day| format!("{day},2021-{:02}-{:02}T10:00:00Z,1\n", day / 28 + 1, day % 28 + 1)).collect();
    place.project.write("in/b.csv", format!("meter,ts,kwh\n{rows}"));
    let mut command = place.command(&["run", "j", "--jobs", "1"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut first = KilledOnDrop(child);
    let locked = |place: &Place| place.ends(0, &["status", "j"]).stdout.contains("held by");
    wait_for("the first run", || locked(&place));
    let second = place.ends(75, &["run", "j"]);
    assert!(second.stderr.contains("is already running"), "{}", second.stderr);
    assert!(place.ends(0, &["run", "j", "--if-locked", "skip"]).stdout.is_empty());
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    // It waits for as long as the lease holds, and then goes on.
    let waited = place.ends(0, &["run", "j", "--if-locked", "wait"]);
    assert_eq!(waited.stderr.matches("its lease is taken over in").count(), 1, "{}", waited.stderr);
    assert_eq!(place.sql("select count(*) as n from exports.E"), [json!({"n": 302})]);
    assert_eq!(place.sql("select count(*) as n from runs.runs where outcome = 'killed'"), [json!({"n": 1})]);
    place.ok(&["run", "j"]);
}

#[test]
fn a_store_moves_into_a_bucket_and_back() {
    let Some(place) = Place::new() else { return };
    place.ok(&["run", "j"]);
    place.project.write("in/b.csv", "meter,ts,kwh\n5,2020-01-05T10:00:00Z,5\n");
    place.ok(&["run", "j"]);
    let told = |from: &str, to: &str| {
        let mut copied = json_lines(&place.ok(&["copy", from, to, "--output", "json"]));
        copied.remove(0)
    };
    let there = told("s3://meters/prod", "folder");
    assert_eq!((&there["tables"], &there["exports"], &there["damaged"]), (&json!(1), &json!(2), &json!(0)));
    assert!(there["copied"].as_u64().unwrap() > 8 && there["known"] == 0, "{there}");
    let back = told("folder", "s3://meters/other");
    assert_eq!(back["copied"], there["copied"]);
    let again = told("folder", "s3://meters/other");
    assert_eq!((&again["copied"], &again["known"]), (&json!(0), &back["copied"]), "{again}");
    let runs = "select run, outcome from runs.runs order by run";
    for root in ["folder", "s3://meters/other"] {
        let sql = |query: &str| json_lines(&place.ok(&["--root", root, "sql", "--output", "json", "-c", query]));
        assert_eq!(
            sql("select meter, kwh from exports.E order by 1"),
            place.sql("select meter, kwh from T order by 1")
        );
        assert_eq!(sql(runs), place.sql(runs));
        let older = ["--root", root, "sql", "--version", "1", "--output", "json", "-c", "select count(*) as n from T"];
        assert_eq!(json_lines(&place.ok(&older)), [json!({"n": 2})]);
        place.ok(&["--root", root, "verify", "--all-versions"]);
        assert!(place.ok(&["--root", root, "run", "j"]).contains("0 new rows"));
    }
    // Another store is not written over, nor one that has gone on.
    place.project.write("in/c.csv", "meter,ts,kwh\n7,2020-01-07T10:00:00Z,7\n");
    place.ok(&["--root", "folder", "run", "j"]);
    place.ends(2, &["copy", "s3://meters/prod", "folder"]);
    place.ends(2, &["copy", "nothing", "folder"]);
}

#[test]
fn mistakes_of_the_root_are_named() {
    let Some(place) = Place::new() else { return };
    let mut command = place.command(&["status"]);
    let ran = Ran::of(command.env_remove("T_KEY"));
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("`secret_access_key` of the root's storage"), "{}", ran.stderr);
    for (toml, told) in [
        (Place::toml(&place.server, "s3://nowhere/prod"), "there is no bucket nowhere at http://"),
        ("root = \"ftp://meters/prod\"\n".to_owned(), "use a path, file://, s3://"),
        ("[root]\nurl = \"gs://meters\"\nstorage = { region = \"r\" }\n".to_owned(), "`region` is for s3://"),
        ("[root]\nurl = \"s3://m\"\nlease = \"1d\"\n".to_owned(), "`lease` cannot be `1d`"),
    ] {
        place.project.write("tidetable.toml", toml);
        let ran = Ran::of(&mut place.command(&["status"]));
        // Long messages take several lines.
        let said = ran.stderr.replace("\n  │ ", " ");
        assert!(ran.code != Some(0) && said.contains(told), "{told}: {said}");
    }
}
