//! Drivers and what is built on them: psycopg, SQLAlchemy, pgjdbc, and the first queries of dashboards.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::served::{Served, all_types};
use crate::harness::system::{python_script, skipped};
use crate::harness::{Project, Ran, repository};

const PSYCOPG: &str = "psycopg";

#[test]
fn queries_are_answered_as_by_sql() {
    let project = all_types();
    let served = Served::start(&project, &[]);
    let command = project.command(&[]).get_program().to_str().unwrap().to_owned();
    let mut args = vec![served.port().to_owned(), command, project.path("").display().to_string()];
    let mut suites: Vec<PathBuf> = std::fs::read_dir(repository().join("crates/sql/tests/slt"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "slt"))
        .collect();
    suites.sort();
    args.extend(suites.iter().map(|path| path.display().to_string()));
    python_script(&project, PSYCOPG, "postgres/queries_check.py", args);
}

#[test]
fn psycopg_works() {
    let project = all_types();
    let served = Served::start(&project, &[]);
    python_script(&project, PSYCOPG, "postgres/drivers_check.py", [served.port()]);
}

#[test]
fn sqlalchemy_reflects_tables() {
    let project = all_types();
    let served = Served::start(&project, &[]);
    python_script(&project, "psycopg, sqlalchemy", "postgres/reflection_check.py", [served.port()]);
}

/// The jar of PostgreSQL's driver for Java, where it is installed.
fn jdbc() -> Option<PathBuf> {
    let named = std::env::var_os("TIDETABLE_PGJDBC").map(PathBuf::from);
    let places = named.into_iter().chain([PathBuf::from("/usr/share/java/postgresql.jar")]);
    let found = places.into_iter().find(|place| place.is_file());
    if found.is_none() {
        skipped("pgjdbc is not here: name its jar in TIDETABLE_PGJDBC");
    }
    found
}

#[test]
fn pgjdbc_works() {
    let Some(jar) = jdbc() else { return };
    if Command::new("java").arg("-version").output().is_err() {
        return skipped("java is not here");
    }
    let project = all_types();
    let served = Served::start(&project, &[]);
    let mut command = Command::new("java");
    command.arg("-cp").arg(&jar).arg(repository().join("tests/e2e/postgres/JdbcCheck.java")).arg(served.port());
    let ran = Ran::of(&mut command);
    if ran.stderr.contains("Could not find or load") || ran.stderr.contains("jdk.compiler") {
        return skipped("java has no compiler here");
    }
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn first_queries_of_dashboards_are_answered() {
    let project = all_types();
    let served = Served::start(&project, &[]);
    let folder = repository().join("tests/data/postgres");
    for file in ["grafana.sql", "metabase.sql", "dbeaver.sql"] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        let mut asked = 0;
        for query in text.split(";\n").map(str::trim).filter(|query| !query.is_empty()) {
            let expects = query.lines().find_map(|line| line.strip_prefix("-- expects: "));
            let Some(ran) = served.psql(&["-A", "-t", "-c", query]) else { return };
            assert_eq!(ran.code, Some(0), "{file}: {query}\n{}", ran.stderr);
            if let Some(expected) = expects {
                assert!(ran.stdout.contains(expected), "{file}: {query}\n{}", ran.stdout);
            }
            asked += 1;
        }
        assert!(asked >= 5, "{file}: {asked}");
    }
}

/// Counts the rows that a stream sends until the end of a statement, without holding them.
fn count_rows(stream: &mut TcpStream) -> u64 {
    let (mut rows, mut buffer, mut have) = (0, vec![0_u8; 1 << 20], 0);
    loop {
        let read = stream.read(&mut buffer[have..]).unwrap();
        assert!(read > 0, "the connection has ended");
        have += read;
        let mut at = 0;
        while have - at >= 5 {
            let length = u32::from_be_bytes(buffer[at + 1..at + 5].try_into().unwrap()) as usize + 1;
            if have - at < length {
                break;
            }
            match buffer[at] {
                b'D' => rows += 1,
                b'E' => panic!("{}", String::from_utf8_lossy(&buffer[at..at + length])),
                b'Z' => return rows,
                _ => {}
            }
            at += length;
        }
        buffer.copy_within(at..have, 0);
        have -= at;
    }
}

fn send(stream: &mut TcpStream, kind: &[u8], body: &[u8]) {
    stream.write_all(kind).unwrap();
    stream.write_all(&u32::try_from(body.len() + 4).unwrap().to_be_bytes()).unwrap();
    stream.write_all(body).unwrap();
}

/// Most memory that a process has had, KiB.
fn peak(served: &Served) -> u64 {
    let status = std::fs::read_to_string(Path::new("/proc").join(served.process.0.id().to_string()).join("status"));
    let status = status.unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn many_rows_take_little_memory() {
    let project = Project::smart_meters();
    project.ok(&["run", "smart-meters"]);
    let served = Served::start(&project, &[]);
    let mut stream = TcpStream::connect(&served.address).unwrap();
    send(&mut stream, b"", b"\0\x03\0\0user\0a\0\0");
    assert_eq!(count_rows(&mut stream), 0);
    send(&mut stream, b"Q", b"SELECT * FROM SENSOR\0");
    let rows = count_rows(&mut stream);
    assert!(rows > 5_000, "{rows}");

    let before = served.resident();
    let times = 10_000_000 / rows + 1;
    let query = format!("SELECT S.* FROM generate_series(1, {times}) AS g (x), SENSOR AS S\0");
    send(&mut stream, b"Q", query.as_bytes());
    assert_eq!(count_rows(&mut stream), rows * times);
    let grown = peak(&served).saturating_sub(before);
    assert!(grown < 150 << 10, "by {grown} KiB from {before} KiB");
}
