//! Connections with TLS: the same results, and refusals that say what to do.

use std::process::Command;

use super::same_results::{JOB, NOW, assert_same, readings};
use super::servers::{Cluster, Server, executor_args};
use crate::harness::{Project, Ran, repository};

/// Arguments of a server with a certificate; others need one, too.
const MUTUAL: &[&str] = &["--tls-cert", "node.pem", "--tls-key", "node.key", "--tls-ca", "ca.pem"];
/// Settings of a run that has one.
const SETTINGS: &str = "ca = \"ca.pem\"\ncert = \"node.pem\"\nkey = \"node.key\"\n";

/// A project with inputs, and the certificates beside them.
fn project(files: u64) -> Project {
    let project = Project::new("j", JOB);
    (0..files).for_each(|file| project.write(&format!("in/{file:02}.csv"), readings(file, 9)));
    let certificates = repository().join("tests/e2e/cluster/certificates");
    for name in ["ca.pem", "node.pem", "node.key", "elsewhere.pem", "other-ca.pem", "stranger.pem", "stranger.key"] {
        project.write(name, std::fs::read(certificates.join(name)).unwrap());
    }
    project
}

/// Writes `[cluster]` of the project.
fn settings(project: &Project, text: &str) {
    project.write("tidetable.toml", format!("root = \"data\"\n[cluster]\n{text}"));
}

#[test]
fn work_by_tls_has_the_results_of_one_process() {
    let project = project(8);
    let cluster = Cluster::by(&|args| project.command(args), "far", MUTUAL, MUTUAL);
    assert!(cluster.address.starts_with("ballista+tls://127.0.0.1:"), "{}", cluster.address);
    settings(&project, &format!("url = \"{}\"\n{SETTINGS}", cluster.address));
    project.ok(&["run", "j", "--root", "local", "--now", NOW, "--on", "local"]);
    let run = project.json(&["run", "j", "--root", "far", "--now", NOW]).remove(0);
    assert_same(&project, "local", "far");
    let names: Vec<&str> =
        run["executors"].as_array().unwrap().iter().map(|by| by["executor"].as_str().unwrap()).collect();
    assert_eq!(names, ["one", "two"], "{run}");
    project.ok(&["compact", "WIDE", "--full", "--root", "local", "--now", NOW, "--on", "local"]);
    project.ok(&["compact", "WIDE", "--full", "--root", "far", "--now", NOW]);
    assert_same(&project, "local", "far");
}

#[test]
fn clients_that_lack_something_are_told_what() {
    let project = project(1);
    project.ok(&["run", "j"]);
    let cluster = Cluster::by(&|args| project.command(args), "data", MUTUAL, MUTUAL);
    let address = cluster.address.as_str();
    settings(&project, SETTINGS);
    let run = ["run", "j", "--force", "--on", address];
    for (text, words) in [
        ("cert = \"node.pem\"\nkey = \"node.key\"\n", "from no authority that is trusted here: name the file"),
        ("ca = \"other-ca.pem\"\ncert = \"node.pem\"\nkey = \"node.key\"\n", "from no authority that is trusted here"),
        ("ca = \"ca.pem\"\n", "it wants a certificate of this process: name its file"),
        (
            "ca = \"ca.pem\"\ncert = \"stranger.pem\"\nkey = \"stranger.key\"\n",
            "does not accept the certificate of this process",
        ),
        ("ca = \"ca.pem\"\ncert = \"node.pem\"\nkey = \"stranger.key\"\n", "cannot be used for TLS"),
        ("ca = \"node.key\"\n", "node.key holds no certificate in PEM"),
        ("ca = \"missing.pem\"\n", "missing.pem"),
    ] {
        settings(&project, text);
        let said = project.fails(1, &run);
        assert!(said.contains(words), "{text}: {said}");
    }
    // By another name than that of the certificate.
    settings(&project, SETTINGS);
    let other_name = address.replace("127.0.0.1", "127.0.0.2");
    let bound = Server::announced(project.command(&[&["scheduler", "--bind", "127.0.0.2:0"], MUTUAL].concat()));
    assert!(bound.1.starts_with(other_name.rsplit_once(':').unwrap().0), "{}", bound.1);
    let said = project.fails(1, &["run", "j", "--force", "--on", &bound.1]);
    assert!(said.contains("its certificate is for another name"), "{said}");
    // In clear to a server with TLS, and the other way round.
    let clear = address.replace("ballista+tls", "ballista");
    let said = project.fails(2, &["run", "j", "--force", "--on", &clear]);
    assert!(said.contains(&format!("is not encrypted, but certificates are named for it: write {address}")), "{said}");
    project.write("tidetable.toml", "root = \"data\"\n");
    let said = project.fails(1, &["run", "j", "--force", "--on", &clear]);
    assert!(said.contains("a scheduler with TLS is written ballista+tls://HOST:PORT"), "{said}");
    let (_plain, plain) = Server::announced(project.command(&["scheduler", "--bind", "127.0.0.1:0"]));
    settings(&project, SETTINGS);
    let said = project.fails(1, &["run", "j", "--force", "--on", &plain.replace("ballista", "ballista+tls")]);
    assert!(said.contains("it does not use TLS: write ballista://HOST:PORT"), "{said}");
    // With all that it needs, it runs.
    project.ok(&run);
}

#[test]
fn executors_that_cannot_be_reached_are_told_so() {
    let project = project(1);
    let (_scheduler, address) =
        Server::announced(project.command(&[&["scheduler", "--bind", "127.0.0.1:0"], MUTUAL].concat()));
    let ends =
        |code: i32, more: &[&str]| project.fails(code, &[&executor_args(&address, "data", "one"), more].concat());
    let said = ends(2, &[]);
    assert!(said.contains("an executor with TLS needs a certificate of its own"), "{said}");
    let said = ends(1, &["--tls-cert", "elsewhere.pem", "--tls-key", "node.key", "--tls-ca", "ca.pem"]);
    assert!(said.contains("the scheduler cannot reach executor one at 127.0.0.1:"), "{said}");
    assert!(said.contains("its certificate is for another name"), "{said}");
    let said = ends(1, &["--tls-cert", "stranger.pem", "--tls-key", "stranger.key", "--tls-ca", "ca.pem"]);
    assert!(said.contains("does not accept the certificate of this process"), "{said}");
    // Half of what a server needs.
    assert!(project.fails(2, &["scheduler", "--tls-cert", "node.pem"]).contains("--tls-key"));
    assert!(project.fails(2, &["scheduler", "--tls-ca", "ca.pem"]).contains("needs a certificate of its own"));
    assert!(project.fails(2, &["scheduler", "--executor-timeout", "1s"]).contains("must be at least 3s"));
    assert!(ends(2, &["--heartbeat", "0s"]).contains("--heartbeat must be at least 1s"));
}

#[test]
fn without_an_authority_that_of_the_system_counts_and_clients_need_no_certificate() {
    let project = project(3);
    // OpenSSL's variable names the file of those that the system trusts.
    let system = |args: &[&str]| {
        let mut command: Command = project.command(args);
        command.env("SSL_CERT_FILE", project.path("ca.pem"));
        command
    };
    let server = ["--tls-cert", "node.pem", "--tls-key", "node.key"];
    let cluster = Cluster::by(&system, "far", &server, &server);
    project.ok(&["run", "j", "--root", "local", "--now", NOW]);
    let run = ["run", "j", "--root", "far", "--now", NOW, "--on", &cluster.address];
    let ran = Ran::of(&mut system(&run));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_same(&project, "local", "far");
    // `ca` names it for one project.
    settings(&project, "ca = \"ca.pem\"\n");
    project.ok(&[&run[..], &["--force"]].concat());
    assert_same(&project, "local", "far");
}
