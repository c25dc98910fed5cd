//! Events of runs for lineage servers: OpenLineage's Python client knows them, and a server that fails changes no run.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::harness::system::python_script;
use crate::harness::{Project, Ran, json_lines};

const JOB: &str = r#"
name = "j"

[sources.readings]
files = ["in/*.csv"]
time = "ts"

[sources.readings.columns]
meter = "uint64"
ts = "timestamp"
kwh = "float64"

[tables.T]
row_key = "{meter:010}#{ts:%Y%m%d}"

[tables.T.families.M]
columns = [{ qualifier = "{ts:%H%M}", value = "{kwh}" }]

[exports.E]
per = "day"
name = "E/dt={day}"
query = { sql = "select meter, ts, kwh from T" }

[checks.few]
on = "T"
rows = { max = 2 }
severity = "warn"

[checks.whole]
on = "E"
not_null = ["kwh"]
"#;

/// Another job, whose export reads the table of the first.
const OTHER: &str = r#"
name = "k"

[exports.ALL]
per = "query"
name = "ALL"
query = { sql = "select count(*) as n from T" }
"#;

fn project(lineage: &str) -> Project {
    let project = Project::new("j", &format!("{JOB}\n[lineage]\n{lineage}\n"));
    project.write(
        "in/a.csv",
        "meter,ts,kwh\n1,2024-01-01T00:00:00Z,1.5\n2,2024-01-01T01:00:00Z,2.5\n2,2024-01-01T02:00:00Z,3.5\n",
    );
    project
}

/// A server on this machine that answers each request with `answer`, not at all if that is empty.
struct Server {
    url: String,
    /// The requests: their heads, and the events.
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Server {
    fn start(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/api/v1/lineage", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                seen.lock().unwrap().push(request(&stream));
                if answer.is_empty() {
                    silent.push(stream);
                } else {
                    let _ = write!(stream, "HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                }
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

fn request(stream: &TcpStream) -> (String, Value) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(bytes) = line.to_lowercase().strip_prefix("content-length:") {
            length = bytes.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (head, serde_json::from_slice(&body).unwrap())
}

/// The dataset of `list` whose name ends so.
fn dataset<'a>(event: &'a Value, list: &str, end: &str) -> &'a Value {
    let found = event[list].as_array().unwrap().iter().find(|of| of["name"].as_str().unwrap().ends_with(end));
    found.unwrap_or_else(|| panic!("no {end} in {event:#}"))
}

#[test]
fn events_say_what_a_run_read_and_wrote() {
    let project = project("file = \"log/lineage.jsonl\"\nnamespace = \"plant\"");
    project.ok(&["run", "j"]);
    let log = project.read("log/lineage.jsonl");
    let [begin, end] = &json_lines(&log)[..] else { panic!("{log}") };
    assert_eq!((&begin["eventType"], &end["eventType"]), (&"START".into(), &"COMPLETE".into()));
    assert_eq!(begin["run"]["runId"], end["run"]["runId"]);
    assert_eq!(end["job"]["namespace"], "plant");

    let input = dataset(end, "inputs", "/in");
    assert_eq!(input["namespace"], "file");
    assert_eq!(input["inputFacets"]["inputStatistics"]["rowCount"], 3);
    assert_eq!(input["inputFacets"]["inputStatistics"]["fileCount"], 1);
    assert_eq!(input["facets"]["schema"]["fields"][0], serde_json::json!({ "name": "meter", "type": "uint64" }));
    let few = &dataset(end, "inputs", "tables/T")["inputFacets"]["dataQualityAssertions"]["assertions"][0];
    assert_eq!((&few["success"], &few["actual"], &few["severity"]), (&false.into(), &"3".into(), &"warn".into()));
    let whole = &dataset(end, "inputs", "exports/E")["inputFacets"]["dataQualityAssertions"]["assertions"][0];
    assert_eq!((&whole["assertion"], &whole["success"]), (&"not_null".into(), &true.into()));

    let table = dataset(end, "outputs", "tables/T");
    assert_eq!(table["facets"]["version"]["datasetVersion"], "1");
    assert_eq!(table["outputFacets"]["outputStatistics"]["rowCount"], 2, "row keys");
    assert_eq!(dataset(end, "outputs", "exports/E")["outputFacets"]["outputStatistics"]["rowCount"], 3);

    // A run without news writes nothing, another job reads the table, and a run fails.
    project.ok(&["run", "j"]);
    project.write("jobs/k/job.toml", format!("{OTHER}\n[lineage]\nfile = \"log/lineage.jsonl\"\n"));
    project.ok(&["run", "k"]);
    project.write("in/b.csv", "meter,ts,kwh\nx,y,z\n");
    project.fails(1, &["run", "j"]);
    let events = json_lines(&project.read("log/lineage.jsonl"));
    let told: Vec<&str> = events.iter().map(|event| event["eventType"].as_str().unwrap()).collect();
    assert_eq!(told, ["START", "COMPLETE", "START", "COMPLETE", "START", "COMPLETE", "START", "FAIL"]);
    assert!(dataset(&events[3], "outputs", "tables/T")["outputFacets"].as_object().unwrap().is_empty());
    assert_eq!(events[5]["job"]["namespace"], "tidetable");
    dataset(&events[5], "inputs", "tables/T");
    let message = events[7]["run"]["facets"]["errorMessage"]["message"].as_str().unwrap();
    assert!(message.contains("in/b.csv"), "{message}");

    let file = project.path("log/lineage.jsonl");
    let Some(read) = python_script(&project, "openlineage.client", "interop/lineage_check.py", [file]) else { return };
    assert_eq!(read.trim(), "8");
}

#[test]
fn events_are_posted() {
    let server = Server::start("201 Created");
    let project = project(&format!("url = \"{}\"\ntoken = {{ env = \"TOKEN\" }}", server.url));
    let ran = Ran::of(project.command(&["run", "j"]).env("TOKEN", "HUSH"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let asked = server.asked();
    let told: Vec<&str> = asked.iter().map(|(_, event)| event["eventType"].as_str().unwrap()).collect();
    assert_eq!(told, ["START", "COMPLETE"]);
    for (head, _) in &asked {
        assert!(head.starts_with("POST /api/v1/lineage ") && head.contains("Bearer HUSH"), "{head}");
    }
}

#[test]
fn a_server_that_fails_changes_no_run() {
    let (refusing, silent) = (Server::start("401 Unauthorized"), Server::start(""));
    let moved = Server::start("301 Moved Permanently\r\nLocation: /other");
    let down = "http://127.0.0.1:1/HUSH".to_owned();
    for (url, told) in [
        (&refusing.url, "2 events: the answer is 401"),
        (&moved.url, "2 events: the answer is 301"),
        (&silent.url, "2 events: no answer within 2 s"),
        (&down, "2 events: "),
    ] {
        let project = project("url = { env = \"LINEAGE\" }");
        let ran = Ran::of(project.command(&["run", "j"]).env("LINEAGE", url));
        assert_eq!(ran.code, Some(0), "{url}: {}", ran.stderr);
        let told = format!("lineage was not told of this run: {told}");
        assert!(ran.stderr.contains(&told) && !ran.stderr.contains("HUSH"), "{url}: {}", ran.stderr);
        assert_eq!(project.sql("select count(*) as n from exports.E")[0]["n"], 3);
        let record = std::fs::read_dir(project.path("data/runs")).unwrap().next().unwrap().unwrap();
        let recorded = std::fs::read_to_string(record.path()).unwrap();
        assert!(recorded.contains("lineage was not told") && !recorded.contains("HUSH"), "{recorded}");
    }
    assert_eq!(moved.asked().len(), 2, "an event would be left out of what follows");
    assert!(
        project("url = { env = \"NO_SUCH_VARIABLE\" }")
            .run(&["run", "j"])
            .stderr
            .contains("NO_SUCH_VARIABLE is not set")
    );
    let project = project("file = \"pipe\"");
    assert!(Command::new("mkfifo").arg(project.path("pipe")).status().unwrap().success());
    assert!(project.run(&["run", "j"]).stderr.contains("it is no file"));
}

#[test]
fn a_target_is_one_url_or_one_file() {
    for (lineage, said) in [
        ("url = \"marquez\"", "`url` is not a URL"),
        ("url = \"http://127.0.0.1:1\"\nfile = \"a\"", "one `url` or one `file`"),
        ("namespace = \"plant\"", "one `url` or one `file`"),
        ("file = \"s3://plant/events\"", "s3://"),
        ("url = \"http://127.0.0.1:1\"\ntoken = \"HUSH\"", "token"),
    ] {
        let said_of = project(lineage).fails(2, &["check", "j"]);
        assert!(said_of.contains(said) && !said_of.contains("HUSH"), "{lineage}: {said_of}");
    }
}
