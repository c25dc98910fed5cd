//! Sources in object stores: settings and secrets.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

use crate::harness::{Project, Ran, json_lines, repository};

const ID: &str = "AKIATESTONLY";
const KEY: &str = "hush-hush-key-0123456789";
const TOKEN: &str = "hush-hush-token-0123456789";
pub(super) const CSV: &str = "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1.5\n2,2020-01-01T10:00:00Z,2.5\n";

fn job(files: &str, storage: &str) -> String {
    format!(
        r#"
name = "j"

[sources.readings]
files = ["{files}"]
time = "ts"
columns = {{ meter = "uint64", ts = "timestamp", kwh = "float64" }}
storage = {{ {storage} }}

[tables.T]
row_key = "{{meter:03}}#{{ts:%Y%m%d}}"

[tables.T.families.M]
columns = [{{ qualifier = "{{ts:%H%M}}", value = "{{kwh}}" }}]
"#
    )
}

const S3: &str = "region = \"eu-west-3\", endpoint = { env = \"T_ENDPOINT\" }, allow_http = true, \
                  access_key_id = { env = \"T_ID\" }, secret_access_key = { file = \"secrets/key\" }, \
                  session_token = { env = \"T_TOKEN\" }";

/// A server that holds one object, and the heads of the requests it got.
pub(super) struct Server {
    pub(super) endpoint: String,
    requests: Arc<Mutex<Vec<String>>>,
}

/// Answers on loopback for as long as the test's process lives; with `status`, if one is given, to everything.
pub(super) fn serve(status: Option<&'static str>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = answer(stream, status, &seen);
        }
    });
    Server { endpoint, requests }
}

fn answer(mut stream: TcpStream, status: Option<&str>, seen: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let mut head = Vec::new();
    while let Some(line) = lines.next().transpose()?.filter(|line| !line.is_empty()) {
        head.push(line);
    }
    seen.lock().unwrap().push(head.join("\n"));
    if let Some(status) = status {
        return write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
    let range = head.iter().find_map(|line| line.to_ascii_lowercase().strip_prefix("range: bytes=").map(str::to_owned));
    let length = CSV.len();
    let (status, extra) = match range {
        Some(_) => ("206 Partial Content", format!("Content-Range: bytes 0-{}/{length}\r\n", length - 1)),
        None => ("200 OK", String::new()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{extra}ETag: \"one\"\r\nLast-Modified: Wed, 01 Jan 2020 \
         00:00:00 GMT\r\nConnection: close\r\n\r\n"
    )?;
    if head.first().is_some_and(|line| line.starts_with("GET")) { stream.write_all(CSV.as_bytes()) } else { Ok(()) }
}

fn project(storage: &str) -> Project {
    let project = Project::new("j", &job("s3://readings/in/a.csv", storage));
    project.write("secrets/key", format!("{KEY}\n"));
    project
}

fn command(project: &Project, endpoint: &str, args: &[&str]) -> Command {
    let mut command = project.command(args);
    command.env("T_ENDPOINT", endpoint).env("T_ID", ID).env("T_TOKEN", TOKEN).env("RUST_LOG", "trace");
    // Not used: the job file takes precedence.
    command.env("AWS_ACCESS_KEY_ID", "other").env("AWS_SECRET_ACCESS_KEY", "other").env("AWS_SESSION_TOKEN", "other");
    command
}

/// Asserts that neither the output nor any written file contains a secret.
fn assert_secrets_hidden(project: &Project, ran: &Ran) {
    for secret in [KEY, TOKEN] {
        assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{}{}", ran.stdout, ran.stderr);
        let mut folders = vec![project.path("data")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let bytes = std::fs::read(&path).unwrap();
                assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{}", path.display());
            }
        }
    }
}

#[test]
fn source_uses_its_own_settings_and_hides_secrets() {
    let server = serve(None);
    let project = project(S3);
    for args in [
        &["plan", "j", "--verbose"][..],
        &["run", "j", "--verbose", "--output", "json"],
        &["run", "j", "--log", "json", "--verbose", "--force"],
        &["check", "j", "--verbose"],
        &["describe", "T"],
    ] {
        let ran = Ran::of(&mut command(&project, &server.endpoint, args));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_secrets_hidden(&project, &ran);
    }
    assert_eq!(project.sql("select sum(kwh) as kwh from T")[0]["kwh"], 4.0);
    let requests = server.requests.lock().unwrap();
    assert!(!requests.is_empty());
    for request in &*requests {
        assert!(request.contains(&format!("Credential={ID}/")) && request.contains("/eu-west-3/s3/"), "{request}");
        assert!(request.contains(TOKEN), "{request}");
    }
}

#[test]
fn refused_request_is_reported_without_secrets() {
    let server = serve(Some("403 Forbidden"));
    let project = project(S3);
    for args in [&["run", "j", "--verbose"][..], &["run", "j", "--verbose", "--log", "json"], &["plan", "j"]] {
        let ran = Ran::of(&mut command(&project, &server.endpoint, args));
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("s3://readings/in/a.csv"), "{}", ran.stderr);
        assert!(ran.stderr.contains("access to bucket readings denied"), "{}", ran.stderr);
        assert_secrets_hidden(&project, &ran);
    }
}

#[test]
fn missing_secret_is_reported_before_reading() {
    let server = serve(None);
    let project = project(S3);
    let missing = |name: &str| {
        let mut command = command(&project, &server.endpoint, &["run", "j"]);
        command.env_remove(name);
        Ran::of(&mut command)
    };
    let told = missing("T_TOKEN");
    assert_eq!(told.code, Some(2), "{}", told.stderr);
    assert!(told.stderr.contains("`session_token` of its storage: the environment variable T_TOKEN is not set"));
    project.write("secrets/key", "\n");
    let empty = Ran::of(&mut command(&project, &server.endpoint, &["run", "j"]));
    assert_eq!((empty.code, empty.stderr.contains("secrets/key is empty")), (Some(2), true), "{}", empty.stderr);
    std::fs::remove_file(project.path("secrets/key")).unwrap();
    let gone = Ran::of(&mut command(&project, &server.endpoint, &["plan", "j"]));
    assert_eq!((gone.code, gone.stderr.contains("cannot read")), (Some(2), true), "{}", gone.stderr);
    assert!(server.requests.lock().unwrap().is_empty());
    assert!(!project.path("data").exists());
    // A job file can be checked without its secrets.
    assert_eq!(Ran::of(&mut command(&project, &server.endpoint, &["check", "j"])).code, Some(0));
}

#[test]
fn secret_in_a_job_file_is_refused_and_hidden() {
    let project = project(&format!("region = \"r\", secret_access_key = \"{KEY}\""));
    for args in [&["run", "j"][..], &["check", "j", "--verbose"], &["plan", "j", "--log", "json"]] {
        let ran = project.run(args);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("`secret_access_key` is secret, and must not stand in a job file"),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("env = ") && ran.stderr.contains("NAME"), "{}", ran.stderr);
        assert_secrets_hidden(&project, &ran);
    }
    let place = project.run(&["check", "j", "--log", "json"]);
    let told = &json_lines(&place.stderr)[0];
    assert_eq!((told["line"].as_u64(), told["file"].as_str()), (Some(8), Some("jobs/j/job.toml")));
}

#[test]
fn storage_errors_have_a_position() {
    for (files, storage, told) in [
        ("in/*.csv", "region = \"r\"", "the source has none there"),
        ("s3://b/*.csv", "account_key = { env = \"X\" }", "`account_key` is for az://"),
        ("gs://b/*.csv", "region = \"r\"", "`region` is for s3://"),
        ("s3://b/*.csv", "regoin = \"r\"", "did you mean `region`?"),
        ("s3://b/*.csv", "session_token = { envv = \"X\" }", "did you mean `env`?"),
        ("s3://b/*.csv", "session_token = {}", "names neither one variable nor one file"),
        ("s3://b/*.csv", "session_token = { env = \"X\", file = \"y\" }", "names neither one variable nor one file"),
        ("s3://b/*.csv", "allow_http = \"yes\"", "`allow_http` takes true or false"),
    ] {
        let project = Project::new("j", &job(files, storage));
        let found = project.fails(2, &["check", "j"]);
        assert!(found.contains(told), "{storage}: {found}");
    }
}

#[test]
fn source_is_read_from_a_real_server() {
    let project = Project::new("j", &job("s3://proofs/in/*.csv", &S3.replace("secrets/key", "key")));
    project.write("key", KEY);
    project.write("a.csv", CSV);
    // The server parses a body of the default type as a form and would store an empty object.
    let put = "import os, urllib.request as u; \
               u.urlopen(u.Request(os.environ['AWS_ENDPOINT'] + '/proofs/in/a.csv', open('a.csv', 'rb').read(), \
               headers={'Content-Type': 'text/csv'}, method='PUT')); print('put')";
    let script = format!(
        "python3 -c \"{put}\" && T_ENDPOINT=$AWS_ENDPOINT && export T_ENDPOINT && unset AWS_ENDPOINT AWS_ALLOW_HTTP \
         AWS_REGION AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY && exec \"$0\" run j --output json --verbose --log json"
    );
    let binary = project.command(&[]).get_program().to_owned();
    let output = Command::new("python3")
        .arg(repository().join("crates/proof/bucket.py"))
        .arg(project.path("venv"))
        .args(["sh", "-c", &script])
        .arg(binary)
        .current_dir(project.path(""))
        .env("T_ID", ID)
        .env("T_TOKEN", TOKEN)
        .env("RUST_LOG", "trace")
        .env_remove("TIDETABLE_ROOT")
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            println!("skipped: no python3: {error}");
            return;
        }
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let ran = Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) };
    if ran.stdout.starts_with("skipped:") {
        println!("{}", ran.stdout.trim());
        return;
    }
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let record = json_lines(ran.stdout.strip_prefix("put\n").unwrap()).remove(0);
    assert_eq!((&record["outcome"], &record["loads"][0]["rows_read"]), (&"ok".into(), &2.into()));
    assert_secrets_hidden(&project, &ran);
    assert_eq!(project.sql("select sum(kwh) as kwh from T")[0]["kwh"], 4.0);
}
