//! Backups: made while jobs run and vacuums go on, verified, restored; and what else may be done with a root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Mount, Project, json_lines, mount};

const EXPORT: &str = r#"
[exports.E]
per = "day"
name = "E_{day:%Y%m%d}"
query = { sql = "select meter, ts, kwh from T order by meter, ts" }
"#;

fn project() -> Project {
    let job = readings_job!("in/*.csv", "max_rejected = \"90%\"", "").to_owned() + EXPORT;
    let project = Project::new("j", &job);
    write_day(&project, 1, 1);
    project.write("in/bad.csv", "meter,ts,kwh\n1,2020-01-01T11:00:00Z,1\nx,y,z\n");
    project.ok(&["run", "j"]);
    project
}

fn write_day(project: &Project, day: u32, kwh: u32) {
    let readings = (0..20).map(|meter| format!("{meter},2020-01-{day:02}T10:00:00Z,{kwh}\n"));
    project.write(&format!("in/{day}.csv"), format!("meter,ts,kwh\n{}", readings.collect::<String>()));
}

fn backup(project: &Project) -> Value {
    json_lines(&project.ok(&["backup", "vault", "--output", "json"])).remove(0)
}

const CONTENTS: [&str; 4] = [
    "select * from T order by meter, ts",
    "select * from exports.E order by meter, ts",
    "select run, job, outcome, now from runs.runs order by run",
    "select * from runs.rejects",
];

fn contents(project: &Project, root: &str, queries: &[&str]) -> Vec<String> {
    queries.iter().map(|query| project.ok(&["sql", "--root", root, "--output", "json", "-c", query])).collect()
}

/// All files of a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

#[test]
fn what_is_restored_is_what_was_there() {
    let project = project();
    write_day(&project, 2, 2);
    project.ok(&["run", "j"]);
    let taken = backup(&project);
    assert_eq!((&taken["tables"], &taken["damaged"]), (&1.into(), &0.into()));
    let said = project.ok(&["restore", "vault", "restored"]);
    assert!(said.contains("each with its checksum"), "{said}");
    assert_eq!(contents(&project, "restored", &CONTENTS), contents(&project, "data", &CONTENTS));
    for command in ["verify", "doctor"] {
        assert!(project.ok(&[command, "--root", "restored"]).contains("sound"));
    }
    // It is a store like any: the next run finds nothing to do, and one after it goes on.
    let record = json_lines(&project.ok(&["run", "j", "--root", "restored", "--output", "json"])).remove(0);
    assert_eq!((&record["loads"][0]["version"], &record["loads"][0]["before"]), (&2.into(), &2.into()));
    write_day(&project, 1, 9);
    project.ok(&["run", "j", "--root", "restored"]);
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project, "restored", &CONTENTS[..2]), contents(&project, "data", &CONTENTS[..2]));
    project.ok(&["vacuum", "--root", "restored", "--older-than", "0s", "--yes"]);
    assert!(project.ok(&["verify", "--root", "restored", "--all-versions"]).contains("sound"));
}

#[test]
fn a_backup_copies_what_is_new_and_an_older_one_can_be_restored() {
    let project = project();
    let first = backup(&project);
    let before = contents(&project, "data", &CONTENTS);
    assert_eq!(backup(&project)["copied"], 0, "nothing is new");
    write_day(&project, 1, 7);
    write_day(&project, 2, 2);
    project.ok(&["run", "j"]);
    let third = backup(&project);
    assert!(third["copied"].as_u64() < first["copied"].as_u64().map(|files| files * 2), "{third}");
    project.ok(&["restore", "vault", "old", "--at", first["backup"].as_str().unwrap()]);
    assert_eq!(contents(&project, "old", &CONTENTS), before);
    project.ok(&["restore", "vault", "new"]);
    assert_eq!(contents(&project, "new", &CONTENTS), contents(&project, "data", &CONTENTS));
    assert_eq!(json_lines(&project.ok(&["backup", "vault", "--list", "--output", "json"])).len(), 3);

    let objects = files(&project.path("vault/objects")).len();
    project.ok(&["backup", "vault", "--keep", "1"]);
    assert!(files(&project.path("vault/objects")).len() < objects, "what no backup names is gone");
    project.fails(2, &["restore", "vault", "x", "--at", first["backup"].as_str().unwrap()]);
    assert!(project.ok(&["backup", "vault", "--verify"]).contains("sound: 1 backup"));
    project.ok(&["restore", "vault", "newest"]);
    assert_eq!(contents(&project, "newest", &CONTENTS), contents(&project, "data", &CONTENTS));
}

#[test]
fn nothing_is_written_over_and_nothing_is_taken_for_a_backup() {
    let project = project();
    backup(&project);
    let before = project.files("data");
    assert!(project.fails(2, &["restore", "vault"]).contains("holds a store already"));
    assert!(project.fails(2, &["restore", "vault", "data"]).contains("holds a store already"));
    assert_eq!(project.files("data"), before);
    assert!(project.fails(2, &["backup", "data/backups"]).contains("on another disk"));
    assert!(project.fails(2, &["backup", "jobs"]).contains("is not empty"));
    assert!(project.fails(2, &["restore", "jobs", "x"]).contains("holds no backups"));
    assert!(project.fails(2, &["backup", "other", "--root", "typo"]).contains("there is no folder"));
    fs::remove_dir_all(project.path("data")).unwrap();
    project.ok(&["restore", "vault"]);
    assert_eq!(project.files("data").keys().filter(|name| name.ends_with(".sst")).count(), 1);
    let lock = fs::File::open(project.path("vault/vault.lock")).unwrap();
    lock.lock().unwrap();
    assert!(project.fails(75, &["backup", "vault"]).contains("another backup"));
}

#[test]
fn damage_is_never_backed_up_nor_restored_as_sound() {
    let project = project();
    let sound = backup(&project);
    let objects = files(&project.path("vault/objects"));
    let object = objects.into_iter().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    // In the store: what is damaged is left out, and older backups stay.
    write_day(&project, 2, 2);
    project.ok(&["run", "j"]);
    let sst = files(&project.path("data/tables/T/sst")).pop().unwrap();
    let mut bytes = fs::read(&sst).unwrap();
    bytes[40] ^= 1;
    fs::write(&sst, &bytes).unwrap();
    let part = project.path("data/exports/E_20200102/part-0.parquet");
    fs::write(&part, "PAR1").unwrap();
    let said = project.fails(1, &["backup", "vault", "--keep", "1"]);
    assert!(said.contains(sst.file_name().unwrap().to_str().unwrap()) && said.contains("E_20200102"), "{said}");
    assert_eq!(json_lines(&project.ok(&["backup", "vault", "--list", "--output", "json"])).len(), 2);
    project.ok(&["restore", "vault", "old", "--at", sound["backup"].as_str().unwrap()]);

    // In the backups.
    let mut bytes = fs::read(&object).unwrap();
    bytes[20] ^= 1;
    fs::write(&object, &bytes).unwrap();
    assert!(project.fails(1, &["backup", "vault", "--verify"]).contains("damaged"));
    let said = project.fails(1, &["restore", "vault", "broken", "--at", sound["backup"].as_str().unwrap()]);
    assert!(said.contains(object.file_name().unwrap().to_str().unwrap()), "{said}");
    fs::write(project.path("vault/backups/01ZZZZZZZZZZZZZZZZZZZZZZZZ.json"), "{}").unwrap();
    assert!(project.fails(1, &["restore", "vault", "x"]).contains("take another backup"));
    assert!(!project.path("x").exists());
}

#[test]
fn a_restore_that_was_stopped_goes_on() {
    let project = project();
    let taken = backup(&project);
    project.ok(&["restore", "vault", "half"]);
    // As one leaves it that was killed: some files, and the mark.
    let sst = files(&project.path("half/tables/T/sst")).pop().unwrap();
    fs::write(&sst, "half").unwrap();
    fs::remove_file(project.path("half/exports/E.json")).unwrap();
    project.write("half/.restoring", taken["backup"].as_str().unwrap());
    for line in [&["tables"][..], &["run", "j"], &["verify"]] {
        let said = project.fails(2, &[line, &["--root", "half"]].concat());
        assert!(said.contains("is unfinished"), "{said}");
    }
    backup(&project);
    assert!(project.fails(2, &["restore", "vault", "half"]).contains("was being restored into"));
    project.ok(&["restore", "vault", "half", "--at", taken["backup"].as_str().unwrap()]);
    assert_eq!(contents(&project, "half", &CONTENTS), contents(&project, "data", &CONTENTS));
}

#[test]
fn a_store_that_cannot_be_written_can_be_backed_up() {
    let project = Project::new("j", &(readings_job!("in/*.csv", "", "").to_owned() + EXPORT));
    write_day(&project, 1, 1);
    let at = match Mount::new(&project, "8m") {
        Ok(at) => at,
        Err(reason) => {
            println!("skipped: no small file system can be mounted here: {reason}");
            return;
        }
    };
    project.ok(&["run", "j"]);
    let full = fs::File::create(project.path("data/filler")).unwrap();
    assert!(std::io::copy(&mut std::io::repeat(7), &mut &full).is_err(), "the disk is full");
    project.ok(&["backup", "vault"]);
    project.ok(&["restore", "vault", "full"]);
    drop(full);
    mount(&["-o", "remount,ro"], &at.0).unwrap();
    let ran = project.run(&["backup", "vault"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("no vacuum may run meanwhile"), "{}", ran.stderr);
    project.ok(&["restore", "vault", "read-only"]);
    for root in ["full", "read-only"] {
        assert_eq!(contents(&project, root, &CONTENTS), contents(&project, "data", &CONTENTS));
    }
    drop(at);
}

/// Ends a process with what it is at.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_backup_is_whole_while_jobs_run_and_vacuums_go_on() {
    let project = project();
    // Runs, compactions and vacuums, one after the other, as fast as they go.
    let script = "i=0; while :; do i=$((i+1)); d=$((i % 6 + 1)); \
        printf 'meter,ts,kwh\\n1,2020-01-%02dT10:00:00Z,%d\\n' $d $i > in/.next && mv in/.next in/$d.csv; \
        \"$0\" run j > /dev/null 2>&1; \"$0\" compact T --full > /dev/null 2>&1; \
        \"$0\" vacuum --older-than 0s --yes > /dev/null 2>&1; echo $i > turns; done";
    let binary = project.command(&[]).get_program().to_owned();
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", script])
        .arg(binary)
        .current_dir(project.path(""))
        .stdin(Stdio::null())
        .env_remove("TIDETABLE_ROOT");
    let turns =
        || fs::read_to_string(project.path("turns")).ok().and_then(|text| text.trim().parse::<u32>().ok()).unwrap_or(0);
    let _running = Running(command.spawn().unwrap());
    let clock = Instant::now();
    let mut taken = 0;
    while taken < 5 || turns() < 6 {
        assert!(clock.elapsed() < Duration::from_secs(120), "{taken} backups, {} turns", turns());
        backup(&project);
        let root = format!("restored{taken}");
        project.ok(&["restore", "vault", &root]);
        assert!(project.ok(&["verify", "--root", &root]).contains("T: sound"));
        let doctor = project.run(&["doctor", "--root", &root]);
        assert_eq!(doctor.code, Some(0), "{}", doctor.stdout);
        // The parts of its list can be read, each of them.
        project.ok(&["sql", "--root", &root, "-c", "select count(*) from exports.E"]);
        taken += 1;
    }
}

#[test]
fn a_backup_that_is_killed_is_run_again() {
    let project = project();
    for day in 2..8 {
        write_day(&project, day, day);
    }
    project.ok(&["run", "j"]);
    let mut pause = Duration::from_millis(1);
    let mut killed = 0;
    loop {
        let mut running =
            project.command(&["backup", "vault"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(pause);
        let _ = running.kill();
        if running.wait().unwrap().success() {
            break;
        }
        killed += 1;
        assert!(killed < 60, "it never ends well");
        pause = pause * 3 / 2;
    }
    assert!(killed > 2, "killed {killed} times");
    project.ok(&["restore", "vault", "restored"]);
    assert_eq!(contents(&project, "restored", &CONTENTS), contents(&project, "data", &CONTENTS));
    assert!(project.ok(&["backup", "vault", "--verify"]).contains("sound"));
    // Pins of a killed backup hold for an hour, and are no damage.
    assert_eq!(project.run(&["doctor"]).code, Some(0));
    project.ok(&["vacuum", "--older-than", "0s", "--yes"]);
    assert!(project.ok(&["verify"]).contains("sound"));
}

#[test]
fn a_root_may_be_moved_and_copied_while_no_job_runs() {
    let project = project();
    let before = contents(&project, "data", &CONTENTS);
    fs::rename(project.path("data"), project.path("moved")).unwrap();
    project.write("tidetable.toml", "root = \"moved\"\n");
    assert_eq!(contents(&project, "moved", &CONTENTS), before);
    let copied = std::process::Command::new("cp").args(["-a", "moved", "copy"]).current_dir(project.path("")).status();
    assert!(copied.unwrap().success());
    write_day(&project, 2, 2);
    for root in ["moved", "copy"] {
        project.ok(&["run", "j", "--root", root]);
        assert!(project.ok(&["verify", "--root", root]).contains("sound"));
    }
    assert_eq!(contents(&project, "moved", &CONTENTS[..2]), contents(&project, "copy", &CONTENTS[..2]));
}

#[test]
fn rows_that_failed_checks_come_back() {
    let check = "\n[checks.low]\non = \"T\"\nrange = { kwh = { max = 1 } }\n";
    let project = Project::new("j", &format!("{}{EXPORT}{check}", readings_job!("in/*.csv", "", "")));
    write_day(&project, 1, 1);
    write_day(&project, 2, 2);
    project.fails(3, &["run", "j"]);
    let query = ["select * from runs.failing_rows order by label, rule, row"];
    let kept = contents(&project, "data", &query);
    assert_eq!(json_lines(&kept[0]).len(), 5);
    backup(&project);
    project.ok(&["restore", "vault", "restored"]);
    assert_eq!(contents(&project, "restored", &query), kept);
    let samples = |root: &str| -> Vec<Vec<u8>> { project.files(&format!("{root}/failing")).into_values().collect() };
    assert_eq!((samples("data").len(), samples("restored")), (1, samples("data")));
    // A sample that is lost later is in the backup all the same.
    fs::remove_dir_all(project.path("data/failing")).unwrap();
    project.ok(&["restore", "vault", "again"]);
    assert_eq!(contents(&project, "again", &query), kept);
}
