//! Commands with closed pipes, full or read-only disks, and no terminal.

use std::fs;
use std::io::{Read, pipe};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::harness::system::{KilledOnDrop, Mount, mount, processor_ticks, ticks_until_the_end, wait_for};
use crate::harness::{Project, Ran, json_lines};

const JOB: &str = r#"
name = "j"

[sources.readings]
files = ["in/*.csv"]
time = "ts"
max_rejected = "50%"
columns = { meter = "uint64", ts = "timestamp", kwh = "float64" }

[messages.Reading]
fields = { kwh = 1 }

[tables.T]
row_key = "{meter:06}#{ts:%Y%m%d}"

[tables.T.families.M]
columns = [{ qualifier = "{ts:%H%M}", value = "{kwh}" }, { qualifier = "blob", message = "Reading" }]

[exports.E]
per = "day"
name = "E_{day:%Y%m%d}"
query = { sql = "select meter, ts, kwh from T order by meter, ts" }
"#;

/// A job that was run once, with rows that were rejected.
fn project() -> Project {
    let project = unrun();
    project.ok(&["run", "j"]);
    project
}

fn unrun() -> Project {
    let project = Project::new("j", JOB);
    for day in 1..=3 {
        let rows: Vec<String> =
            (0..400).map(|meter| format!("{meter},2020-01-0{day}T10:00:00Z,{meter}.{day}")).collect();
        project.write(&format!("in/{day}.csv"), format!("meter,ts,kwh\n{}\nx,y,z\n", rows.join("\n")));
        project.write("good.csv", format!("meter,ts,kwh\n{}\n", rows.join("\n")));
    }
    project
}

/// A line of words for each command, beside those that change the store for good.
fn commands(project: &Project) -> Vec<Vec<String>> {
    let folder = fs::read_dir(project.path("data/tables/T/sst")).unwrap();
    let sst = folder.map(|file| file.unwrap().path()).find(|path| path.is_file()).unwrap().display().to_string();
    let lines = [
        "run j",
        "run j --force",
        "run --all",
        "run j --dry-run",
        "plan j --from 2020-01-02",
        "sql -c SELECT",
        "sql -c SUMMARIZE",
        "read T",
        "tables",
        "describe T",
        "inspect SST",
        "proto T",
        "check j",
        "check --all",
        "status",
        "history",
        "lineage T",
        "rejects j",
        "clean",
        "export T --format csv -O out.csv",
        "new k --from good.csv --stdout",
        "schema job",
        "completions bash",
        "man",
        "delete T --row 000001#20200101 --yes",
        "drop-rows T --prefix 000002 --yes",
        "compact T --dry-run",
        "compact T --full",
        "repair T",
        "vacuum",
        "vacuum --older-than 0s --yes",
        "verify",
        "--help",
        "run --help",
        "--version",
    ];
    let word = |word: &str| match word {
        "SELECT" => "select * from T order by meter, ts".to_owned(),
        "SUMMARIZE" => "summarize T".to_owned(),
        "SST" => sst.clone(),
        _ => word.to_owned(),
    };
    lines.iter().map(|line| line.split(' ').map(word).collect()).collect()
}

/// Commands that fail, and with which code.
fn failing() -> Vec<(i32, Vec<&'static str>)> {
    vec![
        (2, vec!["run", "k"]),
        (2, vec!["run", "j", "--day", "soon"]),
        (2, vec!["frobnicate"]),
        (2, vec!["retry", "01XXXXXXXXXXXXXXXXXXXXXXXX"]),
        (2, vec!["sql", "-c", "select nothing from T"]),
        (2, vec!["read", "NONE"]),
        (2, vec!["describe", "NONE"]),
        (1, vec!["inspect", "none.sst"]),
        (2, vec!["drop-rows", "T", "--prefix", "1"]),
        (2, vec!["drop", "T"]),
    ]
}

fn words(line: &[String]) -> Vec<&str> {
    line.iter().map(String::as_str).collect()
}

#[test]
fn closed_standard_output_fails_no_command() {
    let project = project();
    for line in commands(&project) {
        for json in [false, true] {
            let mut command = project.command(&words(&line));
            if json && !line.iter().any(|word| word.starts_with("--help") || word == "--version") {
                command.args(["--output", "json"]);
            }
            let (reader, writer) = pipe().unwrap();
            drop(reader);
            command.stdout(writer).stderr(Stdio::piped());
            let done = command.spawn().unwrap().wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.code(), Some(0), "{line:?}: {said}");
            assert!(!said.contains("panicked") && !said.contains("Broken pipe"), "{line:?}: {said}");
        }
    }
}

#[test]
fn a_statement_ends_when_its_reader_has_gone() {
    let project = Project::empty();
    // It writes nothing before its end, hours later.
    let query = "select count(distinct v % 1000) from generate_series(1, 3000000000) as s (v)";
    let (reader, writer) = pipe().unwrap();
    let mut command = project.command(&["sql", "-c", query]);
    let mut child = KilledOnDrop(command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap());
    // Its own end of the pipe is the only one that writes.
    drop(command);
    wait_for("the statement", || processor_ticks(&child.0) > 100);
    assert!(child.0.try_wait().unwrap().is_none(), "it has ended");
    drop(reader);
    let before = processor_ticks(&child.0);
    let worked = ticks_until_the_end(&mut child.0) - before;
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
    assert!(worked < 300, "{worked} ticks");
}

#[test]
fn rows_are_written_into_a_socket() {
    let (mut reader, writer) = UnixStream::pair().unwrap();
    let project = Project::empty();
    let mut command = project.command(&["sql", "--output", "csv", "-c", "select 1 as n"]);
    let mut child = KilledOnDrop(command.stdout(OwnedFd::from(writer)).spawn().unwrap());
    drop(command);
    let mut told = String::new();
    reader.read_to_string(&mut told).unwrap();
    assert_eq!((child.0.wait().unwrap().code(), told.as_str()), (Some(0), "n\n1\n"));
}

#[test]
fn closed_pipe_keeps_the_exit_code_of_a_run() {
    let project = unrun();
    project.write("jobs/j/job.toml", JOB.replace("meter, ts, kwh from", "1 / (extract(day from ts) - 2) as x from"));
    project.write(
        "jobs/k/job.toml",
        JOB.replace("\"j\"", "\"k\"")
            .replace(".T", ".U")
            .replace(".E]", ".F]")
            .replace("E_", "F_")
            .replace("from T", "from U"),
    );
    let mut command = project.command(&["run", "--all"]);
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    command.stdout(writer).stderr(Stdio::piped());
    let done = command.spawn().unwrap().wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(4), "{}", String::from_utf8_lossy(&done.stderr));
    // The other job ran although the output of the first was not read.
    assert_eq!(project.sql("select count(*) as n from U")[0]["n"], 1200);
}

#[test]
fn closed_standard_error_changes_nothing() {
    let project = project();
    for (code, args) in [(0, vec!["run", "j", "--force", "--verbose"]), (2, vec!["run", "k"]), (0, vec!["check", "j"])]
    {
        let mut command = project.command(&args);
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        command.stderr(writer).stdout(Stdio::null()).env("RUST_LOG", "trace");
        assert_eq!(command.status().unwrap().code(), Some(code), "{args:?}");
    }
}

#[test]
fn output_without_a_terminal_has_no_colours() {
    let project = project();
    let plain = |ran: &Ran, args: &[&str]| {
        assert!(
            !ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'),
            "{args:?}: {}{}",
            ran.stdout,
            ran.stderr
        );
    };
    for line in commands(&project) {
        let mut command = project.command(&words(&line));
        command.env_remove("NO_COLOR").env("RUST_LOG", "info");
        let ran = Ran::of(&mut command);
        assert_eq!(ran.code, Some(0), "{line:?}: {}", ran.stderr);
        plain(&ran, &words(&line));
    }
    for (code, args) in failing() {
        let mut command = project.command(&args);
        command.env_remove("NO_COLOR");
        let ran = Ran::of(&mut command);
        assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.stderr);
        assert!(!ran.stderr.is_empty() && ran.stdout.is_empty(), "{args:?}: {}", ran.stdout);
        plain(&ran, &args);
    }
}

#[test]
fn json_log_contains_only_json_lines() {
    let project = project();
    let check = |ran: &Ran, args: &[&str]| {
        for line in ran.stderr.lines() {
            let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{args:?}: {error}: {line}"));
            assert!(value["level"].is_string(), "{args:?}: {line}");
        }
    };
    for line in commands(&project) {
        let mut command = project.command(&words(&line));
        command.args(["--log", "json"]).env("RUST_LOG", "debug");
        let ran = Ran::of(&mut command);
        assert_eq!(ran.code, Some(0), "{line:?}: {}", ran.stderr);
        check(&ran, &words(&line));
    }
    for (code, args) in failing() {
        for log in [&["--log", "json"][..], &["--log=json", "--verbose"]] {
            let args = [&args[..], log].concat();
            let ran = project.run(&args);
            assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.stderr);
            check(&ran, &args);
            let last: &Value = &json_lines(&ran.stderr).pop().unwrap();
            assert_eq!(last["level"], "error", "{args:?}: {}", ran.stderr);
            assert!(!last["message"].as_str().unwrap().is_empty());
        }
    }
    let ran = project.run(&["run", "j", "--force", "--log", "json"]);
    assert!(ran.stderr.contains("\"plan: "), "{}", ran.stderr);
}

#[test]
fn many_job_file_errors_are_truncated() {
    let keys: String = (0..40).map(|at| format!("wrong_{at} = 1\n")).collect();
    let project = Project::new("j", &format!("{keys}{JOB}"));
    let short = project.fails(2, &["check", "j"]);
    assert!(short.lines().count() <= 40, "{short}");
    assert!(short.contains("has 40 mistakes") && short.contains("wrong_0") && short.contains("and 30 more"), "{short}");
    assert!(short.contains("jobs/j/job.toml:3:1: unknown key `wrong_2`"), "{short}");
    let long = project.fails(2, &["check", "j", "--verbose"]);
    assert!((0..40).all(|at| long.contains(&format!("unknown key `wrong_{at}`"))), "{long}");
    assert_eq!(project.fails(2, &["check", "j", "--log", "json"]).lines().count(), 40);
}

#[test]
fn full_disk_loses_no_data() {
    let project = unrun();
    let Some(mount) = Mount::new(&project, "32k") else { return };
    for _ in 0..2 {
        let told = project.fails(1, &["run", "j"]);
        assert!(told.contains("No space left on device") && told.lines().count() < 25, "{told}");
        assert!(told.contains("KiB free. Nothing is lost") && told.contains("/data has"), "{told}");
    }
    drop(mount);
    fs::remove_dir_all(project.path("data")).unwrap();
    let mount = Mount::new(&project, "64m").unwrap();
    project.ok(&["run", "j"]);
    // Another program fills the disk.
    let free = fs::File::create(project.path("data/other")).unwrap();
    let full = std::io::copy(&mut std::io::repeat(7), &mut &free);
    assert!(full.is_err(), "the disk is full");
    project.write("in/4.csv", project.read("in/3.csv").replace("2020-01-03", "2020-01-04"));
    let told = project.fails(1, &["run", "j"]);
    assert!(told.contains("No space left on device") && told.contains("the next run goes on"), "{told}");
    assert_eq!(project.sql("select count(*) as n from T")[0]["n"], 1200);
    // An open file keeps its space.
    drop(free);
    fs::remove_file(project.path("data/other")).unwrap();
    project.ok(&["run", "j"]);
    assert_eq!(project.sql("select count(*) as n from T")[0]["n"], 1600);
    assert_eq!(project.sql("select count(*) as n from exports.E")[0]["n"], 1600);
    project.ok(&["verify"]);
    drop(mount);
}

/// Whatever the run could write at its end, its failed days are told by those who ask later.
#[test]
fn days_that_a_full_disk_held_back_are_named_later() {
    let project = unrun();
    let Some(mount) = Mount::new(&project, "16m") else { return };
    project.ok(&["run", "j"]);
    let mut held_back = 0;
    for (at, room) in (0..).zip([16, 24, 32, 40, 48, 64, 96]) {
        let day = format!("2020-02-{:02}", at + 1);
        project.write(&format!("in/{day}.csv"), project.read("in/3.csv").replace("2020-01-03", &day));
        let mut filler = fs::File::create(project.path("data/other")).unwrap();
        assert!(std::io::copy(&mut std::io::repeat(7), &mut filler).is_err(), "the disk is full");
        let length = filler.metadata().unwrap().len();
        filler.set_len(length.saturating_sub(room << 10)).unwrap();

        let ran = project.run(&["run", "j"]);
        assert_ne!(ran.code, Some(2), "{}", ran.stderr);
        let is_told = |line: &str| line.contains("is not published") && line.contains(&day.replace('-', ""));
        if ran.stderr.lines().any(is_told) {
            held_back += 1;
            let status = project.json(&["status", "j"]).remove(0);
            assert!(status["failed"].to_string().contains(&day), "{room} KiB: {status}{}", ran.stderr);
            let last = project.json(&["history", "--limit", "1"]).remove(0);
            assert!(last["failed"].as_u64().unwrap() > 0, "{room} KiB: {last}{}", ran.stderr);
        }
        // An open file keeps its space.
        drop(filler);
        fs::remove_file(project.path("data/other")).unwrap();
        project.ok(&["run", "j"]);
        assert_eq!(project.json(&["status", "j"]).remove(0)["failed"], serde_json::json!([]));
    }
    println!("{held_back} runs published less");
    assert!(held_back > 0, "no size of the disk lets a run load and not publish");
    drop(mount);
}

#[test]
fn a_small_disk_has_a_reserve_for_vacuum_too() {
    let project = unrun();
    let Some(mount) = Mount::new(&project, "2m") else { return };
    project.ok(&["run", "j"]);
    let reserve = fs::metadata(project.path("data/.reserve")).unwrap().len();
    assert!((64 << 10..512 << 10).contains(&reserve), "{reserve} bytes of 2 MiB");
    project.ok(&["run", "j", "--rebuild"]);
    let mut filler = fs::File::create(project.path("data/other")).unwrap();
    assert!(std::io::copy(&mut std::io::repeat(7), &mut filler).is_err(), "the disk is full");
    project.ok(&["vacuum", "--older-than", "0s", "--yes"]);
    assert_eq!(project.sql("select count(*) as n from T")[0]["n"], 1200);

    // With nothing else to remove, the reserve itself is room, and what it freed is told.
    assert!(std::io::copy(&mut std::io::repeat(7), &mut filler).is_err(), "the disk is full");
    assert!(project.path("data/.reserve").exists());
    let vacuum = project.succeeds(&["vacuum", "--yes"]);
    assert!(vacuum.stdout.contains("T: nothing to remove"), "{}", vacuum.stdout);
    assert!(vacuum.stderr.contains("of the reserve that the root keeps (.reserve) are free now"), "{}", vacuum.stderr);
    assert!(!project.path("data/.reserve").exists());
    drop(filler);
    drop(mount);
}

/// A limit of the size of files, which any machine has, stands for a disk that has no room.
#[test]
fn file_size_limit_loses_no_data() {
    let project = unrun();
    project.ok(&["run", "j"]);
    project.write("in/4.csv", project.read("in/3.csv").replace("2020-01-03", "2020-01-04"));
    let mut command = Command::new("sh");
    let binary = project.command(&[]).get_program().to_owned();
    command.args(["-c", "trap '' XFSZ; ulimit -f 4; exec \"$0\" run j"]).arg(binary).current_dir(project.path(""));
    let told = Ran::of(&mut command);
    // The day's file is the only one that is larger: its rows are in the table, and the other days stand.
    assert_eq!(told.code, Some(4), "{}{}", told.stdout, told.stderr);
    assert!(told.stderr.contains("File too large"), "{}", told.stderr);
    assert_eq!(project.sql("select count(*) as n from exports.E")[0]["n"], 1200);
    project.ok(&["run", "j"]);
    assert_eq!(project.sql("select count(*) as n from T")[0]["n"], 1600);
    assert_eq!(project.sql("select count(*) as n from exports.E")[0]["n"], 1600);
    project.ok(&["verify"]);
}

#[test]
fn read_only_store_can_be_read() {
    let project = unrun();
    let Some(mount_point) = Mount::new(&project, "64m") else { return };
    project.ok(&["run", "j"]);
    assert!(mount(&["-o", "remount,ro"], &mount_point.0));
    for line in [
        "plan j",
        "run j --dry-run",
        "read T --limit 1",
        "tables",
        "describe T",
        "proto T",
        "check j",
        "check --all",
        "status",
        "history",
        "lineage T",
        "rejects j",
        "clean",
        "export T --format csv -O out.csv",
        "new k --from good.csv --stdout",
        "schema job",
        "completions bash",
        "man",
        "verify",
        "vacuum",
        "compact T --dry-run",
    ] {
        project.ok(&line.split(' ').collect::<Vec<_>>());
    }
    assert_eq!(project.sql("select count(*) as n from T")[0]["n"], 1200);
    for line in ["run j", "compact T --full", "delete T --row 000001#20200101 --yes"] {
        let told = project.fails(1, &line.split(' ').collect::<Vec<_>>());
        assert!(told.contains("Read-only file system"), "{line}: {told}");
    }
    assert!(mount(&["-o", "remount,rw"], &mount_point.0));
    project.ok(&["run", "j", "--force"]);
    assert_eq!(project.sql("select count(*) as n from T")[0]["n"], 1200);
}

#[test]
fn root_that_is_a_file_is_an_error() {
    let project = unrun();
    project.write("file", "");
    let told = project.fails(1, &["run", "j", "--root", "file/below"]);
    assert!(told.contains(" plan: ") || told.contains(" error: "), "{told}");
    assert!(told.contains("file/below") && !told.contains("panicked"), "{told}");
}
