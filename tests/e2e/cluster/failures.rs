//! Killed processes: no row is lost or doubled, and no run hangs.

use std::process::Stdio;
use std::time::{Duration, SystemTime};

use super::same_results::{assert_same, readings};
use super::servers::{Cluster, ends, executor, scheduler};
use crate::harness::Project;

const NOW: &str = "2026-01-15T06:00:00Z";

const JOB: &str = readings_job!(
    "in/*.csv",
    "max_rejected = \"50%\"",
    "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\n\
     query = { sql = \"select meter, ts, kwh from T order by meter, ts\" }\n"
);

/// Kills in the small proof, and in the large one: `TIDETABLE_KILLS` names another number.
fn kills() -> u64 {
    std::env::var("TIDETABLE_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(3)
}

fn project() -> Project {
    let project = Project::new("j", JOB);
    (0..6).for_each(|file| project.write(&format!("in/{file}.csv"), readings(file, 9)));
    project
}

/// Removes what killed and late writers have left under hidden names, as `vacuum` does when it is an hour old.
fn sweep(project: &Project, root: &str) {
    for (name, _) in project.files(root).into_iter().filter(|(name, _)| name.contains(".tmp-")) {
        let file = std::fs::File::options().append(true).open(project.path(&name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(7200)).unwrap();
    }
    project.ok(&["vacuum", "--root", root, "--older-than", "0s", "--yes"]);
}

#[test]
fn killed_processes_lose_and_double_nothing() {
    let project = project();
    project.ok(&["run", "j", "--root", "local", "--now", NOW]);
    for kill in 0..kills() {
        let root = format!("far{kill}");
        let mut cluster = Cluster::of(&project, &root);
        let args = ["run", "j", "--root", &root, "--now", NOW, "--on", &cluster.address];
        let mut command = project.command(&args);
        let mut driver = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // When it hits differs from machine to machine; what must hold does not.
        std::thread::sleep(Duration::from_millis(150 + kill * 397 % 1500));
        match kill % 3 {
            0 => {
                cluster.executors[0].kill();
                assert_eq!(ends(&mut driver), Some(0));
            }
            1 => {
                let bind = cluster.address.strip_prefix("ballista://").unwrap().to_owned();
                cluster.scheduler.kill();
                cluster.scheduler = scheduler(&project, &bind).0;
                // Executors of before register again by their heartbeats, or are started again.
                cluster.executors.iter_mut().for_each(super::servers::Server::kill);
                cluster.executors = vec![executor(&project, &cluster.address, &root, "three")];
                assert_eq!(ends(&mut driver), Some(0));
            }
            _ => {
                driver.kill().unwrap();
                driver.wait().unwrap();
            }
        }
        // The next run goes on from there.
        project.ok(&args);
        drop(cluster);
        sweep(&project, &root);
        assert_same(&project, "local", &root);
    }
}

#[test]
fn an_interrupted_run_cancels_its_work() {
    let project = project();
    let mut cluster = Cluster::of(&project, "data");
    cluster.executors.iter_mut().for_each(super::servers::Server::kill);
    let mut command = project.command(&["run", "j", "--on", &cluster.address]);
    let mut driver = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let pid = driver.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(ends(&mut driver), Some(130));
    assert_eq!(project.json(&["history"])[0]["outcome"], "interrupted");
}
