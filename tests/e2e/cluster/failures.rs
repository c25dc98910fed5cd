//! Killed processes: no row is lost or doubled, and no run hangs.

use std::fs::File;
use std::io::Write;
use std::net::TcpListener;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use super::same_results::{assert_same, readings};
use super::servers::{Cluster, Server, ends, executor, executor_args, scheduler};
use crate::harness::Project;
use crate::harness::system::{Mount, wait_for};

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
        let file = File::options().append(true).open(project.path(&name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(7200)).unwrap();
    }
    project.ok(&["vacuum", "--root", root, "--older-than", "0s", "--yes"]);
}

/// When the scheduler of these tests counts an executor as lost: by default each kill of one could cost 40 seconds.
const LOST: &[&str] = &["--executor-timeout", "4s"];
const HEARTBEAT: &[&str] = &["--heartbeat", "1s"];

/// A cluster that soon notices that an executor is lost.
fn impatient(project: &Project, root: &str) -> Cluster {
    Cluster::by(&|args| project.command(args), root, LOST, HEARTBEAT)
}

/// How long a run takes on a cluster that has just started.
fn length(project: &Project) -> Duration {
    let cluster = Cluster::of(project, "first");
    let begun = Instant::now();
    project.ok(&["run", "j", "--root", "first", "--now", NOW, "--on", &cluster.address]);
    begun.elapsed()
}

#[test]
fn killed_processes_lose_and_double_nothing() {
    let project = project();
    project.ok(&["run", "j", "--root", "local", "--now", NOW]);
    let length = length(&project);
    let mut hits = 0;
    for kill in 0..kills() {
        let root = format!("far{kill}");
        let mut cluster = impatient(&project, &root);
        let args = ["run", "j", "--root", &root, "--now", NOW, "--on", &cluster.address];
        let mut command = project.command(&args);
        let messages = File::create(project.path("messages")).unwrap();
        let mut driver = command.stdout(Stdio::null()).stderr(messages).spawn().unwrap();
        // A run that has not yet reached the scheduler when that is killed may say so, and end.
        let goes_on = |driver: &mut std::process::Child, may_not_reach: bool| {
            let (code, said) = (ends(driver), project.read("messages"));
            assert!(
                code == Some(0) || may_not_reach && said.contains("cannot be reached"),
                "kill {kill}: {code:?}: {said}"
            );
        };
        // Spread over the run. What it hits differs from machine to machine; what must hold does not.
        std::thread::sleep(length.mul_f64((kill as f64 * 0.618).fract()));
        hits += u32::from(driver.try_wait().unwrap().is_none());
        match kill % 3 {
            0 => {
                cluster.executors[0].kill();
                goes_on(&mut driver, false);
            }
            1 => {
                let bind = cluster.address.strip_prefix("ballista://").unwrap().to_owned();
                cluster.scheduler.kill();
                let again = [&["scheduler", "--bind", &bind], LOST].concat();
                cluster.scheduler = Server::announced(project.command(&again)).0;
                // Executors of before register again by their heartbeats, or are started again.
                cluster.executors.iter_mut().for_each(Server::kill);
                let third = [&executor_args(&cluster.address, &root, "three")[..], HEARTBEAT].concat();
                cluster.executors = vec![Server::start(project.command(&third))];
                goes_on(&mut driver, true);
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
        std::fs::remove_dir_all(project.path(&root)).unwrap();
    }
    println!("{} kills, {hits} of them during a run of {length:?}", kills());
}

#[test]
fn an_executor_starts_again_under_its_name() {
    let project = project();
    let (_scheduler, address) = scheduler(&project, "127.0.0.1:0");
    // Well within the 40 seconds after which one counts as lost.
    let mut one = executor(&project, &address, "far", "one");
    one.kill();
    let mut again = executor(&project, &address, "far", "one");
    again.signal("TERM");
    assert_eq!(again.wait(), Some(0));
    let _third = executor(&project, &address, "far", "one");
    project.ok(&["run", "j", "--root", "far", "--now", NOW, "--on", &address]);

    // The name of one that lives is taken.
    let said = project.fails(1, &executor_args(&address, "far", "one"));
    assert!(said.contains("an executor called one answers at 127.0.0.1:"), "{said}");
    assert!(
        said.contains("choose another --name") && said.contains("after 40 s without one it counts as lost"),
        "{said}"
    );
    assert!(!said.contains("Grpc") && !said.contains("message:"), "{said}");
}

#[test]
fn logs_of_servers_have_time_and_level_and_no_warnings_after_success() {
    let project = project();
    let log = |name: &str| project.path(name);
    let serve = ["scheduler", "--bind", "127.0.0.1:0"];
    let (scheduler, address) = Server::announced_with_log(project.command(&serve), &log("scheduler.log"));
    let args = executor_args(&address, "far", "one");
    // Without --quiet.
    let executor = Server::with_log(project.command(&args[..args.len() - 1]), &log("executor.log"));
    for more in [&[][..], &["--rebuild"]] {
        project.ok(&[&["run", "j", "--root", "far", "--now", NOW, "--on", &address][..], more].concat());
    }
    drop((executor, scheduler));

    for (name, said) in
        [("scheduler.log", "executor one at 127.0.0.1:"), ("executor.log", "executor one of ballista://")]
    {
        let text = project.read(name);
        assert!(text.contains(said), "{text}");
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let time = words.next().unwrap();
            assert!(chrono::DateTime::parse_from_rfc3339(time).is_ok(), "{line}");
            assert_eq!(words.next(), Some("INFO"), "{line}");
        }
    }
}

#[test]
fn an_executor_that_is_silent_is_given_up_in_the_time_that_was_set() {
    let project = project();
    let cluster = impatient(&project, "far");
    let args = ["run", "j", "--root", "far", "--now", NOW, "--on", &cluster.address];
    project.ok(&args);
    // It holds its connections, and says nothing.
    cluster.executors[0].signal("STOP");
    let begun = Instant::now();
    let again = [&args[..], &["--rebuild"]].concat();
    let mut command = project.command(&again);
    let mut driver = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert_eq!(ends(&mut driver), Some(0));
    let took = begun.elapsed();
    println!("with a silent executor: {took:?}");
    assert!(took < Duration::from_secs(30), "{took:?}");
    // It is one of the cluster again when it goes on, or was told to end.
    cluster.executors[0].signal("CONT");
    project.ok(&again);
    project.ok(&["run", "j", "--root", "local", "--now", NOW]);
    drop(cluster);
    sweep(&project, "far");
    assert_same(&project, "local", "far");
}

#[test]
fn an_executor_with_a_full_disk_for_answers_leaves_and_the_run_goes_on() {
    let project = project();
    let Some(disk) = Mount::small(project.path("answers"), "24m") else { return };
    let log = |name: &str| project.path(name);
    let serve = ["scheduler", "--bind", "127.0.0.1:0"];
    let (_scheduler, address) = Server::announced_with_log(project.command(&serve), &log("scheduler.log"));
    let args = [&executor_args(&address, "far", "full")[..], &["--work-dir", "answers"]].concat();
    let mut full = Server::with_log(project.command(&args), &log("full.log"));
    wait_for("the executor", || project.read("scheduler.log").contains("executor full at"));
    let _one = executor(&project, &address, "far", "one");

    let mut filler = File::create(disk.0.join("filler")).unwrap();
    while filler.write_all(&[0; 4096]).is_ok() {}
    project.ok(&["run", "j", "--root", "far", "--now", NOW, "--on", &address]);
    assert_eq!(full.wait(), Some(1));
    let (own, of_scheduler) = (project.read("full.log"), project.read("scheduler.log"));
    assert!(own.contains("executor full cannot write answers to answers: No space left on device"), "{own}");
    assert!(of_scheduler.contains("executor full has left: executor full cannot write answers to"), "{of_scheduler}");

    // It does not start, either, as long as there is no room.
    let again = project.fails(1, &args);
    assert!(again.contains("No space left on device") && again.contains("--work-dir"), "{again}");
    project.ok(&["run", "j", "--root", "local", "--now", NOW]);
    sweep(&project, "far");
    assert_same(&project, "local", "far");
}

#[test]
fn servers_say_what_they_wait_for_and_who_has_left() {
    let project = project();
    // The port is free again when the listener is dropped.
    let bind = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let address = format!("ballista://{bind}");
    let mut one =
        Server::with_log(project.command(&executor_args(&address, "far", "one")), &project.path("executor.log"));
    let waiting = format!("waiting for the scheduler at {address}, 1 s of at most 60 s");
    wait_for("the line", || project.read("executor.log").contains(&waiting));

    let serve = ["scheduler", "--bind", &bind];
    let (_scheduler, _) = Server::announced_with_log(project.command(&serve), &project.path("scheduler.log"));
    wait_for("the executor", || project.read("scheduler.log").contains("executor one at"));
    one.signal("TERM");
    assert_eq!(one.wait(), Some(0));
    let log = project.read("scheduler.log");
    assert!(log.contains("executor one has left: it was stopped by SIGTERM"), "{log}");
}

#[test]
fn an_interrupted_run_cancels_its_work() {
    let project = project();
    let mut cluster = Cluster::of(&project, "data");
    cluster.executors.iter_mut().for_each(Server::kill);
    let mut command = project.command(&["run", "j", "--on", &cluster.address]);
    let mut driver = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let pid = driver.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(ends(&mut driver), Some(130));
    assert_eq!(project.json(&["history"])[0]["outcome"], "interrupted");
}
