//! Backups during runs and vacuums; restoring and moving a root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::system::{KilledOnDrop, Mount, mount};
use crate::harness::{Project, flip_bit, json_lines};

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
    project.json(&["backup", "vault"]).remove(0)
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

/// All files below a directory.
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
fn restored_store_equals_the_original() {
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
    // The next run finds nothing to do, and a later one loads new rows.
    let record = project.json(&["run", "j", "--root", "restored"]).remove(0);
    assert_eq!((&record["loads"][0]["version"], &record["loads"][0]["before"]), (&2.into(), &2.into()));
    write_day(&project, 1, 9);
    project.ok(&["run", "j", "--root", "restored"]);
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project, "restored", &CONTENTS[..2]), contents(&project, "data", &CONTENTS[..2]));
    project.ok(&["vacuum", "--root", "restored", "--older-than", "0s", "--yes"]);
    assert!(project.ok(&["verify", "--root", "restored", "--all-versions"]).contains("sound"));
}

#[test]
fn backup_is_incremental_and_older_backups_can_be_restored() {
    let project = project();
    let first = backup(&project);
    let before = contents(&project, "data", &CONTENTS);
    assert_eq!(backup(&project)["copied"], 0, "nothing is new");
    write_day(&project, 1, 7);
    write_day(&project, 2, 2);
    project.ok(&["run", "j"]);
    let third = backup(&project);
    assert!(third["copied"].as_u64() < first["copied"].as_u64().map(|files| files * 2), "{third}");
    let told = project.messages(&["restore", "vault", "old", "--at", first["backup"].as_str().unwrap()]);
    assert!(told.contains("rows of inputs that were loaded since and are gone are missing"), "{told}");
    assert_eq!(contents(&project, "old", &CONTENTS), before);
    project.ok(&["restore", "vault", "new"]);
    assert_eq!(contents(&project, "new", &CONTENTS), contents(&project, "data", &CONTENTS));
    assert_eq!(project.json(&["backup", "vault", "--list"]).len(), 3);

    let objects = files(&project.path("vault/objects")).len();
    project.ok(&["backup", "vault", "--keep", "1"]);
    assert!(files(&project.path("vault/objects")).len() < objects, "what no backup names is gone");
    project.fails(2, &["restore", "vault", "x", "--at", first["backup"].as_str().unwrap()]);
    assert!(project.ok(&["backup", "vault", "--verify"]).contains("sound: 1 backup"));
    project.ok(&["restore", "vault", "newest"]);
    assert_eq!(contents(&project, "newest", &CONTENTS), contents(&project, "data", &CONTENTS));
}

#[test]
fn backup_and_restore_overwrite_nothing() {
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
fn damaged_files_are_not_backed_up_or_restored() {
    let project = project();
    let sound = backup(&project);
    let objects = files(&project.path("vault/objects"));
    let object = objects.into_iter().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    // Damage in the store: damaged files are left out, and older backups stay.
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
    assert_eq!(project.json(&["backup", "vault", "--list"]).len(), 2);
    project.ok(&["restore", "vault", "old", "--at", sound["backup"].as_str().unwrap()]);
    // A backup without them is not sound, although all that it holds is.
    let listed = project.json(&["backup", "vault", "--list"]);
    let incomplete =
        listed.iter().find(|backup| backup["backup"] != sound["backup"]).unwrap()["backup"].as_str().unwrap();
    let ran = project.run(&["backup", "vault", "--verify"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("incomplete: 2 backups"), "{}", ran.stdout);
    for lacks in [sst.file_name().unwrap().to_str().unwrap(), "E_20200102/part-0.parquet"] {
        let is_named = |line: &str| line.contains(&format!("not in backup {incomplete}")) && line.contains(lacks);
        assert!(ran.stdout.lines().any(is_named), "{}", ran.stdout);
    }
    assert!(ran.stderr.contains("2 files are damaged"), "{}", ran.stderr);
    let rows = project.run(&["backup", "vault", "--verify", "--output", "json"]);
    assert_eq!((rows.code, json_lines(&rows.stdout).len()), (Some(1), 2), "{}", rows.stdout);

    // Damage in the backups.
    let mut bytes = fs::read(&object).unwrap();
    bytes[20] ^= 1;
    fs::write(&object, &bytes).unwrap();
    assert!(project.fails(1, &["backup", "vault", "--verify"]).contains("damaged"));
    let ran = project.run(&["restore", "vault", "broken", "--at", sound["backup"].as_str().unwrap()]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains(object.file_name().unwrap().to_str().unwrap()), "{}", ran.stderr);
    let files = sound["files"].as_u64().unwrap();
    assert!(ran.stdout.contains(&format!("{} of {files} files, each with its checksum", files - 1)), "{}", ran.stdout);
    fs::write(project.path("vault/backups/01ZZZZZZZZZZZZZZZZZZZZZZZZ.json"), "{}").unwrap();
    assert!(project.fails(1, &["restore", "vault", "x"]).contains("take another backup"));
    assert!(!project.path("x").exists());
}

#[test]
fn a_damaged_backup_is_mended_as_it_says() {
    let project = project();
    backup(&project);
    let objects = files(&project.path("vault/objects"));
    let object = objects.into_iter().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap();
    flip_bit(&object);
    let said = project.fails(1, &["backup", "vault", "--verify"]);
    assert!(said.contains("remove these files from the folder of backups, and take another backup"), "{said}");
    fs::remove_file(&object).unwrap();
    backup(&project);
    assert!(project.ok(&["backup", "vault", "--verify"]).contains("sound: 2 backups"));
}

#[test]
fn interrupted_restore_continues() {
    let project = project();
    let taken = backup(&project);
    project.ok(&["restore", "vault", "half"]);
    // The state after a killed restore: some files, and its mark.
    let sst = files(&project.path("half/tables/T/sst")).pop().unwrap();
    fs::write(&sst, "half").unwrap();
    fs::remove_file(project.path("half/exports/E.json")).unwrap();
    let id = taken["backup"].as_str().unwrap();
    project.write("half/.restoring", format!("{id}\n{}\n", project.path("vault").display()));
    for line in [&["tables"][..], &["run", "j"], &["verify"]] {
        let said = project.fails(2, &[line, &["--root", "half"]].concat());
        assert!(said.contains("is unfinished") && said.contains(&format!("half --at {id}`")), "{said}");
    }
    project.write("half/.restoring", id);
    let said = project.fails(2, &["tables", "--root", "half"]);
    assert!(said.contains("restore` goes on with it"), "{said}");

    backup(&project);
    assert!(project.fails(2, &["restore", "vault", "half"]).contains("was being restored into"));
    project.ok(&["restore", "vault", "half", "--at", id]);
    assert_eq!(contents(&project, "half", &CONTENTS), contents(&project, "data", &CONTENTS));
}

#[test]
fn read_only_store_can_be_backed_up() {
    let project = Project::new("j", &(readings_job!("in/*.csv", "", "").to_owned() + EXPORT));
    write_day(&project, 1, 1);
    let Some(at) = Mount::new(&project, "8m") else { return };
    project.ok(&["run", "j"]);
    let full = fs::File::create(project.path("data/filler")).unwrap();
    assert!(std::io::copy(&mut std::io::repeat(7), &mut &full).is_err(), "the disk is full");
    project.ok(&["backup", "vault"]);
    project.ok(&["restore", "vault", "full"]);
    drop(full);
    assert!(mount(&["-o", "remount,ro"], &at.0));
    let ran = project.run(&["backup", "vault"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("no vacuum may run meanwhile"), "{}", ran.stderr);
    project.ok(&["restore", "vault", "read-only"]);
    for root in ["full", "read-only"] {
        assert_eq!(contents(&project, root, &CONTENTS), contents(&project, "data", &CONTENTS));
    }
    drop(at);
}

#[test]
fn backup_is_consistent_during_runs_and_vacuums() {
    let project = project();
    // Runs, compactions and vacuums, one after the other, without pause.
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
    let _running = KilledOnDrop(command.spawn().unwrap());
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
        // Each part of its list can be read.
        project.ok(&["sql", "--root", &root, "-c", "select count(*) from exports.E"]);
        taken += 1;
    }
}

#[test]
fn killed_backup_can_be_run_again() {
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
fn idle_root_can_be_moved_and_copied() {
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
fn failing_rows_of_checks_are_restored() {
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
    // A sample that is lost later is still in the backup.
    fs::remove_dir_all(project.path("data/failing")).unwrap();
    project.ok(&["restore", "vault", "again"]);
    assert_eq!(contents(&project, "again", &query), kept);
}

#[test]
fn a_copy_into_another_or_a_newer_root_writes_nothing() {
    let project = project();
    project.ok(&["copy", "data", "older"]);
    write_day(&project, 2, 2);
    project.ok(&["run", "j"]);

    // A newer state of the store, and another one: a table, or only an export, that the copied store does not have.
    let other = self::project();
    fs::rename(other.path("data"), project.path("other")).unwrap();
    fs::create_dir_all(project.path("lists/exports")).unwrap();
    project.write("lists/exports/ELSE.json", "{}");
    for root in ["data", "other", "lists"] {
        let before = project.files(root);
        let told = project.fails(2, &["copy", "older", root]);
        assert!(told.contains("holds another store, or a newer one"), "{root}: {told}");
        let unchanged = project.files(root).into_iter().filter(|(name, _)| !name.contains("/locks/"));
        assert_eq!(
            unchanged.collect::<Vec<_>>(),
            before.into_iter().filter(|(name, _)| !name.contains("/locks/")).collect::<Vec<_>>(),
            "{root}"
        );
    }

    // The older copy is brought up to the newer store.
    project.ok(&["copy", "data", "older"]);
    assert_eq!(contents(&project, "older", &CONTENTS[..2]), contents(&project, "data", &CONTENTS[..2]));
}
