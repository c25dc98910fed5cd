//! Who may connect: passwords, TLS, addresses that other machines reach.

use std::process::Command;

use super::served::Served;
use crate::harness::Project;
use crate::harness::system::skipped;

fn loaded() -> Project {
    let project = Project::new("j", readings_job!("*.csv", "", ""));
    project.write("one.csv", "meter,ts,kwh\n1,2024-01-01T00:00:00Z,1.5\n");
    project.ok(&["run", "j"]);
    project
}

/// Files of a certificate for this machine, made by OpenSSL; `false` if that is not here.
fn certificate(project: &Project) -> bool {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout"])
        .arg(project.path("key.pem"))
        .arg("-out")
        .arg(project.path("cert.pem"))
        .output();
    let is_made = made.is_ok_and(|made| made.status.success());
    if !is_made {
        skipped("openssl is not here");
    }
    is_made
}

#[test]
fn only_the_password_of_the_user_opens() {
    let project = loaded();
    project.write("password", "open sesame\n");
    let served = Served::start(&project, &["--user", "grafana", "--password-file", "password"]);
    let asks = |user: &str, password: &str| {
        served.psql_as(user, &[("PGPASSWORD", password)], &["-A", "-t", "-c", "SELECT count(*) FROM T"])
    };
    let Some(right) = asks("grafana", "open sesame") else { return };
    assert_eq!((right.code, right.stdout.trim()), (Some(0), "1"), "{}", right.stderr);
    for (user, password) in [("grafana", "open"), ("grafana", ""), ("eve", "open sesame")] {
        let wrong = asks(user, password).unwrap();
        assert_eq!(wrong.code, Some(2), "{user} {password}: {}", wrong.stdout);
        assert!(password.is_empty() || wrong.stderr.contains("password authentication failed"), "{}", wrong.stderr);
    }
}

#[test]
fn connections_are_encrypted() {
    let project = loaded();
    if !certificate(&project) {
        return;
    }
    let served = Served::start(&project, &["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    let root = project.path("cert.pem").display().to_string();
    let asks = |mode: &str| {
        let variables = [("PGSSLMODE", mode), ("PGSSLROOTCERT", root.as_str())];
        served.psql_as("ada", &variables, &["-A", "-t", "-c", "\\conninfo", "-c", "SELECT count(*) FROM T"])
    };
    for mode in ["require", "verify-full", "prefer"] {
        let Some(ran) = asks(mode) else { return };
        assert!(ran.code == Some(0) && ran.stdout.ends_with("1\n"), "{mode}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("TLSv1"), "{mode}: {}", ran.stdout);
    }
    // On this machine a client may do without.
    assert!(!asks("disable").unwrap().stdout.contains("TLSv1"));
}

#[test]
fn addresses_of_others_need_tls_and_a_password() {
    let project = loaded();
    project.write("password", "open sesame\n");
    let refused = |args: &[&str]| project.fails(2, &[&["serve", "--postgres", "0.0.0.0:0"], args].concat());
    let told = refused(&[]);
    assert!(told.contains("TLS and a password") && told.contains("--tls-cert") && told.contains("127.0.0.1"), "{told}");
    let user = ["--user", "ada", "--password-file", "password"];
    assert!(refused(&user).contains("--tls-key"));
    if certificate(&project) {
        let tls = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];
        assert!(refused(&tls).contains("--user NAME"));

        let served = Served::start_at(&project, "0.0.0.0:0", &[&user[..], &tls].concat());
        let asks = |mode: &str| {
            let variables = [("PGSSLMODE", mode), ("PGPASSWORD", "open sesame")];
            served.psql_as("ada", &variables, &["-A", "-t", "-c", "SELECT count(*) FROM T"])
        };
        let Some(encrypted) = asks("require") else { return };
        assert_eq!((encrypted.code, encrypted.stdout.trim()), (Some(0), "1"), "{}", encrypted.stderr);
        assert!(asks("disable").unwrap().stderr.contains("sslmode=require"));
    }
}

#[test]
fn wrong_options_are_told_at_the_start() {
    let project = loaded();
    let fails =
        |code: i32, args: &[&str]| project.fails(code, &[&["serve", "--postgres", "127.0.0.1:0"], args].concat());
    assert!(fails(2, &["--user", "ada"]).contains("--password-file"));
    assert!(fails(2, &["--user", "ada", "--password-file", "none"]).contains("none"));
    project.write("empty", "");
    assert!(fails(2, &["--user", "ada", "--password-file", "empty"]).contains("first line"));
    project.write("cert.pem", "no certificate");
    assert!(fails(2, &["--tls-cert", "cert.pem", "--tls-key", "cert.pem"]).contains("no certificate in PEM"));
    assert!(fails(2, &["--max-clients", "0"]).contains("from 1 on"));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let told = project.fails(1, &["serve", "--postgres", &address]);
    assert!(told.contains(&address) && told.contains("--postgres HOST:PORT"), "{told}");
}
