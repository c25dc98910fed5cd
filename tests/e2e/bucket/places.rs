//! Places in buckets on the command line: backups and files of results, and what cannot lie there.

use tidetable_bucket_server::{Fault, Kind};

use crate::harness::Project;
use crate::harness::bucket::{BUCKET, InBucket};

const JOB: &str = readings_job!(
    "in/*.csv",
    "",
    "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\n\
     query = { sql = \"select meter, ts, kwh from T order by meter, ts\" }\n"
);
const ROWS: &str = "select meter, ts, kwh from T order by meter, ts";

fn place() -> InBucket {
    let place = InBucket::new(Project::new("j", JOB));
    place.project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1.5\n2,2020-01-02T10:00:00Z,2.5\n");
    place.ok(&["run", "j"]);
    place
}

fn object(place: &InBucket, key: &str) -> Vec<u8> {
    let bytes = place.server.object(BUCKET, key);
    bytes.unwrap_or_else(|| panic!("there is no {key} but {:?}", place.server.keys(BUCKET))).to_vec()
}

#[test]
fn a_store_is_backed_up_into_a_bucket_and_restored_from_it() {
    let place = place();
    let rows = place.sql(ROWS);
    assert!(place.ok(&["backup", "s3://tidetable/bk/meters"]).contains("1 table"));
    // The second copies what is new, and the lease of the first is given back.
    place.project.write("in/b.csv", "meter,ts,kwh\n3,2020-01-03T10:00:00Z,3.5\n");
    place.ok(&["run", "j"]);
    place.ok(&["backup", "s3://tidetable/bk/meters"]);
    let listed = place.ok(&["backup", "s3://tidetable/bk/meters", "--list", "--output", "json"]);
    let backups: Vec<serde_json::Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(backups.len(), 2, "{listed}");
    assert!(place.ok(&["backup", "s3://tidetable/bk/meters", "--verify"]).contains("sound: 2 backups"));
    // Into a folder, and into another bucket; nothing is written beside.
    let first = backups[1]["backup"].as_str().unwrap();
    place.ok(&["restore", "s3://tidetable/bk/meters", "folder", "--at", first]);
    let told = place.ok(&["--root", "folder", "sql", "--output", "json", "-c", ROWS]);
    assert_eq!(told.lines().count(), rows.len());
    place.ok(&["restore", "s3://tidetable/bk/meters", "s3://tidetable/again"]);
    assert_eq!(place.ok(&["--root", "s3://tidetable/again", "sql", "--output", "json", "-c", ROWS]).lines().count(), 3);
    assert!(!place.project.path("s3:").exists());
    // Not in the root, and not over something else.
    assert!(place.ends(2, &["backup", "s3://tidetable/prod/bk"]).stderr.contains("lies in the root"));
    assert!(place.server.keys(BUCKET).iter().all(|key| !key.starts_with("prod/bk")));
    assert!(place.ends(2, &["backup", "s3://tidetable"]).stderr.contains("lies in the root"));
    assert!(place.ends(2, &["backup", "s3://tidetable/again"]).stderr.contains("holds no backups"));
    assert!(place.ends(2, &["restore", "s3://tidetable/nothing"]).stderr.contains("holds no backups"));
}

#[test]
fn a_backup_into_a_bucket_that_fails_leaves_the_older_ones() {
    let place = place();
    place.ok(&["backup", "s3://tidetable/bk"]);
    place.project.write("in/b.csv", "meter,ts,kwh\n3,2020-01-03T10:00:00Z,3.5\n");
    place.ok(&["run", "j"]);
    place.follow(|arrival| {
        let refused = arrival.kind == Kind::PutObject && arrival.key.contains("bk/objects/");
        refused.then_some(Fault::Conflict)
    });
    place.ends(1, &["backup", "s3://tidetable/bk"]);
    place.server.watch(None);
    assert_eq!(place.ok(&["backup", "s3://tidetable/bk", "--list", "--output", "json"]).lines().count(), 1);
    place.ok(&["backup", "s3://tidetable/bk"]);
    assert!(place.ok(&["backup", "s3://tidetable/bk", "--verify"]).contains("sound: 2 backups"));
}

#[test]
fn results_are_written_into_a_bucket() {
    let place = place();
    let csv = place.ok(&["sql", "--output", "csv", "-c", ROWS]);
    place.ok(&["sql", "-c", ROWS, "-O", "s3://tidetable/out/rows.csv"]);
    assert_eq!(object(&place, "out/rows.csv"), csv.as_bytes());
    place.ok(&["sql", "-c", ROWS, "-O", "s3://tidetable/rows.parquet"]);
    assert!(object(&place, "rows.parquet").starts_with(b"PAR1"));
    assert!(place.ok(&["export", "T", "--to", "s3://tidetable/out/t.csv"]).contains("s3://tidetable/out/t.csv"));
    assert!(String::from_utf8(object(&place, "out/t.csv")).unwrap().contains("001#20200101"));
    place.ok(&["export", "-c", ROWS, "--to", "s3://tidetable/out/rows.parquet"]);
    assert!(object(&place, "out/rows.parquet").starts_with(b"PAR1"));
    place.ok(&["report", "j", "--report", "s3://tidetable/pages/j.html"]);
    assert!(String::from_utf8(object(&place, "pages/j.html")).unwrap().contains("<html"));
    // One that is there is replaced, and one that fails stays.
    place.ok(&["sql", "-c", "select 1 as one", "-O", "s3://tidetable/out/rows.csv"]);
    assert_eq!(object(&place, "out/rows.csv"), b"one\n1\n");
    place.ends(1, &["sql", "-c", "select 1 / (meter - meter) as x from T", "-O", "s3://tidetable/out/rows.csv"]);
    assert_eq!(object(&place, "out/rows.csv"), b"one\n1\n");
    // What cannot be written is refused before the work.
    assert!(place.ends(2, &["sql", "-c", ROWS, "-O", "s3://tidetable/out/"]).stderr.contains("names no file"));
    assert!(place.ends(2, &["sql", "-c", ROWS, "-O", "s3://tidetable/out/rows"]).stderr.contains(".parquet"));
    place.follow(|arrival| arrival.key.contains("shut/").then_some(Fault::Conflict));
    place.ends(1, &["export", "T", "--to", "s3://tidetable/shut/t.csv"]);
    assert!(!place.project.path("s3:").exists());
}

#[test]
fn a_job_for_files_in_a_bucket_has_the_settings_of_the_root() {
    let place = place();
    let rows = "select 'm' || (v % 3) as meter, to_timestamp(1577836800 + v * 60) as ts, v * 0.5 as kwh \
                from generate_series(1, 300) as s (v)";
    place.ok(&["sql", "-c", rows, "-O", "s3://tidetable/in/meters.csv"]);
    place.ok(&["new", "fresh", "--from", "s3://tidetable/in/meters.csv"]);
    let job = place.project.read("jobs/fresh/job.toml");
    assert!(job.contains("allow_http = true") && job.contains("secret_access_key = { env = \"T_KEY\" }"), "{job}");
    place.ok(&["run", "fresh"]);
    let table = job.lines().find_map(|line| line.strip_prefix("[tables.")?.strip_suffix(']')).unwrap();
    assert_eq!(place.sql(&format!("select count(*) as n from {table}"))[0]["n"], 300);
}
