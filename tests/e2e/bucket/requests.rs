//! The requests of a run, as the server counts them, and replies that break off.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tidetable_bucket_server::{Fault, Kind};

use crate::harness::bucket::{InBucket, is_list};
use crate::harness::system::wait_for;
use crate::harness::{Project, json_lines};

const JOB: &str = readings_job!(
    "in/*.csv",
    "",
    "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\n\
     query = { sql = \"select meter, ts, kwh from T order by meter, ts\" }\n"
);

/// Added to each reply, so that requests that are sent at a time overlap.
const DELAY: Duration = Duration::from_millis(150);

fn days(count: u64) -> String {
    let day = |day: u64| {
        let date = chrono::NaiveDate::from_ymd_opt(2020, 1, 1).unwrap() + chrono::Days::new(day);
        format!("1,{date}T10:00:00Z,{day}.5\n2,{date}T11:00:00Z,1\n")
    };
    format!("meter,ts,kwh\n{}", (0..count).map(day).collect::<String>())
}

fn place(count: u64) -> InBucket {
    let place = InBucket::new(Project::new("j", JOB));
    place.project.write("in/a.csv", days(count));
    place
}

#[test]
fn a_run_with_nothing_new_takes_twelve_round_trips() {
    let place = place(40);
    place.ok(&["run", "j"]);
    place.ok(&["run", "j"]);
    place.server.set_delay(DELAY);
    let followed = place.follow(|_| None);
    place.server.reset_counts();
    assert!(place.ok(&["run", "j"]).contains("0 new rows"));
    let counts = place.server.counts();
    assert!(counts.sequential() <= 12, "{}: {:#?}", counts.sequential(), followed.lines());
}

#[test]
fn a_query_of_another_process_asks_for_lists_only() {
    let place = place(3);
    place.ok(&["run", "j"]);
    let query = ["sql", "-c", "select kwh from T where meter = 1 and ts < '2020-01-02'"];
    let first = place.ok(&query);
    place.server.set_delay(DELAY);
    // Blocks are written to the disk while a query goes on, and a process may end before.
    wait_for("blocks on the disk", || {
        let followed = place.follow(|_| None);
        place.server.reset_counts();
        assert_eq!(place.ok(&query), first);
        followed.lines().iter().all(|line| line.starts_with("ListObjects"))
    });
    // What the root has, and at the same time the versions of the table.
    assert!(place.server.counts().sequential() <= 2);
}

/// Requests after which the new file of an SST is given up: its client sends each of 5 attempts 11 times.
const TRIES: u64 = 5 * 11;

#[test]
fn a_bucket_that_says_slow_down_makes_a_stage_retry() {
    let job = format!("{JOB}[stages.load]\nretries = 2\nwait = \"1s\"\n");
    let place = InBucket::new(Project::new("j", &job));
    // One day, one SST: all refusals are of one request.
    place.project.write("in/a.csv", days(1));
    let refused = AtomicU64::new(0);
    place.follow(move |arrival| {
        let is_sst = arrival.kind == Kind::PutObject && arrival.key.ends_with(".sst");
        (is_sst && refused.fetch_add(1, Ordering::SeqCst) < TRIES).then_some(Fault::SlowDown)
    });

    let ran = place.ends(0, &["run", "j", "--output", "json"]);
    assert!(ran.stderr.contains("load of readings failed"), "{}", ran.stderr);
    assert!(ran.stderr.contains("attempt 2 of 3 follows in 1 s"), "{}", ran.stderr);
    let record = &json_lines(&ran.stdout)[0];
    assert_eq!((&record["attempts"][0]["stage"], &record["outcome"]), (&json!("load"), &json!("ok")));
    assert_eq!(place.sql("select count(*) as n from exports.E"), [json!({"n": 2})]);
}

#[test]
fn a_list_that_breaks_off_is_asked_again() {
    let place = place(2);
    // The first lists break off; one is asked five times.
    let lists = AtomicU64::new(0);
    let followed = place.follow(move |arrival| {
        let breaks = is_list(arrival) && lists.fetch_add(1, Ordering::SeqCst) < 4;
        breaks.then_some(Fault::Truncated)
    });
    place.ok(&["run", "j"]);
    assert_eq!(place.sql("select count(*) as n from exports.E"), [json!({"n": 4})]);
    let lists = followed.lines().iter().filter(|line| line.starts_with("ListObjects")).count();
    assert!(lists > 4, "{:#?}", followed.lines());
}
