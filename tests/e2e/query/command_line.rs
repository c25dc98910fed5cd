//! Unknown names, help, forms of times and sizes, and commands of the prompt.

use std::process::{Command, Stdio};

use crate::harness::system::on_terminal;
use crate::harness::{Project, json_lines};

const DAY: &str = readings_job!(
    "in/*.csv",
    "",
    "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\nquery = { sql = \"select * from T\" }\n"
);

fn project() -> Project {
    let project = Project::new("j", DAY);
    project.write(
        "in/a.csv",
        "meter,ts,kwh\n1,2020-01-01T00:00:00Z,1.5\n2,2020-01-01T06:00:00Z,2.5\n3,2020-01-02T00:00:00Z,4\n",
    );
    project.ok(&["run", "j"]);
    project
}

#[test]
fn unknown_names_are_usage_errors() {
    let project = project();
    let unknown: &[&[&str]] = &[
        &["read", "TT"],
        &["describe", "TT"],
        &["export", "TT", "--to", "x.csv"],
        &["export", "-c", "select * from TT", "--to", "x.csv"],
        &["proto", "TT"],
        &["delete", "TT", "--row", "x", "--yes"],
        &["drop-rows", "TT", "--prefix", "x", "--yes"],
        &["drop", "TT", "--yes"],
        &["compact", "TT"],
        &["repair", "TT"],
        &["vacuum", "TT"],
        &["verify", "TT"],
        &["lineage", "TT"],
        &["sql", "select * from TT"],
        &["sql", "select * from rows.TT(with_history => true)"],
        &["sql", "select kwhh from T"],
        &["status", "jj"],
        &["history", "jj"],
        &["rejects", "jj"],
        &["run", "jj"],
        &["plan", "jj"],
        &["check", "jj"],
        &["retry", "no-run"],
        &["replay", "no-run"],
        &["rejects", "j", "--run", "no-run"],
        &["schedule", "--due", "jj"],
    ];
    for args in unknown {
        project.fails(2, args);
    }
    let named = Project::new("meters", &DAY.replace("tables.T", "tables.METERS").replace("from T", "from METERS"));
    named.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T00:00:00Z,1.5\n");
    named
        .write("jobs/meters/job.toml", named.read("jobs/meters/job.toml").replace("name = \"j\"", "name = \"meters\""));
    named.ok(&["run", "meters"]);
    for (args, meant) in [
        (["read", "METRES"].as_slice(), "METERS"),
        (&["sql", "select * from METRES"], "METERS"),
        (&["lineage", "METRES"], "METERS"),
        (&["status", "metres"], "meters"),
        (&["run", "metres"], "`meters`"),
    ] {
        let said = named.fails(2, args);
        assert!(said.contains(&format!("did you mean {meant}?")), "{args:?}: {said}");
    }
    let said = named.fails(2, &["sql", "select kwhh from METERS"]).to_lowercase();
    assert!(said.matches("did you mean").count() == 1 && said.contains(".kwh'?"), "{said}");
    assert!(project.fails(2, &["tabels"]).contains("'tables'"));
    assert!(project.fails(2, &["read", "T", "--lmit", "1"]).contains("'--limit'"));
    let said = named.run(&["--log", "json", "read", "METRES"]).stderr;
    assert!(json_lines(&said)[0]["help"].as_str().unwrap().contains("did you mean METERS?"), "{said}");
}

#[test]
fn help_is_in_groups_with_examples() {
    let project = Project::empty();
    let help = project.ok(&["--help"]);
    for part in ["\nJobs:\n  try", "\nData:\n  sql", "\nUpkeep:\n", "Global options:\n", "Exit codes:"] {
        assert!(help.contains(part), "{part}: {help}");
    }
    for (command, parts) in [
        ("run", ["<JOB>\n       tidetable run [OPTIONS] --all", "\nDays:\n", "\nHow it runs:\n"].as_slice()),
        ("sql", &["\nOlder versions:\n", "\nHow rows are shown:\n"]),
        ("read", &["\nRows:\n", "\nCells:\n"]),
        ("export", &["--to <FILE> <TABLE>"]),
        ("lineage", &["<NAME> [DAY]"]),
        ("check", &["[OPTIONS] <JOB>"]),
    ] {
        let help = project.ok(&[command, "--help"]);
        for part in parts.iter().chain(&["\nGlobal options:\n", "Examples:\n  tidetable "]) {
            assert!(help.contains(part), "{command} {part}: {help}");
        }
    }
}

#[test]
fn days_times_and_sizes_have_several_forms() {
    let project = project();
    for day in ["2020-01-01", "today", "yesterday", "-3d"] {
        project.ok(&["plan", "j", "--day", day]);
        project.ok(&["lineage", "T", day]);
        project.ok(&["run", "j", "--from", day, "--dry-run"]);
    }
    let plan = |day: &str| {
        project.ok(&["plan", "j", "--force", "--day", day, "--now", "2020-01-03T12:00:00Z", "--output", "json"])
    };
    assert!(
        plan("yesterday").contains("E_20200102") && !plan("yesterday").contains("E_20200101"),
        "{}",
        plan("yesterday")
    );
    assert_eq!(plan("-2d"), plan("2020-01-01"));
    for now in ["2026-11-22", "today", "-36h", "2026-11-22T10:00"] {
        project.ok(&["status", "--now", now]);
        project.ok(&["run", "j", "--now", now]);
    }
    assert!(project.fails(2, &["plan", "j", "--day", "soon"]).contains("yesterday"));
    assert!(project.fails(2, &["status", "--now", "soon"]).contains("-3d"));
    for size in ["512MiB", "1GB", "1GiB", "1G", "600MB", "1g"] {
        project.ok(&["run", "j", "--memory", size]);
        project.ok(&["sql", "select 1", "--memory", size]);
    }
    for args in [["run", "j", "--memory", "512"].as_slice(), &["sql", "select 1", "--memory", "512"]] {
        assert!(project.fails(2, args).contains("512MiB"));
    }
}

#[test]
fn the_version_names_the_features() {
    let project = Project::empty();
    for args in [["--version"], ["-V"]] {
        let said = project.ok(&args);
        assert!(said.starts_with("tidetable ") && said.contains("(features: "), "{said}");
        assert_eq!(said.contains("cluster"), cfg!(feature = "cluster"), "{said}");
        assert_eq!(said.contains("bigtable"), cfg!(feature = "bigtable"), "{said}");
    }
}

#[cfg(not(feature = "bigtable"))]
#[test]
fn a_build_without_bigtable_refuses_a_push_before_it_runs() {
    let push = "[push.there]\ntable = \"T\"\nto = \"projects/p/instances/i\"\n";
    let project = Project::new("j", &format!("{DAY}{push}"));
    let said = project.fails(2, &["check", "j"]);
    assert!(said.contains("push there: this tidetable is built without the feature bigtable"), "{said}");
}

#[cfg(not(feature = "cluster"))]
#[test]
fn a_build_without_clusters_refuses_the_scheduler_of_a_project_before_it_runs() {
    let project = project();
    project.write("tidetable.toml", "root = \"data\"\n[cluster]\nurl = \"ballista://127.0.0.1:1\"\n");
    for args in [["check", "--all"].as_slice(), &["check", "j"], &["run", "j"]] {
        let said = project.fails(2, args);
        assert!(said.contains("built without the feature cluster") && said.contains("`tidetable --version`"), "{said}");
        assert!(!said.contains("cargo install"), "{said}");
    }
    project.ok(&["run", "j", "--on", "local"]);
}

#[test]
fn sql_accepts_a_statement_and_a_version() {
    let project = project();
    assert_eq!(project.ok(&["sql", "select 1 as n", "--output", "csv"]), "n\n1\n");
    assert_eq!(project.ok(&["sql", "--version", "1", "select count(*) as n from T", "--output", "csv"]), "n\n3\n");
    for args in [["sql", "--version"].as_slice(), &["sql", "-V"], &["sql", "select 1", "-c", "select 2"]] {
        let ran = project.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{args:?}: {}", ran.stderr);
    }
    let found = project.json(&["sql", "summarize T"]);
    let kwh = found.iter().find(|row| row["column"] == "kwh").unwrap();
    assert_eq!(
        (&kwh["count"], &kwh["nulls"], &kwh["min"], &kwh["max"]),
        (&3.into(), &0.into(), &"1.5".into(), &"4.0".into())
    );
    assert_eq!(found.iter().find(|row| row["column"] == "meter").unwrap()["distinct"], 3);
    let some = project.json(&["sql", "SUMMARIZE select kwh from T where meter = 1;"]);
    assert_eq!((some.len(), &some[0]["max"]), (1, &"1.5".into()));
    assert!(project.ok(&["sql", "describe T"]).contains("kwh"));
}

/// Types lines at a prompt; what the terminal shows.
fn typed(project: &Project, lines: &[&str]) -> String {
    let keys = lines.join("\n").replace('\\', "\\\\").replace("<Enter>", "\\r");
    on_terminal(project, 100, &["sql"], &format!("{keys}\n"))
}

#[test]
fn prompt_accepts_commands_of_other_programs() {
    let project = project();
    let said = typed(
        &project,
        &[
            "select meter<Enter>from T where meter = 2;",
            "\\x",
            "select meter, kwh from T where meter = 3;",
            ".mode markdown",
            "select count(*) as number from T;",
            ".mode table",
            ".maxrows 2",
            "select * from T;",
            "\\o rows.csv",
            "select meter from T order by meter;",
            "\\o",
            "\\o rows.xlsx",
            "DESCRIBE T;",
            "SUMMARIZE T;",
            ".tables",
            "\\copy T",
            "select metr from T;",
            ".timer on",
            "select 7 as seven;",
            "exit",
        ],
    );
    for wanted in [
        "      ...> ",
        "1 row",
        "mode is line",
        "meter \u{2502} 3",
        "| number |",
        "| 3 |",
        "the first 2 rows, and there are more",
        "rows go into rows.csv",
        "rows go to the screen",
        "rows.xlsx does not give the file format",
        "Float64",
        "distinct",
        "there is no \\copy: files are tables by their names in quotes",
        "Did you mean",
        "1 row, 0.",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    assert_eq!(project.read("rows.csv"), "meter\n1\n2\n3\n");
}

#[test]
fn prompt_writes_rows_to_links_pipes_and_devices() {
    let project = project();
    project.write("old.csv", "old");
    std::os::unix::fs::symlink("old.csv", project.path("link.csv")).unwrap();
    let pipe = project.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = Command::new("cat").arg(&pipe).stdout(Stdio::piped()).spawn().unwrap();
    let said = typed(
        &project,
        &[
            "\\?",
            "\\o link.csv",
            "select meter from T where meter < 3 order by meter;",
            "\\o /dev/null",
            "select 1 as one;",
            ".mode csv",
            "\\o pipe",
            "select 7 as seven;",
            "\\o new.csv",
            "exit",
        ],
    );
    for wanted in [
        "A file that is there is replaced",
        "rows go into link.csv, which the next rows replace, until",
        "rows go into /dev/null, until",
        "rows go into pipe, until",
        "rows go into new.csv, until",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    assert!(project.path("link.csv").is_symlink(), "the target is written, the link stays");
    assert_eq!(project.read("old.csv"), "meter\n1\n2\n");
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    let read = reader.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(read.stdout).unwrap(), "seven\n7\n");
    assert!(!std::fs::metadata(&pipe).unwrap().is_file(), "a pipe is written to");
    assert!(!project.path("new.csv").exists(), "nothing was written yet");
}

#[test]
fn statements_need_no_project() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.csv"), "meter,kwh\n1,1.5\n2,2.5\n").unwrap();
    let project = project();
    let run = |args: &[&str]| {
        let ran = project.command(args).current_dir(folder.path()).output().unwrap();
        (ran.status.code(), String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned())
    };
    for (query, shown) in [("select 41 + 1 as a", "42"), ("select sum(kwh) as n from 'a.csv'", "4.0")] {
        let (code, said) = run(&["sql", "-c", query, "--output", "csv"]);
        assert!(code == Some(0) && said.contains(shown), "{query}: {said}");
    }
    for query in ["select * from T", "select * from runs.runs", "select 1 from exports.E", "show tables"] {
        let (code, said) = run(&["sql", "-c", query]);
        assert!(code == Some(2) && said.contains("no tidetable.toml"), "{query}: {said}");
    }
    assert_eq!(run(&["tables"]).0, Some(2));
}

#[test]
fn queries_run_in_this_process() {
    let project = project();
    for place in ["ballista://127.0.0.1:50050", "ballista+tls://127.0.0.1:50050", "local"] {
        let said = project.fails(2, &["sql", "--on", place, "-c", "select count(*) from T"]);
        assert!(said.contains("queries run in this process") && said.contains("docs/guide/cluster.md"), "{said}");
    }
    assert!(!project.ok(&["sql", "--help"]).contains("--on"));
}
