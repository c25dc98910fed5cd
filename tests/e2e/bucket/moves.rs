//! Backups restored into a bucket, and Delta logs of exports there.

use serde_json::json;
use tidetable_bucket_server::{Fault, Kind};

use crate::harness::bucket::{BUCKET, InBucket, SECRET};
use crate::harness::system::python;
use crate::harness::{Project, Ran};

const JOB: &str = readings_job!(
    "in/*.csv",
    "",
    "[exports.E]\nper = \"day\"\nname = \"E/dt={day:%Y-%m-%d}\"\ndelta = true\n\
     query = { sql = \"select cast(meter as bigint) as meter, ts, kwh from T order by meter, ts\" }\n"
);

fn place() -> InBucket {
    let place = InBucket::new(Project::new("j", JOB));
    place.project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1.5\n2,2020-01-02T10:00:00Z,2.5\n");
    place
}

const ROWS: &str = "select meter, ts, kwh from exports.E order by meter, ts";

#[test]
fn a_backup_is_restored_into_a_bucket_also_after_an_interruption() {
    let place = place();
    place.ok(&["run", "j"]);
    let rows = place.sql(ROWS);
    place.ok(&["backup", "vault"]);
    assert!(place.ends(2, &["restore", "vault"]).stderr.contains("holds a store already"));
    // Interrupted: the bucket refuses the manifests, which come after the SSTs.
    place.root("other");
    place.follow(|arrival| {
        let refused = arrival.kind == Kind::PutObject && arrival.key.contains("/manifest/");
        refused.then_some(Fault::Conflict)
    });
    place.ends(1, &["restore", "vault"]);
    place.server.watch(None);
    assert!(place.ends(2, &["run", "j"]).stderr.contains("restore"), "an unfinished restore is no root yet");
    place.ok(&["restore", "vault"]);
    assert_eq!(place.sql(ROWS), rows);
    assert!(place.ok(&["verify"]).contains("sound") && place.ok(&["verify", "--exports"]).contains("sound"));
    assert!(place.ok(&["run", "j"]).contains("0 new rows"));
    // By URL, and not over it again.
    place.ok(&["restore", "vault", "s3://tidetable/third"]);
    assert_eq!(place.sql(ROWS), rows);
    place.ends(2, &["restore", "vault", "s3://tidetable/third"]);
}

#[test]
fn a_delta_log_in_a_bucket_has_each_run_as_a_snapshot() {
    let place = place();
    place.ok(&["run", "j"]);
    place.project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,7\n2,2020-01-02T10:00:00Z,2.5\n");
    place.ok(&["run", "j"]);
    assert_eq!(place.sql("select kwh from exports.E order by meter"), [json!({"kwh": 7.0}), json!({"kwh": 2.5})]);
    let logs = place.server.keys(BUCKET).into_iter().filter(|key| key.contains("/E/_delta_log/")).count();
    assert_eq!(logs, 2);
    let Some(python) = python(&place.project, "deltalake, pyarrow") else { return };
    // Threads of its libraries may abort Python at its end.
    let script = "import os, sys, deltalake\n\
                  url, endpoint, key = sys.argv[1:]\n\
                  keys = {'AWS_ENDPOINT_URL': endpoint, 'AWS_ALLOW_HTTP': 'true', 'AWS_REGION': 'us-east-1', \
                  'AWS_ACCESS_KEY_ID': 'AKIATESTONLY', 'AWS_SECRET_ACCESS_KEY': key}\n\
                  for version in (0, 1):\n\
                  \x20   table = deltalake.DeltaTable(url, version=version, storage_options=keys)\n\
                  \x20   print(sorted(table.to_pyarrow_table()['kwh'].to_pylist()), flush=True)\n\
                  os._exit(0)\n";
    let url = format!("s3://{BUCKET}/prod/exports/E");
    let mut command = std::process::Command::new(python);
    let ran = Ran::of(command.args(["-c", script, &url, &place.server.endpoint(), SECRET]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "[1.5, 2.5]\n[2.5, 7.0]\n"), "{}", ran.stderr);
}

#[test]
fn an_exchanged_object_is_not_read_as_published() {
    let place = place();
    place.ok(&["run", "j"]);
    let key =
        |day: &str| place.server.keys(BUCKET).into_iter().find(|key| key.contains(&format!("dt={day}/"))).unwrap();
    let (first, second) = (key("2020-01-01"), key("2020-01-02"));
    let published = place.server.object(BUCKET, &first).unwrap();
    let mut flipped = published.clone();
    flipped[published.len() / 3] ^= 1;
    for bytes in [Vec::new(), place.server.object(BUCKET, &second).unwrap(), flipped] {
        assert!(place.server.put_object(BUCKET, &first, bytes));
        let said = place.ends(1, &["sql", "-c", ROWS]).stderr;
        assert!(said.contains("dt=2020-01-01/"), "{said}");
    }
    // The same bytes under another tag are as published.
    assert!(place.server.put_object(BUCKET, &first, published));
    assert_eq!(place.sql(ROWS).len(), 2);
}
