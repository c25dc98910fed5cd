//! A root in a container of azurite, Microsoft's emulator of Azure Blob Storage: code that is not ours.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::harness::system::{KilledOnDrop, skipped, wait_for};
use crate::harness::{Project, Ran, json_lines};

/// The account of every azurite, and its key, as Microsoft publishes them.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

const JOB: &str = readings_job!(
    "in/*.csv",
    "",
    "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\n\
     query = { sql = \"select meter, ts, kwh from T order by meter, ts\" }\n"
);

/// HMAC (RFC 2104) with SHA-256.
fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let pad = |with: u8| -> Vec<u8> { (0..64).map(|at| key.get(at).copied().unwrap_or(0) ^ with).collect() };
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().to_vec()
}

/// Creates the container `meters`.
fn create_container(address: &str) {
    let (date, version) = (chrono::Utc::now().format("%a, %d %b %Y %H:%M:%S GMT"), "2021-08-06");
    let headers = format!("x-ms-date:{date}\nx-ms-version:{version}\n");
    let text = format!("PUT\n\n\n\n\n\n\n\n\n\n\n\n{headers}/{ACCOUNT}/{ACCOUNT}/meters\nrestype:container");
    let signature = STANDARD.encode(hmac(&STANDARD.decode(KEY).unwrap(), text.as_bytes()));
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "PUT /{ACCOUNT}/meters?restype=container HTTP/1.1\r\nHost: {address}\r\nx-ms-date: {date}\r\nx-ms-version: {version}\r\n\
         Authorization: SharedKey {ACCOUNT}:{signature}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 201"), "{reply}");
}

#[test]
fn a_root_in_azurite_works() {
    let Some(azurite) = std::env::var_os("TIDETABLE_AZURITE").map(PathBuf::from).filter(|path| path.is_file()) else {
        skipped("TIDETABLE_AZURITE does not name azurite-blob: `just test` installs it where npm is");
        return;
    };
    let project = Project::new("j", JOB);
    // The port is free again when the listener is dropped.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = Command::new(azurite);
    command.args(["--silent", "--disableTelemetry", "--inMemoryPersistence", "--blobHost", "127.0.0.1", "--blobPort"]);
    command.arg(address.port().to_string()).current_dir(project.path(""));
    let _server = KilledOnDrop(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap());
    wait_for("azurite", || TcpStream::connect(address).is_ok());
    create_container(&address.to_string());
    project.write(
        "tidetable.toml",
        format!(
            "[root]\nurl = \"az://meters/prod\"\n[root.storage]\nendpoint = \"http://{address}/{ACCOUNT}\"\n\
             allow_http = true\naccount_name = \"{ACCOUNT}\"\naccount_key = {{ env = \"T_KEY\" }}\n"
        ),
    );
    let ok = |args: &[&str]| {
        let ran = Ran::of(project.command(args).env("T_KEY", KEY));
        assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
        assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY), "{args:?}");
        ran.stdout
    };
    project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1.5\n2,2020-01-02T10:00:00Z,2.5\n");
    assert!(ok(&["check", "j"]).contains("reached, and writes conditionally"));
    ok(&["run", "j"]);
    project.write("in/b.csv", "meter,ts,kwh\n2,2020-01-02T11:00:00Z,3.5\n");
    ok(&["run", "j"]);
    let sql = |query: &str| json_lines(&ok(&["sql", "--output", "json", "-c", query]));
    let kwh = [json!({"kwh": 1.5}), json!({"kwh": 2.5}), json!({"kwh": 3.5})];
    assert_eq!(sql("select kwh from T order by ts"), kwh);
    assert_eq!(sql("select kwh from exports.E order by ts"), kwh);
    ok(&["compact", "T"]);
    ok(&["vacuum", "--older-than", "0s", "--yes"]);
    assert!(ok(&["verify"]).contains("sound") && ok(&["verify", "--exports"]).contains("sound"));
    assert!(ok(&["run", "j"]).contains("0 new rows"));
    ok(&["copy", "az://meters/prod", "folder"]);
    assert_eq!(project.json(&["--root", "folder", "sql", "-c", "select kwh from T order by ts"]), kwh);
}
