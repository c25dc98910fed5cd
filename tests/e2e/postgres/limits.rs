//! Limits: clients, time, memory, bytes that are none of the protocol; and how a server ends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::served::Served;
use crate::harness::Project;
use crate::harness::system::{python_script, signal, status_at_the_end, wait_for};

/// A query that takes minutes.
const LONG: &str = "SELECT count(*) FROM generate_series(1, 100000) AS a (x), generate_series(1, 1000000) AS b (y) WHERE x * y % 7 = 3";
/// What the client for Python needs.
const PSYCOPG: &str = "psycopg";

fn loaded() -> Project {
    let project = Project::new("j", readings_job!("*.csv", "", ""));
    project.write("one.csv", "meter,ts,kwh\n1,2024-01-01T00:00:00Z,1.5\n");
    project.ok(&["run", "j"]);
    project
}

/// A message that begins a session of user `a`.
fn startup() -> Vec<u8> {
    let body = b"\0\x03\0\0user\0a\0\0";
    [&u32::try_from(body.len() + 4).unwrap().to_be_bytes()[..], body].concat()
}

fn connected(served: &Served) -> TcpStream {
    let stream = TcpStream::connect(&served.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// A session that has begun.
fn session(served: &Served) -> TcpStream {
    let mut stream = connected(served);
    stream.write_all(&startup()).unwrap();
    let answer = read_until(&mut stream, b"Z\0\0\0\x05I");
    assert!(answer.is_some(), "no session");
    stream
}

/// What a stream sends until it holds `end`; `None` if it ends before.
fn read_until(stream: &mut TcpStream, end: &[u8]) -> Option<Vec<u8>> {
    let mut seen = Vec::new();
    let mut buffer = [0; 4_096];
    while !seen.windows(end.len()).any(|window| window == end) {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => seen.extend_from_slice(&buffer[..count]),
        }
    }
    Some(seen)
}

/// All that a stream sends until its end.
fn rest(stream: &mut TcpStream) -> String {
    let mut seen = Vec::new();
    let _ = stream.read_to_end(&mut seen);
    String::from_utf8_lossy(&seen).into_owned()
}

#[test]
fn clients_beyond_the_limit_are_refused() {
    let project = loaded();
    let served = Served::start(&project, &["--max-clients", "2"]);
    let first = session(&served);
    let _second = session(&served);
    let mut third = connected(&served);
    third.write_all(&startup()).unwrap();
    let refusal = rest(&mut third);
    assert!(refusal.contains("53300") && refusal.contains("--max-clients"), "{refusal}");
    // A place is free again when its client goes.
    drop(first);
    wait_for("a free place", || {
        let mut stream = connected(&served);
        stream.write_all(&startup()).unwrap();
        read_until(&mut stream, b"Z\0\0\0\x05I").is_some()
    });
}

#[test]
fn statements_end_in_time() {
    let project = loaded();
    let served = Served::start(&project, &["--statement-timeout", "1s"]);
    let Some(said) = served.refusal(LONG) else { return };
    assert!(said.contains("57014") && said.contains("--statement-timeout"), "{said}");

    // A client may ask for less, not for more: the time that the message names is that which counts.
    assert!(said.contains("it ran for 1s"), "{said}");
    let said = served.refusal(&format!("SET statement_timeout = '90s'; {LONG}")).unwrap();
    assert!(said.contains("57014") && said.contains("it ran for 1s"), "{said}");
    let patient = Served::start(&project, &[]);
    let said = patient.refusal(&format!("SET statement_timeout = '200ms'; {LONG}")).unwrap();
    assert!(said.contains("57014") && said.contains("it ran for 200ms"), "{said}");
}

#[test]
fn a_query_holds_no_more_than_its_memory() {
    let project = loaded();
    let served = Served::start(&project, &["--request-memory", "16MiB"]);
    let Some(said) = served.refusal("SELECT length(repeat('x', 2000000000))") else { return };
    assert!(said.contains("53200"), "{said}");
    // A sort that exceeds it spills.
    let sorted = "SELECT max(w) FROM (SELECT v, v * 2 AS w FROM generate_series(1, 1500000) AS s (v) ORDER BY w DESC)";
    assert_eq!(served.rows(sorted).unwrap(), "3000000");
}

#[test]
fn bytes_that_are_none_of_the_protocol_end_a_connection_only() {
    let project = loaded();
    let served = Served::start(&project, &[]);
    let mut state = 11_u64;
    let mut random = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    for round in 0..200 {
        let mut stream = if round % 2 == 0 { connected(&served) } else { session(&served) };
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let kinds = b"QPBDECSHXpdcfz\0\xff";
        let mut bytes = Vec::new();
        for _ in 0..1 + random(4) {
            if round % 2 == 1 {
                bytes.push(kinds[random(kinds.len() as u64) as usize]);
            }
            let body: Vec<u8> = (0..random(40)).map(|_| random(256) as u8).collect();
            let length = if random(3) == 0 { random(1 << 32) as u32 } else { body.len() as u32 + 4 };
            bytes.extend(length.to_be_bytes());
            bytes.extend(body);
        }
        let _ = stream.write_all(&bytes);
        let mut buffer = [0; 1_024];
        let _ = stream.read(&mut buffer);
    }
    for request in ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\x16\x03\x01\0\x05hello"] {
        let mut stream = connected(&served);
        stream.write_all(request.as_bytes()).unwrap();
        // The server may have ended the connection before this.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = rest(&mut stream);
    }
    let _ = session(&served);
    // What panics ends its connection only, and would not be seen by clients.
    assert!(!served.log().contains("panicked"), "{}", served.log());
}

#[test]
fn a_statement_is_cancelled() {
    let project = loaded();
    let served = Served::start(&project, &[]);
    python_script(&project, PSYCOPG, "postgres/cancel_check.py", [served.port(), LONG]);
}

#[test]
fn a_client_that_leaves_ends_its_query() {
    let project = loaded();
    let served = Served::start(&project, &["--max-clients", "1"]);
    let mut stream = session(&served);
    let body = [LONG.as_bytes(), b"\0"].concat();
    stream.write_all(b"Q").unwrap();
    stream.write_all(&u32::try_from(body.len() + 4).unwrap().to_be_bytes()).unwrap();
    stream.write_all(&body).unwrap();
    drop(stream);
    // Its place is free long before the query would have ended.
    wait_for("the end of the query", || {
        let mut stream = connected(&served);
        stream.write_all(&startup()).unwrap();
        read_until(&mut stream, b"Z\0\0\0\x05I").is_some()
    });
}

#[test]
fn clients_that_send_nothing_are_ended_if_they_asked_for_it() {
    let project = loaded();
    let served = Served::start(&project, &[]);
    for (statement, code) in [
        ("SET idle_session_timeout = '50ms'", "57P05"),
        ("SET idle_in_transaction_session_timeout = '50ms'; BEGIN", "25P03"),
    ] {
        let mut stream = session(&served);
        let body = [statement.as_bytes(), b"\0"].concat();
        stream.write_all(b"Q").unwrap();
        stream.write_all(&u32::try_from(body.len() + 4).unwrap().to_be_bytes()).unwrap();
        stream.write_all(&body).unwrap();
        let answer = rest(&mut stream);
        assert!(answer.contains(code) && answer.contains("FATAL"), "{statement}: {answer}");
    }
}

#[test]
fn signals_end_a_server_and_idle_clients_are_told() {
    let project = loaded();
    for name in ["-INT", "-TERM"] {
        let mut served = Served::start(&project, &[]);
        let mut idle = session(&served);
        signal(served.process.0.id(), name);
        assert!(rest(&mut idle).contains("57P01"));
        assert_eq!(status_at_the_end(&mut served.process.0).code(), Some(0), "{name}");
        // The pins of its versions are gone.
        let pins = project.path("data/tables/T/pin");
        assert!(!pins.exists() || std::fs::read_dir(pins).unwrap().next().is_none());
    }
}

#[test]
fn statements_that_run_finish_when_a_server_ends() {
    let project = loaded();
    let served = Served::start(&project, &[]);
    let mut stream = session(&served);
    let query = b"SELECT x FROM generate_series(1, 300000) AS a (x)\0";
    stream.write_all(b"Q").unwrap();
    stream.write_all(&u32::try_from(query.len() + 4).unwrap().to_be_bytes()).unwrap();
    stream.write_all(query).unwrap();
    // It has begun when its columns are here.
    assert!(read_until(&mut stream, b"T\0\0\0").is_some());
    signal(served.process.0.id(), "-TERM");
    let answer = rest(&mut stream);
    assert!(answer.contains("SELECT 300000") && answer.contains("57P01"), "{}", answer.len());
}
