//! Two machines that share a bucket and a job: one works, the other waits, skips, fails or takes over.
//!
//! `TIDETABLE_TAKEOVERS=200` runs as many; a seed gives the moments.

use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tidetable_bucket_server::{Arrival, Fault, Watch};

use crate::harness::Project;
use crate::harness::bucket::InBucket;

const JOB: &str = readings_job!(
    "in/*.csv",
    "",
    "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\n\
     query = { sql = \"select meter, ts, kwh from T order by meter, ts\" }\n\
     [exports.ALL]\nper = \"query\"\nname = \"ALL\"\nquery = { sql = \"select count(*) as n, sum(kwh) as kwh from T\" }\n"
);

/// Kills a process at a request, whoever sent it: before the server executes it, or after, before the reply.
struct Killer {
    victim: Mutex<Option<Child>>,
    state: Mutex<State>,
    before: bool,
}

#[derive(Default)]
struct State {
    /// Requests still to come before the kill.
    left: Option<u64>,
    seen: u64,
}

impl Killer {
    /// Whether this is the request of the kill.
    fn is_due(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        state.seen += 1;
        match state.left.take() {
            Some(0) => true,
            left => {
                state.left = left.map(|left| left - 1);
                false
            }
        }
    }

    fn kill(&self) {
        if let Some(victim) = self.victim.lock().unwrap().as_mut() {
            let _ = victim.kill();
            let _ = victim.wait();
        }
    }
}

impl Watch for Killer {
    fn before(&self, _: &Arrival<'_>) -> Option<Fault> {
        if self.before && self.is_due() {
            self.kill();
        }
        None
    }

    fn after(&self, _: &Arrival<'_>) {
        if !self.before && self.is_due() {
            self.kill();
        }
    }
}

/// A number below `most`, by seed and place: splitmix64.
fn drawn(seed: u64, most: u64) -> u64 {
    let mut z = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) % most.max(1)
}

fn write_inputs(project: &Project) {
    for file in 0..3_u64 {
        let rows: String = (0..24)
            .map(|row| {
                format!("{row},2020-01-{:02}T{:02}:00:00Z,{}.25\n", file * 2 + 1 + row % 2, row % 24, file * 100 + row)
            })
            .collect();
        project.write(&format!("in/{file}.csv"), format!("meter,ts,kwh\n{rows}"));
    }
}

/// What readers see of the store, whoever made it.
fn state_of(sql: impl Fn(&str) -> Vec<Value>) -> Vec<Vec<Value>> {
    [
        "select meter, ts, kwh from T order by meter, ts",
        "select meter, ts, kwh from exports.E order by meter, ts",
        "select n, kwh from exports.ALL",
    ]
    .map(sql)
    .into()
}

fn spawn(place: &InBucket, args: &[&str]) -> Child {
    place.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_job_of_two_machines_ends_as_one_run_does() {
    let rounds: u64 = std::env::var("TIDETABLE_TAKEOVERS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let place = InBucket::new(Project::new("j", JOB));
    write_inputs(&place.project);
    // One run alone, in a directory.
    place.project.write("tidetable.toml", "root = \"data\"\n");
    place.project.run_job("j");
    let wanted = state_of(|query| place.project.sql(query));
    // The requests of one run, among which the moments lie.
    place.root("alone");
    let followed = place.follow(|_| None);
    place.ok(&["run", "j"]);
    let requests = followed.count();
    let mut killed = 0;
    for round in 0..rounds {
        place.root_of_short_leases(&format!("round-{round}"));
        let before = drawn(3 * round, 2) == 0;
        let left = Some(drawn(3 * round + 1, requests));
        let killer = Arc::new(Killer { victim: Mutex::default(), state: Mutex::new(State { left, seen: 0 }), before });
        place.server.watch(Some(killer.clone()));
        *killer.victim.lock().unwrap() = Some(spawn(&place, &["run", "j", "--jobs", "1"]));
        let how = ["wait", "skip", "fail"][drawn(3 * round + 2, 3) as usize];
        let other = place.ends_with(&[0, 75], &["run", "j", "--if-locked", how]);
        let first = killer.victim.lock().unwrap().take().map(|mut first| first.wait().unwrap());
        killed += u64::from(first.is_some_and(|status| status.code().is_none()));
        place.server.watch(None);
        // The next run does what neither has done.
        place.ok(&["run", "j", "--if-locked", "wait"]);
        let seen = state_of(|query| place.sql(query));
        assert_eq!(
            seen, wanted,
            "round {round}: {how} ended with {other}, killed at request {left:?}, before: {before}"
        );
        place.ok(&["verify"]);
        place.ok(&["verify", "--exports"]);
        place.ok(&["vacuum", "--older-than", "0s", "--yes"]);
        let idle = place.ok(&["run", "j"]);
        assert!(idle.contains("everything is as the last run left it"), "round {round}: {idle}");
        assert_eq!(place.sql("select count(*) as n from exports.E"), [json!({"n": 72})]);
    }
    // Else the test shows nothing.
    assert!(killed > 0 || rounds < 3, "no process was killed in {rounds} rounds");
}
