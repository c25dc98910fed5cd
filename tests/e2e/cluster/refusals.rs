//! What a cluster refuses, with a sentence that says what to do.

use std::net::TcpListener;

use super::same_results::readings;
use super::servers::{Cluster, executor, scheduler};
use crate::harness::Project;

const JOB: &str = readings_job!(
    "in/*.csv",
    "",
    "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\n\
     query = { sql = \"select meter, ts, kwh from T order by meter, ts\" }\n"
);

fn project() -> Project {
    let project = Project::new("j", JOB);
    project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1.5\n2,2020-01-02T10:00:00Z,2.5\n");
    project
}

#[test]
fn a_scheduler_that_is_not_there_is_named() {
    let project = project();
    // The port is free again when the listener is dropped.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let on = format!("ballista://{address}");
    let said = project.fails(1, &["run", "j", "--on", &on]);
    assert!(said.contains(&format!("the scheduler at {on} cannot be reached")), "{said}");
    assert!(said.contains("start it with `tidetable scheduler`"), "{said}");
    for wrong in ["127.0.0.1:50050", "http://127.0.0.1:1", "ballista://nowhere"] {
        let said = project.fails(2, &["run", "j", "--on", wrong]);
        assert!(said.contains("is no address of a scheduler: write ballista://HOST:PORT"), "{said}");
    }
    let said = project.fails(2, &["executor", "--scheduler", &on, "--temp-dir", "nowhere"]);
    assert!(said.contains("--temp-dir") && said.contains("nowhere") && said.contains("can be written"), "{said}");
    // The same from the project, and without it for this process.
    project.write("tidetable.toml", format!("root = \"data\"\n[cluster]\nurl = \"{on}\"\n"));
    assert!(project.fails(1, &["run", "j"]).contains("cannot be reached"));
    project.ok(&["run", "j", "--on", "local"]);
}

#[test]
fn another_root_or_another_job_is_refused() {
    let project = project();
    let (_scheduler, address) = scheduler(&project, "127.0.0.1:0");
    let mut one = executor(&project, &address, "elsewhere", "one");
    let said = project.fails(1, &["run", "j", "--on", &address]);
    assert!(said.contains("this executor works in") && said.contains("start it with --root"), "{said}");
    assert!(said.contains("(on one)"), "{said}");
    assert!(project.json(&["history"]).iter().all(|run| run["outcome"] == "failed"));
    one.signal("TERM");
    assert_eq!(one.wait(), Some(0));

    let other = Project::new("j", &JOB.replace("order by meter, ts", "order by ts, meter"));
    let root = project.path("data");
    let _executor = executor(&other, &address, root.to_str().unwrap(), "two");
    let said = project.fails(1, &["run", "j", "--on", &address]);
    assert!(said.contains("is not that of the run: copy the project directory of the run"), "{said}");
    assert!(!project.ok(&["run", "j"]).contains("failed"));
}

#[test]
fn executors_that_do_not_fit_take_no_part_and_the_run_goes_on() {
    let project = project();
    for day in 3..=9 {
        project.write(&format!("in/{day}.csv"), format!("meter,ts,kwh\n1,2020-01-{day:02}T10:00:00Z,{day}\n"));
    }
    let other = Project::new("j", &JOB.replace("order by meter, ts", "order by ts, meter"));
    let root = project.path("data").display().to_string();
    let (_scheduler, address) = scheduler(&project, "127.0.0.1:0");
    let _executors = [(&project, "elsewhere", "lost"), (&other, root.as_str(), "edited"), (&project, "data", "right")]
        .map(|(project, root, name)| executor(project, &address, root, name));

    let told = project.messages(&["run", "j", "--on", &address]);
    let elsewhere = project.path("elsewhere").display().to_string();
    let lost = told.lines().find(|line| line.contains("executor lost takes no part in this run")).unwrap();
    assert!(lost.contains(&format!("the run is in root {root}")) && lost.contains(&elsewhere), "{lost}");
    assert!(lost.contains("start it with --root"), "{lost}");
    assert!(told.contains("executor edited takes no part in this run: job j in"), "{told}");
    assert_eq!(told.matches("executor lost takes no part").count(), 1, "{told}");
    let record = &project.json(&["history", "--run", "last"])[0];
    assert_eq!(record["outcome"], "ok", "{record}");
    let executors = record["executors"].as_array().unwrap();
    assert_eq!(executors.iter().map(|one| one["executor"].as_str().unwrap()).collect::<Vec<_>>(), ["right"]);
}

#[test]
fn mistakes_in_the_data_are_told_as_on_one_machine() {
    let project = project();
    let cluster = Cluster::of(&project, "data");
    (0..3).for_each(|file| project.write(&format!("in/{file}.csv"), readings(file, 3)));
    let far = project.fails(1, &["run", "j", "--on", &cluster.address]);
    assert!(far.contains("rows of source readings were rejected, more than max_rejected"), "{far}");
    assert!(project.files("data").keys().all(|name| !name.ends_with(".sst")), "nothing is left of what was written");
}
