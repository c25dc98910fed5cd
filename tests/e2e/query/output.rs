//! Output to standard output, files, links, pipes, devices and terminals.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::system::on_terminal;
use crate::harness::{Project, json_lines};

const DAY: &str = readings_job!("in/*.csv", "", "");

/// A project with a table of six cells.
fn project() -> Project {
    let project = Project::new("j", DAY);
    let mut rows = String::from("meter,ts,kwh\n");
    for (meter, hour) in (1..=3).flat_map(|meter| [0, 12].map(|hour| (meter, hour))) {
        rows.push_str(&format!("{meter},2020-01-01T{hour:02}:00:00Z,{meter}.5\n"));
    }
    project.write("in/a.csv", rows);
    project.ok(&["run", "j"]);
    project
}

/// Runs a command that writes less into `pipe` than a pipe holds, and reads the pipe. A command that writes beside the
/// pipe leaves it empty.
fn through(project: &Project, pipe: &Path, args: &[&str]) -> Vec<u8> {
    const O_NONBLOCK: i32 = 0o4000;
    // Opened for reading and writing, so that neither end blocks.
    let mut reader = fs::OpenOptions::new().read(true).write(true).custom_flags(O_NONBLOCK).open(pipe).unwrap();
    project.ok(args);
    let mut bytes = Vec::new();
    let ended = reader.read_to_end(&mut bytes);
    assert!(ended.is_err_and(|error| error.kind() == ErrorKind::WouldBlock));
    bytes
}

#[test]
fn links_and_pipes_are_written_through() {
    let project = project();
    project.ok(&["export", "T", "--to", "plain.csv"]);
    let csv = fs::read(project.path("plain.csv")).unwrap();
    let query = "select * from cells.T";
    // A link to the device in a directory of the test, as in /dev.
    symlink("/proc/self/fd/1", project.path("stdout")).unwrap();
    for to in ["-", "stdout", "/dev/stdout"] {
        let ran = project.run(&["export", "T", "--to", to, "--format", "csv"]);
        assert_eq!((ran.code, ran.stdout.as_bytes()), (Some(0), csv.as_slice()), "{to}: {}", ran.stderr);
        assert!(ran.stderr.contains("wrote 6 cells to standard output"), "{}", ran.stderr);
        assert_eq!(project.ok(&["sql", "-c", query, "-O", to, "--output", "csv"]).as_bytes(), csv, "{to}");
    }
    assert!(!project.path("-").exists());
    assert!(fs::symlink_metadata(project.path("stdout")).unwrap().is_symlink());
    assert!(fs::symlink_metadata("/dev/stdout").unwrap().is_symlink());

    fs::create_dir(project.path("inside")).unwrap();
    for (name, target) in [("old", "inside/old.csv"), ("open", "inside/new.csv")] {
        symlink(target, project.path(&format!("{name}.csv"))).unwrap();
    }
    project.write("inside/old.csv", "before");
    for (to, target) in [("old.csv", "inside/old.csv"), ("open.csv", "inside/new.csv")] {
        for args in [["export", "T", "--to", to].as_slice(), &["sql", "-c", query, "-O", to]] {
            project.ok(args);
            assert_eq!(fs::read(project.path(target)).unwrap(), csv, "{args:?}");
            assert!(fs::symlink_metadata(project.path(to)).unwrap().is_symlink(), "{args:?}");
        }
    }

    let pipe = project.path("pipe.csv");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let to = pipe.to_str().unwrap();
    assert_eq!(through(&project, &pipe, &["export", "T", "--to", to]), csv);
    assert_eq!(through(&project, &pipe, &["sql", "-c", query, "-O", to]), csv);
    let parquet = through(&project, &pipe, &["export", "T", "--to", to, "--format", "parquet"]);
    project.ok(&["export", "T", "--to", "plain.parquet"]);
    assert_eq!(parquet, fs::read(project.path("plain.parquet")).unwrap());
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());

    // A device made by the test, if it may make one.
    let null = project.path("null");
    let made = Command::new("mknod").arg(&null).args(["c", "1", "3"]).output().unwrap().status.success();
    symlink(if made { null.to_str().unwrap() } else { "/dev/null" }, project.path("link-to-null")).unwrap();
    for to in [made.then_some("null"), Some("link-to-null")].into_iter().flatten() {
        project.ok(&["export", "T", "--to", to]);
        project.ok(&["sql", "-c", query, "-O", to]);
    }
    assert!(!made || fs::symlink_metadata(&null).unwrap().file_type().is_char_device());
    assert!(fs::symlink_metadata(project.path("link-to-null")).unwrap().is_symlink());
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());

    assert!(project.fails(2, &["export", "T", "--to", "inside"]).contains("names no file"));
    assert!(project.fails(2, &["export", "T", "--to", "nowhere/x.csv"]).contains("nowhere/x.csv"));
}

#[test]
fn format_follows_the_file_extension() {
    let project = project();
    for (name, begins) in [
        ("x.csv", "row_key,"),
        ("x.json", "{\"row_key\":"),
        ("x.ndjson", "{\"row_key\":"),
        ("x.parquet", "PAR1"),
        ("x.PARQUET", "PAR1"),
        ("x.arrow", "ARROW1"),
        ("x.bigtable.parquet", "PAR1"),
    ] {
        project.ok(&["export", "T", "--to", name]);
        let bytes = fs::read(project.path(name)).unwrap();
        assert!(bytes.starts_with(begins.as_bytes()), "{name}: {}", String::from_utf8_lossy(&bytes[..40]));
    }
    project.ok(&["export", "T", "--to", "cells.cbt.csv"]);
    assert!(
        project.read("cells.cbt.csv").lines().next().unwrap().starts_with(','),
        "{}",
        project.read("cells.cbt.csv")
    );
    // UTF-8 bytes are printed as text.
    assert!(project.read("x.csv").contains("\n001#20200101,M,0000,"), "{}", project.read("x.csv"));
    assert!(project.read("x.csv").lines().nth(1).unwrap().ends_with(",1.5"), "{}", project.read("x.csv"));
    assert_eq!(json_lines(&project.read("x.json"))[0]["row_key"], "001#20200101");
    for (name, begins) in [("y.md", "| n |\n| --: |\n| 1 |\n"), ("y.txt", "┌───┐"), ("y.jsonl", "{\"n\":1}\n")]
    {
        project.ok(&["sql", "-c", "select 1 as n", "-O", name]);
        assert!(project.read(name).starts_with(begins), "{}", project.read(name));
    }
    for name in ["x.xlsx", "x", "x.csv.gz", "parquet"] {
        for args in [["export", "T", "--to", name].as_slice(), &["sql", "-c", "select 1 as n", "-O", name]] {
            let said = project.fails(2, args);
            assert!(said.contains(".parquet") && said.contains(".csv") && said.contains(name), "{said}");
            assert!(!project.path(name).exists(), "{args:?}");
        }
    }
    project.ok(&["export", "T", "--to", "x.xlsx", "--format", "csv"]);
    assert_eq!(project.read("x.xlsx"), project.read("x.csv"));
    project.ok(&["sql", "-c", "select 1 as n", "-O", "z.csv", "--output", "json"]);
    assert_eq!(project.read("z.csv"), "{\"n\":1}\n");
    project.ok(&["--output", "table", "sql", "-c", "select 1 as n", "-O", "z"]);
    assert!(project.read("z").starts_with('┌'));
    assert!(project.ok(&["--output", "line", "sql", "-c", "select 1 as n"]).contains("n │ 1\n"));
    assert_eq!(project.ok(&["sql", "--output", "markdown", "-c", "select 'a|b' as x"]), "| x |\n| --- |\n| a\\|b |\n");
}

/// Almost endless rows: a command that waits for all of them never writes the first.
const MANY: &str = "select value as n, value * 2 as twice from generate_series(1, 1000000000000)";

#[test]
fn rows_are_streamed_until_the_reader_ends() {
    let project = project();
    for output in ["table", "json", "csv", "markdown", "line"] {
        let mut command = project.command(&["sql", "--output", output, "-c", MANY]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let some: Vec<String> = lines.by_ref().take(3_000).map(Result::unwrap).collect();
        assert_eq!(some.len(), 3_000, "{output}");
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib: Option<u64> = resident.and_then(|line| line.trim().split(' ').next()?.parse().ok());
        assert!(kib.is_none_or(|kib| kib < 400 << 10), "{output}: {kib:?} KiB");
        drop(lines);
        let done = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success() && said.is_empty(), "{output}: {:?} {said}", done.status);
    }
    // The same for a named pipe.
    let pipe = project.path("pipe.csv");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut command = project.command(&["export", "-c", MANY, "--to", "pipe.csv"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(fs::File::open(&pipe).unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, "n,twice\n");
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn terminal_output_is_truncated_with_a_note() {
    let project = project();
    let wide: Vec<String> = (0..60).map(|at| format!("'some words {at}' as column_{at}")).collect();
    let query = format!("select {} from generate_series(1, 3)", wide.join(", "));
    let shown = on_terminal(&project, 80, &["sql", "-c", &query], "");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    assert!(shown.contains("column_0 ") && shown.contains("column_59"), "{shown}");
    assert!(shown.lines().last().unwrap().contains(" of 60 columns: --output line shows all"), "{shown}");

    let shown = on_terminal(&project, 80, &["sql", "-c", MANY], "");
    assert_eq!(shown.lines().count(), 1_005, "{}", shown.lines().last().unwrap());
    assert!(shown.ends_with("the first 1,000 rows, and there are more: --max-rows 0 shows all\n"), "{shown}");
    let few =
        on_terminal(&project, 80, &["sql", "--max-rows", "0", "-c", "select * from generate_series(1, 1500)"], "");
    assert_eq!(few.lines().count(), 1_504);
    assert_eq!(project.ok(&["sql", "-c", "select * from generate_series(1, 1500)"]).lines().count(), 1_504);
    assert!(project.ok(&["sql", "--max-rows", "2", "-c", MANY]).contains("the first 2 rows"));
    let read = on_terminal(&project, 60, &["read", "T", "--max-rows", "4"], "");
    assert!(read.ends_with("the first 4 rows, and there are more: --max-rows 0 shows all\n"), "{read}");

    // Messages are wrapped, not truncated.
    let shown = on_terminal(&project, 70, &["status"], "");
    assert!(shown.lines().all(|line| line.chars().count() <= 70), "{shown}");
    let blob = "select arrow_cast(decode(repeat('ff', 500), 'hex'), 'Binary') as sketch";
    let shown = on_terminal(&project, 200, &["sql", "-c", blob], "");
    assert!(shown.contains("\\xff.. (500 bytes)"), "{shown}");
    assert!(project.ok(&["sql", "-c", blob]).contains(&"\\xff".repeat(500)));
}

#[test]
fn columns_are_shown_without_rows_in_every_output() {
    let project = project();
    for query in [
        "select meter, kwh from T limit 0",
        "select meter, kwh from T where kwh < 0",
        "select 1 as meter, 2 as kwh limit 0",
    ] {
        for output in ["table", "csv", "markdown"] {
            let shown = project.ok(&["sql", "-c", query, "--output", output]);
            assert!(shown.contains("meter") && shown.contains("kwh"), "{query} as {output}: {shown}");
        }
        for (file, output) in [("none.parquet", "parquet"), ("none.arrow", "arrow"), ("stream.arrow", "arrows")] {
            project.ok(&["sql", "-c", query, "--output", output, "-O", file]);
            let read = project.ok(&["sql", "-c", &format!("select * from '{file}'"), "--output", "csv"]);
            assert_eq!(read, "meter,kwh\n", "{query} as {output}");
        }
        // An object has the names of its columns, and there is none.
        assert_eq!(project.ok(&["sql", "-c", query, "--output", "json"]), "");
    }
}

#[test]
fn intervals_are_read_at_a_glance_in_every_output() {
    let project = project();
    let query = "select interval '2 days 12 hours' as v, interval '1 month' as m, \
                 timestamp '2020-01-03 12:00:00' - timestamp '2020-01-01' as d";
    let wanted = ["2 days 12:00:00", "1 month", "2 days 12:00:00"];
    assert_eq!(project.ok(&["sql", "-c", query, "--output", "csv"]), format!("v,m,d\n{}\n", wanted.join(",")));
    let row = &json_lines(&project.ok(&["sql", "-c", query, "--output", "json"]))[0];
    assert_eq!([&row["v"], &row["m"], &row["d"]], wanted);
    for output in ["table", "line", "markdown"] {
        let shown = project.ok(&["sql", "-c", query, "--output", output]);
        assert_eq!(shown.matches("2 days 12:00:00").count(), 2, "{output}: {shown}");
    }
}
