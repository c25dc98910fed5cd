//! What messages hold: neither secrets of a job file nor what steers a terminal.

use crate::harness::system::on_terminal;
use crate::harness::{Project, Ran};

const JOB: &str = readings_job!("in/*.csv", "", "");

#[test]
fn no_message_shows_a_secret_of_the_job_file() {
    let project = Project::new("j", JOB);
    for (name, hooks) in [
        ("on the line before", "heartbeat = \"https://hc-ping.com/HUSH\"\ntimeot = \"5s\"\n"),
        ("with another scheme", "heartbeat = \"htp://hc-ping.com/HUSH\"\n"),
        ("without quotes", "heartbeat = https://hc-ping.com/HUSH\n"),
        ("that is not closed", "heartbeat = \"https://hc-ping.com/HUSH\n"),
        ("under another name", "heartbeet = \"https://hc-ping.com/HUSH\"\n"),
        ("in a command", "failure = [\"curl\", \"-H\", \"Authorization: HUSH\"]\ntimeout = 5\n"),
        ("in a command of lines", "failure = [\n  \"curl\",\n  \"HUSH\", 7,\n]\n"),
    ] {
        project.write("jobs/j/job.toml", format!("{JOB}[hooks]\n{hooks}"));
        for args in [
            &["check", "j"][..],
            &["check", "j", "--verbose"],
            &["check", "j", "--log", "json"],
            &["run", "j"],
            &["run", "j", "--log", "json"],
            &["plan", "j"],
        ] {
            let told = project.fails(2, args);
            assert!(!told.contains("HUSH"), "{name}, {args:?}: {told}");
        }
    }
    project.write("tidetable.toml", "root = \"s3://key:HUSH@plant/x\"\nrot = 1\n");
    assert!(!project.fails(2, &["tables"]).contains("HUSH"));
}

#[test]
fn a_secret_is_not_in_what_follows_a_run() {
    let hooks = "[hooks]\nheartbeat = \"http://127.0.0.1:1/HUSH\"\nfinish = [\"sh\", \"-c\", \"env > told\", \"HUSH\"]\n\
                 [metrics]\nfile = \"j.prom\"\n";
    let project = Project::new("j", &format!("{JOB}{hooks}"));
    project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1.5\n");
    let ran = project.run(&["run", "j", "--output", "json", "--verbose"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("the heartbeat was not sent"), "{}", ran.stderr);
    project.ok(&["report", "j", "--report", "page.html"]);
    project.ok(&["describe", "T", "--report", "table.html"]);
    let mut texts = vec![ran.stdout, ran.stderr, project.ok(&["history", "--output", "json"])];
    texts.extend(["told", "j.prom", "page.html", "table.html"].map(|file| project.read(file)));
    for (place, bytes) in project.files("data") {
        assert!(!bytes.windows(4).any(|window| window == b"HUSH"), "{place}");
    }
    for text in texts {
        assert!(!text.contains("HUSH"), "{text}");
    }
    let records = std::fs::read_dir(project.path("data/runs")).unwrap();
    for record in records {
        let text = std::fs::read_to_string(record.unwrap().path()).unwrap();
        assert!(!text.contains("HUSH"), "{text}");
    }
}

#[test]
fn no_message_shows_the_password_of_a_url() {
    let project = Project::new("j", &format!("{JOB}[hooks]\nfinish = [\"sh\", \"-c\", \"env > told\"]\n"));
    project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1.5\n");
    let url = "https://key:HUSH@127.0.0.1:1/x.csv";
    let query = format!("select * from '{url}'");
    for args in [
        &["run", "j", "--without", url][..],
        &["run", "j", "--input", url],
        &["run", "j", "--output", url],
        &["run", url],
        &["--root", url, "tables"],
        &["backup", url],
        &["restore", url],
        &["copy", url, "copy"],
        &["new", "k", "--from", url],
        &["try", url],
        &["export", "T", "--to", url],
        &["sql", "-O", url, "-c", "select 1"],
        &["sql", "-c", &query],
        &["read", "T", "--limit", url],
    ] {
        for log in ["text", "json"] {
            let ran = project.run(&[&["--log", log], args].concat());
            assert_ne!(ran.code, Some(0), "{args:?}");
            assert!(!ran.stderr.contains("HUSH") && !ran.stdout.contains("HUSH"), "{args:?}: {}", ran.stderr);
        }
    }
    for (place, bytes) in project.files("data") {
        assert!(!bytes.windows(4).any(|window| window == b"HUSH"), "{place}");
    }
    assert!(!project.read("told").contains("HUSH"));
}

/// A title of a window, and a key that erases the screen.
const ESCAPES: [&str; 2] = ["\u{1b}]0;owned\u{7}", "\u{9b}2J"];

#[test]
fn no_name_steers_a_terminal() {
    let steers = |text: &str| text.contains(['\u{1b}', '\u{7}', '\u{9b}']);
    let project = Project::new("j", JOB);
    for escape in ESCAPES {
        // A header.
        project.write("in/a.csv", format!("meter,ts,{escape}kwh\n1,2020-01-01T10:00:00Z,1.5\n"));
        let told = project.fails(1, &["run", "j"]);
        assert!(told.contains("no column \"kwh\"") && !steers(&told), "{told:?}");
        let proposed = project.run(&["new", "k", "--from", "in/a.csv", "--stdout"]);
        assert!(!steers(&proposed.stderr), "{:?}", proposed.stderr);
        // A column of a result, in every form for people.
        let query = format!("select 1 as \"{escape}\", 'x{escape}' as v");
        for output in ["table", "line", "markdown"] {
            let shown = project.ok(&["sql", "--output", output, "-c", &query]);
            assert!(shown.contains("owned") == escape.contains("owned") && !steers(&shown), "{output}: {shown:?}");
        }
        // The names of files, a line of a script, a line of a job file.
        project.write(&format!("in/{escape}.csv"), "meter,ts\n");
        let told = project.run(&["run", "j"]);
        assert!(!steers(&told.stderr) && !steers(&told.stdout), "{:?}", told.stderr);
        std::fs::remove_file(project.path(&format!("in/{escape}.csv"))).unwrap();
        let told = project.run(&["sql", "-c", &format!("selec '{escape}'")]);
        assert!(told.code != Some(0) && !steers(&told.stderr), "{:?}", told.stderr);
        project.write("jobs/broken/job.toml", format!("name = \"broken\"\n# {escape}\nrot = 1\n"));
        assert!(!steers(&project.fails(2, &["check", "broken"])));
        let told = Ran::of(&mut project.command(&["run", &format!("no{escape}job")]));
        assert!(told.code == Some(2) && !steers(&told.stderr), "{:?}", told.stderr);
    }
}

/// A job whose keys and rejected rows are texts of its inputs.
const NAMED: &str = "name = \"j\"\n[sources.s]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\nmax_rejected = \"90%\"\n\
                     [sources.s.columns]\nname = \"text\"\nts = \"timestamp\"\nv = \"int64\"\n\
                     [tables.T]\nrow_key = \"{name}#{ts:%Y%m%d}\"\n[tables.T.families.A]\n\
                     columns = [{ qualifier = \"{name}\", value = \"{v}\" }]\n";

#[test]
fn no_value_steers_a_terminal() {
    for escape in ESCAPES {
        let project = Project::new("j", NAMED);
        project.write(
            "in/a.csv",
            format!("name,ts,v\nx{escape},2020-01-01T10:00:00Z,1\nx{escape},2020-01-01T11:00:00Z,z{escape}\n"),
        );

        let commands: [&[&str]; 9] = [
            &["run", "j"],
            &["read", "T"],
            &["rejects", "j"],
            &["lineage", "T"],
            &["history"],
            &["describe", "T"],
            &["status"],
            &["sql", "-c", "select * from T"],
            &["sql", "-c", "select * from \"cells\".T"],
        ];
        for command in commands {
            let shown = on_terminal(&project, 80, command, "");
            assert!(!shown.contains(escape), "{command:?}: {shown:?}");
        }

        let asked = on_terminal(&project, 80, &["sql"], "select name from T;\nselect no from T;\n\\q\n");
        assert!(!asked.contains(escape), "{asked:?}");
    }
}
