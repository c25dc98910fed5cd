//! `tidetable schedule`: lines for cron, units for systemd, and runs under a real cron.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Project, json_lines};

/// A job of this schedule that does nothing much.
fn job(name: &str, keys: &str) -> String {
    format!(
        "name = \"{name}\"\n{keys}\n[sources.s]\nfiles = [\"a.csv\"]\ntime = \"ts\"\ncolumns = {{ ts = \"timestamp\", v = \"int64\" }}\n\
         [tables.{}]\nrow_key = \"{{ts:ms}}\"\n[tables.{0}.families.F]\ncolumns = [{{ qualifier = \"v\", value = \"{{v}}\" }}]\n",
        name.to_uppercase()
    )
}

/// A project with the jobs `utc` and `paris`, and one without a schedule.
fn project() -> Project {
    let project = Project::new("utc", &job("utc", "schedule = \"15 1 * * *\""));
    project.write(
        "jobs/paris/job.toml",
        job("paris", "schedule = \"*/30  2 1 * mon\"\ntimezone = \"Europe/Paris\"\ncatch_up = \"none\""),
    );
    project.write("jobs/other/job.toml", job("other", ""));
    project.write("a.csv", "ts,v\n2020-01-01T00:00:00Z,1\n");
    project
}

/// What the command prints, with the paths of this machine named.
fn shown(project: &Project, args: &[&str]) -> String {
    let folder = fs::canonicalize(project.path("")).unwrap();
    let folder = folder.to_str().unwrap().trim_end_matches('/');
    let given = project.path("");
    let given = given.to_str().unwrap().trim_end_matches('/');
    let text = project.ok(args).replace(folder, "DIR").replace(given, "DIR");
    text.replace(fs::canonicalize(env!("CARGO_BIN_EXE_tidetable-e2e")).unwrap().to_str().unwrap(), "BIN")
}

#[test]
fn crontab_lines() {
    let project = project();
    let now = ["--now", "2026-06-01T00:00:00Z"];
    assert_eq!(
        shown(&project, &["schedule", "--cron-zone", "Etc/UTC", now[0], now[1]]),
        "# Jobs of tidetable in DIR; add these lines with: crontab -e\n\
         # paris: */30 2 1 * mon in Europe/Paris\n\
         0,30 * * * * BIN -C DIR schedule --due paris && mkdir -p DIR/logs && BIN -C DIR run paris --catch-up --if-locked skip >> DIR/logs/paris.log 2>&1\n\
         # utc: 15 1 * * * in UTC\n\
         15 1 * * * mkdir -p DIR/logs && BIN -C DIR run utc --catch-up --if-locked skip >> DIR/logs/utc.log 2>&1\n\
         @reboot mkdir -p DIR/logs && BIN -C DIR run utc --catch-up --if-locked skip >> DIR/logs/utc.log 2>&1\n"
    );
    let india =
        shown(&project, &["schedule", "--cron-zone", "Asia/Kolkata", "--logs", "/var/log/50% off", now[0], now[1]]);
    assert!(
        india.contains("\n45 * * * * BIN -C DIR schedule --due utc && mkdir -p '/var/log/50\\% off' && "),
        "{india}"
    );
    assert!(india.contains(">> '/var/log/50\\% off'/utc.log 2>&1\n"), "{india}");
    let rooted = shown(&project, &["schedule", "--cron-zone", "UTC", "--root", "elsewhere"]);
    assert!(rooted.contains("run utc --catch-up --if-locked skip --root DIR/elsewhere >> "), "{rooted}");
    let none = Project::new("other", &job("other", ""));
    assert!(none.ok(&["schedule"]).ends_with("# No job has a `schedule`.\n"));
    none.write("jobs/bad/job.toml", job("bad", "schedule = \"61 * * * *\""));
    assert!(none.fails(2, &["schedule"]).contains("jobs/bad/job.toml"));
}

#[test]
fn systemd_units() {
    let project = project();
    let said = shown(&project, &["schedule", "--format", "systemd", "--write", "units"]);
    assert_eq!(said.lines().count(), 4, "{said}");
    let unit = |name: &str| project.read(&format!("units/tidetable-{name}"));
    assert!(unit("paris.timer").contains(
        "OnCalendar=*-*-01 02:00,30:00 Europe/Paris\nOnCalendar=Mon *-*-* 02:00,30:00 Europe/Paris\nPersistent=false\n"
    ), "{}", unit("paris.timer"));
    assert!(unit("utc.timer").contains("OnCalendar=*-*-* 01:15:00 UTC\nPersistent=true\n"));
    let service = unit("utc.service");
    assert!(service.contains("\" run utc --catch-up --if-locked skip\n") && service.contains("\" -C \"/"), "{service}");
    let printed = shown(&project, &["schedule", "--format", "systemd"]);
    assert!(printed.starts_with("# tidetable-paris.service\n[Unit]\n"), "{printed}");
    project.fails(2, &["schedule", "--write", "units"]);
    // systemd parses the times, if it is installed.
    match Command::new("systemd-analyze").args(["calendar", "Mon *-*-* 02:00,30:00 Europe/Paris"]).output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => eprintln!("not tried with systemd-analyze: {error}"),
    }
}

#[test]
fn due_holds_for_the_scheduled_minute() {
    let project = project();
    let due = |job: &str, now: &str| project.run(&["schedule", "--due", job, "--now", now]);
    assert_eq!(due("utc", "2026-06-01T01:15:30Z").code, Some(0));
    let not = due("utc", "2026-06-01T01:16:00Z");
    assert_eq!((not.code, not.stdout.as_str(), not.stderr.as_str()), (Some(1), "", ""));
    // The first of a month or a Monday, at two in Paris.
    assert_eq!(due("paris", "2026-06-01T00:30:00Z").code, Some(0));
    assert_eq!(due("paris", "2026-06-02T00:30:00Z").code, Some(1));
    assert_eq!(due("paris", "2026-12-01T01:00:00Z").code, Some(0));
    assert!(project.fails(2, &["schedule", "--due", "other"]).contains("no `schedule`"));
}

#[test]
fn schedule_check_lists_last_missed_and_next_runs() {
    let project = project();
    project.ok(&["run", "utc", "--now", "2026-03-27T01:15:02Z"]);
    project.ok(&["run", "paris", "--now", "2026-03-30T00:00:01Z"]);
    let check =
        |output: &str| project.ok(&["schedule", "--check", "--now", "2026-03-30T00:45:00Z", "--output", output]);
    let rows = json_lines(&check("json"));
    let of = |job: &str| -> Vec<(String, String)> {
        let rows = rows.iter().filter(|row| row["job"] == job);
        rows.map(|row| (row["time"].as_str().unwrap().to_owned(), row["what"].as_str().unwrap().to_owned())).collect()
    };
    let pair = |time: &str, what: &str| (time.to_owned(), what.to_owned());
    let utc = of("utc");
    assert_eq!(
        utc[..3],
        [
            pair("2026-03-27T01:15:02Z", "last run: ok"),
            pair("2026-03-28T01:15:00Z", "missed"),
            pair("2026-03-29T01:15:00Z", "missed, to be made up")
        ]
    );
    assert_eq!(utc.len(), 3 + 7);
    assert_eq!(utc[3], pair("2026-03-30T01:15:00Z", "to run"));
    // A Monday after the clocks went forward, and the first of April.
    assert_eq!(
        of("paris"),
        [
            pair("2026-03-30T00:00:01Z", "last run: ok"),
            pair("2026-03-30T00:30:00Z", "missed"),
            pair("2026-04-01T00:00:00Z", "to run"),
            pair("2026-04-01T00:30:00Z", "to run"),
            pair("2026-04-06T00:00:00Z", "to run"),
            pair("2026-04-06T00:30:00Z", "to run"),
        ]
    );
    project.write("jobs/often/job.toml", job("often", "schedule = \"* * * * *\""));
    let table = check("table");
    assert!(table.contains("2026-04-06T02:30:00+02:00"), "{table}");
    assert!(table.contains("and 10066 more"), "{table}");
    project.write("jobs/often/job.toml", job("often", "schedule = \"* * * * *\"\ncatch_up_window = \"soon\""));
    assert!(project.fails(2, &["check", "often"]).contains("`catch_up_window` cannot be `soon`"));
}

/// Starts cron with this crontab alone, in a namespace where the machine's own are not seen.
const CRON: &str = r#"
mount --bind "$1/spool" /var/spool/cron/crontabs && mount --bind "$1/empty" /etc/cron.d &&
mount --bind "$1/crontab" /etc/crontab && mount -t tmpfs none /run && exec cron -f
"#;

#[test]
fn real_cron_runs_a_job_each_minute() {
    let project = Project::new("each", &job("each", "schedule = \"* * * * *\"\ntimezone = \"Asia/Kolkata\""));
    project.write("a.csv", "ts,v\n2020-01-01T00:00:00Z,1\n");
    project.write("cron/crontab", "");
    fs::create_dir_all(project.path("cron/empty")).unwrap();
    project.write("cron/spool/root", project.ok(&["schedule"]));
    let owned = Command::new("sh")
        .args(["-c", "command -v cron >/dev/null && chown root:crontab . spool spool/root && chmod 1730 spool && chmod 600 spool/root && chmod 755 .."])
        .current_dir(project.path("cron"))
        .output()
        .unwrap();
    if !owned.status.success() {
        eprintln!(
            "skipped: this needs Debian's cron, and root to keep it apart: {}",
            String::from_utf8_lossy(&owned.stderr)
        );
        return;
    }
    let mut cron = Command::new("unshare")
        .args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", CRON, "cron"])
        .arg(project.path("cron"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Cron starts jobs at full minutes.
    let start = Instant::now();
    let mut record = None;
    let mut refused = None;
    while start.elapsed() < Duration::from_secs(150) && record.is_none() && refused.is_none() {
        std::thread::sleep(Duration::from_millis(500));
        refused = cron.try_wait().unwrap();
        let runs = fs::read_dir(project.path("data/runs")).into_iter().flatten().flatten();
        record = runs
            .filter_map(|run| serde_json::from_slice(&fs::read(run.path()).ok()?).ok())
            .find(|run: &Value| run["outcome"] != "running");
    }
    let _ = cron.kill();
    let output = cron.wait_with_output().unwrap();
    if let Some(status) = refused {
        eprintln!("skipped: cron does not start apart ({status}): {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let log = fs::read_to_string(project.path("logs/each.log")).unwrap_or_default();
    let record = record.unwrap_or_else(|| panic!("no run in 150 seconds: {log}"));
    assert_eq!((&record["job"], &record["outcome"]), (&Value::from("each"), &Value::from("ok")), "{log}");
    assert!(log.contains("EACH"), "{log}");
    // Cron starts some seconds late; the logical time is its minute.
    assert_eq!(record["now"].as_i64().unwrap() % 60_000_000, 0, "{record}");
}
