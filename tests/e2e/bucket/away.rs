//! Buckets that are missing, refuse, or have no server: what is wrong, with which key and where, in plain words.

use std::net::TcpListener;

use tidetable_bucket_server::Fault;

use crate::harness::Project;
use crate::harness::bucket::{BUCKET, InBucket, SECRET};

const JOB: &str = readings_job!("in/*.csv", "", "");

/// Commands on a root, and that which names the place `AT` in a bucket.
const COMMANDS: [&[&str]; 8] = [
    &["run", "j"],
    &["sql", "-c", "select * from T"],
    &["status"],
    &["check", "j"],
    &["backup", "vault"],
    &["export", "T", "--to", "x.csv"],
    &["read", "T"],
    &["doctor"],
];

/// Commands that write to or read from the place `AT` in another bucket than the root.
const ELSEWHERE: [&[&str]; 4] = [
    &["backup", "AT/vault"],
    &["restore", "AT/vault", "again"],
    &["export", "T", "--to", "AT/t.csv"],
    &["sql", "-c", "select 1 as n", "-O", "AT/n.csv"],
];

fn place() -> InBucket {
    let place = InBucket::new(Project::new("j", JOB));
    place.project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1.5\n");
    place.ok(&["run", "j"]);
    place
}

/// The message of a command that fails, on one line.
fn fails(place: &InBucket, args: &[&str], at: &str) -> String {
    let args: Vec<String> = args.iter().map(|arg| arg.replace("AT", at)).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let codes = [1, 2];
    let output = place.command(&args).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code().is_some_and(|code| codes.contains(&code)), "{args:?}: {told}");
    for raw in ["<Code>", "Generic", "error sending request", "status code", "timed out", SECRET, "AKIATESTONLY"] {
        assert!(!told.contains(raw), "{raw}: {args:?}: {told}");
    }
    told
}

#[test]
fn a_missing_bucket_is_named_with_its_endpoint() {
    let place = place();
    let there = format!("there is no bucket nowhere at {}", place.server.endpoint());
    for args in ELSEWHERE {
        let told = fails(&place, args, "s3://nowhere");
        assert!(told.contains(&there) && told.contains("create it"), "{args:?}: {told}");
    }
    let toml = place.project.read("tidetable.toml").replace(&format!("s3://{BUCKET}/"), "s3://nowhere/");
    place.project.write("tidetable.toml", toml);
    for args in COMMANDS {
        let told = fails(&place, args, "");
        assert!(told.contains(&there) && told.contains("s3://nowhere/prod"), "{args:?}: {told}");
    }
    let told = fails(&place, &["run", "j"], "");
    assert!(told.contains("nothing was changed there"), "{told}");
}

#[test]
fn a_bucket_that_refuses_is_told_with_the_name_of_the_key() {
    let place = place();
    place.follow(|_| Some(Fault::Denied));
    for args in COMMANDS {
        let told = fails(&place, args, "");
        assert!(told.contains("access to bucket tidetable denied"), "{args:?}: {told}");
        assert!(told.contains("the key of `access_key_id` of `storage`"), "{args:?}: {told}");
    }
    // Only writes are refused: the message names what could not be written.
    place.follow(|arrival| arrival.key.contains("out/").then_some(Fault::Denied));
    let told = fails(&place, &["export", "T", "--to", "AT/out/t.csv"], "s3://tidetable");
    assert!(told.contains("s3://tidetable/out/t.csv: access to bucket tidetable denied"), "{told}");
    // The key of the environment has another name.
    let toml = place.project.read("tidetable.toml");
    let toml: String =
        toml.lines().filter(|line| !line.contains("access_key")).map(|line| format!("{line}\n")).collect();
    place.project.write("tidetable.toml", toml);
    place.follow(|_| Some(Fault::Denied));
    let mut command = place.command(&["status"]);
    let output =
        command.env("AWS_ACCESS_KEY_ID", "AKIATESTONLY").env("AWS_SECRET_ACCESS_KEY", SECRET).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("the key of AWS_ACCESS_KEY_ID of the environment"), "{told}");
    assert!(!told.contains(SECRET) && !told.contains("AKIATESTONLY"), "{told}");
}

#[test]
fn an_endpoint_without_a_server_is_named() {
    let place = place();
    // Free again when the listener is dropped.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let toml = place.project.read("tidetable.toml").replace(&place.server.endpoint(), &format!("http://{address}"));
    place.project.write("tidetable.toml", toml);
    // Each tries for some seconds.
    for args in [&["sql", "-c", "select * from T"][..], &["backup", "vault"], &["export", "T", "--to", "x.csv"]] {
        let told = fails(&place, args, "");
        assert!(told.contains(&format!("nothing listens at http://{address}")), "{args:?}: {told}");
        assert!(told.contains("`endpoint` of `storage`"), "{args:?}: {told}");
    }
}
