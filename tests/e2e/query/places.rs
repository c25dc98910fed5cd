//! Places: what begins with `scheme:/` is a URL in every argument and key, and is used or refused.

use crate::harness::{Project, Ran};

const JOB: &str = readings_job!("in/*.csv", "", "");

fn project() -> Project {
    let project = Project::new("j", JOB);
    project.write("in/10:00.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1.5\n");
    project.ok(&["run", "j"]);
    project
}

/// Commands with a place that can be in a bucket.
const ANYWHERE: [&[&str]; 14] = [
    &["tables", "--root", "PLACE"],
    &["run", "j", "--root", "PLACE"],
    &["backup", "PLACE"],
    &["backup", "PLACE", "--list"],
    &["backup", "PLACE", "--verify"],
    &["restore", "PLACE"],
    &["restore", "vault", "PLACE"],
    &["copy", "data", "PLACE"],
    &["copy", "PLACE", "data"],
    &["export", "T", "--to", "PLACE"],
    &["sql", "-c", "select 1", "-O", "PLACE"],
    &["report", "j", "--report", "PLACE"],
    &["describe", "T", "--report", "PLACE"],
    &["compare", "j", "--report", "PLACE"],
];

/// Commands with a place that is on this machine.
const HERE: [&[&str]; 13] = [
    &["sql", "-f", "PLACE"],
    &["-C", "PLACE", "tables"],
    &["inspect", "PLACE"],
    &["man", "PLACE"],
    &["schedule", "--logs", "PLACE"],
    &["schedule", "--format", "systemd", "--write", "PLACE"],
    &["compare", "j", "--queries", "PLACE"],
    &["compare", "j", "--prices", "PLACE"],
    &["compare", "j", "--layouts", "PLACE.toml"],
    &["lint", "j", "--prices", "PLACE"],
    &["heatmap", "T", "--queries", "PLACE"],
    &["new", "k", "--from", "in/10:00.csv", "--queries", "PLACE"],
    &["sql", "-c", "select * from 'PLACE.csv'"],
];

fn with(command: &[&str], place: &str) -> Vec<String> {
    command.iter().map(|word| word.replace("PLACE", place)).collect()
}

fn refused(project: &Project, command: &[&str], place: &str) -> String {
    let words = with(command, place);
    project.fails(2, &words.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_malformed_url_is_refused_in_every_argument() {
    let project = project();
    for command in ANYWHERE.iter().chain(&HERE) {
        let told = refused(&project, command, "s3:/plant/x");
        assert!(told.contains("write s3://plant/x"), "{command:?}: {told}");
    }
    for command in ANYWHERE {
        let told = refused(&project, command, "http://plant/x");
        assert!(told.contains("s3://, gs:// or az://"), "{command:?}: {told}");
        let told = refused(&project, command, "s3://key:HUSH@plant/x");
        assert!(told.contains("credentials") && !told.contains("HUSH"), "{command:?}: {told}");
    }
    for command in HERE {
        let told = refused(&project, command, "s3://plant/x");
        assert!(told.contains("is on this machine: write a path"), "{command:?}: {told}");
    }
    for statement in [
        "create external table t (a bigint) stored as csv location 's3:/plant/x.csv'",
        "select * from read_csv('s3:/plant/x.csv')",
        "select * from read_parquet(['s3:/plant/x.parquet', 'a.parquet'])",
    ] {
        let told = project.fails(2, &["sql", "-c", statement]);
        assert!(told.contains("write s3://plant/x"), "{statement}: {told}");
    }
    // The variable behind --root, too; an empty one counts as none.
    let ran = Ran::of(project.command(&["tables"]).env("TIDETABLE_ROOT", "s3:/plant/x"));
    assert!(ran.code == Some(2) && ran.stderr.contains("write s3://plant/x"), "{}", ran.stderr);
    assert_eq!(Ran::of(project.command(&["tables"]).env("TIDETABLE_ROOT", "")).code, Some(0));
    for made in ["s3:", "http:"] {
        assert!(!project.path(made).exists(), "{made}");
    }
}

#[test]
fn a_malformed_url_is_refused_in_every_key() {
    let project = project();
    let checked = |text: &str| {
        project.write("jobs/j/job.toml", text);
        project.fails(2, &["check", "j"])
    };
    for (key, job) in [
        ("files", JOB.replace("in/*.csv", "s3:/plant/*.csv")),
        ("file", format!("{JOB}[metrics]\nfile = \"s3://plant/j.prom\"\n")),
        (
            "file",
            format!("{JOB}[exports.E]\nper = \"query\"\nname = \"E\"\nquery = {{ file = \"s3:/plant/x.sql\" }}\n"),
        ),
        ("proto", format!("{JOB}[messages.M]\nproto = \"gs://plant/m.proto\"\n")),
        ("file", format!("{JOB}[hooks]\nheartbeat = {{ file = \"s3://plant/url\" }}\n")),
    ] {
        let told = checked(&job);
        assert!(told.contains(&format!("`{key}`: ")), "{told}");
    }
    project.write("jobs/j/job.toml", JOB);
    for (toml, part) in [
        ("root = \"s3:/plant/x\"\n", "write s3://plant/x"),
        ("root = \"ftp://plant/x\"\n", "s3://, gs:// or az://"),
        ("[root]\nurl = \"s3://plant/x\"\ncache = { dir = \"gs://plant/c\" }\n", "write a path"),
        ("[root]\nurl = \"s3://plant/x\"\nstorage = { endpoint = \"127.0.0.1:9000\" }\n", "http://HOST:PORT"),
    ] {
        project.write("tidetable.toml", toml);
        let told = project.fails(2, &["tables"]).replace("\n  │ ", " ");
        assert!(told.contains(part), "{toml}: {told}");
    }
    assert!(!project.path("s3:").exists());
}

#[test]
fn paths_with_colons_are_paths() {
    let project = project();
    assert_eq!(project.sql("select kwh from T")[0]["kwh"], 1.5);
    project.ok(&["sql", "-c", "select 1 as one", "-O", "10:00.csv"]);
    assert_eq!(project.read("10:00.csv"), "one\n1\n");
    project.ok(&["sql", "-c", "select 2 as one", "-O", "./s3:x.csv"]);
    assert_eq!(project.read("s3:x.csv"), "one\n2\n");
    // A URL of a file is its path.
    let url = format!("file://{}", project.path("u.csv").display());
    project.ok(&["sql", "-c", "select 3 as one", "-O", &url]);
    assert_eq!(project.read("u.csv"), "one\n3\n");
    let root = format!("file://{}", project.path("data").display());
    assert_eq!(project.ok(&["tables", "--root", &root]), project.ok(&["tables"]));
    project.ok(&["backup", &format!("file://{}", project.path("vault").display())]);
    assert!(project.path("vault/vault.json").is_file());
}

#[test]
fn an_address_without_a_scheme_is_refused_and_told() {
    let storage = "storage = { endpoint = { env = \"T_ENDPOINT\" }, region = \"r\", anonymous = true }";
    let text = format!(
        "{}[hooks]\nfailure = [\"sh\", \"-c\", \"echo $TIDETABLE_ERROR > told\"]\n",
        JOB.replace("in/*.csv", "s3://plant/*.csv").replace("time = \"ts\"", &format!("time = \"ts\"\n{storage}"))
    );
    let project = Project::new("j", &text);
    for endpoint in ["127.0.0.1:9000", "localhost", "ftp://h", "http://"] {
        for args in [&["check", "j"][..], &["run", "j"], &["plan", "j"]] {
            let ran = Ran::of(project.command(args).env("T_ENDPOINT", endpoint));
            assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.stderr);
            assert!(ran.stderr.contains("http://HOST:PORT"), "{args:?}: {}", ran.stderr);
        }
        // The hook is told the reason, and no run is left as running.
        assert!(project.read("told").contains("http://HOST:PORT"), "{endpoint}: {}", project.read("told"));
        std::fs::remove_file(project.path("told")).unwrap();
        let running = project.json(&["history"]).into_iter().filter(|run| run["outcome"] == "running").count();
        assert_eq!(running, 0, "{endpoint}");
    }
    let plain = text.replace("{ env = \"T_ENDPOINT\" }", "\"127.0.0.1:9000\"");
    project.write("jobs/j/job.toml", &plain);
    assert!(project.fails(2, &["check", "j"]).contains("which is not a URL of HTTP"));
    // Of the environment, for a root, an empty variable as well.
    project.write("jobs/j/job.toml", JOB);
    project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1.5\n");
    project.write("tidetable.toml", "root = \"s3://plant/prod\"\n");
    for endpoint in ["", "127.0.0.1:9000"] {
        for args in [&["check", "j"][..], &["run", "j"], &["status"], &["tables"]] {
            let ran = Ran::of(project.command(args).env("AWS_ENDPOINT", endpoint).env("AWS_SKIP_SIGNATURE", "true"));
            assert_eq!(ran.code, Some(2), "{args:?}: {}{}", ran.stdout, ran.stderr);
            assert!(ran.stderr.contains("AWS_ENDPOINT"), "{args:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn exports_of_a_root_above_the_project_are_read() {
    let job = readings_job!(
        "in/*.csv",
        "",
        "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\nquery = { sql = \"select * from T\" }\n"
    );
    let project = Project::new("j", job);
    project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1.5\n");
    project.write("beside/keep", "");

    for root in ["beside/../elsewhere", "./beside/../data/"] {
        project.ok(&["run", "j", "--root", root]);
        let rows = project.json(&["sql", "--root", root, "-c", "select count(*) as n from exports.E"]);
        assert_eq!(rows[0]["n"], 1, "{root}");
    }
}
